package place

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"thru/internal/measure"
)

// By what an end point is known (Placement.By).
const (
	byUUID    = "uuid"
	byMAC     = "mac"
	byAddress = "address"
)

// candidate is a guest or a host that may be a subject.
type candidate struct {
	in    *measure.Inventory
	guest *measure.Guest     // nil of a host
	host  *measure.GuestHost // nil of a guest
	uuid  string
	macs  []string
	addrs []netip.Addr
}

func ofGuest(g *measure.Guest) candidate {
	c := candidate{guest: g, uuid: g.UUID}
	addrs := slices.Clone(g.Addrs)
	for _, n := range g.NICs {
		if n.MAC != nil {
			c.macs = append(c.macs, strings.ToLower(*n.MAC))
		}
		addrs = append(addrs, n.Addrs...)
	}
	c.addrs = addresses(addrs)
	return c
}

func ofHost(h *measure.GuestHost) candidate {
	c := candidate{host: h, uuid: h.UUID}
	var addrs []string
	for _, p := range h.Ports {
		if p.MAC != nil {
			c.macs = append(c.macs, strings.ToLower(*p.MAC))
		}
		addrs = append(addrs, p.Addrs...)
	}
	if h.Facts != nil {
		for _, i := range h.Facts.Interfaces {
			if i.MAC != nil && (i.Kind == nil || *i.Kind != "tun" && *i.Kind != "tap") { // a tap is a guest's other end
				c.macs = append(c.macs, strings.ToLower(*i.MAC))
			}
			addrs = append(addrs, i.Addrs...)
		}
		if m := h.Facts.Machine; m != nil && c.uuid == "" {
			c.uuid = m.UUID
		}
	}
	c.addrs = addresses(addrs)
	return c
}

// name of the guest or the host.
func (c candidate) name() string {
	if c.guest != nil {
		return c.guest.Name
	}
	return "the host " + c.host.Name
}

// runs is false of what can answer to nobody.
func (c candidate) runs() bool {
	return c.guest == nil || !c.guest.Template && (c.guest.Power == "" || c.guest.Power == "on")
}

// claim is what speaks for a candidate, and what against it.
type claim struct {
	uuid, mac, addr      bool
	otherUUID, otherMACs bool // both sides tell theirs, and they differ
}

func (k claim) any() bool { return k.uuid || k.mac || k.addr }

// claims compares a subject with a candidate.
func (s Subject) claims(c candidate) claim {
	k := claim{uuid: measure.SameUUID(s.UUID, c.uuid), mac: shareAny(s.MACs, c.macs), addr: shareAny(addresses(s.Addrs), c.addrs)}
	k.otherUUID = !k.uuid && measure.UUID(s.UUID) != "" && measure.UUID(c.uuid) != ""
	k.otherMACs = !k.mac && len(s.MACs) > 0 && len(c.macs) > 0
	return k
}

// strength orders claims: a MAC is of one adapter, a UUID is cloned along, and
// addresses are the same in many private networks.
func (k claim) strength() int {
	n := 0
	for _, x := range []struct {
		holds bool
		worth int
	}{{k.mac, 4}, {k.uuid, 2}, {k.addr, 1}} {
		if x.holds {
			n += x.worth
		}
	}
	return n
}

// contradicted says why a claim cannot hold, "" where it may. Two UUIDs are two
// machines. An address alone is not enough where the adapters are others.
func (k claim) contradicted() string {
	switch {
	case k.otherUUID && k.mac:
		return "a MAC address of it is that of %s, whose UUID is another"
	case k.otherUUID:
		return "its address is that of %s, whose UUID is another"
	case k.addr && !k.uuid && k.otherMACs:
		return "its address is that of %s, whose MAC addresses are others"
	}
	return ""
}

// by lists what a claim rests on.
func (k claim) by() (all []string) {
	for _, x := range []struct {
		holds bool
		name  string
	}{{k.uuid, byUUID}, {k.mac, byMAC}, {k.addr, byAddress}} {
		if x.holds {
			all = append(all, x.name)
		}
	}
	return all
}

// found is a candidate that something speaks for.
type found struct {
	candidate
	claim
}

// Match finds the guest or host that a subject is; nil where that is not known,
// and why.
func Match(s Subject, all []measure.Inventory) (*measure.Placement, string) {
	candidates, doubts := s.search(all)
	best, rivals := strongest(candidates)
	switch {
	case best == nil && len(doubts) > 0:
		return nil, doubts[0]
	case best == nil:
		return nil, s.notFound(all)
	case len(rivals) > 0:
		return nil, fmt.Sprintf("%s fits %s alike (by %s)", s.Name, names(append([]found{*best}, rivals...)), strings.Join(best.by(), " and "))
	}
	for _, c := range candidates {
		if !best.claim.uuid && c.claim.uuid && !same(*best, c) {
			return nil, fmt.Sprintf("its UUID is that of %s, its MAC address that of %s", c.name(), best.name())
		}
	}
	return s.placement(*best), ""
}

// search lists what may be the subject, and says of what cannot why.
func (s Subject) search(all []measure.Inventory) (may []found, doubts []string) {
	consider := func(c candidate) {
		k := s.claims(c)
		if !k.any() {
			return
		}
		switch why := k.contradicted(); {
		case why != "":
			doubts = append(doubts, fmt.Sprintf(why, c.name()+" in "+c.in.Source))
		case !c.runs():
			doubts = append(doubts, fmt.Sprintf("%s in %s has its %s, and does not run", c.name(), c.in.Source, inWords(k)))
		default:
			may = append(may, found{c, k})
		}
	}
	for n := range all {
		for i := range all[n].Guests {
			c := ofGuest(&all[n].Guests[i])
			c.in = &all[n]
			consider(c)
		}
		for i := range all[n].Hosts {
			c := ofHost(&all[n].Hosts[i])
			c.in = &all[n]
			consider(c)
		}
	}
	return may, doubts
}

// inWords is the strongest thing that a claim rests on.
func inWords(k claim) string {
	switch {
	case k.mac:
		return "MAC address"
	case k.uuid:
		return "UUID"
	}
	return "address"
}

// strongest is the candidate that most speaks for, and those for which as much
// does. A machine that two sources tell of is one: the first that was asked counts.
func strongest(all []found) (best *found, rivals []found) {
	for i := range all {
		c := all[i]
		switch {
		case best == nil || c.strength() > best.strength():
			best, rivals = &all[i], nil
		case c.strength() == best.strength() && !same(*best, c):
			rivals = append(rivals, c)
		}
	}
	return best, rivals
}

// same tells of one machine that two sources tell of, such as a vCenter and a
// host below it.
func same(a, b found) bool {
	if a.in == b.in {
		return a.guest == b.guest && a.host == b.host
	}
	return (a.guest == nil) == (b.guest == nil) && measure.SameUUID(a.candidate.uuid, b.candidate.uuid) && shareAny(a.macs, b.macs)
}

// names lists candidates, the first few.
func names(all []found) string {
	var out []string
	for _, c := range all {
		out = append(out, c.name()+" ("+c.in.Source+")")
	}
	if more := len(out) - 3; more > 0 {
		out = append(out[:3], fmt.Sprintf("%d more", more))
	}
	return strings.Join(out[:len(out)-1], ", ") + " and " + out[len(out)-1]
}

// notFound says where it is not.
func (s Subject) notFound(all []measure.Inventory) string {
	var sources []string
	for _, v := range all {
		sources = append(sources, v.Source)
	}
	why := "no virtual machine or host has its UUID, MAC address or address"
	switch {
	case s.UUID == "" && len(s.MACs) == 0 && len(addresses(s.Addrs)) == 0:
		why = "it tells no UUID, no MAC address and no address to know it by"
	case s.UUID == "":
		why = "no virtual machine or host has its MAC address or address (its UUID, which only root reads there, is not known)"
	}
	if len(sources) > 0 {
		why += ": " + strings.Join(sources, ", ")
	}
	return why
}
