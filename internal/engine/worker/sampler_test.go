package worker

import (
	"slices"
	"testing"
	"time"
)

// The live figures run through the ramp, and one falls on the mark. A ramp that is shorter than an interval, or barely
// as long, has one before it, unless the figures of each stream are wanted in equal intervals.
func TestFirstInterval(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, x := range []struct {
		ramp, interval time.Duration
		early          bool
		want           []time.Duration
	}{
		{999 * ms, s, true, []time.Duration{-600 * ms, 0, s}},
		{999 * ms, s, false, []time.Duration{0, s, 2 * s}},
		{400 * ms, s, true, []time.Duration{0, s, 2 * s}},
		{2100 * ms, s, true, []time.Duration{-2 * s, -s, 0}},
		{999 * ms, 250 * ms, true, []time.Duration{-750 * ms, -500 * ms, -250 * ms}},
		{0, s, true, []time.Duration{0, s, 2 * s}},
	} {
		got := []time.Duration{firstInterval(x.ramp, x.interval, x.early)}
		for range 2 {
			at := intervalAfter(got[len(got)-1], x.interval)
			if moved := after(at, got[len(got)-1]+ms, x.interval); moved != at { // the sampler was a little late
				t.Errorf("%+v: the figure at %v is left out", x, at)
			}
			got = append(got, at)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("a ramp of %v in intervals of %v: %v, want %v", x.ramp, x.interval, got, x.want)
		}
	}
}
