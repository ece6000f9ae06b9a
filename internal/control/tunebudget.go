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

// plan fixes how changes are judged, and says how long that takes, if each is kept:
// the budget may end it before. It is done once: what is proposed later is judged
// as the rest.
func (x *tuning) plan(todo []measure.Proposal) {
	judged := 0 // one that may be judged in both directions has two chances to be kept wrongly
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

// ran notes how long a run of a step took.
func (x *tuning) ran(step plan.Step, took time.Duration) {
	for _, w := range x.directions {
		if w.step.Specs[0].From == step.Specs[0].From {
			w.pace.runs, w.pace.took = w.pace.runs+1, w.pace.took+took
		}
	}
}

// timeOf is how long a run in a direction takes: as planned, or as measured where
// that is longer.
func (x *tuning) timeOf(w *direction) time.Duration {
	s := w.step.Specs[0]
	planned := plan.Ramp(s, idleRTT(&x.doc.Cells[w.cell])) + time.Duration(s.Duration) + plan.Setup
	return max(planned, w.pace.took/time.Duration(max(w.pace.runs, 1)))
}

// turnsTime is how long the least comparison takes in a direction.
func (x *tuning) turnsTime(w *direction) time.Duration {
	return 2 * time.Duration(x.out.Pairs) * x.timeOf(w)
}

// wants is what a change takes that is kept after the least comparison in a
// direction: that, a look at the other one, and the new state read and measured.
func (x *tuning) wants(w *direction) time.Duration {
	total := x.turnsTime(w) + x.standTime()
	if other := x.otherDirection(w); other != nil {
		total += 2 * x.timeOf(other)
	}
	return total
}

// standTime is how long it takes to read and measure a new state.
func (x *tuning) standTime() time.Duration {
	total := x.looked
	for _, w := range x.directions {
		total += time.Duration(x.repeat) * x.timeOf(w)
	}
	return total
}

// takes is what a change takes that is kept after the least comparisons, and whose
// gain is measured anew.
func (x *tuning) takes(p *measure.Proposal) time.Duration {
	directions := x.directionsOf(p)
	total := x.wants(directions[0]) + 2*time.Duration(stat.LeastPairs(stat.GainLevel))*x.timeOf(directions[0])
	for _, w := range directions[1:] {
		total += x.turnsTime(w)
	}
	return total
}

// moreTime is the advice where the budget ends something.
const moreTime = ": --budget gives more"

// ranOut tells whether the budget has ended an attempt.
func (x *tuning) ranOut() bool {
	return slices.ContainsFunc(x.out.Attempts, func(a measure.Attempt) bool { return a.Outcome == measure.NoTime })
}

// budgetSpent words that end.
func (x *tuning) budgetSpent() string {
	return fmt.Sprintf("the budget of %s is spent", unit.Duration(int64(x.Budget)))
}
