package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"thru/internal/measure"
)

// delaysOf has 1000 datagrams per second that wait in a queue for delay(second), with noise of up to 5 us; the
// first second is the ramp. The receiver's clock is ahead by a day and runs faster by ppm.
func delaysOf(seconds int, ppm float64, delay func(second float64) float64) *Delays {
	r, d := rand.New(rand.NewPCG(22, 2)), NewDelays()
	for i := range 1000 * seconds {
		at := int64(i) * 1e6
		arrived := at + 200_000 + int64(delay(float64(i)/1000)) + int64(r.IntN(5000))
		now := 86_400e9 + arrived + int64(float64(arrived)*ppm/1e6)
		d.Take(now, now-at, i >= 1000)
	}
	return d
}

// TestDelays has queues of known delay, measured by clocks that drift apart.
func TestDelays(t *testing.T) {
	none := func(float64) float64 { return 0 }
	saw := func(s float64) float64 { return 2e6 * (2*s - math.Floor(2*s)) } // empties twice a second
	ramp := func(until float64) func(float64) float64 {
		return func(s float64) float64 { return 10e6 * min(s/until, 1) }
	} // then a standing queue
	step := func(s float64) float64 { return 5e6 * math.Floor(s/30) }
	for name, tt := range map[string]struct {
		seconds   int
		ppm       float64
		delay     func(float64) float64
		mean, max float64 // us over the minimum, without noise
		skew      bool    // it is reported
	}{
		"clocks alike":                  {60, 0, none, 0, 0, true},
		"50 ppm":                        {60, 50, none, 0, 0, true},
		"-50 ppm":                       {60, -50, none, 0, 0, true},
		"200 ppm":                       {10, 199, none, 0, 0, true},
		"50 ppm for 20 minutes":         {1200, 50, none, 0, 0, true},
		"a queue that empties":          {60, 50, saw, 1000, 2000, true},
		"a queue that fills at once":    {60, 0, ramp(0.5), 10_000, 10_000, false},
		"a queue that fills in 6 s":     {10, 0, ramp(6), 10_000 * (5*(1.0/6+1)/2 + 4) / 9, 10_000, false},
		"a queue that fills in the end": {10, 0, func(s float64) float64 { return 1e6 * max(s-9, 0) }, 1000.0 / 18, 1000, true},
		"a path that changes":           {60, 0, step, 5000 * 30 / 59.0, 5000, false},
		"300 ppm are no skew of clocks": {10, 300, none, 1650, 3000, false},
	} {
		t.Run(name, func(t *testing.T) {
			var d measure.Datagrams
			h := NewHistogram()
			delaysOf(tt.seconds, tt.ppm, tt.delay).Describe(&d, h)
			near(t, "mean", float64(*d.DelayMeanNs)/1e3, tt.mean, 20)
			near(t, "max", float64(*d.DelayMaxNs)/1e3, tt.max, 20)
			near(t, "median's side of the greatest", float64(h.Max())/1e3, tt.max, 20+tt.max/100)
			if tt.skew != (d.SkewPPM != nil) {
				t.Fatalf("skew %v, want one: %v", d.SkewPPM, tt.skew)
			}
			if tt.skew {
				near(t, "skew", *d.SkewPPM, tt.ppm, 1)
			}
		})
	}
}
