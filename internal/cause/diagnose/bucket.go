package diagnose

import (
	"slices"
	"time"

	"thru/internal/measure"
	"thru/internal/stat"
)

// StepBar is the least ratio of the first level of a token bucket to the second.
const StepBar = 1.2

// TwoLevels describes a rate that falls once: how long the first level lasted from the first byte on, and both
// rates in bit/s.
type TwoLevels struct {
	Lasted        time.Duration
	Before, After float64
}

// TwoLevels finds them in the time line of this run, or else of a longer one.
func (f *Flow) TwoLevels() (x TwoLevels, found bool) {
	bins, e := f.Bins(), f.Receiver.Seen
	long := f.Experiment(Longer)
	if len(bins) >= 2*stat.LeastBins-4 {
		if at, before, after, found := stat.Levels(bins); found {
			return TwoLevels{time.Duration(at)*time.Second + rampOf(e), before, after}, true
		}
		if x, found = f.burst(bins); found {
			return x, true
		}
	}
	if long == nil {
		return x, false
	}
	persistent := stat.Bins(f.FlowOf(RunShown(long)).Receiver)
	if at, before, after, found := stat.Levels(persistent); found {
		return TwoLevels{time.Duration(at)*time.Second + rampOf(f.FlowOf(RunShown(long)).Receiver), before, after}, true
	}
	return f.fallen(bins, persistent)
}

// fallen returns the levels of a rate that fell within this run and stayed low in a longer run right after it.
func (f *Flow) fallen(bins, persistent []float64) (x TwoLevels, found bool) {
	if len(persistent) < stat.LeastBins || !f.Falls() {
		return x, false
	}
	x = TwoLevels{Before: max(rampRate(f.Receiver.Seen), bins[0]), After: stat.Median(persistent[1:])}
	_, x.Lasted = x.BurstOf(f.Receiver.Seen)
	return x, x.Before >= StepBar*x.After && bins[len(bins)-1] < StepBar*x.After && stat.MedianDeviation(persistent[1:]) < FlatBar
}

// Falls reports whether the rate fell within the run: its last seconds are clearly below its first half, including
// the ramp.
func (f *Flow) Falls() bool {
	bins := f.Bins()
	if len(bins) < 3 || f.IsRateLimited() {
		return false
	}
	first := max(rampRate(f.Receiver.Seen), bins[0])
	return first >= StepBar*slices.Max(bins[len(bins)-2:])
}

// staysLow reports whether the last two seconds carried about the same, as behind an empty token bucket.
func (f *Flow) staysLow() bool {
	bins := f.Bins()
	return len(bins) > 1 && stat.MedianDeviation(bins[len(bins)-2:]) < FlatBar
}

// rampOf returns the ramp time of an end.
func rampOf(e *measure.Evidence) time.Duration {
	if e == nil {
		return 0
	}
	return time.Duration(e.RampNs)
}

// rampRate returns the mean rate of the ramp in bit/s; 0 if it was not counted.
func rampRate(e *measure.Evidence) float64 {
	if e == nil || e.RampBytes == nil || e.RampNs <= 0 {
		return 0
	}
	return float64(*e.RampBytes) * 8e9 / float64(e.RampNs)
}

// burst returns the levels of a bucket that was empty before the measured time or soon after: the ramp carried
// twice as much as the flat, queue-limited rate that follows.
func (f *Flow) burst(bins []float64) (x TwoLevels, found bool) {
	e := f.Receiver.Seen
	if e == nil || e.Reported != "" || !f.HasQueue() {
		return x, false
	}
	x = TwoLevels{rampOf(e), rampRate(e), stat.Median(bins[1:])}
	return x, x.Before > 2*x.After && stat.MedianDeviation(bins[1:]) < FlatBar
}

// LastHigh returns the number of seconds up to the last one above the middle of both levels.
func (x TwoLevels) LastHigh(bins []float64) int {
	high := len(bins)
	for high > 0 && bins[high-1] < (x.Before+x.After)/2 {
		high--
	}
	return high
}

// BurstOf returns how many bytes a run carried above the second level until it fell to that level, and how long
// that took; 0 if it did not fall, or was at that level throughout.
func (x TwoLevels) BurstOf(e *measure.Evidence) (bytes float64, lasted time.Duration) {
	bins := stat.Bins(e)
	high := x.LastHigh(bins)
	if high == len(bins) || high == 0 && rampRate(e) < (x.Before+x.After)/2 {
		return 0, 0
	}
	if high < len(bins)-1 { // the bucket ran empty within the next one
		bytes += max(bins[high]-x.After, 0) / 8
	}
	if e.RampBytes != nil {
		bytes += max(float64(*e.RampBytes)-x.After/8*rampOf(e).Seconds(), 0)
	}
	for _, b := range bins[:high] {
		bytes += (b - x.After) / 8
	}
	return bytes, rampOf(e) + time.Duration(high)*time.Second
}

// mostRest limits how long an explanation waits for a bucket to refill and runs until it is empty again.
const mostRest = 25 * time.Second

// restTime returns how long a bucket takes to refill at its token rate; false if that is not known or too long.
func (f *Flow) restTime() (time.Duration, bool) {
	const spare = 1.1
	x, found := f.TwoLevels()
	long := f.Experiment(Longer)
	if !found || x.After <= 0 || long == nil {
		return 0, false
	}
	here, _ := x.BurstOf(f.Receiver.Seen)
	there, _ := x.BurstOf(f.FlowOf(RunShown(long)).Receiver)
	rest := time.Duration(spare * 8e9 * max(here, there) / x.After)
	return rest, rest > 0 && rest <= mostRest
}
