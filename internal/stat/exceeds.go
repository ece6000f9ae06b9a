package stat

import (
	"math"

	"thru/internal/measure"
)

// Exceeds reports whether a figure is significantly higher than another of the same session. The caller might have
// picked any two of the figures, so all pairs share an error probability of 5%. A few runs that happen to be equal
// underestimate their scatter, so the runs of all figures contribute to it.
func Exceeds(a, b *measure.Figure, of []*measure.Figure) bool {
	level := 1 - doubtful/float64(max(len(of)*(len(of)-1)/2, 1))
	d, found := figuresDiffer(b, a, of, level)
	return found && d.Low > 0
}

// figuresDiffer returns by how much b exceeds a, as a logarithm, and its interval: for repeated runs by Differ,
// for single ones by SingleRuns.
func figuresDiffer(a, b *measure.Figure, of []*measure.Figure, level float64) (d Difference, found bool) {
	if a == nil || b == nil {
		return d, false
	}
	x, y := runsOf(a), runsOf(b)
	if x.n > 1 || y.n > 1 {
		return differ(x, y, commonHalf(x, y, of, level), RunSpread(true), level)
	}
	d.Mean, d.Low, d.High, found = SingleRuns(a, b, level)
	d.Own = d.High - d.Mean
	return d, found
}

// commonHalf returns the half-width of an interval if the runs of all figures have the same variance.
func commonHalf(a, b moments, of []*measure.Figure, level float64) float64 {
	squares, degrees := 0.0, 0.0
	for _, f := range of {
		if f == nil {
			continue
		}
		if g := runsOf(f); g.n > 1 {
			squares, degrees = squares+g.variance*(g.n-1), degrees+g.n-1
		}
	}
	if degrees == 0 {
		return 0
	}
	return halfWidth(squares/degrees*(1/a.n+1/b.n), degrees, level)
}

// runsOf returns the logarithms of the runs of a figure, from its interval.
func runsOf(f *measure.Figure) moments {
	g := moments{n: 1, mean: math.Log(max(f.Value, 1))}
	if f.Runs > 1 && f.CI95High != nil && f.Value > 0 {
		g.n = float64(f.Runs)
		deviation := (*f.CI95High/f.Value - 1) / TQuantile(0.975, f.Runs-1) * math.Sqrt(g.n)
		g.variance = deviation * deviation
	}
	return g
}

// isSingle reports whether a figure rests on one run, or on data that shows no more.
func isSingle(f *measure.Figure) bool { return f == nil || runsOf(f).n < 2 }
