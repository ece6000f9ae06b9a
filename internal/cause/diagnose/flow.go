package diagnose

import (
	"cmp"
	"net/netip"
	"strings"

	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// Flow is one cell with the data that the rules need.
type Flow struct {
	Cat              *Catalogue // to look up other causes
	Doc              *measure.Document
	Cell             *measure.Cell
	Run              *measure.Run
	Sender, Receiver *End
	Gates            []measure.Gate  // gates that the rules of this flow read; see hypervisor.JudgedGates
	supposed         string          // an experiment whose gain is assumed to be real: would that make a cause certain?
	CapturePoints    []*CapturePoint // where its packets were captured
	Crossing         *Crossed        // comparison of two of them; nil if there is nothing to compare
}

// End is one end of the flow. Data that was not seen there is nil.
type End struct {
	*scene.Host
	Flow  *Flow
	Place string // measure.AtSender or AtReceiver
	Seen  *measure.Evidence
	Face  *measure.Interface // by which it reaches the other

	Placements []measure.HostPlacement // its host placement, one for each inventory that knows it
	NoPlace    string                  // why it is not known, if it was requested
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

// IsUDP reports whether the flow is of datagrams.
func (f *Flow) IsUDP() bool { return f.Cell.Protocol == measure.UDP }

// Ends returns both ends, the sender first.
func (f *Flow) Ends() []*End { return []*End{f.Sender, f.Receiver} }

// Other returns the other end of the flow.
func (e *End) Other() *End {
	if e == e.Flow.Sender {
		return e.Flow.Receiver
	}
	return e.Flow.Sender
}

// Sends reports whether this end is the sender.
func (e *End) Sends() bool { return e.Place == measure.AtSender }

// Where returns the place of a cause at this end.
func (e *End) Where() measure.Where { return measure.Where{Place: e.Place, EndPoint: e.Name} }

// OnCPU returns Where with a CPU number.
func (e *End) OnCPU(core int) measure.Where {
	w := e.Where()
	w.CPU = &core
	return w
}

// OnFace returns Where with the interface to the other end, if it is known.
func (e *End) OnFace() measure.Where {
	w := e.Where()
	w.Interface = e.FaceName()
	return w
}

// Owner returns the end as a possessive: "the receiver's", or "this host's" if both are one host.
func (e *End) Owner() string {
	if e.Flow.OnOneMachine() {
		return "this host's"
	}
	return "the " + e.Place + "'s"
}

// Streams returns the streams of the end; none if nothing was seen.
func (e *End) Streams() []measure.Stream {
	if e.Seen == nil {
		return nil
	}
	return e.Seen.Streams
}

// Span returns the measured time of the end in ns.
func (e *End) Span() int64 {
	if e.Seen == nil {
		return 0
	}
	return e.Seen.MeasuredNs
}

// Why returns the end's reason for a missing fact.
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
	return "neither the kernel nor the agent of the " + e.Place + " reports it"
}

// Lacks returns the outcome of a rule that misses a fact of this end.
func (e *End) Lacks(fact string) *Outcome { return Missing(fact+" of the "+e.Place, e.Why(fact)) }

// Path returns the probed path between the two ends; nil if it was not probed.
func (f *Flow) Path() *measure.Path {
	for i := range f.Doc.Paths {
		p := &f.Doc.Paths[i]
		if p.From == f.Cell.From && p.To == f.Cell.To || p.From == f.Cell.To && p.To == f.Cell.From {
			return p
		}
	}
	return nil
}

// Direction returns the facts of the data's direction, and back those of the opposite one. Both are nil if the
// path was not probed.
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

// OnOneMachine reports whether there is no link between the ends.
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

// FixOf takes over the fix of a gate.
func (e *End) FixOf(g measure.Gate) *measure.Fix {
	r := &measure.Fix{EndPoint: g.FixAt, Commands: g.Fix, Advice: g.Advice, Risk: g.Risk}
	if len(g.Fix) > 0 {
		r.Platform = e.System
	}
	r.EndPoint = cmp.Or(r.EndPoint, g.EndPoint)
	return r
}

// Proof returns a counter of this end as evidence.
func (e *End) Proof(counter string, value float64, unit string) measure.Proof {
	return measure.Proof{EndPoint: e.Name, Counter: counter, Value: value, Unit: unit, SpanNs: e.Span()}
}

// Above adds to a proof the threshold that it exceeds.
func Above(p measure.Proof, bar float64) measure.Proof { p.Threshold, p.Above = &bar, true; return p }

// UnderBar adds to a proof the threshold that it is below.
func UnderBar(p measure.Proof, bar float64) measure.Proof { p.Threshold = &bar; return p }

// Route returns the end's route to the other; nil if it is not known.
func (e *End) Route() *measure.Route {
	if e.Seen == nil {
		return nil
	}
	return e.Seen.Route
}

// Has reports whether an address, with or without a prefix length, is the one to which the other end sends.
func (e *End) Has(addr string) bool {
	plain, _, _ := strings.Cut(addr, "/")
	return plain != "" && (e.Point.Addr == plain || strings.HasPrefix(e.Point.Addr, plain+":"))
}
