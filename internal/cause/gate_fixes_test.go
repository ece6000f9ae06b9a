package cause

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"thru/internal/cause/cpu"
	"thru/internal/cause/knob"
	"thru/internal/cause/nic"
	"thru/internal/cause/queue"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

var update = flag.Bool("update", false, "write testdata, and docs/causes.md, docs/gates.md and docs/knobs.md anew")

// golden compares a text with a file.
func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text {
		t.Errorf("%s is out of date (go test ./internal/cause -update):\n%s", file, text)
	}
}

// acts returns every fix for which a system has commands of its own.
func acts(h *scene.Host, f *scene.Face) []struct {
	name string
	scene.Fix
} {
	return []struct {
		name string
		scene.Fix
	}{
		{"renegotiate", nic.Renegotiate(f)}, {"mtu", scene.SetMTU(f, 1500)},
		{"offloads", f.Set(knob.TXChecksum, "on").And(f.Set(knob.TSO, "on")).And(f.Set(knob.GRO, "on"))}, {"lro off", f.Set(knob.LRO, "off")},
		{"queues", f.Set(knob.Channels, "combined 8")}, {"spread", f.Set(knob.RSSTable, "0 1 2 3 4 5 6 7").And(f.Set(knob.RSSHash, "udp4 sdfn"))}, {"ring", f.Set(knob.RXRing, "4096")},
		{"scaling", h.Set(knob.WindowScaling, "", "1")}, {"sack", h.Set(knob.SACK, "", "1")}, {"timestamps", h.Set(knob.Timestamps, "", "1")},
		{"receive", scene.SetBuffers(h, 25_000_960, false)}, {"send", scene.SetBuffers(h, 25_000_960, true)}, {"-w", h.Set(knob.RmemMax, "", "25000960")}, {"probing", h.Set(knob.MTUProbing, "", "1")},
		{"cubic", h.Set(knob.Congestion, "", "cubic")}, {"performance", cpu.Performance(h)}, {"interrupts", scene.SpreadInterrupts(f)},
		{"look", queue.LookAtTraffic(h)},
	}
}

func TestFixes(t *testing.T) {
	var b strings.Builder
	for _, c := range [][2]string{{"linux", "eth0"}, {"linux", "eth0; rm -rf /"}, {"linux", "-a"}, {"freebsd", "vmx0"}, {"darwin", "en0"}, {"windows", "Ethernet 2"},
		{"windows", "it's"}, {"solaris", "net0"}, {"illumos", "vioif0"}, {"esxi", "vmnic0"}, {"plan9", "ether0"}} {
		facts := &measure.Facts{OS: new(c[0]), Cores: new(4), Interfaces: []measure.Interface{{Name: c[1], Kind: new("physical"), IRQs: []measure.IRQ{{Number: 24}, {Number: 25}}}}}
		h := scene.NewHost(&scene.Scene{}, &scene.End{Name: "local", Facts: facts, Route: &measure.Route{Interface: c[1]}})
		fmt.Fprintf(&b, "## %s, %q\n", c[0], c[1])
		for _, a := range acts(h, h.Faces[0]) {
			if a.Advice != "" {
				fmt.Fprintf(&b, "%-12s [%s]\n", a.name, a.Advice)
			}
			for _, line := range a.Lines {
				fmt.Fprintf(&b, "%-12s %s\n", a.name, line)
			}
			if a.Risk != "" {
				fmt.Fprintf(&b, "%-12s (%s)\n", "", a.Risk)
			}
		}
		b.WriteString("\n")
	}
	if strings.Contains(b.String(), " eth0; rm") {
		t.Error("the name of an interface became a command")
	}
	golden(t, "testdata/remedies.golden", b.String())
}

// programs with which a fix may begin.
const programs = `ip ethtool sysctl tc nft echo modinfo cpupower cpuset ifconfig service netsh powercfg ipadm dladm ndd poweradm esxcli
	Set-NetIPInterface Set-NetAdapterAdvancedProperty Set-NetAdapterRss Enable-NetAdapter Enable-NetAdapterLso Enable-NetAdapterRsc Enable-NetAdapterRss
	Enable-NetAdapterChecksumOffload Disable-NetAdapterRsc`

// prose are words and punctuation that no command has.
var prose = regexp.MustCompile(`(^| )(the|of|or|and|there|above|until|likewise|other|first)( |$)|[,;:.] |[,;:.]$|\.\.\.`)

// checkCommands: the commands of a gate's fix can be pasted as they are, and the fix says where.
func checkCommands(t *testing.T, g measure.Gate) {
	t.Helper()
	for _, line := range g.Fix {
		program, _, _ := strings.Cut(line, " ")
		bare := regexp.MustCompile(`'[^']*'`).ReplaceAllString(line, "")
		if !slices.Contains(strings.Fields(programs), program) || prose.MatchString(bare) {
			t.Errorf("no command: %q: %s", line, gateText(g))
		}
		if program == "echo" && !strings.Contains(line, " > /") && !strings.Contains(line, " >> /") && !strings.Contains(line, " | tee /") {
			t.Errorf("echo to nowhere: %q", line)
		}
	}
	if (len(g.Fix) > 0) != (g.FixAt != "") || g.EndPoint != "" && g.FixAt != "" && g.FixAt != g.EndPoint {
		t.Errorf("commands to be run at %q: %s", g.FixAt, gateText(g))
	}
}

// TestCommands runs every case of every rule on every system.
func TestCommands(t *testing.T) {
	for _, os := range []string{"linux", "freebsd", "darwin", "windows", "solaris", "illumos", "esxi", "plan9"} {
		lines := 0
		for _, c := range ruleCases() {
			s := serverPair()
			if c.spoil != nil {
				c.spoil(&s)
			}
			for _, e := range s.Ends {
				if e.Facts != nil {
					e.Facts.OS = &os
				}
			}
			for _, g := range Judge(s) {
				checkCommands(t, g)
				lines += len(g.Fix)
			}
		}
		if lines == 0 && os != "plan9" {
			t.Errorf("%s: no rule has a command", os)
		}
	}
}

// TestWhereToRun: a gate of the path says at which end to run its commands.
func TestWhereToRun(t *testing.T) {
	s := serverPair()
	smaller(&s.Path.Back, 1500, nil)
	for _, g := range Judge(s) {
		if g.ID == "mtu-path" && g.From == "peer" && (g.FixAt != "peer" || !slices.Equal(g.Fix, []string{"ip link set dev ens1f0 mtu 1500"}) || g.Advice == "") {
			t.Errorf("%+v", g)
		}
	}
}

// TestBuffersGrow: a fix sets the buffer of the side that is too small, and reduces nothing.
func TestBuffersGrow(t *testing.T) {
	const window = 1 << 20
	for _, c := range []struct {
		os, has, value string
		receive, send  []string
	}{
		{"linux", "net.ipv4.tcp_rmem", "8192 262144 16777216", []string{"sysctl -w net.ipv4.tcp_rmem='8192 262144 16777216'"}, []string{"sysctl -w net.ipv4.tcp_wmem='4096 16384 3145728'"}},
		{"linux", "net.ipv4.tcp_wmem", "8192 262144 16777216", []string{"sysctl -w net.ipv4.tcp_rmem='4096 131072 3145728'"}, []string{"sysctl -w net.ipv4.tcp_wmem='8192 262144 16777216'"}},
		{"freebsd", "kern.ipc.maxsockbuf", "9000000", []string{"sysctl net.inet.tcp.recvbuf_max=3145728"}, []string{"sysctl net.inet.tcp.sendbuf_max=3145728"}},
		{"darwin", "net.inet.tcp.autosndbufmax", "9000000", []string{"sysctl -w kern.ipc.maxsockbuf=3538944", "sysctl -w net.inet.tcp.autorcvbufmax=3145728"},
			[]string{"sysctl -w kern.ipc.maxsockbuf=10126080", "sysctl -w net.inet.tcp.autosndbufmax=9000000"}},
		{"solaris", "tcp.max_buf", "9000000", []string{"ipadm set-prop -p recv_buf=3145728 tcp"}, []string{"ipadm set-prop -p send_buf=3145728 tcp"}},
		{"windows", "Internet.AutoTuningLevelLocal", "Experimental", nil, nil},
	} {
		h := scene.NewHost(&scene.Scene{}, &scene.End{Facts: &measure.Facts{OS: &c.os, Sysctls: map[string]string{c.has: c.value}}})
		if got := scene.SetBuffers(h, window, false).Lines; !slices.Equal(got, c.receive) {
			t.Errorf("%s, %s %s: receive %q, want %q", c.os, c.has, c.value, got, c.receive)
		}
		if got := scene.SetBuffers(h, window, true).Lines; !slices.Equal(got, c.send) {
			t.Errorf("%s, %s %s: send %q, want %q", c.os, c.has, c.value, got, c.send)
		}
	}
}

// TestOneSideWarns: the gate of the receive window does not change the send buffer, and only the end with the
// small buffer gets commands.
func TestOneSideWarns(t *testing.T) {
	s := serverPair()
	wan(&s)
	s.LinkBps = 1e9 // 2.4 MiB
	s.Ends[0].Facts.Sysctls["net.ipv4.tcp_rmem"] = "4096 65536 131072"
	for _, g := range Judge(s) {
		if (g.ID == "receive-window") && g.EndPoint == "local" {
			if len(g.Fix) != 1 || !strings.Contains(g.Fix[0], "tcp_rmem='4096 65536 7") {
				t.Errorf("%+v", g)
			}
		} else if strings.Contains(strings.Join(g.Fix, " "), "mem='") {
			t.Errorf("commands of another side: %s", gateText(g))
		}
	}
}

// TestWindowToSet checks the worked example of the window: 10 Gb/s and 20 ms are 25 MB, rounded up to an even
// number of segments.
func TestWindowToSet(t *testing.T) {
	s := serverPair()
	s.LinkBps = 10e9
	wan(&s)
	for _, y := range []*measure.SYN{s.Path.Handshake.SYNSeen, s.Path.Handshake.SYNACKSeen} {
		y.MSS = new(1460)
	}
	sc := scene.NewScene(s)
	bdp, _ := sc.BDP()
	if w := sc.NeededWindow(); bdp != 25e6 || w < 25e6 || w%(2*1448) != 0 || w-25e6 >= 2*1448 {
		t.Errorf("BDP %v, window %d", bdp, w)
	}
	if w := scene.NeededWindow(10e9, 500e6, 1, 1448); w < 625e6 || w-625e6 >= 2*1448 { // more than thru sets
		t.Errorf("10 Gb/s at 500 ms need a window of %d", w)
	}
	if got := knob.MaxSockBuf(4 << 20); got != 4718592 {
		t.Errorf("maxsockbuf for 4 MiB is %d, want 4718592", got)
	}
}

// TestQuota: a command lifts a limit only if the facts have its file; otherwise the fix is in words.
func TestQuota(t *testing.T) {
	for _, c := range []struct {
		cgroup  measure.Cgroup
		command string
		advice  string
	}{
		{measure.Cgroup{Version: 2, Path: "/user.slice"}, "echo max > /sys/fs/cgroup/user.slice/cpu.max", "a parent group"},
		{measure.Cgroup{Version: 1, Path: "/fxu"}, "", "cpu.cfs_quota_us of the group /fxu, or of a parent group"},
		{measure.Cgroup{Version: 2, Path: "/a b"}, "", "cpu.max"},
		{measure.Cgroup{Version: 2, Path: "/", Container: "docker"}, "", "docker update --cpus 0 CONTAINER"},
		{measure.Cgroup{Version: 2, Path: "/", Container: "kubernetes"}, "", "resources.limits.cpu"},
	} {
		s := serverPair()
		s.Ends[0].Facts.Cgroup = &c.cgroup
		c.cgroup.QuotaCPUs = new(0.5)
		g, _ := of(Judge(s), "cpu-quota")
		if strings.Join(g.Fix, "\n") != c.command || !strings.Contains(g.Advice, c.advice) || g.Risk == "" {
			t.Errorf("%+v: %s", c.cgroup, gateText(g))
		}
	}
}

// TestRouteNamesControl: a default is not set if a route names another congestion control, which takes precedence.
func TestRouteNamesControl(t *testing.T) {
	s := serverPair()
	s.Path.Forward.Congestion = new("bbr")
	if g, _ := of(Judge(s), "congestion-control"); len(g.Fix) > 0 || g.Advice == "" {
		t.Error(gateText(g))
	}
	s.Ends[0].Facts.Firewall.TrackDrops = new(int64(4000))
	if g, _ := of(Judge(s), "conntrack"); !strings.Contains(g.Risk, "only in the host's own network namespace") || !strings.Contains(g.Risk, "next boot") {
		t.Error(gateText(g))
	}
}
