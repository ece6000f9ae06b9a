package kvm

import (
	"math"
	"time"

	"thru/internal/measure"
)

// Limits of a watch: in a long one, two neighbouring samples become one, and
// the host is read less often. Values that are only details of a total have
// their own limit, so that a host of many CPUs does not make the guests'
// counters coarser.
const (
	mostValues  = 170_000 // of all counters together
	mostDetails = 30_000  // of all details
	mostTicks   = 3600    // of each counter
	leastTicks  = 32
)

// kind is how a counter's readings become a value.
type kind int

const (
	rate  kind = iota // increase per second, times scale
	rise              // increase
	level             // reading, times scale
)

// meter is one counter over the time of a watch.
type meter struct {
	measure.Series // without samples
	kind           kind
	scale          float64
	column         int     // for an interface
	last           float64 // previous reading; NaN: none
	values         []float64
}

// isDetail reports whether a counter is a detail: single CPUs of the host,
// and damaged frames, which a virtual wire does not have.
func (m *meter) isDetail() bool {
	return m.Counter == measure.CounterUsage && m.Instance != "" || m.Counter == measure.CounterRxErrors || m.Counter == measure.CounterTxErrors
}

// recorder keeps the values of some meters, one a tick.
type recorder struct {
	meters []*meter
	ticks  []time.Time
	last   time.Time     // of the latest reading
	every  time.Duration // between two readings
	most   int           // most ticks to keep
}

// recorders keeps the values of all meters: main counters, and details.
type recorders []*recorder

// newRecorders returns recorders of these meters.
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

// newRecorder returns a recorder of these meters with a limit of values.
func newRecorder(meters []*meter, every time.Duration, values int) *recorder {
	most := values / max(len(meters), 1)
	most = min(max(most, leastTicks), mostTicks) &^ 1
	for _, m := range meters {
		m.last = math.NaN()
	}
	return &recorder{meters: meters, every: every, most: most}
}

// every returns the time between two readings of the host.
func (all recorders) every() time.Duration {
	least := all[0].every
	for _, r := range all {
		least = min(least, r.every)
	}
	return least
}

// tick passes readings to the recorders that are due.
func (all recorders) tick(at time.Time, read func(*meter) float64) {
	early := all.every() / 2
	for _, r := range all {
		if r.last.IsZero() || at.Sub(r.last) > r.every-early {
			r.tick(at, read)
		}
	}
}

// lastPart records the last, incomplete sample where it is at least half
// complete.
func (all recorders) lastPart(at time.Time, read func(*meter) float64) {
	for _, r := range all {
		if at.Sub(r.last) >= r.every/2 {
			r.tick(at, read)
		}
	}
}

// series returns all meters with any value.
func (all recorders) series() (list []measure.Series) {
	for _, r := range all {
		list = append(list, r.series()...)
	}
	return list
}

// tick records the readings of all meters at a time. The first reading has no
// value, since there is none before it.
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

// value returns the value of a reading, NaN where it has none: it is the
// first, or the counter went back, since it now belongs to something else.
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
		return min(v, 100) // the kernel counts whole ticks: one may belong to the previous sample
	}
	return v
}

// halve merges each two samples into one; from now on samples cover twice the
// time.
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

// series returns all meters with any value.
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

// round removes insignificant digits, which would only take room in a result.
func round(v float64) float64 {
	if math.Abs(v) >= 1000 {
		return math.Round(v)
	}
	return math.Round(v*1000) / 1000
}
