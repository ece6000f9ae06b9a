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
// tune.Tuner, or what stands in for it in tests.
type Tuner interface {
	// Knobs are those of the host and of the interfaces named.
	Knobs(interfaces []string) []measure.KnobState
	// NoTune says why nothing can be changed here, whoever asks; empty: it can.
	NoTune() string
	// Host names what is tuned, for a client that reaches it as two end points; empty: not told.
	Host() string
	// Open is what was changed and not undone.
	Open() []measure.Changed
	// By says who tunes this host now; empty: nobody.
	By() string
	Begin(client, owner string) error
	Alter(client string, settings []measure.Setting) ([]measure.Changed, error)
	Revert(client string, numbers []int64) ([]measure.Changed, error)
	Rollback() ([]measure.Changed, error)
	End(client string) error
	// Gone undoes all of a client's tuning that has not come to its end.
	Gone(client string)
}

// mostInterfaces bounds of how many the knobs are read at a time: it takes this
// host a moment for each, also while somebody measures here.
const mostInterfaces = 1024

// errNoTuning is what an agent without a tuner answers.
func errNoTuning() error {
	return fault.Failf("print its advice instead: thru tune --dry-run", "agent: this end point changes no settings")
}

// mayTune says why a client may not change settings here; nil: it may.
func (a *Agent) mayTune(ctx context.Context) error {
	switch {
	case a.conf.Tuner == nil:
		return errNoTuning()
	case !bus.Allows(ctx, bus.PrivilegeTune):
		return fault.Failf(bus.AskFor(bus.PrivilegeTune), "agent: this client may measure here, but not tune")
	}
	return nil
}

// noTune is the same in words, with what keeps everybody from it.
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
		return r, fmt.Errorf("agent: the knobs of %d interfaces are asked for: at most %d at a time", len(m.Interfaces), mostInterfaces)
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
	if err := ctx.Err(); err != nil { // nobody waits for it any more
		return r, fmt.Errorf("agent: reading knobs: %w", err)
	}
	t := a.conf.Tuner
	r.Knobs, r.Open, r.By, r.Host = t.Knobs(interfaces), t.Open(), t.By(), t.Host()
	return r, nil
}

// Tune answers bus.Tune. A client that tunes keeps the turn: nobody else
// measures a host whose settings come and go.
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
		return fault.Failf("try again when that has ended", "agent: %s has to wait, another client is here: %s", what, a.Busy())
	}
	return nil
}

// tuning notes who tunes, for Busy; nobody where who is empty.
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

// Rollback answers bus.Rollback. It has the turn meanwhile: nobody measures a
// host whose settings change.
func (a *Agent) Rollback(ctx context.Context, client string, _ bus.Empty) (bus.ChangedReply, error) {
	if err := a.mayTune(ctx); err != nil {
		return bus.ChangedReply{}, err
	}
	if !a.isTuning(client) { // else it has the turn, and is told to end that first
		if err := a.keepTurn(client, "rolling back"); err != nil {
			return bus.ChangedReply{}, err
		}
		defer a.turns.yield(client)
	}
	return a.change(ctx, Tuner.Rollback)
}

// change has the tuner change something. What was read of the host before holds
// no longer then.
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

// tuned gives the turn back that a client has kept.
func (a *Agent) tuned(client string) {
	if a.isTuning(client) {
		a.turns.yield(client)
		a.tuning("", "")
	}
}

// isTuning tells whether a client is the one who tunes this host.
func (a *Agent) isTuning(client string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tuner == client && client != ""
}

// untune ends the tuning of a client that is no more, and undoes it.
func (a *Agent) untune(client string) {
	if a.conf.Tuner != nil {
		a.conf.Tuner.Gone(client)
		a.facts.forget()
	}
	a.tuned(client)
}
