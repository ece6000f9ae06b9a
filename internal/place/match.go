package place

import (
	"fmt"
	"net/netip"
	"strings"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// How an end point is identified (Placement.By).
const (
	byUUID    = "uuid"
	byMAC     = "mac"
	byAddress = "address"
)

// candidate is a guest or a host that may be a subject.
type candidate struct {
	in    *measure.Inventory
	guest *measure.Guest     // nil for a host
	host  *measure.GuestHost // nil for a guest
	uuid  string
	macs  []string
	addrs []netip.Addr
}

func ofGuest(g *measure.Guest) candidate {
	c := candidate{guest: g, uuid: g.UUID}
	var addrs []string // those of its adapters first: tools also report a container's bridge
	for _, n := range g.NICs {
		if n.MAC != nil {
			c.macs = append(c.macs, strings.ToLower(*n.MAC))
		}
		addrs = append(addrs, n.Addrs...)
	}
	c.addrs = addresses(append(addrs, g.Addrs...))
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
			if i.MAC != nil && !isGuestsEnd(&i) {
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

// name returns that of the guest or the host.
func (c candidate) name() string {
	if c.guest != nil {
		return c.guest.Name
	}
	return "the host " + c.host.Name
}

// runs returns false for a machine that cannot answer.
func (c candidate) runs() bool {
	return c.guest == nil || !c.guest.Template && (c.guest.Power == "" || c.guest.Power == "on")
}

// claim is the evidence for a candidate, and against it.
type claim struct {
	uuid, mac, addr      bool
	otherUUID, otherMACs bool // both sides report theirs, and they differ
}

func (k claim) any() bool { return k.uuid || k.mac || k.addr }

// claims compares a subject with a candidate.
func (s Subject) claims(c candidate) claim {
	k := claim{uuid: measure.SameUUID(s.UUID, c.uuid), mac: shareAny(s.MACs, c.macs), addr: shareAny(addresses(s.Addrs), c.addrs)}
	k.otherUUID = !k.uuid && measure.UUID(s.UUID) != "" && measure.UUID(c.uuid) != ""
	k.otherMACs = !k.mac && len(s.MACs) > 0 && len(c.macs) > 0
	return k
}

// strength orders claims: a MAC address belongs to one adapter, a UUID is copied to clones, and addresses are the
// same in many private networks.
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

// contradicted returns why a claim cannot hold, "" if it may. Different UUIDs mean different machines. An address
// alone is not enough if the adapters differ.
func (k claim) contradicted() string {
	switch {
	case k.otherUUID && k.mac:
		return "it has a MAC address of %s, but a different UUID"
	case k.otherUUID:
		return "it has the address of %s, but a different UUID"
	case k.addr && !k.uuid && k.otherMACs:
		return "it has the address of %s, but different MAC addresses"
	}
	return ""
}

// by lists the evidence of a claim.
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

// found is a candidate with evidence.
type found struct {
	candidate
	claim
}

// Match finds the guest or host that a subject is; nil if that is not known, and why.
func Match(s Subject, all []measure.Inventory) (*measure.Placement, string) {
	candidates, doubt := s.search(all)
	best, rivals := strongest(candidates)
	switch {
	case best == nil && doubt != "":
		return nil, doubt
	case best == nil:
		return nil, s.notFound(all)
	case len(rivals) > 0:
		return nil, fmt.Sprintf("%s matches %s equally (by %s)", s.Name, names(append([]found{*best}, rivals...)), strings.Join(best.by(), " and "))
	}
	if best.claim.uuid && best.otherMACs && !s.Inside { // a copy, or a restored one, keeps the UUID
		return nil, fmt.Sprintf("it has the UUID of %s in %s, but different MAC addresses: one may be a copy of the other", best.name(), best.in.Source)
	}
	for _, c := range candidates {
		if !best.claim.uuid && c.claim.uuid && !same(*best, c) {
			return nil, fmt.Sprintf("it has the UUID of %s, but the MAC address of %s", c.name(), best.name())
		}
	}
	return s.placement(*best), ""
}

// search lists the possible candidates, and why the strongest of the others is impossible.
func (s Subject) search(all []measure.Inventory) (may []found, doubt string) {
	most := 0
	doubted := func(k claim, format string, words ...any) {
		if k.strength() > most {
			most, doubt = k.strength(), fmt.Sprintf(format, words...)
		}
	}
	consider := func(c candidate) {
		k := s.claims(c)
		if !k.any() {
			return
		}
		switch why := k.contradicted(); {
		case why != "":
			doubted(k, why, c.name()+" in "+c.in.Source)
		case !c.runs():
			doubted(k, "%s in %s has its %s, but does not run", c.name(), c.in.Source, inWords(k))
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
	return may, doubt
}

// inWords words the strongest evidence of a claim.
func inWords(k claim) string {
	switch {
	case k.mac:
		return "MAC address"
	case k.uuid:
		return "UUID"
	}
	return "address"
}

// strongest returns the candidate with the strongest evidence, and those with equally strong evidence. A machine
// that two sources report is one: the source queried first counts.
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

// same reports whether two sources report the same machine, such as a vCenter and one of its hosts.
func same(a, b found) bool {
	if a.in == b.in {
		return a.guest == b.guest && a.host == b.host
	}
	return (a.guest == nil) == (b.guest == nil) && measure.SameUUID(a.candidate.uuid, b.candidate.uuid) && shareAny(a.macs, b.macs)
}

// names lists candidates, the first few.
func names(all []found) string {
	out := unit.Mapped(all, func(c found) string { return c.name() + " (" + c.in.Source + ")" })
	if more := len(out) - 3; more > 0 {
		out = append(out[:3], fmt.Sprintf("%d more", more))
	}
	return fault.And(out)
}

// notFound words where it was not found, and by what it was searched.
func (s Subject) notFound(all []measure.Inventory) string {
	var by []string
	for _, x := range []struct {
		reported bool
		name     string
	}{{s.UUID != "", "UUID"}, {len(s.MACs) > 0, "MAC address"}, {len(addresses(s.Addrs)) > 0, "IP address"}} {
		if x.reported {
			by = append(by, x.name)
		}
	}
	switch {
	case len(all) == 0:
		return "no hypervisor was queried"
	case len(by) == 0:
		return "it reports no UUID, MAC address or IP address to identify it"
	}
	last := by[len(by)-1]
	if len(by) > 1 {
		last = strings.Join(by[:len(by)-1], ", ") + " or " + last
	}
	why := fmt.Sprintf("no virtual machine or host of %s has its %s", strings.Join(sources(all), ", "), last)
	if s.UUID == "" {
		why += " (its UUID is not known: only root can read it, if the machine has one)"
	}
	return why
}
