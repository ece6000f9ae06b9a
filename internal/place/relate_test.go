package place

import (
	"strings"
	"testing"

	"thru/internal/measure"
)

func TestRelate(t *testing.T) {
	v := testbed()
	lone := func(name, host, net string) Placed {
		s := Subject{Name: name, ViaAddrs: []string{net}}
		return Placed{s, &measure.Placement{Source: host, Host: host, HostName: host, Guest: "vm", GuestName: name, Network: "br0", Site: "ha-datacenter"}}
	}
	at := func(name string, p measure.Placement, nets ...string) Placed {
		return Placed{Subject{Name: name, ViaAddrs: nets}, &p}
	}
	in := func(host, site, group, sw, network, vlan string) measure.Placement {
		return measure.Placement{Source: "vsphere://vc1", Guest: "vm-" + host, Host: host, HostName: host, Site: site, PortGroup: group, SwitchID: sw, Switch: sw, Network: network, VLAN: vlan}
	}
	nat := testbed()
	nat.Source = "kvm"
	nat.Switches = append(nat.Switches, measure.VirtualSwitch{ID: "bridge:virbr0", Name: "virbr0", Kind: "bridge"})
	natted := func(host string) measure.Placement {
		return measure.Placement{Source: "kvm", Guest: "vm-" + host, Host: host, HostName: host, SwitchID: "bridge:virbr0", Network: "virbr0"}
	}
	boxed := func(p Placed) Placed { p.Inside = true; return p }
	vc2 := in("esx9", "north", "", "", "prod", "100")
	vc2.Source = "vsphere://vc2"
	for name, c := range map[string]struct {
		a, b Placed
		kind string
		why  string
	}{
		"itself":                {placed("a", 1, v), placed("a", 1, v), measure.SameMachine, "web-1 on esx1"},
		"itself, not placed":    {Placed{Subject{Name: "a"}, nil}, Placed{Subject{Name: "a"}, nil}, measure.SameMachine, "one end point"},
		"two of one guest":      {placed("a", 1, v), placed("a2", 1, v), measure.SameMachine, "both are in web-1 on esx1"},
		"one host":              {placed("a", 1, v), placed("b", 2, v), measure.SameHost, "both are on esx1, prod (VLAN 100)"},
		"a guest and its host":  {placed("a", 1, v), Placed{Subject{Name: "h"}, &measure.Placement{Source: v.Source, Host: "host-1", HostName: "esx1"}}, measure.SameHost, "both are on esx1"},
		"one port group":        {placed("a", 1, v), placed("c", 3, v), measure.SameVLAN, "esx1 and esx2, port group prod (VLAN 100)"},
		"another network":       {placed("a", 1, v), Placed{Subject{Name: "d"}, placed("d", 4, v).At}, measure.SameSite, "esx1 and esx2 in east, prod (VLAN 100) and db (VLAN 200)"},
		"two data centers":      {placed("a", 1, v), placed("e", 5, v), measure.OtherSite, "data centers east and west"},
		"not placed":            {placed("a", 1, v), Placed{Subject{Name: "x"}, nil}, "", ""},
		"one switch and number": {at("a", in("esx1", "east", "pg-1", "dvs", "p", "7")), at("b", in("esx2", "east", "pg-2", "dvs", "q", "7")), measure.SameVLAN, "esx1 and esx2, VLAN 7 of dvs"},
		"number and subnet": {at("a", in("esx1", "east", "pg-1", "s1", "p", "7"), "10.1.0.1/24"), at("b", in("esx2", "east", "pg-2", "s2", "q", "7"), "10.1.0.2/24"),
			measure.SameVLAN, "VLAN 7 and subnet 10.1.0.0/24 at both"},
		"a number of two networks":  {at("a", in("esx1", "east", "pg-1", "s1", "p", "7"), "10.1.0.1/24"), at("b", in("esx2", "east", "pg-2", "s2", "q", "7"), "10.2.0.2/24"), measure.SameSite, "esx1 and esx2 in east"},
		"two numbers, one subnet":   {at("a", in("esx1", "east", "pg-1", "s1", "p", "7"), "10.1.0.1/24"), at("b", in("esx2", "east", "pg-2", "s2", "q", "8"), "10.1.0.2/24"), measure.SameSite, "p (VLAN 7) and q (VLAN 8)"},
		"a trunk":                   {at("a", in("esx1", "east", "pg-1", "dvs", "p", "trunk 0-4094")), at("b", in("esx2", "east", "pg-1", "dvs", "p", "trunk 0-4094")), measure.SameSite, "esx1 and esx2 in east"},
		"a trunk and one subnet":    {at("a", in("esx1", "east", "pg-1", "dvs", "p", "trunk 0-4094"), "10.1.0.1/24"), at("b", in("esx2", "east", "pg-1", "dvs", "p", "trunk 0-4094"), "10.1.0.2/24"), measure.SameVLAN, "and subnet 10.1.0.0/24 at both"},
		"a private VLAN":            {at("a", in("esx1", "east", "pg-1", "dvs", "p", "private 105 of 100"), "10.1.0.1/24"), at("b", in("esx2", "east", "pg-1", "dvs", "p", "private 105 of 100"), "10.1.0.2/24"), measure.SameSite, "esx1 and esx2 in east"},
		"NAT of two hosts":          {at("a", natted("kvm1"), "192.168.122.5/24"), at("b", natted("kvm2"), "192.168.122.6/24"), "", "kvm1 and kvm2: the relation"},
		"containers of two hosts":   {boxed(lone("a", "kvm1", "172.17.0.2/16")), boxed(lone("b", "kvm2", "172.17.0.2/16")), "", "kvm1 and kvm2: the relation"},
		"a name alone":              {at("a", in("esx1", "east", "", "s1", "VM Network", "0")), at("b", in("esx2", "east", "", "s2", "VM Network", "0")), measure.SameVLAN, "by the name of their network only: VM Network"},
		"hosts that nobody manages": {lone("a", "kvm1", "10.3.0.1/24"), lone("b", "kvm2", "10.3.0.2/24"), measure.SameVLAN, "kvm1 and kvm2, by their subnet 10.3.0.0/24 only"},
		"nothing in common":         {lone("a", "kvm1", "10.3.0.1/24"), lone("b", "kvm2", "10.4.0.2/24"), "", "kvm1 and kvm2: the relation"},
		"two vCenters":              {placed("a", 1, v), at("b", vc2), measure.OtherSite, "data centers east and north, as vsphere://vc1 and vsphere://vc2 name them"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				r, why, ok := Relate(c.a, c.b, []measure.Inventory{v, nat})
				if ok != (c.kind != "") || r.Kind != c.kind || r.From != c.a.Name || r.To != c.b.Name {
					t.Errorf("%+v, want %q", r, c.kind)
				}
				if r.Kind == "" {
					r.Why = why
				}
				if r.Why != c.why && !strings.Contains(r.Why, c.why) {
					t.Errorf("because %q, want %q", r.Why, c.why)
				}
				if c.why = ""; ok { // the relation is symmetric
					c.a, c.b = c.b, c.a
				}
			}
		})
	}
}

// A host that both a vCenter and the host itself report is identified by its UUID.
func TestOneHostOfTwoSources(t *testing.T) {
	v := testbed()
	own := measure.Inventory{Source: "ssh://root@esx1", Kind: measure.KindESXi, Hosts: []measure.GuestHost{{ID: "self", Name: "esx1", UUID: measure.SwapUUID(uuid(101))}}}
	b := Placed{Subject{Name: "b"}, &measure.Placement{Source: own.Source, Guest: "7", GuestName: "other", Host: "self", HostName: "esx1"}}
	if r, _, _ := Relate(placed("a", 1, v), b, []measure.Inventory{v, own}); r.Kind != measure.SameHost {
		t.Errorf("%+v", r)
	}
}

func TestOfEndPoints(t *testing.T) {
	v := testbed()
	v.Guests[0].Disks = []measure.GuestDisk{{Datastore: "ds-1"}}
	got := OfEndPoints(v, []measure.Placement{*placed("a", 1, v).At, {Source: "elsewhere", Guest: "vm-2"}})
	if len(got.Guests) != 1 || got.Guests[0].ID != "vm-1" || len(got.Hosts) != 1 || got.Hosts[0].ID != "host-1" || len(got.Datastores) != 1 {
		t.Errorf("%d guests, %d hosts, %d datastores", len(got.Guests), len(got.Hosts), len(got.Datastores))
	}
	if len(got.PortGroups) != 3 || len(got.Switches) != 1 { // its own, the management's, the uplinks'
		t.Errorf("%+v, %+v", got.PortGroups, got.Switches)
	}
	if len(v.Guests) != 5 || len(v.PortGroups) != 8 {
		t.Error("the inventory itself was changed")
	}
}
