package iperf3

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
)

// read parses a valid command line.
func read(t *testing.T, line string) *original {
	t.Helper()
	o, err := Parse(strings.Fields(line))
	if err != nil {
		t.Fatalf("iperf3 %s: %v", line, err)
	}
	return o
}

// TestOriginalCommandLines checks the requests of iperf3's common command lines.
func TestOriginalCommandLines(t *testing.T) {
	for _, c := range []struct {
		line string
		want func(r *plan.Request)
	}{
		{"-c host", func(*plan.Request) {}},
		{"-chost -t5", func(r *plan.Request) { r.Duration = 5 * time.Second }},
		{"-c host -t 0", func(r *plan.Request) { r.Duration = measure.MaxDuration }},
		{"-c host -P4 -R", func(r *plan.Request) { r.Streams, r.Reverse, r.OneWay = 4, true, false }},
		{"-c host --parallel=4 --rev", func(r *plan.Request) { r.Streams, r.Reverse, r.OneWay = 4, true, false }},
		{"-c host --bidir", func(r *plan.Request) { r.Bidir, r.OneWay = true, false }},
		{"-uRc host -b 100M", func(r *plan.Request) {
			r.Protocol, r.Reverse, r.OneWay, r.Rate, r.RateSet = measure.UDP, true, false, 100e6, true
		}},
		{"-c host -u --bandwidth 1G -l 1400", func(r *plan.Request) {
			r.Protocol, r.Rate, r.RateSet, r.Length = measure.UDP, 1e9, true, measure.Pair{Send: 1400, Recv: 1400}
		}},
		{"-c host -b 0", func(r *plan.Request) { r.RateSet = true }},
		{"-c host -w 400K -l 64K", func(r *plan.Request) {
			r.Window, r.Length = measure.Pair{Send: 400 << 10, Recv: 400 << 10}, measure.Pair{Send: 64 << 10, Recv: 64 << 10}
		}},
		{"-c host -n 1G", func(r *plan.Request) { r.Amount = 1 << 30 }},
		{"-c host -k 1K", func(r *plan.Request) { r.Blocks = 1024 }},
		{"-c host -O 2", func(r *plan.Request) { r.Ramp = 2 * time.Second }},
		{"-c host -i 0.5", func(r *plan.Request) { r.Interval = 500 * time.Millisecond }},
		{"-c host -i 0 -t 20", func(r *plan.Request) { r.Duration, r.Interval = 20*time.Second, 20*time.Second }},
		{"-c host -C reno -M 1400 -N", func(r *plan.Request) { r.Congestion, r.MSS, r.NoDelay = "reno", 1400, true }},
		{"-c host --linux-congestion cubic", func(r *plan.Request) { r.Congestion = "cubic" }},
		{"-c host -4 --cport 6000", func(r *plan.Request) { r.Family, r.BindPort = 4, 6000 }},
		{"-6 -c host", func(r *plan.Request) { r.Family = 6 }},
		{"-c host -A 1,3", func(r *plan.Request) { r.LocalCPU, r.PeerCPU = new(1), new(3) }},
		{"-c host -B 10.0.0.1%eth1", func(r *plan.Request) { r.BindAddr, r.BindDev = "10.0.0.1", "eth1" }},
		{"-c host%eth0", func(r *plan.Request) { r.BindDev = "eth0" }},
		{"-c host --bind-dev vrf1", func(r *plan.Request) { r.BindDev = "vrf1" }},
		{"-c host -S 0xb8", func(r *plan.Request) { r.DSCP = 46 }},
		{"-c host --tos 184", func(r *plan.Request) { r.DSCP = 46 }},
		{"-c host --dscp af41", func(r *plan.Request) { r.DSCP = 34 }},
		{"-c host --dscp lowdelay", func(r *plan.Request) { r.DSCP = 4 }},
		{"-c host -Z", func(r *plan.Request) { r.IO = measure.IOSendfile }},
		{"-c host -u --dont-fragment", func(r *plan.Request) { r.Protocol, r.DontFragment = measure.UDP, true }},
		{"-c host -u -Z -C reno -M 1400 -N", func(r *plan.Request) { r.Protocol = measure.UDP }},
		{"-c host --dont-fragment", func(*plan.Request) {}},
		{"-c host --get-server-output", func(r *plan.Request) { r.FarOutput = true }},
		{"-c host --fq-rate 1G", func(r *plan.Request) { r.Rate, r.RateSet = 1e9, true }},
		{"-c host --fq-rate 1G -b 2G", func(r *plan.Request) { r.Rate, r.RateSet = 1e9, true }},
		{"-c host --fq-rate 1G --no-fq-socket-pacing", func(*plan.Request) {}},
		{"-c host -d --debug=2 --forceflush --udp-counters-64bit --gsro --rcv-timeout 1000 --snd-timeout 5 --cntl-ka=1/2/3 --cntl-ka --connect-timeout 500 --pacing-timer 1K",
			func(*plan.Request) {}},
	} {
		got := read(t, c.line).Request
		want := plan.Request{Engine: measure.IPerf3, Protocol: measure.TCP, Streams: 1, Duration: 10 * time.Second,
			Interval: time.Second, OneWay: true, RampSet: true, EachStream: true}
		c.want(&want)
		for _, cpu := range [][2]**int{{&got.LocalCPU, &want.LocalCPU}, {&got.PeerCPU, &want.PeerCPU}} {
			if x, y := *cpu[0], *cpu[1]; (x == nil) != (y == nil) || x != nil && *x != *y {
				t.Errorf("iperf3 %s: CPUs %v, want %v", c.line, x, y)
			}
			*cpu[0], *cpu[1] = nil, nil
		}
		if got != want {
			t.Errorf("iperf3 %s asks for\n%+v, want\n%+v", c.line, got, want)
		}
		if _, err := plan.Test(twoCPUs(got)); err != nil {
			t.Errorf("iperf3 %s: plan refuses it: %v", c.line, err)
		}
	}
}

// TestOriginalOptions checks options that are not part of the request: output, roles, logins.
func TestOriginalOptions(t *testing.T) {
	for _, c := range []struct {
		line string
		has  func(o *original) bool
	}{
		{"-c host", func(o *original) bool { return o.host == "host" && o.port == 5201 && !o.server && !o.json }},
		{"-c fe80::1%eth0 -p 6000", func(o *original) bool { return o.host == "fe80::1" && o.port == 6000 }},
		{"-c host -J", func(o *original) bool { return o.json }},
		{"-c host --json", func(o *original) bool { return o.json && !o.jsonStream }},
		{"-c host --json-stream --json-stream-full-output", func(o *original) bool { return o.jsonStream && o.jsonFull }},
		{"-c host -f m -V -T title --extra-data more", func(o *original) bool {
			return o.format == 'm' && o.verbose && o.Request.Title == "title" && o.Request.Extra == "more"
		}},
		{"-c host --timestamps", func(o *original) bool { return o.timestamps == "%c " }},
		{"-c host --timestamps=%s", func(o *original) bool { return o.timestamps == "%s" }},
		{"-c host --logfile log -i 0", func(o *original) bool { return o.logFile == "log" && o.silent }},
		{"-s", func(o *original) bool { return o.server && o.port == 5201 && o.skew == 10 }},
		{"-s -p 6000 -1 -D -I pid", func(o *original) bool { return o.oneOff && o.daemon && o.pidFile == "pid" && o.port == 6000 }},
		{"-sD1", func(o *original) bool { return o.oneOff && o.daemon }},
		{"-s --server-bitrate-limit 1G/5 --server-max-duration 60 --idle-timeout 9", func(o *original) bool {
			return o.maxRate == 1e9 && o.maxTime == time.Minute
		}},
		{"-s --rsa-private-key-path k --authorized-users-path u --time-skew-threshold 3 --use-pkcs1-padding", func(o *original) bool {
			return o.privateKey == "k" && o.users == "u" && o.skew == 3 && o.Request.Login.PKCS1
		}},
		{"-c host --username me --rsa-public-key-path k --use-pkcs1-padding", func(o *original) bool {
			return o.Request.Login.User == "me" && o.Request.Login.PublicKey == "k" && o.Request.Login.PKCS1
		}},
		{"-v", func(o *original) bool { return o.version }},
		{"--help", func(o *original) bool { return o.help }},
	} {
		if o := read(t, c.line); !c.has(o) {
			t.Errorf("iperf3 %s: %+v", c.line, o)
		}
	}
}

func TestOriginalRefuses(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", "client (-c) or server (-s)"},
		{"-t 5", "client (-c) or server (-s)"},
		{"-c", "-c needs a value"},
		{"-c host -s", "both server and client"},
		{"-s -t 5", "-t is for the client only"},
		{"-c host -1", "-1 is for the server only"},
		{"-c host -t 5 -n 1G", "only one test end condition (-t, -n, -k) may be specified"},
		{"-c host -P 200", "-P 200: not a whole number from 1 to 128"},
		{"-c host -p 0", "-p 0: it takes 1 to 65535"},
		{"-c host -f x", "-f x: it takes one of"},
		{"-c host -i 0.01", "0.1 to 60"},
		{"-c host -b 10x", "-b 10x"},
		{"-c host -b 10M/100", "evenly, not in bursts"},
		{"-c host -F file", "sends from memory"},
		{"-c host -L 5", "flow label"},
		{"-c host --sctp", "no SCTP"},
		{"-c host -X a", "no SCTP"},
		{"-c host -m", "no MPTCP"},
		{"-c host --repeating-payload", "does not repeat"},
		{"-c host --skip-rx-copy", "--lean"},
		{"-c host -S 300", "0 to 255"},
		{"-c host -S 3", "ECN"},
		{"-c host --dscp nope", "not a code point"},
		{"-c host --username me", "go together"},
		{"-s --authorized-users-path f", "go together"},
		{"-c host --json-stream-full-output", "needs --json-stream"},
		{"-c host --nonsense", "unknown option --nonsense"},
		{"-c host -Q", "unknown option -Q"},
		{"-c host --ser", "--ser is not clear"},
		{"-c host --udp=1", "takes no value"},
		{"host -c", "-c needs a value"},
		{"-c host -n 0", "it must be above 0"},
	} {
		_, err := Parse(strings.Fields(c.line))
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.Code(err) != fault.Failed || fault.Hint(err) == "" {
			t.Errorf("iperf3 %s: %v (exit code %d), want %q", c.line, err, fault.Code(err), c.want)
		}
	}
}

// TestOriginalKnowsEveryFlag checks that the grammar has every flag of the recorded lists of iperf3, with an
// effect or a reason to refuse it.
func TestOriginalKnowsEveryFlag(t *testing.T) {
	files, err := filepath.Glob("../testdata/habits/iperf3-*.flags")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d lists, %v", len(files), err)
	}
	options := (&original{}).options()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if fields[0] == "#" {
				continue
			}
			for _, flag := range fields[1:] {
				if !slices.ContainsFunc(options, func(o flagRow) bool {
					return flag == "-"+string(o.short) || slices.Contains(append([]string{o.long}, o.aliases...), strings.TrimPrefix(flag, "--"))
				}) {
					t.Errorf("%s: %s is not in the grammar", file, flag)
				}
			}
		}
	}
}

// TestOriginalNamesAreUnique checks that no letter and no name is used for two options.
func TestOriginalNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range (&original{}).options() {
		names := append([]string{o.long}, o.aliases...)
		if o.short != 0 {
			names = append(names, string(o.short))
		}
		for _, n := range names {
			if seen[n] {
				t.Errorf("%s is there twice", n)
			}
			seen[n] = true
		}
	}
}

func FuzzOriginal(f *testing.F) {
	f.Add("-c host -t 5 -P4 --json-stream")
	f.Add("-s -D --timestamps=%s -- x")
	f.Add("-uRb1G -c ::1%lo -S 0x20")
	f.Fuzz(func(t *testing.T, line string) {
		o, err := Parse(strings.Split(line, " "))
		if err == nil && !o.help && !o.version && o.server == (o.host != "") {
			t.Errorf("%q is neither client nor server", line)
		}
	})
}
