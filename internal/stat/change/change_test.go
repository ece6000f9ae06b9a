package change

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// monday is where the series of these tests begin.
func monday() time.Time { return time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC) }

// hourly gives a detector a value for each hour, and returns the changes. A value that is NaN is a turn without one.
func hourly(d *Detector, hours int, value func(hour int) float64) (found []Change) {
	for h := range hours {
		if x := value(h); !math.IsNaN(x) {
			if c, ok := d.Add(monday().Add(time.Duration(h)*time.Hour), x); ok {
				found = append(found, c)
			}
		}
	}
	return found
}

// scatter returns a value about a level with a scatter of 3%, each time the same.
func scatter(level func(hour int) float64) func(int) float64 {
	r := rand.New(rand.NewPCG(7, 7))
	return func(hour int) float64 { return level(hour) * (1 + 0.03*r.NormFloat64()) }
}

// step returns a level that is another one from an hour to an hour.
func step(from, to int, before, after float64) func(int) float64 {
	return func(hour int) float64 {
		if hour >= from && hour < to {
			return after
		}
		return before
	}
}

// both returns the product of two levels.
func both(a, b func(int) float64) func(int) float64 {
	return func(hour int) float64 { return a(hour) * b(hour) }
}

// night is a level that is lower in the last four hours of each day.
func night(hour int) float64 { return 1 - 0.1*float64(hour%24/20) }

func TestChanges(t *testing.T) {
	const never = 1 << 30
	for _, x := range []struct {
		name    string
		options Options
		hours   int
		value   func(int) float64
		since   []int // hours of the changes; negative: of one that is over
	}{
		{"nothing", Options{}, 600, scatter(step(never, never, 9e9, 0)), nil},
		{"a fall of 10%", Options{}, 410, scatter(step(400, never, 9.4e9, 8.46e9)), []int{400}},
		{"a rise of 10%", Options{}, 410, scatter(step(400, never, 1e-3, 1.1e-3)), []int{400}},
		{"a fall, and back", Options{}, 500, scatter(step(400, 440, 9.4e9, 8.46e9)), []int{400, -440}},
		{"a fall, another, and back at once", Options{}, 760, scatter(both(step(400, 720, 1, 0.9), step(560, 720, 1, 0.8))), []int{400, 560, -720}},
		{"a fall, another, and back by steps", Options{}, 900, scatter(both(step(400, 860, 1, 0.9), step(560, 720, 1, 0.8))), []int{400, 560, -720, -860}},
		{"one hour", Options{}, 500, scatter(step(400, 401, 9.4e9, 1e9)), nil},
		{"two hours", Options{}, 500, scatter(step(400, 402, 9.4e9, 1e9)), nil},
		{"two levels in turns", Options{}, 800, scatter(func(h int) float64 { return 1 - 0.25*float64(h%2) }), nil},
		{"constant, then another constant", Options{}, 406, step(400, never, 1500, 1400), []int{400}},
		{"constant, one other value", Options{}, 500, step(400, 402, 1500, 1400), nil},
		{"no loss, then a little", Options{}, 406, step(400, never, 0, 0.001), []int{400}},
		{"less than is asked for", Options{LeastPct: 20}, 500, scatter(step(400, never, 9.4e9, 8.46e9)), nil},
		{"less than is asked for, in its unit", Options{Least: 2e9}, 500, scatter(step(400, never, 9.4e9, 8.46e9)), nil},
		{"weekends differ", Options{}, 6 * 168, scatter(func(h int) float64 { return 1 - 0.1*float64(h/24%7/5) }), nil},
		{"nights differ", Options{}, 6 * 168, scatter(night), nil},
		{"nights differ, and it falls", Options{}, 6 * 168, scatter(both(night, step(900, never, 1, 0.85))), []int{900}},
		{"half, on the second day", Options{}, 60, scatter(step(30, never, 1, 0.5)), []int{30}},
	} {
		t.Run(x.name, func(t *testing.T) {
			var since []int
			for _, c := range hourly(New(x.options), x.hours, x.value) {
				hour := int(c.Since.Sub(monday()).Hours())
				if !c.Over.IsZero() {
					hour = -hour
				}
				since = append(since, hour)
			}
			if !slices.EqualFunc(since, x.since, func(a, b int) bool { return a >= b-1 && a <= b+1 }) { // chance may move it by one
				t.Errorf("changes at %v, want %v", since, x.since)
			}
		})
	}
}

// TestFigures checks the figures of a fall by 10% and of its end.
func TestFigures(t *testing.T) {
	found := hourly(New(Options{}), 500, scatter(step(400, 440, 9.4e9, 8.46e9)))
	if len(found) != 2 {
		t.Fatalf("%d changes: %+v", len(found), found)
	}
	fall, end := found[0], found[1]
	effect, low, high := fall.Percent()
	if low > -10 || high < -10 || high > 0 || math.Abs(effect+10) > 4 {
		t.Errorf("effect %.1f%% (%.1f%% to %.1f%%)", effect, low, high)
	}
	if at := monday().Add(400 * time.Hour); !fall.Earliest.Before(at) || fall.Latest.Before(at) || fall.Found.Before(fall.Latest) {
		t.Errorf("from %v to %v, found %v", fall.Earliest, fall.Latest, fall.Found)
	}
	if fall.P <= 0 || fall.P > 1e-3 || end.P <= 0 || end.P > 1e-3 {
		t.Errorf("p %g and %g", fall.P, end.P)
	}
	if end.Over != fall.Since || end.After < end.Before || math.Abs(end.After-9.4e9) > 0.4e9 {
		t.Errorf("over %v, %g to %g", end.Over, end.Before, end.After)
	}
}

// TestGap has the change in a gap of five days: it may have been at any moment of that.
func TestGap(t *testing.T) {
	found := hourly(New(Options{}), 440, scatter(func(h int) float64 {
		if h >= 300 && h < 420 {
			return math.NaN()
		}
		return step(300, 1000, 1, 0.9)(h)
	}))
	if len(found) != 1 {
		t.Fatalf("%d changes: %+v", len(found), found)
	}
	if first := monday().Add(300 * time.Hour); found[0].Earliest.After(first) || found[0].Latest.Before(first.Add(120*time.Hour)) {
		t.Errorf("from %v to %v", found[0].Earliest, found[0].Latest)
	}
}

// TestEvery averages minutes to hours.
func TestEvery(t *testing.T) {
	d, value := New(Options{Every: time.Hour}), scatter(step(400*60, 1<<30, 1, 0.97))
	var found []Change
	for m := range 410 * 60 {
		if c, ok := d.Add(monday().Add(time.Duration(m)*time.Minute), value(m)); ok {
			found = append(found, c)
		}
	}
	if len(found) != 1 || !found[0].Since.Equal(monday().Add(400*time.Hour)) {
		t.Errorf("changes %+v", found)
	}
}

// TestClock checks samples that come twice, late, or after a clock that had jumped.
func TestClock(t *testing.T) {
	var c clock
	got := []bool{c.accepts(monday()), c.accepts(monday()), c.accepts(monday().Add(-time.Second)), c.accepts(monday().Add(time.Second))}
	if want := []bool{true, false, false, true}; !reflect.DeepEqual(got, want) {
		t.Errorf("accepted %v, want %v", got, want)
	}
	c.accepts(monday().AddDate(100, 0, 0))
	n := 0
	for h := range 30 {
		if c.accepts(monday().Add(time.Duration(h) * time.Hour)) {
			n++
		}
	}
	if n != 30-patience {
		t.Errorf("%d of 30 samples accepted after the jump", n)
	}
}

func TestDiscrete(t *testing.T) {
	const a, b, c = 1500, 1400, 9000
	repeat := func(n int, all ...float64) (out []float64) {
		for range n {
			out = append(out, all...)
		}
		return out
	}
	join := func(parts ...[]float64) (all []float64) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	random := func(n int) (all []float64) {
		r := rand.New(rand.NewPCG(1, 1))
		for range n {
			all = append(all, []float64{a, b}[r.IntN(2)])
		}
		return all
	}
	for _, x := range []struct {
		name   string
		values []float64
		since  []int // negative: of one that is over
	}{
		{"always the same", repeat(500, a), nil},
		{"another one", join(repeat(100, a), repeat(5, b)), []int{100}},
		{"once another one", join(repeat(100, a), repeat(1, b), repeat(100, a)), nil},
		{"in turns", repeat(300, a, b), nil},
		{"at random", random(2000), nil},
		{"stays of some turns", join(repeat(6, a, a, a, a, b, b, b, b), repeat(400, a), repeat(6, b), repeat(20, a)), nil},
		{"at random, then a third", join(random(200), repeat(6, c)), []int{200}},
		{"there and back", join(repeat(100, a), repeat(20, b), repeat(20, a)), []int{100, -120}},
		{"there and back twice", join(repeat(100, a), repeat(20, b), repeat(20, a), repeat(20, b), repeat(20, a)), []int{100, -120, 140, -160}},
		{"there and back, always", repeat(20, repeat(20, a, b)...), nil},
		{"at once", join(repeat(1, a), repeat(9, b)), nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := new(Discrete)
			var since []int
			for i, v := range x.values {
				if s, ok := d.Add(monday().Add(time.Duration(i)*time.Hour), v); ok {
					hour := int(s.Since.Sub(monday()).Hours())
					if !s.Over.IsZero() {
						hour = -hour
					}
					since = append(since, hour)
				}
			}
			if !reflect.DeepEqual(since, x.since) {
				t.Errorf("changes at %v, want %v", since, x.since)
			}
		})
	}
}

// TestNature checks that a series which leaves a level and comes back again and again does so by nature.
func TestNature(t *testing.T) {
	d := New(Options{})
	found := hourly(d, 2000, scatter(func(h int) float64 { return step(300, 1<<30, 1, 1-0.2*float64(h/30%2))(h) }))
	if n := len(found); n < 2 || found[n-1].Found.After(monday().Add(1400*time.Hour)) {
		t.Errorf("%d changes: %+v", n, found)
	}
}

// TestScaled checks that the unit of a series changes only the unit of its changes, and that a series upside down changes upside down.
func TestScaled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		by := rapid.SampledFrom([]float64{1e-9, 0.125, 8, 1e9, -1, -4}).Draw(t, "by")
		seed := rapid.Uint64().Draw(t, "seed")
		at := rapid.IntRange(150, 300).Draw(t, "at")
		after := rapid.Float64Range(0.5, 1.5).Draw(t, "after")
		run := func(by float64) []Change {
			r := rand.New(rand.NewPCG(seed, 1))
			return hourly(New(Options{}), at+60, func(h int) float64 { return by * step(at, at+40, 1, after)(h) * (1 + 0.03*r.NormFloat64()) })
		}
		one, scaled := run(1), run(by)
		if len(one) != len(scaled) {
			t.Fatalf("%d changes, scaled by %g %d", len(one), by, len(scaled))
		}
		for i, c := range one {
			s := scaled[i]
			if by < 0 {
				s.Low, s.High = s.High, s.Low
			}
			if !s.Since.Equal(c.Since) || !nearly(s.Before, by*c.Before) || !nearly(s.After, by*c.After) || !nearly(s.Low, by*c.Low) || !nearly(s.High, by*c.High) {
				t.Fatalf("%+v, scaled by %g %+v", c, by, s)
			}
		}
	})
}

func nearly(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b)) }

// FuzzAdd gives hostile values and times to the detectors.
func FuzzAdd(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, uint16(3))
	f.Add([]byte{0, 0, 0, 0, 255, 255, 255}, uint16(100))
	f.Add([]byte{16, 1, 33, 1, 50, 99, 67, 12}, uint16(300))
	values := []float64{0, 1, -1, 1.01, 1e150, -1e150, 1e300, math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 2, 3, 5, 8}
	steps := []time.Duration{time.Hour, time.Hour, time.Minute, 0, -time.Hour, 1, 90 * 24 * time.Hour, math.MaxInt64, math.MinInt64, 24 * time.Hour, time.Second}
	f.Fuzz(func(t *testing.T, course []byte, times uint16) {
		d, binned, discrete, at := New(Options{Keep: 300}), New(Options{Every: time.Hour}), new(Discrete), monday()
		for range min(int(times), 40) {
			for _, b := range course[:min(len(course), 64)] {
				at = at.Add(steps[int(b>>4)%len(steps)])
				if c, ok := d.Add(at, values[b&15]); ok {
					checkChange(t, c)
				}
				if c, ok := binned.Add(at, values[b&15]); ok {
					checkChange(t, c)
				}
				if s, ok := discrete.Add(at, float64(b)); ok && s.Before == s.After {
					t.Fatalf("%+v", s)
				}
			}
		}
		if n := len(d.now.samples); n > 2*d.options.Keep || len(d.former) > mostFormer || len(discrete.now.kinds) > mostKinds {
			t.Fatalf("%d samples are remembered, %d former levels, %d kinds", n, len(d.former), len(discrete.now.kinds))
		}
	})
}

// checkChange checks that JSON can encode a change, and that its figures are consistent.
func checkChange(t *testing.T, c Change) {
	effect, low, high := c.Percent()
	for _, x := range []float64{c.Before, c.After, c.Low, c.High, c.P, effect, low, high} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			t.Fatalf("%+v", c)
		}
	}
	if shift := c.After - c.Before; c.Low > c.High || c.P < 0 || c.P > 1 || shift < c.Low-1e-9*math.Abs(c.Before) || shift > c.High+1e-9*math.Abs(c.Before) {
		t.Fatalf("%+v", c)
	}
}
