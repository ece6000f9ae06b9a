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

// TestIntervalCovers holds the meaning of 95% on normal runs with fixed seeds.
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

func TestBatchInterval(t *testing.T) {
	tests := []struct {
		name string
		bins int
		rtt  int64
		want int // batches
	}{
		{"10 s", 10, 1e6, 10},
		{"9 s", 9, 1e6, 0},
		{"60 s", 60, 1e6, 20},
		{"10 s, long round trips", 10, 200e6, 0}, // 2 s a batch
		{"60 s, long round trips", 60, 200e6, 20},
		{"60 s, 600 ms", 60, 600e6, 10},
		{"RTT not known", 12, 0, 12},
		{"absurd RTT", 60, math.MaxInt64, 0},
	}
	for _, tt := range tests {
		xs := series(noises[0], tt.bins, 3, 1)
		ci, ok := BatchInterval(xs, tt.rtt)
		if ok != (tt.want > 0) || ci.N != tt.want {
			t.Errorf("%s: %d batches, %v, want %d", tt.name, ci.N, ok, tt.want)
		}
		if ok && (ci.Low > mean(xs) || ci.High < mean(xs)) {
			t.Errorf("%s: %+v does not hold the mean %g", tt.name, ci, mean(xs))
		}
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

// TestTwoGroupsRarelyFires holds the claim at its bars, on wide normal runs.
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
