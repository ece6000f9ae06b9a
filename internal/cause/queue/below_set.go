package queue

import (
	"thru/internal/cause/below"
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// portShaper judges a rate that a port below is held to; nil where none is
// set, or the flow is not at it.
func portShaper(f *diagnose.Flow) *diagnose.Outcome {
	bps, ok := f.Goodput()
	if !ok || f.OnOneMachine() || f.IsAll() != nil {
		return nil
	}
	for _, e := range f.Ends() {
		s := below.ShapedAt(f, e)
		if s == nil {
			continue
		}
		passed, by := bps, f.Receiver.Proof("goodput", bps, "bps")
		if x, why := e.OfPort(below.PortRate(e)); why == "" && diagnose.Share(bps, s.Average) < below.ShapedLow {
			passed, by = x.Mean, below.Tells(x, e.Name, x.Mean, "bps") // with what others of the guest send
		}
		if passed < s.Average*below.ShapedLow/100 || passed > s.Average*below.ShapedHigh/100 {
			continue
		}
		return asPortShaper(f, s, by)
	}
	return nil
}

// asPortShaper words a flow that is at the rate of a shaped port.
func asPortShaper(f *diagnose.Flow, s *below.ShapedPort, by measure.Proof) *diagnose.Outcome {
	way := "receives"
	if s.End.Sends() {
		way = "sends"
	}
	o := diagnose.Likely("%s holds what the %s %s to %s, and this is it", s.Name, s.End.Place, way, unit.Rate(s.Average)).
		By(by, measure.Proof{EndPoint: s.End.Name, Counter: "average rate of its traffic shaping", Value: s.Average, Unit: "bps"}).
		Costs(s.Average, "no more than "+unit.Rate(s.Average)+" with all headers", "traffic shaping of "+s.Name)
	flat, known := f.Flatness()
	a, b := f.Sender.Load(), f.Receiver.Load()
	switch {
	case a.IsFull() || b.IsFull() || known && flat > 3*diagnose.FlatBar:
		o.Confidence = measure.Possible
	case known && flat < diagnose.FlatBar && a.Known && b.Known:
		o.Confidence = measure.Certain
	}
	return o.At(below.OnBed(s.End, s.Name)).Mend(&measure.Remedy{EndPoint: below.BedName(s.End), Advice: "raise the average of the traffic shaping of " + s.Name + ", or switch it off", Risk: "it may be meant: ask who runs the network"})
}
