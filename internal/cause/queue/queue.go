// Package queue holds the causes that hold a rate down by a queue or over time:
// shapers, token buckets, slow convergence, neighbours.
package queue

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/loss"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// QueueCauses are the causes of a rate that a queue holds.
func QueueCauses() []diagnose.Rule {
	return []diagnose.Rule{{
		Cause: "shaper", TCP: true, UDP: true, Unseen: diagnose.HostPackets, Title: "a queue on the way lets no more pass", Judge: shaper, Packets: loss.PacketsShaper,
		Seen:  "the rate is that of the traffic shaping of a port group, switch or port below an end (certain where it is flat, and no CPU is full); or the rate is flat, and the round trip under load is far above its least: a queue is full; in captures too, of which two tell on which way it is",
		Apart: "UDP above the rate stands in the queue all along (16 packets or more, a quarter of the greatest delay on average), then is lost; below it neither",
		Mends: "it is what the link is set to carry: fq_codel or cake keep its queue short", Effect: "142 to 25 ms of delay by bbr or a short queue",
		Source: "causes.md, calibration; tc-tbf(8), tc-htb(8)", Tests: []string{diagnose.UdpAbove, diagnose.UdpThrice, diagnose.UdpTenfold, diagnose.UdpThirtyfold, diagnose.EightStreams}, Brings: []string{"loss"},
	}}
}

func shaper(f *diagnose.Flow) *diagnose.Outcome {
	if o := portShaper(f); o != nil {
		return o
	}
	if f.IsUDP() {
		return loss.ShapedDatagrams(f)
	}
	if q, ok := ownQueue(f); ok {
		return q
	}
	if f.OnOneMachine() {
		return diagnose.No("no link lies between the ends")
	}
	if _, _, ok := f.Queued(); !ok {
		return f.Sender.Lacks("the round trip under load")
	}
	s, over := f.Surplus()
	share, stated := f.CeilingShare()
	passed, far := loss.PassesFar(f)
	switch {
	case stated && share >= stat.PassPct:
		return diagnose.No("the link itself is full: %s of what it can carry", unit.Percent(share))
	case stated && share >= diagnose.NearBar && (f.HasQueue() || over && s.Capacity > diagnose.NearBar/100*f.Cell.Ceiling.Bps):
		return diagnose.No("the queue is the link's own: %s of what it can carry pass", unit.Percent(share))
	case over && f.Receiver.IsBehind() && s.Capacity > diagnose.GainBar*f.Rate():
		return diagnose.No("it would let %s pass", unit.Rate(s.Capacity))
	case over && s.Wait.Stands():
		return overfilled(f, s)
	case far:
		return diagnose.No("UDP at %s passes", unit.Rate(passed))
	case over && s.Wait.IsClear():
		return diagnose.No("datagrams above the rate are dropped, not delayed")
	}
	return plateau(f)
}

// IsShaped tells whether a shaper at the sender's own interface holds the rate,
// which it counts, or any queue where more would be let go by what paces: that
// finds its rate by the queue.
func IsShaped(f *diagnose.Flow, more bool) bool {
	if o, ok := ownQueue(f); ok {
		return o.State == diagnose.Holds
	}
	o := shaper(f)
	return more && o != nil && o.State == diagnose.Holds && o.Confidence != measure.Possible
}

// overfilled words a queue that datagrams above the rate have filled. One that
// would let TCP have more drops its bursts.
func overfilled(f *diagnose.Flow, s diagnose.Surplus) *diagnose.Outcome {
	o := diagnose.Certain("a queue on the way lets %s pass, and no more", unit.Rate(s.Capacity))
	if s.Capacity > diagnose.GainBar*f.Rate() {
		again, _ := f.AgainPct()
		if again < diagnose.AgainBar || loss.Below(f, again).Lost {
			return diagnose.No("it would let %s pass", unit.Rate(s.Capacity))
		}
		if runsDry(f) {
			return diagnose.No("the congestion window was not used up")
		}
		o = diagnose.Certain("a queue that is too short for the round trip drops what %s leaves over", unit.Rate(s.Capacity)).
			Costs(s.Capacity, "it would carry "+unit.Rate(s.Capacity)+" of payload", "UDP above the rate: what came through")
		if a, _ := stealPct(f.Sender); a > diagnose.StealBar || again < shortBar { // a host that stands still now and then bursts by itself
			o.Confidence = measure.Likely
		}
	}
	return f.AsShaper(o.By(append(loss.Proofs(s, f), loss.QueueProof(f))...))
}

// shortBar is the share of segments sent again, in percent, that a queue too
// short for the bursts of TCP drops at least: 0.2 were measured.
const shortBar = 0.02

// plateau judges by TCP alone: a flat rate before a queue that is full.
func plateau(f *diagnose.Flow) *diagnose.Outcome {
	times, by, _ := f.Queued()
	flat, known := f.Flatness()
	switch {
	case !f.HasQueue() && !(diagnose.Paces(f.Congestion()) && known && flat < diagnose.FlatBar):
		return diagnose.No("the round trip under load is %.1f times the least: no queue is full", times)
	case !known:
		return diagnose.Missing("three seconds of the course", "the run was too short to see a plateau")
	case f.Receiver.IsBehind():
		return diagnose.No("data waits unread at the receiver, which holds its acknowledgements back")
	case flat > 3*diagnose.FlatBar:
		return diagnose.No("the rate of the seconds differs by %s", unit.Percent(flat))
	case !fillsCwnd(f):
		return diagnose.No("the congestion window was not used up")
	case f.Sender.IsFull() || f.Receiver.IsFull():
		return diagnose.No("a CPU is full")
	case f.WindowBinds():
		return diagnose.No("the receiver's window holds the sender up")
	}
	o := diagnose.Possible("a queue on the way holds it at this rate: the round trip grows by %s under load", unit.Duration(int64(by)))
	if f.HasQueue() && flat < diagnose.FlatBar && !drifts(f) {
		o.Confidence = measure.Likely
	}
	return f.AsShaper(o.By(loss.QueueProof(f), diagnose.Below(f.Receiver.Proof("deviation of the seconds from their median", flat, "pct"), diagnose.FlatBar)))
}

// drifts tells whether the halves of the run differ by more than a plateau's.
func drifts(f *diagnose.Flow) bool {
	s := f.Cell.Steady
	return s != nil && s.Checked && (s.HalvesPct > 2*diagnose.FlatBar || s.HalvesPct < -2*diagnose.FlatBar)
}

// fillsCwnd tells whether the congestion window was what held the sender, as
// it is where a queue or a loss is found by filling the path; a window or buffer
// that fills the path does as well. A control that
// paces keeps below it, and where nothing is known nothing speaks against it.
func fillsCwnd(f *diagnose.Flow) bool {
	flight, ok := f.InFlight()
	cwnd, okToo := f.Cwnd()
	return !ok || !okToo || diagnose.Paces(f.Congestion()) || flight > 0.85*cwnd || f.Lengthens(flight) && fillsRoom(f, flight)
}

// fillsRoom tells whether the receiver's window or the sender's buffer is used up
// by what is under way.
func fillsRoom(f *diagnose.Flow, flight float64) bool {
	held, _, _ := f.WindowHeld()
	t, _ := f.Sender.Threads()
	waits, ok := f.NotSent()
	return held > diagnose.RwndBar || t.Blocked > diagnose.BlockedBar && ok && waits <= flight/4
}

// runsDry tells of a sender that waits for room in its buffer while nothing in it
// waits to be sent and the congestion window has room: what is dropped does not hold it.
func runsDry(f *diagnose.Flow) bool {
	flight, ok1 := f.InFlight()
	cwnd, ok2 := f.Cwnd()
	waits, ok3 := f.NotSent()
	t, ok4 := f.Sender.Threads()
	return ok1 && ok2 && ok3 && ok4 && flight <= 0.85*cwnd && waits <= flight/4 && t.Blocked > diagnose.BlockedBar
}

// waitsIn tells whether what a queueing discipline holds or drops is of this flow:
// the round trip grew by what its backlog takes, or it dropped what was sent again.
func waitsIn(f *diagnose.Flow, q *measure.Qdisc) bool {
	_, by, ok := f.Queued()
	again, counted := f.Sender.Grew(diagnose.SegsAgain)
	takes, drops := 0.0, float64(q.Drops)
	if bps := f.Rate(); bps > 0 {
		takes = float64(q.Backlog) * 8e9 / bps
	}
	return ok && takes > by/diagnose.MostlyOf && takes < by*diagnose.MostlyOf || counted && min(drops, again) >= diagnose.FewEvents && drops < diagnose.MostlyOf*again && again < diagnose.MostlyOf*drops
}

// ownQueue judges the queueing discipline of the sender's own interface.
func ownQueue(f *diagnose.Flow) (*diagnose.Outcome, bool) {
	e := f.Sender
	if e.Seen == nil || e.Seen.Host == nil || e.Seen.Host.Qdisc == nil || e.Seen.Host.NIC == nil {
		return nil, false
	}
	q := e.Seen.Host.Qdisc
	full := f.HasQueue() || q.Drops > 0 || float64(q.Backlog) >= diagnose.ShortRow*f.Segment() // a host that stood still for once spoils the round trips
	if q.Kind != "tbf" && q.Kind != "htb" && q.Kind != "cake" || q.Overlimits == 0 || !full {
		return nil, false
	}
	flat, known := f.Flatness()
	if known && flat > 3*diagnose.FlatBar {
		return nil, false
	}
	mine := q.Kind == "tbf" || waitsIn(f, q) // the others have classes, and count all of them
	if f.LinkIsFull() || !mine {
		return nil, false
	}
	o := diagnose.Likely("the sender's own qdisc %s on %s holds it at this rate", q.Kind, diagnose.Word(e.FaceName()))
	stolen, _ := stealPct(e)
	if known && flat < diagnose.FlatBar && stolen < diagnose.StealBar && f.HasQueue() && waitsIn(f, q) { // overlimits alone may be of bursts, and the queue another one
		o.Confidence = measure.Certain
	}
	o.At(e.OnFace()).By(diagnose.Above(e.Proof("qdisc "+q.Kind+" overlimits", float64(q.Overlimits), "packets"), 0), loss.QueueProof(f))
	if q.Drops > 0 {
		o.By(e.Proof("qdisc "+q.Kind+" drops", float64(q.Drops), "packets"))
	}
	return f.AsShaper(o).Mend(&measure.Remedy{EndPoint: e.Name, Platform: "linux", Advice: "look at the rate that it is set to, and raise it if the link carries more",
		Commands: []string{fmt.Sprintf("tc -s qdisc show dev %s", diagnose.Word(e.FaceName()))}, Risk: "it only shows"}), true
}
