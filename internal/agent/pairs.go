package agent

import (
	"context"

	"thru/internal/agent/probing"
	"thru/internal/bus"
	"thru/internal/sock"
)

// newProbing returns the part that measures the pairs of watches.
func (a *Agent) newProbing() *probing.Probing {
	l := a.conf.Listen
	return probing.New(probing.Config{
		Listen: sock.Range{Addrs: l.Addrs, First: l.First, Last: l.Last, Offset: l.Last - l.First}, // tests begin at the other end
		Device: l.Device, Folder: a.conf.Samples, Route: a.route, Trusts: trusts,
	})
}

// Reflect answers bus.Reflect.
func (a *Agent) Reflect(ctx context.Context, _ string, m bus.ReflectRequest) (bus.ReflectReply, error) {
	return a.probing.Reflect(ctx, m)
}

// Pairs answers bus.Pairs.
func (a *Agent) Pairs(ctx context.Context, _ string, m bus.PairsRequest) (bus.PairsReply, error) {
	return a.probing.Pairs(ctx, m)
}

// Samples answers bus.Samples.
func (a *Agent) Samples(_ context.Context, _ string, m bus.SamplesRequest) (bus.SamplesReply, error) {
	return a.probing.Samples(m)
}
