package agent

import (
	"context"
	"fmt"
	"slices"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
)

// Tuner reads and changes the settings of this host, for one client at a time:
// tune.Tuner, or a fake in tests.
type Tuner interface {
	// Knobs returns the knobs of the host and of the interfaces named.
	Knobs(interfaces []string) []measure.KnobState
	// NoTune returns why no client can change settings here; empty: they can.
	NoTune() string
	// Host returns an id of the host, so that a client recognizes one reached as two end points; empty: unknown.
	Host() string
	// Open returns the changes that were not reverted.
	Open() []measure.Changed
	// By returns the current tuner; empty: none.
	By() string
	Begin(client, owner string) error
	Alter(client string, settings []measure.Setting) ([]measure.Changed, error)
	Revert(client string, numbers []int64) ([]measure.Changed, error)
	Rollback() ([]measure.Changed, error)
	End(client string) error
	// Gone reverts all changes of a client whose tuning has not ended in order.
	Gone(client string)
}

// mostInterfaces bounds the interfaces whose knobs are read at a time: each takes
// this host a moment, also during other clients' measurements.
const mostInterfaces = 1024

// errNoTuning is the error of an agent without a tuner.
func errNoTuning() error {
	return fault.Failf("print the advice instead: thru tune --dry-run", "agent: this end point cannot change settings")
}

// mayTune returns why a client may not change settings here; nil: it may.
func (a *Agent) mayTune(ctx context.Context) error {
	switch {
	case a.conf.Tuner == nil:
		return errNoTuning()
	case !bus.Allows(ctx, bus.PrivilegeTune):
		return fault.Failf(bus.AskFor(bus.PrivilegeTune), "agent: this client may measure here, but not tune")
	}
	return nil
}

// noTune returns the same as text, including what prevents every client.
func (a *Agent) noTune(ctx context.Context) string {
	if err := a.mayTune(ctx); err != nil {
		return fault.Text(err)
	}
	return a.conf.Tuner.NoTune()
}

// Knobs answers bus.Knobs.
func (a *Agent) Knobs(ctx context.Context, _ string, m bus.KnobsRequest) (bus.KnobsReply, error) {
	r := bus.KnobsReply{NoTune: a.noTune(ctx)}
	if a.conf.Tuner == nil {
		return r, nil
	}
	if len(m.Interfaces) > mostInterfaces {
		return r, fmt.Errorf("agent: %d interfaces were requested, the limit is %d at a time", len(m.Interfaces), mostInterfaces)
	}
	interfaces := slices.Compact(slices.Sorted(slices.Values(m.Interfaces)))
	if len(interfaces) == 0 && m.Peer != "" {
		route, err := a.route(m.Peer, "")
		if err != nil {
			return r, err
		}
		if route.Interface != "" {
			interfaces = []string{route.Interface}
		}
	}
	if err := ctx.Err(); err != nil { // the client no longer waits for it
		return r, fmt.Errorf("agent: reading knobs: %w", err)
	}
	t := a.conf.Tuner
	r.Knobs, r.Open, r.By, r.Host = t.Knobs(interfaces), t.Open(), t.By(), t.Host()
	return r, nil
}

// Tune answers bus.Tune. A client that tunes keeps the turn: no other client
// measures a host whose settings change.
func (a *Agent) Tune(ctx context.Context, client string, m bus.TuneRequest) (bus.Empty, error) {
	if err := a.mayTune(ctx); err != nil {
		return bus.Empty{}, err
	}
	if err := a.keepTurn(client, "tuning"); err != nil {
		return bus.Empty{}, err
	}
	if err := a.conf.Tuner.Begin(client, m.Owner); err != nil {
		a.turns.yield(client)
		return bus.Empty{}, err
	}
	a.tuning(client, m.Owner)
	if err := ctx.Err(); err != nil { // Gone may have come before Begin had the host; from here on it finds it
		a.untune(client)
		return bus.Empty{}, fmt.Errorf("agent: tuning: %w", err)
	}
	return bus.Empty{}, nil
}

// keepTurn gives a client the turn until it yields it.
func (a *Agent) keepTurn(client, what string) error {
	if !a.turns.keep(client) {
		return fault.Failf("try again when the other client has ended", "agent: %s: another client uses this end point: %s", what, a.Busy())
	}
	return nil
}

// tuning sets who tunes, for Busy; empty for nobody.
func (a *Agent) tuning(client, who string) {
	a.mu.Lock()
	a.tuner, a.tunedBy = client, who
	report := a.busy
	a.mu.Unlock()
	report()
}

// Alter answers bus.Alter.
func (a *Agent) Alter(ctx context.Context, client string, m bus.AlterRequest) (bus.ChangedReply, error) {
	return a.change(ctx, func(t Tuner) ([]measure.Changed, error) { return t.Alter(client, m.Settings) })
}

// Revert answers bus.Revert.
func (a *Agent) Revert(ctx context.Context, client string, m bus.RevertRequest) (bus.ChangedReply, error) {
	return a.change(ctx, func(t Tuner) ([]measure.Changed, error) { return t.Revert(client, m.Numbers) })
}

// Rollback answers bus.Rollback. It takes the turn meanwhile: no client measures a
// host whose settings change.
func (a *Agent) Rollback(ctx context.Context, client string, _ bus.Empty) (bus.ChangedReply, error) {
	if err := a.mayTune(ctx); err != nil {
		return bus.ChangedReply{}, err
	}
	if !a.isTuning(client) { // a client that tunes has the turn, and gets the error to end its tuning first
		if err := a.keepTurn(client, "rolling back"); err != nil {
			return bus.ChangedReply{}, err
		}
		defer a.turns.yield(client)
	}
	return a.change(ctx, Tuner.Rollback)
}

// change makes the tuner change settings, and discards the cached facts of the
// host.
func (a *Agent) change(ctx context.Context, do func(Tuner) ([]measure.Changed, error)) (bus.ChangedReply, error) {
	if err := a.mayTune(ctx); err != nil {
		return bus.ChangedReply{}, err
	}
	defer a.facts.forget()
	changed, err := do(a.conf.Tuner)
	if err != nil {
		return bus.ChangedReply{}, fmt.Errorf("agent: %w", err)
	}
	return bus.ChangedReply{Changed: changed}, nil
}

// TuneEnd answers bus.TuneEnd.
func (a *Agent) TuneEnd(ctx context.Context, client string, _ bus.Empty) (bus.Empty, error) {
	if err := a.mayTune(ctx); err != nil {
		return bus.Empty{}, err
	}
	if err := a.conf.Tuner.End(client); err != nil {
		return bus.Empty{}, fmt.Errorf("agent: %w", err)
	}
	a.tuned(client)
	return bus.Empty{}, nil
}

// tuned gives back the turn that a tuning client has kept.
func (a *Agent) tuned(client string) {
	if a.isTuning(client) {
		a.turns.yield(client)
		a.tuning("", "")
	}
}

// isTuning reports whether a client is the tuner of this host.
func (a *Agent) isTuning(client string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tuner == client && client != ""
}

// untune ends the tuning of a lost client, and reverts it.
func (a *Agent) untune(client string) {
	if a.conf.Tuner != nil {
		a.conf.Tuner.Gone(client)
		a.facts.forget()
	}
	a.tuned(client)
}
