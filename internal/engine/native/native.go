// Package native is thru's own engine: TCP, UDP and requests between two
// agents, connected by thru's own handshake (docs/data.md). The data moves in
// package worker.
package native

import (
	"context"

	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/measure"
)

// Engine opens sessions whose data moves in worker processes of Program.
type Engine struct {
	Program *worker.Program
}

// Name implements engine.Engine.
func (Engine) Name() string { return measure.Native }

// Open implements engine.Engine. A listening end returns when it listens, a dialling end when all its streams are connected.
func (n Engine) Open(ctx context.Context, e engine.End) (engine.Session, error) {
	s, err := worker.Open(ctx, n.Program, e, nil)
	if err != nil {
		return nil, err // not s: a nil *Session is no nil engine.Session
	}
	return s, nil
}
