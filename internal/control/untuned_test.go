package control

import (
	"context"

	"thru/internal/bus"
)

// untuned is the part of an agent's client that changes settings, measures
// disks and observes transfers, for agents of tests that have none.
type untuned struct{}

func (untuned) Knobs(context.Context, bus.Knobs) (bus.KnobsReply, error) {
	return bus.KnobsReply{}, nil
}

func (untuned) Tune(context.Context, bus.Tune) (bus.Empty, error) {
	return bus.Empty{}, nil
}

func (untuned) Alter(context.Context, bus.Alter) (bus.ChangedReply, error) {
	return bus.ChangedReply{}, nil
}

func (untuned) Revert(context.Context, bus.Revert) (bus.ChangedReply, error) {
	return bus.ChangedReply{}, nil
}

func (untuned) Rollback(context.Context, bus.Rollback) (bus.ChangedReply, error) {
	return bus.ChangedReply{}, nil
}

func (untuned) Tuned(context.Context, bus.Tuned) (bus.Empty, error) {
	return bus.Empty{}, nil
}

func (untuned) Disk(context.Context, bus.Disk) (bus.DiskReply, error) {
	return bus.DiskReply{}, nil
}

func (untuned) Disked(context.Context, bus.Disked) (bus.DiskedReply, error) {
	return bus.DiskedReply{}, nil
}

func (untuned) Observe(context.Context, bus.Observe) (bus.ObserveReply, error) {
	return bus.ObserveReply{}, nil
}

func (untuned) Observed(context.Context, bus.Observed) (bus.ObservedReply, error) {
	return bus.ObservedReply{}, nil
}

func (untuned) Guests(context.Context, bus.Guests) (bus.GuestsReply, error) {
	return bus.GuestsReply{}, nil
}

func (untuned) Watch(context.Context, bus.Watch) (bus.WatchReply, error) {
	return bus.WatchReply{}, nil
}

func (untuned) Watched(context.Context, bus.Watched) (bus.WatchedReply, error) {
	return bus.WatchedReply{}, nil
}
