package measure

import (
	"slices"
	"strings"
)

// HostPlacement describes the hypervisor of an end point, from one inventory. Fields that the inventory does not list are nil; Guest is nil where the end
// point is a host itself.
type HostPlacement struct {
	Inventory *Inventory
	Guest     *Guest
	NIC       *GuestNIC // adapter that carries the test
	Host      *GuestHost
	PortGroup *SwitchPortGroup
	Switch    *VirtualSwitch
}

// Kind returns the kind of the inventory's source; "" without an inventory.
func (b HostPlacement) Kind() string {
	if b.Inventory == nil {
		return ""
	}
	return b.Inventory.Kind
}

// HostPlacement looks up the items that a placement names: first in its own inventory, then by UUID in others that know the same guest, or the same host where
// the end point is a host. A vCenter and the commands of its ESXi hosts report different facts of one guest. It returns nil where the inventories do not hold
// the placement.
func (p *Placement) HostPlacement(all []Inventory) []HostPlacement {
	if p == nil {
		return nil
	}
	var list []HostPlacement
	for i := range all {
		v := &all[i]
		if v.Source != p.Source || len(list) > 0 {
			continue
		}
		b := HostPlacement{Inventory: v, Guest: v.Guest(p.Guest), Host: v.Host(p.Host), PortGroup: v.PortGroup(p.PortGroup), Switch: v.Switch(p.SwitchID)}
		if b.Guest == nil && (p.Guest != "" || b.Host == nil) {
			continue
		}
		list = append(list, b.by(p.NIC))
	}
	for i := range all {
		if len(list) == 0 || &all[i] == list[0].Inventory {
			continue
		}
		if b, ok := list[0].same(&all[i]); ok {
			list = append(list, b)
		}
	}
	return list
}

// by completes b from the adapter of that name; without a name, it uses an adapter that is the only one.
func (b HostPlacement) by(nic string) HostPlacement {
	if b.Guest == nil {
		return b
	}
	for i := range b.Guest.NICs {
		if n := &b.Guest.NICs[i]; n.Name == nic || nic == "" && len(b.Guest.NICs) == 1 {
			b.NIC = n
		}
	}
	if b.Host == nil {
		b.Host = b.Inventory.Host(b.Guest.Host)
	}
	if b.NIC != nil && b.PortGroup == nil {
		b.PortGroup = b.Inventory.PortGroup(b.NIC.PortGroup)
	}
	if b.NIC != nil && b.Switch == nil {
		b.Switch = b.Inventory.Switch(b.NIC.Switch)
	}
	if b.PortGroup != nil && b.Switch == nil {
		b.Switch = b.Inventory.Switch(b.PortGroup.Switch)
	}
	return b
}

// same finds the same guest or host in another inventory.
func (b HostPlacement) same(v *Inventory) (HostPlacement, bool) {
	if b.Guest != nil {
		var found *Guest
		for i := range v.Guests {
			g := &v.Guests[i]
			if !SameUUID(g.UUID, b.Guest.UUID) || !shareMAC(g, b.Guest) {
				continue
			}
			if found != nil { // clones: nothing shows which of them it is
				return HostPlacement{}, false
			}
			found = g
		}
		if found == nil {
			return HostPlacement{}, false
		}
		return HostPlacement{Inventory: v, Guest: found}.by(sameNIC(b.NIC, found)), true
	}
	for i := range v.Hosts {
		if h := &v.Hosts[i]; b.Host != nil && SameUUID(h.UUID, b.Host.UUID) {
			return HostPlacement{Inventory: v, Host: h}, true
		}
	}
	return HostPlacement{}, false
}

// shareMAC reports whether two guests have, or may have, an adapter in common. A clone has the UUID of its original, but adapters of its own.
func shareMAC(a, b *Guest) bool {
	known := 0
	for i := range a.NICs {
		if a.NICs[i].MAC == nil {
			continue
		}
		known++
		if sameNIC(&a.NICs[i], b) != "" {
			return true
		}
	}
	return known == 0 || !slices.ContainsFunc(b.NICs, func(n GuestNIC) bool { return n.MAC != nil })
}

// sameNIC returns the name of a guest's adapter that has the MAC of another inventory's adapter.
func sameNIC(n *GuestNIC, g *Guest) string {
	for i := range g.NICs {
		if m := g.NICs[i].MAC; m != nil && n != nil && n.MAC != nil && strings.EqualFold(*m, *n.MAC) {
			return g.NICs[i].Name
		}
	}
	return ""
}

// Shaped returns the rate limit of the guest's port in one direction, seen from the guest, and where it is set. Network I/O Control limits an adapter in
// addition to the shaping of its port: the smaller of the two counts. s is nil where there is no limit with a rate or where it is not known; reported is true
// where it is known.
func (b HostPlacement) Shaped(sends bool) (s *Shaping, at string, reported bool) {
	s, at, reported = b.policy(sends)
	if b.NIC == nil || b.Guest == nil || !sends || !b.NIC.IOLimit.on() {
		return s, at, reported
	}
	if s == nil || *b.NIC.IOLimit.AverageBps < *s.AverageBps {
		return b.NIC.IOLimit, b.NIC.Name + " of " + b.Guest.Name, true
	}
	return s, at, true
}

// policy returns the shaping of the port: its own, else that of the port group, else that of the switch. The nearest setting counts, even where it is off.
func (b HostPlacement) policy(sends bool) (s *Shaping, at string, reported bool) {
	type place struct {
		at      string
		in, out *Shaping
	}
	var places []place
	if b.NIC != nil && b.Guest != nil {
		places = append(places, place{b.NIC.Name + " of " + b.Guest.Name, b.NIC.LimitIn, b.NIC.Limit})
	}
	if b.PortGroup != nil {
		places = append(places, place{"port group " + b.PortGroup.Name, b.PortGroup.ShapeIn, b.PortGroup.ShapeOut})
	}
	if b.Switch != nil {
		places = append(places, place{"switch " + b.Switch.Name, b.Switch.ShapeIn, b.Switch.ShapeOut})
	}
	for _, p := range places {
		s := p.in
		if sends {
			s = p.out
		}
		switch {
		case s == nil || s.Enabled == nil && s.AverageBps == nil:
			continue
		case !s.on():
			return nil, "", true
		}
		return s, p.at, true
	}
	return nil, "", false
}

// Holds reports whether the port has a rate limit, even where the rate is not known.
func (s *Shaping) Holds() bool {
	return s != nil && (s.Enabled == nil || *s.Enabled) && (s.Enabled != nil || s.AverageBps != nil)
}

// on reports whether a known rate limit is in force.
func (s *Shaping) on() bool {
	return s != nil && (s.Enabled == nil || *s.Enabled) && s.AverageBps != nil && *s.AverageBps > 0
}

// MTUs returns the MTUs in bytes that apply to a packet of the guest in its host, by the name of their owner: the interface behind its adapter, the switch,
// and the given uplinks.
func (b HostPlacement) MTUs(uplinks []string) map[string]int {
	all := map[string]int{}
	host := ""
	if b.Host != nil {
		host = " of " + b.Host.Name
	}
	if b.NIC != nil && b.NIC.MTU != nil && b.NIC.Device != nil {
		all["the interface "+*b.NIC.Device+host] = *b.NIC.MTU
	}
	if b.Switch != nil && b.Switch.MTU != nil {
		kind := "the switch "
		if b.Switch.Kind == "bridge" {
			kind = "the bridge "
		}
		all[kind+b.Switch.Name] = *b.Switch.MTU
	}
	for _, nic := range uplinks {
		if b.Host == nil {
			break
		}
		if i := b.Host.Facts.Interface(nic); i != nil && i.MTU != nil {
			all["the uplink "+nic+host] = *i.MTU
		}
	}
	return all
}

// CPULimit returns the CPU limit of a guest, in CPUs or in Hz; both are 0 without a limit. known is false where the inventory does not report it.
func (b HostPlacement) CPULimit() (cpus, hz float64, known bool) {
	g := b.Guest
	if g == nil {
		return 0, 0, false
	}
	switch s := g.CPUShare; {
	case g.CPUQuota != nil && *g.CPUQuota > 0:
		return *g.CPUQuota, 0, true
	case s != nil && s.Limit != nil && *s.Limit > 0 && (s.Limited == nil || *s.Limited):
		return 0, float64(*s.Limit), true
	case s != nil && s.Limited != nil && !*s.Limited:
		return 0, 0, true
	}
	unread := slices.ContainsFunc(g.NotChecked, func(m NotChecked) bool { return m.Fact == "cpu_quota_cpus" })
	return 0, 0, b.Kind() == KindKVM && g.CPUQuota == nil && !unread
}
