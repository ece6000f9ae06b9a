package place

import (
	"testing"

	"thru/internal/measure"
)

func TestObserveGuest(t *testing.T) {
	nic := func(change func(*measure.GuestNIC)) *measure.Guest {
		n := measure.GuestNIC{Name: "Network adapter 1", Model: new("vmxnet3")}
		change(&n)
		return &measure.Guest{Power: "on", NICs: []measure.GuestNIC{n}}
	}
	for name, c := range map[string]struct {
		guest *measure.Guest
		want  []Trait
	}{
		"nothing":  {nic(func(*measure.GuestNIC) {}), nil},
		"emulated": {nic(func(n *measure.GuestNIC) { n.Model = new("E1000") }), []Trait{EmulatedAdapter}},
		"held":     {nic(func(n *measure.GuestNIC) { n.Limit = &measure.Shaping{AverageBps: new(int64(1e9))} }), []Trait{AdapterLimited}},
		"shaping off": {nic(func(n *measure.GuestNIC) {
			n.Limit = &measure.Shaping{Enabled: new(false), AverageBps: new(int64(1e9))}
		}), nil},
		"unplugged": {nic(func(n *measure.GuestNIC) { n.Connected = new(false) }), []Trait{NotConnected}},
		"limited":   {&measure.Guest{CPUQuota: new(0.5), Affinity: []int{1}}, []Trait{CPULimited, CPUsBound}},
		"off":       {&measure.Guest{Power: "off", Tools: &measure.GuestTools{Running: new(false)}}, nil},
	} {
		got := ObserveGuest(measure.KindVSphere, c.guest)
		for i := range c.want {
			if len(got) != len(c.want) || got[i].Trait != c.want[i] {
				t.Errorf("%s: %+v", name, got)
				break
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestObserveHost(t *testing.T) {
	h := &measure.GuestHost{State: new("connected"), CPUsHanded: new(9), Facts: &measure.Facts{Cores: new(8), Changed: map[string]string{"VMkernel.Boot.netNetqueueEnabled": "FALSE"}}}
	got := ObserveHost(h)
	if len(got) != 2 || got[0].Trait != NetQueueOff || got[1].Trait != CPUsShared {
		t.Errorf("%+v", got)
	}
	if got := ObserveHost(&measure.GuestHost{}); len(got) != 0 {
		t.Errorf("a host of which nothing is known: %+v", got)
	}
}

func TestInventoryItself(t *testing.T) {
	held := &measure.Shaping{AverageBps: new(int64(1e9))}
	v := &measure.Inventory{PortGroups: []measure.SwitchPortGroup{{Name: "free"}, {Name: "in", ShapeIn: held}, {Name: "out", ShapeOut: held},
		{Name: "off", ShapeOut: &measure.Shaping{Enabled: new(false), AverageBps: new(int64(1e9))}}}}
	if got := LimitedNetworks(v); len(got) != 2 || got[0].Name != "in" || got[1].Name != "out" {
		t.Errorf("%+v", got)
	}
	for ahead, want := range map[int64]bool{0: false, 1e9: false, 3e9: true, -3e9: true} {
		v.ClockNs = &ahead
		if got, off := ClockOff(v); off != want || got != ahead {
			t.Errorf("%d: %d %v", ahead, got, off)
		}
	}
	if _, off := ClockOff(&measure.Inventory{}); off {
		t.Error("a clock that was not read is off")
	}
}

func TestUnlike(t *testing.T) {
	v := &measure.Inventory{Switches: []measure.VirtualSwitch{
		{ID: "s1", Name: "vSwitch0", Host: "h1", MTU: new(1500)}, {ID: "s2", Name: "vSwitch0", Host: "h2", MTU: new(9000)}, {ID: "s3", Name: "vSwitch0", Host: "h3", MTU: new(9000)}}}
	hosts := map[string]*measure.GuestHost{"h1": {Name: "esx1", Cluster: "a"}, "h2": {Name: "esx2", Cluster: "a"}, "h3": {Name: "esx3", Cluster: "b"}}
	got := UnlikeMTUs(v, hosts)
	if len(got) != 1 || got[0].Cluster != "a" || len(got[0].Values) != 2 {
		t.Errorf("%+v", got)
	}
}
