package agent

import (
	"context"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/hypervisor"
)

// mostWatches bounds the watches under way, of all clients.
const mostWatches = 16

// watch is a reading of guests' counters for a client.
type watch struct {
	session string
	inner   hypervisor.Watch // nil: it is about to begin
}

// mayList refuses a client from outside that has not the privilege for it.
func (a *Agent) mayList(ctx context.Context) error {
	if !bus.IsOwn(ctx) && !bus.Allows(ctx, bus.PrivilegeInventory) {
		return bus.Because(bus.ReasonDenied, fault.Failf("ask for the string that `thru serve --allow inventory` prints there, and keep it: thru join NAME --replace",
			"agent: this client may measure here, but not list virtual machines"))
	}
	if a.conf.Below == nil {
		return fault.Failf("upgrade thru there", "agent: this thru lists no virtual machines")
	}
	return nil
}

// Guests implements bus.Handler.
func (a *Agent) Guests(ctx context.Context, _ string, _ bus.Guests) (bus.GuestsReply, error) {
	if err := a.mayList(ctx); err != nil {
		return bus.GuestsReply{}, err
	}
	v, err := a.conf.Below.Inventory(ctx, nil, nil)
	return bus.GuestsReply{Inventory: v}, err
}

// Watch implements bus.Handler.
func (a *Agent) Watch(ctx context.Context, client string, m bus.Watch) (bus.WatchReply, error) {
	if err := a.mayList(ctx); err != nil {
		return bus.WatchReply{}, err
	}
	if len(m.IDs) > bus.MostWatched {
		return bus.WatchReply{}, fault.Failf("watch fewer at once", "agent: %d guests and hosts are more than the %d that are watched", len(m.IDs), bus.MostWatched)
	}
	a.endWatch(client)
	w := &watch{session: newID()}
	if err := a.admitWatch(client, w); err != nil {
		return bus.WatchReply{}, err
	}
	inner, err := a.conf.Below.Watch(ctx, m.IDs)
	a.mu.Lock()
	ours := a.watches[client] == w
	if ours && err != nil {
		delete(a.watches, client)
	}
	w.inner = inner
	a.mu.Unlock()
	if err == nil && !ours {
		discard(inner)
		err = fault.Failf("", "agent: watching: another watch of this client has taken its place, or the agent ends")
	}
	return bus.WatchReply{Session: w.session}, err
}

// admitWatch takes a place for one that is about to begin.
func (a *Agent) admitWatch(client string, w *watch) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return fault.Failf("", "agent: watching: the agent ends")
	}
	if len(a.watches) >= mostWatches {
		return fault.Failf("wait for other tests to end", "agent: %d clients watch virtual machines here already, the limit of this end point", len(a.watches))
	}
	a.watches[client] = w
	return nil
}

// Watched implements bus.Handler.
func (a *Agent) Watched(ctx context.Context, client string, m bus.Watched) (bus.WatchedReply, error) {
	a.mu.Lock()
	w := a.watches[client]
	if w == nil || w.session != m.Session || w.inner == nil {
		a.mu.Unlock()
		return bus.WatchedReply{}, fault.Failf("", "agent: watch %.60q is not known", m.Session)
	}
	delete(a.watches, client)
	a.mu.Unlock()
	series, missing := w.inner.End(ctx)
	return bus.WatchedReply{Series: series, NotChecked: missing}, nil
}

// endWatch ends that of a client, for nobody.
func (a *Agent) endWatch(client string) {
	a.mu.Lock()
	w := a.watches[client]
	delete(a.watches, client)
	a.mu.Unlock()
	if w != nil && w.inner != nil {
		discard(w.inner)
	}
}

// discard ends a watch whose figures nobody wants: it waits for nothing.
func discard(w hypervisor.Watch) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.End(ctx)
}
