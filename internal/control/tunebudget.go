package control

import (
	"fmt"
	"slices"
	"time"

	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/stat"
	"thru/internal/unit"
)

// plan fixes how changes are judged and estimates how long that takes if each is
// kept: the budget may end it earlier. It runs once: later proposals are judged
// by the same rules.
func (x *tuning) plan(todo []measure.Proposal) {
	judged := 0 // a change judged in both directions has two chances of a false positive
	for i := range todo {
		judged += len(x.directionsOf(&todo[i]))
	}
	x.level = stat.TuneLevel(judged)
	x.out.LevelPct, x.out.Pairs = 100*x.level, stat.LeastPairs(x.level)
	var total time.Duration
	for i := range todo {
		total += x.takes(&todo[i])
	}
	if x.AA > 0 {
		total = 0
		for n := range x.AA {
			total += x.turnsTime(x.directions[n%len(x.directions)])
		}
	}
	x.out.ExpectNs = int64(total)
	x.notify(Planned{*x.out, todo})
}

// ran adds the duration of one run of a step.
func (x *tuning) ran(step plan.Step, took time.Duration) {
	for _, w := range x.directions {
		if w.step.Specs[0].From == step.Specs[0].From {
			w.pace.runs, w.pace.took = w.pace.runs+1, w.pace.took+took
		}
	}
}

// timeOf returns how long a run in a direction takes: as planned, or as measured
// where that is longer.
func (x *tuning) timeOf(w *direction) time.Duration {
	s := w.step.Specs[0]
	planned := plan.Ramp(s, idleRTT(&x.doc.Cells[w.cell])) + time.Duration(s.Duration) + plan.Setup
	return max(planned, w.pace.took/time.Duration(max(w.pace.runs, 1)))
}

// turnsTime returns how long the shortest comparison takes in a direction.
func (x *tuning) turnsTime(w *direction) time.Duration {
	return 2 * time.Duration(x.out.Pairs) * x.timeOf(w)
}

// wants returns the time of a change that is kept after the shortest comparison in
// a direction: the comparison, a check of the other direction, and reading and measuring the new state.
func (x *tuning) wants(w *direction) time.Duration {
	total := x.turnsTime(w) + x.standTime()
	if other := x.otherDirection(w); other != nil {
		total += 2 * x.timeOf(other)
	}
	return total
}

// standTime returns how long it takes to read and measure a new state.
func (x *tuning) standTime() time.Duration {
	total := x.looked
	for _, w := range x.directions {
		total += time.Duration(x.repeat) * x.timeOf(w)
	}
	return total
}

// takes returns the time of a change that is kept after the shortest comparisons,
// and whose gain is measured again.
func (x *tuning) takes(p *measure.Proposal) time.Duration {
	directions := x.directionsOf(p)
	total := x.wants(directions[0]) + 2*time.Duration(stat.LeastPairs(stat.GainLevel))*x.timeOf(directions[0])
	for _, w := range directions[1:] {
		total += x.turnsTime(w)
	}
	return total
}

// moreTime is the advice where the budget ends something.
const moreTime = ": raise --budget"

// ranOut reports whether the budget has ended an attempt.
func (x *tuning) ranOut() bool {
	return slices.ContainsFunc(x.out.Attempts, func(a measure.Attempt) bool { return a.Outcome == measure.NoTime })
}

// budgetSpent returns the reason text of a spent budget.
func (x *tuning) budgetSpent() string {
	return fmt.Sprintf("the time budget of %s is spent", unit.Duration(int64(x.Budget)))
}
