package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/cause/diagnose"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Time limits for fetching the evidence of one end. With many pairs all replies
// share the path to this process, and a slow one delays no other.
const (
	collectTime     = 10 * time.Second
	collectManyTime = 30 * time.Second
)

// collect fetches the evidence of every end that is still reachable; for the
// others it keeps their live figures.
func (r *Runner) collect(flows []*flow, within time.Duration) {
	sides := sidesOf(flows)
	got := map[*side]*measure.Evidence{}
	var mu sync.Mutex
	unit.AtMost(len(sides), width, func(i int) {
		e := sides[i].evidence(within, r.idleAge())
		mu.Lock()
		defer mu.Unlock()
		got[sides[i]] = e
	})
	for _, f := range flows {
		f.nameFar()
		x := measure.Flow{From: f.spec.From, To: f.spec.To, Sender: cmp.Or(got[&f.sender], f.receiver.far), Receiver: cmp.Or(got[&f.receiver], f.sender.far)}
		if o := f.rides; o != nil { // the sending end of this flow is the other flow's receiver
			x.Sender, x.Receiver = cmp.Or(o.receiver.back, o.sender.farBack), cmp.Or(o.sender.back, o.receiver.farBack)
		}
		f.run.Flows = []measure.Flow{x}
	}
}

// nameFar sets the plan's end point name in the evidence that a foreign end reported.
func (f *flow) nameFar() {
	for s, o := range map[*side]*side{&f.sender: &f.receiver, &f.receiver: &f.sender} {
		for _, e := range []*measure.Evidence{s.far, s.farBack} {
			if e != nil {
				e.EndPoint = o.end.Name
			}
		}
	}
}

// experimentIdle is the age up to which a reading of the idle hosts serves an
// experiment: only its rate is compared with the base.
const experimentIdle = time.Minute

func (r *Runner) idleAge() time.Duration {
	if r.experiment == "" || r.experiment == diagnose.Base {
		return 0
	}
	return experimentIdle
}

func (s *side) evidence(within, idleAge time.Duration) *measure.Evidence {
	if s.session == "" {
		return nil
	}
	if s.end.Client.Err() != nil {
		s.unread = lost(s.end)
		return s.seen.evidence(s)
	}
	leave, _ := s.end.enter(context.Background()) // the time limit begins when this request may be sent, not while others wait
	defer leave()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	reply, err := bus.Call(ctx, s.end.Client, bus.Collect, bus.CollectRequest{Session: s.session, IdleAgeNs: int64(idleAge)})
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
		err = fault.ErrInterrupted
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

// trimSilence drops the bins without data at the end of a run that broke off:
// the path was already dead, and the end points had not noticed yet.
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
		Fact: "bins", Why: fmt.Sprintf("the last %.1f s without data, before the loss was detected, are left out", float64(silent)/1e9),
	})
}
