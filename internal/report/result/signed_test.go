package result

import "testing"

// TestSignless: a change that rounds to zero has no sign.
func TestSignless(t *testing.T) {
	for pct, want := range map[float64]string{-0.04: "0.0%", 0: "0.0%", 0.05: "+0.1%", -1.04: "-1.0%", 340: "+340%"} {
		if got := SignedPct(pct); got != want {
			t.Errorf("%v: %s, want %s", pct, got, want)
		}
	}
}
