package agent

import (
	"context"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/path"
	"thru/internal/token"
)

// Answer answers bus.Answer: it opens the answering end of a probe. A
// client has one at a time; a new one ends the old.
func (a *Agent) Answer(ctx context.Context, client string, _ bus.Empty) (bus.AnswerReply, error) {
	listen, err := a.enter(client, "answering a probe")
	if err != nil {
		return bus.AnswerReply{}, err
	}
	defer a.leave("")
	r, err := path.Open(context.WithoutCancel(ctx), path.Listen{
		Addrs: listen.Addrs, First: listen.First, Last: listen.Last, Offset: listen.Offset, Device: listen.Device,
	}, a.conf.Host)
	if err != nil {
		return bus.AnswerReply{}, err
	}
	if !a.keepResponder(client, r) {
		r.Close()
		return bus.AnswerReply{}, fault.Failf("", "agent: answering a probe: the client has disconnected, or the agent is shutting down")
	}
	return bus.AnswerReply{Token: r.Token(), Port: r.Port()}, nil
}

// Probe answers bus.Probe: it is the dialling end. Without a token the peer runs
// no thru, and the result has only this end's view.
func (a *Agent) Probe(ctx context.Context, client string, m bus.ProbeRequest) (bus.ProbeReply, error) {
	if m.Token == "" && !bus.IsOwn(ctx) {
		return bus.ProbeReply{}, fault.Failf("run thru there", "agent: remote clients may not probe without a token")
	}
	if m.Token != "" {
		if err := trusts(ctx, m.Token); err != nil {
			return bus.ProbeReply{}, err
		}
	}
	if len(m.Targets) > maxTargets {
		return bus.ProbeReply{}, fault.Failf("", "agent: probing: %d targets exceed the limit of %d", len(m.Targets), maxTargets)
	}
	if _, err := a.enter(client, "probing"); err != nil {
		return bus.ProbeReply{}, err
	}
	defer a.leave("")
	d := path.Dial{Targets: m.Targets, Token: m.Token, Quick: m.Quick, Source: m.Source, Device: m.Device, Family: m.Family, Host: a.conf.Host}
	probe := path.Probe
	if m.Token == "" {
		probe = path.Look
	}
	p, err := probe(ctx, d)
	if err != nil {
		return bus.ProbeReply{}, err
	}
	return bus.ProbeReply{Path: p}, nil
}

// maxTargets bounds the addresses that a client can have this host dial.
const maxTargets = 16

// keepResponder keeps the responder of a client; false when the client is gone.
func (a *Agent) keepResponder(client string, r *path.Responder) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || !a.turns.has(client) {
		return false
	}
	if old := a.answering[client]; old != nil {
		go old.Close()
	}
	a.answering[client] = r
	return true
}

// endResponder closes the responder of a client, if there is one.
func (a *Agent) endResponder(client string) {
	a.mu.Lock()
	r := a.answering[client]
	delete(a.answering, client)
	a.mu.Unlock()
	if r != nil {
		r.Close()
	}
}

// trusts rejects a token that does not prove that the peer wants the traffic:
// whoever sends it to this end could choose what an older thru would answer. This
// process is trusted, others are not.
func trusts(ctx context.Context, shown string) error {
	if token.Proves(shown) || bus.IsOwn(ctx) {
		return nil
	}
	return fault.Failf("upgrade the older thru at the listening end, or run the command at the dialling end",
		"agent: dialling: the other end cannot prove that it accepts the traffic")
}

func errNotYourTurn(what string) error {
	return fault.Failf("", "agent: %s: another client has the turn", what)
}

// maxLoad bounds how long a client may have the load of the host read.
const maxLoad = 5 * time.Second

// load reads the load of the host from other programs.
func (a *Agent) load(ctx context.Context, f *measure.Facts, span time.Duration) {
	l, missing := a.conf.Host.Load(ctx, min(span, maxLoad))
	f.Load = &l
	f.NotChecked = append(f.NotChecked, missing...)
}
