package place

import (
	"cmp"
	"strings"

	"thru/internal/measure"
)

// placement describes where a subject was found.
func (s Subject) placement(f found) *measure.Placement {
	p := &measure.Placement{Source: f.in.Source, By: f.by()}
	if f.guest == nil {
		s.onHost(p, f.in, f.host)
		return p
	}
	g := f.guest
	p.Guest, p.GuestName, p.Host, p.Cluster, p.Site = g.ID, g.Name, g.Host, g.Cluster, g.Site
	if h := f.in.Host(g.Host); h != nil {
		p.HostName = h.Name
		p.Cluster, p.Site = cmp.Or(p.Cluster, h.Cluster), cmp.Or(p.Site, h.Site)
	}
	if n := s.adapter(g); n != nil {
		p.NIC = n.Name
		connect(p, f.in, n.PortGroup, n.Switch, n.Network, n.VLAN)
	}
	return p
}

// onHost describes a host that is itself an end point, by the interface that carries the test.
func (s Subject) onHost(p *measure.Placement, v *measure.Inventory, h *measure.GuestHost) {
	p.Host, p.HostName, p.Cluster, p.Site = h.ID, h.Name, h.Cluster, h.Site
	for _, k := range h.Ports {
		if s.carries(k.MAC, k.Addrs) {
			p.NIC = k.Device
			connect(p, v, k.PortGroup, "", k.Network, nil)
			return
		}
	}
	if h.Facts == nil {
		return
	}
	most := 0
	for k := range h.Facts.Interfaces {
		if n := s.matchRank(&h.Facts.Interfaces[k]); n > most {
			most, p.NIC = n, h.Facts.Interfaces[k].Name
		}
	}
	for _, sw := range v.Switches {
		if sw.Host == h.ID && sw.Name == p.NIC {
			connect(p, v, "", sw.ID, &sw.Name, nil)
		}
	}
}

// matchRank orders interfaces of a host by the evidence that one carries the test. A bridge has the MAC address of
// one of its ports, and may have that of a guest's tap.
func (s Subject) matchRank(i *measure.Interface) (n int) {
	if isGuestsEnd(i) || !s.carries(i.MAC, i.Addrs) {
		return 0
	}
	if shareAny(addresses(s.ViaAddrs), addresses(i.Addrs)) {
		n += 2
	}
	if i.Master == nil {
		n++
	}
	return n + 1
}

// carries reports whether it is the interface that carries the test.
func (s Subject) carries(mac *string, addrs []string) bool {
	return mac != nil && s.Via != "" && strings.EqualFold(*mac, s.Via) || shareAny(addresses(s.ViaAddrs), addresses(addrs))
}

// adapter returns the guest's adapter that carries the test: by its MAC address, by an address, or because there
// is no other. nil: not known.
func (s Subject) adapter(g *measure.Guest) *measure.GuestNIC {
	var connected []*measure.GuestNIC
	for i := range g.NICs {
		n := &g.NICs[i]
		if s.carries(n.MAC, n.Addrs) {
			return n
		}
		if n.Connected == nil || *n.Connected {
			connected = append(connected, n)
		}
	}
	for _, n := range connected { // known only by its address
		if s.Via == "" && shareAny(addresses(s.Addrs), addresses(n.Addrs)) {
			return n
		}
	}
	if len(connected) == 1 {
		return connected[0]
	}
	return nil
}

// connect fills in the network to which an adapter is connected. A port may have a VLAN of its own.
func connect(p *measure.Placement, v *measure.Inventory, group, sw string, network, vlan *string) {
	p.PortGroup, p.SwitchID = group, sw
	p.Network = cmp.Or(measure.Value(network), p.Network)
	if g := v.PortGroup(group); g != nil {
		p.Network, p.SwitchID = cmp.Or(g.Name, p.Network), cmp.Or(g.Switch, sw)
		vlan = cmp.Or(vlan, g.VLAN)
	}
	p.VLAN = cmp.Or(measure.Value(vlan), p.VLAN)
	if w := v.Switch(p.SwitchID); w != nil {
		p.Switch = w.Name
	}
}
