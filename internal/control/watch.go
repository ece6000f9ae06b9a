package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
)

// watching receives the events of flows until all their sessions are over.
type watching struct {
	*Runner
	flows       []*flow
	independent bool             // flows fail separately; else the first failure ends all, after a moment
	at          map[string]*side // by session
	left        int              // sessions that are not over
	looked      time.Time        // time of the last check for silence
	events      <-chan heard
	gone        <-chan *EndPoint
	ends        <-chan time.Time // fires when a failure ends all
}

// heard is an event with the end point that sent it.
type heard struct {
	from *EndPoint
	bus.Event
}

// Time limits of a watch. After a flow failed at one end, the other end has
// failTime to report its own error, which may be the better reason.
const (
	patience  = 30 * time.Second // how much longer than planned a step may take
	lookEvery = time.Second
	failTime  = 2 * time.Second
	lostGrace = 200 * time.Millisecond // for the loss of an end point to show
)

// watch reads events until every session is over, or one has failed. begin, when
// the flows start, may be in the future.
func (r *Runner) watch(ctx context.Context, flows []*flow, apart bool, begin time.Time) error {
	w := &watching{Runner: r, flows: flows, independent: apart, at: map[string]*side{}, looked: time.Now()}
	var stop func()
	w.events, w.gone, stop = listen(flows)
	defer stop()
	late := time.NewTimer(time.Until(begin) + longest(flows) + patience)
	defer late.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for _, s := range sidesOf(flows) {
		s.heard = slices.MaxFunc([]time.Time{begin, time.Now()}, time.Time.Compare) // others may have taken long to start
		w.at[s.session] = s
		w.left++
	}
	for w.left > 0 {
		select {
		case e := <-w.events:
			w.hear(e)
		case e := <-w.gone:
			if err := w.lose(e); err != nil {
				return err
			}
		case <-look.C:
			w.look()
		case <-late.C:
			w.failAll(errLate, func(*side) bool { return true })
		case <-w.ends:
			return reasonOf(flows)
		case <-ctx.Done():
			return w.interrupted(context.Cause(ctx))
		}
	}
	if !apart {
		return reasonOf(flows)
	}
	r.report(flows)
	return nil
}

// reasonOf returns the most informative error of flows that fail together.
func reasonOf(flows []*flow) error {
	for _, f := range flows {
		if f.err != nil && !isEcho(f.err) {
			return f.err
		}
	}
	return firstError(flows)
}

// hear handles an event; it ignores one of no flow, or from the wrong end point.
func (w *watching) hear(e heard) {
	s := w.at[e.Session]
	if s == nil || s.over || s.end != e.from {
		return
	}
	s.heard = time.Now()
	switch e.Kind {
	case bus.EventProgress, bus.EventConnected:
		w.progress(s, e.Event)
	case bus.EventDone:
		w.end(s)
	case bus.EventFailed:
		w.fail(s, fmt.Errorf("control: %s: %w", fault.Named(s.end.Name), e.Err()))
	}
}

// end marks a session as over.
func (w *watching) end(s *side) {
	if !s.over {
		s.over = true
		w.left--
	}
}

// fail ends a session with an error, which becomes that of its flow unless a
// better one is known. Where it ends all, watch still waits a moment for other
// events: a lost host, or the peer's own error, says more than a closed connection.
// After a closed connection it waits longer: the path may delay or lose the peer's report.
func (w *watching) fail(s *side, err error) {
	f, echo := s.flow, isEcho(err)
	if f.err == nil || isEcho(f.err) && !echo {
		f.err = err
	}
	w.end(s)
	s.other().until = time.Now().Add(failTime)
	switch {
	case w.independent || echo && w.ends != nil:
	case echo:
		w.ends = time.After(failTime)
	default:
		w.ends = time.After(lostGrace)
	}
}

// failAll fails the running sessions for which is returns true.
func (w *watching) failAll(err error, is func(*side) bool) {
	for _, s := range sidesOf(w.flows) {
		if !s.over && is(s) {
			w.fail(s, err)
		}
	}
}

// lose handles the loss of an end point: it ends all, or only the flows there.
func (w *watching) lose(e *EndPoint) error {
	err := lost(e)
	if n := fellSilent(e.Via, w.flows); n > 1 {
		err = controllerSilent(e.Via, n)
	}
	if !w.independent {
		return err
	}
	w.failAll(err, func(s *side) bool { return s.end == e })
	return nil
}

// look fails the sessions that were silent for too long.
func (w *watching) look() {
	passed := time.Since(w.looked)
	for _, s := range w.at {
		if passed > muteTime/2 || s.agentQuiet() {
			s.heard = s.heard.Add(passed) // this process was stopped and received nothing, or the whole agent is silent
		}
	}
	w.looked = time.Now()
	for s := mute(w.flows); s != nil; s = mute(w.flows) {
		w.fail(s, silence(s, w.flows))
	}
	for _, s := range sidesOf(w.flows) {
		if !s.until.IsZero() && time.Now().After(s.until) {
			w.end(s)
		}
	}
	if w.independent {
		w.report(w.flows)
	}
}

// silence returns the error of an end that was silent for too long.
func silence(s *side, flows []*flow) error {
	via := s.end.Via
	hint := "check the worker process there: it hangs or was stopped (the agent ends it when this command ends)"
	if n := fellSilent(via, flows); n > 1 {
		return controllerSilent(via, n)
	}
	if via != "" {
		hint += "; or check the controller: thru hosts " + via
	}
	return fault.Failf(hint, "control: %s: no report of the test for %v", fault.Named(s.end.Name), s.mayBeMute())
}

// fellSilent counts the hosts of a controller; 0 unless all of them are silent.
func fellSilent(via string, flows []*flow) int {
	silent := map[*EndPoint]bool{}
	for _, x := range sidesOf(flows) {
		switch {
		case via == "" || x.end.Via != via || x.heard.IsZero() || x.over && x.flow.err == nil:
		case time.Since(x.heard) < muteTime/2+time.Duration(x.flow.spec.Interval):
			return 0
		default:
			silent[x.end] = true
		}
	}
	return len(silent)
}

// controllerSilent returns the error of hosts that fell silent together: then none
// of them hangs, but the controller.
func controllerSilent(via string, hosts int) error {
	return fault.Failf("check that `thru control` runs there, and the network to it: thru hosts "+via,
		"control: the controller %s does not answer: no report of any of its %d hosts", via, hosts)
}

// errLate is the error of a test that did not end by itself.
var errLate = fault.Failf("run it again; if it fails again, read the end points' logs", "control: the test did not end in time")

// interrupted sets the error in the flows that had not ended.
func (w *watching) interrupted(err error) error {
	for _, s := range sidesOf(w.flows) {
		if !s.over {
			s.flow.err = cmp.Or(s.flow.err, err)
		}
	}
	return err
}

// report reports failed flows to the observer, each once, when both its sessions
// are over.
func (r *Runner) report(flows []*flow) {
	for _, f := range flows {
		over := true
		for _, s := range f.sides() {
			over = over && (s.over || s.session == "")
		}
		if f.err != nil && over && !f.announced {
			f.announced = true
			r.notify(Failed{f.spec, f.err})
		}
	}
}

// progress passes on one interval of a session.
func (w *watching) progress(s *side, e bus.Event) {
	f := s.flow
	l := Live{
		Flow: f.index, EndPoint: s.end.Name, Sends: s.sends, Event: e,
		Total: time.Duration(f.spec.Duration), Ramp: f.ramp,
	}
	if !e.Back {
		s.seen.add(e, f.mostBins())
	} else {
		l.Sends = !l.Sends
		for _, x := range w.flows {
			if x.rides == f {
				l.Flow = x.index
			}
		}
	}
	w.notify(l)
}

// mostBins returns how many live figures of an end are kept: as many as a correct agent sends.
func (f *flow) mostBins() int {
	const spare = 64
	return int(f.spec.Duration/int64(measure.MinInterval)) + spare
}

// How long a session may be silent beyond its interval. Behind a controller events
// come late after an outage: bus notices one after 10 s, and it takes some more
// seconds until all hosts are back.
const (
	muteTime      = 8 * time.Second
	muteTimeFleet = 16 * time.Second
)

// quietTime is the silence of an agent, which answers every 2 s, after which the
// agent and not one session counts as silent: bus judges that.
const quietTime = 3 * time.Second

// agentQuiet reports whether the end's agent itself is silent.
func (s *side) agentQuiet() bool {
	e := s.end
	return e.Via == "" && e.Client != nil && time.Since(e.Client.Heard()) > quietTime
}

func (s *side) mayBeMute() time.Duration {
	if s.end.Via != "" {
		return muteTimeFleet
	}
	return muteTime
}

// lastWordsTime is what an engine may add for the final exchange with a foreign
// end, which it bounds itself.
const lastWordsTime = 15 * time.Second

// mute returns an end that was silent for too long, or nil.
func mute(flows []*flow) *side {
	for _, f := range flows {
		expect := max(time.Duration(f.spec.Interval), f.ramp)
		if f.sender.end.Foreign || f.receiver.end.Foreign {
			expect += lastWordsTime
		}
		for _, s := range f.sides() {
			if !s.over && !s.heard.IsZero() && time.Since(s.heard) > expect+s.mayBeMute() {
				return s
			}
		}
	}
	return nil
}

func longest(flows []*flow) time.Duration {
	var d time.Duration
	for _, f := range flows {
		d = max(d, f.ramp+time.Duration(f.spec.Duration))
	}
	return d
}

// isEcho reports whether a failure only says that the other end has failed.
func isEcho(err error) bool { return fault.ReasonOf(err) == fault.PeerGone }

// listen merges the events of all clients of the flows into one channel.
func listen(flows []*flow) (<-chan heard, <-chan *EndPoint, func()) {
	ends := endsOf(flows)
	events, gone, quit := make(chan heard), make(chan *EndPoint, len(ends)), make(chan struct{})
	var wg sync.WaitGroup
	for _, e := range ends {
		wg.Go(func() { forward(e, events, gone, quit) })
	}
	return events, gone, func() { close(quit); wg.Wait() }
}

// forward passes on the events of an end point until it is lost, and those that
// came before the loss: a flow that is done is not lost.
func forward(e *EndPoint, events chan<- heard, gone chan<- *EndPoint, quit <-chan struct{}) {
	pass := func(ev bus.Event) (more bool) {
		select {
		case events <- heard{e, ev}:
			return true
		case <-quit:
			return false
		}
	}
	for {
		select {
		case ev := <-e.Client.Events():
			if !pass(ev) {
				return
			}
		case <-e.Client.Lost():
			for range len(e.Client.Events()) { // only those: an agent that floods has no end
				if !pass(<-e.Client.Events()) {
					return
				}
			}
			gone <- e
			return
		case <-quit:
			return
		}
	}
}
