package diagnose

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// linkRules are the causes of a link: that it is full, slower than it could
// be, or damaged.
func linkRules() []Rule {
	return []Rule{
		{
			Cause: linkFull, TCP: true, UDP: true, Title: "the link is full", judge: linkRate,
			Seen:  "goodput is 95% or more of what the link's known rate carries at this MTU",
			Apart: "a rate that is not known proves nothing: then a plateau is a shaper", Mends: "nothing: it counts as healthy",
			Effect: "9.41 Gb/s is all that 10 Gb/s carry at MTU 1500", Source: "methods.md, formula 4",
		},
		{
			Cause: "link-negotiated-low", TCP: true, UDP: true, Title: "the link runs slower than it could", judge: negotiatedLow,
			Seen:  "the interface has negotiated less than it and its partner can, or than --link-rate says",
			Apart: "it costs something where the link is full at its speed", Mends: "cable, optics, autonegotiation at both ends",
			Effect: "1 of 10 Gb/s", Source: "ethtool(8); IEEE 802.3, clause 28", Brings: []string{"link-rate", "shaper"},
		},
		{
			Cause: "duplex", TCP: true, UDP: true, Title: "the link sends or receives, never both", judge: halfDuplex,
			Seen: "the interface is half duplex", Apart: "collisions that were counted in this run", Mends: "autonegotiation at both ends, never at one",
			Effect: "often less than a tenth of the rate", Source: "IEEE 802.3, clause 4; ethtool(8)", Brings: []string{"loss", "bad-link"},
		},
		{
			Cause: "bad-link", TCP: true, UDP: true, Title: "packets arrive damaged", judge: badLink,
			Seen:  "counters of checksum, symbol or uncorrectable errors rose in this run",
			Apart: "ten or more, about as many as were sent again, and the rate is what such a loss leaves: a counter of the host is of all its traffic", Mends: "clean or replace cable and optics",
			Effect: "as loss does: 20 of 189 Mb/s at 0.1% and 20 ms", Source: "if_link.h, rx_crc_errors; ethtool -S", Brings: []string{"loss"},
		},
		{
			Cause: "pause-frames", TCP: true, UDP: true, Title: "the link is stopped by pause frames", judge: pauseFrames,
			Seen:  "pause frames came to the sender, or left the receiver, in this run",
			Apart: "nothing is lost; how long the link stood still, where the driver counts it", Mends: "mend what is slow behind the port: a receiver, or a full switch",
			Effect: "all flows of that port wait for the slowest", Source: "IEEE 802.3, annex 31B; ethtool -S",
		},
		{
			Cause: "pcie", TCP: true, UDP: true, Title: "the slot carries less than the port", judge: slotTooSlow,
			Seen:  "what the slot's lanes carry is less than the port's speed",
			Apart: "goodput is all that the slot carries", Mends: "a slot with more lanes or of a newer generation",
			Effect: "6.9 of 10 Gb/s by PCIe 1.0 x4", Source: "PCI Express Base Specification; methods.md, formula 7",
		},
	}
}

// Bars of the link rules, in percent of the ceiling.
const (
	linkFullBar = stat.PassPct         // from here on the link is full
	beyondBar   = stat.AboveCeilingPct // beyond it an assumption is wrong
	nearBar     = 90                   // from here on headers that nobody knows of may be the rest
)

// linkFull is the cause of a link that carries all that it can.
const linkFull = "link-rate"

func linkRate(f *flow) *outcome {
	share, ok := f.ceilingShare()
	bps, known := f.goodput()
	switch {
	case f.onOneMachine():
		return no("no link lies between the ends")
	case !ok || !known:
		return missing("the rate of the link", "no interface tells it; --link-rate states it")
	case stat.AboveCeiling(f.cell):
		return no("%s of what it could carry: an assumption is wrong", unit.Percent(share))
	case f.cell.Spec.Rate > 0 && float64(f.cell.Spec.Rate) < f.cell.Ceiling.Bps:
		return no("%s was asked for, less than it carries", unit.Rate(float64(f.cell.Spec.Rate)))
	case share >= linkFullBar && share > f.cell.Ceiling.SharePct:
		return f.asFull(certain("the link is full: the flows that share it carry %s of what %s carry at MTU %d together", unit.Percent(min(share, 100)), unit.Rate(float64(f.cell.Ceiling.LinkBps)), f.cell.Ceiling.MTU), share)
	case share >= linkFullBar:
		return f.asFull(certain("the link is full: %s of what %s carry at MTU %d", unit.Percent(min(share, 100)), unit.Rate(float64(f.cell.Ceiling.LinkBps)), f.cell.Ceiling.MTU), share)
	}
	s, over := f.surplus()
	if share = max(share, f.settledShare()); share >= nearBar && (f.hasQueue() || over && s.capacity > nearBar/100*f.cell.Ceiling.Bps) {
		return f.asFull(likely("the link is all but full: %s of what %s carry at MTU %d", unit.Percent(min(share, 100)), unit.Rate(float64(f.cell.Ceiling.LinkBps)), f.cell.Ceiling.MTU), share).
			then("whether headers of a VLAN or a tunnel take the rest")
	}
	return no("%s is %s of what it can carry", unit.Rate(bps), unit.Percent(share))
}

func (f *flow) asFull(o *outcome, share float64) *outcome {
	c := f.cell.Ceiling
	return o.well().at(measure.Where{Place: measure.AtPath}).
		by(above(measure.Proof{Counter: "goodput of the ceiling", Value: share, Unit: "pct", SpanNs: f.receiver.span(), Note: "link rate: " + c.LinkFrom}, nearBar)).
		costs(c.Bps, unit.Rate(c.Bps)+" is all that the link carries", fmt.Sprintf("%s at MTU %d, %s", unit.Rate(float64(c.LinkBps)), c.MTU, c.LinkLayer))
}

// eachPort judges the interfaces with a wire of both ends, until one holds.
// clear is what is said where none does; without a wire there is nothing to judge.
func (f *flow) eachPort(fact string, clear string, judge func(e *end, i *measure.Interface) *outcome) *outcome {
	var open *outcome
	wires := 0
	for _, e := range f.ends() {
		for _, i := range e.ports() {
			wires++
			o := judge(e, i)
			switch {
			case o != nil && o.state == holds:
				return o
			case o != nil && o.state == unknown:
				open = o
			}
		}
	}
	switch {
	case open != nil:
		return open
	case wires > 0 && f.sender.hasFace() && f.receiver.hasFace():
		return no("%s", clear)
	case f.onOneMachine() || f.sender.hasFace() && f.receiver.hasFace():
		return nil // no wire at either end: nothing to judge
	}
	return missing(fact, "the interfaces of one end or both are not known")
}

func negotiatedLow(f *flow) *outcome {
	return f.eachPort("speed of the interfaces", "no interface of the route runs slower than it and its partner can", func(e *end, i *measure.Interface) *outcome {
		speed, could := speedOf(i), 0.0
		if i.MaxBps != nil && i.PeerBps != nil {
			could = float64(min(*i.MaxBps, *i.PeerBps))
		}
		if c := f.cell.Ceiling; c != nil && c.LinkFrom == "stated" && len(e.ports()) == 1 {
			could = max(could, float64(c.LinkBps))
		}
		switch {
		case speed == 0:
			return e.lacks("speed of " + word(i.Name))
		case could <= speed && i.PeerBps == nil && i.MaxBps != nil && float64(*i.MaxBps) > speed && f.fills(speed):
			return f.asSlow(possible("%s runs at %s of the %s that it can; what its partner can is not known", word(i.Name), unit.Rate(speed), unit.Rate(float64(*i.MaxBps))), e, i)
		case could <= speed:
			return nil
		}
		o := f.asSlow(certain("%s has negotiated %s where %s are possible", word(i.Name), unit.Rate(speed), unit.Rate(could)), e, i)
		if !f.fills(speed) {
			o.beside()
		}
		return o
	})
}

// fills tells whether the flow uses all of a link of that speed: 90% of it,
// headers left out.
func (f *flow) fills(speed float64) bool {
	bps, ok := f.goodput()
	return ok && speed > 0 && bps >= 0.9*speed
}

// asSlow adds to a link that is slower than it could be what it costs.
func (f *flow) asSlow(o *outcome, e *end, i *measure.Interface) *outcome {
	o.at(e.onPort(i)).by(e.proof("negotiated speed", speedOf(i), "bps")).
		costs(speedOf(i), "no more than "+unit.Rate(speedOf(i))+" with all headers", "negotiated speed")
	if i.MaxBps != nil {
		o.by(e.proof("fastest that it supports", float64(*i.MaxBps), "bps"))
	}
	return o.mend(f.gateRemedy("link-negotiated-low", e, "autonegotiation on at both ends; check cable, optics and the switch port"))
}

// gateRemedy is what a gate of that cause says is to be done at an end, else
// the advice.
func (f *flow) gateRemedy(cause string, e *end, advice string) *measure.Remedy {
	for _, g := range f.conditions(cause, e.name) {
		if len(g.Remedy) > 0 || g.Advice != "" {
			return remedyOf(g, e.facts)
		}
	}
	return advise(e, advice)
}

func halfDuplex(f *flow) *outcome {
	return f.eachPort("duplex of the interfaces", "no interface of the route is half duplex", func(e *end, i *measure.Interface) *outcome {
		switch {
		case i.Duplex == nil:
			return e.lacks("duplex of " + word(i.Name))
		case *i.Duplex != "half":
			return nil
		}
		o := likely("%s is half duplex: it sends or receives, never both", word(i.Name)).by(e.proof("half duplex", 1, ""))
		if n := e.nic(); n != nil {
			if hits, name := counted(n, []string{"collision"}, nil); hits >= fewEvents {
				o.confidence = measure.Certain
				o.by(above(e.proof(name, hits, "packets"), fewEvents))
			}
		}
		if f.linkIsFull() {
			o.beside()
		}
		return o.at(e.onPort(i)).mend(f.gateRemedy("duplex", e, "autonegotiation at both ends"))
	})
}

// wireErrors are parts of the names by which drivers count damaged packets.
func wireErrors() []string {
	return []string{"crc", "symbol_err", "uncorrectable", "fec_uncorr", "fcs", "rx_jabber", "rx_errors_phy"}
}

func badLink(f *flow) *outcome {
	var bad float64
	var name string
	var at *end
	for _, e := range f.ends() {
		n := e.nic()
		if n == nil || e.hasFace() && len(e.ports()) == 0 {
			continue
		}
		// Not all drivers keep what had no room out of rx_errors.
		hits, counter := counted(n, wireErrors(), nil)
		if hits > bad {
			bad, name, at = hits, counter, e
		}
	}
	switch {
	case at == nil && f.sender.nic() == nil && f.receiver.nic() == nil:
		return f.receiver.lacks("counters of the interface")
	case at == nil && f.sender.hasFace() && f.receiver.hasFace() && len(f.sender.ports())+len(f.receiver.ports()) == 0:
		return nil // software has no wire
	case at == nil:
		return no("no counter of damaged packets moved at the ends")
	}
	packets := float64(at.nic().RxPackets) + bad
	o := possible("packets arrive damaged at %s: %s of them", at.name, rare(share(bad, packets))).
		by(above(at.proof(name, bad, "packets"), 0), at.proof("damaged, of the packets received", share(bad, packets), "pct"))
	switch {
	case f.linkIsFull() || share(bad, packets) < againBar:
		o.beside()
	case !at.sends():
		f.blame(o, bad)
	}
	return o.at(at.onFace()).
		mend(f.gateRemedy("bad-link", at, "clean or replace cable and optics at this port and at its partner"))
}

// A pause frame stops a port for at most 65535 times 512 bit times (IEEE
// 802.3, 31B.2): 3.4 ms at 10 Gb/s. So a few a second cost nothing.
const pauseBits = 65535 * 512

func pauseFrames(f *flow) *outcome {
	if f.sender.nic() == nil && f.receiver.nic() == nil {
		return f.sender.lacks("counters of the interface")
	}
	for _, e := range f.ends() {
		n := e.nic()
		if n == nil {
			continue
		}
		side := "tx" // the receiver stops its partner
		if e.sends() {
			side = "rx" // the sender is stopped
		}
		frames, name := counted(n, []string{"pause", "xoff"}, []string{"duration", "transition", "storm", other(side)})
		if frames > 0 {
			return f.asPaused(e, frames, name, side)
		}
	}
	if len(f.sender.ports())+len(f.receiver.ports()) == 0 && f.sender.hasFace() && f.receiver.hasFace() {
		return nil // software has no flow control
	}
	return no("no pause frame was counted that stops this direction")
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
func (f *flow) asPaused(e *end, frames float64, name, side string) *outcome {
	o := possible("pause frames stop the link: %s a second", stat.ThreeDigits(e.perSecond(frames))).
		at(e.onFace()).by(above(e.proof(name, frames, "packets"), 0)).
		mend(advise(e, "find what is slow behind the port: a receiver whose ring or bus is full, or a switch port that many share"))
	us, timer := counted(e.nic(), []string{"pause_duration"}, []string{other(side)}) // mlx5 counts it in microseconds
	stood := share(us*1e3, float64(e.span()))
	most := 100.0
	for _, i := range e.ports() {
		if speed := speedOf(i); speed > 0 {
			most = 100 * e.perSecond(frames) * pauseBits / speed
		}
	}
	again, _ := f.againPct()
	switch {
	case f.linkIsFull() || most < 1:
		o.beside()
	case us > 0 && stood > 10 && again < againBar && f.leavesRoom(e, stood):
		o.confidence = measure.Likely
	case us > 0 && stood > 10 && again < againBar:
		o.confidence = measure.Certain
		o.text = fmt.Sprintf("pause frames stop the link %s of the time", unit.Percent(stood))
		o.by(above(e.proof(timer, stood, "pct"), 10))
	case us > 0 && stood < 1:
		o.beside()
	case most > 20 && again < againBar:
		o.confidence = measure.Likely
	}
	return o
}

// leavesRoom tells whether a port that stood still for so many percent of the time
// could have carried twice what the flow did in the rest.
func (f *flow) leavesRoom(e *end, stood float64) bool {
	least := 0.0
	for _, i := range e.ports() {
		least = max(least, speedOf(i))
	}
	return least*(1-stood/100) > 2*f.rate()
}

func slotTooSlow(f *flow) *outcome {
	return f.eachPort("bandwidth of the slots", "the slots carry more than the ports", func(e *end, i *measure.Interface) *outcome {
		speed := speedOf(i)
		switch {
		case i.PCI == nil:
			return nil // on no bus that could be too slow
		case i.PCI.UsableBps == nil || *i.PCI.UsableBps <= 0:
			return e.lacks("PCIe bandwidth of " + word(i.Name))
		case speed == 0 || float64(*i.PCI.UsableBps) >= speed:
			return nil
		}
		usable := float64(*i.PCI.UsableBps)
		bps, _ := f.goodput()
		o := certain("the slot of %s carries %s of the port's %s", word(i.Name), unit.Rate(usable), unit.Rate(speed)).
			at(e.onPort(i)).by(e.proof("usable PCIe bandwidth", usable, "bps"), e.proof("speed of the port", speed, "bps")).
			costs(usable, "the slot carries "+unit.Rate(usable), "lanes and generation of the link, less packet headers and 5%").
			mend(f.gateRemedy("pcie", e, "put the card into a slot with more lanes or of a newer generation"))
		switch { // the allowance for headers is an estimate
		case bps < 0.8*usable:
			o.beside()
		case bps > 1.1*usable || bps < 0.9*usable:
			o.confidence = measure.Likely
		}
		return o
	})
}
