package kvm

import (
	"math"
	"time"

	"thru/internal/measure"
)

// Bounds of what is kept of a watch: with one that lasts, neighbouring samples
// become one, and the host is read less often.
const (
	mostValues = 200_000 // of all counters together
	mostTicks  = 1200    // of each
	leastTicks = 32
)

// kind is how a counter's readings become a value.
type kind int

const (
	rate  kind = iota // what it rose by in a second, times scale
	rise              // what it rose by
	level             // what it is, times scale
)

// meter is one counter over the time of a watch.
type meter struct {
	measure.Series // without samples
	kind           kind
	scale          float64
	column         int     // of an interface's
	last           float64 // reading of before; NaN: none
	values         []float64
}

// recorder keeps the values of all meters: one a tick.
type recorder struct {
	meters []*meter
	ticks  []time.Time
	every  time.Duration // between two readings
	most   int           // ticks that are kept
}

// newRecorder keeps what these meters read.
func newRecorder(meters []*meter, every time.Duration) *recorder {
	most := mostValues / max(len(meters), 1)
	most = min(max(most, leastTicks), mostTicks) &^ 1
	for _, m := range meters {
		m.last = math.NaN()
	}
	return &recorder{meters: meters, every: every, most: most}
}

// tick takes what all meters have read at a moment; elapsed is the time since
// the reading before, 0 at the first, which has none.
func (r *recorder) tick(at time.Time, elapsed time.Duration, read func(*meter) float64) {
	for _, m := range r.meters {
		now := read(m)
		if elapsed > 0 {
			m.values = append(m.values, m.value(now, elapsed))
		}
		m.last = now
	}
	if elapsed <= 0 {
		return
	}
	if r.ticks = append(r.ticks, at); len(r.ticks) >= r.most {
		r.halve()
	}
}

// value is what a reading tells, NaN where it tells nothing: there was none
// before, or the counter went back, since somebody else has its place now.
func (m *meter) value(now float64, elapsed time.Duration) float64 {
	switch {
	case m.kind == level:
		return now * m.scale
	case now < m.last:
		return math.NaN()
	case m.kind == rise:
		return now - m.last
	}
	v := (now - m.last) / elapsed.Seconds() * m.scale
	if m.Counter == measure.CounterUsage {
		return min(v, 100) // the kernel counts whole ticks: one may belong to the sample before
	}
	return v
}

// halve makes one sample of each two, which cover twice the time from now on.
func (r *recorder) halve() {
	for _, m := range r.meters {
		for i := range len(m.values) / 2 {
			a, b := m.values[2*i], m.values[2*i+1]
			if m.kind == rise {
				m.values[i] = a + b
			} else {
				m.values[i] = (a + b) / 2
			}
		}
		m.values = m.values[:len(m.values)/2]
	}
	for i := range len(r.ticks) / 2 {
		r.ticks[i] = r.ticks[2*i+1]
	}
	r.ticks = r.ticks[:len(r.ticks)/2]
	r.every *= 2
}

// series are all meters that have read anything.
func (r *recorder) series() (all []measure.Series) {
	for _, m := range r.meters {
		s := m.Series
		s.EveryNs = r.every.Nanoseconds()
		for i, v := range m.values {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				s.Samples = append(s.Samples, measure.Reading{EndedAt: r.ticks[i], Value: v})
			}
		}
		if len(s.Samples) > 0 {
			all = append(all, s)
		}
	}
	return all
}
