package kvm

import (
	"math"
	"time"

	"thru/internal/measure"
)

// Bounds of what is kept of a watch: with one that lasts, neighbouring samples
// become one, and the host is read less often. Values that only fill in what
// others tell as a whole have a bound of their own, so that a host of many CPUs
// does not make the guests' counters coarse.
const (
	mostValues  = 170_000 // of all counters together
	mostDetails = 30_000  // of those that are details
	mostTicks   = 3600    // of each
	leastTicks  = 32
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

// isDetail tells the counters of single CPUs of the host, and of damaged frames,
// which a virtual wire has none of.
func (m *meter) isDetail() bool {
	return m.Counter == measure.CounterUsage && m.Instance != "" || m.Counter == measure.CounterRxErrors || m.Counter == measure.CounterTxErrors
}

// recorder keeps the values of some meters: one a tick.
type recorder struct {
	meters []*meter
	ticks  []time.Time
	last   time.Time     // of the latest reading
	every  time.Duration // between two readings
	most   int           // ticks that are kept
}

// recorders keep what all meters read: what matters, and details.
type recorders []*recorder

// newRecorders keeps what these meters read.
func newRecorders(meters []*meter, every time.Duration) recorders {
	var main, details []*meter
	for _, m := range meters {
		if m.isDetail() {
			details = append(details, m)
		} else {
			main = append(main, m)
		}
	}
	return recorders{newRecorder(main, every, mostValues), newRecorder(details, every, mostDetails)}
}

// newRecorder keeps what these meters read, so many values at most.
func newRecorder(meters []*meter, every time.Duration, values int) *recorder {
	most := values / max(len(meters), 1)
	most = min(max(most, leastTicks), mostTicks) &^ 1
	for _, m := range meters {
		m.last = math.NaN()
	}
	return &recorder{meters: meters, every: every, most: most}
}

// every is the time between two readings of the host.
func (all recorders) every() time.Duration {
	least := all[0].every
	for _, r := range all {
		least = min(least, r.every)
	}
	return least
}

// tick takes what has been read at a moment to those whose time has come.
func (all recorders) tick(at time.Time, read func(*meter) float64) {
	early := all.every() / 2
	for _, r := range all {
		if r.last.IsZero() || at.Sub(r.last) > r.every-early {
			r.tick(at, read)
		}
	}
}

// lastPart takes samples that are not whole where they are more than half.
func (all recorders) lastPart(at time.Time, read func(*meter) float64) {
	for _, r := range all {
		if at.Sub(r.last) >= r.every/2 {
			r.tick(at, read)
		}
	}
}

// series are all meters that have read anything.
func (all recorders) series() (list []measure.Series) {
	for _, r := range all {
		list = append(list, r.series()...)
	}
	return list
}

// tick takes what all meters have read at a moment. The first reading has no
// value: none was before.
func (r *recorder) tick(at time.Time, read func(*meter) float64) {
	elapsed, isFirst := at.Sub(r.last), r.last.IsZero()
	r.last = at
	for _, m := range r.meters {
		now := read(m)
		if !isFirst && elapsed > 0 {
			m.values = append(m.values, m.value(now, elapsed))
		}
		m.last = now
	}
	if isFirst || elapsed <= 0 {
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
				s.Samples = append(s.Samples, measure.Reading{EndedAt: r.ticks[i].Round(time.Microsecond), Value: round(v)})
			}
		}
		if len(s.Samples) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// round leaves out what is no more than noise, and costs room in a result.
func round(v float64) float64 {
	if math.Abs(v) >= 1000 {
		return math.Round(v)
	}
	return math.Round(v*1000) / 1000
}
