package watch

import (
	"context"
	"maps"
	"slices"
	"time"

	"thru/internal/unit"
	"thru/internal/watch/judge"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

// Reload has a watch that runs go on by another plan. On an error it goes on by the old one. What both plans have keeps its series, its alarms, what it
// has spent of the day's budget, and its turns, unless the budget now allows another number. It is not called twice at a time.
func (w *Watch) Reload(ctx context.Context, wish schedule.Wish, c judge.Config, f Fleet) error {
	wish.Paths = slices.Clone(wish.Paths)
	place := map[record.Pair]int{} // the first ones keep their turns
	for i, p := range w.Wish.Paths {
		place[p.Pair] = i - len(w.Wish.Paths)
	}
	slices.SortStableFunc(wish.Paths, func(a, b schedule.Path) int { return place[a.Pair] - place[b.Pair] })
	set, err := w.prepare(wish, c, f)
	if err != nil {
		return err
	}
	return w.call(ctx, func() error {
		state, err := w.judge.MarshalJSON()
		if err != nil {
			return err
		}
		return set(state)
	})
}

// Alive returns when the loop of a watch that runs has answered.
func (w *Watch) Alive(ctx context.Context) { _ = w.call(ctx, func() error { return nil }) }

// call has the loop run a function.
func (w *Watch) call(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	select {
	case w.calls <- func() { done <- do() }:
		return <-done
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// prepare checks a plan, and returns what has the watch go by it, from a state of its judge; nil: it begins.
func (w *Watch) prepare(wish schedule.Wish, c judge.Config, f Fleet) (set func(state []byte) error, err error) {
	tasks, needs, err := schedule.Fit(wish)
	if err != nil {
		return nil, err
	}
	table, err := schedule.New(tasks, w.Seed)
	if err != nil {
		return nil, err
	}
	if c.Every == nil {
		c.Every = paced(tasks, wish.ProbeEvery)
	}
	return func(state []byte) error {
		next := judge.New(c)
		if state != nil {
			var err error
			if next, err = judge.Restore(c, state); err != nil {
				return err
			}
		}
		w.Wish, w.Fleet, w.table, w.judge = wish, f, table, next
		w.paths = map[record.Pair]schedule.Path{}
		for _, p := range wish.Paths {
			w.paths[p.Pair] = p
		}
		w.ledger.bound(needs)
		w.probed = time.Time{} // agents learn the plan at once
		w.forget()
		return nil
	}, nil
}

// watches reports whether the plan has a pair.
func (w *Watch) watches(p record.Pair) bool { _, is := w.paths[p]; return is }

// forget drops what the plan does not have any more.
func (w *Watch) forget() {
	for _, s := range w.judge.Standings() {
		if !w.watches(s.Pair) {
			w.report(w.judge.Forget(s.Pair, time.Now()))
		}
	}
	w.asked = unit.Filtered(w.asked, func(a asked) bool { return w.watches(a.what.Pair) })
	maps.DeleteFunc(w.routes, func(p record.Pair, _ record.Change) bool { return !w.watches(p) })
	maps.DeleteFunc(w.series.detectors, func(k key, _ detector) bool { return !w.watches(k.Pair) })
}
