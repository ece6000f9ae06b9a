package control

import (
	"context"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
)

// connect opens both ends of a flow. Where the plan leaves open who dials, and
// the end that should cannot connect, the other one tries. back says of a pair
// that this was what worked before: then it is what is tried first.
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
		return fault.Failf(fault.Hint(first), "%w; and the other way round: %w", first, second)
	}
	return second
}

func (f *flow) route() route { return route{f.spec.From, f.spec.To} }

// turnable tells whether the end that listens may dial as well. This machine's
// own agent listens for nobody else, and a source address belongs to one host.
func (f *flow) turnable() bool {
	bound := f.spec.BindAddr != "" || f.spec.BindDev != "" || f.spec.BindPort != 0 || f.spec.DataAddr != ""
	own := f.dialling().end.Name == Local && f.listening().end.Name != Local
	return f.spec.Either && !bound && !own && f.sender.end.asked() && f.receiver.end.asked()
}

// turnRound has the other end dial. What was opened so far is of no more use.
func (f *flow) turnRound() {
	f.drop()
	f.spec.DialFrom, f.swapped = !f.spec.DialFrom, !f.swapped
	f.sender.dials, f.receiver.dials = f.spec.DialFrom, !f.spec.DialFrom
}

// drop sets the flow's sessions aside. They are released when nothing is being
// opened any more: with its last session an agent gives the turn back.
func (f *flow) drop() {
	for _, s := range f.sides() {
		if s.session != "" {
			f.stale = append(f.stale, *s)
			s.session = ""
		}
	}
}

// dialBack tells of a pair whose listening end had to dial.
func (r *Runner) dialBack(w route) bool { return r.swapped[w] }

// noteDial keeps who has dialled for the next time. Without a word of it the
// other way might have to time out at every run.
func (r *Runner) noteDial(f *flow) {
	if !f.spec.Either || f.rides != nil {
		return
	}
	measure.Put(&r.swapped, f.route(), f.swapped)
}

// releaseStale ends the sessions of attempts that came to nothing.
func releaseStale(flows []*flow) {
	var stale []side
	for _, f := range flows {
		stale = append(stale, f.stale...)
		f.stale = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseAllTime)
	defer cancel()
	atMost(len(stale), width, func(i int) {
		s := stale[i]
		bus.Call(ctx, s.end, bus.Release, bus.ReleaseRequest{Session: s.session})
	})
}
