package control

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
)

// flow is one Spec of a step under way, with its two sessions.
type flow struct {
	index    int
	spec     measure.Spec
	sender   side
	receiver side
	run      measure.Run
	rides    *flow // the flow whose connections this one uses, the other way round; nil has its own
}

// side is one end of a flow: the agent there and its session.
type side struct {
	end     *EndPoint
	sends   bool
	dials   bool
	session string
	rtt     time.Duration
	over    bool // Done or Failed has come
	heard   time.Time
	err     error // of Failed
	seen    partial
	back    *measure.Evidence // of the other direction of two-way traffic
	far     *measure.Evidence // what the other end reported, where that is foreign
	farBack *measure.Evidence
	packets *caught // what was captured here; nil: nothing was to be
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

// sides are the sessions of the flow; none where it rides on another's, and
// none at a foreign end.
func (f *flow) sides() []*side {
	var ss []*side
	for _, s := range []*side{&f.sender, &f.receiver} {
		if f.rides == nil && !s.end.Foreign {
			ss = append(ss, s)
		}
	}
	return ss
}

// runStep measures all flows of a step once: it takes the turn at every agent,
// prepares both ends of each flow, starts them, watches, and collects. It
// returns a run for each flow, also on error, with what was measured.
func (r *Runner) runStep(ctx context.Context, step plan.Step, n int) ([]measure.Run, error) {
	flows, err := r.flows(step, n)
	if err != nil {
		return nil, err
	}
	waited, err := r.reserve(ctx, r.ends(step), step.Specs[0].Together)
	waited, r.waited = waited+r.waited, 0
	if err == nil {
		err = r.prepare(ctx, flows)
	}
	if err == nil {
		err = r.start(ctx, flows)
	}
	if err == nil {
		err = r.watch(ctx, flows)
	}
	r.collect(flows)
	r.fetch(ctx, flows)
	release(r.ends(step))
	r.readPackets(ctx, flows)
	runs := make([]measure.Run, len(flows))
	for i, f := range flows {
		f.run.WaitedNs = int64(waited)
		runs[i] = f.finish(err)
	}
	return runs, err
}

func (r *Runner) flows(step plan.Step, n int) ([]*flow, error) {
	var fs []*flow
	for i, s := range step.Specs {
		from, to := r.Ends[s.From], r.Ends[s.To]
		if from == nil || to == nil {
			return nil, fmt.Errorf("control: no connection to %s or %s", s.From, s.To)
		}
		// The sender holds what either end allows; each end enforces its own too.
		s.MaxRate = lowest(s.MaxRate, from.Hello.Limits.RateBps, to.Hello.Limits.RateBps)
		if s.Amount > 0 { // its duration is only a limit
			s.Duration = lowest(s.Duration, from.Hello.Limits.DurationNs, to.Hello.Limits.DurationNs)
		}
		fs = append(fs, &flow{
			index: i, spec: s, run: measure.Run{Index: n, StartedAt: time.Now()},
			sender: side{end: from, sends: true, dials: s.DialFrom}, receiver: side{end: to, dials: !s.DialFrom},
		})
		if s.Duplex && i%2 == 1 {
			fs[i].rides = fs[i-1]
		}
	}
	return fs, nil
}

// lowest of the bounds that are set; 0 is none.
func lowest(bounds ...int64) int64 {
	var least int64
	for _, b := range bounds {
		if b > 0 && (least == 0 || b < least) {
			least = b
		}
	}
	return least
}

// ends of a step, each once, in an order that all controllers share, so that
// two of them never wait for each other.
func (r *Runner) ends(step plan.Step) []*EndPoint {
	var es []*EndPoint
	for _, s := range step.Specs {
		for _, n := range []string{s.From, s.To} {
			if e := r.Ends[n]; !e.Foreign && !slices.Contains(es, e) {
				es = append(es, e)
			}
		}
	}
	slices.SortFunc(es, byAddr)
	return es
}

func byAddr(a, b *EndPoint) int { return strings.Compare(a.Addr, b.Addr) }

const askAgain = 250 * time.Millisecond

// reserve waits for the turn at every end point, in the order of ends.
func (r *Runner) reserve(ctx context.Context, ends []*EndPoint, together bool) (waited time.Duration, err error) {
	begin, asked := time.Now(), false
	for _, e := range ends {
		last := -1
		for {
			reply, err := e.Client.Reserve(ctx, bus.Reserve{Together: together})
			if err != nil {
				return 0, fmt.Errorf("control: taking the turn at %s: %w", e.Name, err)
			}
			if reply.Granted {
				break
			}
			if asked = true; reply.Ahead != last {
				r.Watch.Waiting(e.Name, reply.Ahead)
				last = reply.Ahead
			}
			if err := r.pause(ctx, e, askAgain); err != nil {
				return 0, err
			}
		}
	}
	if !asked {
		return 0, nil
	}
	return time.Since(begin), nil
}

func (r *Runner) pause(ctx context.Context, e *EndPoint, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-e.Client.Lost():
		return lost(e)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func lost(e *EndPoint) error {
	return fault.Failf("is that host up, and is `thru serve` still running there?",
		"control: %s is gone: %w", e.Name, cmp.Or(e.Client.Err(), errLost))
}

// prepare opens both ends of every flow, the listening one first.
func (r *Runner) prepare(ctx context.Context, flows []*flow) error {
	for _, f := range flows {
		if f.rides != nil {
			continue
		}
		l, d := f.listening(), f.dialling()
		ready := bus.PrepareReply{Port: l.end.Port}
		var err error
		if !l.end.Foreign {
			ready, err = l.end.Client.Prepare(ctx, bus.Prepare{Spec: f.specFor(l), Sends: l.sends, Token: d.end.Token})
		}
		if err != nil {
			return fmt.Errorf("control: preparing %s: %w", l.end.Name, err)
		}
		l.session = ready.Session
		if d.end.Foreign { // it has come by itself
			continue
		}
		conn, err := d.end.Client.Prepare(ctx, bus.Prepare{
			Spec: f.specFor(d), Sends: d.sends, Dials: true, Token: ready.Token, Ports: l.end.Hello.DataPorts, Targets: targets(f.spec, l.end, ready.Port), Login: l.end.Login,
		})
		if err != nil {
			return fmt.Errorf("control: connecting %s to %s: %w", d.end.Name, l.end.Name, err)
		}
		d.session = conn.Session
		if conn.RTTIdle != nil {
			d.rtt = time.Duration(conn.RTTIdle.Median)
		}
	}
	return nil
}

// targets are the addresses to dial: the one that the Spec names, else those
// that the end point offers.
func targets(s measure.Spec, e *EndPoint, port int) []string {
	hosts := e.DataHosts
	if s.DataAddr != "" {
		hosts = []string{s.DataAddr}
	}
	var ts []string
	for _, h := range hosts {
		ts = append(ts, net.JoinHostPort(h, strconv.Itoa(port)))
	}
	return ts
}

// start releases the barriers, all receivers first.
func (r *Runner) start(ctx context.Context, flows []*flow) error {
	for _, sends := range []bool{false, true} {
		for _, f := range flows {
			s := &f.receiver
			if sends {
				s = &f.sender
			}
			if f.rides != nil || s.end.Foreign {
				continue
			}
			ramp := plan.Ramp(f.spec, f.dialling().rtt)
			if err := f.begin(ctx, s, ramp); err != nil {
				return fmt.Errorf("control: starting %s: %w", s.end.Name, err)
			}
		}
	}
	return nil
}

// releaseTime is what an agent may take to release a barrier.
const releaseTime = 5 * time.Second

// begin releases the barrier at one end. Towards a foreign one, whose
// connections are made only now, that may take its time.
func (f *flow) begin(ctx context.Context, s *side, ramp time.Duration) error {
	if !f.sender.end.Foreign && !f.receiver.end.Foreign {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, releaseTime)
		defer cancel()
	}
	_, err := s.end.Client.Start(ctx, bus.Start{Session: s.session, RampNs: int64(ramp)})
	return err
}

// watch hears events until every session is over, or one has failed.
func (r *Runner) watch(ctx context.Context, flows []*flow) error {
	events, gone, stop := r.listen(flows)
	defer stop()
	late := time.NewTimer(longest(flows) + patience)
	defer late.Stop()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for _, f := range flows {
		for _, s := range f.sides() {
			s.heard = time.Now() // others may have taken long to start
		}
	}
	for left := sessions(flows); left > 0; {
		select {
		case e := <-events:
			f, s := find(flows, e.Session)
			if s == nil || s.over {
				continue
			}
			s.heard = time.Now()
			switch e.Kind {
			case bus.EventProgress, bus.EventConnected:
				r.progress(flows, f, s, e)
			case bus.EventDone:
				s.over = true
				left--
			case bus.EventFailed:
				return r.failed(flows, events, s, e)
			}
		case e := <-gone:
			return lost(e)
		case <-look.C:
			if s := mute(flows); s != nil {
				return fault.Failf("the process that moves the data there hangs or was stopped; the agent ends it when this command ends",
					"control: %s: nothing was heard of the test for %v", s.end.Name, muteTime)
			}
		case <-late.C:
			return fault.Failf("run it again; if it happens again, the end points' logs say more", "control: the test did not end in time")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// sessions counts those that have an end to wait for.
func sessions(flows []*flow) (n int) {
	for _, f := range flows {
		n += len(f.sides())
	}
	return n
}

// progress passes on one interval of a session.
func (r *Runner) progress(flows []*flow, f *flow, s *side, e bus.Event) {
	l := Live{
		Flow: f.index, EndPoint: s.end.Name, Sends: s.sends, Event: e,
		Total: time.Duration(f.spec.Duration), Ramp: plan.Ramp(f.spec, f.dialling().rtt),
	}
	if !e.Back {
		s.seen.add(e)
	} else {
		l.Sends = !l.Sends
		for _, x := range flows {
			if x.rides == f {
				l.Flow = x.index
			}
		}
	}
	r.Watch.Live(l)
}

// muteTime is how long a session may say nothing beyond its interval.
const muteTime = 8 * time.Second

// lastWordsTime is what an engine may take besides for the last words with a
// far end that is no agent, which it bounds itself.
const lastWordsTime = 15 * time.Second

// mute returns an end that should have spoken by now, or nil.
func mute(flows []*flow) *side {
	for _, f := range flows {
		expect := muteTime + max(time.Duration(f.spec.Interval), plan.Ramp(f.spec, f.dialling().rtt))
		if f.sender.end.Foreign || f.receiver.end.Foreign {
			expect += lastWordsTime
		}
		for _, s := range f.sides() {
			if !s.over && !s.heard.IsZero() && time.Since(s.heard) > expect {
				return s
			}
		}
	}
	return nil
}

// patience is how much longer than planned a step may take.
const patience = 30 * time.Second

func longest(flows []*flow) time.Duration {
	var d time.Duration
	for _, f := range flows {
		d = max(d, plan.Ramp(f.spec, f.dialling().rtt)+time.Duration(f.spec.Duration))
	}
	return d
}

// failed gives the other events of the same moment a chance: that the peer's
// host is gone, or what the peer says of its own failure, tells more than that
// it closed the connection.
func (r *Runner) failed(flows []*flow, events <-chan bus.Event, s *side, e bus.Event) error {
	grace := time.After(lostGrace)
	for waiting := true; waiting; {
		select {
		case x := <-events:
			f, o := find(flows, x.Session)
			if f != nil && x.Kind == bus.EventFailed && isEcho(e) && !isEcho(x) {
				s, e = o, x
			}
		case <-grace:
			waiting = false
		}
	}
	s.over, s.err = true, fault.Failf(e.Hint, "%s", e.Error)
	for _, x := range r.Ends {
		if x.Foreign {
			continue
		}
		select {
		case <-x.Client.Lost():
			return lost(x)
		default:
		}
	}
	return fmt.Errorf("control: %s: %w", s.end.Name, s.err)
}

// isEcho tells of a failure that only says that the other end has failed.
func isEcho(e bus.Event) bool {
	for _, word := range []string{"the peer closed", "the peer reset", "the peer ended"} {
		if strings.Contains(e.Error, word) {
			return true
		}
	}
	return false
}

const lostGrace = 200 * time.Millisecond

func find(flows []*flow, session string) (*flow, *side) {
	for _, f := range flows {
		for _, s := range f.sides() {
			if s.session == session && session != "" {
				return f, s
			}
		}
	}
	return nil, nil
}

// listen merges the events of all clients of the flows into one channel.
func (r *Runner) listen(flows []*flow) (<-chan bus.Event, <-chan *EndPoint, func()) {
	events, gone, quit := make(chan bus.Event), make(chan *EndPoint, len(r.Ends)), make(chan struct{})
	var wg sync.WaitGroup
	seen := map[*EndPoint]bool{}
	for _, f := range flows {
		for _, s := range f.sides() {
			if seen[s.end] {
				continue
			}
			seen[s.end] = true
			wg.Go(func() { forward(s.end, events, gone, quit) })
		}
	}
	return events, gone, func() { close(quit); wg.Wait() }
}

func forward(e *EndPoint, events chan<- bus.Event, gone chan<- *EndPoint, quit <-chan struct{}) {
	for {
		select {
		case ev := <-e.Client.Events():
			select {
			case events <- ev:
			case <-quit:
				return
			}
		case <-e.Client.Lost():
			gone <- e
			return
		case <-quit:
			return
		}
	}
}
