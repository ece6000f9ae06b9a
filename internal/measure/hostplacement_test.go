package measure

import "testing"

// TestHostPlacement: a placement leads to every inventory that knows its end point.
func TestHostPlacement(t *testing.T) {
	vc := Inventory{
		Source:     "vsphere://vc",
		Hosts:      []GuestHost{{ID: "host-9", Name: "esx1", UUID: "AABBCCDD-0000-0000-0000-000000000001"}, {ID: "host-8", Name: "esx2"}},
		Switches:   []VirtualSwitch{{ID: "dvs-1", Name: "dvs"}},
		PortGroups: []SwitchPortGroup{{ID: "pg-1", Name: "prod", Switch: "dvs-1"}},
		Guests: []Guest{{ID: "vm-1", Name: "a", UUID: "11223344-0000-0000-0000-000000000001", Host: "host-9", NICs: []GuestNIC{
			{Name: "Network adapter 1", MAC: new("00:50:56:00:00:01"), PortGroup: "pg-1"}, {Name: "Network adapter 2", MAC: new("00:50:56:00:00:02")}}}},
	}
	esx := Inventory{
		Source: "ssh://root@esx1", Hosts: []GuestHost{{ID: "esx1", UUID: "ddccbbaa-0000-0000-0000-000000000001"}},
		Guests: []Guest{{ID: "1", UUID: "11223344-0000-0000-0000-000000000001", Host: "esx1", NICs: []GuestNIC{{Name: "net0", MAC: new("00:50:56:00:00:01")}, {Name: "net1"}}}, {ID: "2"}},
	}
	all := []Inventory{{Source: "vsphere://other"}, vc, esx}
	var none *Placement
	for name, p := range map[string]*Placement{"none": none, "another source": {Source: "x", Guest: "vm-1"}, "a guest that left": {Source: vc.Source, Guest: "vm-7", Host: "host-9"}, "nothing": {Source: vc.Source}} {
		if b := p.HostPlacement(all); len(b) != 0 {
			t.Errorf("%s: %+v", name, b)
		}
	}
	b := (&Placement{Source: vc.Source, Guest: "vm-1", NIC: "Network adapter 1"}).HostPlacement(all)
	switch {
	case len(b) != 2:
		t.Fatalf("%d inventories know the guest, want 2", len(b))
	case b[0].Guest.Name != "a" || b[0].Host.Name != "esx1" || b[0].PortGroup.Name != "prod" || b[0].Switch.Name != "dvs" || b[0].NIC.Name != "Network adapter 1":
		t.Errorf("by its own inventory: %+v", b[0])
	case b[1].Guest.ID != "1" || b[1].NIC.Name != "net0" || b[1].Host.ID != "esx1":
		t.Errorf("by the other: %+v", b[1])
	}
	if b := (&Placement{Source: vc.Source, Guest: "vm-1"}).HostPlacement(all); len(b) != 2 || b[0].NIC != nil || b[0].Switch != nil {
		t.Errorf("an adapter was chosen of two: %+v", b)
	}
	clones := []Inventory{vc, {Source: "c", Guests: []Guest{{ID: "1", UUID: "11223344-0000-0000-0000-000000000001"}, {ID: "2", UUID: "11223344-0000-0000-0000-000000000001"}}}}
	if b := (&Placement{Source: vc.Source, Guest: "vm-1"}).HostPlacement(clones); len(b) != 1 {
		t.Errorf("one of two clones was taken: %+v", b)
	}
	other := []Inventory{vc, {Source: "c", Guests: []Guest{{ID: "1", UUID: "11223344-0000-0000-0000-000000000001", NICs: []GuestNIC{{Name: "net0", MAC: new("00:50:56:00:00:09")}}}}}}
	if b := (&Placement{Source: vc.Source, Guest: "vm-1"}).HostPlacement(other); len(b) != 1 {
		t.Errorf("a clone with adapters of its own was taken: %+v", b)
	}
	if b := (&Placement{Source: vc.Source, Host: "host-9"}).HostPlacement(all); len(b) != 2 || b[0].Guest != nil || b[1].Host.ID != "esx1" {
		t.Errorf("a host itself: %+v", b)
	}
}

// TestShaped: shaping of sent and received traffic is independent; the port counts before its group, and Network I/O Control applies in addition to both.
func TestShaped(t *testing.T) {
	at := func(bps int64) *Shaping { return &Shaping{Enabled: new(true), AverageBps: &bps} }
	off := &Shaping{Enabled: new(false), AverageBps: new(int64(7))}
	for name, c := range map[string]struct {
		nic           GuestNIC
		group         SwitchPortGroup
		out, in       int64
		reported, inn bool
	}{
		"nothing":                      {GuestNIC{}, SwitchPortGroup{}, 0, 0, false, false},
		"sends at a limit":             {GuestNIC{Limit: at(5)}, SwitchPortGroup{}, 5, 0, true, false},
		"receives at a limit":          {GuestNIC{LimitIn: at(5)}, SwitchPortGroup{}, 0, 5, false, true},
		"its port before its group":    {GuestNIC{Limit: off, LimitIn: at(9)}, SwitchPortGroup{ShapeOut: at(3), ShapeIn: at(4)}, 0, 9, true, true},
		"its group":                    {GuestNIC{}, SwitchPortGroup{ShapeOut: at(3), ShapeIn: off}, 3, 0, true, true},
		"I/O control under a shaper":   {GuestNIC{IOLimit: at(2)}, SwitchPortGroup{ShapeOut: at(3)}, 2, 0, true, false},
		"I/O control above a shaper":   {GuestNIC{IOLimit: at(5)}, SwitchPortGroup{ShapeOut: at(3)}, 3, 0, true, false},
		"I/O control, its port is off": {GuestNIC{IOLimit: at(5), Limit: off}, SwitchPortGroup{ShapeOut: at(3)}, 5, 0, true, false},
		"no rate":                      {GuestNIC{IOLimit: off, Limit: at(-1)}, SwitchPortGroup{}, 0, 0, true, false},
	} {
		b := HostPlacement{Guest: &Guest{Name: "a"}, NIC: &c.nic, PortGroup: &c.group}
		for _, sends := range []bool{true, false} {
			s, _, reported := b.Shaped(sends)
			got, want, known := int64(0), c.in, c.inn
			if sends {
				want, known = c.out, c.reported
			}
			if s != nil {
				got = *s.AverageBps
			}
			if got != want || reported != known {
				t.Errorf("%s, sends %v: %d told %v, want %d told %v", name, sends, got, reported, want, known)
			}
		}
	}
}

func TestEmulated(t *testing.T) {
	for model, kinds := range map[string][2]bool{"e1000": {true, true}, "E1000e": {true, true}, "flexible": {true, true}, "vmxnet3": {false, true}, "virtio": {false, false}, "sriov": {false, false}} {
		n := &GuestNIC{Model: &model}
		if got := [2]bool{n.Emulated(KindVSphere), n.Emulated(KindKVM)}; got != kinds {
			t.Errorf("%s: of vSphere and KVM %v, want %v", model, got, kinds)
		}
	}
	if (&GuestNIC{}).Emulated(KindKVM) {
		t.Error("one whose model is not known is emulated")
	}
}
