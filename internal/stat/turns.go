package stat

import (
	"math"
	"slices"
)

// Turns is how runs of a trial fare against runs of a base with which they took
// turns: base, trial, base, trial. So what drifts or changes meanwhile meets both.
type Turns struct {
	Times       float64 // what the trial's carried over what the base's did (geometric means); 0 where that is not known
	Base, Trial int     // runs of each
	Sure        bool    // that it carried more: scatter of runs alone does not bring that about
}

const (
	// TurnsBar is how many times as much a trial has to carry to matter: less is
	// not looked at closer.
	TurnsBar = 1.2
	// TurnsMost is how many runs of a trial there are at most.
	TurnsMost = 5
	// turnsDoubt is how many standard errors a difference is beyond chance. It is so
	// many since it is looked at after each run, of several trials: docs/statistics.md
	// has how often that deceives.
	turnsDoubt = 4.4
)

// InTurns compares what runs carried, in bit/s, in the order in which they were made.
// Runs scatter by RunSpreadPct at least, whatever so few say of themselves, and by
// what they show where that is more. One of each is never sure: a second run of the
// base tells whether it was the base that was an exception, or that has changed.
func InTurns(base, trial []float64) Turns {
	t := Turns{Base: len(base), Trial: len(trial)}
	if len(base) == 0 || len(trial) == 0 || slices.Min(base) <= 0 || slices.Min(trial) <= 0 {
		return t
	}
	a, b := logs(base), logs(trial)
	difference := Mean(b) - Mean(a)
	if t.Times = math.Exp(difference); math.IsInf(t.Times, 0) || math.IsNaN(t.Times) {
		return Turns{Base: len(base), Trial: len(trial)}
	}
	spread, n, m := RunSpreadPct/100.0, float64(len(a)), float64(len(b))
	if n+m > 2 {
		spread = max(spread, math.Sqrt((squares(a)+squares(b))/(n+m-2)))
	}
	t.Sure = len(a) > 1 && t.Times > TurnsBar && difference > turnsDoubt*spread*math.Sqrt(1/n+1/m)
	return t
}

// Open tells whether more runs may make a difference sure that matters.
func (t Turns) Open() bool { return t.Times > TurnsBar && !t.Sure && t.Trial < TurnsMost }

// NextIsBase tells whose turn it is.
func (t Turns) NextIsBase() bool { return t.Base <= t.Trial }

func logs(xs []float64) []float64 {
	return mapped(xs, math.Log)
}
