package agent

import (
	"context"
	"time"

	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
)

// Limits of a start at a given time: how far ahead it may be, and how long an
// engine may take for it, which may still have to connect.
const (
	mostAhead = 30 * time.Second
	startTime = 50 * time.Second
)

// startAt returns the time that a Start names. It returns the zero time (start at
// once) for none or one in the past.
func (a *Agent) startAt(ns int64) (time.Time, error) {
	now := time.Now()
	ahead := time.Duration(ns) - a.clock(now)
	switch {
	case ns == 0 || ahead <= 0:
		return time.Time{}, nil
	case ahead > mostAhead:
		return time.Time{}, fault.Usagef("", "agent: starting: a start %v ahead is too far, the limit is %v", ahead.Round(time.Millisecond), mostAhead)
	}
	return now.Add(ahead), nil
}

// start looks up the route to the peer and releases the barrier: now, or at a
// given time in a goroutine, so that the request is answered at once. A later
// error is sent as an event.
func (s *session) start(ctx context.Context, ramp time.Duration, at time.Time) error {
	if ramp < 0 || ramp > measure.MaxRamp {
		return fault.Usagef("", "agent: starting: a ramp of %v is out of range", ramp)
	}
	if err := s.inner.Joined(ctx); err != nil {
		return err
	}
	ready := s.inner.Ready()
	route, _ := s.agent.route(ready.Peer, ready.Local)
	near := s.near(route)
	if at.IsZero() {
		return s.letGo(ctx, ramp, route, near)
	}
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.ctx.Err() != nil {
		return fault.Failf("", "agent: starting: the session has ended")
	}
	s.expire.Reset(time.Until(at) + startTime + ramp + time.Duration(s.spec.Duration) + leftover)
	s.waiting.Go(func() { s.wait(ramp, at, route, near) })
	return nil
}

// wait releases the barrier at a given time, unless the session ends before.
func (s *session) wait(ramp time.Duration, at time.Time, route *measure.Route, near host.PlacementFacts) {
	ctx, cancel := context.WithDeadline(s.ctx, at.Add(startTime))
	defer cancel()
	select {
	case <-time.After(time.Until(at)):
	case <-ctx.Done():
		return
	}
	if err := s.letGo(ctx, ramp, route, near); err != nil && s.ctx.Err() == nil {
		s.agent.report(s.client, bus.Failed(s.id, err))
	}
}

// letGo releases the barrier.
func (s *session) letGo(ctx context.Context, ramp time.Duration, route *measure.Route, near host.PlacementFacts) error {
	s.mu.Lock() // so that no phase is missed while the watch is set up
	defer s.mu.Unlock()
	s.route = route
	if err := s.inner.Start(ctx, ramp, near); err != nil {
		return err
	}
	if s.spec.EachStream {
		s.agent.report(s.client, bus.Event{Session: s.id, Kind: bus.EventConnected, Conns: s.inner.Ready().Conns})
	}
	s.expire.Reset(ramp + time.Duration(s.spec.Duration) + leftover)
	s.host.watch(s.agent.conf.Host, s.inner.Process(), route)
	return nil
}

// mostLate bounds the delay of an update from the worker to here: beyond it the
// wall clock was set meanwhile.
const mostLate = time.Second

// began returns when the measured time began, from the wall clock, which the worker
// shares; now where that is implausible.
func began(u engine.Update, now time.Time) time.Time {
	ago := time.Duration(now.UnixNano() - u.Began)
	if u.Began == 0 || ago < 0 || ago > mostLate {
		return now
	}
	return now.Add(-ago)
}
