package diagnose

import (
	"net/netip"
	"strings"

	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// Flow is one cell with what the rules ask of it.
type Flow struct {
	Cat              *Catalogue // where another cause is looked up
	Doc              *measure.Document
	Cell             *measure.Cell
	Run              *measure.Run
	Sender, Receiver *End
	Anew             []measure.Gate  // judged from the facts, where the document has no gates; see judgedGates
	supposed         string          // an experiment whose gain is taken to be no chance: would that make a cause certain?
	CapturePoints    []*CapturePoint // where its packets were captured
	Crossing         *Crossed        // what two of them tell together; nil where there is nothing to compare
}

// End is one of its ends. What was not seen there is nil.
type End struct {
	*scene.Host
	Flow  *Flow
	Place string // measure.AtSender or AtReceiver
	Seen  *measure.Evidence
	Face  *measure.Interface // by which it reaches the other

	Placements []measure.HostPlacement // what lies below it, by each inventory that knows it
	NoPlace    string                  // why that is not known, where it was asked
}

func newEnd(f *Flow, place, name string, seen *measure.Evidence) *End {
	point := &measure.EndPoint{Name: name}
	for i := range f.Doc.EndPoints {
		if x := &f.Doc.EndPoints[i]; x.Name == name {
			point = x
		}
	}
	e := &End{Host: scene.Of(point), Flow: f, Place: place, Seen: seen}
	if seen != nil && seen.Route != nil {
		e.Face = e.Interface(seen.Route.Interface)
	}
	e.findPlacements()
	return e
}

// IsUDP tells of a flow of datagrams.
func (f *Flow) IsUDP() bool { return f.Cell.Protocol == measure.UDP }

// Ends are both, the sender first.
func (f *Flow) Ends() []*End { return []*End{f.Sender, f.Receiver} }

// Other end of the flow.
func (e *End) Other() *End {
	if e == e.Flow.Sender {
		return e.Flow.Receiver
	}
	return e.Flow.Sender
}

// Sends tells the two ends apart.
func (e *End) Sends() bool { return e.Place == measure.AtSender }

// Where is the place of a cause at this end.
func (e *End) Where() measure.Where { return measure.Where{Place: e.Place, EndPoint: e.Name} }

// OnCPU is the same with the number of a CPU.
func (e *End) OnCPU(core int) measure.Where {
	w := e.Where()
	w.CPU = &core
	return w
}

// OnFace is the same with the interface towards the other end, where it is known.
func (e *End) OnFace() measure.Where {
	w := e.Where()
	w.Interface = e.FaceName()
	return w
}

// Owner is the end in the words of a sentence: "the receiver's", or where both
// are one host "this host's".
func (e *End) Owner() string {
	if e.Flow.OnOneMachine() {
		return "this host's"
	}
	return "the " + e.Place + "'s"
}

// Streams of the end; none where nothing was seen.
func (e *End) Streams() []measure.Stream {
	if e.Seen == nil {
		return nil
	}
	return e.Seen.Streams
}

// Span is the measured time of the end in ns.
func (e *End) Span() int64 {
	if e.Seen == nil {
		return 0
	}
	return e.Seen.MeasuredNs
}

// Why is the reason that the end gives for a fact that it lacks.
func (e *End) Why(fact string) string {
	switch {
	case e.Seen == nil:
		return "there is no evidence of the " + e.Place
	case e.Seen.Reported != "":
		return e.Seen.Reported + " does not report it"
	}
	for _, m := range e.Seen.Missing {
		if m.Fact == fact {
			return m.Why
		}
	}
	return "neither the kernel of the " + e.Place + " nor the thru that ran there tells"
}

// Lacks is the outcome of a rule without one of its facts.
func (e *End) Lacks(fact string) *Outcome { return Missing(fact+" of the "+e.Place, e.Why(fact)) }

// Path between the two ends as it was probed; nil where it was not.
func (f *Flow) Path() *measure.Path {
	for i := range f.Doc.Paths {
		p := &f.Doc.Paths[i]
		if p.From == f.Cell.From && p.To == f.Cell.To || p.From == f.Cell.To && p.To == f.Cell.From {
			return p
		}
	}
	return nil
}

// Direction is the direction of the path that the data takes, and back the other
// one. Both are nil where the path was not probed.
func (f *Flow) Direction() (direction, back *measure.DirectionFacts) {
	p := f.Path()
	switch {
	case p == nil:
		return nil, nil
	case p.From == f.Cell.From:
		return &p.Forward, &p.Back
	}
	return &p.Back, &p.Forward
}

// OnOneMachine tells that no link lies between the ends.
func (f *Flow) OnOneMachine() bool {
	if f.Cell.From == f.Cell.To {
		return true
	}
	for _, e := range f.Ends() {
		if e.Seen == nil {
			continue
		}
		if a, err := netip.ParseAddrPort(e.Seen.PeerAddr); err == nil && a.Addr().Unmap().IsLoopback() {
			return true
		}
	}
	return false
}

// FixOf takes over what a gate says is to be done.
func (e *End) FixOf(g measure.Gate) *measure.Fix {
	r := &measure.Fix{EndPoint: g.FixAt, Commands: g.Fix, Advice: g.Advice, Risk: g.Risk}
	if len(g.Fix) > 0 {
		r.Platform = e.System
	}
	if r.EndPoint == "" {
		r.EndPoint = g.EndPoint
	}
	return r
}

// Proof is a counter of this end.
func (e *End) Proof(counter string, value float64, unit string) measure.Proof {
	return measure.Proof{EndPoint: e.Name, Counter: counter, Value: value, Unit: unit, SpanNs: e.Span()}
}

// Above and below hold a proof against the bar that it has crossed.
func Above(p measure.Proof, bar float64) measure.Proof { p.Threshold, p.Above = &bar, true; return p }

// UnderBar adds to a proof the bar that it lies below.
func UnderBar(p measure.Proof, bar float64) measure.Proof { p.Threshold = &bar; return p }

// Route of the end towards the other; nil where it is not known.
func (e *End) Route() *measure.Route {
	if e.Seen == nil {
		return nil
	}
	return e.Seen.Route
}

// Has tells whether an address, with or without a prefix length, is the one that
// the other end sends to.
func (e *End) Has(addr string) bool {
	plain, _, _ := strings.Cut(addr, "/")
	return plain != "" && (e.Point.Addr == plain || strings.HasPrefix(e.Point.Addr, plain+":"))
}
