package watch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"thru/internal/watch/judge"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

// asked is a change that is to be explained.
type asked struct {
	id   string // of its alarm
	what Unexplained
	from time.Time // other traffic was in the way: not before
}

// Unexplained is what an explanation is for.
type Unexplained struct {
	record.Pair
	Since   time.Time
	Changes []record.Change // of the alarm, with the last one of the route
}

// explained is the answer.
type explained struct {
	of   asked
	why  judge.Explanation
	uses []string
}

// explainNext explains the next suspicion, one at a time: an explanation loads the path.
func (w *Watch) explainNext(ctx context.Context) {
	if w.explains || len(w.asked) == 0 || ctx.Err() != nil {
		return
	}
	now := time.Now()
	i := slices.IndexFunc(w.asked, func(a asked) bool { return !now.Before(a.from) && w.free(w.paths[a.what.Pair].Uses) })
	if i < 0 {
		return // the next tick calls again
	}
	a := w.asked[i]
	path := w.paths[a.what.Pair]
	w.asked = slices.Delete(w.asked, i, i+1)
	if lasts := func(x record.Alarm) bool { return x.ID == a.id }; !a.from.IsZero() && !slices.ContainsFunc(w.judge.Alarms(), lasts) {
		return
	}
	if !w.ledger.spend(now, path.Uses, w.Wish.ExplainBytes(path)) {
		w.Warn(fmt.Errorf("watch: %s -> %s is not explained: the budget of the day is used", a.what.From, a.what.To))
		w.judge.Explained(a.id, judge.Explanation{})
		return
	}
	w.explains = true
	w.running++
	w.hold(path.Uses)
	fleet := w.Fleet
	go func() {
		ctx, cancel := context.WithTimeout(ctx, explainTime)
		defer cancel()
		why, err := fleet.Explain(ctx, a.what)
		if err != nil {
			w.Warn(fmt.Errorf("watch: explaining %s -> %s: %w", a.what.From, a.what.To, err))
		}
		w.why <- explained{a, why, path.Uses}
	}()
}

// explain takes an explanation. One that other traffic was in the way of costs nothing, and is asked again later: the alarm is raised without it.
func (w *Watch) explain(x explained) {
	w.explains = false
	w.release(x.uses)
	if x.why.Deferred == "" || x.of.from.IsZero() { // it is told once
		w.judge.Explained(x.of.id, x.why)
	}
	if x.why.Deferred != "" {
		now := time.Now()
		w.ledger.spend(now, x.uses, -w.Wish.ExplainBytes(w.paths[x.of.what.Pair]))
		x.of.from = now.Add(deferredPause)
		w.asked = append(w.asked, x.of)
	}
}

// ledger counts the bytes of a day.
type ledger struct {
	budget map[string]int64
	Used   map[string]int64 `json:"used_bytes"`
	Day    time.Time        `json:"day"`
}

// bound sets the budgets.
func (l *ledger) bound(needs []schedule.Need) {
	l.budget = map[string]int64{}
	for _, n := range needs {
		if n.Budget > 0 {
			l.budget[n.Name] = n.Budget
		}
	}
}

// spend books bytes to all that a turn uses, unless the budget of one of them does not allow it.
func (l *ledger) spend(now time.Time, uses []string, bytes int64) bool {
	if today := now.UTC().Truncate(24 * time.Hour); !today.Equal(l.Day) || l.Used == nil {
		l.Day, l.Used = today, map[string]int64{}
	}
	for _, name := range uses {
		if b, bounded := l.budget[name]; bounded && l.Used[name]+bytes > b {
			return false
		}
	}
	for _, name := range uses {
		l.Used[name] = max(0, l.Used[name]+bytes)
	}
	return true
}
