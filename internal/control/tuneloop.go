package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"thru/internal/cause/knob"
	"thru/internal/measure"
	"thru/internal/unit"
)

// improve tries the proposals, one change at a time, until the tuning ends.
func (x *tuning) improve(ctx context.Context) error {
	for first := true; ; first = false {
		todo := x.todo()
		met := x.met()
		if first && !met {
			x.plan(todo)
		}
		switch {
		case met:
			x.doc.Ended = "each direction reaches " + unit.Rate(x.TargetBps) + " or more"
			return nil
		case len(todo) == 0:
			x.doc.Ended = x.nothingLeft()
			return nil
		case time.Until(x.until) < x.wants(x.directionsOf(&todo[0])[0]):
			x.noTime(todo)
			return nil
		}
		if err := x.next(ctx, todo); err != nil {
			return err
		}
	}
}

// next tries the first of the proposals. If it is kept, the state is measured again.
func (x *tuning) next(ctx context.Context, todo []measure.Proposal) error {
	n := len(x.out.Attempts)
	x.notify(Trying{todo[0], n, n + len(todo), max(time.Until(x.until), 0)})
	x.pending = x.pending[min(1, len(x.pending)):] // they come first
	a, err := x.try(ctx, todo[0])
	x.record(a)
	if err != nil || a.Outcome != measure.Kept {
		return err
	}
	if err := x.look(ctx); err != nil {
		return err
	}
	return x.stand(ctx, a.Title, new(n))
}

// record adds an attempt, and remembers its outcome for later proposals.
func (x *tuning) record(a measure.Attempt) {
	x.out.Attempts = append(x.out.Attempts, a)
	switch a.Outcome {
	case measure.Kept:
		x.seen.Kept = append(x.seen.Kept, a.ID)
	case measure.Undone:
		x.seen.Undone[a.ID] = len(x.seen.Kept)
	default:
		x.seen.Never[a.ID] = true
	}
	x.notify(Tried{a})
}

// todo lists the changes still to try, in order: the user's (Try), then the
// proposals for the current state.
func (x *tuning) todo() []measure.Proposal {
	all := slices.Clone(x.pending)
	for i := range all {
		all[i].Before = x.asTheyAre(all[i].Settings)
	}
	for _, p := range x.propose(x.doc, x.seen) {
		if x.mayTry(&p) && !slices.ContainsFunc(all, func(o measure.Proposal) bool { return o.ID == p.ID }) {
			all = append(all, p)
		}
	}
	return all
}

// mayTry reports whether thru may make a proposal that it has not tried in this
// state.
func (x *tuning) mayTry(p *measure.Proposal) bool {
	if p.OnlySaid != "" || x.seen.Never[p.ID] || len(p.Settings) == 0 && p.Test == nil {
		return false
	}
	if x.triedHere(p) || x.takesBack(p) {
		return false
	}
	for _, s := range p.Settings {
		if !x.DryRun && !x.tunes(s.EndPoint) || x.taken[hostKnobOf(s)] {
			return false
		}
	}
	return !x.isSo(p)
}

// triedHere reports whether a proposal was reverted in the current state.
func (x *tuning) triedHere(p *measure.Proposal) bool {
	kept, undone := x.seen.Undone[p.ID]
	return undone && kept >= len(x.seen.Kept)
}

// takesBack reports whether a proposal restores the old value of a knob whose
// change was shown to help, as a gate that checks only that knob may.
func (x *tuning) takesBack(p *measure.Proposal) bool {
	for _, a := range x.out.Attempts {
		for _, c := range a.Changed {
			again := func(s measure.Setting) bool {
				return hostKnobOf(s) == hostKnobOf(c.Setting) && isPartOf(s.Value, c.Before)
			}
			if a.Outcome == measure.Kept && c.Number > 0 && slices.ContainsFunc(p.Settings, again) {
				return true
			}
		}
	}
	return false
}

// isPartOf reports whether value is a prefix of whole by words, so that whole
// includes it: "on" in "on tx=on".
func isPartOf(value, whole string) bool {
	v, w := strings.Fields(value), strings.Fields(whole)
	return len(v) <= len(w) && slices.Equal(v, w[:len(v)])
}

// isSo reports whether all values of a proposal are already set.
func (x *tuning) isSo(p *measure.Proposal) bool {
	for _, s := range p.Settings {
		if now, known := x.state(s); !known || !knob.Same(now.Value, s.Value) {
			return false
		}
	}
	return p.Test == nil
}

// state returns the state of a knob as its end point reports it.
func (x *tuning) state(s measure.Setting) (measure.KnobState, bool) {
	for _, e := range x.doc.EndPoints {
		if e.Name != s.EndPoint {
			continue
		}
		for _, k := range e.Knobs {
			if k.Knob == s.Knob && (s.Interface == "" || k.Interface == s.Interface) {
				return k, true
			}
		}
	}
	return measure.KnobState{}, false
}

// placeOf returns the interface of a setting: where it names none, the one of the
// route to the other end point, if the knob belongs to an interface.
func (x *tuning) placeOf(s measure.Setting) string {
	if s.Interface != "" || len(x.doc.Paths) == 0 {
		return s.Interface
	}
	route := x.doc.Paths[0].Forward.Route
	if s.EndPoint == x.doc.Paths[0].To {
		route = x.doc.Paths[0].Back.Route
	}
	if route == nil {
		return ""
	}
	there := s
	there.Interface = route.Interface
	if _, known := x.state(there); !known {
		return ""
	}
	return route.Interface
}

// asTheyAre returns the same knobs with their current values.
func (x *tuning) asTheyAre(settings []measure.Setting) (all []measure.Setting) {
	for _, s := range settings {
		if now, known := x.state(s); known {
			s.Value = now.Value
			all = append(all, s)
		}
	}
	return all
}

// manualChanges returns the changes of Try, each by itself.
func (x *tuning) manualChanges() (all []measure.Proposal, err error) {
	for _, s := range x.Try {
		p, err := x.wished(s)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// wished returns the change to a setting of Try: without an end point at each that
// can be tuned, without an interface at that of the route.
func (x *tuning) wished(s measure.Setting) (measure.Proposal, error) {
	p := measure.Proposal{ID: s.Knob, Title: s.Knob + " " + s.Value, Why: "requested with --try", Expect: "not known"}
	if k, ok := knob.Find(s.Knob); ok {
		p.Risk, p.Cuts, p.Expect, p.Source = k.Risk, k.Cuts, "not known for this value; for the setting: "+k.Effect, k.Source
	}
	for _, e := range x.doc.EndPoints {
		if s.EndPoint != "" && s.EndPoint != e.Name || s.EndPoint == "" && x.not[e.Name] != "" {
			continue
		}
		at := s
		at.EndPoint = e.Name
		at.Interface = x.placeOf(at)
		now, err := x.mayTake(at)
		if err != nil {
			return p, err
		}
		at.Interface = now.Interface
		p.Settings = append(p.Settings, at)
		p.ID, p.Title = p.ID+"@"+e.Name, p.Title+" at "+e.Name
		w := knob.By(knob.HostOf(e.Name, e.Facts).OS, e.Facts, at, now.Value)
		p.Commands = append(p.Commands, measure.Commands{EndPoint: e.Name, Platform: knob.HostOf(e.Name, e.Facts).OS, Set: w.Set, Undo: w.Undo, Verify: w.Verify, Words: w.Words})
	}
	if len(p.Settings) == 0 {
		return p, x.nowhere(s)
	}
	p.Before = x.asTheyAre(p.Settings)
	return p, nil
}

// noTime records the proposals that do not fit in the budget, and ends the tuning.
func (x *tuning) noTime(todo []measure.Proposal) {
	for _, p := range todo {
		x.record(measure.Attempt{Proposal: p, Outcome: measure.NoTime, Reason: "it does not fit in the time budget" + moreTime})
	}
	x.doc.Ended = x.nothingLeft()
}
