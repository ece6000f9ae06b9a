package change

import (
	"math"

	"thru/internal/stat"
)

// segment is a series since its last change.
type segment struct {
	samples []sample
	base    base
	fresh   int // samples that came after the base was made
}

// Limits of a segment.
const (
	leastSamples = 30 // before there is a base
	longest      = 64 // samples of the longest window; as many are not part of the base, so that a slow change does not enter it unseen
	renewals     = 16 // the base is made anew after as many samples as this part of it came
)

// windows are the numbers of latest samples that are tested for a change.
func windows() [11]int { return [...]int{3, 4, 5, 6, 8, 11, 16, 23, 32, 45, longest} }

// add adds a sample, and reports whether it made the base anew, because that was due.
func (s *segment) add(x sample, keep int) (renewed bool) {
	if len(s.samples) >= keep+keep/8 {
		s.samples = append(s.samples[:0], s.samples[keep/8:]...)
		s.fresh = len(s.samples)
	}
	s.samples = append(s.samples, x)
	s.fresh++
	n := len(s.samples)
	renewed = n >= leastSamples && s.fresh > s.base.n/renewals
	if renewed {
		s.renew()
	} else if s.base.n > 0 {
		s.base.rate(&s.samples[n-1])
	}
	return renewed
}

// renew makes the base of all but the latest samples, and rates those by it.
func (s *segment) renew() {
	n := len(s.samples) - min(longest, len(s.samples)/4)
	s.base.build(s.samples[:n])
	for i := n; i < len(s.samples); i++ {
		s.base.rate(&s.samples[i])
	}
	s.fresh = 0
}

// scan returns how many of the latest samples differ from the base by more than chance explains, and their score in standard errors.
func (s *segment) scan() (k int, z float64, found bool) {
	if s.base.n == 0 || s.base.bar == 0 || !s.samples[len(s.samples)-1].proven {
		return 0, 0, false
	}
	sum, n, next, lengths := 0.0, 0, 0, windows()
	for i := len(s.samples) - 1; i >= s.base.n && next < len(lengths); i-- {
		if !s.samples[i].proven {
			continue
		}
		sum += float64(s.samples[i].score)
		if n++; n < lengths[next] {
			continue
		}
		if x := s.base.distance(next, sum/float64(n)); math.Abs(x) > math.Abs(z) {
			k, z, found = len(s.samples)-i, x, true
		}
		next++
	}
	return k, z, found
}

// locate returns which sample is the first after the change that the latest k samples show, and the first and the last that may be it.
func (s *segment) locate(k int) (at, low, high int) {
	n := len(s.samples)
	first := max(0, n-k-longest)
	scores := make([]float64, n-first)
	for i := range scores {
		scores[i] = float64(s.samples[first+i].score)
	}
	latest := scores[len(scores)-k:]
	mean := stat.Mean(latest)
	variance := max(1, stat.Squares(latest)/float64(k)) * s.base.inflate(k)
	for i, x := range scores {
		scores[i] = (mean*x - mean*mean/2) / variance
	}
	return place(scores, first)
}

// hansen is the 95% point of the likelihood ratio of a change point's place (Hansen, Econometrica 68, 2000, table 1).
const hansen = 7.35

// place returns the first sample of a new level, and the first and the last that may be it, by the logarithm of the likelihood ratio of
// each sample from the first on for the new level. At least one sample is before it, and as many as the shortest window are after it.
func place(gains []float64, first int) (at, low, high int) {
	sums, sum := make([]float64, len(gains)), 0.0
	last := max(1, len(gains)-windows()[0])
	at = last
	for i := len(gains) - 1; i >= 1; i-- {
		sum += gains[i]
		if sums[i] = sum; i <= last && sum > sums[at] {
			at = i
		}
	}
	low, high = at, at
	for i := 1; i < len(sums); i++ {
		if sums[i] >= sums[at]-hansen/2 {
			low, high = min(low, i), max(high, i)
		}
	}
	return first + at, first + low, first + high
}
