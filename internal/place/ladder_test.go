package place

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"thru/internal/fault"
	"thru/internal/measure"
)

// show prints a ladder in one line.
func show(l Ladder) string {
	var all []string
	for _, r := range l.Rungs {
		s := r.Kind + ": " + r.From + "," + r.To
		if !r.Filled() {
			s = r.Kind + ": none"
		}
		if r.LinkBps > 0 {
			s += fmt.Sprintf(" %dG", r.LinkBps/1e9)
		}
		all = append(all, s)
	}
	for _, e := range l.Spare {
		all = append(all, "spare "+e.Name)
	}
	return strings.Join(all, "; ")
}

func never(string) bool { return false }

func TestFill(t *testing.T) {
	v := testbed()
	for name, c := range map[string]struct {
		words []string
		want  string
	}{
		"all four": {[]string{"web-1", "web-2", "web-3", "web-9"}, "same machine: web-1,web-1; same host: web-1,web-2; same VLAN: web-1,web-3 10G; other data center: web-1,web-9"},
		"another order, by address and host name": {[]string{"10.0.0.1", "web-9.example.net", "10.0.0.3:5200", "ssh://root@10.0.0.2"},
			"same machine: 10.0.0.1,10.0.0.1; same host: 10.0.0.1,ssh://root@10.0.0.2; same VLAN: 10.0.0.1,10.0.0.3:5200 10G; other data center: 10.0.0.1,web-9.example.net"},
		"another network":    {[]string{"web-1", "db-1"}, "same machine: web-1,web-1; same host: none; same data center: web-1,db-1 10G; other data center: none"},
		"one VLAN is better": {[]string{"web-1", "db-1", "web-3"}, "same machine: web-1,web-1; same host: none; same VLAN: web-1,web-3 10G; other data center: none; spare db-1"},
		"a host":             {[]string{"web-1", "esx1"}, "same machine: web-1,web-1; same host: web-1,esx1; same VLAN: none; other data center: none"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Fill(c.words, []measure.Inventory{v}, never)
			if err != nil || show(l) != c.want {
				t.Errorf("%v\n%s, want\n%s", err, show(l), c.want)
			}
		})
	}
	l, err := Fill([]string{"web-1", "10.0.0.2"}, []measure.Inventory{v}, func(w string) bool { return w == "web-1" })
	if err != nil || l.Ends[0].At != "" || l.Ends[1].At != "" {
		t.Errorf("%+v %v: both names lead there", l.Ends, err)
	}
	if l, err = Fill([]string{"WEB-1"}, []measure.Inventory{v}, never); err != nil || l.Ends[0].At != "10.0.0.1" || l.Ends[0].What != "VM web-1 on esx1, prod (VLAN 100), vmxnet3, data center east" {
		t.Errorf("%+v %v", l.Ends, err)
	}
}

// TestFillSpaces: a name with spaces is not valid in a plan.
func TestFillSpaces(t *testing.T) {
	v := testbed()
	v.Guests[0].Name = "web 1 (old)"
	l, err := Fill([]string{"web 1 (old)", "web-2"}, []measure.Inventory{v}, never)
	if err != nil || l.Ends[0].Name != "web-1-(old)" || l.Ends[0].At != "10.0.0.1" || l.Rungs[0].From != "web-1-(old)" {
		t.Errorf("%+v %v", l, err)
	}
}

func TestFillRefuses(t *testing.T) {
	v := testbed()
	v.Guests[1].Name = "web-1"
	v.Guests[4].Power = "off"
	for word, want := range map[string]string{
		"web-1": "web-1 matches several machines: web-1 (vsphere://vc1) and web-1 (vsphere://vc1)", "web-9": "web-9 is not a running virtual machine of vsphere://vc1", "127.0.0.1": "is not a running virtual machine", "": "is not a running virtual",
	} {
		_, err := Fill([]string{word}, []measure.Inventory{v}, never)
		if err == nil || !strings.Contains(err.Error(), want) || fault.Hint(err) == "" || fault.Code(err) != fault.Usage {
			t.Errorf("%q: %v, want %q", word, err, want)
		}
	}
}

func TestPropose(t *testing.T) {
	all := []measure.Inventory{testbed()}
	all[0].Guests[0].Addrs = []string{"172.17.0.1", "10.0.0.1"} // of Docker in the guest
	l, err := Propose(all)
	if want := "same machine: web-1,web-1; same host: web-1,web-2; same VLAN: web-1,web-3 10G; other data center: web-1,web-9"; err != nil || show(l) != want {
		t.Errorf("%v\n%s, want\n%s", err, show(l), want)
	}
	if l.Ends[0].At != "10.0.0.1" {
		t.Errorf("%+v", l.Ends[0])
	}
	v := testbed()
	v.Guests = v.Guests[3:]
	v.Guests[0].Name, v.Guests[1].Name = "my vm: 1", "my vm: 1"
	if l, err = Propose([]measure.Inventory{v}); err != nil || show(l) != "same machine: my-vm-1,my-vm-1; same host: none; same VLAN: none; other data center: my-vm-1,my-vm-1-2" {
		t.Errorf("%s %v", show(l), err)
	}
	if w := l.Rungs[1].Why; w != "no running virtual machine with a known address is on esx2 too" {
		t.Error(w)
	}
	kvm := measure.Inventory{Source: "kvm1", Guests: []measure.Guest{{Name: "web"}, {Name: "db"}, {Name: "old", Power: "off"}}}
	if _, err := Propose([]measure.Inventory{kvm}); err == nil || !strings.Contains(err.Error(), "kvm1 does not report the addresses") || !strings.HasSuffix(fault.Hint(err), ": web db") {
		t.Errorf("none tells its address: %v (%s)", err, fault.Hint(err))
	}
	for i := range v.Guests {
		v.Guests[i].Power = "off"
	}
	if _, err = Propose([]measure.Inventory{v}); err == nil || fault.Hint(err) == "" {
		t.Errorf("nothing runs: %v", err)
	}
}

// TestProposeMany: the time for a large inventory is not quadratic.
func TestProposeMany(t *testing.T) {
	v := testbed()
	v.Guests = nil
	for n := range 5000 {
		g := guest(n%200, fmt.Sprintf("vm-%04d", n), "host-1", "east", "pg-100")
		g.ID = g.Name
		v.Guests = append(v.Guests, g)
	}
	l, err := Propose([]measure.Inventory{v})
	if err != nil || !slices.ContainsFunc(l.Rungs, func(r Rung) bool { return r.Kind == measure.SameHost && r.Filled() }) {
		t.Errorf("%s %v", show(l), err)
	}
}

func TestUplinkRate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(v *measure.Inventory)
		want   int64
	}{
		"the active one":    {func(*measure.Inventory) {}, 25e9},
		"no teaming told":   {func(v *measure.Inventory) { v.Switches[0].Teaming = nil }, 1e9},
		"the port group's":  {func(v *measure.Inventory) { v.PortGroups[0].Teaming = &measure.Teaming{Active: []string{"vmnic1"}} }, 1e9},
		"speed not known":   {func(v *measure.Inventory) { v.Hosts[0].Facts.Interfaces[0].SpeedBps = nil }, 0},
		"no facts of it":    {func(v *measure.Inventory) { v.Hosts[0].Facts = nil }, 0},
		"no uplink is told": {func(v *measure.Inventory) { v.Switches[0].Uplinks = nil }, 0},
	} {
		v := testbed()
		c.change(&v)
		if got := uplinkRate(placed("a", 1, v).At, []measure.Inventory{v}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
