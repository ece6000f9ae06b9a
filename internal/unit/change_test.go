package unit

import (
	"math"
	"testing"
)

// TestChange: a change that rounds to zero has no sign, and a tenfold one is a factor.
func TestChange(t *testing.T) {
	for pct, want := range map[float64]string{-0.04: "0.0%", 0: "0.0%", 0.05: "+0.1%", -1.04: "-1.0%", -53: "-53.0%", 340: "+340%", 900: "x10", 15400: "x155", 1e9: "from near zero",
		math.Inf(1): "not known"} {
		if got := Change(pct); got != want {
			t.Errorf("%v: %s, want %s", pct, got, want)
		}
	}
}

// TestChangeRange: the interval has one percent sign, and is empty without its ends.
func TestChangeRange(t *testing.T) {
	if got := ChangeRange(new(-16.0), new(-14.2)); got != "-16.0..-14.2%" {
		t.Error(got)
	}
	if got := ChangeRange(new(90.0), new(1100.0)); got != "+90.0%..x12" {
		t.Error(got)
	}
	if got := ChangeRange(nil, new(1.0)); got != "" {
		t.Error(got)
	}
}
