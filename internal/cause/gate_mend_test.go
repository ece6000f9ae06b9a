package cause

import (
	"strings"
	"testing"

	"thru/internal/cause/gate"
	"thru/internal/measure"
)

func TestMend(t *testing.T) {
	linux := &measure.Facts{OS: new("linux"), Cores: new(4),
		Sysctls: map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_wmem": "4096 16384 4194304", "net.core.netdev_max_backlog": "1000"},
		Interfaces: []measure.Interface{{Name: "eth0", Rings: &measure.Rings{RX: 512, RXMax: 4096}, Channels: &measure.Channels{Combined: 1, CombinedMax: 8},
			IRQs: []measure.IRQ{{Number: 40}, {Number: 41}}}, {Name: "a b"}}}
	system := func(name string) *measure.Facts { return &measure.Facts{OS: &name} }
	for _, c := range []struct {
		name     string
		facts    *measure.Facts
		mend     func(gate.Mender) gate.Mending
		commands string // all of them; "" none
		advice   string // a part of it
	}{
		{"a window", linux, func(m gate.Mender) gate.Mending { return m.Window(25_000_000, false) }, "sysctl -w net.ipv4.tcp_rmem='4096 131072 75000000'", ""},
		{"a send buffer", linux, func(m gate.Mender) gate.Mending { return m.Window(25_000_000, true) }, "sysctl -w net.ipv4.tcp_wmem='4096 16384 75000000'", ""},
		{"a window that is allowed", linux, func(m gate.Mender) gate.Mending { return m.Window(1_000_000, false) }, "", "allows 3 MiB a connection already"},
		{"a window of an unknown host", nil, func(m gate.Mender) gate.Mending { return m.Window(1_000_000, false) }, "sysctl -w net.ipv4.tcp_rmem='4096 131072 3000000'", ""},
		{"a window of an unknown system", system("plan9"), func(m gate.Mender) gate.Mending { return m.Window(1_000_000, false) }, "", "977 KiB"},
		{"a window beyond all bounds", nil, func(m gate.Mender) gate.Mending { return m.Window(1<<62, false) }, "sysctl -w net.ipv4.tcp_rmem='4096 131072 3221176320'", ""},
		{"scaling", nil, func(m gate.Mender) gate.Mending { return m.SwitchOn("net.ipv4.tcp_window_scaling") }, "sysctl -w net.ipv4.tcp_window_scaling=1", ""},
		{"SACK of FreeBSD", system("freebsd"), func(m gate.Mender) gate.Mending { return m.SwitchOn("net.ipv4.tcp_sack") }, "sysctl net.inet.tcp.sack.enable=1", ""},
		{"timestamps of Windows", system("windows"), func(m gate.Mender) gate.Mending { return m.SwitchOn("net.ipv4.tcp_timestamps") }, "", "switch TCP timestamps on"},
		{"a switch that no rule knows", nil, func(m gate.Mender) gate.Mending { return m.SwitchOn("x; reboot") }, "", "switch VALUE on"},
		{"a control", nil, func(m gate.Mender) gate.Mending { return m.Control("cubic") }, "sysctl -w net.ipv4.tcp_congestion_control=cubic", "congctl cubic"},
		{"a control of macOS", system("darwin"), func(m gate.Mender) gate.Mending { return m.Control("cubic") }, "", "have connections use cubic"},
		{"a control that is none", nil, func(m gate.Mender) gate.Mending { return m.Control("$(reboot)") }, "sysctl -w net.ipv4.tcp_congestion_control=VALUE", "congctl VALUE"},
		{"probing", nil, gate.Mender.MTUProbing, "sysctl -w net.ipv4.tcp_mtu_probing=1", ""},
		{"an MTU", nil, func(m gate.Mender) gate.Mending { return m.MTU("eth0", 1500) }, "ip link set dev eth0 mtu 1500", ""},
		{"segmentation off", nil, func(m gate.Mender) gate.Mending { return m.SegmentationOff("eth0") }, "ethtool -K eth0 tso off gso off", ""},
		{"segmentation off, a strange name", linux, func(m gate.Mender) gate.Mending { return m.SegmentationOff("a b") }, "ethtool -K INTERFACE tso off gso off", ""},
		{"a ring", linux, func(m gate.Mender) gate.Mending { return m.Ring("eth0") }, "ethtool -G eth0 rx 4096", ""},
		{"a ring of nobody knows what", nil, func(m gate.Mender) gate.Mending { return m.Ring("eth0") }, "", "more descriptors"},
		{"a backlog", linux, gate.Mender.Backlog, "sysctl -w net.core.netdev_max_backlog=2000", ""},
		{"interrupts", linux, func(m gate.Mender) gate.Mending { return m.Interrupts("eth0") }, "echo 0 > /proc/irq/40/smp_affinity_list\necho 1 > /proc/irq/41/smp_affinity_list", ""},
		{"packets of one interrupt", linux, func(m gate.Mender) gate.Mending { return m.Interrupts("a b") }, "echo f > /sys/class/net/INTERFACE/queues/rx-0/rps_cpus", ""},
		{"interrupts of nobody knows what", nil, func(m gate.Mender) gate.Mending { return m.Interrupts("") }, "", "over several CPUs"},
		{"queues", linux, func(m gate.Mender) gate.Mending { return m.Queues("eth0") }, "ethtool -L eth0 combined 4", ""},
		{"queues of nobody knows what", nil, func(m gate.Mender) gate.Mending { return m.Queues("eth0") }, "", "as many queues"},
		{"flows of one queue", linux, func(m gate.Mender) gate.Mending { return m.Spread("a b") }, "", "over all its receive queues"},
		{"moderation", linux, func(m gate.Mender) gate.Mending { return m.Moderation("eth0") }, "ethtool -C eth0 adaptive-rx on", ""},
		{"moderation of another system", system("freebsd"), func(m gate.Mender) gate.Mending { return m.Moderation("vmx0") }, "", "itself"},
		{"a quota", nil, gate.Mender.Quota, "", "cpu.max"},
		{"tracking", nil, gate.Mender.Tracking, "", "room for more"},
	} {
		got := c.mend(gate.Mend(c.facts))
		if lines := strings.Join(got.Commands, "\n"); lines != c.commands || !strings.Contains(got.Advice+got.Risk, c.advice) {
			t.Errorf("%s: %q, %q", c.name, lines, got.Advice)
		}
		if (got.Platform == "") != (len(got.Commands) == 0) || len(got.Commands) > 0 && got.Risk == "" {
			t.Errorf("%s: commands of %q, risk %q", c.name, got.Platform, got.Risk)
		}
	}
}

// TestMendLeavesFacts holds that a host's facts stay as they were read.
func TestMendLeavesFacts(t *testing.T) {
	f := &measure.Facts{}
	gate.Mend(f).Quota()
	if f.OS != nil || f.Cgroup != nil {
		t.Errorf("facts were changed: %+v", f)
	}
}

// The command comes first; where it is refused stands behind it.
func TestControlBeforeItsExceptions(t *testing.T) {
	if w := gate.Mend(nil).Control("cubic"); w.Advice != "" || !strings.Contains(w.Risk, "where it is refused") {
		t.Errorf("%+v", w)
	}
}

// keptOff is an offload of ens1f0 that a tuning has switched off and kept so.
func keptOff(id string) []measure.Changed {
	return []measure.Changed{{Number: 1, Setting: measure.Setting{Knob: id, Interface: "ens1f0", Value: "off"}, Before: "on"}}
}

// What a tuning has kept is never advised away.
func TestMendSparesTheKept(t *testing.T) {
	changed := func(id, before, value string) measure.Changed {
		return measure.Changed{Setting: measure.Setting{Knob: id, Value: value}, Before: before}
	}
	facts := &measure.Facts{OS: new("linux"), Congestion: new("bbr"), Tuned: append(keptOff("gro"), changed("congestion-control", "cubic", "bbr"))}
	if w := gate.Mend(facts).Control("cubic"); len(w.Commands) > 0 || !strings.Contains(w.Advice, "keep congestion-control bbr, which a tuning has shown to help here") {
		t.Errorf("%+v", w)
	}
	if w := gate.Mend(facts).Control("reno"); len(w.Commands) != 1 {
		t.Errorf("%+v", w)
	}
	facts.Congestion = new("vegas") // somebody has changed it since
	if w := gate.Mend(facts).Control("cubic"); len(w.Commands) != 1 {
		t.Errorf("%+v", w)
	}
}
