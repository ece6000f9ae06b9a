package diagnose

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// queueRules are the causes of a rate that a queue holds.
func queueRules() []Rule {
	return []Rule{{
		Cause: "shaper", TCP: true, UDP: true, Unseen: hostPackets, Title: "a queue on the way lets no more pass", judge: shaper, packets: packetsShaper,
		Seen:  "the rate is that of the traffic shaping of a port group, switch or port below an end (certain where it is flat, and no CPU is full); or the rate is flat, and the round trip under load is far above its least: a queue is full; in captures too, of which two tell on which way it is",
		Apart: "UDP above the rate stands in the queue all along (16 packets or more, a quarter of the greatest delay on average), then is lost; below it neither",
		Mends: "it is what the link is set to carry: fq_codel or cake keep its queue short", Effect: "142 to 25 ms of delay by bbr or a short queue",
		Source: "causes.md, calibration; tc-tbf(8), tc-htb(8)", Tests: []string{udpAbove, udpThrice, udpTenfold, udpThirtyfold, eightStreams}, Brings: []string{"loss"},
	}}
}

// flatBar is how much the seconds of a plateau may differ, in percent.
const flatBar = 4

func shaper(f *flow) *outcome {
	if o := f.portShaper(); o != nil {
		return o
	}
	if f.isUDP() {
		return shapedDatagrams(f)
	}
	if q, ok := f.ownQueue(); ok {
		return q
	}
	if f.onOneMachine() {
		return no("no link lies between the ends")
	}
	if _, _, ok := f.queued(); !ok {
		return f.sender.lacks("the round trip under load")
	}
	s, over := f.surplus()
	share, stated := f.ceilingShare()
	passed, far := f.passesFar()
	switch {
	case stated && share >= stat.PassPct:
		return no("the link itself is full: %s of what it can carry", unit.Percent(share))
	case stated && share >= nearBar && (f.hasQueue() || over && s.capacity > nearBar/100*f.cell.Ceiling.Bps):
		return no("the queue is the link's own: %s of what it can carry pass", unit.Percent(share))
	case over && f.receiver.isBehind() && s.capacity > gainBar*f.rate():
		return no("it would let %s pass", unit.Rate(s.capacity))
	case over && s.wait.stands():
		return f.overfilled(s)
	case far:
		return no("UDP at %s passes", unit.Rate(passed))
	case over && s.wait.isClear():
		return no("datagrams above the rate are dropped, not delayed")
	}
	return f.plateau()
}

// isShaped tells whether a shaper at the sender's own interface holds the rate,
// which it counts, or any queue where more would be let go by what paces: that
// finds its rate by the queue.
func (f *flow) isShaped(more bool) bool {
	if o, ok := f.ownQueue(); ok {
		return o.state == holds
	}
	o := shaper(f)
	return more && o != nil && o.state == holds && o.confidence != measure.Possible
}

// overfilled words a queue that datagrams above the rate have filled. One that
// would let TCP have more drops its bursts.
func (f *flow) overfilled(s surplus) *outcome {
	o := certain("a queue on the way lets %s pass, and no more", unit.Rate(s.capacity))
	if s.capacity > gainBar*f.rate() {
		again, _ := f.againPct()
		if again < againBar || f.below(again).lost {
			return no("it would let %s pass", unit.Rate(s.capacity))
		}
		if f.runsDry() {
			return no("the congestion window was not used up")
		}
		o = certain("a queue that is too short for the round trip drops what %s leaves over", unit.Rate(s.capacity)).
			costs(s.capacity, "it would carry "+unit.Rate(s.capacity)+" of payload", "UDP above the rate: what came through")
		if a, _ := f.sender.stealPct(); a > stealBar || again < shortBar { // a host that stands still now and then bursts by itself
			o.confidence = measure.Likely
		}
	}
	return f.asShaper(o.by(append(s.proofs(f), f.queueProof())...))
}

// shortBar is the share of segments sent again, in percent, that a queue too
// short for the bursts of TCP drops at least: 0.2 were measured.
const shortBar = 0.02

// plateau judges by TCP alone: a flat rate before a queue that is full.
func (f *flow) plateau() *outcome {
	times, by, _ := f.queued()
	flat, known := f.flatness()
	switch {
	case !f.hasQueue() && !(paces(f.congestion()) && known && flat < flatBar):
		return no("the round trip under load is %.1f times the least: no queue is full", times)
	case !known:
		return missing("three seconds of the course", "the run was too short to see a plateau")
	case f.receiver.isBehind():
		return no("data waits unread at the receiver, which holds its acknowledgements back")
	case flat > 3*flatBar:
		return no("the rate of the seconds differs by %s", unit.Percent(flat))
	case !f.fillsCwnd():
		return no("the congestion window was not used up")
	case f.sender.isFull() || f.receiver.isFull():
		return no("a CPU is full")
	case f.windowBinds():
		return no("the receiver's window holds the sender up")
	}
	o := possible("a queue on the way holds it at this rate: the round trip grows by %s under load", unit.Duration(int64(by)))
	if f.hasQueue() && flat < flatBar && !f.drifts() {
		o.confidence = measure.Likely
	}
	return f.asShaper(o.by(f.queueProof(), below(f.receiver.proof("deviation of the seconds from their median", flat, "pct"), flatBar)))
}

// drifts tells whether the halves of the run differ by more than a plateau's.
func (f *flow) drifts() bool {
	s := f.cell.Steady
	return s != nil && s.Checked && (s.HalvesPct > 2*flatBar || s.HalvesPct < -2*flatBar)
}

// fillsCwnd tells whether the congestion window was what held the sender, as
// it is where a queue or a loss is found by filling the path; a window or buffer
// that fills the path does as well. A control that
// paces keeps below it, and where nothing is known nothing speaks against it.
func (f *flow) fillsCwnd() bool {
	flight, ok := f.inFlight()
	cwnd, okToo := f.cwnd()
	return !ok || !okToo || paces(f.congestion()) || flight > 0.85*cwnd || f.lengthens(flight) && f.fillsRoom(flight)
}

// fillsRoom tells whether the receiver's window or the sender's buffer is used up
// by what is under way.
func (f *flow) fillsRoom(flight float64) bool {
	held, _, _ := f.windowHeld()
	t, _ := f.sender.threads()
	waits, ok := f.notSent()
	return held > rwndBar || t.blocked > blockedBar && ok && waits <= flight/4
}

// runsDry tells of a sender that waits for room in its buffer while nothing in it
// waits to be sent and the congestion window has room: what is dropped does not hold it.
func (f *flow) runsDry() bool {
	flight, ok1 := f.inFlight()
	cwnd, ok2 := f.cwnd()
	waits, ok3 := f.notSent()
	t, ok4 := f.sender.threads()
	return ok1 && ok2 && ok3 && ok4 && flight <= 0.85*cwnd && waits <= flight/4 && t.blocked > blockedBar
}

// asShaper says what a plateau means where the rate of the link is not known.
func (f *flow) asShaper(o *outcome) *outcome {
	if o.confidence == measure.Certain && f.mayBeMember() {
		o.confidence = measure.Likely // a member of a bundle has a queue of its own
		if f.withMost() == nil {
			o.then("8 streams instead of one: a bundle carries a multiple")
		}
	}
	o.mend(advise(nil, "if this is what the link is to carry, it is full; a shorter queue there (fq_codel, cake) or bbr takes the delay away"))
	if f.cell.Ceiling == nil {
		o.then("--link-rate says what the link should carry: then it is told whether this is all of it")
	}
	return o
}

// waitsIn tells whether what a queueing discipline holds or drops is of this flow:
// the round trip grew by what its backlog takes, or it dropped what was sent again.
func (f *flow) waitsIn(q *measure.Qdisc) bool {
	_, by, ok := f.queued()
	again, counted := f.sender.grew(segsAgain)
	takes, drops := 0.0, float64(q.Drops)
	if bps := f.rate(); bps > 0 {
		takes = float64(q.Backlog) * 8e9 / bps
	}
	return ok && takes > by/mostlyOf && takes < by*mostlyOf || counted && min(drops, again) >= fewEvents && drops < mostlyOf*again && again < mostlyOf*drops
}

// ownQueue judges the queueing discipline of the sender's own interface.
func (f *flow) ownQueue() (*outcome, bool) {
	e := f.sender
	if e.seen == nil || e.seen.Host == nil || e.seen.Host.Qdisc == nil || e.seen.Host.NIC == nil {
		return nil, false
	}
	q := e.seen.Host.Qdisc
	if q.Kind != "tbf" && q.Kind != "htb" && q.Kind != "cake" || q.Overlimits == 0 || !f.hasQueue() && q.Drops == 0 {
		return nil, false
	}
	flat, known := f.flatness()
	if known && flat > 3*flatBar {
		return nil, false
	}
	mine := q.Kind == "tbf" || f.waitsIn(q) // the others have classes, and count all of them
	if f.linkIsFull() || !mine {
		return nil, false
	}
	o := likely("the sender's own qdisc %s on %s holds it at this rate", q.Kind, word(e.faceName()))
	stolen, _ := e.stealPct()
	if known && flat < flatBar && stolen < stealBar && f.hasQueue() && f.waitsIn(q) { // overlimits alone may be of bursts, and the queue another one
		o.confidence = measure.Certain
	}
	o.at(e.onFace()).by(above(e.proof("qdisc "+q.Kind+" overlimits", float64(q.Overlimits), "packets"), 0), f.queueProof())
	if q.Drops > 0 {
		o.by(e.proof("qdisc "+q.Kind+" drops", float64(q.Drops), "packets"))
	}
	return f.asShaper(o).mend(&measure.Remedy{EndPoint: e.name, Platform: "linux", Advice: "look at the rate that it is set to, and raise it if the link carries more",
		Commands: []string{fmt.Sprintf("tc -s qdisc show dev %s", word(e.faceName()))}, Risk: "it only shows"}), true
}
