package agent

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
)

// session follows one engine session of a client: it reads the host's counters at
// each phase, and sends events to the client.
type session struct {
	id     string
	client string
	agent  *Agent
	inner  engine.Session
	spec   measure.Spec
	sends  bool
	own    bool          // its client is in this process
	over   chan struct{} // closed when follow has ended
	expire *time.Timer   // ends a session whose engine never does

	packets *packets // its capture; nil: none

	opened    time.Time     // when it was prepared
	kept      chan struct{} // closed when its evidence is in the spool, after over
	spooled   string        // id in the spool; empty: it is not there
	collected atomic.Bool   // its client has fetched the evidence
	unwanted  atomic.Bool   // and has released it: nobody else needs it

	mu    sync.Mutex
	route *measure.Route
	host  hostWatch
	began *int64 // start of the measured time, on the agent's clock

	// For a start at a future time.
	starting sync.Mutex // no wait begins once ctx has ended
	waiting  sync.WaitGroup
	ctx      context.Context // ends with the session
	cancel   context.CancelFunc
}

func newSession(a *Agent, client string, m bus.PrepareRequest, inner engine.Session) *session {
	s := &session{
		id: newID(), client: client, agent: a, inner: inner, spec: m.Spec, sends: m.Sends,
		over: make(chan struct{}), kept: make(chan struct{}), opened: time.Now(),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.expire = time.AfterFunc(unstarted, func() { a.end(client, s.id) })
	return s
}

// Time limits of a session that no client ends; the worker has its own, shorter ones.
const (
	unstarted = 2 * time.Minute
	leftover  = time.Minute
)

// near returns the CPUs close to the session's interface.
func (s *session) near(route *measure.Route) host.PlacementFacts {
	if route == nil || s.spec.Unplaced {
		return host.PlacementFacts{}
	}
	return s.agent.conf.Host.PlacementFacts(route.Interface)
}

// follow turns the engine's updates into events until the session is over.
func (s *session) follow() {
	defer func() {
		close(s.over)
		s.noteEnd()
		s.keep()
		close(s.kept)
	}()
	for u := range s.inner.Updates() {
		e := bus.Event{Session: s.id, Kind: bus.EventProgress, Phase: bus.PhaseMeasure, AtNs: int64(u.At), SpanNs: int64(u.Span), Bytes: u.Bytes, Retransmits: u.Retransmits,
			Packets: u.Packets, Lost: u.Lost, Requests: u.Requests, Back: u.Back, Each: u.Each}
		switch u.Kind {
		case engine.Progress:
			if u.Ramp {
				e.Phase = bus.PhaseRamp
			}
			s.mu.Lock()
			e.CPUPct, e.CPUMaxPct = s.host.load()
			s.mu.Unlock()
		case engine.Mark, engine.Bin, engine.Finish:
			s.mu.Lock()
			if u.Kind == engine.Mark {
				s.began = new(int64(s.agent.clock(began(u, time.Now()))))
			}
			s.host.step(u.Kind)
			s.mu.Unlock()
			continue
		case engine.Done:
			e.Kind, e.Phase = bus.EventDone, bus.PhaseDrain
		case engine.Failed:
			e.Kind, e.Error, e.Hint, e.Reason = bus.EventFailed, u.Err.Error(), fault.Hint(u.Err), fault.ReasonOf(u.Err)
		}
		s.agent.report(s.client, e)
	}
}

// noteEnd keeps the results of a measured flow for Config.Ended.
func (s *session) noteEnd() {
	if s.own || s.agent.conf.Ended == nil {
		return
	}
	e := Ended{Spec: s.spec, Evidence: s.inner.Evidence()}
	if b, ok := s.inner.Back(); ok {
		e.Back = &b
	}
	if e.Evidence.TotalBytes > 0 || e.Back != nil && e.Back.TotalBytes > 0 {
		s.agent.mu.Lock()
		s.agent.over[s.client] = append(s.agent.over[s.client], e)
		s.agent.mu.Unlock()
	}
}

// evidence returns the engine's evidence with the host's counters. Its reading of the
// idle host may be idleAge old.
func (s *session) evidence(ctx context.Context, idleAge time.Duration) bus.CollectReply {
	e := s.inner.Evidence()
	var base *measure.HostSpan
	if len(e.Bins) > 0 {
		base = s.agent.baseline.get(ctx, s.agent.conf.Host, s.agent.isQuiet, idleAge)
	}
	return s.seen(e, base)
}

// seen adds the host's counters and its idle load to the engine's evidence; back
// is the other direction of two-way traffic.
func (s *session) seen(e measure.Evidence, base *measure.HostSpan) bus.CollectReply {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Route, e.BeganNs = s.route, s.began
	if e.Base = base; base == nil && len(e.Bins) > 0 {
		e.Missing = append(e.Missing, measure.NotChecked{Fact: "host_idle_baseline", Why: "the host was not idle: other tests ran, or this one had not ended"})
	}
	s.host.into(&e)
	r := bus.CollectReply{Evidence: e}
	if b, ok := s.inner.Back(); ok {
		b.Route, b.BeganNs, b.Base, b.Host, b.PerSec = e.Route, e.BeganNs, e.Base, e.Host, e.PerSec
		r.Back = &b
	}
	r.Far, r.FarBack = s.inner.Far()
	return r
}

// close ends the session and waits until all its parts have ended.
func (s *session) close() {
	s.expire.Stop()
	s.starting.Lock()
	s.cancel()
	s.starting.Unlock()
	s.inner.Close()
	s.waiting.Wait()
	<-s.kept
	s.settle()
	s.packets.close()
}

// hostWatch reads the host's counters at the phases of a session.
type hostWatch struct {
	host   *host.Watch
	last   host.Snapshot // for the live load
	loadAt time.Time
	pct    *float64 // nil until two readings are far enough apart
	maxPct *float64

	begin, bin, end host.Snapshot
	origin          time.Time // when the measured time began
	marked, ended   bool
	perSecond       []measure.HostSpan
}

// watch takes the first reading, the base of the first live figure.
func (w *hostWatch) watch(h *host.Host, pid int, r *measure.Route) {
	iface := ""
	if r != nil {
		iface = r.Interface
	}
	w.host = h.Watch(iface, pid)
	w.last, w.loadAt = w.host.Read(), time.Now()
}

// loadEvery is the least interval between two live readings of the host.
const loadEvery = 300 * time.Millisecond

// load returns the load of the machine and of its busiest core, in percent.
func (w *hostWatch) load() (pct, most *float64) {
	if w.host == nil || time.Since(w.loadAt) < loadEvery {
		return w.pct, w.maxPct
	}
	now := w.host.Read()
	span := host.Span(w.last, now, w.loadAt)
	w.last, w.loadAt = now, time.Now()
	w.pct, w.maxPct = nil, nil
	for _, c := range span.CPUs {
		if w.pct == nil {
			w.pct, w.maxPct = new(float64), new(float64)
		}
		*w.pct += c.Busy() / float64(len(span.CPUs))
		*w.maxPct = max(*w.maxPct, c.Busy())
	}
	return w.pct, w.maxPct
}

// step reads the host at the beginning, at each second and at the end of the measured time.
func (w *hostWatch) step(kind engine.Kind) {
	if w.host == nil {
		return
	}
	now := w.host.Read()
	switch {
	case kind == engine.Mark:
		w.begin, w.bin, w.marked, w.origin = now, now, true, now.Taken
	case !w.marked:
	case kind == engine.Bin:
		w.perSecond = append(w.perSecond, host.Span(w.bin, now, w.origin))
		w.bin, w.end, w.ended = now, now, true
	default:
		w.end, w.ended = now, true
	}
}

// into adds the readings to the evidence of the session's end.
func (w *hostWatch) into(e *measure.Evidence) {
	if !w.marked || !w.ended {
		e.Missing = append(e.Missing, measure.NotChecked{Fact: "host", Why: "the measured time had not started"})
		return
	}
	e.Host = new(host.Span(w.begin, w.end, w.origin))
	e.PerSec = append([]measure.HostSpan{}, w.perSecond...)
	e.Missing = append(e.Missing, w.begin.Missing...)
}

// find returns a session of that client; a session of another client counts as unknown.
func (a *Agent) find(client, id string) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[id]; s != nil && s.client == client {
		return s, nil
	}
	return nil, errUnknown(id)
}
