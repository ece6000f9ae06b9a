package stat

import (
	"cmp"
	"fmt"
	"math"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Thresholds for the steady state of a run.
const (
	LeastBins    = 5 // fewer say nothing about a steady state
	MaxSlopePct  = 2 // over the rest of the run, of its mean
	MaxHalvesPct = 5 // difference of the halves, of the mean
)

// Steady judges the time line of a run by its 1 s bins in bit/s: whether it has two levels, drifts, or differs
// between its halves. It first tests the whole run for two levels, since its figure is of the whole run too. Then
// it removes a slow start (MSER-5) and tests the rest for the others.
//
// A drift and a difference of the halves count if they exceed their thresholds and are more than scatter alone
// explains. Together the three report at most 5% of stationary series (docs/statistics.md).
func Steady(bins []float64) measure.Steady { return steadyIn(bins, unit.Rate) }

// steadyIn is Steady for bins of another unit, which print formats.
func steadyIn(bins []float64, print func(float64) string) measure.Steady {
	if len(bins) < LeastBins {
		seconds := "seconds"
		if len(bins) == 1 {
			seconds = "second"
		}
		return measure.Steady{Why: fmt.Sprintf("%d whole %s measured, %d are needed", len(bins), seconds, LeastBins)}
	}
	s := measure.Steady{Checked: true}
	at, before, after, changed := ChangePoint(bins)
	if !changed || before < after && at*shareOfStart < len(bins) {
		s.Truncated = slowStart(bins)
		at, before, after, changed = ChangePoint(bins[s.Truncated:])
	}
	rest := bins[s.Truncated:]
	m := Mean(rest)
	if m == 0 {
		s.Why = "no data passed"
		return s
	}
	s.SlopePct = 100 * TheilSen(rest) * float64(len(rest)-1) / m
	halves, chance := halvesDifference(rest)
	s.HalvesPct = 100 * halves / m
	switch {
	case changed:
		s.Levels = []float64{before, after}
		s.Why = fmt.Sprintf("two levels: %s, and from second %d on %s", print(before), s.Truncated+at, print(after))
	case math.Abs(s.SlopePct) > MaxSlopePct && trend(rest):
		s.Why = fmt.Sprintf("the rate drifted by %s, more than %d%%", unit.Percent(s.SlopePct), MaxSlopePct)
	case s.HalvesPct > MaxHalvesPct && halves > chance:
		s.Why = fmt.Sprintf("the halves of the run differ by %s, more than %d%%", unit.Percent(s.HalvesPct), MaxHalvesPct)
	default:
		s.Steady = true
	}
	return s
}

// shareOfStart: a rise within the first fifth of a run is its slow start.
const shareOfStart = 5

// slowStart returns how many bins at the beginning belong to a slow start: those that MSER-5 cuts, if they carried
// less than the rest. A fall at the beginning, such as after a burst, is part of what the run carried.
func slowStart(bins []float64) int {
	cut := MSER5(bins)
	if cut > 0 && Mean(bins[:cut]) > Mean(bins[cut:]) {
		return 0
	}
	return cut
}

// MSER5 returns how many values at the beginning belong to a transient, by the marginal standard error rule over
// batches of five (White, 1997): it cuts where the standard error of the remainder is minimal. It cuts at most
// half, and leaves two batches, so that a series under 15 values is not cut.
func MSER5(xs []float64) int {
	const batch = 5
	means := batchMeans(xs, batch)
	cut, least := 0, math.Inf(1)
	for d := 0; d <= len(means)/2 && len(means)-d >= 2; d++ {
		rest := means[d:]
		if e := Squares(rest) / float64(len(rest)*len(rest)); e < least {
			cut, least = d, e
		}
	}
	return cut * batch
}

// longSeries limits the work on pairs: a longer series is averaged down to it.
const longSeries = 300

// shorten averages neighbours so that at most longSeries values remain, and returns how many each value averages.
func shorten(xs []float64) ([]float64, int) {
	size := (len(xs) + longSeries - 1) / longSeries
	if size <= 1 {
		return xs, 1
	}
	return batchMeans(xs, size), size
}

// TheilSen returns the slope of a series per value: the median of the slopes of all pairs, which single outliers
// do not affect; 0 for fewer than two values.
func TheilSen(xs []float64) float64 {
	xs, size := shorten(xs)
	if len(xs) < 2 {
		return 0
	}
	var slopes []float64
	for i := range xs {
		for j := i + 1; j < len(xs); j++ {
			slopes = append(slopes, (xs[j]-xs[i])/float64(j-i))
		}
	}
	return Median(slopes) / float64(size)
}

// Two-sided points of the standard normal distribution.
const (
	fivePercent = 1.96 // 5%
	driftPoint  = 2.17 // 3%: a drift is one of three findings that may be wrong
)

// trend reports whether a series rises or falls more steadily than independent values would (Mann 1945, Kendall
// 1975; normal approximation with the correction for continuity).
func trend(xs []float64) bool {
	xs, _ = shorten(xs)
	n, s := float64(len(xs)), 0.0
	for i := range xs {
		for j := i + 1; j < len(xs); j++ {
			s += float64(cmp.Compare(xs[j], xs[i]))
		}
	}
	return math.Abs(s)-1 > driftPoint*math.Sqrt(n*(n-1)*(2*n+5)/18)
}

// halvesDifference returns by how much the means of both halves differ, and by how much those of independent
// values do in 1 of 100 series (Student's t). A value in the middle belongs to neither.
func halvesDifference(xs []float64) (difference, chance float64) {
	half := len(xs) / 2
	if half < 2 {
		return 0, 0
	}
	a, b := xs[:half], xs[len(xs)-half:]
	variance := (Squares(a) + Squares(b)) / float64(2*half-2)
	return math.Abs(Mean(a) - Mean(b)), TQuantile(0.995, 2*half-2) * math.Sqrt(2*variance/float64(half))
}

// Squares returns the sum of the squared distances from the mean.
func Squares(xs []float64) float64 {
	m, total := Mean(xs), 0.0
	for _, x := range xs {
		total += (x - m) * (x - m)
	}
	return total
}

// Thresholds for two levels. Of stationary independent noise less than one series in 100 reaches them
// (docs/statistics.md).
const (
	leastLevel    = 3   // values of a level; 2 from 10 values on, and always a tenth of the series
	levelDistance = 3   // between the levels, in deviations of the values about them ...
	levelFewBins  = 10  // ... plus this over the number of values: with few values the deviation is uncertain
	levelOrder    = 0.9 // share of the pairs across the change that are in the order of the levels
)

// ChangePoint reports whether a series has two levels, and where the second begins: it splits the series where the
// sum of the absolute deviations from both medians is minimal, so that a stall of a second makes no level. It
// accepts the levels if they differ by more than 5% of the mean, are far apart relative to the deviation of the
// values about them, hardly overlap, and describe the series better than a line does, which is a drift, or than a
// rise that ends, which is a slow start.
func ChangePoint(series []float64) (at int, before, after float64, found bool) {
	xs, size := shorten(series)
	split, least := twoParts(xs)
	if split == 0 {
		return 0, 0, 0, false
	}
	before, after = Median(xs[:split]), Median(xs[split:])
	n, distance := float64(len(xs)), math.Abs(Mean(xs[split:])-Mean(xs[:split]))
	// Of normal noise the mean absolute deviation is the standard deviation
	// times sqrt(2/pi). Two degrees of freedom went into the medians.
	deviation := least / (n - 2) * math.Sqrt(math.Pi/2)
	found = math.Abs(after-before) > math.Abs(Mean(xs))*materialStep/100 &&
		distance > deviation*(levelDistance+levelFewBins/n) &&
		inOrder(xs[:split], xs[split:], before < after) >= levelOrder &&
		least < aroundSlope(xs, before < after)
	return split * size, before, after, found
}

// twoParts returns where to split a series so that the sum of the deviations from the medians of its parts is
// minimal, and that sum; 0 if it is too short.
func twoParts(xs []float64) (split int, least float64) {
	shortest := max(leastLevel-1, len(xs)/10)
	if len(xs) < 10 {
		shortest = leastLevel
	}
	least = math.Inf(1)
	for k := shortest; k <= len(xs)-shortest; k++ {
		if d := deviations(xs[:k], Median(xs[:k])) + deviations(xs[k:], Median(xs[k:])); d < least {
			split, least = k, d
		}
	}
	return split, least
}

// deviations returns the sum of the distances from a value.
func deviations(xs []float64, from float64) float64 {
	total := 0.0
	for _, x := range xs {
		total += math.Abs(x - from)
	}
	return total
}

// aroundSlope returns the sum of the deviations from the best-fitting line (least squares); for a series that
// rises also from the best line that ends in a level.
func aroundSlope(xs []float64, rising bool) float64 {
	end, least := len(xs)-1, math.Inf(1)
	if rising {
		end = leastLevel - 1
	}
	time, rest := make([]float64, len(xs)), make([]float64, len(xs))
	for ; end < len(xs); end++ {
		for i := range time {
			time[i] = float64(min(i, end))
		}
		slope := covariance(time, xs) / Squares(time)
		start := Mean(xs) - slope*Mean(time)
		for i := range rest {
			rest[i] = xs[i] - start - slope*time[i]
		}
		least = min(least, deviations(rest, 0))
	}
	return least
}

// inOrder returns the share of pairs with one value of each side in which the second is greater (rising) or less.
func inOrder(before, after []float64, rising bool) float64 {
	pairs := 0
	for _, x := range before {
		for _, y := range after {
			if x != y && x < y == rising {
				pairs++
			}
		}
	}
	return ratio(float64(pairs), float64(len(before)*len(after)))
}
