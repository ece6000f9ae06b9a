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
			Cause: "asymmetric-route", TCP: true, UDP: true, Title: "the ways there and back differ", Judge: judgeAsymmetricRoute, Packets: packetsAsymmetricRoute,
			Seen:        "routers on the way or the size that passes differ between the directions; in captures of both ends: the time to live falls by more in one direction",
			Distinction: "each direction apart: it costs something where their rates differ", Fix: "look at the routes of both ends",
			Effect: "one direction has another delay, MTU and loss", Source: "RFC 7679, section 1.1; TTL of received packets", Tests: []string{diagnose.Captured},
		},
		Gates: []gate.Rule{
			{ID: "hops", Words: "ttl routers traceroute", Title: "Routers on the way", About: "how many routers each direction passes",
				Warns:  "the directions differ",
				Why:    "the way back may have another MTU, delay and loss than the way there: judge each direction apart",
				Source: "RFC 7679, section 1.1", Fix: "look at the routes of both ends", Checklist: []string{"C-04"}, Path: gateHops},
		},
	}
}

func judgeAsymmetricRoute(f *diagnose.Flow) *diagnose.Outcome {
	direction, back := f.Direction()
	if f.OnOneMachine() {
		return diagnose.No("no link lies between the ends")
	}
	if direction == nil || direction.Hops == nil || back.Hops == nil {
		return diagnose.Missing("routers on the way there and back", "the path was not probed, or its probe lacks them; `thru check` has all")
	}
	there, here := direction.MTU, back.MTU
	sizes := there != nil && here != nil && there.Bytes > 0 && here.Bytes > 0 && !there.Local && !here.Local &&
		(there.Bytes > here.Bytes+mtu.ClampBar || here.Bytes > there.Bytes+mtu.ClampBar)
	if *direction.Hops == *back.Hops && !sizes {
		return diagnose.No("routers on the way: %d there, %d back", *direction.Hops, *back.Hops)
	}
	o := diagnose.Likely("the ways there and back differ: %d routers against %d", *direction.Hops, *back.Hops)
	if *direction.Hops == *back.Hops {
		o = diagnose.Likely("the ways there and back differ: %d bytes pass there, %d back", there.Bytes, here.Bytes)
	}
	o.By(measure.Proof{EndPoint: f.Receiver.Name, Counter: "routers on the way there", Value: float64(*direction.Hops)},
		measure.Proof{EndPoint: f.Sender.Name, Counter: "routers on the way back", Value: float64(*back.Hops)}).
		AddFix(diagnose.Advise(nil, "look at the routes of both ends and of the routers between (traceroute from each end)"))
	reverse := reverse(f)
	bps, ok := f.Goodput()
	if reverse == nil || !ok || bps > 0.67*diagnose.RateOf(reverse) {
		return o.MarkNotBinding()
	}
	return o.By(measure.Proof{EndPoint: f.Sender.Name, Counter: "goodput of the other direction", Value: diagnose.RateOf(reverse), Unit: "bps"}).
		Costs(0, "the other direction carries "+unit.Rate(diagnose.RateOf(reverse)), "the same traffic the other way")
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
		return diagnose.No("no link lies between the ends")
	}
	if o := oneWayOnly(f); o != nil {
		return o
	}
	x := f.Crossing
	if x == nil {
		return diagnose.SecondCapture("routers on the way there and back", "one capture shows how far packets have come, not how far they go")
	}
	there, ok1 := diagnose.HopsBetween(x.Left, x.Right, func(c *measure.Connection) measure.Direction { return c.Data })
	back, ok2 := diagnose.HopsBetween(x.Right, x.Left, func(c *measure.Connection) measure.Direction { return c.Acks })
	switch {
	case !ok1 || !ok2:
		return diagnose.Missing("routers on the way there and back", "the time to live of packets does not tell: there are several, or a device sets it anew")
	case there == back:
		return diagnose.No("routers on the way: %d there, %d back", there, back)
	}
	return diagnose.Likely("the ways there and back differ: %d routers against %d", there, back).MarkNotBinding().
		By(x.Right.Proof("routers on the way there, by the time to live", float64(there), ""), x.Left.Proof("routers on the way back, by the time to live", float64(back), "")).
		AddFix(diagnose.Advise(nil, "look at the routes of both ends and of the routers between (traceroute from each end)"))
}

// oneWayOnly judges a capture between the ends that has one direction only; nil if there is none.
func oneWayOnly(f *diagnose.Flow) *diagnose.Outcome {
	s := f.CapturePoint(measure.AtPath, "")
	if s == nil || s.Data.Packets < diagnose.LeastSegments || s.Acks.Packets > 0 {
		return nil
	}
	return diagnose.Possible("the capture has one direction only: the other takes another way, or the port that copies packets copies one direction").MarkNotBinding().
		By(s.Proof("packets of the data", float64(s.Data.Packets), "packets", s.Main().FirstPacket), s.Proof("packets of its acknowledgements", 0, "packets")).
		Then("a capture at an end").AddFix(diagnose.Advise(nil, "look at the routes of both ends, and at what the port that copies packets is set to"))
}

func gateHops(sc *scene.Scene) *gate.Finding {
	p := sc.Subject.Path
	switch {
	case p.Forward.Hops == nil:
		return gate.Missing(sc, "routers on the way", "forward.hops", "forward")
	case p.Back.Hops == nil:
		return gate.Missing(sc, "routers on the way back", "back.hops", "back")
	case *p.Forward.Hops != *p.Back.Hops:
		return gate.Warn("routers on the way: %d there, %d back", *p.Forward.Hops, *p.Back.Hops)
	}
	if *p.Forward.Hops == 1 {
		return gate.Pass("1 router each way")
	}
	return gate.Pass("%d routers each way", *p.Forward.Hops)
}
