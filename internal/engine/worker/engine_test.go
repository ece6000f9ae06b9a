package worker

import (
	"context"

	"thru/internal/engine"
)

// Engine is thru's own engine as in package native, with features that a test may disable.
type Engine struct {
	Program *Program
	Without []string
}

// Name implements engine.Engine.
func (Engine) Name() string { return "native" }

// Open implements engine.Engine.
func (n Engine) Open(ctx context.Context, e engine.End) (engine.Session, error) {
	s, err := Open(ctx, n.Program, e, n.Without)
	if err != nil {
		return nil, err
	}
	return s, nil
}
