package nic

import (
	"fmt"

	"thru/internal/cause/below"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/loss"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// LinkCauses are the causes of a link: that it is full, slower than it could
// be, or damaged.
func LinkCauses() []diagnose.Rule {
	return []diagnose.Rule{
		{
			Cause: diagnose.LinkFull, TCP: true, UDP: true, Title: "the link is full", Judge: linkRate,
			Seen:  "goodput is 95% or more of what the link's known rate carries at this MTU",
			Apart: "a rate that is not known proves nothing: then a plateau is a shaper", Mends: "nothing: it counts as healthy",
			Effect: "9.41 Gb/s is all that 10 Gb/s carry at MTU 1500", Source: "methods.md, formula 4",
		},
		{
			Cause: "link-negotiated-low", TCP: true, UDP: true, Title: "the link runs slower than it could", Judge: negotiatedLow,
			Seen:  "the interface has negotiated less than it and its partner can, or than --link-rate says",
			Apart: "it costs something where the link is full at its speed", Mends: "cable, optics, autonegotiation at both ends",
			Effect: "1 of 10 Gb/s", Source: "ethtool(8); IEEE 802.3, clause 28", Brings: []string{"link-rate", "shaper"},
		},
		{
			Cause: "duplex", TCP: true, UDP: true, Title: "the link sends or receives, never both", Judge: halfDuplex,
			Seen: "the interface is half duplex", Apart: "collisions that were counted in this run", Mends: "autonegotiation at both ends, never at one",
			Effect: "often less than a tenth of the rate", Source: "IEEE 802.3, clause 4; ethtool(8)", Brings: []string{"loss", "bad-link"},
		},
		{
			Cause: "bad-link", TCP: true, UDP: true, Title: "packets arrive damaged", Judge: badLink,
			Seen:  "counters of checksum, symbol or uncorrectable errors rose in this run",
			Apart: "ten or more, about as many as were sent again, and the rate is what such a loss leaves: a counter of the host is of all its traffic", Mends: "clean or replace cable and optics",
			Effect: "as loss does: 20 of 189 Mb/s at 0.1% and 20 ms", Source: "if_link.h, rx_crc_errors; ethtool -S", Brings: []string{"loss"},
		},
		{
			Cause: "pause-frames", TCP: true, UDP: true, Title: "the link is stopped by pause frames", Judge: pauseFrames,
			Seen:  "pause frames came to the sender, or left the receiver, in this run",
			Apart: "nothing is lost; how long the link stood still, where the driver counts it", Mends: "mend what is slow behind the port: a receiver, or a full switch",
			Effect: "all flows of that port wait for the slowest", Source: "IEEE 802.3, annex 31B; ethtool -S",
		},
		{
			Cause: "pcie", TCP: true, UDP: true, Title: "the slot carries less than the port", Judge: slotTooSlow,
			Seen:  "what the slot's lanes carry is less than the port's speed",
			Apart: "goodput is all that the slot carries", Mends: "a slot with more lanes or of a newer generation",
			Effect: "6.9 of 10 Gb/s by PCIe 1.0 x4", Source: "PCI Express Base Specification; methods.md, formula 7",
		},
	}
}

// Bars of the link rules, in percent of the ceiling.
const (
	BeyondBar = stat.AboveCeilingPct // beyond it an assumption is wrong
)

func linkRate(f *diagnose.Flow) *diagnose.Outcome {
	share, ok := f.CeilingShare()
	bps, known := f.Goodput()
	switch {
	case f.OnOneMachine():
		return diagnose.No("no link lies between the ends")
	case !ok || !known:
		return diagnose.Missing("the rate of the link", "no interface tells it; --link-rate states it")
	case stat.AboveCeiling(f.Cell):
		return diagnose.No("%s of what it could carry: an assumption is wrong", unit.Percent(share))
	case f.Cell.Spec.Rate > 0 && float64(f.Cell.Spec.Rate) < f.Cell.Ceiling.Bps:
		return diagnose.No("%s was asked for, less than it carries", unit.Rate(float64(f.Cell.Spec.Rate)))
	case share >= diagnose.LinkFullBar && share > f.Cell.Ceiling.SharePct:
		return asFull(f, diagnose.Certain("the link is full: the flows that share it carry %s of what %s carry at MTU %d together", unit.Percent(min(share, 100)), unit.Rate(float64(f.Cell.Ceiling.LinkBps)), f.Cell.Ceiling.MTU), share)
	case share >= diagnose.LinkFullBar:
		return asFull(f, diagnose.Certain("the link is full: %s of what %s carry at MTU %d", unit.Percent(min(share, 100)), unit.Rate(float64(f.Cell.Ceiling.LinkBps)), f.Cell.Ceiling.MTU), share)
	}
	s, over := f.Surplus()
	if share = max(share, loss.SettledShare(f)); share >= diagnose.NearBar && (f.HasQueue() || over && s.Capacity > diagnose.NearBar/100*f.Cell.Ceiling.Bps) {
		return asFull(f, diagnose.Likely("the link is all but full: %s of what %s carry at MTU %d", unit.Percent(min(share, 100)), unit.Rate(float64(f.Cell.Ceiling.LinkBps)), f.Cell.Ceiling.MTU), share).
			Then("whether headers of a VLAN or a tunnel take the rest")
	}
	return diagnose.No("%s is %s of what it can carry", unit.Rate(bps), unit.Percent(share))
}

func asFull(f *diagnose.Flow, o *diagnose.Outcome, share float64) *diagnose.Outcome {
	c := f.Cell.Ceiling
	return o.Well().At(measure.Where{Place: measure.AtPath}).
		By(diagnose.Above(measure.Proof{Counter: "goodput of the ceiling", Value: share, Unit: "pct", SpanNs: f.Receiver.Span(), Note: "link rate: " + c.LinkFrom}, diagnose.NearBar)).
		Costs(c.Bps, unit.Rate(c.Bps)+" is all that the link carries", fmt.Sprintf("%s at MTU %d, %s", unit.Rate(float64(c.LinkBps)), c.MTU, c.LinkLayer))
}

// eachPort judges the interfaces with a wire of both ends, until one holds.
// clear is what is said where none does; without a wire there is nothing to judge.
func eachPort(f *diagnose.Flow, fact string, clear string, judge func(e *diagnose.End, i *measure.Interface) *diagnose.Outcome) *diagnose.Outcome {
	var open *diagnose.Outcome
	wires := 0
	for _, e := range f.Ends() {
		for _, i := range e.Ports() {
			wires++
			o := judge(e, i)
			switch {
			case o != nil && o.State == diagnose.Holds:
				return o
			case o != nil && o.State == diagnose.Unknown:
				open = o
			}
		}
	}
	switch {
	case open != nil:
		return open
	case wires > 0 && f.Sender.HasFace() && f.Receiver.HasFace():
		return diagnose.No("%s", clear)
	case f.OnOneMachine() || f.Sender.HasFace() && f.Receiver.HasFace():
		return nil // no wire at either end: nothing to judge
	}
	return diagnose.Missing(fact, "the interfaces of one end or both are not known")
}

func negotiatedLow(f *diagnose.Flow) *diagnose.Outcome {
	return eachPort(f, "speed of the interfaces", "no interface of the route runs slower than it and its partner can", func(e *diagnose.End, i *measure.Interface) *diagnose.Outcome {
		speed, could := diagnose.SpeedOf(i), 0.0
		if i.MaxBps != nil && i.PeerBps != nil {
			could = float64(min(*i.MaxBps, *i.PeerBps))
		}
		if c := f.Cell.Ceiling; c != nil && c.LinkFrom == "stated" && len(e.Ports()) == 1 {
			could = max(could, float64(c.LinkBps))
		}
		switch {
		case speed == 0:
			return e.Lacks("speed of " + diagnose.Word(i.Name))
		case could <= speed && i.PeerBps == nil && i.MaxBps != nil && float64(*i.MaxBps) > speed && fills(f, speed):
			return asSlow(f, diagnose.Possible("%s runs at %s of the %s that it can; what its partner can is not known", diagnose.Word(i.Name), unit.Rate(speed), unit.Rate(float64(*i.MaxBps))), e, i)
		case could <= speed:
			return nil
		}
		o := asSlow(f, diagnose.Certain("%s has negotiated %s where %s are possible", diagnose.Word(i.Name), unit.Rate(speed), unit.Rate(could)), e, i)
		if !fills(f, speed) {
			o.Beside()
		}
		return o
	})
}

// fills tells whether the flow uses all of a link of that speed: 90% of it,
// headers left out.
func fills(f *diagnose.Flow, speed float64) bool {
	bps, ok := f.Goodput()
	return ok && speed > 0 && bps >= 0.9*speed
}

// asSlow adds to a link that is slower than it could be what it costs.
func asSlow(f *diagnose.Flow, o *diagnose.Outcome, e *diagnose.End, i *measure.Interface) *diagnose.Outcome {
	o.At(e.OnPort(i)).By(e.Proof("negotiated speed", diagnose.SpeedOf(i), "bps")).
		Costs(diagnose.SpeedOf(i), "no more than "+unit.Rate(diagnose.SpeedOf(i))+" with all headers", "negotiated speed")
	if i.MaxBps != nil {
		o.By(e.Proof("fastest that it supports", float64(*i.MaxBps), "bps"))
	}
	return o.Mend(gateRemedy(f, "link-negotiated-low", e, "autonegotiation on at both ends; check cable, optics and the switch port"))
}

// gateRemedy is what a gate of that cause says is to be done at an end, else
// the advice.
func gateRemedy(f *diagnose.Flow, cause string, e *diagnose.End, advice string) *measure.Remedy {
	for _, g := range below.Conditions(f, cause, e.Name) {
		if len(g.Remedy) > 0 || g.Advice != "" {
			return diagnose.RemedyOf(g, e.Facts)
		}
	}
	return diagnose.Advise(e, advice)
}

func halfDuplex(f *diagnose.Flow) *diagnose.Outcome {
	return eachPort(f, "duplex of the interfaces", "no interface of the route is half duplex", func(e *diagnose.End, i *measure.Interface) *diagnose.Outcome {
		switch {
		case i.Duplex == nil:
			return e.Lacks("duplex of " + diagnose.Word(i.Name))
		case *i.Duplex != "half":
			return nil
		}
		o := diagnose.Likely("%s is half duplex: it sends or receives, never both", diagnose.Word(i.Name)).By(e.Proof("half duplex", 1, ""))
		if n := e.NIC(); n != nil {
			if hits, name := diagnose.Counted(n, []string{"collision"}, nil); hits >= diagnose.FewEvents {
				o.Confidence = measure.Certain
				o.By(diagnose.Above(e.Proof(name, hits, "packets"), diagnose.FewEvents))
			}
		}
		if f.LinkIsFull() {
			o.Beside()
		}
		return o.At(e.OnPort(i)).Mend(gateRemedy(f, "duplex", e, "autonegotiation at both ends"))
	})
}

// wireErrors are parts of the names by which drivers count damaged packets.
func wireErrors() []string {
	return []string{"crc", "symbol_err", "uncorrectable", "fec_uncorr", "fcs", "rx_jabber", "rx_errors_phy"}
}

func badLink(f *diagnose.Flow) *diagnose.Outcome {
	var bad float64
	var name string
	var at *diagnose.End
	for _, e := range f.Ends() {
		n := e.NIC()
		if n == nil || e.HasFace() && len(e.Ports()) == 0 {
			continue
		}
		// Not all drivers keep what had no room out of rx_errors.
		hits, counter := diagnose.Counted(n, wireErrors(), nil)
		if hits > bad {
			bad, name, at = hits, counter, e
		}
	}
	switch {
	case at == nil && f.Sender.NIC() == nil && f.Receiver.NIC() == nil:
		return f.Receiver.Lacks("counters of the interface")
	case at == nil && f.Sender.HasFace() && f.Receiver.HasFace() && len(f.Sender.Ports())+len(f.Receiver.Ports()) == 0:
		return nil // software has no wire
	case at == nil:
		return diagnose.No("no counter of damaged packets moved at the ends")
	}
	packets := float64(at.NIC().RxPackets) + bad
	o := diagnose.Possible("packets arrive damaged at %s: %s of them", at.Name, loss.Rare(diagnose.Share(bad, packets))).
		By(diagnose.Above(at.Proof(name, bad, "packets"), 0), at.Proof("damaged, of the packets received", diagnose.Share(bad, packets), "pct"))
	switch {
	case f.LinkIsFull() || diagnose.Share(bad, packets) < diagnose.AgainBar:
		o.Beside()
	case !at.Sends():
		f.Blame(o, bad)
	}
	return o.At(at.OnFace()).
		Mend(gateRemedy(f, "bad-link", at, "clean or replace cable and optics at this port and at its partner"))
}

// A pause frame stops a port for at most 65535 times 512 bit times (IEEE
// 802.3, 31B.2): 3.4 ms at 10 Gb/s. So a few a second cost nothing.
const pauseBits = 65535 * 512

func pauseFrames(f *diagnose.Flow) *diagnose.Outcome {
	if f.Sender.NIC() == nil && f.Receiver.NIC() == nil {
		return f.Sender.Lacks("counters of the interface")
	}
	for _, e := range f.Ends() {
		n := e.NIC()
		if n == nil {
			continue
		}
		side := "tx" // the receiver stops its partner
		if e.Sends() {
			side = "rx" // the sender is stopped
		}
		frames, name := diagnose.Counted(n, []string{"pause", "xoff"}, []string{"duration", "transition", "storm", other(side)})
		if frames > 0 {
			return asPaused(f, e, frames, name, side)
		}
	}
	if len(f.Sender.Ports())+len(f.Receiver.Ports()) == 0 && f.Sender.HasFace() && f.Receiver.HasFace() {
		return nil // software has no flow control
	}
	return diagnose.No("no pause frame was counted that stops this direction")
}

// other direction in the names of a driver's counters.
func other(side string) string {
	if side == "rx" {
		return "tx"
	}
	return "rx"
}

// asPaused judges pause frames that were counted by the time for which they
// can have stopped the port.
func asPaused(f *diagnose.Flow, e *diagnose.End, frames float64, name, side string) *diagnose.Outcome {
	o := diagnose.Possible("pause frames stop the link: %s a second", stat.ThreeDigits(perSecond(e, frames))).
		At(e.OnFace()).By(diagnose.Above(e.Proof(name, frames, "packets"), 0)).
		Mend(diagnose.Advise(e, "find what is slow behind the port: a receiver whose ring or bus is full, or a switch port that many share"))
	us, timer := diagnose.Counted(e.NIC(), []string{"pause_duration"}, []string{other(side)}) // mlx5 counts it in microseconds
	stood := diagnose.Share(us*1e3, float64(e.Span()))
	most := 100.0
	for _, i := range e.Ports() {
		if speed := diagnose.SpeedOf(i); speed > 0 {
			most = 100 * perSecond(e, frames) * pauseBits / speed
		}
	}
	again, _ := f.AgainPct()
	switch {
	case f.LinkIsFull() || most < 1:
		o.Beside()
	case us > 0 && stood > 10 && again < diagnose.AgainBar && leavesRoom(f, e, stood):
		o.Confidence = measure.Likely
	case us > 0 && stood > 10 && again < diagnose.AgainBar:
		o.Confidence = measure.Certain
		o.Text = fmt.Sprintf("pause frames stop the link %s of the time", unit.Percent(stood))
		o.By(diagnose.Above(e.Proof(timer, stood, "pct"), 10))
	case us > 0 && stood < 1:
		o.Beside()
	case most > 20 && again < diagnose.AgainBar:
		o.Confidence = measure.Likely
	}
	return o
}

// leavesRoom tells whether a port that stood still for so many percent of the time
// could have carried twice what the flow did in the rest.
func leavesRoom(f *diagnose.Flow, e *diagnose.End, stood float64) bool {
	least := 0.0
	for _, i := range e.Ports() {
		least = max(least, diagnose.SpeedOf(i))
	}
	return least*(1-stood/100) > 2*f.Rate()
}

func slotTooSlow(f *diagnose.Flow) *diagnose.Outcome {
	return eachPort(f, "bandwidth of the slots", "the slots carry more than the ports", func(e *diagnose.End, i *measure.Interface) *diagnose.Outcome {
		speed := diagnose.SpeedOf(i)
		switch {
		case i.PCI == nil:
			return nil // on no bus that could be too slow
		case i.PCI.UsableBps == nil || *i.PCI.UsableBps <= 0:
			return e.Lacks("PCIe bandwidth of " + diagnose.Word(i.Name))
		case speed == 0 || float64(*i.PCI.UsableBps) >= speed:
			return nil
		}
		usable := float64(*i.PCI.UsableBps)
		bps, _ := f.Goodput()
		o := diagnose.Certain("the slot of %s carries %s of the port's %s", diagnose.Word(i.Name), unit.Rate(usable), unit.Rate(speed)).
			At(e.OnPort(i)).By(e.Proof("usable PCIe bandwidth", usable, "bps"), e.Proof("speed of the port", speed, "bps")).
			Costs(usable, "the slot carries "+unit.Rate(usable), "lanes and generation of the link, less packet headers and 5%").
			Mend(gateRemedy(f, "pcie", e, "put the card into a slot with more lanes or of a newer generation"))
		switch { // the allowance for headers is an estimate
		case bps < 0.8*usable:
			o.Beside()
		case bps > 1.1*usable || bps < 0.9*usable:
			o.Confidence = measure.Likely
		}
		return o
	})
}
