package kvm

import (
	"slices"

	"thru/internal/measure"
)

// complete notes the reasons for missing facts, and removes references
// without a target: a guest that does not run may name a bridge that does not
// exist.
func complete(v *measure.Inventory) {
	for i := range v.Guests {
		g := &v.Guests[i]
		for j := range g.NICs {
			if n := &g.NICs[j]; v.Switch(n.Switch) == nil {
				n.Switch = ""
			}
		}
		why := "not in its command line"
		if g.Power == "off" {
			why = "it does not run, and its manager's files do not contain it"
		}
		for _, fact := range lacks(g) {
			if !slices.ContainsFunc(g.NotChecked, func(n measure.NotChecked) bool { return n.Covers(fact) }) {
				g.NotChecked = append(g.NotChecked, measure.NotChecked{Fact: fact, Why: why})
			}
		}
	}
	for i := range v.Hosts {
		if h := &v.Hosts[i]; h.UUID == "" {
			h.NotChecked = append(h.NotChecked, measure.NotChecked{Fact: "uuid", Why: "the firmware has none, or only root can read it"})
		}
	}
	if len(v.Guests) > 0 {
		v.NotChecked = append(v.NotChecked, everywhere()...)
	}
}

// everywhere returns the facts that no guest's process shows.
func everywhere() (all []measure.NotChecked) {
	for _, fact := range []string{"os", "os_running", "hostname", "addresses", "tools"} {
		all = append(all, measure.NotChecked{Fact: "guests." + fact, Why: "QEMU does not know the guest's system; thru does not query the guest agent"})
	}
	all = append(all, measure.NotChecked{Fact: "guests.latency_sensitivity", Why: "QEMU has no such setting"})
	return append(all, measure.NotChecked{Fact: "guests.disks.size_bytes", Why: "thru does not open image files; /sys reports block devices"})
}

// lacks returns the facts that every guest has and that are not known for
// this one.
func lacks(g *measure.Guest) (facts []string) {
	for _, x := range []struct {
		fact    string
		missing bool
	}{
		{"uuid", g.UUID == ""}, {"hardware_version", g.Hardware == nil}, {"firmware", g.Firmware == nil}, {"cpus", g.CPUs == nil},
		{"cpu_model", g.CPUModel == nil}, {"memory_bytes", g.Memory == nil}, {"threads", g.Power == "on" && g.Threads == nil},
	} {
		if x.missing {
			facts = append(facts, x.fact)
		}
	}
	for _, n := range g.NICs {
		if n.Model == nil {
			facts = append(facts, "nics."+n.Name+".model")
		}
		if n.MAC == nil {
			facts = append(facts, "nics."+n.Name+".mac")
		}
	}
	return facts
}
