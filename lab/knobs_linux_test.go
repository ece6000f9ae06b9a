package lab

import (
	"strings"
	"testing"

	"thru/internal/cause/knob"
	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/tune"
)

// state is what system commands print about all settings of a host that a knob can change.
func state(h *Host) string {
	var b strings.Builder
	for _, c := range []string{
		"sysctl -a -r '^net' 2>/dev/null | grep -v conntrack_count", "ip -d link show dev " + DataDev, "ip route", "ip -6 route", "tc qdisc show dev " + DataDev,
		"ethtool -k " + DataDev, "ethtool -l " + DataDev, "grep . /sys/class/net/" + DataDev + "/queues/*/?ps_cpus",
	} {
		b.WriteString("$ " + c + "\n" + h.Must("sh", "-c", c))
	}
	return b.String()
}

// TestKnobCommands runs the commands of package knob on a real kernel: the setting takes effect, and
// reverting restores everything. The values before are those of the host's facts. Knobs that no network
// namespace has (net.core, rings, moderation, interrupts, governors) have tables in package knob only.
func TestKnobCommands(t *testing.T) {
	Require(t, Root(), Program("ip"), Program("tc"), Program("sysctl"), Program("ethtool"), Namespaces())
	t.Parallel()
	p := NewPair(t, Options{})
	var facts measure.Facts
	p.A.Inside(func() error { facts = host.New().Facts(); return nil })
	route := "10.77.0.0/24 dev " + DataDev + " table main metric 0"
	rps := "/sys/class/net/" + DataDev + "/queues/rx-0/rps_cpus"
	for _, c := range []struct{ knob, value, before, shows string }{
		{knob.TCPRmem, "4096 131072 75000000", "", "net.ipv4.tcp_rmem = 4096\t131072\t75000000"},
		{knob.TCPWmem, "4096 16384 75000000", "", "net.ipv4.tcp_wmem = 4096\t16384\t75000000"},
		{knob.WindowScaling, "0", "", "tcp_window_scaling = 0"}, {knob.SACK, "0", "", "tcp_sack = 0"}, {knob.Timestamps, "0", "", "tcp_timestamps = 0"},
		{knob.MTUProbing, "2", "", "tcp_mtu_probing = 2"}, {knob.SlowStartIdle, "0", "", "tcp_slow_start_after_idle = 0"}, {knob.NoMetricsSave, "1", "", "tcp_no_metrics_save = 1"},
		{knob.RouteCongestion, "reno", "cubic", "congctl reno"}, {knob.RouteCongestion, "", "cubic", "10.77.0.0/24"},
		{knob.MTU, "9000", "", "mtu 9000"}, {knob.TxQueueLen, "5000", "", "qlen 5000"}, {knob.Qdisc, "pfifo", "", "qdisc pfifo"},
		{knob.TSO, "off", "", "tcp-segmentation-offload: off"}, {knob.GSO, "off", "", "generic-segmentation-offload: off"}, {knob.GRO, "on", "", "generic-receive-offload: on"},
		{knob.TXChecksum, "off", "", "tx-checksumming: off"}, {knob.ScatterGather, "off", "", "scatter-gather: off"},
		{knob.RPS, "rx-0 1", "rx-0 " + strings.TrimSpace(p.A.Must("cat", rps)), "1"},
	} {
		iface := DataDev
		if c.knob == knob.RouteCongestion {
			iface = route
		}
		s := measure.Setting{Knob: c.knob, Interface: iface, Value: c.value}
		w := knob.By("linux", &facts, s, c.before)
		if strings.Contains(strings.Join(w.Undo, " "), "VALUE") || len(w.Set) == 0 {
			t.Errorf("%s: the value before is not known: %+v", c.knob, w)
			continue
		}
		before, read := state(p.A), readKnob(t, p.A, s)
		p.A.Must("sh", "-c", strings.Join(w.Set, " && "))
		if now := readKnob(t, p.A, s); now != c.value && !strings.HasPrefix(now, c.value+" ") {
			t.Errorf("%s: %q made it %q for package tune, not %q", c.knob, w.Set, now, c.value)
		}
		if out := p.A.Must("sh", "-c", w.Verify[0]); !strings.Contains(out, c.shows) {
			t.Errorf("%s: %q shows %q, not %q", c.knob, w.Verify[0], out, c.shows)
		}
		if state(p.A) == before {
			t.Errorf("%s: %q changed nothing", c.knob, w.Set)
		}
		p.A.Must("sh", "-c", strings.Join(w.Undo, " && "))
		if now := readKnob(t, p.A, s); now != read {
			t.Errorf("%s: %q left %q for package tune, not %q", c.knob, w.Undo, now, read)
		}
		if after := state(p.A); after != before {
			t.Errorf("%s: %q left\n%s", c.knob, w.Undo, changed(before, after))
		}
	}
}

// readKnob is the value of a knob as package tune reads it.
func readKnob(t *testing.T, h *Host, s measure.Setting) (value string) {
	t.Helper()
	if s.Knob == knob.RPS {
		return s.Value // /sys of this process is of another network namespace
	}
	if k, _ := knob.Find(s.Knob); k.Scope == knob.OfHost {
		s.Interface = ""
	}
	h.Inside(func() (err error) {
		value, err = tune.New().Read(s.Knob, s.Interface)
		return err
	})
	return value
}

// changed returns the lines that only one of two texts has.
func changed(before, after string) string {
	var b strings.Builder
	for sign, texts := range map[string][2]string{"- ": {before, after}, "+ ": {after, before}} {
		for line := range strings.Lines(texts[0]) {
			if !strings.Contains(texts[1], line) {
				b.WriteString(sign + line)
			}
		}
	}
	return b.String()
}
