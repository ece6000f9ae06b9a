package change

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Switch is a change of a value without a scale, or the end of one. Its fields are those of Change.
type Switch[T comparable] struct {
	Since, Earliest, Latest, Found time.Time
	Before, After                  T
	P                              float64
	Over                           time.Time
}

// Discrete watches a series of values of which each is as different from any other: an MTU, a number of hops, a route.
//
// A value is a change if it was measured so many times in a row that neither its earlier share nor its earlier stays explain that more
// often than alarms, in 90 days: a new value after 100 others takes three, one that half of the samples have takes 17. A series that came back several times must also
// exceed the longest such time.
type Discrete[T comparable] struct {
	alarms  float64
	clock   clock
	now     tally[T]
	former  []tally[T] // before the last changes, the latest last
	returns int
}

// NewDiscrete returns a watcher that may raise so many false alarms in 90 days; 0.05 if 0.
func NewDiscrete[T comparable](alarms float64) *Discrete[T] {
	return &Discrete[T]{alarms: cmp.Or(alarms, defaultAlarms)}
}

// tally counts the values since a change.
type tally[T comparable] struct {
	level       T // the value that is normal
	kinds       []kind[T]
	n           int // samples
	first, last time.Time
	run         run[T]
	ended       time.Time // when a change ended it
}

// kind is one value.
type kind[T comparable] struct {
	value      T
	n, longest int // samples, and most of them in a row in an earlier excursion that ended
	runs       int // times in a row, with the present one
}

// run are equal samples in a row.
type run[T comparable] struct {
	value         T
	n             int
	before, begin time.Time
}

// Limits of a tally.
const (
	mostKinds   = 16
	mostCounted = 4096
	leastRun    = 2
)

// Add takes the next sample, and reports whether there is a change. Samples that are not later than the last one do not count.
func (d *Discrete[T]) Add(at time.Time, v T) (Switch[T], bool) {
	if !d.clock.accepts(at) {
		return Switch[T]{}, false
	}
	t := &d.now
	t.add(at, v)
	p := t.chance()
	spacing := float64(t.last.UnixNano()-t.first.UnixNano()) / float64(max(t.n-1, 1))
	if v == t.level || t.run.n < leastRun || p > d.alarms*min(1, max(spacing, 1e9)/float64(period)) {
		return Switch[T]{}, false
	}
	if k := t.kind(v); d.returns > byNature && t.run.n <= 2*k.longest {
		return Switch[T]{}, false
	}
	s := Switch[T]{Since: t.run.begin, Earliest: t.run.before, Latest: t.run.begin, Found: at, Before: t.level, After: v, P: p}
	if i := slices.IndexFunc(d.former, func(f tally[T]) bool { return f.level == v }); i >= 0 {
		s.Over = d.former[i].ended
		d.restore(i)
		return s, true
	}
	d.leave()
	return s, true
}

// add counts a sample.
func (t *tally[T]) add(at time.Time, v T) {
	if t.n == 0 {
		t.level, t.first = v, at
	}
	if t.run.n == 0 || t.run.value != v {
		t.run = run[T]{value: v, before: t.last, begin: at}
		if t.n == 0 {
			t.run.before = at
		}
		t.kind(v).runs++
	}
	t.run.n++
	t.kind(v).n++
	t.n++
	t.last = at
	if t.n > mostCounted {
		t.halve()
	}
}

// halve forgets half of the samples.
func (t *tally[T]) halve() {
	t.first = t.first.Add(t.last.Sub(t.first) / 2)
	t.n = 0
	for i := range t.kinds {
		t.kinds[i].n, t.kinds[i].runs = (t.kinds[i].n+1)/2, (t.kinds[i].runs+1)/2
		t.n += t.kinds[i].n
	}
}

// kind returns the counts of a value. If there are too many values, it forgets the rarest.
func (t *tally[T]) kind(v T) *kind[T] {
	i := slices.IndexFunc(t.kinds, func(k kind[T]) bool { return k.value == v })
	if i < 0 && len(t.kinds) == mostKinds {
		rarest := 0
		for j := range t.kinds {
			if t.kinds[j].n < t.kinds[rarest].n {
				rarest = j
			}
		}
		t.kinds = slices.Delete(t.kinds, rarest, rarest+1)
	}
	if i < 0 {
		i, t.kinds = len(t.kinds), append(t.kinds, kind[T]{value: v})
	}
	return &t.kinds[i]
}

// chance returns how often what a value did before its present run explains that run: its share of the samples, or how often it came and
// how long it stayed.
func (t *tally[T]) chance() float64 {
	k, length, all := t.kind(t.run.value), float64(t.run.n), float64(max(1, t.n-t.run.n)+2)
	earlier, runs := float64(max(0, k.n-t.run.n)), float64(k.runs-1)
	p := math.Pow((earlier+1)/all, length)
	if runs > 0 {
		stays := (max(0, earlier-runs) + 0.5) / (max(earlier, runs) + 1)
		p = max(p, (runs+1)/all*math.Pow(stays, length-1))
	}
	return min(1, p)
}

// leave begins a tally with the present run, and remembers the one before it.
func (d *Discrete[T]) leave() {
	r := d.now.run
	next := tally[T]{level: r.value, kinds: []kind[T]{{value: r.value, n: r.n, runs: 1}}, n: r.n, first: r.begin, last: d.now.last, run: r}
	old := d.now
	old.ended = r.begin
	old.n -= r.n
	k := old.kind(r.value)
	k.n, k.runs = max(0, k.n-r.n), k.runs-1
	if len(d.former) == mostFormer {
		d.former = append(d.former[:0], d.former[1:]...)
	}
	d.former, d.now = append(d.former, old), next
}

// restore returns to a former tally.
func (d *Discrete[T]) restore(i int) {
	gone, back := d.now, d.former[i]
	d.returns++
	k := back.kind(gone.level)
	k.longest = max(k.longest, gone.n-gone.run.n)
	back.run, back.last = gone.run, gone.last
	back.n += gone.run.n
	k = back.kind(gone.run.value)
	k.n, k.runs = k.n+gone.run.n, k.runs+1
	d.former, d.now = d.former[:i], back
}
