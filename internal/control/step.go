package control

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"thru/internal/bus"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/unit"
)

// runStep measures all flows of a step once: it takes the turn at every agent,
// prepares both ends of each flow, starts them, watches, and collects. It
// returns a run for each flow, also on error, with the results until then.
//
// One failed flow fails all. With Independent it does not: the returned error is
// then that of the whole step.
func (r *Runner) runStep(ctx context.Context, step plan.Step, n int) ([]measure.Run, error) {
	flows := r.flows(step, n)
	if step.Independent {
		return r.runIndependent(ctx, step, flows)
	}
	if err := firstError(flows); err != nil {
		return finish(flows, 0, err), err
	}
	ends := endsOf(flows)
	waited, err := r.reserve(ctx, ends, step.Specs[0].Together)
	waited, r.waited = waited+r.waited, 0
	if err == nil {
		err = r.prepare(ctx, flows)
	}
	if err == nil {
		err = r.start(ctx, flows)
	}
	if err == nil {
		err = r.watch(ctx, flows, false, time.Now())
	}
	r.harvest(ctx, flows, ends, collectTime)
	return finish(flows, waited, err), err
}

// harvest fetches the evidence and captures of the flows, and gives the turns back.
func (r *Runner) harvest(ctx context.Context, flows []*flow, ends []*EndPoint, within time.Duration) {
	r.collect(flows, within)
	r.fetch(ctx, flows)
	release(ends)
	r.readPackets(ctx, flows)
}

// finish turns flows into their runs. err, if any, is the error of all flows;
// else each flow has its own.
func finish(flows []*flow, waited time.Duration, err error) []measure.Run {
	runs := make([]measure.Run, len(flows))
	for i, f := range flows {
		f.run.WaitedNs = int64(waited)
		if err != nil {
			f.err = err
		}
		runs[i] = f.finish(f.err)
	}
	return runs
}

// prepare opens both ends of every flow, one flow after the other.
func (r *Runner) prepare(ctx context.Context, flows []*flow) error {
	for _, f := range flows {
		if err := f.connect(ctx, r.dialBack); err != nil {
			return err
		}
		r.noteDial(f)
	}
	releaseStale(flows)
	return nil
}

// open opens both ends of a flow, the listening one first.
func (f *flow) open(ctx context.Context) error {
	l, d := f.listening(), f.dialling()
	ready := bus.PrepareReply{Port: l.end.Port}
	var err error
	if !l.end.Foreign {
		ready, err = bus.Call(ctx, l.end, bus.Prepare, bus.PrepareRequest{Spec: f.specFor(l), Sends: l.sends, Token: d.end.Token})
	}
	if err != nil {
		return fmt.Errorf("control: preparing %s: %w", l.end.Name, err)
	}
	l.session = ready.Session
	if d.end.Foreign { // it has connected already
		return nil
	}
	conn, err := bus.Call(ctx, d.end, bus.Prepare, bus.PrepareRequest{
		Spec: f.specFor(d), Sends: d.sends, Dials: true, Token: ready.Token, Ports: l.end.Hello.DataPorts, Targets: targets(f.spec, l.end, ready.Port), Login: l.end.Login,
	})
	if err != nil {
		return fmt.Errorf("control: connecting %s to %s: %w", d.end.Name, l.end.Name, err)
	}
	d.session = conn.Session
	if conn.RTTIdle != nil {
		d.rtt = time.Duration(conn.RTTIdle.Median)
	}
	return nil
}

// targets returns the addresses to dial: the one that the Spec names, else those
// that the end point offers.
func targets(s measure.Spec, e *EndPoint, port int) []string {
	hosts := e.DataHosts
	if s.DataAddr != "" {
		hosts = []string{s.DataAddr}
	}
	return unit.Mapped(hosts, func(h string) string { return net.JoinHostPort(h, strconv.Itoa(port)) })
}

// start releases the start barriers, all receivers first.
func (r *Runner) start(ctx context.Context, flows []*flow) error {
	for _, f := range flows {
		f.ramp = plan.Ramp(f.spec, f.dialling().rtt)
	}
	receivers, senders := byRole(flows)
	for _, s := range append(receivers, senders...) {
		if err := s.begin(ctx, 0); err != nil {
			return err
		}
	}
	measuredFrom(flows, time.Now())
	return nil
}

// measuredFrom sets when the measured time begins in flows that start now.
func measuredFrom(flows []*flow, start time.Time) {
	for _, f := range flows {
		f.run.MeasuredFrom = new(start.Add(f.ramp))
	}
}

// releaseTime is the time limit of an agent to release a barrier.
const releaseTime = 5 * time.Second

// begin releases the barrier at one end: at once, or at a time of that agent's
// clock. It has no time limit where the other end is foreign: its connections
// are made only now.
func (s *side) begin(ctx context.Context, at int64) error {
	if !s.other().end.Foreign {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, releaseTime)
		defer cancel()
	}
	if _, err := bus.Call(ctx, s.end, bus.Start, bus.StartRequest{Session: s.session, RampNs: int64(s.flow.ramp), AtNs: at}); err != nil {
		return fmt.Errorf("control: starting %s: %w", s.end.Name, err)
	}
	return nil
}
