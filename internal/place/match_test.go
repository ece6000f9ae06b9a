package place

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

// change is a testbed with a modification.
func change(do func(v *measure.Inventory)) []measure.Inventory {
	v := testbed()
	do(&v)
	return []measure.Inventory{v}
}

func TestMatch(t *testing.T) {
	plain := []measure.Inventory{testbed()}
	other := testbed()
	other.Source = "vsphere://vc2"
	for name, c := range map[string]struct {
		s    Subject
		all  []measure.Inventory
		want string // name of the guest or host, and the evidence
		why  string // why there is none
	}{
		"all agree":                {subject("a", 1), plain, "web-1 by uuid,mac,address", ""},
		"not root":                 {Subject{Name: "a", MACs: []string{mac(1)}}, plain, "web-1 by mac", ""},
		"an address alone":         {Subject{Name: "a", Addrs: []string{"10.0.0.1"}}, plain, "web-1 by address", ""},
		"in a container":           {Subject{Name: "a", Inside: true, UUID: uuid(1), MACs: []string{"02:42:ac:11:00:02"}, Addrs: []string{"172.17.0.2/16"}}, plain, "web-1 by uuid", ""},
		"a copy that is elsewhere": {Subject{Name: "a", UUID: uuid(1), MACs: []string{mac(77)}, Addrs: []string{"10.0.0.1"}}, plain, "", "it has the UUID of web-1 in vsphere://vc1, but different MAC addresses"},
		"on a macvtap, not root": {Subject{Name: "a", MACs: []string{mac(1)}}, change(func(v *measure.Inventory) {
			f := v.Hosts[0].Facts
			f.Interfaces = append(f.Interfaces, measure.Interface{Name: "macvtap0", Kind: new("macvtap"), MAC: new(mac(1))})
		}), "web-1 by mac", ""},
		"the other byte order":  {Subject{Name: "a", UUID: measure.SwapUUID(uuid(1))}, plain, "web-1 by uuid", ""},
		"nowhere":               {subject("a", 77), plain, "", "no virtual machine or host of vsphere://vc1 has its UUID, MAC address or IP address"},
		"nowhere, not root":     {Subject{Name: "a", MACs: []string{mac(77)}}, plain, "", "has its MAC address (its UUID is not known"},
		"says nothing":          {Subject{Name: "a", Addrs: []string{"127.0.0.1"}}, plain, "", "reports no UUID"},
		"a vCenter twice":       {subject("a", 1), []measure.Inventory{testbed(), other}, "web-1 by uuid,mac,address", ""},
		"a clone with its UUID": {subject("a", 1), change(func(v *measure.Inventory) { v.Guests[4].UUID = uuid(1) }), "web-1 by uuid,mac,address", ""},
		"a clone, not root there": {Subject{Name: "a", UUID: uuid(1)}, change(func(v *measure.Inventory) { v.Guests[4].UUID = uuid(1) }), "",
			"a matches web-1 (vsphere://vc1) and web-9 (vsphere://vc1) equally (by uuid)"},
		"one address in two data centers": {Subject{Name: "a", Addrs: []string{"10.0.0.1"}}, change(func(v *measure.Inventory) { v.Guests[4].Addrs[0] = "10.0.0.1" }), "",
			"matches web-1 (vsphere://vc1) and web-9 (vsphere://vc1) equally (by address)"},
		"an address of a stranger": {Subject{Name: "a", MACs: []string{mac(77)}, Addrs: []string{"10.0.0.1"}}, plain, "", "it has the address of web-1 in vsphere://vc1, but different MAC addresses"},
		"a UUID of another":        {Subject{Name: "a", UUID: uuid(77), MACs: []string{mac(1)}}, plain, "", "it has a MAC address of web-1 in vsphere://vc1, but a different UUID"},
		"UUID here, MAC there": {Subject{Name: "a", UUID: uuid(1), MACs: []string{mac(5)}}, change(func(v *measure.Inventory) { v.Guests[4].UUID = "" }), "",
			"it has the UUID of web-1, but the MAC address of web-9"},
		"it is off":         {subject("a", 1), change(func(v *measure.Inventory) { v.Guests[0].Power = "off" }), "", "web-1 in vsphere://vc1 has its MAC address, but does not run"},
		"its copy is off":   {Subject{Name: "a", UUID: uuid(1)}, change(func(v *measure.Inventory) { v.Guests[4].UUID, v.Guests[4].Power = uuid(1), "off" }), "web-1 by uuid", ""},
		"a host":            {Subject{Name: "a", UUID: uuid(102), MACs: []string{mac(122)}, Via: mac(122)}, plain, "esx2 by uuid,mac", ""},
		"a host by address": {Subject{Name: "a", Addrs: []string{"192.0.2.3"}}, plain, "esx3 by address", ""},
		"no inventory":      {subject("a", 1), nil, "", "no hypervisor was queried"},
	} {
		t.Run(name, func(t *testing.T) {
			p, why := Match(c.s, c.all)
			got := ""
			if p != nil {
				got = p.GuestName
				if p.Guest == "" {
					got = p.HostName
				}
				got += " by " + strings.Join(p.By, ",")
			}
			if got != c.want || (p == nil) != (why != "") || !strings.Contains(why, c.why) {
				t.Errorf("%q (%s), want %q (%s)", got, why, c.want, c.why)
			}
		})
	}
}

func TestPlacement(t *testing.T) {
	v := testbed()
	two := guest(9, "router", "host-1", "east", "pg-200")
	two.NICs = append(two.NICs, measure.GuestNIC{Name: "Network adapter 2", MAC: new(mac(90)), PortGroup: "pg-100", VLAN: new("trunk 1-10")})
	v.Guests = append(v.Guests, two)
	for name, c := range map[string]struct {
		s    Subject
		want measure.Placement
	}{
		"one adapter": {subject("a", 1), measure.Placement{Guest: "vm-1", GuestName: "web-1", Host: "host-1", HostName: "esx1", Site: "east",
			NIC: "Network adapter 1", Network: "prod", VLAN: "100", Switch: "dvs-prod", PortGroup: "pg-100", SwitchID: "dvs-1", By: []string{"uuid", "mac", "address"}}},
		"the one that carries the test": {Subject{UUID: uuid(9), MACs: []string{mac(9), mac(90)}, Via: mac(90)}, measure.Placement{Guest: "vm-9", GuestName: "router", Host: "host-1", HostName: "esx1", Site: "east",
			NIC: "Network adapter 2", Network: "prod", VLAN: "trunk 1-10", Switch: "dvs-prod", PortGroup: "pg-100", SwitchID: "dvs-1", By: []string{"uuid", "mac"}}},
		"two, and not known which": {Subject{UUID: uuid(9)}, measure.Placement{Guest: "vm-9", GuestName: "router", Host: "host-1", HostName: "esx1", Site: "east", By: []string{"uuid"}}},
		"a VMkernel port": {Subject{UUID: uuid(101), Via: mac(121)}, measure.Placement{Host: "host-1", HostName: "esx1", Site: "east",
			NIC: "vmk0", Network: "Management", VLAN: "0", Switch: "dvs-prod", PortGroup: "pg-mgmt", SwitchID: "dvs-1", By: []string{"uuid"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, why := Match(c.s, []measure.Inventory{v})
			c.want.Source = v.Source
			if got == nil {
				t.Fatal(why)
			}
			if !slices.Equal(got.By, c.want.By) {
				t.Errorf("by %v, want %v", got.By, c.want.By)
			}
			got.By, c.want.By = nil, nil
			if g, w := *got, c.want; g.Guest != w.Guest || g.NIC != w.NIC || g.Network != w.Network || g.VLAN != w.VLAN || g.Switch != w.Switch || g.PortGroup != w.PortGroup ||
				g.SwitchID != w.SwitchID || g.Host != w.Host || g.HostName != w.HostName || g.Site != w.Site || g.GuestName != w.GuestName || g.Source != w.Source {
				t.Errorf("\n%+v, want\n%+v", g, w)
			}
		})
	}
}

// A KVM host is an end point through its bridge, whose address and MAC it has.
func TestPlacementOnBridge(t *testing.T) {
	v := measure.Inventory{
		Source: "kvm1", Kind: measure.KindKVM, Switches: []measure.VirtualSwitch{{ID: "br0", Name: "br0", Kind: "bridge", Host: "kvm1"}},
		Hosts: []measure.GuestHost{{ID: "kvm1", Name: "kvm1", Facts: &measure.Facts{Machine: &measure.Machine{UUID: uuid(50)}, Interfaces: []measure.Interface{
			{Name: "vm12", Kind: new("tun"), MAC: new(mac(50)), Addrs: []string{"fe80::1/64"}, Master: new("br0")},
			{Name: "eth0", MAC: new(mac(50)), Master: new("br0")}, {Name: "br0", MAC: new(mac(50)), Addrs: []string{"10.0.0.50/24"}}, {Name: "vnet0", Kind: new("tun"), MAC: new("fe:54:00:00:00:01")},
		}}}},
	}
	p, why := Match(Subject{Name: "a", UUID: uuid(50), MACs: []string{mac(50)}, Via: mac(50), ViaAddrs: []string{"10.0.0.50/24"}}, []measure.Inventory{v})
	if p == nil || p.NIC != "br0" || p.SwitchID != "br0" || p.Network != "br0" || p.Guest != "" || p.HostName != "kvm1" {
		t.Errorf("%+v %s", p, why)
	}
}

func TestOf(t *testing.T) {
	f := &measure.Facts{Machine: &measure.Machine{UUID: uuid(1)}, Hostname: new("web-1"), Interfaces: []measure.Interface{
		{Name: "lo", Kind: new("loopback"), MAC: new(""), Addrs: []string{"127.0.0.1/8"}},
		{Name: "eth0", MAC: new("00:50:56:00:00:01"), Addrs: []string{"10.0.0.1/24"}}, {Name: "eth1", MAC: new("00:50:56:00:00:AA"), Addrs: []string{"10.9.0.1/24"}},
	}}
	for name, c := range map[string]struct {
		facts *measure.Facts
		route *measure.Route
		data  []string
		via   string
	}{
		"by the route":            {f, &measure.Route{Interface: "eth1"}, []string{"10.0.0.1"}, "00:50:56:00:00:aa"},
		"by the data address":     {f, nil, []string{"10.0.0.1"}, mac(1)},
		"by loopback: not known":  {f, &measure.Route{Interface: "lo"}, nil, ""},
		"two, and none is chosen": {f, nil, nil, ""},
		"no facts":                {nil, nil, []string{"10.0.0.1"}, ""},
	} {
		s := Of(measure.EndPoint{Name: "a", Facts: c.facts}, c.route, c.data)
		if s.Via != c.via {
			t.Errorf("%s: %q, want %q", name, s.Via, c.via)
		}
		if c.facts != nil && (s.UUID != uuid(1) || len(s.MACs) != 2 || s.Hostname != "web-1") {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestOfInner: addresses that are the same on many machines identify none, and a machine with only inner
// interfaces is a container.
func TestOfInner(t *testing.T) {
	eth := measure.Interface{Name: "eth0", Kind: new("paravirtual"), MAC: new(mac(1)), Addrs: []string{"10.0.0.1/24"}}
	docker := measure.Interface{Name: "docker0", Kind: new("bridge"), MAC: new("02:42:00:00:00:01"), Addrs: []string{"172.17.0.1/16"}}
	tap := measure.Interface{Name: "macvtap0", Kind: new("macvtap"), MAC: new(mac(2))}
	veth := measure.Interface{Name: "eth0", Kind: new("veth"), MAC: new("02:42:ac:11:00:02"), Addrs: []string{"172.17.0.2/16"}}
	br := measure.Interface{Name: "br0", Kind: new("bridge"), MAC: new(mac(1)), Addrs: []string{"10.0.0.1/24"}}
	lo := measure.Interface{Name: "lo", Kind: new("loopback")}
	for name, c := range map[string]struct {
		faces  []measure.Interface
		addrs  []string
		macs   int
		inside bool
	}{
		"with Docker":       {[]measure.Interface{lo, eth, docker}, []string{"10.0.0.1", "10.0.0.1/24"}, 2, false},
		"a host of guests":  {[]measure.Interface{eth, tap}, []string{"10.0.0.1", "10.0.0.1/24"}, 1, false},
		"reached by bridge": {[]measure.Interface{{Name: "eth0"}, br, docker}, []string{"10.0.0.1", "10.0.0.1/24"}, 2, false},
		"a container":       {[]measure.Interface{lo, veth}, []string{"10.0.0.1", "172.17.0.2/16"}, 1, true},
	} {
		s := Of(measure.EndPoint{Name: "a", Facts: &measure.Facts{Interfaces: c.faces}}, nil, []string{"10.0.0.1"})
		if !slices.Equal(s.Addrs, c.addrs) || len(s.MACs) != c.macs || s.Inside != c.inside {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestWants(t *testing.T) {
	guests, hosts := Wants([]Subject{subject("a", 1), {Name: "b", Addrs: []string{"192.0.2.2"}}})
	v := testbed()
	var got []string
	for i := range v.Guests {
		if guests(&v.Guests[i]) {
			got = append(got, v.Guests[i].Name)
		}
	}
	for i := range v.Hosts {
		if hosts(&v.Hosts[i]) {
			got = append(got, v.Hosts[i].Name)
		}
	}
	if want := []string{"web-1", "esx2"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
