package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// noise is a stationary series about 10 Gb/s with a scatter in percent.
type noise struct {
	name string
	next func(r *rand.Rand, last float64) float64 // of mean 0 and deviation about 1
}

var noises = []noise{
	{"normal", func(r *rand.Rand, _ float64) float64 { return r.NormFloat64() }},
	{"uniform", func(r *rand.Rand, _ float64) float64 { return (r.Float64() - 0.5) * math.Sqrt(12) }},
	{"exponential", func(r *rand.Rand, _ float64) float64 { return 1 - r.ExpFloat64() }},
	{"heavy tails", func(r *rand.Rand, _ float64) float64 {
		return r.NormFloat64() / math.Sqrt(0.2+math.Abs(r.NormFloat64())) / 1.2
	}},
}

func series(n noise, length int, pct float64, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 7))
	xs, last := make([]float64, length), 0.0
	for i := range xs {
		last = n.next(r, last)
		xs[i] = 10e9 * (1 + last*pct/100)
	}
	return xs
}

// step multiplies the values from an index on.
func step(xs []float64, at int, factor float64) []float64 {
	for i := at; i < len(xs); i++ {
		xs[i] *= factor
	}
	return xs
}

// TestChangePointOnNoise checks the error rate: on stationary noise, however wide, less than one series of 100
// (fixed seeds) has two levels.
func TestChangePointOnNoise(t *testing.T) {
	for _, n := range noises {
		for _, length := range []int{5, 6, 8, 10, 15, 30, 60, 200} {
			fired, series0 := 0, 400
			switch {
			case length == 10: // the shortest with levels of two values
				series0 = 8000
			case length > 50:
				series0 = 60
			}
			for seed := range uint64(series0) {
				if _, _, _, found := ChangePoint(series(n, length, 10, seed)); found {
					fired++
				}
			}
			if fired*100 > series0 {
				t.Errorf("%s, %d values: two levels in %d of %d series", n.name, length, fired, series0)
			}
		}
	}
}

// TestChangePointFinds checks the place and both levels of a real change.
func TestChangePointFinds(t *testing.T) {
	for _, n := range noises[:2] {
		for _, length := range []int{10, 20, 60, 1000} {
			for seed := range uint64(20) {
				at := length / 2
				got, before, after, found := ChangePoint(step(series(n, length, 3, seed), at, 0.5))
				off := math.Abs(float64(got - at))
				if !found || off > float64(1+length/longSeries) || math.Abs(before-10e9) > 0.5e9 || math.Abs(after-5e9) > 0.3e9 {
					t.Errorf("%s, %d values, seed %d: %d, %.3g, %.3g, %v, want 10e9 and 5e9 at %d", n.name, length, seed, got, before, after, found, at)
				}
			}
		}
	}
}

func TestChangePointIsSilent(t *testing.T) {
	ramp := make([]float64, 40)
	for i := range ramp {
		ramp[i] = float64(1 + i)
	}
	flat := slices.Repeat([]float64{5}, 20)
	stall := slices.Clone(flat)
	stall[9] = 0
	small := step(slices.Clone(flat), 10, 1.04) // without noise, but too small to matter
	for name, xs := range map[string][]float64{"ramp": ramp, "flat": flat, "stall of 1 s": stall, "4% step": small, "zeros": make([]float64, 20), "nothing": nil, "short": {1, 1, 9, 9}} {
		if at, a, b, found := ChangePoint(xs); found {
			t.Errorf("%s: two levels %g and %g at %d", name, a, b, at)
		}
	}
	if _, _, _, found := ChangePoint(step(slices.Clone(flat), 10, 1.06)); !found {
		t.Error("6% step without noise: not found")
	}
}

func TestMSER5(t *testing.T) {
	transient := series(noises[0], 40, 1, 3)
	for i := range 10 {
		transient[i] *= float64(i) / 10
	}
	tests := []struct {
		name string
		xs   []float64
		want int
	}{
		{"slow start of 10 s", transient, 10},
		{"flat", slices.Repeat([]float64{5}, 30), 0},
		{"too short", []float64{0, 0, 0, 0, 0, 9, 9, 9, 9, 9}, 0},
		{"three batches", []float64{0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, 5},
		{"half", slices.Concat(make([]float64, 20), slices.Repeat([]float64{9}, 20)), 20},
		{"more than half", slices.Concat(make([]float64, 25), slices.Repeat([]float64{9}, 15)), 0},
		{"nothing", nil, 0},
	}
	for _, tt := range tests {
		if got := MSER5(tt.xs); got != tt.want {
			t.Errorf("%s: cut %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestTheilSen(t *testing.T) {
	near(t, "line", TheilSen([]float64{1, 3, 5, 7, 9}), 2, 1e-12)
	near(t, "line with an outlier", TheilSen([]float64{1, 3, 500, 7, 9, 11, 13}), 2, 1e-12)
	near(t, "one value", TheilSen([]float64{4}), 0, 0)
	long := make([]float64, 5000)
	for i := range long {
		long[i] = 3 * float64(i)
	}
	near(t, "long line", TheilSen(long), 3, 1e-9)
}

func TestSteady(t *testing.T) {
	calm := []float64{9.4, 9.4, 9.41, 9.39, 9.4, 9.41, 9.4, 9.39, 9.4, 9.4}
	drift := make([]float64, 10)
	for i := range drift {
		drift[i] = 10 - 0.04*float64(i) // 3.6% in all
	}
	halves := []float64{10, 9, 10, 9, 10, 10, 9, 9, 10, 8, 9, 9, 8, 10, 8, 9, 9, 8}
	tests := []struct {
		name    string
		xs      []float64
		checked bool
		steady  bool
		levels  int
		why     string
	}{
		{"calm", calm, true, true, 0, ""},
		{"four bins", calm[:4], false, false, 0, "4 whole seconds measured, 5 are needed"},
		{"five bins", calm[:5], true, true, 0, ""},
		{"drift", drift, true, false, 0, "drifted by -3.6"},
		{"halves", halves, true, false, 0, "%"},
		{"two levels", step(slices.Clone(calm), 4, 0.5), true, false, 2, "from second 4 on"},
		{"no data", make([]float64, 8), true, false, 0, "no data passed"},
		{"nothing", nil, false, false, 0, "0 whole seconds"},
	}
	for _, tt := range tests {
		s := Steady(tt.xs)
		if s.Checked != tt.checked || s.Steady != tt.steady || len(s.Levels) != tt.levels || !strings.Contains(s.Why, tt.why) || (s.Why == "") != tt.steady {
			t.Errorf("%s: %+v", tt.name, s)
		}
	}
	near(t, "slope", Steady(drift).SlopePct, -100*0.36/9.82, 1e-9)
	near(t, "halves", Steady(drift).HalvesPct, 100*0.2/9.82, 1e-9)
}

// TestSteadyBars tests series just below and just above each threshold.
func TestSteadyBars(t *testing.T) {
	line := func(pct float64) []float64 { // drifts by pct of its mean
		xs := make([]float64, 11)
		for i := range xs {
			xs[i] = 100 + pct*(float64(i)-5)/10
		}
		return xs
	}
	if !Steady(line(1.9)).Steady || Steady(line(2.1)).Steady {
		t.Error("the bar of the slope is not at 2%")
	}
	// Every other value of the first half shifts its mean, not the median slope.
	head := func(first float64) []float64 {
		return slices.Concat(slices.Repeat([]float64{99, first}, 10), slices.Repeat([]float64{99, 101}, 10))
	}
	if below, above := Steady(head(111.1)), Steady(head(111.4)); !below.Steady || above.Steady || !strings.Contains(above.Why, "halves") {
		t.Errorf("the bar of the halves is not at 5%%: %+v, %+v", below, above)
	}
}

// TestSteadyBeginning distinguishes a slow start, which is excluded, from data that counts.
func TestSteadyBeginning(t *testing.T) {
	secondSums := func(n, at int, first, rest float64) []float64 {
		xs := series(noises[0], n, 1, 5)
		for i := range xs {
			xs[i] *= rest
			if i < at {
				xs[i] *= first / rest
			}
		}
		return xs
	}
	ramp := secondSums(40, 0, 1, 1)
	for i := range 8 {
		ramp[i] *= float64(i+1) / 9
	}
	for name, tt := range map[string]struct {
		xs  []float64
		cut bool
		why string
	}{
		"a slow start":               {secondSums(20, 3, 0.2, 1), true, ""},
		"a slow start that rises":    {ramp, true, ""},
		"a burst":                    {secondSums(20, 4, 1, 0.8), false, "two levels"},
		"a fall in the first half":   {secondSums(60, 18, 1, 0.8), false, "two levels"},
		"a rise after a third":       {secondSums(30, 10, 0.8, 1), false, "two levels"},
		"a slow start, then a fall":  {slices.Concat(secondSums(30, 2, 0.2, 1), secondSums(30, 0, 1, 0.8)), false, "two levels"},
		"the last two of ten":        {secondSums(10, 8, 1, 0.8), false, "two levels"},
		"the first two of ten":       {secondSums(10, 2, 1, 0.8), false, "two levels"},
		"a second of slow start":     {secondSums(10, 1, 0.2, 1), false, ""},
		"the last of ten is a stall": {secondSums(10, 9, 1, 0.01), false, ""},
	} {
		s := Steady(tt.xs)
		if s.Steady != (tt.why == "") || s.Truncated > 0 != tt.cut || !strings.HasPrefix(s.Why, tt.why) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// Of stationary noise few runs may be reported as unsteady; of a real drift, all.
func TestSteadyOnNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const series = 1000
	for _, n := range []int{10, 60} {
		calm, drifting := 0, 0
		for range series {
			noise, drift := make([]float64, n), make([]float64, n)
			for i := range noise {
				noise[i] = 100 + 3*r.NormFloat64()
				drift[i] = 100 + 1*r.NormFloat64() + 15*float64(i)/float64(n)
			}
			if Steady(noise).Steady {
				calm++
			}
			if !Steady(drift).Steady {
				drifting++
			}
		}
		if calm < series*90/100 || drifting < series*95/100 {
			t.Errorf("%d bins: %d of %d noises are steady, %d drifts are not", n, calm, series, drifting)
		}
	}
}
