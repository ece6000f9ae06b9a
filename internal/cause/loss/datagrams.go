package loss

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Bars of datagrams, in percent.
const (
	farTooMuch = 10 // of loss: a path that loses so much by chance carries no traffic that anybody would keep
	placeBar   = 50 // of the lost ones at one place: it is the place
)

// fate of the datagrams of a test by UDP: how many were lost, and where.
type fate struct {
	*measure.DatagramFigures
	lost   map[string]float64 // share of the lost ones by place, in percent
	places []measure.LossPlace
	wait   diagnose.Wait
}

// fateOfFlow of this cell's datagrams; false where they were not counted.
func fateOfFlow(f *diagnose.Flow) (fate, bool) {
	d := f.Cell.Datagrams
	if d == nil || d.Sent <= 0 && d.Received <= 0 {
		return fate{}, false
	}
	x := fate{DatagramFigures: d, lost: map[string]float64{}, places: f.Cell.LossPlaces, wait: diagnose.WaitOf(f.Cell)}
	all := 0.0
	for _, p := range x.places {
		all += max(0, float64(p.Packets))
	}
	for _, p := range x.places {
		x.lost[p.Place] += diagnose.Share(float64(p.Packets), all)
	}
	return x, true
}

// at is the place itself.
func (x fate) at(place string) measure.LossPlace {
	for _, p := range x.places {
		if p.Place == place {
			return p
		}
	}
	return measure.LossPlace{}
}

// proofs of a loss on the way.
func (x fate) proofs(f *diagnose.Flow) []measure.Proof {
	all := []measure.Proof{diagnose.Above(f.Receiver.Proof("datagrams lost", x.LossPct, "pct"), diagnose.LostBar)}
	if x.OfferedBps != nil {
		all = append(all, f.Sender.Proof("sent", *x.OfferedBps, "bps"))
	}
	if bps, ok := f.Goodput(); ok {
		all = append(all, f.Receiver.Proof("received", bps, "bps"))
	}
	if x.DelayMeanNs != nil {
		all = append(all, f.Receiver.Proof("delay over the least, mean", float64(*x.DelayMeanNs), "ns"))
	}
	return all
}

// elsewhere says why the loss of a test is not the path's; nil where it is, or
// where nobody knows the place.
func elsewhere(f *diagnose.Flow, x fate) *diagnose.Outcome {
	switch {
	case f.Cell.Spec.Search:
		return diagnose.No("a search for the capacity loses on purpose")
	case x.LossPct < diagnose.LostBar:
		return diagnose.No("%s of the datagrams were lost", unit.Percent(x.LossPct))
	case f.LinkIsFull():
		return diagnose.No("the link itself is full: what was sent beyond has no room")
	}
	for _, p := range x.places {
		if x.lost[p.Place] > placeBar && p.Place != measure.LossPath && p.Place != measure.LossSenderOrPath && p.Place != measure.LossPathOrReceiver {
			return diagnose.No("most of the %s that were lost found no room at the %s", unit.Percent(x.LossPct), p.Place)
		}
	}
	return nil
}

// lostDatagrams judges the loss of a test by UDP.
func lostDatagrams(f *diagnose.Flow) *diagnose.Outcome {
	x, ok := fateOfFlow(f)
	if !ok {
		return f.Receiver.Lacks("the count of datagrams")
	}
	if o := elsewhere(f, x); o != nil {
		return o
	}
	if x.LossPct >= diagnose.SurplusBar && x.wait.Stands() {
		return diagnose.No("more was sent than passes: what came through had stood in a queue")
	}
	o := diagnose.Likely("%s of the datagrams are lost on the way", unit.Percent(x.LossPct)).By(x.proofs(f)...).
		Costs(0, unit.Percent(x.LossPct)+" do not arrive", "datagrams sent and received").
		Mend(diagnose.Advise(nil, "find what loses: error counters of the ports on the way, cabling, optics, a device that is full; `thru test -u --search` finds the rate that passes"))
	if x.lost[measure.LossPath] <= placeBar {
		o.Text = unit.Percent(x.LossPct) + " of the datagrams are lost; whether on the way or in a host is not known"
		o.Confidence = measure.Possible
		return o
	}
	slow := slowerDatagrams(f)
	switch {
	case slow == nil && x.LossPct >= farTooMuch:
		o.Confidence = measure.Possible
	case slow == nil:
	case slow.Datagrams.LossPct > x.LossPct/2 && diagnose.WaitOf(slow).Stands():
		return diagnose.No("at %s they stood in a full queue: it is that which drops", unit.Rate(float64(slow.Spec.Rate)))
	case slow.Datagrams.LossPct > x.LossPct/2:
		if min(x.Lost, slow.Datagrams.Lost) >= diagnose.FewEvents {
			o.Confidence = measure.Certain
		}
		o.By(measure.Proof{EndPoint: f.Receiver.Name, Counter: "lost at " + unit.Rate(float64(slow.Spec.Rate)), Value: slow.Datagrams.LossPct, Unit: "pct"})
	case slow.Datagrams.LossPct < x.LossPct/10:
		return diagnose.No("at %s %s are lost: only what is too much", unit.Rate(float64(slow.Spec.Rate)), unit.Percent(slow.Datagrams.LossPct))
	}
	return o
}

// slowerDatagrams is the measured cell of the same datagrams at the lowest rate
// that is at most 0.8 of this one's; nil without one.
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

// policedDatagrams judges a test by UDP for a policer: what is above a rate is
// gone, and the rest is not delayed.
func policedDatagrams(f *diagnose.Flow) *diagnose.Outcome {
	x, ok := fateOfFlow(f)
	if !ok {
		return f.Receiver.Lacks("the count of datagrams")
	}
	if o := elsewhere(f, x); o != nil {
		return o
	}
	switch {
	case x.LossPct < diagnose.SurplusBar:
		return diagnose.No("%s of the datagrams were lost: no rate is cut", unit.Percent(x.LossPct))
	case x.wait.Stands():
		return diagnose.No("what came through had stood in a queue")
	case x.DelayMeanNs == nil:
		return f.Receiver.Lacks("delay of the datagrams")
	case x.lost[measure.LossPath] <= placeBar:
		return diagnose.Missing("the place of the loss", "the counters of one end or both are not known")
	}
	bps, _ := f.Goodput()
	o := diagnose.Possible("a policer may let %s pass and drop the rest", unit.Rate(bps)).By(x.proofs(f)...).
		Then("the same at a lower rate (-b): a policer lets it pass whole").
		Mend(diagnose.Advise(f.Sender, "send or shape below the rate, or have the policer allow a longer burst"))
	slow := slowerDatagrams(f)
	if slow == nil && x.LossPct >= farTooMuch {
		o.Confidence = measure.Likely
	}
	if slow != nil {
		if slow.Datagrams.LossPct > x.LossPct/10 {
			return diagnose.No("at %s %s are lost too", unit.Rate(float64(slow.Spec.Rate)), unit.Percent(slow.Datagrams.LossPct))
		}
		if o.Confidence = measure.Likely; x.wait.IsClear() {
			o.Confidence = measure.Certain
		}
		o.Text = fmt.Sprintf("a policer lets %s pass and drops the rest", unit.Rate(bps))
		o.By(measure.Proof{EndPoint: f.Receiver.Name, Counter: "lost at " + unit.Rate(float64(slow.Spec.Rate)), Value: slow.Datagrams.LossPct, Unit: "pct"}).
			Costs(bps, unit.Rate(bps)+" pass", "datagrams received")
	}
	return o
}

// ShapedDatagrams judges a test by UDP for a queue that lets a rate pass: at
// the sender, or on the way, where what came through had to wait.
func ShapedDatagrams(f *diagnose.Flow) *diagnose.Outcome {
	x, ok := fateOfFlow(f)
	if !ok {
		return f.Receiver.Lacks("the count of datagrams")
	}
	bps, _ := f.Goodput()
	for _, place := range []string{measure.LossQdisc, measure.LossSendNIC, measure.LossSender} {
		if p := x.at(place); x.lost[place] > placeBar && x.LossPct >= diagnose.LostBar && !f.Cell.Spec.Search && !f.LinkIsFull() {
			return f.AsShaper(diagnose.Likely("the %s has no room for %s of the datagrams", place, unit.Percent(x.LossPct)).At(f.Sender.OnFace()).
				By(diagnose.Above(f.Sender.Proof(p.Counter, float64(p.Packets), "packets"), 0))).Mend(diagnose.Advise(f.Sender, p.Remedy))
		}
	}
	if o := elsewhere(f, x); o != nil {
		return o
	}
	flat, known := f.Flatness()
	switch {
	case x.LossPct < diagnose.SurplusBar:
		return diagnose.No("%s of the datagrams were lost: no more is sent than passes", unit.Percent(x.LossPct))
	case x.DelayMeanNs == nil:
		return f.Receiver.Lacks("delay of the datagrams")
	case x.wait.IsClear():
		return diagnose.No("the datagrams waited %s over the least: no queue is full", unit.Duration(*x.DelayMeanNs))
	case !x.wait.Stands():
		return diagnose.Missing("whether a queue stood", fmt.Sprintf("the datagrams waited %s over the least, which clocks that drift apart or a host may have made too", unit.Duration(*x.DelayMeanNs)))
	}
	o := diagnose.Likely("a queue on the way lets %s pass, and no more", unit.Rate(bps)).By(x.proofs(f)...).Costs(bps, unit.Rate(bps)+" pass", "datagrams received")
	if known && flat < 3*diagnose.FlatBar && x.lost[measure.LossPath] > placeBar {
		o.Confidence = measure.Certain
		o.By(diagnose.Below(f.Receiver.Proof("deviation of the seconds from their median", flat, "pct"), 3*diagnose.FlatBar))
	}
	return f.AsShaper(o)
}

// UnreadDatagrams judges a test by UDP for a receiver that does not keep up:
// its socket had no room.
func UnreadDatagrams(f *diagnose.Flow) *diagnose.Outcome {
	x, ok := fateOfFlow(f)
	switch {
	case !ok:
		return f.Receiver.Lacks("the count of datagrams")
	case x.LossPct < diagnose.LostBar:
		return diagnose.No("%s of the datagrams were lost", unit.Percent(x.LossPct))
	case len(x.places) == 0:
		return f.Receiver.Lacks("the place of the loss")
	}
	p := x.at(measure.LossSocket)
	if x.lost[measure.LossSocket] < 100-placeBar {
		return diagnose.No("%s of the lost datagrams found no room in the receiver's socket", unit.Percent(x.lost[measure.LossSocket]))
	}
	o := diagnose.Certain("the receiver's socket has no room for %s of the datagrams: its program reads too slowly, or its buffer is too small", unit.Percent(x.LossPct)).
		At(f.Receiver.Where()).By(diagnose.Above(f.Receiver.Proof(p.Counter, float64(p.Packets), "packets"), 0)).
		Costs(0, unit.Percent(x.LossPct)+" do not arrive", "drops of the socket")
	if p.Packets < diagnose.FewEvents {
		o.Confidence = measure.Likely
	}
	if f.Cell.Spec.Rate == 0 {
		o.Then("a rate that is asked for (-b): as fast as it goes overruns any receiver")
	}
	return o.Mend(diagnose.Advise(f.Receiver, p.Remedy))
}

// AskedDatagrams judges a test by UDP for the rate that was asked for.
func AskedDatagrams(f *diagnose.Flow) *diagnose.Outcome {
	x, ok := fateOfFlow(f)
	switch {
	case !ok:
		return f.Receiver.Lacks("the count of datagrams")
	case f.Cell.Spec.Rate <= 0 || f.Cell.Spec.Search:
		return diagnose.No("no rate was asked for")
	case x.LossPct >= diagnose.LostBar:
		return diagnose.No("%s of the datagrams were lost", unit.Percent(x.LossPct))
	}
	return f.AsIsAsked()
}
