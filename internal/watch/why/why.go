// Package why names the causes of a packet size or delay that changed, which no test of a rate shows: the interface or router that passes less, a
// queue, a longer route, a longer path. Their ids belong to watches only; docs/watch.md lists them.
package why

import (
	"fmt"
	"time"

	"thru/internal/measure"
	"thru/internal/unit"
	"thru/internal/watch/record"
)

// The causes.
const (
	InterfaceMTU = "interface-mtu" // the interface of an end has a smaller MTU
	HopMTU       = "hop-mtu"       // a router passes less, and reports it
	SilentMTU    = "mtu-black-hole"
	Queue        = "queue"        // packets wait for other traffic
	LongerRoute  = "longer-route" // packets pass another number of routers
	LongerPath   = "longer-path"  // each packet takes longer, by as many routers as before
)

const (
	vlanTag   = 4             // bytes that an interface may pass beyond its MTU
	half      = 0.5           // of a rise: below it, a round trip is as short as before
	calm      = 0.25          // of a rise: within it nine of ten idle round trips are equal, so that no queue grows and shrinks
	alongside = 2 * time.Hour // between a change of the route and that of the delay: the latter is dated by means of 20 minutes
)

// Findings returns the causes of the changed packet size and delay of a pair, by a probe of its path after that; nil: none was made. Changes also has
// those of the route.
func Findings(changes []record.Change, p *measure.Path) (all []measure.Finding) {
	if p == nil {
		return nil
	}
	for _, c := range changes {
		switch c.Metric {
		case record.MTU:
			for _, d := range []direction{{p.From, p.To, &p.Forward, &p.Back}, {p.To, p.From, &p.Back, &p.Forward}} {
				if f := size(c, d); f != nil {
					all = append(all, *f)
					break // a probe passes both ways: one of them explains it
				}
			}
		case record.RTTMedian:
			if f := delay(c, changes, p); f != nil {
				all = append(all, *f)
			}
		}
	}
	return all
}

// direction is a direction of a probed path, and the other one.
type direction struct {
	from, to    string
	there, back *measure.DirectionFacts
}

// size returns why a direction passes less; nil if it passes what passed before.
func size(c record.Change, d direction) *measure.Finding {
	m, before := d.there.MTU, int(c.Before)
	if m == nil || m.Bytes <= 0 || m.Bytes >= before {
		return nil
	}
	f := &measure.Finding{
		Cause: HopMTU, Confidence: measure.Certain, Where: measure.Where{Place: measure.AtPath, From: d.from, To: d.to},
		Evidence: []measure.Proof{{EndPoint: d.from, Counter: "largest packet that passes with DF", Value: float64(m.Bytes), Unit: "bytes", Threshold: &c.Before}},
	}
	switch back := d.back.MTU; {
	case m.Local || m.Claimed <= m.Bytes:
		atInterface(f, d.from, measure.AtSender, d.there.Route, m.Claimed, before)
	case m.Router != nil && m.RouterAddr != "":
		f.Summary = fmt.Sprintf("the router %s passes packets of at most %d bytes, and reports it (ICMP); before, %d bytes passed", m.RouterAddr, *m.Router, before)
		f.Fix = &measure.Fix{Advice: fmt.Sprintf("find out which link of %s has changed (interface, tunnel, provider), and set its MTU to %d again", m.RouterAddr, before)}
	case back != nil && back.Claimed > 0 && back.Claimed+vlanTag >= m.Bytes && back.Claimed < before:
		atInterface(f, d.to, measure.AtReceiver, d.back.Route, back.Claimed, before)
	case m.Router != nil:
		f.Summary = fmt.Sprintf("a router passes packets of at most %d bytes, and has reported it (ICMP); before, %d bytes passed", *m.Router, before)
	default:
		f.Cause = SilentMTU
		f.Summary = fmt.Sprintf("packets above %d bytes are dropped silently: a switch or tunnel has a smaller MTU, or a firewall drops ICMP; before, %d bytes passed", m.Bytes, before)
		f.Fix = &measure.Fix{Advice: "compare the MTU of all switches, tunnels and virtual switches between with that of both ends, and let ICMP pass"}
	}
	return f
}

// atInterface makes it a finding about an interface.
func atInterface(f *measure.Finding, end, place string, r *measure.Route, mtu, before int) {
	name := measure.Value(r).Interface
	f.Cause, f.Where.Place, f.Where.EndPoint, f.Where.Interface = InterfaceMTU, place, end, name
	f.Summary = fmt.Sprintf("the interface %s of %s, or its route, has MTU %d; before, %d bytes passed", name, end, mtu, before)
	f.Fix = &measure.Fix{EndPoint: end, Advice: fmt.Sprintf("set MTU %d at %s again, or the smaller one at all ends", before, name)}
}

// delay returns why round trips take longer; nil if the path has none, or they are as short as before.
func delay(c record.Change, changes []record.Change, p *measure.Path) *measure.Finding {
	r, rise := p.RTT, c.After-c.Before
	if r == nil || r.Samples == 0 || rise <= 0 {
		return nil
	}
	bar := c.Before + half*rise
	least := unit.Duration(r.Min)
	f := &measure.Finding{
		Where: measure.Where{Place: measure.AtPath, From: c.From, To: c.To}, Confidence: measure.Likely,
		Evidence: []measure.Proof{{EndPoint: p.From, Counter: "rtt_idle.min_ns", Value: float64(r.Min), Unit: "ns", Threshold: &bar, Above: true}, {EndPoint: p.From, Counter: "rtt_idle.p90_ns", Value: float64(r.P90), Unit: "ns"}},
	}
	route := fmt.Sprintf("the shortest of %d round trips takes %s without a test; the median was %s before", r.Samples, least, unit.Duration(int64(c.Before)))
	switch moved := routeChange(c, changes); {
	case float64(r.Min) < bar && float64(r.P50) < bar:
		f.Cause, f.Confidence, f.Evidence[0].Above = Queue, measure.Possible, false
		f.Summary = fmt.Sprintf("the path is as short as before at the moment (%s): packets waited in a queue of other traffic, which has ended", least)
	case float64(r.Min) < bar:
		f.Cause, f.Evidence[0].Above = Queue, false
		f.Summary = fmt.Sprintf("packets wait in a queue of other traffic: the shortest round trip takes %s, as before, half of them more than %s", least, unit.Duration(r.P50))
		f.Fix = &measure.Fix{Advice: "find who fills the link (its counters, flow records), limit it, or give the queue an AQM such as fq_codel"}
	case moved != nil:
		f.Cause, f.Confidence = LongerRoute, measure.Certain
		f.Summary = fmt.Sprintf("packets take another route, with %s instead of %s: %s", unit.Plural(int(moved.After), "router"), unit.Count(int64(moved.Before)), route)
		f.Fix = &measure.Fix{Advice: "compare the route with that before (routing protocol, provider, VPN)"}
	default:
		f.Cause, f.Fix = LongerPath, &measure.Fix{Advice: "ask the provider about another line, and look for a device or tunnel that was put between"}
		f.Summary = fmt.Sprintf("the path itself is longer, not a queue: %s", route)
		if hops := p.Forward.Hops; hops != nil {
			f.Summary += fmt.Sprintf("; %s as before", unit.Plural(*hops, "router"))
		}
		if float64(r.P90-r.Min) > calm*rise || p.Forward.Hops == nil {
			f.Confidence = measure.Possible // a queue that never empties, or a route that nobody knows
		}
	}
	return f
}

// routeChange returns the change of the route that came with that of the delay; nil: none.
func routeChange(c record.Change, changes []record.Change) *record.Change {
	for i, x := range changes {
		if x.Metric == record.Hops && x.Since.After(c.Earliest.Add(-alongside)) && x.Since.Before(c.Latest.Add(alongside)) {
			return &changes[i]
		}
	}
	return nil
}
