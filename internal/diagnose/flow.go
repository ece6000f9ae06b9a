package diagnose

import (
	"net/netip"

	"thru/internal/measure"
)

// flow is one cell with what the rules ask of it.
type flow struct {
	doc              *measure.Document
	cell             *measure.Cell
	run              *measure.Run
	sender, receiver *end
	anew             []measure.Gate // judged from the facts, where the document has no gates; see judgedGates
	supposed         string         // an experiment whose gain is taken to be no chance: would that make a cause certain?
	spots            []*spot        // where its packets were captured
	crossing         *crossed       // what two of them tell together; nil where there is nothing to compare
}

// end is one of its ends. What was not seen there is nil.
type end struct {
	flow  *flow
	place string // measure.AtSender or AtReceiver
	name  string
	facts *measure.Facts
	seen  *measure.Evidence
	face  *measure.Interface // by which it reaches the other

	below   []measure.Beneath // what lies below it, by each inventory that knows it
	noPlace string            // why that is not known, where it was asked
}

func newEnd(f *flow, place, name string, seen *measure.Evidence) *end {
	e := &end{flow: f, place: place, name: name, seen: seen}
	for i := range f.doc.EndPoints {
		if f.doc.EndPoints[i].Name == name {
			e.facts = f.doc.EndPoints[i].Facts
		}
	}
	if seen != nil && seen.Route != nil {
		e.face = e.facts.Interface(seen.Route.Interface)
	}
	e.findBelow()
	return e
}

func (f *flow) isUDP() bool { return f.cell.Protocol == measure.UDP }

// ends are both, the sender first.
func (f *flow) ends() []*end { return []*end{f.sender, f.receiver} }

// other end of the flow.
func (e *end) other() *end {
	if e == e.flow.sender {
		return e.flow.receiver
	}
	return e.flow.sender
}

// sends tells the two ends apart.
func (e *end) sends() bool { return e.place == measure.AtSender }

// where is the place of a cause at this end.
func (e *end) where() measure.Where { return measure.Where{Place: e.place, EndPoint: e.name} }

// onCPU is the same with the number of a CPU.
func (e *end) onCPU(core int) measure.Where {
	w := e.where()
	w.CPU = &core
	return w
}

// onFace is the same with the interface towards the other end, where it is known.
func (e *end) onFace() measure.Where {
	w := e.where()
	w.Interface = e.faceName()
	return w
}

// owner is the end in the words of a sentence: "the receiver's", or where both
// are one host "this host's".
func (e *end) owner() string {
	if e.flow.onOneMachine() {
		return "this host's"
	}
	return "the " + e.place + "'s"
}

// streams of the end; none where nothing was seen.
func (e *end) streams() []measure.Stream {
	if e.seen == nil {
		return nil
	}
	return e.seen.Streams
}

// span is the measured time of the end in ns.
func (e *end) span() int64 {
	if e.seen == nil {
		return 0
	}
	return e.seen.MeasuredNs
}

// why is the reason that the end gives for a fact that it lacks.
func (e *end) why(fact string) string {
	switch {
	case e.seen == nil:
		return "there is no evidence of the " + e.place
	case e.seen.Reported != "":
		return e.seen.Reported + " does not report it"
	}
	for _, m := range e.seen.Missing {
		if m.Fact == fact {
			return m.Why
		}
	}
	return "neither the kernel of the " + e.place + " nor the thru that ran there tells"
}

// lacks is the outcome of a rule without one of its facts.
func (e *end) lacks(fact string) *outcome { return missing(fact+" of the "+e.place, e.why(fact)) }

// path between the two ends as it was probed; nil where it was not.
func (f *flow) path() *measure.Path {
	for i := range f.doc.Paths {
		p := &f.doc.Paths[i]
		if p.From == f.cell.From && p.To == f.cell.To || p.From == f.cell.To && p.To == f.cell.From {
			return p
		}
	}
	return nil
}

// way is the direction of the path that the data takes, and back the other
// one. Both are nil where the path was not probed.
func (f *flow) way() (way, back *measure.OneWay) {
	p := f.path()
	switch {
	case p == nil:
		return nil, nil
	case p.From == f.cell.From:
		return &p.Forward, &p.Back
	}
	return &p.Back, &p.Forward
}

// onOneMachine tells that no link lies between the ends.
func (f *flow) onOneMachine() bool {
	if f.cell.From == f.cell.To {
		return true
	}
	for _, e := range f.ends() {
		if e.seen == nil {
			continue
		}
		if a, err := netip.ParseAddrPort(e.seen.PeerAddr); err == nil && a.Addr().Unmap().IsLoopback() {
			return true
		}
	}
	return false
}

// remedyOf takes over what a gate says is to be done.
func remedyOf(g measure.Gate, facts *measure.Facts) *measure.Remedy {
	r := &measure.Remedy{EndPoint: g.RemedyAt, Commands: g.Remedy, Advice: g.Advice, Risk: g.Risk}
	if facts != nil && facts.OS != nil && len(g.Remedy) > 0 {
		r.Platform = *facts.OS
	}
	if r.EndPoint == "" {
		r.EndPoint = g.EndPoint
	}
	return r
}

// proof is a counter of this end.
func (e *end) proof(counter string, value float64, unit string) measure.Proof {
	return measure.Proof{EndPoint: e.name, Counter: counter, Value: value, Unit: unit, SpanNs: e.span()}
}

// above and below hold a proof against the bar that it has crossed.
func above(p measure.Proof, bar float64) measure.Proof { p.Threshold, p.Above = &bar, true; return p }
func below(p measure.Proof, bar float64) measure.Proof { p.Threshold = &bar; return p }
