package cause

import (
	"time"

	"thru/internal/measure"
)

// Guests that are the two ends of a flow: a is vm-a on esx1, b is vm-b on esx2, from one vCenter. Counters have
// four samples in the two seconds of the flow.

const sampled = 500 * time.Millisecond

// began is when the runs of these tests started.
func began() time.Time { return time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC) }

// belowEnds places both ends, with settings that limit no flow. Edits make cases of it.
func belowEnds(edits ...func(*measure.Inventory)) hostsEdit {
	return func(h *hosts) {
		v := vcenter()
		for _, edit := range edits {
			edit(&v)
		}
		h.doc.Inventories = []measure.Inventory{v}
		h.doc.Relations = []measure.Relation{{From: "a", To: "b", Kind: measure.SameVLAN}}
		for i := range 2 {
			e := &h.doc.EndPoints[i]
			e.Facts.Hypervisor = new("vmware")
			e.Placement = &measure.Placement{Source: v.Source, Guest: v.Guests[i].ID, Host: v.Guests[i].Host, NIC: "Network adapter 1"}
		}
		h.cell.Runs[0].StartedAt = began()
	}
}

func vcenter() measure.Inventory {
	v := measure.Inventory{Source: "vsphere://vc", Kind: measure.KindVSphere,
		Switches:   []measure.VirtualSwitch{{ID: "dvs-1", Name: "dvs-prod", Kind: "distributed", MTU: new(9000), Uplinks: []measure.Uplink{{Host: "esx1", NIC: "vmnic0"}, {Host: "esx2", NIC: "vmnic0"}}}},
		PortGroups: []measure.SwitchPortGroup{{ID: "pg-1", Name: "prod", Switch: "dvs-1"}},
	}
	for i, name := range []string{"a", "b"} {
		host := []string{"esx1", "esx2"}[i]
		v.Guests = append(v.Guests, measure.Guest{ID: "vm-" + name, Name: "vm-" + name, Host: host, CPUs: new(4), CPUShare: &measure.Allocation{Limited: new(false)},
			NICs: []measure.GuestNIC{{Name: "Network adapter 1", Key: "4000", Model: new("vmxnet3"), PortGroup: "pg-1"}}})
		v.Hosts = append(v.Hosts, measure.GuestHost{ID: host, Name: host, CPUsHanded: new(96), Facts: &measure.Facts{Cores: new(40), Changed: map[string]string{},
			Interfaces: []measure.Interface{{Name: "vmnic0", MTU: new(9000), SpeedBps: new(int64(10e9))}}}})
	}
	return v
}

// counts adds a counter of a guest or a host with a constant value.
func counts(of, instance, counter string, value float64) func(*measure.Inventory) {
	return overTime(of, instance, counter, sampled, value, value, value, value)
}

// overTime adds a counter whose samples, each of that length, begin with the run.
func overTime(of, instance, counter string, every time.Duration, values ...float64) func(*measure.Inventory) {
	return func(v *measure.Inventory) {
		s := measure.Series{Of: of, Instance: instance, Counter: counter, Native: "native " + counter, EveryNs: int64(every)}
		for i, x := range values {
			s.Samples = append(s.Samples, measure.Reading{EndedAt: began().Add(time.Duration(i+1) * every), Value: x})
		}
		v.Series = append(v.Series, s)
	}
}

// onKVM turns the source into a KVM host.
func onKVM(v *measure.Inventory) { v.Kind, v.Product = measure.KindKVM, "QEMU 9.2" }

// guestB and bedB edit the receiver's virtual machine and its host.
func guestB(edit func(*measure.Guest)) func(*measure.Inventory) {
	return func(v *measure.Inventory) { edit(&v.Guests[1]) }
}

func bedB(edit func(*measure.GuestHost)) func(*measure.Inventory) {
	return func(v *measure.Inventory) { edit(&v.Hosts[1]) }
}

// unplacedB removes the receiver's host placement.
func unplacedB(why string) hostsEdit {
	return func(h *hosts) { h.doc.EndPoints[1].Placement, h.doc.EndPoints[1].NoPlace = nil, why }
}

func sameHost(h *hosts) { h.doc.Relations[0].Kind = measure.SameHost }
