package control

import (
	"cmp"
	"time"

	"thru/internal/bus"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/unit"
)

// flow is one Spec of a running step, with its two sessions.
type flow struct {
	index    int
	spec     measure.Spec
	sender   side
	receiver side
	run      measure.Run
	rides    *flow         // the flow whose connections this one uses in the other direction; nil: it has its own
	ramp     time.Duration // before its measured time

	// In a step with independent flows.
	err       error  // why this flow failed; the others go on
	announced bool   // the observer has received err
	swapped   bool   // the end that was to listen has dialled
	stale     []side // sessions of failed attempts
}

// side is one end of a flow: the agent there and its session.
type side struct {
	flow    *flow
	end     *EndPoint
	sends   bool
	dials   bool
	session string
	rtt     time.Duration
	over    bool // Done or Failed has come
	heard   time.Time
	until   time.Time // when to stop waiting for it, since the flow has failed; zero: no limit
	seen    partial
	unread  error             // why its evidence could not be fetched; only its live figures are there
	back    *measure.Evidence // of the other direction of two-way traffic
	far     *measure.Evidence // what the other end reported, where that is foreign
	farBack *measure.Evidence
	packets *caught // the capture of this end; nil: none was asked for
}

// flows returns the flows of a step. A flow whose end point is lost or was never
// connected has that as its error.
func (r *Runner) flows(step plan.Step, n int) []*flow {
	fs := make([]*flow, len(step.Specs))
	for i, s := range step.Specs {
		fs[i] = r.flow(i, s, n)
		if before := i - 1; s.Duplex && i > 0 && fs[before].spec.Duplex && fs[before].rides == nil {
			fs[i].rides = fs[before]
		}
	}
	return fs
}

func (r *Runner) flow(index int, s measure.Spec, n int) *flow {
	from, to := r.end(s.From), r.end(s.To)
	// The sender applies the lower limit of both ends; each end enforces its own too.
	s.MaxRate = lowest(s.MaxRate, from.Hello.Limits.RateBps, to.Hello.Limits.RateBps)
	if s.Amount > 0 { // the duration is only a limit
		s.Duration = lowest(s.Duration, from.Hello.Limits.DurationNs, to.Hello.Limits.DurationNs)
	}
	f := &flow{
		index: index, spec: s, run: measure.Run{Index: n, StartedAt: time.Now()}, err: cmp.Or(r.gone(from), r.gone(to), r.unfitPair(s.From, s.To)),
		sender: side{end: from, sends: true, dials: s.DialFrom}, receiver: side{end: to, dials: !s.DialFrom},
	}
	f.sender.flow, f.receiver.flow = f, f
	f.announced = r.unfitPair(s.From, s.To) != nil // reported before the first step
	return f
}

func (f *flow) dialling() *side {
	if f.spec.DialFrom {
		return &f.sender
	}
	return &f.receiver
}

func (f *flow) listening() *side {
	if f.spec.DialFrom {
		return &f.receiver
	}
	return &f.sender
}

// other returns the other end of the same flow.
func (s *side) other() *side {
	if s == &s.flow.sender {
		return &s.flow.receiver
	}
	return &s.flow.sender
}

// sides returns the sessions of the flow; none where it uses another flow's
// connections, and none at an end without an agent.
func (f *flow) sides() []*side {
	return unit.Filtered([]*side{&f.sender, &f.receiver}, func(s *side) bool { return f.rides == nil && s.end.asked() })
}

// sidesOf returns the sessions of all these flows.
func sidesOf(flows []*flow) (ss []*side) {
	for _, f := range flows {
		ss = append(ss, f.sides()...)
	}
	return ss
}

// byRole splits the sessions of the flows into receivers and senders.
func byRole(flows []*flow) (receivers, senders []*side) {
	for _, s := range sidesOf(flows) {
		if s.sends {
			senders = append(senders, s)
		} else {
			receivers = append(receivers, s)
		}
	}
	return receivers, senders
}

// able returns the flows that have not failed.
func able(flows []*flow) []*flow {
	return unit.Filtered(flows, func(f *flow) bool { return f.err == nil })
}

// firstError returns the first error of the flows.
func firstError(flows []*flow) error {
	for _, f := range flows {
		if f.err != nil {
			return f.err
		}
	}
	return nil
}

// lowest returns the lowest bound that is set; 0 where none is.
func lowest(bounds ...int64) int64 {
	var least int64
	for _, b := range bounds {
		if b > 0 && (least == 0 || b < least) {
			least = b
		}
	}
	return least
}

// partial keeps the live figures of one end so far.
type partial struct {
	bins []measure.StreamBin
}

// add keeps the figures of one interval. It ignores intervals beyond the number
// that the test can have.
func (p *partial) add(e bus.Event, most int) {
	if e.Phase == bus.PhaseMeasure && e.SpanNs > 0 && len(p.bins) < most {
		p.bins = append(p.bins, measure.StreamBin{At: e.AtNs, Span: e.SpanNs, Bytes: e.Bytes})
	}
}

// evidence builds the evidence of a lost end from its live figures.
func (p *partial) evidence(s *side) *measure.Evidence {
	e := &measure.Evidence{
		EndPoint: s.end.Name, Sends: s.sends, Dialled: s.dials, Streams: []measure.Stream{}, Bins: []measure.StreamBin{},
		Error:   errLost.Error(),
		Missing: []measure.NotChecked{{Fact: "evidence", Why: "the end point was lost; these are its last live figures"}},
	}
	for _, b := range p.bins {
		e.Bins = append(e.Bins, b)
		e.Bytes += b.Bytes
		e.MeasuredNs += b.Span
	}
	e.TotalBytes = e.Bytes
	return e
}

// caught is a capture as the agent delivered it.
type caught struct {
	end  *EndPoint
	what bus.CaptureReply
	file []byte // pcapng
	err  error
}
