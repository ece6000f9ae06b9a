package cause

import (
	"strings"
	"testing"

	"thru/internal/cause/knob"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

func TestFix(t *testing.T) {
	linux := &measure.Facts{OS: new("linux"), Cores: new(4),
		Sysctls: map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_wmem": "4096 16384 4194304", "net.core.netdev_max_backlog": "1000"},
		Interfaces: []measure.Interface{{Name: "eth0", Rings: &measure.Rings{RX: 512, RXMax: 4096}, Channels: &measure.Channels{Combined: 1, CombinedMax: 8},
			IRQs: []measure.IRQ{{Number: 40}, {Number: 41}}}, {Name: "a b"}}}
	system := func(name string) *measure.Facts { return &measure.Facts{OS: &name} }
	for _, c := range []struct {
		name     string
		facts    *measure.Facts
		fix      func(*scene.Host) scene.Fix
		commands string // all of them; "" none
		advice   string // a part of it
	}{
		{"a window", linux, func(h *scene.Host) scene.Fix { return scene.Window(h, 25_000_000, false) }, "sysctl -w net.ipv4.tcp_rmem='4096 131072 75000000'", ""},
		{"a send buffer", linux, func(h *scene.Host) scene.Fix { return scene.Window(h, 25_000_000, true) }, "sysctl -w net.ipv4.tcp_wmem='4096 16384 75000000'", ""},
		{"a window that is allowed", linux, func(h *scene.Host) scene.Fix { return scene.Window(h, 1_000_000, false) }, "", "already allows 3 MiB per connection"},
		{"a window of an unknown host", nil, func(h *scene.Host) scene.Fix { return scene.Window(h, 1_000_000, false) }, "sysctl -w net.ipv4.tcp_rmem='4096 131072 3000000'", ""},
		{"a window of an unknown system", system("plan9"), func(h *scene.Host) scene.Fix { return scene.Window(h, 1_000_000, false) }, "", "977 KiB"},
		{"buffers beyond what thru sets", linux, func(h *scene.Host) scene.Fix { return scene.SetBuffers(h, 1<<30, false) }, "sysctl -w net.ipv4.tcp_rmem='4096 131072 1610612736'", "use 2 times as many streams"},
		{"a window beyond all bounds", nil, func(h *scene.Host) scene.Fix { return scene.Window(h, 1<<62, false) }, "sysctl -w net.ipv4.tcp_rmem='4096 131072 1610612736'", ""},
		{"timestamps of Windows", system("windows"), func(h *scene.Host) scene.Fix { return h.Set(knob.Timestamps, "", "1") }, "netsh int tcp set global timestamps=enabled", ""},
		{"a control that is none", nil, func(h *scene.Host) scene.Fix { return h.Set(knob.Congestion, "", "$(reboot)") }, "sysctl -w net.ipv4.tcp_congestion_control=VALUE", ""},
		{"an offload, a strange name", linux, func(h *scene.Host) scene.Fix {
			return h.FaceOf("a b").Set(knob.TSO, "off").And(h.FaceOf("a b").Set(knob.GSO, "off"))
		}, "ethtool -K INTERFACE tso off gso off", ""},
		{"interrupts", linux, func(h *scene.Host) scene.Fix { return scene.Interrupts(h.FaceOf("eth0")) }, "echo 0 > /proc/irq/40/smp_affinity_list\necho 1 > /proc/irq/41/smp_affinity_list", ""},
		{"packets of one interrupt", linux, func(h *scene.Host) scene.Fix { return scene.Interrupts(h.FaceOf("a b")) }, "echo f > /sys/class/net/INTERFACE/queues/rx-0/rps_cpus", ""},
		{"interrupts of nobody knows what", nil, func(h *scene.Host) scene.Fix { return scene.Interrupts(h.FaceOf("")) }, "", "over several CPUs"},
	} {
		h := scene.HostOf("a", c.facts)
		got := h.Fix(c.fix(h))
		if lines := strings.Join(got.Commands, "\n"); lines != c.commands || !strings.Contains(got.Advice+got.Risk, c.advice) {
			t.Errorf("%s: %q, %q", c.name, lines, got.Advice)
		}
		if (got.Platform == "") != (len(got.Commands) == 0) || len(got.Commands) > 0 && got.Risk == "" {
			t.Errorf("%s: commands of %q, risk %q", c.name, got.Platform, got.Risk)
		}
	}
}

// TestFixLeavesFacts: a host's facts are not modified.
func TestFixLeavesFacts(t *testing.T) {
	f := &measure.Facts{}
	if scene.HostOf("a", f); f.OS != nil {
		t.Errorf("facts were changed: %+v", f)
	}
}

// keptOff is an offload of ens1f0 that a tuning has switched off and kept off.
func keptOff(id string) []measure.Changed {
	return []measure.Changed{{Number: 1, Setting: measure.Setting{Knob: id, Interface: "ens1f0", Value: "off"}, Before: "on"}}
}

// No fix reverts what a tuning has kept.
func TestFixSparesTheKept(t *testing.T) {
	changed := func(id, before, value string) measure.Changed {
		return measure.Changed{Setting: measure.Setting{Knob: id, Value: value}, Before: before}
	}
	facts := &measure.Facts{OS: new("linux"), Congestion: new("bbr"), Tuned: append(keptOff("gro"), changed("congestion-control", "cubic", "bbr"))}
	control := func(name string) *measure.Fix {
		h := scene.HostOf("a", facts)
		return h.Fix(h.Set(knob.Congestion, "", name))
	}
	if w := control("cubic"); len(w.Commands) > 0 || !strings.Contains(w.Advice, "keep congestion-control bbr, which a tuning has shown to help here") {
		t.Errorf("%+v", w)
	}
	if w := control("reno"); len(w.Commands) != 1 {
		t.Errorf("%+v", w)
	}
	facts.Congestion = new("vegas") // somebody has changed it since
	if w := control("cubic"); len(w.Commands) != 1 {
		t.Errorf("%+v", w)
	}
}
