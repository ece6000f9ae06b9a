package stat

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"thru/internal/unit"
)

// Interval is a mean with its two-sided 95% interval by Student's t.
type Interval struct {
	Mean, Low, High float64
	N               int // number of values
}

// HalfWidthPct returns the precision: half the interval, in percent of the mean.
func (i Interval) HalfWidthPct() float64 {
	return 100 * ratio((i.High-i.Low)/2, math.Abs(i.Mean))
}

// MeanInterval returns the interval for the mean of independent values, such as runs. It needs two.
func MeanInterval(xs []float64) (Interval, bool) {
	n := len(xs)
	if n < 2 {
		return Interval{}, false
	}
	m := Mean(xs)
	half := TQuantile(0.975, n-1) * math.Sqrt(Squares(xs)/float64(n-1)/float64(n))
	return Interval{Mean: m, Low: m - half, High: m + half, N: n}, true
}

// TQuantile returns the quantile p, at least one half, of Student's t distribution.
func TQuantile(p float64, degrees int) float64 { return tQuantile(p, float64(degrees)) }

// tQuantile inverts the incomplete beta function (NIST Digital Library of Mathematical Functions, 8.17): degrees
// of Welch are no whole number.
func tQuantile(p, degrees float64) float64 {
	x := mathext.InvRegIncBeta(degrees/2, 0.5, 2*(1-p))
	return math.Sqrt(degrees * (1 - x) / x)
}

// covariance returns the sum of products of deviations from the means.
func covariance(xs, ys []float64) float64 {
	x, y, total := Mean(xs), Mean(ys), 0.0
	for i := range xs {
		total += (xs[i] - x) * (ys[i] - y)
	}
	return total
}

// Limits of the interval within one run.
const (
	leastForInterval = 10 // bins; fewer have no interval
	leastWaves       = 2
	mostWaves        = 40 // more make it no narrower
)

// RunInterval returns the interval for the mean of a single run, had it continued unchanged: of this run, not of
// the path. Its 1 s bins depend on each other, so the variance of their mean is taken from the lowest waves of the
// series, which dependence over a few bins does not affect: B cosine transforms and Student's t of B degrees
// (Müller, Journal of Econometrics 141, 2007), where B is 0.4 n^(2/3) (Lazarus, Lewis, Stock and Watson, Journal
// of Business & Economic Statistics 36, 2018). Few bins have few waves and a wide interval; under 10 have none.
func RunInterval(bins []float64) (Interval, bool) {
	n := float64(len(bins))
	if len(bins) < leastForInterval {
		return Interval{}, false
	}
	waves := min(max(leastWaves, int(0.4*math.Cbrt(n*n))), mostWaves)
	m, power := Mean(bins), 0.0
	for w := 1; w <= waves; w++ {
		c := 0.0
		for i, x := range bins {
			c += (x - m) * math.Cos(math.Pi*float64(w)*(float64(i)+0.5)/n)
		}
		power += 2 / n * c * c / float64(waves)
	}
	half := TQuantile(0.975, waves) * math.Sqrt(power/n)
	return Interval{Mean: m, Low: m - half, High: m + half, N: len(bins)}, true
}

// batchMeans averages each full batch of a size. It drops the remainder at the end.
func batchMeans(xs []float64, size int) []float64 {
	var means []float64
	for batch := range slices.Chunk(xs, size) {
		if len(batch) == size {
			means = append(means, Mean(batch))
		}
	}
	return means
}

// Repetitions of a cell, and what they allow to conclude.
const (
	AcceptanceRuns   = 5   // fewer are "indicative", one is a "single run"
	DefaultPrecision = 2.5 // half-width of the 95% interval, in percent of the mean
)

// Enough is the stop rule for runs: never before least, always at most, and in between when the 95% interval is as
// narrow as requested (0: run most).
func Enough(runs []float64, precisionPct float64, least, most int) bool {
	if len(runs) >= most {
		return true
	}
	if len(runs) < least || precisionPct <= 0 {
		return false
	}
	ci, ok := MeanInterval(runs)
	return ok && ci.HalfWidthPct() <= precisionPct
}

// Thresholds for two groups of runs. Of normally distributed runs, however wide, less than 4% pass them at 4 runs,
// 2% at 5 and 6, 1% from 8 on (TestTwoGroupsRarelyFires).
const (
	leastGroup   = 2  // runs in a group: a single one is an outlier
	groupGap     = 20 // over the number of runs: how often the wider group must fit in the gap
	leastGap     = 2  // the same, of many runs
	materialStep = 5  // percent of the mean by which levels or groups must differ to matter
)

// TwoGroups reports whether runs fall into two groups, neither of which a mean would describe. The values are
// split at their widest gap; they are two groups if that gap is several times as wide as either group.
func TwoGroups(runs []float64) (low, high float64, found bool) {
	n := len(runs)
	if n < 2*leastGroup {
		return 0, 0, false
	}
	xs := slices.Sorted(slices.Values(runs))
	at := leastGroup
	for k := leastGroup; k <= n-leastGroup; k++ {
		if xs[k]-xs[k-1] > xs[at]-xs[at-1] {
			at = k
		}
	}
	gap, wider := xs[at]-xs[at-1], max(xs[at-1]-xs[0], xs[n-1]-xs[at])
	low, high = Mean(xs[:at]), Mean(xs[at:])
	material := high-low > math.Abs(Mean(xs))*materialStep/100
	return low, high, material && gap > wider*max(leastGap, groupGap/float64(n))
}

// Median returns the median of xs; NaN for none.
func Median(xs []float64) float64 { return Quantile(xs, 0.5) }

// Quantile returns quantile p, between 0 and 1, of xs, interpolated between neighbours; NaN for none.
func Quantile(xs []float64, p float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	return sortedQuantile(slices.Sorted(slices.Values(xs)), p)
}

func sortedQuantile(xs []float64, p float64) float64 {
	at := min(max(p, 0), 1) * float64(len(xs)-1)
	i := int(at)
	if i+1 >= len(xs) {
		return xs[len(xs)-1]
	}
	return xs[i] + (at-float64(i))*(xs[i+1]-xs[i])
}

// Pct returns a part of all in percent, between 0 and 100; 0 if all is nothing.
func Pct(part, all float64) float64 {
	if all <= 0 || math.IsNaN(part) {
		return 0
	}
	return max(0, min(100, 100*part/all))
}

// MedianDeviation returns the median deviation from the median in percent; 100 for no values.
func MedianDeviation(xs []float64) float64 {
	median := Median(xs)
	if len(xs) == 0 || median <= 0 {
		return 100
	}
	off := unit.Mapped(xs, func(x float64) float64 { return math.Abs(x - median) })
	return 100 * Median(off) / median
}

// Rising returns the share of the pairs of seconds in which the later one carries more: 1 if all do, and about
// half for a time line without a trend.
func Rising(bins []float64) float64 {
	bins = bins[:min(len(bins), 120)]
	up, all := 0, 0
	for i := range bins {
		for _, later := range bins[i+1:] {
			all++
			up += unit.Bit(later > bins[i])
		}
	}
	if all == 0 {
		return 0
	}
	return float64(up) / float64(all)
}
