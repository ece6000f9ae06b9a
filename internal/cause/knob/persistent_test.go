package knob

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

// kept is one setting of each knob that package tune can keep, at one host.
func kept() []measure.Setting {
	var list []measure.Setting
	for _, s := range sample() {
		iface := "eth0"
		if s.knob == RouteCongestion {
			iface = "10.77.0.0/24 dev eth0 table main metric 0"
		}
		list = append(list, measure.Setting{EndPoint: "a", Knob: s.knob, Interface: iface, Value: s.value})
	}
	return list
}

func server() []measure.Interface {
	return []measure.Interface{{Name: "eth0", Kind: new("physical"), MAC: new("52:54:00:12:34:56")}}
}

// TestPersistent checks the files and commands of each kind of host.
func TestPersistent(t *testing.T) {
	var b strings.Builder
	for _, h := range []Host{
		{OS: "linux", Managers: []string{"ifupdown", "systemd-udevd"}},
		{OS: "linux", Managers: []string{"systemd-networkd", "netplan", "systemd-udevd"}},
		{OS: "linux", Managers: []string{"NetworkManager", "systemd-udevd"}},
		{OS: "linux", Managers: []string{"udev"}}, {OS: "linux"},
		{OS: "freebsd"}, {OS: "windows"}, {OS: "solaris"}, {OS: "esxi"}, {OS: "plan9"},
	} {
		h.EndPoint, h.Interfaces = "a", server()
		fmt.Fprintf(&b, "# %s %s\n", h.OS, strings.Join(h.Managers, " "))
		for _, l := range Persistent(h, kept()) {
			fmt.Fprintf(&b, "## %s %s\n%s", l.Manager, l.File, l.Content)
			for _, line := range l.Commands {
				b.WriteString("run:  " + line + "\n")
			}
			for _, line := range l.Undo {
				b.WriteString("undo: " + line + "\n")
			}
			if l.Words != "" {
				b.WriteString("(" + l.Words + ")\n")
			}
			if l.EndPoint != "a" || l.Platform != h.OS || l.Manager == "" || l.File == "" && len(l.Commands) == 0 && l.Words == "" || l.File != "" && len(l.Undo) == 0 {
				t.Errorf("half of an entry: %+v", l)
			}
		}
	}
	golden(t, "testdata/lasting.golden", b.String())
}

// TestPersistentLosesNothing: each setting of a Linux host is covered exactly once, whoever manages it.
func TestPersistentLosesNothing(t *testing.T) {
	for _, managers := range [][]string{nil, {"udev"}, {"systemd-udevd"}, {"NetworkManager", "systemd-udevd"}, {"netplan", "systemd-udevd"}, {"NetworkManager"}} {
		for _, s := range kept() {
			k, _ := Find(s.Knob)
			got := Persistent(Host{EndPoint: "a", OS: "linux", Managers: managers, Interfaces: server()}, []measure.Setting{s})
			if want := map[bool]int{true: 0, false: 1}[k.Scope == OfTest]; len(got) != want {
				t.Errorf("%q: %s is told %d times: %+v", managers, s.Knob, len(got), got)
			}
		}
	}
}

// TestSortsAll: a host knob that no manager makes persistent would get lost among those of interfaces.
func TestSortsAll(t *testing.T) {
	for _, k := range Table() {
		if k.Scope == OfHost && Sysctl(k.ID) == "" && k.ID != Governor {
			t.Errorf("%s: Lasting takes it for one of an interface", k.ID)
		}
	}
}

func TestPersistentTakesTheLast(t *testing.T) {
	settings := []measure.Setting{{EndPoint: "a", Knob: Backlog, Value: "2000"}, {EndPoint: "b", Knob: Backlog, Value: "3000"}, {EndPoint: "a", Knob: Backlog, Value: "4000"},
		{EndPoint: "a", Knob: "no-such-knob", Value: "1"}}
	got := Persistent(HostOf("a", nil), settings)
	if len(got) != 1 || got[0].Content != header+"net.core.netdev_max_backlog = 4000\n" {
		t.Errorf("%+v", got)
	}
	if got := Persistent(HostOf("c", &measure.Facts{OS: new("freebsd")}), settings[:2]); got != nil {
		t.Errorf("of another host: %+v", got)
	}
}

// TestAddressOfDevicesOnly: an address that is not unique, or that a bond assigned, identifies no interface.
func TestAddressOfDevicesOnly(t *testing.T) {
	for _, c := range []struct {
		i    measure.Interface
		want string
	}{
		{measure.Interface{Name: "eth0", Kind: new("physical"), MAC: new("52:54:00:12:34:56")}, "52:54:00:12:34:56"},
		{measure.Interface{Name: "eth0", Kind: new("paravirtual"), MAC: new("52:54:00:12:34:56")}, "52:54:00:12:34:56"},
		{measure.Interface{Name: "eth0", Kind: new("physical"), MAC: new("52:54:00:12:34:56"), Master: new("bond0")}, ""},
		{measure.Interface{Name: "eth0", Kind: new("vlan"), MAC: new("52:54:00:12:34:56")}, ""},
		{measure.Interface{Name: "eth0", Kind: new("physical"), MAC: new(`52:54:00:12:34:56", RUN+="x`)}, ""},
		{measure.Interface{Name: "eth0"}, ""},
	} {
		f := face{host: Host{Interfaces: []measure.Interface{c.i}}, name: "eth0"}
		if got := f.address(); got != c.want {
			t.Errorf("%+v: %q", c.i, got)
		}
	}
}

// TestPersistentHostile: no foreign text gets into a file or a command.
func TestPersistentHostile(t *testing.T) {
	for _, bad := range hostile() {
		for _, managers := range [][]string{nil, {"udev"}, {"systemd-udevd"}, {"NetworkManager"}, {"netplan"}} {
			for _, os := range Systems() {
				for _, s := range sample() {
					h := Host{EndPoint: "a", OS: os, Managers: managers, Interfaces: []measure.Interface{{Name: bad, Kind: &bad, MAC: &bad}}}
					checkPersistent(t, bad, Persistent(h, []measure.Setting{{Knob: s.knob, Interface: bad, Value: s.value}}))
					checkPersistent(t, bad, Persistent(h, []measure.Setting{{Knob: s.knob, Interface: "eth0", Value: bad}, {Knob: s.knob, Interface: "eth1", Value: s.value + " " + bad}}))
				}
			}
		}
	}
}

// checkPersistent searches for the hostile text itself: files have a grammar of their own.
func checkPersistent(t *testing.T, bad string, list []measure.Persistence) {
	t.Helper()
	if len(strings.TrimSpace(bad)) < 2 || bad == "-a" {
		return // it occurs everywhere
	}
	for _, l := range list {
		for _, line := range slices.Concat(l.Commands, l.Undo, []string{l.File, l.Content}) {
			if strings.Contains(line, bad) {
				t.Errorf("%q got into %q", bad, line)
			}
		}
	}
}
