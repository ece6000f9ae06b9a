package measure

import (
	"slices"
	"strings"
)

// HostPlacement is what lies below an end point, by one inventory. What that does not
// list is nil; Guest is nil where the end point is a host itself.
type HostPlacement struct {
	Inventory *Inventory
	Guest     *Guest
	NIC       *GuestNIC // that carries the test
	Host      *GuestHost
	PortGroup *SwitchPortGroup
	Switch    *VirtualSwitch
}

// Kind of the source that tells it; "" where nobody does.
func (b HostPlacement) Kind() string {
	if b.Inventory == nil {
		return ""
	}
	return b.Inventory.Kind
}

// HostPlacement looks up what a placement names: in its own inventory first, then in
// the others that know the same guest, or where it is a host the same host, by
// UUID. A vCenter and the commands of its ESXi hosts tell different things of
// one guest. None where the inventories do not hold it.
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

// by completes it from the adapter of that name; one that is the only one needs none.
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

// same finds what another inventory says of the same guest or host.
func (b HostPlacement) same(v *Inventory) (HostPlacement, bool) {
	if b.Guest != nil {
		var found *Guest
		for i := range v.Guests {
			g := &v.Guests[i]
			if !SameUUID(g.UUID, b.Guest.UUID) || !shareMAC(g, b.Guest) {
				continue
			}
			if found != nil { // clones: nobody says which of them it is
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

// shareMAC tells whether two guests have an adapter in common, or may have: a
// clone has the UUID of what it was made of, and adapters of its own.
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

// sameNIC is the name of a guest's adapter with the MAC of another inventory's.
func sameNIC(n *GuestNIC, g *Guest) string {
	for i := range g.NICs {
		if m := g.NICs[i].MAC; m != nil && n != nil && n.MAC != nil && strings.EqualFold(*m, *n.MAC) {
			return g.NICs[i].Name
		}
	}
	return ""
}

// Shaped is what holds the guest's port to a rate in one direction, as it sends
// or receives, and the name of where it is set. Network I/O Control limits an
// adapter beside the shaping of its port: the smaller of the two counts. nil:
// there is none with a rate, or it is not known; told then tells the two apart.
func (b HostPlacement) Shaped(sends bool) (s *Shaping, at string, told bool) {
	s, at, told = b.policy(sends)
	if b.NIC == nil || b.Guest == nil || !sends || !b.NIC.IOLimit.on() {
		return s, at, told
	}
	if s == nil || *b.NIC.IOLimit.AverageBps < *s.AverageBps {
		return b.NIC.IOLimit, b.NIC.Name + " of " + b.Guest.Name, true
	}
	return s, at, true
}

// policy is the shaping of the port: its own, else that of the port group, else
// that of the switch. What is nearer counts, also where it is off.
func (b HostPlacement) policy(sends bool) (s *Shaping, at string, told bool) {
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

// Holds tells of a port that is held to a rate, which need not be known.
func (s *Shaping) Holds() bool {
	return s != nil && (s.Enabled == nil || *s.Enabled) && (s.Enabled != nil || s.AverageBps != nil)
}

// on tells of a rate that is in force.
func (s *Shaping) on() bool {
	return s != nil && (s.Enabled == nil || *s.Enabled) && s.AverageBps != nil && *s.AverageBps > 0
}

// MTUs that a packet of the guest meets in its host, in bytes, by the names of
// what has them: the interface behind its adapter, the switch, and those uplinks
// that are named.
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

// CPULimit is the most that a guest may use, in CPUs or in Hz; both 0: no limit
// is set. known tells whether the inventory says.
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
