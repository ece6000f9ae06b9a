package change

import "math"

// former is a level that a change ended.
type former struct {
	since   int64 // of the change
	samples []sample
	base    base
	level   float64 // trimmed mean of its residuals
	current float64 // that of the samples since, as residuals of the same profile
	sum     float64 // CUSUM of the evidence that the level is back
	run     int     // samples since it left zero
}

// Limits of former levels.
const (
	mostFormer = 3    // that are remembered
	evidence   = 10.0 // logarithm of the likelihood ratio from which a level is back: Page's chart is wrong once in exp(10) = 22,000 samples
	leastBack  = 5    // samples that a return takes
	byNature   = 2    // after so many returns the next excursion belongs to what the series does by nature
	recent     = 256  // samples before a change that are compared with those after it
)

// leave begins a segment with the sample at, and remembers the level before it.
func (d *Detector) leave(at int, e effect) {
	all := d.now.samples
	if len(d.former) == mostFormer {
		d.former = append(d.former[:0], d.former[1:]...)
	}
	d.former = append(d.former, former{since: all[at].nanos, samples: all[:at:at], base: d.now.base, level: e.from})
	d.now = segment{samples: append([]sample(nil), all[at:]...)}
	d.begin(d.now.samples)
}

// begin weighs former levels against that of some samples.
func (d *Detector) begin(samples []sample) {
	for i := range d.former {
		d.former[i].sum, d.former[i].run = 0, 0
	}
	d.aim(samples)
}

// aim notes the present level by some of the samples since the last change.
func (d *Detector) aim(samples []sample) {
	for i := range d.former {
		f := &d.former[i]
		f.current = f.mean(samples[max(0, len(samples)-recent):])
		if len(d.now.samples) >= d.options.Keep {
			f.samples = nil // the new level has lasted long enough to be known as well
		}
	}
}

// mean returns the trimmed mean of samples as residuals of the former profile.
func (f *former) mean(samples []sample) float64 {
	return momentsOf(f.base.profile.residuals(samples), f.base.share).mean
}

// gain returns the logarithm of the likelihood ratio of a sample for the former level against the present one.
func (f *former) gain(x *sample) float64 {
	r, _ := f.base.profile.residual(x)
	g := (f.level - f.current) * (r - (f.level+f.current)/2) / (f.base.noise * f.base.noise * f.base.spread)
	if math.IsNaN(g) { // no scatter, and as far from the one as from the other
		return 0
	}
	return min(max(g, -evidence), evidence/leastBack)
}

// returned reports whether the series is back at a former level.
func (d *Detector) returned(x sample) (Change, bool) {
	for i := len(d.former) - 1; i >= 0; i-- {
		f := &d.former[i]
		f.sum = max(0, f.sum+f.gain(&x))
		if f.run++; f.sum == 0 {
			f.run = 0
		}
		if f.sum < evidence {
			continue
		}
		at, low, high := f.locate(d.now.samples)
		if nearest, _ := d.nearest(d.now.samples[at:]); nearest >= 0 {
			i = nearest
		}
		return d.restore(i, at, low, high, math.Exp(-f.sum)), true
	}
	return Change{}, false
}

// locate returns which of the samples since the change is the first of the former level, and the first and the last that may be it.
func (f *former) locate(samples []sample) (at, low, high int) {
	first := max(0, len(samples)-f.run-longest)
	gains := make([]float64, len(samples)-first)
	for i := range gains {
		gains[i] = f.gain(&samples[first+i])
	}
	return place(gains, first)
}

// nearest returns the former level that is nearest to samples, and how far off it is, relative to its distance from the present one.
func (d *Detector) nearest(samples []sample) (at int, distance float64) {
	at, distance = -1, math.Inf(1)
	for i := range d.former {
		f := &d.former[i]
		if off := math.Abs(f.mean(samples)-f.level) / math.Abs(f.level-f.current); off <= distance {
			at, distance = i, off
		}
	}
	return at, distance
}

// restore ends the changes since a former level, which is back from the sample at on. p is how often chance shows that.
func (d *Detector) restore(i, at, low, high int, p float64) Change {
	f, all := d.former[i], d.now.samples
	e := f.base.compare(all[max(0, at-recent):at], all[at:])
	c := Change{Before: f.base.level + f.current - f.level, P: p, Over: (&sample{nanos: f.since}).time()}
	c.fill(all, at, low, high, e)
	samples := f.samples
	if d.returns++; d.returns > byNature {
		samples = append(samples, all[:at]...)
	}
	samples = append(samples, all[at:]...)
	d.former = d.former[:i]
	d.now = segment{samples: samples[max(0, len(samples)-d.options.Keep):]}
	if len(d.now.samples) >= leastSamples {
		d.now.renew()
	}
	d.begin(all[at:])
	return c
}
