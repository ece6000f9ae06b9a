package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/measure"
)

// Bounds of fetching the evidence of one end. Of many pairs all share the way to
// this process, and one that is slow holds up none.
const (
	collectTime     = 10 * time.Second
	collectManyTime = 30 * time.Second
)

// collect fetches the evidence of every end that can still be reached; of the
// others it keeps what their live figures told.
func (r *Runner) collect(flows []*flow, within time.Duration) {
	sides := sidesOf(flows)
	got := map[*side]*measure.Evidence{}
	var mu sync.Mutex
	atMost(len(sides), width, func(i int) {
		e := sides[i].evidence(within)
		mu.Lock()
		defer mu.Unlock()
		got[sides[i]] = e
	})
	for _, f := range flows {
		f.nameFar()
		x := measure.Flow{From: f.spec.From, To: f.spec.To, Sender: cmp.Or(got[&f.sender], f.receiver.far), Receiver: cmp.Or(got[&f.receiver], f.sender.far)}
		if o := f.rides; o != nil { // what the one sends the other way, its receiver has sent
			x.Sender, x.Receiver = cmp.Or(o.receiver.back, o.sender.farBack), cmp.Or(o.sender.back, o.receiver.farBack)
		}
		f.run.Flows = []measure.Flow{x}
	}
}

// nameFar gives what a foreign end reported the name that it has here.
func (f *flow) nameFar() {
	for s, o := range map[*side]*side{&f.sender: &f.receiver, &f.receiver: &f.sender} {
		for _, e := range []*measure.Evidence{s.far, s.farBack} {
			if e != nil {
				e.EndPoint = o.end.Name
			}
		}
	}
}

func (s *side) evidence(within time.Duration) *measure.Evidence {
	if s.session == "" {
		return nil
	}
	if s.end.Client.Err() != nil {
		s.unread = lost(s.end)
		return s.seen.evidence(s)
	}
	leave, _ := s.end.enter(context.Background()) // the time of one does not begin while others are asked
	defer leave()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	reply, err := bus.Call(ctx, s.end.Client, bus.Collect, bus.CollectRequest{Session: s.session})
	if err != nil {
		s.unread = fmt.Errorf("control: fetching the evidence of %s: %w", s.end.Name, err)
		return s.seen.evidence(s)
	}
	reply.Evidence.EndPoint = s.end.Name
	if s.back = reply.Back; s.back != nil {
		s.back.EndPoint = s.end.Name
	}
	s.far, s.farBack = reply.Far, reply.FarBack
	return &reply.Evidence
}

// finish turns a flow into its run.
func (f *flow) finish(err error) measure.Run {
	f.run.Partial = err != nil
	if errors.Is(err, context.Canceled) {
		err = errInterrupted
	}
	if err != nil {
		f.run.Error = Describe(err)
	}
	if len(f.run.Flows) == 0 {
		f.run.Flows = []measure.Flow{}
		return f.run
	}
	if f.run.Partial {
		trimSilence(f.run.Flows[0].Receiver)
	}
	if e := f.run.Flows[0].Receiver; e != nil && e.MeasuredNs > 0 && f.spec.Traffic == measure.Bulk {
		f.run.Goodput = new(float64(e.Bytes) * 8e9 / float64(e.MeasuredNs))
	}
	return f.run
}

// trimSilence takes the bins without data from the end of a run that was cut:
// there the path was already dead, and only the end points did not know.
func trimSilence(e *measure.Evidence) {
	if e == nil {
		return
	}
	var silent int64
	for n := len(e.Bins); n > 0 && e.Bins[n-1].Bytes == 0; n-- {
		silent += e.Bins[n-1].Span
		e.Bins = e.Bins[:n-1]
	}
	if silent == 0 {
		return
	}
	e.MeasuredNs -= silent
	e.Missing = append(e.Missing, measure.NotChecked{
		Fact: "bins", Why: fmt.Sprintf("the last %.1f s before the end was noticed carried nothing and are left out", float64(silent)/1e9),
	})
}
