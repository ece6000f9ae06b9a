package place

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"thru/internal/measure"
)

// Placed is an end point with its host placement, nil if that is not known.
type Placed struct {
	Subject
	At *measure.Placement
}

// Relate returns how two end points are placed relative to each other, and the evidence. If that is not known, ok
// is false and why has the reason.
func Relate(a, b Placed, all []measure.Inventory) (r measure.Relation, why string, ok bool) {
	r = measure.Relation{From: a.Name, To: b.Name}
	if a.Name == b.Name {
		r.Kind, r.Why = measure.SameMachine, "one end point"
		if a.At != nil {
			r.Why = machine(a.At)
		}
		return r, "", true
	}
	if a.At == nil || b.At == nil {
		return r, "", false // the end point has the reason
	}
	for _, rule := range []func(a, b Placed, all []measure.Inventory) (kind, why string){onOneMachine, onOneHost, onOtherSites, onOneNetwork, onOneSite} {
		if r.Kind, r.Why = rule(a, b, all); r.Kind != "" {
			return r, "", true
		}
	}
	return r, fmt.Sprintf("%s and %s: the relation of their networks and data centers is not known", hostOf(a.At), hostOf(b.At)), false
}

// machine names what an end point is.
func machine(p *measure.Placement) string {
	switch {
	case p.Guest == "":
		return p.HostName
	case p.HostName == "":
		return p.GuestName
	}
	return p.GuestName + " on " + p.HostName
}

func hostOf(p *measure.Placement) string {
	if p.HostName == "" {
		return "an unknown host"
	}
	return p.HostName
}

func onOneMachine(a, b Placed, _ []measure.Inventory) (kind, why string) {
	if a.At.Source != b.At.Source || a.At.Guest != b.At.Guest || a.At.Host != b.At.Host {
		return "", ""
	}
	return measure.SameMachine, "both are in " + machine(a.At)
}

func onOneHost(a, b Placed, all []measure.Inventory) (kind, why string) {
	if !oneHost(a.At, b.At, all) {
		return "", ""
	}
	return measure.SameHost, "both are on " + hostOf(a.At) + networksOf(a.At, b.At)
}

// oneHost compares the hosts: by their ids, between two sources by their UUIDs.
func oneHost(a, b *measure.Placement, all []measure.Inventory) bool {
	if a.Host == "" || b.Host == "" {
		return false
	}
	if a.Source == b.Source {
		return a.Host == b.Host
	}
	x, y := inventory(all, a.Source).Host(a.Host), inventory(all, b.Source).Host(b.Host)
	return x != nil && y != nil && measure.SameUUID(ofHost(x).uuid, ofHost(y).uuid)
}

// inventory returns that of a source; nil if there is none.
func inventory(all []measure.Inventory, source string) *measure.Inventory {
	i := slices.IndexFunc(all, func(v measure.Inventory) bool { return v.Source == source })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// networksOf names the networks if they differ or have a VLAN number.
func networksOf(a, b *measure.Placement) string {
	switch {
	case a.Network == "" || b.Network == "":
		return ""
	case a.Network == b.Network:
		return ", " + network(a)
	}
	return ", " + network(a) + " and " + network(b)
}

// network words "VM Network" or "prod (VLAN 100)".
func network(p *measure.Placement) string {
	if p.Network == "" || untagged(p) {
		return p.Network
	}
	return p.Network + " (VLAN " + p.VLAN + ")"
}

// site returns the data center; "" if none is known. An unmanaged host calls its own "ha-datacenter" (vSphere Web
// Services SDK, Datacenter).
func site(p *measure.Placement) string {
	if p.Site == "ha-datacenter" {
		return ""
	}
	return p.Site
}

// onOtherSites: between two managers only the names can show it, and only if they differ.
func onOtherSites(a, b Placed, _ []measure.Inventory) (kind, why string) {
	x, y := site(a.At), site(b.At)
	if x == "" || y == "" || x == y {
		return "", ""
	}
	why = fmt.Sprintf("data centers %s and %s", x, y)
	if a.At.Source != b.At.Source {
		why += fmt.Sprintf(", as %s and %s name them", a.At.Source, b.At.Source)
	}
	return measure.OtherSite, why
}

// onOneNetwork returns the evidence that two hosts share a network: a port group, a VLAN on one switch, or a VLAN
// and a subnet. A port group that carries many VLANs or isolates its members is no evidence, nor is a network that
// does not leave its host.
func onOneNetwork(a, b Placed, all []measure.Inventory) (kind, why string) {
	x, y := a.At, b.At
	if isInternal(x, all) || isInternal(y, all) || isIsolated(x) || isIsolated(y) {
		return "", ""
	}
	hosts := fmt.Sprintf("%s and %s, ", hostOf(x), hostOf(y))
	one := x.Source == y.Source
	group := one && x.PortGroup != "" && x.PortGroup == y.PortGroup
	trunk := isTrunk(x) || isTrunk(y)
	tagged := x.VLAN != "" && x.VLAN == y.VLAN && !trunk
	reported := len(networks(a.ViaAddrs)) > 0 && len(networks(b.ViaAddrs)) > 0
	switch net, ok := subnet(a, b); {
	case group && !trunk:
		return measure.SameVLAN, hosts + "port group " + network(x)
	case one && tagged && x.SwitchID != "" && x.SwitchID == y.SwitchID:
		return measure.SameVLAN, fmt.Sprintf("%sVLAN %s of %s", hosts, x.VLAN, x.Switch)
	case ok && tagged && x.VLAN != "0":
		return measure.SameVLAN, fmt.Sprintf("%sVLAN %s and subnet %s at both", hosts, x.VLAN, net)
	case ok && group:
		return measure.SameVLAN, fmt.Sprintf("%sport group %s and subnet %s at both", hosts, network(x), net)
	case ok && (x.VLAN == y.VLAN || untagged(x) && untagged(y)):
		return measure.SameVLAN, fmt.Sprintf("%sby their subnet %s only", hosts, net)
	case one && !reported && !trunk && x.Site == y.Site && x.Network != "" && x.Network == y.Network && x.VLAN == y.VLAN:
		return measure.SameVLAN, fmt.Sprintf("%sby the name of their network only: %s", hosts, network(x))
	}
	return "", ""
}

// isTrunk reports whether the guest at the port chooses the VLAN itself.
func isTrunk(p *measure.Placement) bool {
	return strings.HasPrefix(p.VLAN, "trunk") || p.VLAN == "4095"
}

// isIsolated reports whether it is a private VLAN whose members may not reach each other.
func isIsolated(p *measure.Placement) bool {
	return strings.HasPrefix(p.VLAN, "private") && strings.Contains(p.VLAN, " of ")
}

// isInternal reports whether a network has no uplink: the host routes its external traffic (libvirt's "default"),
// and another host may have one of the same name.
func isInternal(p *measure.Placement, all []measure.Inventory) bool {
	s := inventory(all, p.Source).Switch(p.SwitchID)
	return s != nil && (s.Kind == "bridge" || s.Kind == "standard") && len(s.Uplinks) == 0 &&
		!slices.ContainsFunc(s.NotChecked, func(m measure.NotChecked) bool { return measure.IsPart(m.Fact, "uplinks") })
}

func untagged(p *measure.Placement) bool { return p.VLAN == "" || p.VLAN == "0" }

// subnet returns one in which both have an address. A container's subnet may be internal to its machine.
func subnet(a, b Placed) (netip.Prefix, bool) {
	other := networks(b.ViaAddrs)
	for _, p := range networks(a.ViaAddrs) {
		if slices.Contains(other, p) && !a.Inside && !b.Inside {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

func onOneSite(a, b Placed, _ []measure.Inventory) (kind, why string) {
	if site(a.At) == "" || site(a.At) != site(b.At) || a.At.Source != b.At.Source {
		return "", ""
	}
	return measure.SameSite, fmt.Sprintf("%s and %s in %s%s", hostOf(a.At), hostOf(b.At), a.At.Site, networksOf(a.At, b.At))
}

// OfEndPoints reduces an inventory to the guests and hosts of the end points, with the networks and datastores
// that these use.
func OfEndPoints(v measure.Inventory, placed []measure.Placement) measure.Inventory {
	var guests, hosts, groups, switches, stores []string
	for _, p := range placed {
		if p.Source == v.Source {
			guests, hosts = append(guests, p.Guest), append(hosts, p.Host)
		}
	}
	v.Guests = only(v.Guests, func(g *measure.Guest) bool { return slices.Contains(guests, g.ID) })
	v.Hosts = only(v.Hosts, func(h *measure.GuestHost) bool { return slices.Contains(hosts, h.ID) })
	for _, g := range v.Guests {
		for _, n := range g.NICs {
			groups, switches = append(groups, n.PortGroup), append(switches, n.Switch)
		}
		for _, d := range g.Disks {
			stores = append(stores, d.Datastore)
		}
	}
	for _, h := range v.Hosts {
		for _, p := range h.Ports {
			groups = append(groups, p.PortGroup)
		}
		stores = append(stores, h.Datastores...)
	}
	for _, g := range v.PortGroups {
		if slices.Contains(groups, g.ID) {
			switches = append(switches, g.Switch)
		}
	}
	v.PortGroups = only(v.PortGroups, func(g *measure.SwitchPortGroup) bool {
		return slices.Contains(groups, g.ID) || g.Uplinks && slices.Contains(switches, g.Switch)
	})
	v.Switches = only(v.Switches, func(s *measure.VirtualSwitch) bool {
		return slices.Contains(switches, s.ID) || s.Host != "" && slices.Contains(hosts, s.Host)
	})
	v.Datastores = only(v.Datastores, func(d *measure.Datastore) bool { return slices.Contains(stores, d.ID) })
	return v
}

func only[T any](all []T, keep func(*T) bool) []T {
	var kept []T
	for i := range all {
		if keep(&all[i]) {
			kept = append(kept, all[i])
		}
	}
	return kept
}
