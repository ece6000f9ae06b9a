package stat

import (
	"math"
	"slices"
)

// Turns compares runs of a trial with runs of a base that alternated with them: base, trial, base, trial. So drift
// and changes affect both equally.
type Turns struct {
	Times       float64 // rate of the trial over that of the base (geometric means); 0 if not known
	Base, Trial int     // runs of each
	Sure        bool    // it carried more, and scatter of runs alone does not explain that
}

const (
	// TurnsBar is the least gain that matters: a smaller one is not investigated.
	TurnsBar = 1.2
	// TurnsMost is the highest number of runs of a trial.
	TurnsMost = 5
	// turnsDoubt is the number of standard errors from which a difference is beyond chance. It is so high because
	// the difference is tested after each run, for several trials: docs/statistics.md has the error rate.
	turnsDoubt = 4.4
)

// InTurns compares what runs carried, in bit/s, in the order in which they were made. The scatter of the runs is
// at least RunSpreadPct, even if so few show less, and the observed one if that is more. One run of each is never
// sure: a second run of the base shows whether the first was an outlier, or the base has changed.
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

// Open reports whether more runs may make a relevant difference sure.
func (t Turns) Open() bool { return t.Times > TurnsBar && !t.Sure && t.Trial < TurnsMost }

// NextIsBase reports whether the base runs next.
func (t Turns) NextIsBase() bool { return t.Base <= t.Trial }

func logs(xs []float64) []float64 {
	return mapped(xs, math.Log)
}
