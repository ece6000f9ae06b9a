package hypervisor

import (
	"slices"

	"thru/internal/measure"
)

// Choose reduces an inventory to a choice as Source.Inventory defines it, for
// sources that read all at once: the chosen guests, their hosts and the
// chosen hosts, and the networks and datastores of both. With a nil want all
// stays.
func Choose(v *measure.Inventory, want func(*measure.Guest) bool, hosts func(*measure.GuestHost) bool) {
	if want == nil {
		return
	}
	v.GuestsTotal, v.HostsTotal = new(len(v.Guests)), new(len(v.Hosts))
	var guests []measure.Guest // a new list: the source may keep what it has read
	on := map[string]bool{}    // hosts, networks and datastores that are needed
	for i := range v.Guests {
		g := &v.Guests[i]
		if !want(g) {
			continue
		}
		guests = append(guests, *g)
		on[g.Host] = true
		for _, n := range g.NICs {
			on[n.Switch], on[n.PortGroup] = true, true
		}
		for _, d := range g.Disks {
			on[d.Datastore] = true
		}
	}
	var kept []measure.GuestHost
	for i := range v.Hosts {
		h := &v.Hosts[i]
		if !on[h.ID] && (hosts == nil || !hosts(h)) {
			continue
		}
		kept, on[h.ID] = append(kept, *h), true
		for _, d := range h.Datastores {
			on[d] = true
		}
	}
	delete(on, "") // an unset reference
	v.Guests, v.Hosts = guests, kept
	v.PortGroups = some(v.PortGroups, func(p *measure.SwitchPortGroup) bool {
		keep := on[p.ID] || on[p.Host]
		on[p.Switch] = on[p.Switch] || keep && p.Switch != ""
		return keep
	})
	v.Switches = some(v.Switches, func(s *measure.VirtualSwitch) bool {
		return on[s.ID] || on[s.Host] || slices.ContainsFunc(s.Hosts, func(id string) bool { return on[id] })
	})
	v.Datastores = some(v.Datastores, func(d *measure.Datastore) bool { return on[d.ID] })
}

// some returns the elements of a list to keep, in a new list.
func some[T any](all []T, keep func(*T) bool) (list []T) {
	for i := range all {
		if keep(&all[i]) {
			list = append(list, all[i])
		}
	}
	return list
}
