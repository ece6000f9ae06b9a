package report

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/report/capture"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// maxPaths limits the paths of a page; the JSON document has all.
const maxPaths = 24

// newPaths returns a table for each path.
func newPaths(d *measure.Document) []doc.Pairs {
	var all []doc.Pairs
	for i := range d.Paths[:min(len(d.Paths), maxPaths)] {
		p := &d.Paths[i]
		t := doc.Pairs{Name: doc.Clean("Path " + p.From + " -> " + p.To)}
		if p.Cached {
			t.Name += " (cached from an earlier probe)"
		}
		for _, r := range []doc.Row{
			{Name: "address", Value: addressText(p)}, {Name: "route", Value: bothDirections(p, "route", routeText)}, {Name: "RTT, probes", Value: pathRTTText(p.RTT), Brief: true}, {Name: "MTU", Value: bothDirections(p, "mtu", mtuText), Brief: true},
			{Name: "TCP options", Value: handshakeText(p.Handshake)}, {Name: "hops", Value: bothDirections(p, "hops", hopsText)}, {Name: "UDP", Value: bothDirections(p, "udp", udpReachText)},
			{Name: "DSCP, ECN", Value: bothDirections(p, "dscp", marksText)}, {Name: "clocks", Value: clockText(p)}, {Name: "source ports", Value: portsText(p.Ports)},
		} {
			if r.Value != "" {
				r.Value = doc.Clean(r.Value)
				t.Rows = append(t.Rows, r)
			}
		}
		all = append(all, t)
	}
	return all
}

func addressText(p *measure.Path) string {
	if p.FromAddr == "" || p.ToAddr == "" {
		return ""
	}
	s := p.FromAddr + " -> " + p.ToAddr
	if p.SeenAs != "" && p.SeenAs != p.FromAddr {
		s += "; translated by NAT: the own address of " + p.From + " is " + p.SeenAs
	}
	return s
}

// bothDirections prints a fact of each direction, once if both are the same.
func bothDirections(p *measure.Path, fact string, print func(measure.DirectionFacts) string) string {
	one := func(direction string, w measure.DirectionFacts) string {
		s := print(w)
		for _, m := range p.Missing {
			if s == "" && m.Fact == direction+"."+fact {
				return "not checked (" + m.Why + ")"
			}
		}
		return s
	}
	there, back := one("forward", p.Forward), one("back", p.Back)
	switch {
	case there == "" && back == "":
		return ""
	case there == back:
		return there + ", both directions"
	case there == "":
		return "back: " + back
	case back == "":
		return "there: " + there
	}
	return "there: " + there + "; back: " + back
}

func routeText(w measure.DirectionFacts) string {
	if w.Route == nil {
		return ""
	}
	s := w.Route.Interface
	if w.Route.Gateway != "" {
		s += " via " + w.Route.Gateway
	}
	if hops := w.Route.NextHops; len(hops) > 1 {
		var names []string
		for _, n := range hops[:min(len(hops), result.MaxNamed)] {
			names = append(names, doc.Clean(n.String()))
		}
		if more := len(hops) - len(names); more > 0 {
			names = append(names, unit.Plural(more, "more next hop"))
		}
		s = fault.And(names) + ", chosen by " + hashText(w.Route.Hash)
	}
	if w.Route.MTU > 0 {
		s += fmt.Sprintf(" (MTU %d)", w.Route.MTU)
	}
	return s
}

// hashText words which fields select a next hop.
func hashText(policy string) string {
	switch policy {
	case "":
		return "an unknown hash"
	case measure.HashLayer3:
		return "addresses alone (" + policy + ")"
	case measure.HashLayer4:
		return "addresses and ports (" + policy + ")"
	}
	return doc.Clean(policy)
}

func pathRTTText(r *measure.PathRTT) string {
	if r == nil || r.Samples == 0 {
		return ""
	}
	return fmt.Sprintf("p50 %s, min %s, max %s, p99 %s, of %s between the programs", unit.Duration(r.P50), unit.Duration(r.Min), unit.Duration(r.Max), unit.Duration(r.P99), unit.Plural(r.Samples, "round trip"))
}

func mtuText(w measure.DirectionFacts) string {
	m := w.MTU
	if m == nil {
		return ""
	}
	s := fmt.Sprintf("%d bytes pass unfragmented", m.Bytes)
	switch {
	case m.Bytes >= m.Claimed:
		return s + ", the interface MTU"
	case m.Silent:
		s += fmt.Sprintf(" (interface MTU %d; larger packets are dropped without an ICMP error)", m.Claimed)
	case m.Router != nil:
		s += fmt.Sprintf(" (interface MTU %d; a router reports %d)", m.Claimed, *m.Router)
	default:
		s += fmt.Sprintf(" (interface MTU %d)", m.Claimed)
	}
	return s
}

func hopsText(w measure.DirectionFacts) string {
	if w.Hops == nil {
		return ""
	}
	return unit.Plural(*w.Hops, "router")
}

func udpReachText(w measure.DirectionFacts) string {
	u := w.UDP
	switch {
	case u == nil || u.Sent == 0:
		return ""
	case u.Got == 0:
		return "does not arrive"
	case u.Got >= u.Sent:
		return "arrives"
	}
	return fmt.Sprintf("%d of %d arrive", u.Got, u.Sent)
}

// marksText names the DSCP marks that change on the path.
func marksText(w measure.DirectionFacts) string {
	if len(w.Marks) == 0 {
		return ""
	}
	var changed []string
	for _, m := range w.Marks {
		if m.Sent != m.Seen {
			changed = append(changed, fmt.Sprintf("DSCP %d becomes %d", m.Sent, m.Seen))
		}
		if m.ECNSent != m.ECNSeen {
			changed = append(changed, fmt.Sprintf("ECN %d becomes %d", m.ECNSent, m.ECNSeen))
		}
	}
	if len(changed) == 0 {
		return "marks arrive unchanged"
	}
	slices.Sort(changed)
	return strings.Join(slices.Compact(changed), ", ")
}

// handshakeText prints the options once if both ends saw the same.
func handshakeText(h *measure.Handshake) string {
	if h == nil {
		return ""
	}
	syn, synack := optionsText(h.SYNSent, h.SYNSeen), optionsText(h.SYNACKSent, h.SYNACKSeen)
	switch {
	case syn == synack:
		return syn
	case syn == "" || synack == "":
		return syn + synack
	}
	return "SYN " + syn + "; SYN-ACK " + synack
}

// optionsText prints the options sent, and those received if they differ.
func optionsText(sent, seen *measure.SYN) string {
	a, b := capture.SynText(sent), capture.SynText(seen)
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	return a + " arrives as " + b
}

func clockText(p *measure.Path) string {
	c := p.Clock
	if c == nil {
		return ""
	}
	bound := unit.Duration(c.BoundNs)
	switch {
	case max(c.OffsetNs, -c.OffsetNs) <= c.BoundNs:
		return "equal within " + bound
	case c.OffsetNs > 0:
		return p.To + " is ahead by " + unit.Duration(c.OffsetNs) + ", ± " + bound
	}
	return p.To + " is behind by " + unit.Duration(-c.OffsetNs) + ", ± " + bound
}

func portsText(s *measure.SourcePorts) string {
	switch {
	case s == nil:
		return ""
	case s.Directions < 2:
		return fmt.Sprintf("%d tried, no difference", s.Ports)
	}
	var groups []string
	for _, g := range s.Groups {
		t := unit.Plural(len(g.Ports), "port") + " with " + unit.Duration(g.RTTNs)
		groups = append(groups, t+doc.Known(", %s", g.Hops, func(n int) string { return unit.Plural(n, "router") }))
	}
	return fmt.Sprintf("%d tried, %d paths by %s: %s", s.Ports, s.Directions, s.By, strings.Join(groups, "; "))
}
