// Package change finds change points in a series of samples, one by one as they arrive: the rate of a path, its delay, its loss, its MTU.
//
// It is a nonparametric change-point chart (Hawkins and Deng, Journal of Quality Technology 42, 2010; Ross, Tasoulis and Adams,
// Technometrics 53, 2011) with normal scores (van der Waerden 1952). Each sample becomes the normal score of its rank among the earlier
// samples, so that outliers, skew and two levels by nature all become the same distribution. The mean score of the latest 3 to 64 samples
// is a change if chance explains it less often than the 0.05 false alarms in 90 days. Four things keep chance from looking like a change:
//
//   - Dependence. The variance of a mean is that of an AR(1) series or that of the earlier windows of the same length, whichever is greater
//     (effective sample size: Bayley and Hammersley 1946), and Student's t has as many degrees of freedom as independent samples remain.
//   - Precedent. A window no further out than an earlier one, plus a margin, is no change: that is what the series does by nature.
//   - Hours. Samples are compared with the same hour of earlier days, or of earlier weeks, as soon as that predicts earlier samples better
//     (each from the others). Until enough days are known, a sample of a weekday or a weekend is no evidence at all.
//   - Size. A change below Options.LeastPct and Options.Least is not reported.
//
// A change is located by the likelihood ratio, and its interval by Hansen's distribution of it (Econometrica 68, 2000). The effect is the
// difference of trimmed means with Yuen's interval (Biometrika 61, 1974), over effective samples. A change is over when a CUSUM
// (Page, Biometrika 41, 1954) prefers the former level. docs/statistics.md has the rates of false alarms and of found changes.
//
// Nothing is random here: the same samples give the same changes. After a restart, the stored samples are added again.
package change

import (
	"cmp"
	"math"
	"time"
)

// Options says what a detector reports. The zero value has a default for each.
type Options struct {
	Every    time.Duration // samples of each such time are averaged and judged together; 0: each is judged alone
	Keep     int           // samples since the last change that are remembered; 1024 if 0
	LeastPct float64       // the least change to report, in percent of the level before; 2 if 0
	Least    float64       // and in the unit of the samples
}

// Change is a change point, or the end of one.
type Change struct {
	Since     time.Time // the first sample after it
	Earliest  time.Time // with 95% confidence it lies between Earliest and Latest
	Latest    time.Time
	Found     time.Time // the sample that decided
	Before    float64   // the level
	After     float64
	Low, High float64   // 95% interval of After - Before
	P         float64   // how often a series without change shows this or more in as many samples
	Over      time.Time // not zero: the series is back at the level before the change with this Since; later ones are over too
}

// Percent returns the effect and its interval in percent of the level before; 0 if that is none.
func (c *Change) Percent() (effect, low, high float64) {
	of := 100 / math.Abs(c.Before)
	if effect, low, high = of*(c.After-c.Before), of*c.Low, of*c.High; !(max(-low, high) <= largest) {
		return 0, 0, 0
	}
	return effect, low, high
}

// Detector watches one series. Its memory is bounded by Options.Keep: 45 kB, and as much for each of up to three former levels.
type Detector struct {
	options Options
	clock   clock
	bin     bin
	now     segment  // since the last change
	former  []former // levels before it, the latest last
	returns int      // how often a former level came back
}

// New returns a detector.
func New(o Options) *Detector {
	o.Keep = max(cmp.Or(o.Keep, 1024), 4*longest)
	o.LeastPct = cmp.Or(o.LeastPct, 2)
	return &Detector{options: o}
}

// Add takes the next sample, and reports whether there is a change. A turn without a value is not added. Samples that are no finite
// number, or that are not later than the last one, do not count. Hour and weekday are those of the location of the time.
func (d *Detector) Add(at time.Time, x float64) (Change, bool) {
	if !(math.Abs(x) <= largest) || !d.clock.accepts(at) {
		return Change{}, false
	}
	if d.options.Every <= 0 {
		return d.judge(newSample(at, x))
	}
	if done, ok := d.bin.add(at.Truncate(d.options.Every), x); ok {
		return d.judge(done)
	}
	return Change{}, false
}

// largest is the largest value whose square can still be summed.
const largest = 1e150

// judge takes one sample that counts.
func (d *Detector) judge(x sample) (Change, bool) {
	if renewed := d.now.add(x, d.options.Keep); renewed {
		d.aim(d.now.samples[:d.now.base.n])
	}
	if c, over := d.returned(x); over {
		return c, true
	}
	if k, z, found := d.now.scan(); found {
		return d.report(k, z)
	}
	return Change{}, false
}

// same is how far off a former level may be that is back at once, relative to the size of its change.
const same = 0.25

// report locates what the latest k samples show, and reports whether it is large enough.
func (d *Detector) report(k int, z float64) (Change, bool) {
	at, low, high := d.now.locate(k)
	all, b := d.now.samples, &d.now.base
	e := b.compare(all[max(0, at-recent):at], all[at:])
	size := math.Abs(e.shift)
	if !(size+e.half < math.Inf(1)) || size == 0 || size < d.options.Least || size < d.options.LeastPct/100*math.Abs(b.level) {
		return Change{}, false
	}
	if i, distance := d.nearest(all[at:]); distance < same {
		return d.restore(i, at, low, high, b.chance(z)), true
	}
	c := Change{Before: b.level, P: b.chance(z)}
	c.fill(all, at, low, high, e)
	d.leave(at, e)
	return c, true
}

// fill sets when a change was, and its effect.
func (c *Change) fill(all []sample, at, low, high int, e effect) {
	c.Since, c.Earliest, c.Latest, c.Found = all[at].time(), all[max(0, low-1)].time(), all[high].time(), all[len(all)-1].time()
	c.After, c.Low, c.High = c.Before+e.shift, e.shift-e.half, e.shift+e.half
}

// clock rejects samples that come twice or late.
type clock struct {
	last time.Time
	late int
}

// patience is how many samples in a row may be late. If more are, the last accepted time was wrong, because a clock had jumped.
const patience = 10

func (c *clock) accepts(at time.Time) bool {
	if !c.last.IsZero() && !at.After(c.last) {
		if c.late++; c.late <= patience {
			return false
		}
	}
	c.last, c.late = at, 0
	return true
}

// bin averages the samples of a time.
type bin struct {
	at  time.Time
	sum float64
	n   int
}

// add adds a sample to the bin that begins at a time. If that is another bin than before, it returns the one before.
func (b *bin) add(at time.Time, x float64) (done sample, ok bool) {
	if b.n > 0 && !at.Equal(b.at) {
		done, ok = newSample(b.at, b.sum/float64(b.n)), true
		*b = bin{}
	}
	b.at, b.sum, b.n = at, b.sum+x, b.n+1
	return done, ok
}

// sample is one value of a series.
type sample struct {
	nanos  int64
	value  float64
	score  float32 // normal score of its rank among the base
	slot   uint8   // hour of the week, from Sunday 0:00 on
	proven bool    // enough earlier days of its kind are known, so that it is evidence
}

func newSample(at time.Time, x float64) sample {
	return sample{nanos: at.UnixNano(), value: x, slot: uint8(24*int(at.Weekday()) + at.Hour())}
}

func (x *sample) time() time.Time { return time.Unix(0, x.nanos).UTC() }
