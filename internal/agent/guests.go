package agent

import (
	"context"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/hypervisor"
)

// Bounds of the watches under way.
const (
	mostWatches   = 16 // of all clients
	watchesOfEach = 4
)

// watch is a reading of guests' counters for a client.
type watch struct {
	client string
	inner  hypervisor.Watch // nil: it is about to begin
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

// Guests answers bus.Guests.
func (a *Agent) Guests(ctx context.Context, _ string, _ bus.Empty) (bus.GuestsReply, error) {
	if err := a.mayList(ctx); err != nil {
		return bus.GuestsReply{}, err
	}
	v, err := a.conf.Below.Inventory(ctx, nil, nil)
	return bus.GuestsReply{Inventory: v}, err
}

// BeginWatch answers bus.Watch.Begin.
func (a *Agent) BeginWatch(ctx context.Context, client string, m bus.WatchStart) (bus.JobReply, error) {
	if err := a.mayList(ctx); err != nil {
		return bus.JobReply{}, err
	}
	if len(m.IDs) > bus.MostWatched {
		return bus.JobReply{}, fault.Failf("watch fewer at once", "agent: %d guests and hosts are more than the %d that are watched", len(m.IDs), bus.MostWatched)
	}
	session, w := newID(), &watch{client: client}
	if err := a.admitWatch(session, w); err != nil {
		return bus.JobReply{}, err
	}
	inner, err := a.conf.Below.Watch(context.WithoutCancel(ctx), m.IDs) // it outlives the request, and ends with its client
	a.mu.Lock()
	ours := a.watches[session] == w
	if w.inner = inner; err != nil {
		delete(a.watches, session)
	}
	a.mu.Unlock()
	if err == nil && !ours {
		discard(inner)
		err = fault.Failf("", "agent: watching: the client has gone or the agent ends")
	}
	return bus.JobReply{Session: session}, err
}

// admitWatch takes a place for one that is about to begin.
func (a *Agent) admitWatch(session string, w *watch) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	same := 0
	for _, other := range a.watches {
		if other.client == w.client {
			same++
		}
	}
	switch {
	case a.closed:
		return fault.Failf("", "agent: watching: the agent ends")
	case same >= watchesOfEach || len(a.watches) >= mostWatches:
		return fault.Failf("wait for other tests to end", "agent: virtual machines are watched for %d tests already, %d of them this client's: the limit of this end point", len(a.watches), same)
	}
	a.watches[session] = w
	return nil
}

// EndWatch answers bus.Watch.End.
func (a *Agent) EndWatch(ctx context.Context, client string, m bus.JobEnd) (bus.WatchResult, error) {
	a.mu.Lock()
	w := a.watches[m.Session]
	if w == nil || w.client != client || w.inner == nil {
		a.mu.Unlock()
		return bus.WatchResult{}, fault.Failf("", "agent: watch %.60q is not known", m.Session)
	}
	delete(a.watches, m.Session)
	a.mu.Unlock()
	series, missing := w.inner.End(ctx)
	return bus.WatchResult{Series: series, NotChecked: missing}, nil
}

// endWatches ends those of a client, for nobody.
func (a *Agent) endWatches(client string) {
	var ended []hypervisor.Watch
	a.mu.Lock()
	for session, w := range a.watches {
		if w.client != client {
			continue
		}
		delete(a.watches, session)
		if w.inner != nil {
			ended = append(ended, w.inner)
		}
	}
	a.mu.Unlock()
	for _, w := range ended {
		discard(w)
	}
}

// discard ends a watch whose figures nobody wants: it waits for nothing.
func discard(w hypervisor.Watch) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.End(ctx)
}
