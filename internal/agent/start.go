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

// Bounds of a start at a moment: how far ahead it may lie, and how long an
// engine may take for it, which may have connections yet to make.
const (
	mostAhead = 30 * time.Second
	startTime = 50 * time.Second
)

// startAt is the moment that a Start names. What has passed, or none, is the
// zero time: at once.
func (a *Agent) startAt(ns int64) (time.Time, error) {
	now := time.Now()
	ahead := time.Duration(ns) - a.clock(now)
	switch {
	case ns == 0 || ahead <= 0:
		return time.Time{}, nil
	case ahead > mostAhead:
		return time.Time{}, fault.Usagef("", "agent: starting: a moment %v ahead is too far, %v is the most", ahead.Round(time.Millisecond), mostAhead)
	}
	return now.Add(ahead), nil
}

// start looks up the route to the peer and releases the barrier: now, or at a
// moment that is awaited beside the request, which is answered at once. What
// goes wrong then is told by an event.
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

// wait releases the barrier at a moment, unless the session ends before.
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
	s.mu.Lock() // no step of the course is missed while the watch is set up
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

// mostLate bounds what a step may take from the worker to here: beyond it the
// wall clock was set meanwhile.
const mostLate = time.Second

// began is when the measured time began: by the wall clock, which the worker
// shares, that is so long ago; else just now.
func began(u engine.Update, now time.Time) time.Time {
	ago := time.Duration(now.UnixNano() - u.Began)
	if u.Began == 0 || ago < 0 || ago > mostLate {
		return now
	}
	return now.Add(-ago)
}
