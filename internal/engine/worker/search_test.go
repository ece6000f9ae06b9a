package worker

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSearchRows(t *testing.T) {
	for row, want := range map[int]int64{-1: 5e5, 0: 5e5, 1: 1e6, 1000: 1e9, 1001: 1.1e9, 1090: 10e9, 1091: 11e9, 1 << 30: mostSearchRate} {
		if got := searchRow(row); got != want {
			t.Errorf("row %d is %d bit/s, want %d", row, got, want)
		}
	}
}

func TestSearchSteps(t *testing.T) {
	fine, slow, lossy, middling := report{}, report{DelayNs: int64(100 * time.Millisecond)}, report{Errors: 11}, report{DelayNs: int64(50 * time.Millisecond)}
	for name, tt := range map[string]struct {
		row     int
		reports []report
		want    int
	}{
		"fast at first":                         {0, []report{fine, fine}, 20},
		"a few errors are let pass":             {0, []report{{Errors: 10}}, 10},
		"between the delays it stays":           {50, []report{middling, middling}, 50},
		"loss slows":                            {50, []report{lossy}, 49},
		"delay slows":                           {50, []report{slow}, 49},
		"the third congestion falls back":       {100, []report{lossy, lossy, lossy}, 68},
		"and ends the fast phase":               {100, []report{lossy, lossy, lossy, fine}, 69},
		"a calm interval begins the count anew": {100, []report{lossy, lossy, fine, lossy, lossy}, 106},
		"small steps above 1 Gb/s":              {1000, []report{fine}, 1001},
		"never below the table":                 {1, []report{lossy, lossy, lossy}, 0},
	} {
		s := search{row: tt.row}
		for _, r := range tt.reports {
			s.step(r)
		}
		if s.row != tt.want {
			t.Errorf("%s: row %d, want %d", name, s.row, tt.want)
		}
	}
}

// On a path of any capacity the rate approaches it and stays there.
func TestSearchSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.Int64Range(2e6, 40e9).Draw(t, "capacity")
		s, best := search{}, int64(0)
		for range 2000 { // 100 s
			rate := searchRow(s.row)
			r := report{}
			if rate > capacity {
				r.Errors = 1000
			} else {
				best = max(best, rate)
			}
			s.step(r)
		}
		if float64(best) < 0.85*float64(capacity)-1e6 || float64(searchRow(s.row)) > 1.2*float64(capacity)+2e6 {
			t.Fatalf("capacity %d: best %d, at the end %d", capacity, best, searchRow(s.row))
		}
	})
}
