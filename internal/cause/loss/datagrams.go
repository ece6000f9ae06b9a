package loss

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Thresholds of datagrams, in percent.
const (
	farTooMuch = 10 // of loss: a path with so much random loss would be unusable
	PlaceBar   = 50 // of the lost ones at one place: that place is the cause
)

// fate describes the datagrams of a UDP test: how many were lost, and where.
type fate struct {
	*measure.DatagramFigures
	Gone   map[string]float64 // share of each place in the loss, in percent
	Places []measure.LossPlace
	wait   diagnose.Wait
}

// FateOfDatagrams returns it for this cell's datagrams; false if they were not counted.
func FateOfDatagrams(f *diagnose.Flow) (fate, bool) {
	d := f.Cell.Datagrams
	if d == nil || d.Sent <= 0 && d.Received <= 0 {
		return fate{}, false
	}
	x := fate{DatagramFigures: d, Gone: map[string]float64{}, Places: f.Cell.LossPlaces, wait: diagnose.WaitOf(f.Cell)}
	all := 0.0
	for _, p := range x.Places {
		all += max(0, float64(p.Packets))
	}
	for _, p := range x.Places {
		x.Gone[p.Place] += stat.Pct(float64(p.Packets), all)
	}
	return x, true
}

// At returns the loss at a place.
func (x fate) At(place string) measure.LossPlace {
	for _, p := range x.Places {
		if p.Place == place {
			return p
		}
	}
	return measure.LossPlace{}
}

// proofs returns the evidence of loss on the path.
func (x fate) proofs(f *diagnose.Flow) []measure.Proof {
	all := []measure.Proof{diagnose.Above(f.Receiver.Proof("datagrams lost", x.LossPct, "pct"), diagnose.LostBar)}
	if x.OfferedBps != nil {
		all = append(all, f.Sender.Proof("sent", *x.OfferedBps, "bps"))
	}
	if bps, ok := f.Goodput(); ok {
		all = append(all, f.Receiver.Proof("received", bps, "bps"))
	}
	if x.DelayMeanNs != nil {
		all = append(all, f.Receiver.Proof("delay above the minimum, mean", float64(*x.DelayMeanNs), "ns"))
	}
	return all
}

// elsewhere returns why the loss of a test is not the path's; nil if it is, or if the place is not known.
func elsewhere(f *diagnose.Flow, x fate) *diagnose.Outcome {
	switch {
	case f.Cell.Spec.Search:
		return diagnose.No("a search for the capacity causes loss on purpose")
	case x.LossPct < diagnose.LostBar:
		return diagnose.No("%s of the datagrams were lost", unit.Percent(x.LossPct))
	case f.LinkIsFull():
		return diagnose.No("the link itself is full: more was sent than it carries")
	}
	for _, p := range x.Places {
		if x.Gone[p.Place] > PlaceBar && p.Place != measure.LossPath && p.Place != measure.LossSenderOrPath && p.Place != measure.LossPathOrReceiver {
			return diagnose.No("most of the %s that were lost were dropped at the %s", unit.Percent(x.LossPct), p.Place)
		}
	}
	return nil
}

// slowerDatagrams returns the measured cell of the same datagrams at the lowest rate that is at most 0.8 of this
// one's; nil without one.
func slowerDatagrams(f *diagnose.Flow) *measure.Cell {
	var slow *measure.Cell
	for _, c := range f.Tried(func(s *measure.Spec) { s.Rate = 0 }) {
		if c.Datagrams == nil || c.Datagrams.Sent < 1000 || c.Spec.Rate <= 0 || f.Cell.Spec.Rate > 0 && 5*(c.Spec.Rate/4) > f.Cell.Spec.Rate {
			continue
		}
		if slow == nil || c.Spec.Rate < slow.Spec.Rate {
			slow = c
		}
	}
	return slow
}

// ShapedDatagrams judges a UDP test for a queue that limits the rate: at the sender, or on a path where the
// received datagrams had to wait.
func ShapedDatagrams(f *diagnose.Flow) *diagnose.Outcome {
	x, ok := FateOfDatagrams(f)
	if !ok {
		return f.Receiver.Lacks("the count of datagrams")
	}
	bps, _ := f.Goodput()
	for _, place := range []string{measure.LossQdisc, measure.LossSendNIC, measure.LossSender} {
		if p := x.At(place); x.Gone[place] > PlaceBar && x.LossPct >= diagnose.LostBar && !f.Cell.Spec.Search && !f.LinkIsFull() {
			return f.AsShaper(diagnose.Likely("the %s drops %s of the datagrams", place, unit.Percent(x.LossPct)).At(f.Sender.OnFace()).
				By(diagnose.Above(f.Sender.Proof(p.Counter, float64(p.Packets), "packets"), 0))).AddFix(diagnose.Advise(f.Sender, p.Fix))
		}
	}
	if o := elsewhere(f, x); o != nil {
		return o
	}
	flat, known := f.Flatness()
	switch {
	case x.LossPct < diagnose.SurplusBar:
		return diagnose.No("only %s of the datagrams were lost: the sender does not exceed the rate of the path", unit.Percent(x.LossPct))
	case x.DelayMeanNs == nil:
		return f.Receiver.Lacks("delay of the datagrams")
	case x.wait.IsClear():
		return diagnose.No("the delay of the datagrams was %s above its minimum: no queue is full", unit.Duration(*x.DelayMeanNs))
	case !x.wait.Stands():
		return diagnose.Missing("whether a queue was full", fmt.Sprintf("the delay of the datagrams was %s above its minimum; clock drift or a busy host can cause that too", unit.Duration(*x.DelayMeanNs)))
	}
	o := diagnose.Likely("a queue on the path lets only %s pass", unit.Rate(bps)).By(x.proofs(f)...).Costs(bps, unit.Rate(bps)+" pass", "datagrams received")
	if known && flat < 3*diagnose.FlatBar && x.Gone[measure.LossPath] > PlaceBar {
		o.Confidence = measure.Certain
		o.By(diagnose.UnderBar(f.Receiver.Proof("deviation of the rate from its median, by the second", flat, "pct"), 3*diagnose.FlatBar))
	}
	return f.AsShaper(o)
}

// likeLoss is the highest ratio of datagram loss to retransmissions if both come from the same loss: beyond it the
// datagrams met another, such as a host short of CPU time.
const likeLoss = 5

// leastLost is how many lost datagrams are more than chance.
const leastLost = 1.5

// leastExpected is how many losses must be expected for zero to exclude the loss.
const leastExpected = 5

// underRate describes datagrams below the rate of TCP.
type underRate struct {
	tried  bool
	Lost   bool    // they are lost too: the loss does not depend on the rate
	passes bool    // TCP's share of loss would have shown, and nothing was lost
	stood  bool    // they stood in a full queue that other traffic makes drop
	pct    float64 // lost on the path, in percent
	gone   float64 // datagrams lost on the path
}

// Below returns it for this flow, whose TCP lost so many percent.
func Below(f *diagnose.Flow, again float64) underRate {
	c := f.Experiment(diagnose.UdpBelow)
	if c == nil || c.Datagrams == nil || c.Datagrams.Sent == 0 {
		return underRate{}
	}
	sent, gone := float64(c.Datagrams.Sent), diagnose.PathLossPct(c)*float64(c.Datagrams.Sent)/100
	if gone == 0 && sent*again/100 >= leastExpected {
		return underRate{tried: true, passes: true}
	}
	top, over := f.Surplus()
	for _, x := range f.DatagramTrials() { // a higher rate that passes shows the same, with more packets
		if over && float64(x.Spec.Rate) > 0.7*top.Capacity {
			continue // near the passing rate some are lost anyway
		}
		if pct := diagnose.PathLossPct(x); pct < diagnose.SurplusBar && diagnose.RateOf(x) > diagnose.LeastCapacity*f.Rate() {
			sent, gone = sent+float64(x.Datagrams.Sent), gone+pct*float64(x.Datagrams.Sent)/100
		}
	}
	b := underRate{tried: true, pct: 100 * gone / sent, gone: gone, stood: gone > 0 && diagnose.WaitOf(c).Stands()}
	b.Lost = !b.stood && b.pct > max(diagnose.LostBar, again/10) && b.pct < likeLoss*again && gone >= leastLost
	return b
}

// PassesFar returns a datagram rate that passes and is so high that no policer or queue near the goodput can be
// the limit.
func PassesFar(f *diagnose.Flow) (bps float64, ok bool) {
	_, over := f.Surplus()
	goodput, _ := f.Goodput()
	passed := f.UdpPassed()
	full := f.Cell.Ceiling != nil && passed > 0.9*f.Cell.Ceiling.Bps || passed > 0.9*diagnose.MostUDPTrial
	return passed, !over && (full || passed > 20*goodput)
}
