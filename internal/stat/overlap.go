package stat

import (
	"slices"
	"time"

	"thru/internal/measure"
	"thru/internal/unit"
)

// overlap is the time in which all flows of a repetition were measured, on the controller's clock, in ns since
// their scheduled start.
type overlap struct {
	from, to int64
	skew     int64 // between the first and the last start
	bound    int64 // uncertainty of the skew
	longest  int64 // of the runs
}

func (o overlap) ns() int64 { return max(0, o.to-o.from) }

// Reasons why flows have no time in common.
const (
	noClocks  = "the clocks of its end points were not compared, so it is not known what ran at the same time"
	noOverlap = "its flows were never all measured at the same time"
)

// place finds the overlap of the data flows.
func (r *repeat) place() {
	bulk := slices.DeleteFunc(slices.Clone(r.members), func(m member) bool { return m.pair.asks })
	if r.flows = bulk; len(bulk) == 0 {
		r.why = "requests and responses have no goodput"
		return
	}
	first := true
	var starts []int64
	for _, m := range bulk {
		start, end, ok := m.span()
		if !ok {
			r.why = noClocks
			return
		}
		if first {
			r.overlap.from, r.overlap.to, first = start, end, false
		}
		r.overlap.from, r.overlap.to = max(r.overlap.from, start), min(r.overlap.to, end)
		r.overlap.longest = max(r.overlap.longest, end-start)
		starts = append(starts, start)
	}
	r.overlap.skew = slices.Max(starts) - slices.Min(starts)
	r.overlap.bound = boundOf(bulk)
	if r.overlap.ns() == 0 {
		r.why = noOverlap
	}
}

// span returns the measured time of a flow on the controller's clock.
func (m member) span() (start, end int64, ok bool) {
	t := m.pair.run.Timing
	if t == nil || t.EndNs <= t.StartNs || t.EndNs-t.StartNs > int64(2*measure.MaxDuration) {
		return 0, 0, false
	}
	return t.StartNs, t.EndNs, true
}

// boundOf returns the uncertainty of the difference of two starts: the bounds of the two worst clocks together.
// Flows received by one host share its clock.
func boundOf(bulk []member) int64 {
	worst := map[string]int64{}
	for _, m := range bulk {
		worst[m.cell.To] = max(worst[m.cell.To], m.pair.run.Timing.BoundNs)
	}
	bounds := []int64{0}
	for _, b := range worst {
		bounds = append(bounds, b)
	}
	if len(worst) < 2 {
		return 0
	}
	slices.Sort(bounds)
	return bounds[len(bounds)-1] + bounds[len(bounds)-2]
}

// carried returns the bytes of a flow in a part of the controller's time: of each of the receiver's seconds the
// fraction within it. A flow without seconds counts as steady.
func (m member) carried(from, to int64) float64 {
	start, end, ok := m.span()
	if !ok || to <= from {
		return 0
	}
	e := m.counted()
	total := 0.0
	for _, b := range e.Bins {
		if b.Span > 0 && b.Bytes > 0 {
			total += float64(b.Bytes) * shared(start+b.At, start+b.At+b.Span, from, to)
		}
	}
	if len(e.Bins) == 0 {
		total = float64(e.Bytes) * shared(start, end, from, to)
	}
	return total
}

// counted returns the end that determines the flow's goodput.
func (m member) counted() *measure.Evidence {
	if onlySender(m.pair) || m.pair.borrowsSeconds() && m.pair.sender != nil && m.pair.hasSeconds() {
		return m.pair.sender
	}
	return m.pair.receiver
}

// shared returns the fraction of [a, b) that is within [from, to).
func shared(a, b, from, to int64) float64 {
	if b <= a {
		return 0
	}
	return float64(max(0, min(b, to)-max(a, from))) / float64(b-a)
}

// rateOf returns what a flow carried in the overlap, or without one over its own measured time, in bit/s.
func (r *repeat) rateOf(m member) float64 {
	if r.why != "" || len(r.flows) == 1 {
		bps, _ := m.pair.rate()
		return bps
	}
	return m.carried(r.overlap.from, r.overlap.to) * 8e9 / float64(r.overlap.ns())
}

// total returns what all data flows carried in the overlap, in bit/s.
func (r *repeat) total() float64 {
	total := 0.0
	for _, m := range r.flows {
		total += r.rateOf(m)
	}
	return total
}

// seconds returns the rates of all flows together in each whole second of the overlap, in bit/s.
func (r *repeat) seconds() []float64 {
	const second = int64(measure.Bin)
	c := secondSums{from: r.overlap.from, edges: make([]float64, r.overlap.ns()/second+1), steps: make([]float64, r.overlap.ns()/second+1)}
	for _, m := range r.flows {
		start, end, _ := m.span()
		e := m.counted()
		for _, b := range e.Bins {
			c.add(start+b.At, start+b.At+b.Span, b.Bytes)
		}
		if len(e.Bins) == 0 {
			c.add(start, end, e.Bytes)
		}
	}
	return c.rates()
}

// secondSums sums bytes of arbitrary time spans by the second, at a constant cost per span whatever its length.
type secondSums struct {
	from  int64
	edges []float64 // bytes that belong only to this second
	steps []float64 // from this second on, additional bytes in each second
}

// add spreads bytes evenly over [a, b).
func (c *secondSums) add(a, b, bytes int64) {
	const second = int64(measure.Bin)
	lo, hi := max(a, c.from), min(b, c.from+int64(len(c.edges))*second)
	if hi <= lo || bytes <= 0 {
		return
	}
	rate := float64(bytes) / float64(b-a)
	i, k := (lo-c.from)/second, (hi-1-c.from)/second
	if i == k {
		c.edges[i] += rate * float64(hi-lo)
		return
	}
	c.edges[i] += rate * float64(c.from+(i+1)*second-lo)
	c.edges[k] += rate * float64(hi-c.from-k*second)
	c.steps[i+1] += rate * float64(second)
	c.steps[k] -= rate * float64(second)
}

// rates returns those of the seconds in bit/s, without a partial one at the end.
func (c *secondSums) rates() []float64 {
	var rates []float64
	level := 0.0
	for i := range len(c.edges) - 1 {
		level += c.steps[i]
		rates = append(rates, (c.edges[i]+level)*8)
	}
	return rates
}

// together fills the aggregate and the overlap.
func (t *team) together() {
	switch n := len(t.counting()); {
	case n == 0 && len(t.bulk) == 0:
		t.missing("aggregate_bps", "requests and responses have no goodput")
		return
	case n == 0:
		t.missing("aggregate_bps", "none of its flows was measured")
		return
	case n == 1: // it ran alone
		if f := t.counting()[0].cell.Goodput; f != nil {
			alone := *f
			t.group.Aggregate = &alone
		}
		return
	}
	var rates []float64
	var last *repeat
	for i := range t.repeats {
		if r := &t.repeats[i]; r.why == "" {
			rates, last = append(rates, r.total()), r
			t.widen(r.overlap)
		}
	}
	if last == nil {
		t.missing("aggregate_bps", t.repeats[0].why)
		return
	}
	t.group.Aggregate = aggregate(rates, last, precision(t.bulk[0]))
	t.warnOverlap()
}

// aggregate returns the figure over the repetitions, or of a single one over its seconds.
func aggregate(rates []float64, last *repeat, aimPct float64) *measure.Figure {
	if len(rates) > 1 {
		return severalRuns(rates, aimPct)
	}
	bins := last.seconds()
	return singleRun(rates[0], bins, Steady(bins))
}

// widen takes the worst of the repetitions.
func (t *team) widen(o overlap) {
	share := 100 * ratio(float64(o.ns()), float64(o.longest))
	w := t.group.Overlap
	if w == nil {
		t.group.Overlap = &measure.Overlap{Ns: o.ns(), SkewNs: o.skew, BoundNs: o.bound, SharePct: share}
		return
	}
	w.Ns, w.SharePct = min(w.Ns, o.ns()), min(w.SharePct, share)
	w.SkewNs, w.BoundNs = max(w.SkewNs, o.skew), max(w.BoundNs, o.bound)
}

// Thresholds of simultaneity.
const (
	leastShared  = 90          // percent of the longest run in which all ran
	leastOverlap = time.Second // a shorter one is not enough measured time
	mostUnsure   = 5           // percent of the overlap that the clocks may be uncertain by
)

// warnOverlap warns if flows were concurrent for only a part of their time, or if the clocks leave open for how
// long.
func (t *team) warnOverlap() {
	o := t.group.Overlap
	switch {
	case o.Ns < int64(leastOverlap):
		t.warn("all flows ran at once for only %s: the aggregate covers that time", unit.Duration(o.Ns))
	case o.SharePct < leastShared:
		t.warn("the flows began %s apart and all ran at once for %s, %s of the longest: the aggregate covers that time",
			unit.Duration(o.SkewNs), unit.Duration(o.Ns), unit.Percent(o.SharePct))
	}
	if float64(o.BoundNs) > float64(o.Ns)*mostUnsure/100 {
		t.warn("the clock offset of its end points is known only within %s, and so is the time in which all flows ran", unit.Duration(o.BoundNs))
	}
}
