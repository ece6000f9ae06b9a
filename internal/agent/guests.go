package agent

import (
	"context"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/hypervisor"
)

// Bounds of the running watches.
const (
	mostWatches   = 16 // of all clients
	watchesOfEach = 4
)

// watch reads guests' counters for a client.
type watch struct {
	job
	inner hypervisor.Watch
}

// mayList returns an error for a remote client without the inventory privilege.
func (a *Agent) mayList(ctx context.Context) error {
	if !bus.Allows(ctx, bus.PrivilegeInventory) {
		return fault.Because(bus.ReasonDenied, fault.Failf(bus.AskFor(bus.PrivilegeInventory), "agent: this client may measure here, but not list virtual machines"))
	}
	if a.conf.Hypervisor == nil {
		return fault.Failf("upgrade thru there", "agent: this thru cannot list virtual machines")
	}
	return nil
}

// Guests answers bus.Guests.
func (a *Agent) Guests(ctx context.Context, _ string, _ bus.Empty) (bus.GuestsReply, error) {
	if err := a.mayList(ctx); err != nil {
		return bus.GuestsReply{}, err
	}
	v, err := a.conf.Hypervisor.Inventory(ctx, nil, nil)
	return bus.GuestsReply{Inventory: v}, err
}

// BeginWatch answers bus.Watch.Begin.
func (a *Agent) BeginWatch(ctx context.Context, client string, m bus.WatchStart) (bus.JobReply, error) {
	if err := a.mayList(ctx); err != nil {
		return bus.JobReply{}, err
	}
	if len(m.IDs) > bus.MostWatched {
		return bus.JobReply{}, fault.Failf("watch fewer at once", "agent: %d guests and hosts exceed the limit of %d", len(m.IDs), bus.MostWatched)
	}
	if err := a.hasWatchRoom(client); err != nil {
		return bus.JobReply{}, err
	}
	inner, err := a.conf.Hypervisor.Watch(context.WithoutCancel(ctx), m.IDs) // it outlives the request, and ends with its client
	if err != nil {
		return bus.JobReply{}, err
	}
	return a.keepWatch(ctx, client, inner)
}

// keepWatch adds the watch to the client's, unless the limit is reached.
func (a *Agent) keepWatch(ctx context.Context, client string, inner hypervisor.Watch) (bus.JobReply, error) {
	w := &watch{job: newJob(client, ""), inner: inner}
	w.isFree, w.stop = true, func() { discard(inner) }
	close(w.over)
	if !a.keep(w, func() bool { return a.watchRoom(client) == nil }) || ctx.Err() != nil && a.forget(w) { // Gone may have come before it was kept
		w.stop()
		return bus.JobReply{}, fault.Failf("", "agent: watching: the client has disconnected, the agent is shutting down, or its limit is reached")
	}
	return bus.JobReply{Session: w.session}, nil
}

// hasWatchRoom returns an error where the client can have no further watch.
func (a *Agent) hasWatchRoom(client string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.watchRoom(client)
}

// watchRoom is hasWatchRoom for a caller that holds mu.
func (a *Agent) watchRoom(client string) error {
	same := count(a, func(w *watch) bool { return w.client == client })
	all := count(a, func(*watch) bool { return true })
	if same < watchesOfEach && all < mostWatches {
		return nil
	}
	return fault.Failf("wait for other tests to end", "agent: this end point already watches virtual machines for %d tests, %d of them of this client: its limit", all, same)
}

// EndWatch answers bus.Watch.End.
func (a *Agent) EndWatch(ctx context.Context, client string, m bus.JobEnd) (bus.WatchResult, error) {
	w, err := find[*watch](a, client, m.Session)
	if err == nil && !a.forget(w) {
		err = errUnknown(m.Session)
	}
	if err != nil {
		return bus.WatchResult{}, err
	}
	series, missing := w.inner.End(ctx)
	return bus.WatchResult{Series: series, NotChecked: missing}, nil
}

// discard ends a watch without waiting for its counters.
func discard(w hypervisor.Watch) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.End(ctx)
}
