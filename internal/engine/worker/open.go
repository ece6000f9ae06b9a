// Package worker moves test traffic: each end of a flow in a process of its
// own, so that its CPU and memory are accounted apart, garbage collection never
// interrupts it, and a crash or a hang does not take the agent along.
//
// The agent's side is Open, Adopt and Session (open.go, adopt.go, process.go,
// session.go); the worker's side is Main (worker.go, connect.go, sampler.go),
// which moves data along one of the paths of this system (copy_linux.go,
// portable.go). Open connects by thru's own handshake (docs/data.md); Adopt
// takes over what an engine has connected by another protocol.
package worker

import (
	"context"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/token"
)

// connectWait bounds the time from Open of the listening end to the last connection.
const connectWait = 30 * time.Second

// replyWait bounds what a worker may take to come up and answer.
const replyWait = 12 * time.Second

// Open starts a worker that connects by thru's own handshake. A listening end
// returns when it listens, a dialling end when all its streams are connected.
// without names features that are taken to be missing here, so that a test can
// see what happens then: a data path of package measure, or "pacing".
func Open(ctx context.Context, p *Program, e engine.End, without []string) (*Session, error) {
	if err := Check(e.Spec); err != nil {
		return nil, err
	}
	if e.Spec.Duplex && e.Spec.Protocol == measure.UDP {
		return nil, fault.Usagef("leave --one-connection out", "worker: checking the request: datagrams have no connection to share")
	}
	shown := e.Token
	if !e.Dials {
		shown = token.New()
	}
	proc, err := p.start(threads(e.Spec))
	if err != nil {
		return nil, err
	}
	s := newSession(e, proc, shown, without)
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
