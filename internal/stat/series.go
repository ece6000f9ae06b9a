package stat

import (
	"fmt"
	"math"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Bars for the steady state of a run.
const (
	LeastBins    = 5 // fewer say nothing about a steady state
	MaxSlopePct  = 2 // over the rest of the run, of its mean
	MaxHalvesPct = 5 // difference of the halves, of the mean
)

// Steady judges the course of a run by its 1 s bins in bit/s. It cuts the
// transient at the beginning (MSER-5) and asks of the rest that it neither
// drifts, nor differs between its halves, nor has two levels.
//
// A drift counts where it exceeds its bar and is more than what the scatter
// alone brings forth (Mann-Kendall, 5%): of stationary noise with a CV of 3%,
// the bar by itself would reject half of all runs of 10 s.
func Steady(bins []float64) measure.Steady { return steadyIn(bins, unit.Rate) }

// steadyIn is Steady for bins of another unit, which print says in words.
func steadyIn(bins []float64, print func(float64) string) measure.Steady {
	if len(bins) < LeastBins {
		seconds := "seconds"
		if len(bins) == 1 {
			seconds = "second"
		}
		return measure.Steady{Why: fmt.Sprintf("%d whole %s measured, %d are needed", len(bins), seconds, LeastBins)}
	}
	s := measure.Steady{Checked: true, Truncated: MSER5(bins)}
	rest := bins[s.Truncated:]
	m := mean(rest)
	if m == 0 {
		s.Why = "no data passed"
		return s
	}
	s.SlopePct = 100 * TheilSen(rest) * float64(len(rest)-1) / m
	s.HalvesPct = 100 * halvesDifference(rest) / m
	at, before, after, changed := ChangePoint(rest)
	switch {
	case changed:
		s.Levels = []float64{before, after}
		s.Why = fmt.Sprintf("two levels: %s, and from second %d on %s", print(before), s.Truncated+at, print(after))
	case math.Abs(s.SlopePct) > MaxSlopePct && trend(rest):
		s.Why = fmt.Sprintf("it drifted by %s, more than %d%%", unit.Percent(s.SlopePct), MaxSlopePct)
	case s.HalvesPct > MaxHalvesPct:
		s.Why = fmt.Sprintf("its halves differ by %s, more than %d%%", unit.Percent(s.HalvesPct), MaxHalvesPct)
	default:
		s.Steady = true
	}
	return s
}

// MSER5 is how many values at the beginning belong to a transient, by the
// marginal standard error rule over batches of five (White, 1997): cut where
// the standard error of what remains is least. It cuts at most half, and
// leaves two batches, so that a series under 15 values is not cut.
func MSER5(xs []float64) int {
	const batch = 5
	means := batchMeans(xs, batch)
	cut, least := 0, math.Inf(1)
	for d := 0; d <= len(means)/2 && len(means)-d >= 2; d++ {
		rest := means[d:]
		m, squares := mean(rest), 0.0
		for _, x := range rest {
			squares += (x - m) * (x - m)
		}
		if e := squares / float64(len(rest)*len(rest)); e < least {
			cut, least = d, e
		}
	}
	return cut * batch
}

// longSeries bounds the work on pairs: a longer series is averaged down to it.
const longSeries = 300

// shorten averages neighbours so that at most longSeries values remain, and
// returns how many went into each.
func shorten(xs []float64) ([]float64, int) {
	size := (len(xs) + longSeries - 1) / longSeries
	if size <= 1 {
		return xs, 1
	}
	return batchMeans(xs, size), size
}

// TheilSen is the slope of a series per value: the median of the slopes of
// all pairs, which single outliers do not move. Of fewer than two values it is 0.
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

// fivePercent is the two-sided 5% point of the standard normal distribution.
const fivePercent = 1.96

// trend tells whether a series rises or falls more steadily than independent
// values would (Mann 1945, Kendall 1975; normal approximation with the
// correction for continuity).
func trend(xs []float64) bool {
	xs, _ = shorten(xs)
	n, s := float64(len(xs)), 0.0
	for i := range xs {
		for j := i + 1; j < len(xs); j++ {
			s += float64(compare(xs[j], xs[i]))
		}
	}
	return math.Abs(s)-1 > fivePercent*math.Sqrt(n*(n-1)*(2*n+5)/18)
}

// halvesDifference is by how much the means of both halves differ. A value in
// the middle belongs to neither.
func halvesDifference(xs []float64) float64 {
	half := len(xs) / 2
	if half == 0 {
		return 0
	}
	return math.Abs(mean(xs[:half]) - mean(xs[len(xs)-half:]))
}

// Bars for two levels. Of stationary independent noise less than one series
// in 100 reaches them, a linear drift never does (TestChangePointOnNoise,
// TestChangePointIsSilent); levels eight spreads apart are found in nine of
// ten runs of 10 s.
const (
	leastLevel    = 3   // values of a level; also a tenth of the series
	levelDistance = 4.0 // between the levels, in spreads of the values about them ...
	levelFewBins  = 10  // ... and this over the number of values more: of few, the spread is not known well
	levelOrder    = 0.9 // share of the pairs across the change that are in the order of the levels
)

// ChangePoint tells whether a series has two levels, and where the second
// begins. It parts the series where the absolute deviations from both medians
// are least in sum, and accepts the levels where they differ by more than 5%
// of the mean, lie far apart by the spread of the values about them, and
// hardly overlap. Medians keep a stall of a second from making a level.
func ChangePoint(series []float64) (at int, before, after float64, found bool) {
	xs, size := shorten(series)
	shortest := max(leastLevel, len(xs)/10)
	n := float64(len(xs))
	split, least := 0, math.Inf(1)
	for k := shortest; k <= len(xs)-shortest; k++ {
		if d := deviations(xs[:k]) + deviations(xs[k:]); d < least {
			split, least = k, d
		}
	}
	if split == 0 {
		return 0, 0, 0, false
	}
	before, after = Median(xs[:split]), Median(xs[split:])
	// Of normal noise the mean absolute deviation is the standard deviation
	// times sqrt(2/pi). Two degrees of freedom went into the medians.
	spread := least / (n - 2) * math.Sqrt(math.Pi/2)
	distance := math.Abs(after - before)
	found = distance > math.Abs(mean(xs))*materialStep/100 &&
		distance > spread*(levelDistance+levelFewBins/n) &&
		inOrder(xs[:split], xs[split:], before < after) >= levelOrder
	return split * size, before, after, found
}

// deviations sums the distances from the median.
func deviations(xs []float64) float64 {
	m, total := Median(xs), 0.0
	for _, x := range xs {
		total += math.Abs(x - m)
	}
	return total
}

// inOrder is the share of pairs with one value of each side in which the
// second is greater (rising) or less.
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
