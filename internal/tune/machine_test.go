package tune

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thru/internal/cause/knob"
	"thru/internal/host"
	"thru/internal/host/tree"
	"thru/internal/measure"
)

// treeOf makes a tree of files below a folder of the test.
func treeOf(t *testing.T, list map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range list {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// contents reads a tree back.
func contents(t *testing.T, root string, list map[string]string) map[string]string {
	t.Helper()
	now := map[string]string{}
	for name := range list {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		now[name] = string(b)
	}
	return now
}

// someHost is a host of two CPUs with a NIC of two queues.
func someHost() map[string]string {
	const net, cpu = "sys/class/net/eth0/", "sys/devices/system/cpu/"
	return map[string]string{
		"proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n", "proc/sys/net/core/rmem_max": "212992\n", "proc/sys/net/ipv4/tcp_sack": "1\n",
		"proc/sys/net/ipv4/tcp_congestion_control": "cubic\n", "proc/sys/net/ipv4/tcp_available_congestion_control": "reno cubic bbr\n",
		"proc/sys/net/ipv4/tcp_allowed_congestion_control": "reno\n", "proc/sys/net/core/netdev_max_backlog": "1000\n",
		net + "device/msi_irqs/24": "msix\n", net + "device/msi_irqs/25": "msix\n", net + "device/msi_irqs/26": "msix\n",
		"proc/interrupts":               "  CPU0 CPU1\n 24:  1 2  PCI-MSI 1-edge  eth0-0\n 25:  1 2  PCI-MSI 2-edge  eth0-1\n",
		"proc/irq/24/smp_affinity_list": "0-1\n", "proc/irq/25/smp_affinity_list": "0-1\n",
		net + "queues/rx-0/rps_cpus": "0\n", net + "queues/rx-1/rps_cpus": "00000003\n", net + "queues/tx-0/xps_cpus": "1\n", net + "queues/tx-1/xps_cpus": "2\n",
		cpu + "cpu0/cpufreq/scaling_governor": "powersave\n", cpu + "cpu1/cpufreq/scaling_governor": "powersave\n",
		cpu + "cpu0/cpufreq/scaling_available_governors": "performance powersave\n", cpu + "cpu2/online": "0\n", "proc/7/comm": "irqbalance\n",
	}
}

func TestKnobsOfATree(t *testing.T) {
	want := []measure.KnobState{
		{Knob: knob.TCPRmem, Value: "4096 131072 6291456"}, {Knob: knob.RmemMax, Value: "212992"}, {Knob: knob.SACK, Value: "1", Possible: "0 1"},
		{Knob: knob.Congestion, Value: "cubic", Possible: "reno cubic bbr"}, {Knob: knob.Backlog, Value: "1000"},
		{Knob: knob.Governor, Value: "powersave", Possible: "performance powersave"},
		{Knob: knob.RPS, Interface: "eth0", Value: "rx-0 0 rx-1 3"}, {Knob: knob.XPS, Interface: "eth0", Value: "tx-0 1 tx-1 2"},
		{Knob: knob.IRQAffinity, Interface: "eth0", Value: "24 0-1 25 0-1", Possible: "irqbalance runs here and may move them again"},
	}
	if diff := cmp.Diff(want, At(treeOf(t, someHost())).Knobs([]string{"eth0", "eth9", "../.."})); diff != "" {
		t.Errorf("knobs (-want +got):\n%s", diff)
	}
}

// Read returns what was set, only differences are written, and the former
// value restores the files, except for how a number was written.
func TestSetInATree(t *testing.T) {
	list := someHost()
	root := treeOf(t, list)
	m := At(root)
	for _, c := range []struct {
		knob, iface, value string
		reads              string // "" as value
		changes            map[string]string
	}{
		{knob.TCPRmem, "", "4096 131072 26214400", "", map[string]string{"proc/sys/net/ipv4/tcp_rmem": "4096 131072 26214400\n"}},
		{knob.Congestion, "", "bbr", "", map[string]string{"proc/sys/net/ipv4/tcp_congestion_control": "bbr\n"}},
		{knob.RPS, "eth0", "rx-0 3", "rx-0 3 rx-1 3", map[string]string{"sys/class/net/eth0/queues/rx-0/rps_cpus": "3\n"}},
		{knob.XPS, "eth0", "tx-0 3 tx-1 2", "", map[string]string{"sys/class/net/eth0/queues/tx-0/xps_cpus": "3\n"}},
		{knob.IRQAffinity, "eth0", "24 0 25 1", "", map[string]string{"proc/irq/24/smp_affinity_list": "0\n", "proc/irq/25/smp_affinity_list": "1\n"}},
		{knob.Governor, "", "performance", "", map[string]string{"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n", "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n"}},
		{knob.Governor, "", "cpu0 powersave cpu1 performance", "", map[string]string{"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n"}},
		{knob.SACK, "", "01", "1", nil},
	} {
		before, err := m.Read(c.knob, c.iface)
		if err != nil {
			t.Errorf("%s: %v", c.knob, err)
			continue
		}
		was := contents(t, root, list)
		for range 2 { // twice is harmless
			if err := m.Set(c.knob, c.iface, c.value); err != nil {
				t.Errorf("%s: %v", c.knob, err)
			}
		}
		if c.reads == "" {
			c.reads = c.value
		}
		if got, err := m.Read(c.knob, c.iface); got != c.reads || err != nil {
			t.Errorf("%s: reads %q, %v", c.knob, got, err)
		}
		want := maps.Clone(was)
		maps.Copy(want, c.changes)
		if diff := cmp.Diff(want, contents(t, root, list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.knob, diff)
		}
		if err := m.Set(c.knob, c.iface, before); err != nil {
			t.Errorf("%s back: %v", c.knob, err)
		}
		if got, err := m.Read(c.knob, c.iface); got != before || err != nil {
			t.Errorf("%s back: %q, %v; was %q", c.knob, got, err, before)
		}
	}
}

func TestRefusedInATree(t *testing.T) {
	list := someHost()
	root := treeOf(t, list)
	m := At(root)
	for _, c := range []struct{ knob, iface, value, says string }{
		{knob.TCPRmem, "", "much", "3 numbers"}, {knob.TCPRmem, "eth0", "1 2 3", "of the host"}, {knob.RPS, "", "rx-0 1", "none is given"},
		{"nothing", "", "1", "no such knob"}, {knob.WmemMax, "", "1", "no such file"}, {knob.RPS, "eth9", "rx-0 1", "no such"},
		{knob.RPS, "eth0", "rx-7 1", `no "rx-7"`}, {knob.RPS, "../../etc", "rx-0 1", "is not the name"}, {knob.Governor, "", "cpu9 performance", `no "cpu9"`},
		{knob.MTU, "eth0", "9000", "no such knob"},
	} {
		if err := m.Set(c.knob, c.iface, c.value); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s of %q to %q: %v, want %q", c.knob, c.iface, c.value, err, c.says)
		}
	}
	if diff := cmp.Diff(list, contents(t, root, list)); diff != "" {
		t.Errorf("something has changed (-was +is):\n%s", diff)
	}
	for _, id := range []string{"nothing", knob.WmemMax} {
		if _, err := m.Read(id, ""); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// In its own network namespace a host may use only congestion controls that
// are open to everybody.
func TestCongestionInANamespace(t *testing.T) {
	list := someHost()
	delete(list, "proc/sys/net/core/netdev_max_backlog")
	for _, c := range []struct{ allowed, now, possible, refused string }{
		{"reno bbr", "bbr", "reno bbr", ""}, {"reno", "reno", "reno", "set it for a route instead"},
	} {
		list["proc/sys/net/ipv4/tcp_allowed_congestion_control"], list["proc/sys/net/ipv4/tcp_congestion_control"] = c.allowed, c.now
		for _, s := range At(treeOf(t, list)).Knobs(nil) {
			if s.Knob == knob.Congestion && (s.Possible != c.possible || (s.Refused == "") != (c.refused == "") || !strings.Contains(s.Refused, c.refused)) {
				t.Errorf("%+v", s)
			}
		}
	}
}

// faulty is a knob of three elements, one of which cannot be set to some
// value, or gets another one.
func faulty(now map[string]string, set func(p pair) error) row {
	names := []string{"a", "b", "c"}
	return row{
		knob: knob.RPS, scope: knob.OfInterface, form: pairsOf(word),
		read: func(string) (string, error) {
			var list []pair
			for _, n := range names {
				list = append(list, pair{n, now[n]})
			}
			return joined(list), nil
		},
		set: func(_, before, value string) error { return each(before, value, set) },
	}
}

// After an error half way all is restored; where that fails too, both errors
// are reported.
func TestSetBack(t *testing.T) {
	for _, c := range []struct {
		name, fault string // value at which setting b fails, or sets another one
		other       string
		says        []string
		after       string
	}{
		{"b fails", "y", "", []string{"b: no"}, "a x b x c x"},
		{"b becomes another", "y", "z", []string{`reports "a y b z c y"`}, "a x b x c x"},
		{"b fails, and a then too", "both", "", []string{"b: no", `back to "a x b x c x"`, "a: no"}, "a y b x c x"},
	} {
		now := map[string]string{"a": "x", "b": "x", "c": "x"}
		failed := false
		m := &machine{link: anyLink, rows: []row{faulty(now, func(p pair) error {
			switch {
			case p.name == "b" && p.value == "y" && c.other == "", failed && c.fault == "both":
				failed = true
				return errors.New("no")
			case p.name == "b" && p.value == "y":
				p.value = c.other
			}
			now[p.name] = p.value
			return nil
		})}}
		err := m.Set(knob.RPS, "eth0", "a y b y c y")
		for _, s := range c.says {
			if err == nil || !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %v, want %q", c.name, err, s)
			}
		}
		if got, _ := m.Read(knob.RPS, "eth0"); got != c.after {
			t.Errorf("%s: reads %q", c.name, got)
		}
	}
}

// At returns the machine of a tree for tests below root, with the knobs that
// are files of /proc and /sys. "/" is this machine without the knobs that
// need its kernel.
func At(root string) Machine {
	return &machine{fileRows(files{tree.Tree{Root: root}}, host.At(root), func(string) error { return nil }), anyLink}
}

func TestNothingThere(t *testing.T) {
	if all := At("/nothing").Knobs([]string{"eth0"}); len(all) > 0 {
		t.Error(all)
	}
}
