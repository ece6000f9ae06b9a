package pcie

import (
	"math"
	"testing"
)

// The figures of methods.md, formula 7, in Gb/s.
func TestUsableBps(t *testing.T) {
	for _, c := range []struct {
		gen, lanes int
		gbps       float64
	}{
		{1, 1, 1.7}, {1, 4, 6.9}, {1, 8, 13.9}, {1, 16, 27.8}, {2, 4, 13.9}, {2, 8, 27.8}, {2, 16, 55.6},
		{3, 1, 6.8}, {3, 4, 27.4}, {3, 8, 54.7}, {3, 16, 109.5}, {4, 8, 109.5}, {4, 16, 218.9}, {5, 8, 218.9}, {5, 16, 437.9}, {6, 16, 911.1}, {6, 8, 455.5},
		{0, 16, 0}, {7, 16, 0}, {3, 0, 0}, {3, -1, 0}, {3, 33, 0},
	} {
		if got := float64(UsableBps(c.gen, c.lanes)) / 1e9; math.Abs(got-c.gbps) > 0.0501 {
			t.Errorf("gen %d x%d: %.2f Gb/s, want %.1f", c.gen, c.lanes, got, c.gbps)
		}
	}
}

func TestGeneration(t *testing.T) {
	for rate, want := range map[float64]int{2.5: 1, 5: 2, 8: 3, 16: 4, 32: 5, 64: 6, 0: 0, 128: 0, math.NaN(): 0} {
		if got := Generation(rate); got != want {
			t.Errorf("%v GT/s: generation %d, want %d", rate, got, want)
		}
	}
}
