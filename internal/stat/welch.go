package stat

import (
	"math"

	"gonum.org/v1/gonum/mathext"

	"thru/internal/measure"
)

// Welch returns by how much the mean of b exceeds that of a, and its interval at a level such as 0.95, for
// independent values; neither the number nor the variance of the two sides need be equal (Welch, The
// generalization of "Student's" problem, Biometrika 34, 1947; Jain, The Art of Computer Systems Performance
// Analysis, 13.4.2). If one side has a single value, it is compared with the prediction interval of one more value
// of the other side, which assumes that both sides have the same variance. Two single values have no interval
// (found is false). If the smaller side scatters less than the other, the interval is the wider of Welch's and
// Student's with a common variance: two values that happen to be equal underestimate their scatter.
//
// Mann-Whitney's test assumes less, but needs 4 values per side for 95%, and more if several comparisons share the
// error probability: runs are few. Each is a mean of seconds, so the normal distribution is a good approximation;
// TestFewRarelyFire tests what happens if it is not.
func Welch(a, b []float64, level float64) (difference, low, high float64, found bool) {
	if len(a) == 0 || len(b) == 0 {
		return math.NaN(), math.NaN(), math.NaN(), false
	}
	x, y := momentsOf(a), momentsOf(b)
	difference = y.mean - x.mean
	half, found := welchHalf(x, y, level)
	if !found {
		return difference, math.NaN(), math.NaN(), false
	}
	return difference, difference - half, difference + half, true
}

// moments are independent values by their number, mean and variance.
type moments struct{ n, mean, variance float64 }

func momentsOf(xs []float64) moments {
	g := moments{n: float64(len(xs)), mean: Mean(xs)}
	if len(xs) > 1 {
		g.variance = variance(xs)
	}
	return g
}

// welchHalf returns the half-width of Welch's interval.
func welchHalf(a, b moments, level float64) (half float64, found bool) {
	square, degrees, found := welchError(a, b)
	if !found {
		return 0, false
	}
	half = halfWidth(square, degrees, level)
	if a.n > 1 && b.n > 1 {
		half = max(half, pooledHalf(a, b, level))
	}
	return half, true
}

// halfWidth returns the half-width of an interval by Student's t.
func halfWidth(square, degrees, level float64) float64 {
	if !(square > 0) {
		return 0
	}
	return tQuantile(0.5+level/2, degrees) * math.Sqrt(square)
}

// pooledHalf returns the half-width for a common variance; 0 if the larger side varies less.
func pooledHalf(a, b moments, level float64) float64 {
	if a.n > b.n {
		a, b = b, a
	}
	if a.variance >= b.variance {
		return 0
	}
	degrees := a.n + b.n - 2
	pooled := (a.variance*(a.n-1) + b.variance*(b.n-1)) / degrees
	return halfWidth(pooled*(1/a.n+1/b.n), degrees, level)
}

// welchError returns the squared standard error of a difference of means, and its degrees of freedom
// (Satterthwaite).
func welchError(a, b moments) (square, degrees float64, found bool) {
	switch {
	case a.n < 2 && b.n < 2:
		return 0, 0, false
	case a.n < 2:
		return b.variance * (1 + 1/b.n), b.n - 1, true
	case b.n < 2:
		return a.variance * (1 + 1/a.n), a.n - 1, true
	}
	x, y := a.variance/a.n, b.variance/b.n
	if x+y == 0 {
		return 0, a.n + b.n - 2, true
	}
	// Divided by the sum first: squares of small variances would be zero.
	p, q := x/(x+y), y/(x+y)
	return x + y, 1 / (p*p/(a.n-1) + q*q/(b.n-1)), true
}

// variance returns the variance of two or more values, about their mean.
func variance(xs []float64) float64 {
	return Squares(xs) / float64(len(xs)-1)
}

// Assumed standard deviations, in percent, of values too few to show their scatter. Seconds within a run do not
// show the differences between runs: connections and ports, placement, other load. RunSpreadPct covers paths on
// which one run in ten loses a quarter, or half of them a fifth; so with single runs, only drops of about 30% or
// more are distinguished from chance. SessionSpreadPct is what all runs of one session have in common, which no
// scatter within a session shows. docs/statistics.md has how often either is too low.
const (
	RunSpreadPct     = 12
	SessionSpreadPct = 3
)

// Spread is the assumed scatter of values too few to show it, as standard deviations.
type Spread struct {
	Value   float64 // of one value, if a side has one or two
	Session float64 // common to all values of a side, however many; 0: each is from a session of its own
}

// RunSpread returns that of the logarithms of rates: with sessions the values are runs of one session per side,
// else results of as many sessions.
func RunSpread(sessions bool) Spread {
	s := Spread{Value: RunSpreadPct / 100.0}
	if sessions {
		s.Session = SessionSpreadPct / 100.0
	}
	return s
}

// least returns the least half-width of the interval of n values against m at a level, whatever their observed
// scatter. One value proves no more against many than against one.
func (s Spread) least(n, m int, level float64) float64 {
	z := mathext.NormalQuantile(0.5 + level/2)
	switch min(n, m) {
	case 1:
		return z * s.Value * math.Sqrt2
	case 2:
		return z * s.Value * math.Sqrt(1/float64(n)+1/float64(m))
	}
	return z * s.Session * math.Sqrt2
}

// LeastDetectable returns the least change, as a logarithm, that n values against m distinguish from chance at a
// level, whatever their observed scatter; 0 if they are enough.
func LeastDetectable(n, m int, sessions bool, level float64) float64 {
	return RunSpread(sessions).least(n, m, level)
}

// Difference is by how much the mean of one side exceeds that of the other.
type Difference struct {
	Mean      float64
	Low, High float64 // its interval, including the assumed scatter of too few values
	Own       float64 // half of the interval by the observed scatter alone
}

// Differ returns the difference of b from a and its interval at a level such as 0.95: Welch's, widened by the
// session spread, and with one or two values on a side at least as wide as their assumed scatter. There is none if
// a side has no value, or for two single values without an assumed scatter.
func Differ(a, b []float64, s Spread, level float64) (d Difference, found bool) {
	if len(a) == 0 || len(b) == 0 {
		return Difference{Mean: math.NaN()}, false
	}
	return differ(momentsOf(a), momentsOf(b), 0, s, level)
}

// differ is Differ; half of the interval by the observed scatter is at least own.
func differ(a, b moments, own float64, s Spread, level float64) (d Difference, found bool) {
	least := s.least(int(a.n), int(b.n), level)
	d.Mean = b.mean - a.mean
	d.Own, found = welchHalf(a, b, level)
	d.Own = max(d.Own, own)
	half := math.Hypot(d.Own, least)
	if min(a.n, b.n) < leastScatter {
		half = max(d.Own, least)
	}
	d.Low, d.High = d.Mean-half, d.Mean+half
	return d, found || least > 0
}

// leastScatter is how many values show their scatter.
const leastScatter = 3

// SingleRuns returns the logarithm of the ratio of the one run of b to the one of a, and its interval. It adds the
// differences between runs (RunSpreadPct) to the uncertainty within each run (RunInterval). There is no interval
// if a run was too short to have seconds, or if neither carried anything. A run that carried nothing counts as 1
// bit/s: no uncertainty of the other explains that by chance.
func SingleRuns(a, b *measure.Figure, level float64) (difference, low, high float64, found bool) {
	if !(a.Value >= 0) || !(b.Value >= 0) || a.Value == 0 && b.Value == 0 {
		return math.NaN(), math.NaN(), math.NaN(), false
	}
	difference = math.Log(max(b.Value, 1)) - math.Log(max(a.Value, 1))
	x, known := withinRun(a)
	y, also := withinRun(b)
	if a.Value == 0 || b.Value == 0 {
		x, y, known, also = 0, 0, true, true
	}
	if !known || !also {
		return difference, math.NaN(), math.NaN(), false
	}
	const spread = RunSpreadPct / 100.0
	half := mathext.NormalQuantile(0.5+level/2) * math.Sqrt(x*x+y*y+2*spread*spread)
	return difference, difference - half, difference + half, true
}

// withinRun returns the standard error of a single run's figure, relative to it: from its interval or, with too
// few seconds for one, from their whole range.
func withinRun(f *measure.Figure) (relative float64, known bool) {
	switch {
	case f.CI95Low != nil && f.CI95High != nil:
		relative = ratio(*f.CI95High-*f.CI95Low, 2*fivePercent*f.Value)
	case f.High > f.Low:
		relative = ratio(f.High-f.Low, f.Value)
	default:
		return 0, false
	}
	return relative, relative >= 0 && !math.IsInf(relative, 0)
}

// LossPct returns a cell's lost datagrams, or its TCP retransmissions, in percent; nil if not known.
func LossPct(c *measure.Cell) *float64 { return lossPct(c) }

// Holm judges comparisons that share an error probability of 5% (Holm, A simple sequentially rejective multiple
// test procedure, 1979). differs judges number i at a level and returns whether that shows a difference. The
// clearest must hold at 1-0.05/k of k, the next at 1-0.05/(k-1), and so on until one does not. A comparison shown
// to be equivalent does not free its share for the others: together they would exceed 5%.
func Holm(k int, differs func(i int, level float64) bool) {
	done := make([]bool, k)
	for open := k; open > 0; {
		level, shown := 1-doubtful/float64(open), 0
		for i := range k {
			if !done[i] && differs(i, level) {
				done[i] = true
				shown++
			}
		}
		if shown == 0 {
			return
		}
		open -= shown
	}
}
