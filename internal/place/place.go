// Package place finds end points among the virtual machines and hosts that hypervisors report, and determines how
// two of them are placed relative to each other: on one host, in one VLAN, in one data center or in two. It is
// pure: inventories and facts go in.
//
// A wrong placement would blame an unrelated host for a slow test. So a claim by two candidates, or one that
// contradicts itself, is no match but a reason.
package place

import (
	"net/netip"
	"slices"
	"strings"

	"thru/internal/measure"
)

// Subject is an end point, in the terms that a hypervisor may know.
type Subject struct {
	Name     string
	UUID     string   // of SMBIOS; empty: not known (only root reads it)
	MACs     []string // of its interfaces
	Addrs    []string // of its interfaces, and the addresses by which it was reached
	Via      string   // MAC of the interface that carries the test; empty: not known
	ViaAddrs []string // addresses of that interface, with prefix length
	Hostname string
	Inside   bool // in a container or a network namespace: none of its interfaces is the machine's own
}

// Of returns the subject of an end point's facts. route is its route to the other end, nil if that is not known;
// data are the addresses by which its peers reach it.
func Of(e measure.EndPoint, route *measure.Route, data []string) Subject {
	s := Subject{Name: e.Name, Addrs: slices.Clone(data)}
	f := e.Facts
	if f == nil {
		return s
	}
	s.Hostname = measure.Value(f.Hostname)
	if f.Machine != nil {
		s.UUID = f.Machine.UUID
	}
	via := carrier(f, route, data)
	s.Inside = len(f.Interfaces) > 0
	for k := range f.Interfaces {
		i := &f.Interfaces[k]
		s.Inside = s.Inside && !isOwn(i)
		if i.MAC != nil && *i.MAC != "" && !isGuestsEnd(i) {
			s.MACs = append(s.MACs, strings.ToLower(*i.MAC))
		}
		if i == via || !isInner(i) || shareAny(addresses(data), addresses(i.Addrs)) {
			s.Addrs = append(s.Addrs, i.Addrs...)
		}
	}
	if via != nil {
		s.ViaAddrs = via.Addrs
		if via.MAC != nil {
			s.Via = strings.ToLower(*via.MAC)
		}
	}
	return s
}

// isOwn reports whether it is an adapter of the machine itself, as far as its kind is known.
func isOwn(i *measure.Interface) bool {
	return i.Kind == nil && i.Name != "lo" || i.IsDevice()
}

// isGuestsEnd reports whether it is the host's end of a guest's adapter. A macvtap has the guest's own MAC
// address, and a bridge that of one of its taps.
func isGuestsEnd(i *measure.Interface) bool {
	return i.Kind != nil && slices.Contains([]string{"tun", "tap", "macvtap"}, *i.Kind)
}

// isInner reports whether it is an interface to networks inside a machine, whose addresses are the same on many
// machines: 172.17.0.1 of Docker, 192.168.122.1 of libvirt.
func isInner(i *measure.Interface) bool {
	return isLoopback(i) || isGuestsEnd(i) ||
		i.Kind != nil && slices.Contains([]string{"bridge", "dummy", "veth", "ifb", "vxlan", "geneve", "wireguard", "ipip", "sit", "gre", "gretap", "ip6tnl"}, *i.Kind)
}

// carrier returns the interface that carries a test: that of the route, else that of the data address, else the
// only one with a connection to others.
func carrier(f *measure.Facts, route *measure.Route, data []string) *measure.Interface {
	if route != nil {
		if i := f.Interface(route.Interface); i != nil && !isLoopback(i) {
			return i
		}
	}
	var only *measure.Interface
	n := 0
	for k := range f.Interfaces {
		i := &f.Interfaces[k]
		if shareAny(addresses(data), addresses(i.Addrs)) {
			return i
		}
		if len(addresses(i.Addrs)) > 0 {
			only = i
			n++
		}
	}
	if n == 1 {
		return only
	}
	return nil
}

func isLoopback(i *measure.Interface) bool { return i.Kind != nil && *i.Kind == "loopback" }

// addresses parses addresses with or without a prefix length or a zone, and omits those that many machines have:
// loopback, link-local, unspecified.
func addresses(texts []string) []netip.Addr {
	var all []netip.Addr
	for _, t := range texts {
		t, _, _ = strings.Cut(t, "/")
		a, err := netip.ParseAddr(strings.Trim(t, "[]"))
		if a = a.Unmap(); err == nil && a.IsGlobalUnicast() {
			all = append(all, a.WithZone(""))
		}
	}
	return all
}

// networks returns those of addresses with a prefix length.
func networks(texts []string) []netip.Prefix {
	var all []netip.Prefix
	for _, t := range texts {
		p, err := netip.ParsePrefix(t)
		if err == nil && p.Addr().Unmap().IsGlobalUnicast() && !p.IsSingleIP() {
			all = append(all, p.Masked())
		}
	}
	return all
}

func shareAny[T comparable](a, b []T) bool {
	return slices.ContainsFunc(a, func(x T) bool { return slices.Contains(b, x) })
}

// Wants returns filters of what may be one of the subjects, for a source's Inventory.
func Wants(all []Subject) (guests func(*measure.Guest) bool, hosts func(*measure.GuestHost) bool) {
	may := func(c candidate) bool {
		return slices.ContainsFunc(all, func(s Subject) bool { return s.claims(c).any() })
	}
	return func(g *measure.Guest) bool { return may(ofGuest(g)) }, func(h *measure.GuestHost) bool { return may(ofHost(h)) }
}
