package result

import (
	"testing"

	"thru/internal/measure"
)

// TestPercentilesNeedRequests: a hundred requests have no p99.99.
func TestPercentilesNeedRequests(t *testing.T) {
	for n, want := range map[int64]int{1: 1, 10: 2, 999: 3, 1000: 4, 10_000: 5} {
		if got := Percentiles(&measure.Latency{Count: n}); len(got) != want {
			t.Errorf("of %d requests %d percentiles, want %d", n, len(got), want)
		}
	}
}
