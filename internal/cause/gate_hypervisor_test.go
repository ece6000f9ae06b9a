package cause

import (
	"testing"

	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// placed makes both ends guests with healthy hypervisor facts, and modifies those of the first one.
func placed(edit func(b *measure.HostPlacement, s *scene.Subject)) func(*scene.Subject) {
	return func(s *scene.Subject) {
		for i := range s.Ends {
			v := &measure.Inventory{Source: "vsphere://vc", Kind: measure.KindVSphere}
			g := &measure.Guest{ID: "vm-1", Name: "web1", CPUShare: &measure.Allocation{Limited: new(false)}, NICs: []measure.GuestNIC{{Name: "Network adapter 1", Model: new("vmxnet3"), Uplink: new("vmnic0")}}}
			b := measure.HostPlacement{Inventory: v, Guest: g, NIC: &g.NICs[0], Switch: &measure.VirtualSwitch{Name: "vSwitch0", MTU: new(9000)},
				PortGroup: &measure.SwitchPortGroup{Name: "prod", ShapeOut: &measure.Shaping{Enabled: new(false)}},
				Host:      &measure.GuestHost{Name: "esx1", Facts: &measure.Facts{Interfaces: []measure.Interface{{Name: "vmnic0", MTU: new(9000)}}}}}
			s.Ends[i].Placements = []measure.HostPlacement{b}
		}
		if edit != nil {
			edit(&s.Ends[0].Placements[0], s)
		}
	}
}

func belowCases() []ruleCase {
	type bb = *measure.HostPlacement
	of := func(edit func(b bb)) func(*scene.Subject) { return placed(func(b bb, _ *scene.Subject) { edit(b) }) }
	well := placed(nil)
	shaped := func(bps int64) *measure.Shaping { return &measure.Shaping{Enabled: new(true), AverageBps: &bps} }
	windows := func(status string, runs bool) func(*scene.Subject) {
		return placed(func(b bb, s *scene.Subject) {
			s.Ends[0].Facts.OS = nil
			b.Guest.OS, b.Guest.Tools = new("windows2019srv_64Guest"), &measure.GuestTools{Status: &status, Running: &runs}
		})
	}
	return []ruleCase{
		{"guest-adapter", gone_, nil, "", ""},
		{"guest-adapter", pass_, well, "Network adapter 1 of web1 is a vmxnet3", ""},
		{"guest-adapter", warn_, of(func(b bb) { b.NIC.Model = new("e1000e") }), "emulated (e1000e)", "paravirtual adapter"},
		{"guest-adapter", none_, of(func(b bb) { b.NIC.Model = nil }), "model of Network adapter 1", ""},
		{"guest-adapter", gone_, of(func(b bb) { b.NIC = nil }), "", ""},
		{"guest-adapter", gone_, of(func(b bb) { b.Guest = nil }), "", ""},
		{"guest-mtu", pass_, well, "pass the 9000 bytes of ens1f0", ""},
		{"guest-mtu", warn_, of(func(b bb) { b.Switch.MTU = new(1500) }), "the switch vSwitch0 passes only packets of 1500 bytes, but ens1f0 has an MTU of 9000", "set MTU 9000 there, on the hypervisor; or MTU 1500 at ens1f0"},
		{"guest-mtu", warn_, of(func(b bb) { b.Host.Facts.Interfaces[0].MTU = new(1500) }), "the uplink vmnic0 of esx1", ""},
		{"guest-mtu", pass_, of(func(b bb) { b.Switch.MTU = new(-5) }), "", ""},
		{"guest-mtu", warn_, placed(func(b bb, s *scene.Subject) { // its route is not known
			s.Ends[0].Route, b.NIC.MAC, s.Ends[0].Facts.Interface("ens1f0").MAC, b.Switch.MTU = nil, new("AA:BB:CC:DD:EE:01"), new("aa:bb:cc:dd:ee:01"), new(1500)
		}), "ens1f0 has an MTU of 9000", ""},
		{"guest-mtu", none_, of(func(b bb) { b.Switch, b.Host = nil, nil }), "does not have", ""},
		{"guest-shaping", pass_, well, "no traffic shaping", ""},
		{"guest-shaping", warn_, of(func(b bb) { b.PortGroup.ShapeOut = shaped(1e9) }), "port group prod limits what web1 sends to 1.00 Gb/s", "switch it off"},
		{"guest-shaping", warn_, of(func(b bb) { b.PortGroup.ShapeIn = shaped(1e9) }), "what web1 receives", ""},
		{"guest-shaping", warn_, of(func(b bb) { b.NIC.Limit = shaped(1e9) }), "Network adapter 1 of web1", ""},
		{"guest-shaping", warn_, placed(func(b bb, s *scene.Subject) { b.PortGroup.ShapeOut, s.LinkBps = shaped(1e9), 10e9 }), "", ""},
		{"guest-shaping", pass_, placed(func(b bb, s *scene.Subject) { b.PortGroup.ShapeOut, s.LinkBps = shaped(1e9), 1e9 }), "", ""},
		{"guest-shaping", none_, of(func(b bb) { b.PortGroup = nil }), "the inventory does not", ""},
		{"guest-cpu-limit", pass_, well, "no CPU limit", ""},
		{"guest-cpu-limit", warn_, of(func(b bb) { b.Guest.CPUShare = &measure.Allocation{Limited: new(true), Limit: new(int64(2.5e9))} }), "web1 may use 2.5 GHz", "remove or raise the CPU limit"},
		{"guest-cpu-limit", warn_, of(func(b bb) { b.Guest.CPUQuota = new(0.5) }), "web1 may use 0.5 CPUs", ""},
		{"guest-cpu-limit", pass_, of(func(b bb) { b.Inventory.Kind, b.Guest.CPUShare = measure.KindKVM, nil }), "", ""},
		{"guest-cpu-limit", none_, of(func(b bb) {
			b.Guest.CPUShare, b.Guest.NotChecked = nil, []measure.NotChecked{{Fact: "cpu_allocation", Why: "the account may not read it"}}
		}), "the account may not read it", ""},
		{"guest-tools", gone_, well, "", ""},
		{"guest-tools", warn_, windows("old", true), "in web1 are old", "install the current tools"},
		{"guest-tools", warn_, windows("current", false), "not running", ""},
		{"guest-tools", pass_, windows("current", true), "current", ""},
		{"guest-tools", gone_, of(func(b bb) { b.Guest.Tools = &measure.GuestTools{Status: new("old")} }), "", ""},
	}
}

// TestNobodyAsked: without a hypervisor there are no hypervisor gates.
func TestNobodyAsked(t *testing.T) {
	for _, g := range Judge(serverPair()) {
		if IsHypervisorGate(g.ID) {
			t.Errorf("%+v", g)
		}
	}
}
