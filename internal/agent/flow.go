package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
)

// Prepare answers bus.Prepare.
func (a *Agent) Prepare(ctx context.Context, client string, m bus.PrepareRequest) (bus.PrepareReply, error) {
	if err := a.admit(m.Spec); err != nil {
		return bus.PrepareReply{}, err
	}
	// A foreign program cannot show a token to prove that it wants the traffic: any
	// client of this agent could direct it at a third party.
	if m.Spec.Engine != measure.Native && !bus.IsOwn(ctx) {
		return bus.PrepareReply{}, fault.Failf("run thru there", "agent: remote clients may not start %s here", m.Spec.Engine)
	}
	if m.Dials && m.Spec.Engine == measure.Native {
		if err := trusts(ctx, m.Token); err != nil {
			return bus.PrepareReply{}, err
		}
	}
	eng, ok := a.conf.Engines[m.Spec.Engine]
	if !ok {
		return bus.PrepareReply{}, fault.Failf("upgrade thru at both ends to a version that supports it", "agent: this thru does not support the engine %q", m.Spec.Engine)
	}
	listen, err := a.enter(client, "preparing")
	if err != nil {
		return bus.PrepareReply{}, err
	}
	end := engine.End{
		Name: a.conf.Name, Spec: m.Spec, Sends: m.Sends, Dials: m.Dials,
		Targets: m.Targets, Token: m.Token, PeerPorts: [2]int{m.Ports.First, m.Ports.Last}, Listen: listen, MaxRate: a.limits().RateBps,
	}
	if l := m.Login; l != nil {
		end.Login = engine.Login{User: l.User, Password: l.Password, PublicKey: l.PublicKey, PKCS1: l.PKCS1}
	}
	inner, caught, err := a.open(ctx, eng, end)
	if err != nil {
		a.leave("")
		return bus.PrepareReply{}, err
	}
	s := newSession(a, client, m, inner)
	s.own = bus.IsOwn(ctx)
	s.packets = caught
	if !a.add(s) {
		inner.Close()
		caught.close()
		return bus.PrepareReply{}, fault.Failf("", "agent: preparing: the client has disconnected, or the agent is shutting down")
	}
	r := inner.Ready()
	return bus.PrepareReply{
		Session: s.id, Token: r.Token, Port: r.Port, Local: r.Local, Peer: r.Peer, RTTIdle: r.RTTIdle, Skipped: r.Skipped,
	}, nil
}

// admit enforces the limits that Hello reports to a client.
func (a *Agent) admit(s measure.Spec) error {
	l := a.limits()
	if s.Streams > l.Streams {
		return fault.Failf(fmt.Sprintf("use at most -P %d there", l.Streams), "agent: %d streams exceed this end point's limit", s.Streams)
	}
	if s.Duration > l.DurationNs {
		return fault.Failf(fmt.Sprintf("use at most -t %.0f there", time.Duration(l.DurationNs).Seconds()),
			"agent: a test of %v exceeds this end point's limit", time.Duration(s.Duration))
	}
	return nil
}

// add turns the reserved place into a session; false when the client is gone.
func (a *Agent) add(s *session) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opening--
	if a.closed || !a.turns.has(s.client) {
		return false
	}
	a.sessions[s.id] = s
	a.opened++
	go s.follow()
	a.busy()
	return true
}

// Start answers bus.Start.
func (a *Agent) Start(ctx context.Context, client string, m bus.StartRequest) (bus.Empty, error) {
	s, err := a.find(client, m.Session)
	if err != nil {
		return bus.Empty{}, err
	}
	at, err := a.startAt(m.AtNs)
	if err != nil {
		return bus.Empty{}, err
	}
	return bus.Empty{}, s.start(ctx, time.Duration(m.RampNs), at)
}

// Collect answers bus.Collect.
func (a *Agent) Collect(ctx context.Context, client string, m bus.CollectRequest) (bus.CollectReply, error) {
	s, err := a.find(client, m.Session)
	if err != nil {
		return bus.CollectReply{}, err
	}
	r := s.evidence(ctx, time.Duration(m.IdleAgeNs))
	s.collected.Store(true)
	a.prove(client, r.Evidence.PeerAddr)
	return r, nil
}

// Release answers bus.Release.
func (a *Agent) Release(_ context.Context, client string, m bus.ReleaseRequest) (bus.Empty, error) {
	a.mu.Lock()
	for _, s := range a.sessions {
		if s.client == client && (m.Session == "" || s.id == m.Session) && s.collected.Load() {
			s.unwanted.Store(true)
		}
	}
	a.mu.Unlock()
	a.end(client, m.Session)
	return bus.Empty{}, nil
}

// Gone implements bus.Handler.
func (a *Agent) Gone(client string) {
	a.endJobs(client, "", true)
	a.end(client, "") // first: a flow that still sends would be measured while the host changes
	a.untune(client)
	a.mu.Lock()
	delete(a.proved, client)
	a.mu.Unlock()
}

// end closes one session of a client, or all; with the last one it gives the turn back.
func (a *Agent) end(client, id string) {
	a.mu.Lock()
	var ours []*session
	left := 0
	for _, s := range a.sessions {
		switch {
		case s.client != client:
		case id == "" || s.id == id:
			ours = append(ours, s)
			delete(a.sessions, s.id)
		default:
			left++
		}
	}
	report := a.busy
	a.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range ours {
		wg.Go(s.close)
	}
	wg.Wait()
	if left += a.endJobs(client, id, false); left == 0 {
		a.turns.giveBack(client)
		a.reportEnded(client)
	}
	if len(ours) > 0 {
		report()
	}
	if id == "" { // after the turn is given back: without it no new one is opened
		a.endResponder(client)
	}
}

// Close ends every session. No request may follow it.
func (a *Agent) Close() {
	a.mu.Lock()
	a.closed = true
	clients := map[string]bool{}
	for _, s := range a.sessions {
		clients[s.client] = true
	}
	for c := range a.answering {
		clients[c] = true
	}
	if a.tuner != "" {
		clients[a.tuner] = true
	}
	for _, w := range a.jobs {
		clients[w.base().client] = true
	}
	a.mu.Unlock()
	for c := range clients {
		a.Gone(c)
	}
	a.probing.Close()
}
