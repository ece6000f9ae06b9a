package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestTQuantile(t *testing.T) {
	for degrees, want := range map[int]float64{1: 12.706, 2: 4.303, 4: 2.776, 9: 2.262, 30: 2.042} {
		near(t, "t", TQuantile(0.975, degrees), want, 0.0006)
	}
}

func TestMeanInterval(t *testing.T) {
	ci, ok := MeanInterval([]float64{9.3, 9.4, 9.5, 9.4, 9.4})
	// Standard deviation 0.0707, over sqrt 5, times 2.776.
	if !ok || ci.N != 5 {
		t.Fatalf("%+v, %v", ci, ok)
	}
	near(t, "mean", ci.Mean, 9.4, 1e-9)
	near(t, "low", ci.Low, 9.4-0.0878, 1e-4)
	near(t, "high", ci.High, 9.4+0.0878, 1e-4)
	near(t, "precision", ci.HalfWidthPct(), 0.934, 1e-3)
	if _, ok := MeanInterval([]float64{1}); ok {
		t.Error("one run has an interval")
	}
}

// TestIntervalCovers checks the meaning of 95% on normally distributed runs with fixed seeds.
func TestIntervalCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	hits := 0
	const trials = 2000
	for range trials {
		xs := make([]float64, 5)
		for i := range xs {
			xs[i] = 100 + r.NormFloat64()
		}
		if ci, _ := MeanInterval(xs); ci.Low <= 100 && 100 <= ci.High {
			hits++
		}
	}
	near(t, "coverage in percent", 100*float64(hits)/trials, 95, 1.5)
}

// TestRunInterval checks the width of the interval, and that few bins have none.
func TestRunInterval(t *testing.T) {
	for _, n := range []int{0, 1, 9} {
		if ci, ok := RunInterval(series(noises[0], n, 3, 1)); ok {
			t.Errorf("%d bins have the interval %+v", n, ci)
		}
	}
	for _, n := range []int{10, 30, 60, 5000} {
		xs := series(noises[0], n, 3, 1)
		ci, ok := RunInterval(xs)
		if !ok || ci.N != n {
			t.Errorf("%d bins: %+v, %v", n, ci, ok)
		}
		near(t, "mean", ci.Mean, Mean(xs), 1)
		near(t, "middle", (ci.Low+ci.High)/2, Mean(xs), 1)
	}
	flat, _ := RunInterval([]float64{5, 5, 5, 5, 5, 5, 5, 5, 5, 5})
	near(t, "half-width of what does not vary", flat.HalfWidthPct(), 0, 1e-9)
	// A wave of one period over the run is orthogonal to all but the second of the waves of ten bins.
	wave := make([]float64, 10)
	for i := range wave {
		wave[i] = 100 + math.Cos(2*math.Pi*(float64(i)+0.5)/10)
	}
	ci, _ := RunInterval(wave)
	near(t, "half-width of a wave", ci.HalfWidthPct(), TQuantile(0.975, 2)/2, 1e-9)
}

// TestRunIntervalCovers checks its 95% for seconds that depend on the one before.
func TestRunIntervalCovers(t *testing.T) {
	for _, n := range []int{30, 60, 120} {
		r, hits := rand.New(rand.NewPCG(6, uint64(n))), 0
		const trials = 1000
		for range trials {
			xs, last := make([]float64, n), r.NormFloat64()
			for i := range xs {
				last = 0.6*last + 0.8*r.NormFloat64()
				xs[i] = 100 + last
			}
			if ci, _ := RunInterval(xs); ci.Low <= 100 && 100 <= ci.High {
				hits++
			}
		}
		near(t, "coverage in percent", 100*float64(hits)/trials, 94, 2)
	}
}

func TestEnough(t *testing.T) {
	calm, wild := []float64{9.4, 9.41, 9.4, 9.39, 9.4}, []float64{5, 9, 7, 8, 6}
	tests := []struct {
		name        string
		runs        []float64
		pct         float64
		least, most int
		want        bool
	}{
		{"precise", calm, 2.5, 5, 15, true},
		{"too few", calm[:4], 2.5, 5, 15, false},
		{"not precise", wild, 2.5, 5, 15, false},
		{"cap", wild, 2.5, 3, 5, true},
		{"fixed number", calm, 0, 1, 10, false},
		{"fixed number reached", calm, 0, 1, 5, true},
		{"one run", calm[:1], 2.5, 1, 10, false},
		{"none", nil, 2.5, 0, 10, false},
	}
	for _, tt := range tests {
		if got := Enough(tt.runs, tt.pct, tt.least, tt.most); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestTwoGroups(t *testing.T) {
	tests := []struct {
		name  string
		runs  []float64
		found bool
	}{
		{"two speeds", []float64{9.8, 4.1, 9.7, 4.2, 9.8}, true},
		{"one outlier", []float64{9.8, 9.7, 9.8, 4.2, 9.8}, false},
		{"spread evenly", []float64{4, 5, 6, 7, 8, 9}, false},
		{"no matter", []float64{9.40, 9.40, 9.41, 9.41, 9.41}, false},
		{"equal", []float64{5, 5, 5, 5}, false},
		{"three runs", []float64{4, 4, 9}, false},
		{"none", nil, false},
	}
	for _, tt := range tests {
		if _, _, found := TwoGroups(tt.runs); found != tt.found {
			t.Errorf("%s: %v", tt.name, found)
		}
	}
	low, high, _ := TwoGroups(tests[0].runs)
	near(t, "low", low, 4.15, 1e-9)
	near(t, "high", high, 29.3/3, 1e-9)
}

// TestTwoGroupsRarelyFires checks the error rate at its thresholds, on wide normally distributed runs.
func TestTwoGroupsRarelyFires(t *testing.T) {
	for n, most := range map[int]int{4: 80, 5: 40, 6: 40, 8: 20, 10: 20, 15: 20} { // of 2000
		r := rand.New(rand.NewPCG(9, uint64(n)))
		fired := 0
		for range 2000 {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = 100 + 10*r.NormFloat64()
			}
			if _, _, found := TwoGroups(xs); found {
				fired++
			}
		}
		if fired > most {
			t.Errorf("%d normal runs: two groups in %d of 2000", n, fired)
		}
	}
}

func TestQuantile(t *testing.T) {
	xs := []float64{4, 1, 3, 2}
	near(t, "median", Median(xs), 2.5, 0)
	near(t, "median of 3", Median(xs[:3]), 3, 0)
	near(t, "least", Quantile(xs, 0), 1, 0)
	near(t, "greatest", Quantile(xs, 1), 4, 0)
	near(t, "first quarter", Quantile(xs, 0.25), 1.75, 1e-12)
	if xs[0] != 4 {
		t.Error("the values were sorted in place")
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("nothing has a median")
	}
}
