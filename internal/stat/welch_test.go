package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"thru/internal/measure"
)

func TestWelch(t *testing.T) {
	tests := []struct {
		name            string
		a, b            []float64
		level           float64
		diff, low, high float64
		found           bool
	}{
		// Jain, The Art of Computer Systems Performance Analysis, example 13.6: the means
		// differ by 0.33 with a standard error of 3.698. Student's t at Welch's 9.94 degrees
		// of freedom is 1.813 for 90% (Jain's rougher 11.9 give 1.78 and so +-6.59).
		{"Jain 13.6", []float64{5.36, 16.57, 0.62, 1.41, 0.64, 7.26}, []float64{19.12, 3.52, 3.38, 2.50, 3.60, 1.74}, 0.9, 0.3333, -6.372, 7.039, true},
		{"no scatter", []float64{1, 1, 1}, []float64{2, 2, 2}, 0.95, 1, 1, 1, true},
		{"one new value", []float64{9, 10, 11, 10}, []float64{10}, 0.95, 0, -2.9053, 2.9053, true}, // 3.1824 * 0.8165 * sqrt(1.25)
		{"one old value", []float64{10}, []float64{9, 10, 11, 10}, 0.95, 0, -2.9053, 2.9053, true},
		{"single values", []float64{1}, []float64{2}, 0.95, 1, math.NaN(), math.NaN(), false},
		{"none", nil, []float64{2}, 0.95, math.NaN(), math.NaN(), math.NaN(), false},
	}
	for _, tt := range tests {
		diff, low, high, found := Welch(tt.a, tt.b, tt.level)
		same := func(x, want float64) bool {
			return math.IsNaN(x) && math.IsNaN(want) || math.Abs(x-want) < 0.01
		}
		if !same(diff, tt.diff) || !same(low, tt.low) || !same(high, tt.high) || found != tt.found {
			t.Errorf("%s: %.4f, %.4f to %.4f, %v; want %v, %v to %v, %v", tt.name, diff, low, high, found, tt.diff, tt.low, tt.high, tt.found)
		}
	}
}

// TestFewRarelyFire counts how often one of two groups without a real difference comes out as worse, for several
// kinds of scatter: at most 2.5%, which is one side of 95%. Seeds are fixed, so that the count is always the same.
func TestFewRarelyFire(t *testing.T) {
	const trials = 4000
	shapes := map[string]func(r *rand.Rand) float64{
		"sd 3%":      func(r *rand.Rand) float64 { return 0.03 * r.NormFloat64() },
		"sd 5%":      func(r *rand.Rand) float64 { return 0.05 * r.NormFloat64() },
		"sd 8%":      func(r *rand.Rand) float64 { return 0.08 * r.NormFloat64() },
		"skewed":     func(r *rand.Rand) float64 { return -0.05 * r.ExpFloat64() },
		"outliers":   func(r *rand.Rand) float64 { return 0.02*r.NormFloat64() - 0.3*float64(r.IntN(10)/9) },
		"two levels": func(r *rand.Rand) float64 { return 0.005*r.NormFloat64() - 0.2*float64(r.IntN(2)) },
	}
	for name, next := range shapes {
		for i, n := range [][2]int{{1, 1}, {1, 3}, {3, 1}, {1, 10}, {5, 1}, {40, 1}, {2, 2}, {2, 3}, {3, 2}, {10, 2}, {2, 10}, {3, 3}, {3, 5}, {5, 3}, {10, 3}, {5, 5}, {10, 5}, {10, 10}} {
			if testing.Short() && i%4 != 0 {
				continue
			}
			r := rand.New(rand.NewPCG(uint64(n[0]), uint64(len(name))))
			below := 0
			for range trials {
				a, b := drawn(r, n[0], next), drawn(r, n[1], next)
				diff, _, high, found := Welch(a, b, 0.95)
				least := LeastDetectable(n[0], n[1], true, 0.95)
				if (found || least > 0) && max(high, diff+least) < math.Log1p(-0.02) {
					below++
				}
			}
			share := 100 * float64(below) / trials
			t.Logf("%s, %d and %d: %.2f%% worse", name, n[0], n[1], share)
			if share > 2.5 {
				t.Errorf("%s, %d and %d runs of the same: %.2f%% are worse", name, n[0], n[1], share)
			}
		}
	}
}

// TestSessionsRarelyFire: the same for 3 and 4 runs per side, when whole sessions also differ by SessionSpreadPct.
func TestSessionsRarelyFire(t *testing.T) {
	const trials = 4000
	for _, n := range []int{3, 4} {
		for _, pct := range []float64{0.1, 1, 3, 5} {
			r := rand.New(rand.NewPCG(uint64(n), uint64(10*pct)))
			side := func() []float64 {
				session := SessionSpreadPct / 100.0 * r.NormFloat64()
				return drawn(r, n, func(r *rand.Rand) float64 { return session + pct/100*r.NormFloat64() })
			}
			below := 0
			for range trials {
				a, b := side(), side()
				diff, _, high, _ := Welch(a, b, 0.95)
				if max(high, diff+LeastDetectable(n, n, true, 0.95)) < math.Log1p(-0.02) {
					below++
				}
			}
			if share := 100 * float64(below) / trials; share > 2.5 {
				t.Errorf("%d runs, sd %g%%: %.2f%% are worse", n, pct, share)
			}
		}
	}
}

// TestDifferRarelyFires: the same without a bar, for any number of runs of one session each, and for results, each
// of its own session.
func TestDifferRarelyFires(t *testing.T) {
	const trials, mostPct = 2000, 3.4 // 2.5%, and 2.6 standard errors of so many trials
	for _, n := range []int{3, 5, 10} {
		for _, sessions := range []bool{true, false} {
			r := rand.New(rand.NewPCG(uint64(n), 1))
			side := func() []float64 {
				level := 0.0
				return drawn(r, n, func(r *rand.Rand) float64 {
					if level == 0 || !sessions {
						level = SessionSpreadPct / 100.0 * r.NormFloat64()
					}
					return level + 0.01*r.NormFloat64()
				})
			}
			below := 0
			for range trials {
				if d, found := Differ(side(), side(), RunSpread(sessions), 0.95); !found || d.High < 0 {
					below++
				}
			}
			if share := 100 * float64(below) / trials; share > mostPct {
				t.Errorf("%d values, one session %v: %.2f%% are worse", n, sessions, share)
			}
		}
	}
}

// An equivalent outcome does not change the error probability of the others.
func TestHolm(t *testing.T) {
	var levels []float64
	Holm(3, func(i int, level float64) bool {
		if i == 2 {
			levels = append(levels, level)
		}
		return i == 0
	})
	if len(levels) != 2 || math.Abs(levels[0]-(1-0.05/3)) > 1e-12 || math.Abs(levels[1]-0.975) > 1e-12 {
		t.Errorf("levels %v", levels)
	}
}

func drawn(r *rand.Rand, n int, next func(r *rand.Rand) float64) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = next(r)
	}
	return all
}

func TestSingleRuns(t *testing.T) {
	steady := func(v float64) *measure.Figure {
		return &measure.Figure{Value: v, Low: v * 0.99, High: v * 1.01, CI95Low: new(v * 0.995), CI95High: new(v * 1.005), Runs: 1}
	}
	tests := []struct {
		name        string
		a, b        *measure.Figure
		found       bool
		above, less float64 // bounds of the upper end of the interval
	}{
		{"a fall by 15%", steady(956e6), steady(812e6), true, 0.15, 0.18},
		{"a fall by 40%", steady(1000e6), steady(600e6), true, -0.19, -0.16},
		{"bins without an interval", &measure.Figure{Value: 100, Low: 90, High: 110}, &measure.Figure{Value: 100, Low: 90, High: 110}, true, 0.6, 0.7},
		{"too short for bins", &measure.Figure{Value: 100, Low: 100, High: 100}, steady(100), false, 0, 0},
		{"nothing passed any more", steady(47e6), &measure.Figure{}, true, -18, -17},
		{"nothing passed before", &measure.Figure{}, steady(47e6), true, 17, 19},
		{"nothing passed at all", &measure.Figure{}, &measure.Figure{}, false, 0, 0},
		{"hostile", &measure.Figure{Value: math.NaN(), High: math.Inf(1)}, steady(1), false, 0, 0},
	}
	for _, tt := range tests {
		_, _, high, found := SingleRuns(tt.a, tt.b, 0.95)
		if found != tt.found || found && (high < tt.above || high > tt.less) {
			t.Errorf("%s: found %v, at most %.4f", tt.name, found, high)
		}
	}
}
