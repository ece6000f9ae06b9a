package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/hypervisor"
	"thru/internal/measure"
)

// AgentSource returns the Linux host of an end point as a source of inventories:
// its agent lists the guests that run there. Close does not close the
// connection: the end point owns it.
func AgentSource(e *EndPoint) hypervisor.Source { return agentSource{e} }

type agentSource struct{ end *EndPoint }

// Name implements hypervisor.Source.
func (s agentSource) Name() string { return s.end.Name }

// Close implements hypervisor.Source.
func (s agentSource) Close() error { return nil }

// may returns why the agent cannot list guests, nil where it can.
func (s agentSource) may() error {
	e := s.end
	switch {
	case e.Down != nil:
		return e.Down
	case !e.asked():
		return fault.Usagef("name a host where thru runs or can be started: ssh://HOST", "control: thru does not run at %s: it cannot list its virtual machines", e.Name)
	case !slices.Contains(e.Hello.Privileges, bus.PrivilegeInventory):
		return fault.Failf(bus.AskFor(bus.PrivilegeInventory), "control: %s does not allow this client to list virtual machines", e.Name)
	}
	return nil
}

// Inventory implements hypervisor.Source.
func (s agentSource) Inventory(ctx context.Context, want func(*measure.Guest) bool, hosts func(*measure.GuestHost) bool) (measure.Inventory, error) {
	if err := s.may(); err != nil {
		return measure.Inventory{}, err
	}
	reply, err := bus.Call(ctx, s.end, bus.Guests, bus.Empty{})
	if err != nil {
		return measure.Inventory{}, ownerOf(s.end, err)
	}
	v := reply.Inventory
	v.Source, v.ReadAt, v.ClockNs = s.Name(), time.Now(), nil
	if ahead, err := s.ahead(ctx); err == nil {
		v.ClockNs = new(ahead.Nanoseconds())
	} else {
		v.NotChecked = append(v.NotChecked, measure.NotChecked{Fact: "clock_ahead_ns", Why: err.Error()})
	}
	hypervisor.Choose(&v, want, hosts)
	return v, nil
}

// ahead is how far the agent's wall clock is ahead of this machine's.
func (s agentSource) ahead(ctx context.Context) (time.Duration, error) {
	if s.end.Name == Local {
		return 0, nil
	}
	x, err := readClock(ctx, s.end, time.Now().Add(-time.Nanosecond))
	if err != nil {
		return 0, fmt.Errorf("control: asking %s for its clock: %w", s.end.Name, err)
	}
	return x.wall, nil
}

// Watch implements hypervisor.Source.
func (s agentSource) Watch(ctx context.Context, ids []string) (hypervisor.Watch, error) {
	if err := s.may(); err != nil {
		return nil, err
	}
	reply, err := bus.Call(ctx, s.end, bus.Watch.Begin, bus.WatchStart{IDs: ids})
	if err != nil {
		return nil, ownerOf(s.end, err)
	}
	return agentWatch{s, reply.Session}, nil
}

// agentWatch is a running watch of counters at an agent.
type agentWatch struct {
	source  agentSource
	session string
}

// End implements hypervisor.Watch.
func (w agentWatch) End(ctx context.Context) ([]measure.Series, []measure.NotChecked) {
	reply, err := bus.Call(ctx, w.source.end, bus.Watch.End, bus.JobEnd{Session: w.session})
	if err != nil {
		return nil, []measure.NotChecked{{Fact: "series", Why: ownerOf(w.source.end, err).Error()}}
	}
	ahead, err := w.source.ahead(ctx)
	if err != nil {
		reply.NotChecked = append(reply.NotChecked, measure.NotChecked{Fact: "series.ended_at", Why: "not corrected: " + err.Error()})
	}
	for _, series := range reply.Series {
		for i := range series.Samples {
			series.Samples[i].EndedAt = series.Samples[i].EndedAt.Add(-ahead)
		}
	}
	return reply.Series, reply.NotChecked
}
