package control

import (
	"context"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// connect opens both ends of a flow. Where the plan leaves open which end dials,
// and the dialling end cannot connect, the other one tries. back reports that for
// this pair the other end had to dial before: then it dials first.
func (f *flow) connect(ctx context.Context, back func(route) bool) error {
	if f.rides != nil {
		return nil
	}
	if f.turnable() && back(f.route()) {
		f.turnRound()
	}
	first := f.open(ctx)
	if first == nil || ctx.Err() != nil || !f.turnable() {
		return first
	}
	f.turnRound()
	second := f.open(ctx)
	if second != nil && ctx.Err() == nil {
		return fault.Failf(fault.Hint(first), "%w; and from the other end: %w", first, second)
	}
	return second
}

func (f *flow) route() route { return route{f.spec.From, f.spec.To} }

// turnable reports whether the listening end may dial instead. This machine's own
// agent listens for no other host, and a source address belongs to one host.
func (f *flow) turnable() bool {
	bound := f.spec.BindAddr != "" || f.spec.BindDev != "" || f.spec.BindPort != 0 || f.spec.DataAddr != ""
	own := f.dialling().end.Name == Local && f.listening().end.Name != Local
	return f.spec.Either && !bound && !own && f.sender.end.asked() && f.receiver.end.asked()
}

// turnRound makes the other end dial, and drops the sessions opened so far.
func (f *flow) turnRound() {
	f.drop()
	f.spec.DialFrom, f.swapped = !f.spec.DialFrom, !f.swapped
	f.sender.dials, f.receiver.dials = f.spec.DialFrom, !f.spec.DialFrom
}

// drop marks the flow's sessions for release. They are released only when nothing
// is being opened any more: with its last session an agent gives the turn back.
func (f *flow) drop() {
	for _, s := range f.sides() {
		if s.session != "" {
			f.stale = append(f.stale, *s)
			s.session = ""
		}
	}
}

// dialBack reports whether the listening end of a pair had to dial before.
func (r *Runner) dialBack(w route) bool { return r.swapped[w] }

// noteDial keeps which end dialled, for the next run. Otherwise the failing
// direction might time out in every run.
func (r *Runner) noteDial(f *flow) {
	if !f.spec.Either || f.rides != nil {
		return
	}
	measure.Put(&r.swapped, f.route(), f.swapped)
}

// releaseStale ends the sessions of failed attempts.
func releaseStale(flows []*flow) {
	var stale []side
	for _, f := range flows {
		stale = append(stale, f.stale...)
		f.stale = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseAllTime)
	defer cancel()
	unit.AtMost(len(stale), width, func(i int) {
		s := stale[i]
		bus.Call(ctx, s.end, bus.Release, bus.ReleaseRequest{Session: s.session})
	})
}
