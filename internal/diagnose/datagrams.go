package diagnose

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Bars of datagrams, in percent.
const (
	surplusBar = 3  // of loss, from where on more is sent than passes
	farTooMuch = 10 // of loss: a path that loses so much by chance carries no traffic that anybody would keep
	placeBar   = 50 // of the lost ones at one place: it is the place
)

// fate of the datagrams of a test by UDP: how many were lost, and where.
type fate struct {
	*measure.DatagramFigures
	lost   map[string]float64 // share of the lost ones by place, in percent
	places []measure.LossPlace
	wait   wait
}

// fate of this cell's datagrams; false where they were not counted.
func (f *flow) fate() (fate, bool) {
	d := f.cell.Datagrams
	if d == nil || d.Sent <= 0 && d.Received <= 0 {
		return fate{}, false
	}
	x := fate{DatagramFigures: d, lost: map[string]float64{}, places: f.cell.LossPlaces, wait: waitOf(f.cell)}
	all := 0.0
	for _, p := range x.places {
		all += max(0, float64(p.Packets))
	}
	for _, p := range x.places {
		x.lost[p.Place] += share(float64(p.Packets), all)
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
func (x fate) proofs(f *flow) []measure.Proof {
	all := []measure.Proof{above(f.receiver.proof("datagrams lost", x.LossPct, "pct"), lostBar)}
	if x.OfferedBps != nil {
		all = append(all, f.sender.proof("sent", *x.OfferedBps, "bps"))
	}
	if bps, ok := f.goodput(); ok {
		all = append(all, f.receiver.proof("received", bps, "bps"))
	}
	if x.DelayMeanNs != nil {
		all = append(all, f.receiver.proof("delay over the least, mean", float64(*x.DelayMeanNs), "ns"))
	}
	return all
}

// elsewhere says why the loss of a test is not the path's; nil where it is, or
// where nobody knows the place.
func (f *flow) elsewhere(x fate) *outcome {
	switch {
	case f.cell.Spec.Search:
		return no("a search for the capacity loses on purpose")
	case x.LossPct < lostBar:
		return no("%s of the datagrams were lost", unit.Percent(x.LossPct))
	case f.linkIsFull():
		return no("the link itself is full: what was sent beyond has no room")
	}
	for _, p := range x.places {
		if x.lost[p.Place] > placeBar && p.Place != measure.LossPath && p.Place != measure.LossSenderOrPath && p.Place != measure.LossPathOrReceiver {
			return no("most of the %s that were lost found no room at the %s", unit.Percent(x.LossPct), p.Place)
		}
	}
	return nil
}

// lostDatagrams judges the loss of a test by UDP.
func lostDatagrams(f *flow) *outcome {
	x, ok := f.fate()
	if !ok {
		return f.receiver.lacks("the count of datagrams")
	}
	if o := f.elsewhere(x); o != nil {
		return o
	}
	if x.LossPct >= surplusBar && x.wait.stands() {
		return no("more was sent than passes: what came through had stood in a queue")
	}
	o := likely("%s of the datagrams are lost on the way", unit.Percent(x.LossPct)).by(x.proofs(f)...).
		costs(0, unit.Percent(x.LossPct)+" do not arrive", "datagrams sent and received").
		mend(advise(nil, "find what loses: error counters of the ports on the way, cabling, optics, a device that is full; `thru test -u --search` finds the rate that passes"))
	if x.lost[measure.LossPath] <= placeBar {
		o.text = unit.Percent(x.LossPct) + " of the datagrams are lost; whether on the way or in a host is not known"
		o.confidence = measure.Possible
		return o
	}
	slow := f.slowerDatagrams()
	switch {
	case slow == nil && x.LossPct >= farTooMuch:
		o.confidence = measure.Possible
	case slow == nil:
	case slow.Datagrams.LossPct > x.LossPct/2 && waitOf(slow).stands():
		return no("at %s they stood in a full queue: it is that which drops", unit.Rate(float64(slow.Spec.Rate)))
	case slow.Datagrams.LossPct > x.LossPct/2:
		if min(x.Lost, slow.Datagrams.Lost) >= fewEvents {
			o.confidence = measure.Certain
		}
		o.by(measure.Proof{EndPoint: f.receiver.name, Counter: "lost at " + unit.Rate(float64(slow.Spec.Rate)), Value: slow.Datagrams.LossPct, Unit: "pct"})
	case slow.Datagrams.LossPct < x.LossPct/10:
		return no("at %s %s are lost: only what is too much", unit.Rate(float64(slow.Spec.Rate)), unit.Percent(slow.Datagrams.LossPct))
	}
	return o
}

// slowerDatagrams is the measured cell of the same datagrams at the lowest rate
// that is at most 0.8 of this one's; nil without one.
func (f *flow) slowerDatagrams() *measure.Cell {
	var slow *measure.Cell
	for _, c := range f.tried(func(s *measure.Spec) { s.Rate = 0 }) {
		if c.Datagrams == nil || c.Datagrams.Sent < 1000 || c.Spec.Rate <= 0 || f.cell.Spec.Rate > 0 && 5*(c.Spec.Rate/4) > f.cell.Spec.Rate {
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
func policedDatagrams(f *flow) *outcome {
	x, ok := f.fate()
	if !ok {
		return f.receiver.lacks("the count of datagrams")
	}
	if o := f.elsewhere(x); o != nil {
		return o
	}
	switch {
	case x.LossPct < surplusBar:
		return no("%s of the datagrams were lost: no rate is cut", unit.Percent(x.LossPct))
	case x.wait.stands():
		return no("what came through had stood in a queue")
	case x.DelayMeanNs == nil:
		return f.receiver.lacks("delay of the datagrams")
	case x.lost[measure.LossPath] <= placeBar:
		return missing("the place of the loss", "the counters of one end or both are not known")
	}
	bps, _ := f.goodput()
	o := possible("a policer may let %s pass and drop the rest", unit.Rate(bps)).by(x.proofs(f)...).
		then("the same at a lower rate (-b): a policer lets it pass whole").
		mend(advise(f.sender, "send or shape below the rate, or have the policer allow a longer burst"))
	slow := f.slowerDatagrams()
	if slow == nil && x.LossPct >= farTooMuch {
		o.confidence = measure.Likely
	}
	if slow != nil {
		if slow.Datagrams.LossPct > x.LossPct/10 {
			return no("at %s %s are lost too", unit.Rate(float64(slow.Spec.Rate)), unit.Percent(slow.Datagrams.LossPct))
		}
		if o.confidence = measure.Likely; x.wait.isClear() {
			o.confidence = measure.Certain
		}
		o.text = fmt.Sprintf("a policer lets %s pass and drops the rest", unit.Rate(bps))
		o.by(measure.Proof{EndPoint: f.receiver.name, Counter: "lost at " + unit.Rate(float64(slow.Spec.Rate)), Value: slow.Datagrams.LossPct, Unit: "pct"}).
			costs(bps, unit.Rate(bps)+" pass", "datagrams received")
	}
	return o
}

// shapedDatagrams judges a test by UDP for a queue that lets a rate pass: at
// the sender, or on the way, where what came through had to wait.
func shapedDatagrams(f *flow) *outcome {
	x, ok := f.fate()
	if !ok {
		return f.receiver.lacks("the count of datagrams")
	}
	bps, _ := f.goodput()
	for _, place := range []string{measure.LossQdisc, measure.LossSendNIC, measure.LossSender} {
		if p := x.at(place); x.lost[place] > placeBar && x.LossPct >= lostBar && !f.cell.Spec.Search && !f.linkIsFull() {
			return f.asShaper(likely("the %s has no room for %s of the datagrams", place, unit.Percent(x.LossPct)).at(f.sender.onFace()).
				by(above(f.sender.proof(p.Counter, float64(p.Packets), "packets"), 0))).mend(advise(f.sender, p.Remedy))
		}
	}
	if o := f.elsewhere(x); o != nil {
		return o
	}
	flat, known := f.flatness()
	switch {
	case x.LossPct < surplusBar:
		return no("%s of the datagrams were lost: no more is sent than passes", unit.Percent(x.LossPct))
	case x.DelayMeanNs == nil:
		return f.receiver.lacks("delay of the datagrams")
	case x.wait.isClear():
		return no("the datagrams waited %s over the least: no queue is full", unit.Duration(*x.DelayMeanNs))
	case !x.wait.stands():
		return missing("whether a queue stood", fmt.Sprintf("the datagrams waited %s over the least, which clocks that drift apart or a host may have made too", unit.Duration(*x.DelayMeanNs)))
	}
	o := likely("a queue on the way lets %s pass, and no more", unit.Rate(bps)).by(x.proofs(f)...).costs(bps, unit.Rate(bps)+" pass", "datagrams received")
	if known && flat < 3*flatBar && x.lost[measure.LossPath] > placeBar {
		o.confidence = measure.Certain
		o.by(below(f.receiver.proof("deviation of the seconds from their median", flat, "pct"), 3*flatBar))
	}
	return f.asShaper(o)
}

// unreadDatagrams judges a test by UDP for a receiver that does not keep up:
// its socket had no room.
func unreadDatagrams(f *flow) *outcome {
	x, ok := f.fate()
	switch {
	case !ok:
		return f.receiver.lacks("the count of datagrams")
	case x.LossPct < lostBar:
		return no("%s of the datagrams were lost", unit.Percent(x.LossPct))
	case len(x.places) == 0:
		return f.receiver.lacks("the place of the loss")
	}
	p := x.at(measure.LossSocket)
	if x.lost[measure.LossSocket] < 100-placeBar {
		return no("%s of the lost datagrams found no room in the receiver's socket", unit.Percent(x.lost[measure.LossSocket]))
	}
	o := certain("the receiver's socket has no room for %s of the datagrams: its program reads too slowly, or its buffer is too small", unit.Percent(x.LossPct)).
		at(f.receiver.where()).by(above(f.receiver.proof(p.Counter, float64(p.Packets), "packets"), 0)).
		costs(0, unit.Percent(x.LossPct)+" do not arrive", "drops of the socket")
	if p.Packets < fewEvents {
		o.confidence = measure.Likely
	}
	if f.cell.Spec.Rate == 0 {
		o.then("a rate that is asked for (-b): as fast as it goes overruns any receiver")
	}
	return o.mend(advise(f.receiver, p.Remedy))
}

// askedDatagrams judges a test by UDP for the rate that was asked for.
func askedDatagrams(f *flow) *outcome {
	x, ok := f.fate()
	switch {
	case !ok:
		return f.receiver.lacks("the count of datagrams")
	case f.cell.Spec.Rate <= 0 || f.cell.Spec.Search:
		return no("no rate was asked for")
	case x.LossPct >= lostBar:
		return no("%s of the datagrams were lost", unit.Percent(x.LossPct))
	}
	return f.asIsAsked()
}
