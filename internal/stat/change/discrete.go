package change

import (
	"math"
	"slices"
	"time"
)

// Discrete watches a series of values of which each is as different from any other: an MTU, a number of hops. The zero value is ready.
//
// A value is a change if it was measured so many times in a row that neither its earlier share nor its earlier stays explain that more
// often than a false alarm may be: a new value after 100 others takes three, one that half of the samples have takes 17. A series that
// came back several times must also exceed the longest such time.
type Discrete struct {
	clock   clock
	now     tally
	former  []tally // before the last changes, the latest last
	returns int
}

// tally counts the values since a change.
type tally struct {
	level       float64 // the value that is normal
	kinds       []kind
	n           int // samples
	first, last time.Time
	run         run
	ended       time.Time // when a change ended it
}

// kind is one value.
type kind struct {
	value      float64
	n, longest int // samples, and most of them in a row in an earlier excursion that ended
	runs       int // times in a row, with the present one
}

// run are equal samples in a row.
type run struct {
	value         float64
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
func (d *Discrete) Add(at time.Time, v float64) (Change, bool) {
	if !d.clock.accepts(at) {
		return Change{}, false
	}
	t := &d.now
	t.add(at, v)
	p := t.chance()
	if v == t.level || t.run.n < leastRun || p > chanceAt(t.n, t.last.UnixNano()-t.first.UnixNano()) {
		return Change{}, false
	}
	if k := t.kind(v); d.returns > byNature && t.run.n <= 2*k.longest {
		return Change{}, false
	}
	s := Change{Since: t.run.begin, Earliest: t.run.before, Latest: t.run.begin, Found: at, Before: t.level, After: v, P: p}
	if i := slices.IndexFunc(d.former, func(f tally) bool { return f.level == v }); i >= 0 {
		s.Over = d.former[i].ended
		d.restore(i)
	} else {
		d.leave()
	}
	return s, true
}

// add counts a sample.
func (t *tally) add(at time.Time, v float64) {
	if t.n == 0 {
		t.level, t.first = v, at
	}
	if t.run.n == 0 || t.run.value != v {
		t.run = run{value: v, before: t.last, begin: at}
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
func (t *tally) halve() {
	t.first = t.first.Add(t.last.Sub(t.first) / 2)
	t.n = 0
	for i := range t.kinds {
		t.kinds[i].n, t.kinds[i].runs = (t.kinds[i].n+1)/2, (t.kinds[i].runs+1)/2
		t.n += t.kinds[i].n
	}
}

// kind returns the counts of a value. If there are too many values, it forgets the rarest.
func (t *tally) kind(v float64) *kind {
	i := slices.IndexFunc(t.kinds, func(k kind) bool { return k.value == v })
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
		i, t.kinds = len(t.kinds), append(t.kinds, kind{value: v})
	}
	return &t.kinds[i]
}

// chance returns how often what a value did before its present run explains that run: its share of the samples, or how often it came and
// how long it stayed.
func (t *tally) chance() float64 {
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
func (d *Discrete) leave() {
	r := d.now.run
	next := tally{level: r.value, kinds: []kind{{value: r.value, n: r.n, runs: 1}}, n: r.n, first: r.begin, last: d.now.last, run: r}
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
func (d *Discrete) restore(i int) {
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
