package agent

import (
	"context"

	"thru/internal/bus"
	"thru/internal/fault"
)

// errNoTuning is what an agent without a tuner answers.
func errNoTuning() error {
	return fault.Failf("print its advice instead: thru tune --dry-run", "agent: this end point changes no settings")
}

// Knobs implements bus.Handler.
func (a *Agent) Knobs(context.Context, string, bus.Knobs) (bus.KnobsReply, error) {
	return bus.KnobsReply{NoTune: errNoTuning().Error()}, nil
}

// Tune implements bus.Handler.
func (a *Agent) Tune(context.Context, string, bus.Tune) (bus.Empty, error) {
	return bus.Empty{}, errNoTuning()
}

// Alter implements bus.Handler.
func (a *Agent) Alter(context.Context, string, bus.Alter) (bus.ChangedReply, error) {
	return bus.ChangedReply{}, errNoTuning()
}

// Revert implements bus.Handler.
func (a *Agent) Revert(context.Context, string, bus.Revert) (bus.ChangedReply, error) {
	return bus.ChangedReply{}, errNoTuning()
}

// Rollback implements bus.Handler.
func (a *Agent) Rollback(context.Context, string, bus.Rollback) (bus.ChangedReply, error) {
	return bus.ChangedReply{}, errNoTuning()
}

// Tuned implements bus.Handler.
func (a *Agent) Tuned(context.Context, string, bus.Tuned) (bus.Empty, error) {
	return bus.Empty{}, errNoTuning()
}
