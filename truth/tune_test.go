package truth

import (
	"fmt"
	"math"
	"math/rand/v2"

	gonum "gonum.org/v1/gonum/stat"

	"thru/internal/measure"
	"thru/internal/stat"
)

// tuned is a change as `thru tune` judges it: runs with it and without.
type tuned struct {
	r            *rand.Rand
	brings       float64 // true effect, as a logarithm
	scatter      float64 // standard deviation of a run
	before, with measure.Cell
}

// pair makes a run of each state.
func (t *tuned) pair() {
	for _, x := range []struct {
		cell  *measure.Cell
		level float64
	}{{&t.before, 0}, {&t.with, t.brings}} {
		next := flowCell("peer", []float64{1e10 * math.Exp(x.level+t.scatter*t.r.NormFloat64())})
		next.Runs[0].Index = len(x.cell.Runs)
		next.Runs = append(x.cell.Runs, next.Runs...)
		*x.cell = next
	}
}

// kept judges one of a number of changes by the rules of `thru tune`.
func (t *tuned) kept(changes int) (kept bool, found measure.Comparison) {
	level := stat.TuneLevel(changes)
	for pairs := 1; ; pairs++ {
		t.pair()
		if found = stat.AB(&t.before, &t.with, level); stat.Over(&t.before, &t.with, &found, pairs, stat.LeastPairs(level)) {
			return found.Outcome == measure.Improved && stat.Price(&found) == "", found
		}
	}
}

// gain returns the reported effect of a kept change, from runs after the decision.
func (t *tuned) gain() measure.Comparison {
	anew := tuned{r: t.r, brings: t.brings, scatter: t.scatter}
	for range stat.LeastPairs(stat.GainLevel) {
		anew.pair()
	}
	return stat.AB(&anew.before, &anew.with, stat.GainLevel)
}

// scatters are the standard deviations of the runs of a state.
func scatters() []float64 { return []float64{0.01, 0.02, 0.05, 0.1} }

// keptWrongly returns the rates for tunings in which nothing helps.
func keptWrongly(scale float64) table {
	t := table{title: "tune: nothing helps", about: "Tunings with this many changes, none of which has an effect. How often any of them is kept, by the scatter of the runs.",
		head: []string{"changes", "1%", "2%", "5%", "10%"}}
	for i, changes := range []int{1, 4, 10} {
		var rates []rate
		for k, scatter := range scatters() {
			rates = append(rates, count(4000/(changes+1), scale, uint64(600+10*i+k), func(r *rand.Rand) bool {
				any := false
				for range changes {
					kept, _ := (&tuned{r: r, scatter: scatter}).kept(changes)
					any = any || kept
				}
				return any
			}).most(0.02))
		}
		t.add(fmt.Sprint(changes), rates...)
	}
	return t
}

// keptRightly returns the rates for changes that help.
func keptRightly(scale float64) table {
	t := table{title: "tune: what is found", about: "One of four changes has this gain. How often it is kept, by the scatter of the runs.", head: []string{"gain", "1%", "2%", "5%", "10%"}}
	for i, brings := range []float64{0.03, 0.05, 0.1, 0.2, 0.5} {
		var rates []rate
		for k, scatter := range scatters() {
			rates = append(rates, count(1000, scale, uint64(700+10*i+k), func(r *rand.Rand) bool {
				kept, _ := (&tuned{r: r, brings: math.Log1p(brings), scatter: scatter}).kept(4)
				return kept
			}))
		}
		t.add(fmt.Sprintf("%+.0f%%", 100*brings), rates...)
	}
	return t
}

// gains returns the reported effect of kept changes.
func gains(scale float64) table {
	t := table{title: "tune: the reported gain of a kept change",
		about: "One of four changes has this gain and was kept. The reported gain comes from runs after the decision; the next column has the gain in the runs that decided. The last rates\n" +
			"count kept changes: the interval contains the true gain; the estimate is above it (50% without bias). The mean misses its limit if it is off by more than one point and the error of the trials.",
		head: []string{"gain", "scatter of the runs", "reported on average", "in the runs that decided", "mean within 1 point", "interval contains the gain", "estimate above it"}}
	for i, x := range []struct{ brings, scatter float64 }{{0.03, 0.01}, {0.03, 0.02}, {0.03, 0.05}, {0.05, 0.02}, {0.05, 0.05}, {0.2, 0.05}, {0.2, 0.1}} {
		var said, decided []float64
		holds, above := 0, 0
		wanted := max(20, int(500*scale))
		for n := uint64(0); len(said) < wanted && n < 200*uint64(wanted); n++ {
			change := &tuned{r: rand.New(rand.NewPCG(uint64(800+i), n)), brings: math.Log1p(x.brings), scatter: x.scatter}
			kept, found := change.kept(4)
			if !kept {
				continue
			}
			gain := change.gain()
			said, decided = append(said, *gain.ChangePct), append(decided, *found.ChangePct)
			if *gain.LowPct <= 100*x.brings && 100*x.brings <= *gain.HighPct {
				holds++
			}
			if *gain.ChangePct > 100*x.brings {
				above++
			}
		}
		n := len(said)
		near := rate{trials: 1}.least(1)
		if math.Abs(gonum.Mean(said, nil)-100*x.brings) <= 1+2.6*math.Sqrt(gonum.Variance(said, nil)/float64(n)) {
			near.came = 1
		}
		cells := fmt.Sprintf("%+.0f%%|%.0f%%|%+.1f%%|%+.1f%%", 100*x.brings, 100*x.scatter, gonum.Mean(said, nil), gonum.Mean(decided, nil))
		t.add(cells, near, rate{came: holds, trials: n}.least(0.95), rate{came: above, trials: n})
	}
	return t
}
