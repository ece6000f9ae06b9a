// Package route holds the causes of the route: bundles of links, asymmetric routes, proxies, tunnels.
package route

import (
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/mtu"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// AsymmetricRoute is the cause `asymmetric-route`.
func AsymmetricRoute() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "asymmetric-route", TCP: true, UDP: true, Title: "the two directions take different routes", Judge: judgeAsymmetricRoute, Packets: packetsAsymmetricRoute,
			Seen:        "the directions differ in the number of routers or in the packet size that passes; in captures of both ends: the TTL falls by more in one direction",
			Distinction: "a test of each direction: it limits the rate only if their rates differ", Fix: "compare the routes of both ends",
			Effect: "one direction has another delay, MTU and loss", Source: "RFC 7679, section 1.1; TTL of received packets", Tests: []string{diagnose.Captured},
		},
		Gates: []gate.Rule{
			{ID: "hops", Words: "ttl routers traceroute", Title: "Routers on the path", About: "how many routers each direction passes",
				Warns:  "the directions differ",
				Why:    "each direction may have its own MTU, delay and loss: judge each by itself",
				Source: "RFC 7679, section 1.1", Fix: "compare the routes of both ends", Checklist: []string{"C-04"}, Path: gateHops},
		},
	}
}

func judgeAsymmetricRoute(f *diagnose.Flow) *diagnose.Outcome {
	direction, back := f.Direction()
	if f.OnOneMachine() {
		return diagnose.No("both ends are on one host")
	}
	if direction == nil || direction.Hops == nil || back.Hops == nil {
		return diagnose.Missing("number of routers in each direction", "the path was not probed, or the probe did not read it; `thru check` does")
	}
	there, here := direction.MTU, back.MTU
	sizes := there != nil && here != nil && there.Bytes > 0 && here.Bytes > 0 && !there.Local && !here.Local &&
		(there.Bytes > here.Bytes+mtu.ClampBar || here.Bytes > there.Bytes+mtu.ClampBar)
	if *direction.Hops == *back.Hops && !sizes {
		return diagnose.No("routers on the path: %d forward, %d back", *direction.Hops, *back.Hops)
	}
	o := diagnose.Likely("the directions pass different numbers of routers: %d forward, %d back", *direction.Hops, *back.Hops)
	if *direction.Hops == *back.Hops {
		o = diagnose.Likely("the two directions take different routes: %d bytes pass forward, %d back", there.Bytes, here.Bytes)
	}
	o.By(measure.Proof{EndPoint: f.Receiver.Name, Counter: "routers forward", Value: float64(*direction.Hops)},
		measure.Proof{EndPoint: f.Sender.Name, Counter: "routers back", Value: float64(*back.Hops)}).
		AddFix(diagnose.Advise(nil, "compare the routes of both ends and of the routers between them (traceroute from each end)"))
	reverse := reverse(f)
	bps, ok := f.Goodput()
	if reverse == nil || !ok || bps > 0.67*diagnose.RateOf(reverse) {
		return o.MarkNotBinding()
	}
	return o.By(measure.Proof{EndPoint: f.Sender.Name, Counter: "goodput of the other direction", Value: diagnose.RateOf(reverse), Unit: "bps"}).
		Costs(0, "the other direction carries "+unit.Rate(diagnose.RateOf(reverse)), "the same traffic in the other direction")
}

// reverse returns the measured cell of the same traffic in the other direction; nil without one.
func reverse(f *diagnose.Flow) *measure.Cell {
	for i := range f.Doc.Cells {
		c := &f.Doc.Cells[i]
		if c.From == f.Cell.To && c.To == f.Cell.From && c.Protocol == f.Cell.Protocol && c.Streams == f.Cell.Streams && c.Experiment == f.Cell.Experiment && diagnose.RateOf(c) > 0 {
			return c
		}
	}
	return nil
}

func packetsAsymmetricRoute(f *diagnose.Flow) *diagnose.Outcome {
	if f.OnOneMachine() {
		return diagnose.No("both ends are on one host")
	}
	if o := oneWayOnly(f); o != nil {
		return o
	}
	x := f.Crossing
	if x == nil {
		return diagnose.SecondCapture("number of routers in each direction", "one capture shows how many routers packets have passed, not how many follow")
	}
	there, ok1 := diagnose.HopsBetween(x.Left, x.Right, func(c *measure.Connection) measure.Direction { return c.Data })
	back, ok2 := diagnose.HopsBetween(x.Right, x.Left, func(c *measure.Connection) measure.Direction { return c.Acks })
	switch {
	case !ok1 || !ok2:
		return diagnose.Missing("number of routers in each direction", "the TTL of the packets does not show it: it varies, or a device rewrites it")
	case there == back:
		return diagnose.No("routers on the path: %d forward, %d back", there, back)
	}
	return diagnose.Likely("the directions pass different numbers of routers: %d forward, %d back", there, back).MarkNotBinding().
		By(x.Right.Proof("routers forward, by the TTL", float64(there), ""), x.Left.Proof("routers back, by the TTL", float64(back), "")).
		AddFix(diagnose.Advise(nil, "compare the routes of both ends and of the routers between them (traceroute from each end)"))
}

// oneWayOnly judges a capture between the ends that has one direction only; nil if there is none.
func oneWayOnly(f *diagnose.Flow) *diagnose.Outcome {
	s := f.CapturePoint(measure.AtPath, "")
	if s == nil || s.Data.Packets < diagnose.LeastSegments || s.Acks.Packets > 0 {
		return nil
	}
	return diagnose.Possible("the capture has only one direction: the other takes another route, or the mirror port copies only one direction").MarkNotBinding().
		By(s.Proof("packets of the data", float64(s.Data.Packets), "packets", s.Main().FirstPacket), s.Proof("packets of the acknowledgements", 0, "packets")).
		Then("a capture at an end").AddFix(diagnose.Advise(nil, "check the routes of both ends, and which directions the mirror port copies"))
}

func gateHops(sc *scene.Scene) *gate.Finding {
	p := sc.Subject.Path
	switch {
	case p.Forward.Hops == nil:
		return gate.Missing(sc, "routers on the path", "forward.hops", "forward")
	case p.Back.Hops == nil:
		return gate.Missing(sc, "routers back", "back.hops", "back")
	case *p.Forward.Hops != *p.Back.Hops:
		return gate.Warn("routers on the path: %d forward, %d back", *p.Forward.Hops, *p.Back.Hops)
	}
	if *p.Forward.Hops == 1 {
		return gate.Pass("1 router in each direction")
	}
	return gate.Pass("%d routers in each direction", *p.Forward.Hops)
}
