package diagnose

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// measurementRules are the causes of contradictions between the ends, and
// figures that cannot be.
func measurementRules() []Rule {
	return []Rule{{
		Cause: "measurement", TCP: true, UDP: true, Title: "the measurement contradicts itself", judge: contradiction,
		Seen: "goodput is above what the link carries; the receiver counted more than was sent, or than its interface took in; " +
			"a counter of time runs faster than time; a capture misses packets: the kernel dropped them, or they were acknowledged without having been captured",
		Apart: "byte counters of the interfaces", Mends: "state the right link rate and MTU; take the receiver's goodput",
		Effect: "9.74 of 10 Gb/s at MTU 1500, which carries 9.415 (B-10): no proof of anything", Source: "methods.md, formula 4 and Common mistakes",
	}}
}

// Bars of contradictions, in percent.
const (
	countBar = 0.1 // by which the receiver may have counted more than was sent
	faceBar  = 80  // of the payload that the interface must have taken in: the two are not read in the same instant
	clockBar = 110 // of the measured time that a connection can have been busy
)

// contradiction asks the figures whether they can be, the gravest first.
func contradiction(f *flow) *outcome {
	for _, judge := range []func(*flow) *outcome{aboveCeiling, moreThanSent, pastTheFace, fastClock, packetsMissed} {
		if o := judge(f); o != nil {
			if o.where.Place == "" {
				o.at(measure.Where{Place: measure.AtTool})
			}
			return o
		}
	}
	if _, ok := f.goodput(); !ok {
		return missing("the goodput", "no run was measured")
	}
	if f.packetsOnly() && f.crossing == nil {
		return missing("figures of both ends", "one capture alone has nothing to hold its own against")
	}
	return no("the figures of both ends agree with each other, and with the link as far as it is known")
}

func aboveCeiling(f *flow) *outcome {
	share, ok := f.ceilingShare()
	bps, known := f.goodput()
	if !ok || !known || f.onOneMachine() || !stat.AboveCeiling(f.cell) || f.cell.Ceiling.Bps <= 0 {
		return nil
	}
	c := f.cell.Ceiling
	if bins := f.bins(); len(bins) >= 3 && stat.Median(bins) <= c.Bps*beyondBar/100 {
		return possible("%s is more than %s can carry, in single seconds: data that had been held back before is counted in them", unit.Rate(bps), unit.Rate(float64(c.LinkBps))).
			by(above(f.receiver.proof("goodput of the ceiling", share, "pct"), beyondBar), below(f.receiver.proof("goodput of the median second", stat.Median(bins), "bps"), c.Bps*beyondBar/100)).
			then("a longer run").mend(advise(nil, "measure for longer: what was held back weighs less then")).beside()
	}
	guess := "the link is faster, or the rate was accounted otherwise"
	if c.MTU > 0 && c.MTU < jumboFrom {
		if most := f.ceilingAt(jumboFrom); bps <= most {
			guess = fmt.Sprintf("frames must have been larger (%s fit at MTU %d), ", unit.Rate(most), jumboFrom) + guess
		}
	}
	return certain("%s is more than %s can carry at MTU %d (%s): %s", unit.Rate(bps), unit.Rate(float64(c.LinkBps)), c.MTU, unit.Rate(c.Bps), guess).
		by(above(f.receiver.proof("goodput of the ceiling", share, "pct"), beyondBar)).
		costs(c.Bps, "no rate above "+unit.Rate(c.Bps)+" is a proof here", fmt.Sprintf("%s at MTU %d, %s", unit.Rate(float64(c.LinkBps)), c.MTU, c.LinkLayer)).
		mend(advise(nil, "state what the link carries (--link-rate), and look at the MTU of both ends and of the path (thru check)"))
}

// ceilingAt is what the link would carry of this flow at another MTU, in
// bit/s: the ceiling scaled by the share of the payload (methods.md, formula 4).
func (f *flow) ceilingAt(mtu int) float64 {
	c := f.cell.Ceiling
	l := stat.Link{RateBps: c.LinkBps, Layer: c.LinkLayer, MTU: mtu, VLANs: c.VLANs, EncapBytes: c.Encap}
	if on, known := f.option(func(t *measure.TCPInfo) *bool { return t.Timestamps }); !known || on {
		l.Timestamps = true
	}
	if f.isUDP() {
		return stat.MaxDatagramGoodput(l, mtu-48)
	}
	return stat.MaxGoodput(l)
}

// moreThanSent judges counts of both ends; that less came than was sent is
// loss, or was still under way.
func moreThanSent(f *flow) *outcome {
	r := f.cell.Reconciled
	if r == nil || r.SentBytes <= 0 || r.ReceivedBytes <= 0 {
		return nil
	}
	more := -r.DifferencePct
	if r.Note == stat.NoteOfRates { // of spans that began and ended apart
		if more < 10 || r.SenderBps <= 0 {
			return nil
		}
		return possible("the receiver reports %s, the sender %s: their spans differ", unit.Rate(r.ReceiverBps), unit.Rate(r.SenderBps)).
			by(above(f.receiver.proof("receiver's rate over the sender's", more, "pct"), 10)).
			then("a longer run").mend(advise(nil, "measure for longer: what the spans differ by weighs less then")).beside()
	}
	if more < countBar {
		return nil
	}
	return certain("the receiver counted %s more than was sent: one of the counts is wrong", unit.Percent(more)).
		by(above(f.receiver.proof("received over sent", more, "pct"), countBar), f.sender.proof("sent", float64(r.SentBytes), "bytes"), f.receiver.proof("received", float64(r.ReceivedBytes), "bytes")).
		mend(advise(nil, "repeat it, and take the lower figure until both ends agree"))
}

// pastTheFace judges the payload by the bytes that the interface of the route took in.
func pastTheFace(f *flow) *outcome {
	e := f.receiver
	n := e.nic()
	if n == nil || n.RxBytes == 0 || e.seen.Reported != "" || e.seen.Bytes <= 0 || f.onOneMachine() {
		return nil
	}
	part := 100 * float64(n.RxBytes) / float64(e.seen.Bytes)
	if part >= faceBar {
		return nil
	}
	return possible("data came by another interface than %s, by which the answers leave: its counter holds %s of the payload", word(n.Name), unit.Percent(part)).
		at(e.onFace()).by(below(e.proof("rx_bytes of the payload", part, "pct"), faceBar)).
		then("the counters of all interfaces (ip -s link)").mend(advise(e, "see which interfaces the data came by: their limits count too")).beside()
}

// fastClock judges the sender's clock by its kernel's: a connection cannot
// have been busy for longer than the measured time.
func fastClock(f *flow) *outcome {
	busy, ok := f.sender.grew(busyTime)
	n, span := float64(len(f.sender.streams())), float64(f.sender.span())
	if !ok || span < 1e9 || n == 0 {
		return nil
	}
	part := 100 * busy * 1e3 / n / span
	if part <= clockBar {
		return nil
	}
	return likely("the sender's kernel counted %s of the measured time: its clocks run apart", unit.Percent(part)).
		at(f.sender.where()).by(above(f.sender.proof("tcp_info.busy_time_us of the measured time", part, "pct"), clockBar)).
		mend(advise(f.sender, "look at its clock source, and measure with the other end as judge of the time"))
}

// Generator judges whether the host that made a lower rung of a ladder could
// have filled the link of an upper one: without 1.3 times the upper ceiling at
// its disposal a rate below that ceiling says as much of the host as of the
// link (methods.md, formula 13). Both may be the same document.
func Generator(lower, upper *measure.Document) []measure.Finding {
	made, cell := strongest(lower, lower != upper)
	if cell == nil {
		return nil
	}
	var all []measure.Finding
	for i := range upper.Cells {
		c := &upper.Cells[i]
		if f := newFlow(upper, c); f != nil && (c != cell || f.onOneMachine()) && !c.Beside && !f.isUDP() {
			if x, ok := f.generator(made, cell); ok && !told(all, x) {
				all = append(all, x)
			}
		}
	}
	return all
}

// strongest is the fastest TCP cell of a lower rung: one without a link
// between its ends, or where any will do the fastest of all.
func strongest(d *measure.Document, any bool) (*flow, *measure.Cell) {
	var best *flow
	for i := range d.Cells {
		f := newFlow(d, &d.Cells[i])
		if f == nil || f.isUDP() || f.isHeld() || !any && !f.onOneMachine() {
			continue
		}
		if best == nil || rateOf(f.cell) > rateOf(best.cell) {
			best = f
		}
	}
	if best == nil || rateOf(best.cell) <= 0 {
		return nil, nil
	}
	return best, best.cell
}

// generator judges one cell of the upper rung by the fastest of the lower one.
func (f *flow) generator(made *flow, lower *measure.Cell) (measure.Finding, bool) {
	limited, against := f.outdoes(rateOf(lower))
	if !limited {
		return measure.Finding{}, false
	}
	cause, at := "sender-cpu", made.sender
	if s, ok := made.sender.threads(); ok {
		if r, ok := made.receiver.threads(); ok && r.run+r.wait > s.run+s.wait {
			cause, at = "receiver-cpu", made.receiver
		}
	}
	of := "what is not 1.3 times the " + unit.Rate(against) + " that passed here"
	if c := f.cell.Ceiling; c != nil {
		of = "a link of " + unit.Rate(float64(c.LinkBps))
	}
	o := possible("this machine can generate %s: it cannot prove %s", unit.Rate(rateOf(lower)), of).
		at(measure.Where{Place: measure.AtTool, EndPoint: at.name}).
		by(below(at.proof("goodput without a link between", rateOf(lower), "bps"), stat.GeneratorFactor*against)).
		costs(rateOf(lower), "no more than "+unit.Rate(rateOf(lower))+" can be shown", "the rung below").
		then("a faster rung below: more streams, zero-copy, a larger message, another host").
		mend(advise(at, "more streams, zero-copy (-Z), offloads on, or a faster host: prove 1.3 times the link's ceiling without the link first"))
	if rateOf(lower) < against {
		o.confidence = measure.Likely
	}
	return f.finding(judged{rule: Rule{Cause: cause, Source: "methods.md, formula 13"}, outcome: o}), true
}

// outdoes tells whether the link of this flow may carry too much for a
// generator of that rate to prove it, and what it was held against. Without a
// link rate that is judged between the rungs of a ladder alone, of which the
// plan says that one contains the other.
func (f *flow) outdoes(made float64) (limited bool, against float64) {
	c := f.cell.Ceiling
	switch {
	case f.onOneMachine() && c != nil && c.Bps > 0: // its own link is stated for what is to be tested by it
		return stat.GeneratorLimited(made, c.Bps), c.Bps
	case f.onOneMachine() || c == nil && f.cell.Rung == "":
		return false, 0
	}
	return stat.GeneratorFor(made, rateOf(f.cell), c)
}
