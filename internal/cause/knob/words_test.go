package knob

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

var update = flag.Bool("update", false, "write testdata anew")

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
		t.Errorf("%s is out of date (go test ./internal/cause/knob -update):\n%s", file, text)
	}
}

// sample is a setting of each knob with the value before, as package tune reads them.
func sample() []struct{ knob, value, before string } {
	return []struct{ knob, value, before string }{
		{TCPRmem, "4096 131072 75000000", "4096 131072 6291456"}, {TCPWmem, "4096 16384 75000000", "4096 16384 4194304"},
		{RmemMax, "75000000", "212992"}, {WmemMax, "75000000", "212992"},
		{WindowScaling, "1", "0"}, {SACK, "1", "0"}, {Timestamps, "1", "0"}, {MTUProbing, "1", "0"},
		{Congestion, "bbr", "cubic"}, {RouteCongestion, "cubic", ""}, {SlowStartIdle, "0", "1"}, {NoMetricsSave, "1", "0"},
		{DefaultQdisc, "fq", "pfifo_fast"}, {Qdisc, "fq", "pfifo_fast"}, {Backlog, "2000", "1000"}, {Budget, "600", "300"},
		{MTU, "9000", "1500"}, {TxQueueLen, "10000", "1000"}, {RXRing, "4096", "512"}, {TXRing, "4096", "512"},
		{Coalescing, "adaptive-rx on rx-usecs 50 rx-frames 0", "adaptive-rx off rx-usecs 3 rx-frames 0"},
		{Pause, "autoneg on rx off tx off", "autoneg on rx on tx on"},
		{ScatterGather, "on", "off"}, {TXChecksum, "on", "off"}, {RXChecksum, "on", "off"}, {GSO, "off", "on"}, {GRO, "on", "off"}, {LRO, "off", "on"},
		{TSO, "off tx-tcp-segmentation=off tx-tcp6-segmentation=off tx-udp-segmentation=on", "on tx-tcp-segmentation=on tx-tcp6-segmentation=off tx-udp-segmentation=on"},
		{Channels, "combined 4", "combined 1"}, {RSSHash, "tcp4 sdfn udp4 sdfn", "tcp4 sdfn udp4 sd"}, {RSSTable, "0 1 2 3 0 1 2 3", "0 0 0 0 0 0 0 0"},
		{RPS, "rx-0 f rx-1 3", "rx-0 0 rx-1 3"}, {XPS, "tx-0 1 tx-1 2", "tx-0 0 tx-1 0"}, {IRQAffinity, "24 0 25 1", "24 0-3 25 0-3"},
		{Governor, "performance", "cpu0 powersave cpu1 schedutil"},
		{Streams, "4", ""}, {Window, "", "800K"}, {Length, "1M", ""}, {Lean, "on", ""}, {TestCongestion, "cubic", ""}, {CPUAffinity, "2,2", ""},
	}
}

// TestWords checks the commands of every knob on every claimed system.
func TestWords(t *testing.T) {
	nics := map[string]string{"linux": "eth0", "freebsd": "ix0", "darwin": "en0", "windows": "Ethernet 2", "solaris": "net0", "illumos": "vioif0", "esxi": "vmnic0"}
	var b strings.Builder
	for _, os := range Systems() {
		fmt.Fprintf(&b, "## %s\n", os)
		for _, s := range sample() {
			k, ok := Find(s.knob)
			if !ok || !slices.Contains(k.Platforms(), os) {
				continue
			}
			nic := nics[os]
			if s.knob == RouteCongestion {
				nic = "10.77.0.0/24 dev veth0 table main metric 0"
			}
			w := By(os, nil, measure.Setting{Knob: s.knob, Interface: nic, Value: s.value}, s.before)
			b.WriteString(wordsText(s.knob, w))
			checkCommands(t, os, s.knob, w)
		}
	}
	golden(t, "testdata/words.golden", b.String())
}

// wordsText formats the words for a golden file.
func wordsText(id string, w Words) string {
	var b strings.Builder
	for _, part := range []struct {
		name  string
		lines []string
	}{{"set", w.Set}, {"undo", w.Undo}, {"verify", w.Verify}} {
		for _, line := range part.lines {
			fmt.Fprintf(&b, "%-22s%-7s%s\n", id, part.name, line)
		}
	}
	if w.Words != "" {
		fmt.Fprintf(&b, "%-22s%-7s%s\n", id, "words", w.Words)
	}
	return b.String()
}

// programs with which a command may begin.
const programs = `sysctl ip tc ethtool echo ping cat grep ifconfig sed cpuset service netsh Set-NetIPInterface Get-NetIPInterface
	Set-NetAdapterAdvancedProperty Get-NetAdapterAdvancedProperty Set-NetAdapterRss Get-NetAdapterRss Enable-NetAdapterRss Disable-NetAdapterRss
	Enable-NetAdapterLso Disable-NetAdapterLso Get-NetAdapterLso Enable-NetAdapterRsc Disable-NetAdapterRsc Get-NetAdapterRsc
	Enable-NetAdapterChecksumOffload Disable-NetAdapterChecksumOffload Get-NetAdapterChecksumOffload powercfg ipadm dladm ndd poweradm esxcli vmkping kldload kldunload`

// checkCommands checks each command: a known program, one line, and an undo command if something is set.
func checkCommands(t *testing.T, os, id string, w Words) {
	t.Helper()
	for _, line := range slices.Concat(w.Set, w.Undo, w.Verify) {
		program, _, _ := strings.Cut(line, " ")
		if !slices.Contains(strings.Fields(programs), program) || strings.ContainsAny(line, "\n\r") || strings.Contains(line, "  ") || strings.HasSuffix(line, " ") {
			t.Errorf("%s, %s: no command: %q", os, id, line)
		}
	}
	if k, _ := Find(id); k.Scope != OfTest && (len(w.Set) == 0 && w.Words == "" || len(w.Set) > 0 && (len(w.Undo) == 0 || w.Lasts == "")) {
		t.Errorf("%s, %s: %+v", os, id, w)
	}
}

// TestUnknownBefore: if the value before is not known, the reader gets the command that shows it, or nothing is
// left open.
func TestUnknownBefore(t *testing.T) {
	for _, os := range Systems() {
		for _, s := range sample() {
			w := By(os, nil, measure.Setting{Knob: s.knob, Interface: "eth0", Value: s.value}, "")
			open := strings.Contains(strings.Join(w.Undo, " "), unknownValue)
			if open != strings.Contains(w.Words, "read it first") {
				t.Errorf("%s, %s: open %v, words %q", os, s.knob, open, w.Words)
			}
			if strings.Contains(strings.Join(w.Set, " "), unknownValue) {
				t.Errorf("%s, %s: nothing that is known is left to the reader: %q", os, s.knob, w.Set)
			}
		}
	}
}

// TestFromFacts: a host's facts fill in the value before.
func TestFromFacts(t *testing.T) {
	f := &measure.Facts{Congestion: new("cubic"), CPU: &measure.Processors{Governors: []string{"powersave"}},
		Sysctls: map[string]string{"net.ipv4.tcp_rmem": "4096\t131072\t6291456", "kern.ipc.maxsockbuf": "2097152", "net.inet.tcp.recvbuf_max": "2097152"},
		Interfaces: []measure.Interface{{Name: "eth0", MTU: new(1500), TxLength: new(1000), Qdisc: new("mq fq_codel"), Rings: &measure.Rings{RX: 512, TX: 256},
			Channels: &measure.Channels{RX: 2, TX: 1}, Pause: &measure.Pause{Autoneg: true, RX: true}, Offloads: map[string]bool{"tcp-segmentation-offload": true, "large-receive-offload": false}}}}
	for _, c := range []struct{ knob, value, undo string }{
		{TCPRmem, "4096 131072 75000000", "sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'"},
		{Congestion, "bbr", "sysctl -w net.ipv4.tcp_congestion_control=cubic"},
		{Governor, "performance", "echo powersave | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"},
		{MTU, "9000", "ip link set dev eth0 mtu 1500"}, {TxQueueLen, "5000", "ip link set dev eth0 txqueuelen 1000"},
		{Qdisc, "fq", "tc qdisc del dev eth0 root"}, {RXRing, "4096", "ethtool -G eth0 rx 512"}, {TXRing, "4096", "ethtool -G eth0 tx 256"},
		{Channels, "rx 4 tx 1", "ethtool -L eth0 rx 2"}, {Pause, "autoneg on rx off tx off", "ethtool -A eth0 rx on"},
		{TSO, "off", "ethtool -K eth0 tso on"}, {LRO, "on", "ethtool -K eth0 lro off"},
	} {
		w := By("linux", f, measure.Setting{Knob: c.knob, Interface: "eth0", Value: c.value}, "")
		if got := strings.Join(w.Undo, "; "); got != c.undo || w.Words != "" {
			t.Errorf("%s: undo %q, want %q; %s", c.knob, got, c.undo, w.Words)
		}
	}
	if w := By("freebsd", f, measure.Setting{Knob: TCPRmem, Value: "4096 131072 4194304"}, ""); !slices.Equal(w.Set, []string{"sysctl kern.ipc.maxsockbuf=4718592", "sysctl net.inet.tcp.recvbuf_max=4194304"}) ||
		!slices.Equal(w.Undo, []string{"sysctl net.inet.tcp.recvbuf_max=2097152", "sysctl kern.ipc.maxsockbuf=2097152"}) {
		t.Errorf("the ceiling first, and last when undone: %+v", w)
	}
	if MaxSockBuf(4<<20) != 4718592 {
		t.Error("maxsockbuf for 4 MiB is ", MaxSockBuf(4<<20))
	}
}

// TestConfiguredQdisc: a deliberately configured qdisc cannot be restored by its name, so no command replaces it.
func TestConfiguredQdisc(t *testing.T) {
	if w := By("linux", nil, measure.Setting{Knob: Qdisc, Interface: "eth0", Value: "fq"}, "htb 1:"); len(w.Set) > 0 || len(w.Undo) > 0 || !strings.Contains(w.Words, "loses its options") {
		t.Errorf("%+v", w)
	}
}

// TestOtherSystems: values with another name than on Linux, and undoing without remains.
func TestOtherSystems(t *testing.T) {
	for _, c := range []struct{ os, knob, iface, value, before, set, undo string }{
		{"freebsd", Timestamps, "", "2", "0", "sysctl net.inet.tcp.rfc1323=1", "sysctl net.inet.tcp.rfc1323=0"},
		{"freebsd", Timestamps, "", "0", "2", "sysctl net.inet.tcp.rfc1323=0", "sysctl net.inet.tcp.rfc1323=1"},
		{"solaris", Timestamps, "", "2", "0", "ipadm set-prop -p _tstamp_always=1 tcp", "ipadm set-prop -p _tstamp_always=0 tcp"},
		{"freebsd", RXRing, "ix0", "4096", "512", `echo 'dev.ix.0.iflib.override_nrxds="4096"' >> /boot/loader.conf`, `sed -i '' '/^dev\.ix\.0\.iflib\.override_nrxds="4096"$/d' /boot/loader.conf`},
		{"esxi", Coalescing, "vmnic0", "adaptive-rx on rx-usecs 3", "adaptive-rx off rx-usecs 3", "esxcli network nic coalesce set -n vmnic0 -a true -r 3", "esxcli network nic coalesce set -n vmnic0 -a false -r 3"},
		{"illumos", Governor, "", "performance", "powersave", "", ""},
	} {
		w := By(c.os, nil, measure.Setting{Knob: c.knob, Interface: c.iface, Value: c.value}, c.before)
		if set, undo := strings.Join(w.Set, "; "), strings.Join(w.Undo, "; "); set != c.set || undo != c.undo {
			t.Errorf("%s, %s: %q, undone by %q", c.os, c.knob, set, undo)
		}
	}
}

// TestRouteText: a route as ip shows it is reduced to what ip accepts.
func TestRouteText(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	for shown, want := range map[string]string{
		"10.0.0.0/24 dev v0 proto kernel scope link linkdown \n":                            "10.0.0.0/24 dev v0 proto kernel scope link",
		"10.0.0.0/24 via 10.0.1.1 dev deadbeef dead linkdown":                               "10.0.0.0/24 via 10.0.1.1 dev deadbeef",
		"default via fd00::2 dev v0 metric 1024 expires 998sec congctl cubic pref medium\n": "default via fd00::2 dev v0 metric 1024 pref medium",
		"10.0.0.0/24 via 10.0.1.1 dev v0 onlink congctl bbr\n":                              "10.0.0.0/24 via 10.0.1.1 dev v0 onlink",
		"": "gone",
	} {
		c := exec.Command(shell, "-c", routeText)
		c.Stdin = strings.NewReader(shown)
		if got, err := c.Output(); err != nil || strings.Join(strings.Fields(string(got)), " ") != want {
			t.Errorf("%q: %q, want %q: %v", shown, got, want, err)
		}
	}
}

func TestInTurns(t *testing.T) {
	for _, c := range []struct {
		table        string
		first, count int
		ok           bool
	}{
		{"0 1 2 3 0 1 2 3", 0, 4, true}, {"0 0 0 0", 0, 1, true}, {"2 3 2 3", 2, 2, true}, {"0 1 2 0 1", 0, 3, true}, {"5", 5, 1, true},
		{"0 0 1 1", 0, 0, false}, {"", 0, 0, false}, {"0 x", 0, 0, false}, {"-1 0", 0, 0, false},
	} {
		if first, count, ok := inTurns(c.table); ok != c.ok || ok && (first != c.first || count != c.count) {
			t.Errorf("%q: %d, %d, %v", c.table, first, count, ok)
		}
	}
}

// hostile are texts that a shell would interpret.
func hostile() []string {
	return []string{"eth0; reboot", "$(reboot)", "`reboot`", "a\nreboot", "-a", "a|b", "a&b", "a>b", "a'b", `a"b`, "a b;c", "${x}", "a\\b", "", " ", "é", "a(b", "*", "?", "~", "#x", "!x", "a=b;reboot"}
}

// quoted matches text in single quotes, in which a POSIX shell or PowerShell interprets nothing.
var quoted = regexp.MustCompile(`'[^']*'`)

// checkShell checks that no foreign text got into a command: without our own constructions, no character is left
// that a shell interprets.
func checkShell(t *testing.T, os string, w Words) {
	t.Helper()
	for _, line := range slices.Concat(w.Set, w.Undo, w.Verify) {
		rest := strings.NewReplacer("$(ip route show", "", "$(ip -6 route show", "", " | "+routeText+")", "", " | tee /", "/", " > /", "/", " >> /boot/loader.conf", "", "cpu*/", "").Replace(line)
		for _, q := range quoted.FindAllString(rest, -1) {
			if os == "windows" && strings.ContainsAny(q, ";$`\n") {
				t.Errorf("%s: %q", os, line)
			}
		}
		rest = quoted.ReplaceAllString(rest, "")
		if strings.ContainsAny(rest, ";|&$`<>(){}*?!~'\"\\\n\r#") {
			t.Errorf("%s: a shell reads something into %q (%q)", os, line, rest)
		}
	}
}

func TestHostileNames(t *testing.T) {
	for _, os := range Systems() {
		for _, s := range sample() {
			for _, bad := range hostile() {
				f := &measure.Facts{OS: &os, Congestion: &bad, Sysctls: map[string]string{"net.ipv4.tcp_rmem": bad, "kern.ipc.maxsockbuf": bad, "tcp.max_buf": bad, "net.inet.tcp.recvbuf_max": bad, "Internet.AutoTuningLevelLocal": bad},
					Interfaces: []measure.Interface{{Name: "eth0", Master: &bad, Qdisc: &bad}}}
				checkShell(t, os, By(os, f, measure.Setting{Knob: s.knob, Interface: bad, Value: s.value}, s.before))
				checkShell(t, os, By(os, f, measure.Setting{Knob: s.knob, Interface: "eth0", Value: bad}, s.before))
				checkShell(t, os, By(os, f, measure.Setting{Knob: s.knob, Interface: "eth0", Value: s.value}, bad))
				checkShell(t, os, By(os, f, measure.Setting{Knob: s.knob, Interface: "eth0", Value: s.value + " " + bad}, ""))
			}
		}
	}
}

func FuzzBy(f *testing.F) {
	for i, s := range sample() {
		f.Add(i, i%6, "eth0", s.value, s.before)
	}
	for i, bad := range hostile() {
		f.Add(i, i%6, bad, bad, bad)
	}
	f.Fuzz(func(t *testing.T, id, system int, iface, value, before string) {
		knobs, systems := sample(), Systems()
		os := systems[uint(system)%uint(len(systems))]
		w := By(os, nil, measure.Setting{Knob: knobs[uint(id)%uint(len(knobs))].knob, Interface: iface, Value: value}, before)
		checkShell(t, os, w)
	})
}
