package route

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"thru/internal/cause/gate"
	"thru/internal/measure"
)

// PathGates judge what lies between the ends, other than its MTU and TCP's options.
func PathGates() []gate.Rule {
	return []gate.Rule{
		{ID: "rtt-spread", Title: "Round trip of the idle path", About: "the distribution of small round trips, socket to socket",
			Warns:  "of 20 samples or more the 90th percentile is three times the median and 3 ms above it, or the 99th so and 10 ms",
			Why:    "a path that queues or sleeps while idle gives results that change from run to run",
			Source: "thru's own bound; RFC 6349, 3.3.1 wants the RTT first (C-15)", Remedy: "look for other traffic, Wi-Fi, a busy host or power saving",
			Cause: "noisy-neighbour", Checklist: []string{"C-15"}, Path: rttSpread},
		{ID: "udp-reach", Title: "UDP", About: "whether small datagrams arrive",
			Warns:  "none arrive, or fewer than nine of ten (of ten or more)",
			Why:    "tests of UDP and the search for the MTU need it; what loses small idle packets loses more under load",
			Source: "thru's own bound", Remedy: "let UDP to the data ports pass the firewalls", Cause: "loss", Checklist: []string{"C-33"}, Way: udpReach},
		{ID: "dscp", Title: "DSCP and ECN marks", About: "whether the marks of the IP header arrive as they were sent",
			Warns:  "a mark is cleared or changed (a mark of ECN that a queue turned into CE is not)",
			Why:    "a mark that is cleared on the way puts the traffic into another class than the one that is tested",
			Source: "RFC 2474, RFC 2597, RFC 3246, RFC 3168", Remedy: "trust the marks at every switch and router between", Checklist: []string{"C-33"}, Way: dscp},
		{ID: "hops", Title: "Routers on the way", About: "how many routers each direction passes",
			Warns:  "the directions differ",
			Why:    "the way back may have another MTU, delay and loss than the way there: judge each direction apart",
			Source: "RFC 7679, section 1.1", Remedy: "look at the routes of both ends", Cause: "asymmetric-route", Checklist: []string{"C-04"}, Path: hops},
		{ID: "several-ways", Title: "Several ways", About: "whether flows of different source ports differ in hops or delay (ECMP, link aggregation)",
			Warns:  "they do; or an end has several next hops and chooses among them by addresses alone",
			Why:    "one flow never exceeds one member: a single connection cannot show what all ways together carry",
			Source: "A-09; IEEE 802.1AX, 5.2.4", Remedy: "test with many connections as well as with one; hashing by port", Cause: "lag-one-member", Checklist: []string{"A-09", "C-35"}, Path: severalWays},
		{ID: "tcp-proxy", Title: "End of TCP", About: "the round trip of the handshake against that of data",
			Warns:  "the handshake takes less than half of it, and 1 ms less: somebody nearer answers in the other end's name",
			Why:    "a box that ends TCP between is what gets measured, with its buffers and its CPU",
			Source: "RFC 3135 (split connections)", Remedy: "bypass it", Cause: "tcp-proxy", Checklist: []string{"C-16"}, Path: tcpProxy},
	}
}

func rttSpread(sc *gate.Scene) *gate.Finding {
	r := sc.Subject.Path.RTT
	if r == nil || r.P50 <= 0 {
		return sc.Missing("round trip of the idle path", "rtt_idle")
	}
	switch {
	case r.Samples < 20:
	case r.P90 > 3*r.P50 && r.P90-r.P50 > 3e6:
		return gate.Warn("median %s, but 1 of 10 takes more than %s (%d round trips)", gate.Span(r.P50), gate.Span(r.P90), r.Samples)
	case r.P99 > 3*r.P50 && r.P99-r.P50 > 10e6:
		return gate.Warn("median %s, but 1 of 100 takes more than %s (%d round trips)", gate.Span(r.P50), gate.Span(r.P99), r.Samples)
	}
	return gate.Pass("median %s, 99 of 100 within %s", gate.Span(r.P50), gate.Span(r.P99))
}

func udpReach(w *gate.Way) *gate.Finding {
	u := w.UDP
	switch {
	case u == nil || u.Sent <= 0:
		return w.Missing("whether UDP arrives", "udp")
	case u.Got <= 0:
		return gate.Warn("none of %d datagrams arrived", u.Sent).
			Because("tests of UDP cannot run this way; TCP can").Do(gate.Advise(gate.Command("let UDP to the data ports of %s pass the firewalls", gate.EndName(w.To))))
	case u.Sent >= 10 && float64(u.Got) < 0.9*float64(u.Sent):
		return gate.Warn("%d of %d small datagrams arrived", u.Got, u.Sent).
			Do(gate.Advise("look for a firewall that limits the rate of UDP, and for loss: `thru test -u --search` finds the rate that passes"))
	}
	return gate.Pass("%d of %d datagrams arrived", min(u.Got, u.Sent), u.Sent)
}

func hops(sc *gate.Scene) *gate.Finding {
	p := sc.Subject.Path
	switch {
	case p.Forward.Hops == nil:
		return sc.Missing("routers on the way", "forward.hops", "forward")
	case p.Back.Hops == nil:
		return sc.Missing("routers on the way back", "back.hops", "back")
	case *p.Forward.Hops != *p.Back.Hops:
		return gate.Warn("routers on the way: %d there, %d back", *p.Forward.Hops, *p.Back.Hops)
	}
	if *p.Forward.Hops == 1 {
		return gate.Pass("1 router each way")
	}
	return gate.Pass("%d routers each way", *p.Forward.Hops)
}

func severalWays(sc *gate.Scene) *gate.Finding {
	p := sc.Subject.Path
	hops := ""
	for _, w := range []struct {
		from, to string
		route    *measure.Route
	}{{p.From, p.To, p.Forward.Route}, {p.To, p.From, p.Back.Route}} {
		if w.route == nil || len(w.route.NextHops) < 2 {
			continue
		}
		said := fmt.Sprintf("%s has %d next hops towards %s (%s)", w.from, len(w.route.NextHops), w.to, nextHopsText(w.route.NextHops))
		if h := sc.Host(w.from); h != nil && w.route.Hash == measure.HashLayer3 {
			return gate.Warn("%s, chosen by addresses alone", said).Because("all flows between these ends take one of them").
				Do(gate.At(h, gate.Commands("flows of all programs may take another next hop than before", gate.Command("sysctl -w %s=1", hashPolicy(p))).Saying("let it choose by port too")))
		}
		hops += "; " + said
	}
	switch s := p.Ports; {
	case s == nil || s.Ports <= 0:
		return sc.Missing("whether source ports take different ways", "source_ports")
	case s.Ways > 1:
		return gate.Warn("flows may take %d ways, by their source port (seen in %s%s)%s", s.Ways, s.By, groupsText(s.Groups), hops).
			Do(gate.Advise("test with many connections as well as with one: thru test -P 16, and -P 1"))
	default:
		return gate.Pass("%d source ports show no different ways%s", s.Ports, hops)
	}
}

// hashPolicy is the sysctl that says by what a next hop is chosen, of the path's family.
func hashPolicy(p *measure.Path) string {
	if a, err := netip.ParseAddr(p.ToAddr); err == nil && a.Unmap().Is6() {
		return "net.ipv6.fib_multipath_hash_policy"
	}
	return "net.ipv4.fib_multipath_hash_policy"
}

// nextHopsText names them: "10.0.0.1 by eth0, 10.0.1.1 by eth1".
func nextHopsText(all []measure.NextHop) string {
	var names []string
	for _, n := range all {
		name := n.Interface
		if n.Gateway != "" {
			name = n.Gateway + " by " + n.Interface
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// groupsText names the source ports that go each way.
func groupsText(groups []measure.PortGroup) (s string) {
	for _, g := range groups {
		var ports []string
		for _, p := range g.Ports {
			ports = append(ports, strconv.Itoa(p))
		}
		s += "; " + strings.Join(ports, " ") + " in " + gate.Span(g.RTTNs)
	}
	return s
}

func tcpProxy(sc *gate.Scene) *gate.Finding {
	p := sc.Subject.Path
	if p.Handshake == nil || p.Handshake.RTTNs == nil || p.RTT == nil || p.RTT.Min <= 0 || *p.Handshake.RTTNs <= 0 {
		return nil
	}
	hs := *p.Handshake.RTTNs
	if hs < p.RTT.Min/2 && p.RTT.Min-hs > 1e6 {
		return gate.Warn("the handshake took %s, data takes %s at least", gate.Span(hs), gate.Span(p.RTT.Min))
	}
	return gate.Pass("the handshake took %s, data takes %s at least", gate.Span(hs), gate.Span(p.RTT.Min))
}
