package diagnose

import (
	"math"
	"slices"
	"time"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// stepBar is by how much the first level of a token bucket exceeds the second.
const stepBar = 1.2

// twoLevels are those of a rate that falls once: how long the first one lasted
// from the first byte on, and both rates in bit/s.
type twoLevels struct {
	lasted        time.Duration
	before, after float64
}

func tokenBucket(f *flow) *outcome {
	if o := f.overAllowance(); o != nil {
		return o
	}
	x, found := f.twoLevels()
	long := f.experiment(longer)
	switch {
	case !found && len(f.bins()) < 2*stat.LeastBins-4 && long == nil: // two levels of three seconds
		return missing("six seconds of the course", "the run was too short to see two levels")
	case !found:
		return no("the rate has one level")
	case x.before < stepBar*x.after || x.after <= 0:
		return no("the second level is not clearly below the first: %s, then %s", unit.Rate(x.before), unit.Rate(x.after))
	case f.sender.isFull() || f.receiver.isFull():
		return no("a CPU is full")
	}
	o := likely("the rate falls from %s to %s after %.0f s: a burst was allowed, then less, or others take the rest since", unit.Rate(x.before), unit.Rate(x.after), x.lasted.Seconds()).
		by(f.receiver.proof("first level", x.before, "bps"), f.receiver.proof("second level", x.after, "bps")).
		costs(x.after, "what lasts is "+unit.Rate(x.after), "change point of the seconds").
		mend(advise(nil, "report both levels; a larger instance or contract, if the first one is to last"))
	if long != nil && rateOf(long) < stepBar*x.after {
		o.by(below(measure.Proof{EndPoint: f.receiver.name, Counter: "goodput of a longer run after this one", Value: rateOf(long), Unit: "bps"}, stepBar*x.after))
	}
	after := f.secondsAfter(x)
	spread := spreadOf(after)
	if len(after) < 3 || spread >= flatBar {
		o.confidence = measure.Possible // a control that losses or timeouts have thrown back falls as well, and wanders
		return o.then("a longer run: whether its second level stays")
	}
	o.by(below(f.receiver.proof("deviation of the seconds after the step from their median", spread, "pct"), flatBar))
	if again := f.sameBurst(x); again > 0 {
		o.confidence = measure.Certain
		return o.by(f.receiver.proof("bytes before the step, of each of several runs", again, "bytes"))
	}
	return o.then("the same after a rest of minutes: a bucket has filled again, and gives as many bytes before it falls")
}

// twoLevels finds them in the course of this run, else in that of a longer one.
func (f *flow) twoLevels() (x twoLevels, found bool) {
	bins, e := f.bins(), f.receiver.seen
	long := f.experiment(longer)
	if len(bins) >= 2*stat.LeastBins-4 {
		if at, before, after, found := levels(bins); found {
			return twoLevels{time.Duration(at)*time.Second + rampOf(e), before, after}, true
		}
		if x, found = f.burst(bins); found {
			return x, true
		}
	}
	if long == nil {
		return x, false
	}
	lasting := stat.Bins(f.flowOf(runShown(long)).Receiver)
	if at, before, after, found := levels(lasting); found {
		return twoLevels{time.Duration(at)*time.Second + rampOf(f.flowOf(runShown(long)).Receiver), before, after}, true
	}
	return f.fallen(bins, lasting)
}

// fallen are the levels of a rate that fell within this run, and stayed there
// in a longer one right after it.
func (f *flow) fallen(bins, lasting []float64) (x twoLevels, found bool) {
	if len(lasting) < stat.LeastBins || !f.falls() {
		return x, false
	}
	x = twoLevels{before: max(rampRate(f.receiver.seen), bins[0]), after: stat.Median(lasting[1:])}
	_, x.lasted = x.burstOf(f.receiver.seen)
	return x, x.before >= stepBar*x.after && bins[len(bins)-1] < stepBar*x.after && spreadOf(lasting[1:]) < flatBar
}

// falls tells of a rate that fell within the run: its last seconds are clearly
// below its first half, which the ramp is a part of.
func (f *flow) falls() bool {
	bins := f.bins()
	if len(bins) < 3 || f.isHeld() {
		return false
	}
	first := max(rampRate(f.receiver.seen), bins[0])
	return first >= stepBar*slices.Max(bins[len(bins)-2:])
}

// rampOf is the time of the ramp of an end.
func rampOf(e *measure.Evidence) time.Duration {
	if e == nil {
		return 0
	}
	return time.Duration(e.RampNs)
}

// rampRate is the mean rate of the ramp in bit/s; 0 where it was not counted.
func rampRate(e *measure.Evidence) float64 {
	if e == nil || e.RampBytes == nil || e.RampNs <= 0 {
		return 0
	}
	return float64(*e.RampBytes) * 8e9 / float64(e.RampNs)
}

// burst are the levels of a bucket that was empty before the measured time or
// soon after: the ramp brought twice as much as the flat rate that a queue
// holds from then on.
func (f *flow) burst(bins []float64) (x twoLevels, found bool) {
	e := f.receiver.seen
	if e == nil || e.Reported != "" || !f.hasQueue() {
		return x, false
	}
	x = twoLevels{rampOf(e), rampRate(e), stat.Median(bins[1:])}
	return x, x.before > 2*x.after && spreadOf(bins[1:]) < flatBar
}

// sameBurstPct is by how many percent the bytes of the burst may differ from run
// to run: a bucket fills again while nothing is sent, and rates scatter.
const sameBurstPct = 25

// sameBurst is how many bytes each of two runs or more brought above the second
// level; 0 where there are none, or they are not the same.
func (f *flow) sameBurst(x twoLevels) float64 {
	var bursts []float64
	for _, e := range f.alike() {
		if bytes, lasted := x.burstOf(e); lasted >= time.Second {
			bursts = append(bursts, bytes)
		}
	}
	slices.Sort(bursts)
	for n := len(bursts) - 1; n > 0; n-- { // a run right after another finds the bucket empty
		if bursts[n] <= bursts[n-1]*(1+sameBurstPct/100.0) {
			return (bursts[n] + bursts[n-1]) / 2
		}
	}
	return 0
}

// alike are the receivers of this run, and of those that differ from it only in
// when they began and how long they lasted.
func (f *flow) alike() []*measure.Evidence {
	runs := slices.Clone(f.cell.Runs)
	for _, id := range []string{longer, rested} {
		if c := f.experiment(id); c != nil {
			runs = append(runs, c.Runs...)
		}
	}
	var es []*measure.Evidence
	for i := range runs {
		es = append(es, f.flowOf(&runs[i]).Receiver)
	}
	return es
}

// secondsAfter are the rates of the seconds at the second level, of all runs; the
// first of each is left out, within which the rate may have fallen.
func (f *flow) secondsAfter(x twoLevels) (all []float64) {
	for _, e := range f.alike() {
		bins := stat.Bins(e)
		high := x.lastHigh(bins)
		all = append(all, bins[min(high+1, len(bins)):]...)
	}
	return all
}

// lastHigh is the number of seconds until the last one above the middle of both levels.
func (x twoLevels) lastHigh(bins []float64) int {
	high := len(bins)
	for high > 0 && bins[high-1] < (x.before+x.after)/2 {
		high--
	}
	return high
}

// burstOf is how many bytes a run brought above the second level until it fell to
// it, and how long that took; 0 where it did not fall, or was at that level all along.
func (x twoLevels) burstOf(e *measure.Evidence) (bytes float64, lasted time.Duration) {
	bins := stat.Bins(e)
	high := x.lastHigh(bins)
	if high == len(bins) || high == 0 && rampRate(e) < (x.before+x.after)/2 {
		return 0, 0
	}
	if high < len(bins)-1 { // the bucket ran empty within the next one
		bytes += max(bins[high]-x.after, 0) / 8
	}
	if e.RampBytes != nil {
		bytes += max(float64(*e.RampBytes)-x.after/8*rampOf(e).Seconds(), 0)
	}
	for _, b := range bins[:high] {
		bytes += (b - x.after) / 8
	}
	return bytes, rampOf(e) + time.Duration(high)*time.Second
}

// mostRest bounds how long an explanation rests for a bucket to fill.
const mostRest = 25 * time.Second

// restTime is how long a bucket takes to fill again, at the rate that it lets
// through; false where that is not known, or too long.
func (f *flow) restTime() (time.Duration, bool) {
	const spare = 1.1
	x, found := f.twoLevels()
	long := f.experiment(longer)
	if !found || x.after <= 0 || long == nil {
		return 0, false
	}
	here, _ := x.burstOf(f.receiver.seen)
	there, _ := x.burstOf(f.flowOf(runShown(long)).Receiver)
	rest := time.Duration(spare * 8e9 * max(here, there) / x.after)
	return rest, rest > 0 && rest <= mostRest
}

// levels are the two levels of a course, of which the second begins at that second.
func levels(bins []float64) (at int, before, after float64, found bool) {
	if at, before, after, found = stat.ChangePoint(bins); !found {
		at, before, after, found = stepDown(bins)
	}
	return at, before, after, found
}

// stepDown finds two levels in a course too short for a change-point test: a
// first one of which every second exceeds by far every second of the rest.
func stepDown(bins []float64) (at int, before, after float64, found bool) {
	highest := slices.Clone(bins) // of that second and all after it: a soak has 100,000 seconds
	for i := len(bins) - 2; i >= 0; i-- {
		highest[i] = max(bins[i], highest[i+1])
	}
	least := math.Inf(1)
	for n := 1; n <= len(bins)-2; n++ {
		if least = min(least, bins[n-1]); least > 2*highest[n] {
			return n, stat.Median(bins[:n]), stat.Median(bins[n:]), true
		}
	}
	return 0, 0, 0, false
}
