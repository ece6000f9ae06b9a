package change

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mathext"

	"thru/internal/stat"
)

// base describes the samples to which the latest ones are compared.
type base struct {
	n         int
	profile   profile
	sorted    []float64 // residuals of the profile
	level     float64   // trimmed mean of the samples
	share     float64   // that it leaves out at each end
	noise     float64   // standard deviation of the residuals
	inflation [11]float64
	spread    float64        // the greatest inflation: of n samples, n/spread are independent
	most      [11][2]float64 // the least and the greatest mean score of each window
	bar       float64        // standard errors from which a window is a change; 0: too few independent samples
	degrees   float64
	days      [2]int // distinct weekdays, and days of weekends
}

// Limits of a base.
const (
	leastDays        = 2    // weekdays, or days of weekends, that are known before one more is evidence
	leastIndependent = 8    // samples
	precedent        = 1.15 // a change exceeds each earlier window by this factor
	overlap          = 2    // independent tests at each sample: its windows overlap each other, and those of the next one
	alarms           = 0.05 // false alarms that a series without change may have in a period: the dozen metrics of a pair have less than one
	period           = 90 * 24 * time.Hour
)

// build makes the base of samples, and rates them by it.
func (b *base) build(samples []sample) {
	b.n = len(samples)
	residuals := b.profile.learn(samples)
	b.sorted = append(b.sorted[:0], residuals...)
	slices.Sort(b.sorted)
	b.share = trimmed
	if ofSorted(b.sorted, trimmed).variance == 0 {
		b.share = 0 // more than half of the samples are equal, as where hardly a packet is lost
	}
	if b.level = ofSorted(b.sorted, b.share).mean; b.profile.pattern.groups > 0 {
		b.level = momentsOf((&profile{}).residuals(samples), b.share).mean
	}
	b.noise = deviation(b.sorted)
	b.countDays(samples)
	scores := make([]float64, b.n)
	for i, r := range residuals {
		scores[i] = b.scoreOf(r)
		samples[i].score = float32(scores[i])
	}
	b.measure(scores)
	b.bar, b.degrees = 0, float64(b.n)/b.spread-1
	if b.degrees >= leastIndependent-1 {
		b.bar = stat.TQuantile(1-chanceAt(b.n, samples[b.n-1].nanos-samples[0].nanos)/overlap/2, int(b.degrees))
	}
}

// chanceAt returns how often one of n samples of a time may be a false alarm.
func chanceAt(n int, nanos int64) float64 {
	return alarms * min(1, max(float64(nanos)/float64(max(n-1, 1)), 1e9)/float64(period))
}

// chance returns how often a series without change has a window of this score, in standard errors.
func (b *base) chance(z float64) float64 {
	return min(1, overlap*mathext.RegIncBeta(b.degrees/2, 0.5, b.degrees/(b.degrees+z*z)))
}

// countDays counts the days of each kind.
func (b *base) countDays(samples []sample) {
	b.days = [2]int{}
	last := -1
	for i := range samples {
		x := &samples[i]
		if day := int(x.slot) / 24; day != last {
			b.days[kindOf(x.slot)]++
			last = day
		}
	}
}

// rate sets the score of a sample after the base.
func (b *base) rate(x *sample) {
	r, known := b.profile.residual(x)
	x.score = float32(b.scoreOf(r))
	x.proven = known && b.days[kindOf(x.slot)] >= leastDays
}

// scoreOf returns the normal score of a residual's rank; equal values share the mean of their ranks.
func (b *base) scoreOf(r float64) float64 {
	low, _ := slices.BinarySearch(b.sorted, r)
	high, _ := slices.BinarySearch(b.sorted, math.Nextafter(r, math.Inf(1)))
	return mathext.NormalQuantile((float64(low+high)/2 + 0.5) / float64(len(b.sorted)+1))
}

// measure measures how scores depend on each other, and how far out their windows are.
func (b *base) measure(scores []float64) {
	n := float64(len(scores))
	sums := make([]float64, len(scores)+1) // of the first scores
	squares, next := 0.0, 0.0
	for i, x := range scores {
		sums[i+1] = sums[i] + x
		squares += x * x
		if i > 0 {
			next += x * scores[i-1]
		}
	}
	r := 0.0
	if squares > 0 {
		r = next / squares
	}
	// The estimate is too low by (1+3r)/n (Marriott and Pope 1954), and its standard error is sqrt((1-r^2)/n).
	rho := min(0.995, max(0, r+(1+3*r)/n+math.Sqrt(max(0, 1-r*r)/n)))
	b.spread = (1 + rho) / (1 - rho)
	for i, k := range windows() {
		b.inflation[i], b.most[i] = max(1, ofAR1(rho, k)), [2]float64{}
		if k > len(scores)/2 {
			b.most[i] = [2]float64{math.Inf(-1), math.Inf(1)} // too long a window to be judged
			continue
		}
		total := 0.0
		for j := k; j < len(sums); j++ {
			w := sums[j] - sums[j-k]
			total += w * w
			b.most[i][0], b.most[i][1] = min(b.most[i][0], w/float64(k)), max(b.most[i][1], w/float64(k))
		}
		if observed := total / float64(k*(len(sums)-k)); k <= len(scores)/8 {
			b.inflation[i] = max(b.inflation[i], observed/(1-float64(k)/n))
		}
		b.spread = max(b.spread, b.inflation[i])
	}
}

// ofAR1 returns by how much dependence increases the variance of the mean of k samples, if each depends on the one before by rho.
func ofAR1(rho float64, k int) float64 {
	n := float64(k)
	return (1+rho)/(1-rho) - 2*rho*(1-math.Pow(rho, n))/(n*(1-rho)*(1-rho))
}

// inflate returns the inflation of k samples.
func (b *base) inflate(k int) float64 {
	for i, w := range windows() {
		if k <= w {
			return b.inflation[i]
		}
	}
	return b.spread
}

// distance returns the mean score of a window in standard errors; 0 if it is no change.
func (b *base) distance(window int, mean float64) float64 {
	z := mean / math.Sqrt(b.inflation[window]/float64(windows()[window])+b.spread/float64(b.n))
	low, high := b.most[window][0], b.most[window][1]
	if math.Abs(z) < b.bar || mean < 0 && mean > precedent*low || mean > 0 && mean < precedent*high {
		return 0
	}
	return z
}
