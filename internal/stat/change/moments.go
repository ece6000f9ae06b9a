package change

import (
	"math"
	"slices"

	"thru/internal/stat"
)

// trimmed is the share that a trimmed mean leaves out at each end.
const trimmed = 0.2

// moments are the trimmed mean of values and its variance for one value: that of the mean of n independent ones is 1/n of it (Yuen,
// Biometrika 61, 1974).
type moments struct{ mean, variance float64 }

// momentsOf returns the moments of values, without a share of them at each end.
func momentsOf(values []float64, share float64) moments {
	return ofSorted(slices.Sorted(slices.Values(values)), share)
}

// ofSorted returns the moments of values in order.
func ofSorted(sorted []float64, share float64) moments {
	n := len(sorted)
	cut := int(share * float64(n))
	kept := sorted[cut : n-cut]
	m := moments{mean: stat.Mean(kept)}
	if n > 1 {
		h := float64(len(kept))
		m.variance = stat.Squares(drawnIn(sorted, cut)) * float64(n) / (h * max(1, h-1))
	}
	return m
}

// drawnIn returns sorted values, of which so many at each end are as far out as the next one.
func drawnIn(sorted []float64, n int) []float64 {
	drawn := slices.Clone(sorted)
	low, high := sorted[n], sorted[len(sorted)-1-n]
	for i := range n {
		drawn[i], drawn[len(drawn)-1-i] = low, high
	}
	return drawn
}

// deviation returns the standard deviation of sorted values, after the outermost 2% of each end were drawn in.
func deviation(sorted []float64) float64 {
	n := len(sorted)
	if n < 2 {
		return 0
	}
	return math.Sqrt(stat.Squares(drawnIn(sorted, n/50)) / float64(n-1))
}

// effect is by how much a level changed.
type effect struct {
	from        float64 // trimmed mean of the residuals before
	shift, half float64
}

// few samples do not show their own scatter.
const few = 10

// compare returns by how much samples after a change differ from those before it, with half of its 95% interval.
func (b *base) compare(before, after []sample) effect {
	x := momentsOf(b.profile.residuals(before), b.share)
	y := momentsOf(b.profile.residuals(after), b.share)
	if len(after) < few {
		y.variance = max(x.variance, y.variance)
	}
	n, m := float64(len(before)), float64(len(after))
	square := x.variance*b.spread/n + y.variance*b.inflate(len(after))/m
	degrees := int(max(2, n/b.spread-1))
	return effect{from: x.mean, shift: y.mean - x.mean, half: stat.TQuantile(0.975, degrees) * math.Sqrt(square)}
}
