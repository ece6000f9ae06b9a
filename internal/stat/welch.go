package stat

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"thru/internal/measure"
)

// Welch is by how much the mean of b exceeds that of a, and the interval of that
// at a level such as 0.95, for independent values of which neither the number nor
// the variance need be the same (Welch, The generalization of "Student's" problem,
// Biometrika 34, 1947; Jain, The Art of Computer Systems Performance Analysis,
// 13.4.2). Where one side has a single value, it is held against the range in
// which one more value of the other side would lie: a prediction interval, which
// takes it that both sides scatter alike. Two single values have no interval
// (found is false). Where the smaller side scatters less than the other, it is the
// wider of Welch's interval and Student's of a common variance: two values that
// happen to be alike do not know what they vary by.
//
// Mann-Whitney's test assumes less, but needs 4 values a side for 95%, and more
// where several comparisons share the doubt: runs are few. Each is a mean of
// seconds, so that the normal distribution is near; TestWelchRarelyFires holds
// what becomes of it where it is not.
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

// welchHalf is the half width of Welch's interval.
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

// halfWidth is that of an interval by Student's t.
func halfWidth(square, degrees, level float64) float64 {
	if !(square > 0) {
		return 0
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: degrees}
	return t.Quantile(0.5+level/2) * math.Sqrt(square)
}

// pooledHalf is the half width where both sides are taken to vary alike; 0 where it
// is the larger side that varies less.
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

// welchError is the squared standard error of a difference of means, and its
// degrees of freedom (Satterthwaite).
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

// variance of two values or more, about their mean.
func variance(xs []float64) float64 {
	return squares(xs) / float64(len(xs)-1)
}

// What is taken of values that are too few to tell what they vary by, as standard
// deviations in percent. Seconds within a run say nothing of what differs from run
// to run: connections and ports, placement, other load. RunSpreadPct covers paths
// on which one run in ten loses a quarter, or half of them a fifth; so of two
// single runs a fall by less than some 30% is not told from chance.
// SessionSpreadPct is of what all runs of one session have in common, which no
// scatter within a session shows. docs/statistics.md has how often either is too little.
const (
	RunSpreadPct     = 12
	SessionSpreadPct = 3
)

// Spread is what is taken of values too few to tell what they vary by, as standard
// deviations.
type Spread struct {
	Value   float64 // of one value, where a side has one or two
	Session float64 // common to all values of a side, however many; 0: each is of a session of its own
}

// RunSpread is that of the logarithms of rates: with sessions they are runs of one
// session each side, else results of as many sessions.
func RunSpread(sessions bool) Spread {
	s := Spread{Value: RunSpreadPct / 100.0}
	if sessions {
		s.Session = SessionSpreadPct / 100.0
	}
	return s
}

// least is the half width of an interval at a level that n values against m have,
// whatever they say of themselves. One value tells no more against many than
// against one.
func (s Spread) least(n, m int, level float64) float64 {
	z := distuv.UnitNormal.Quantile(0.5 + level/2)
	switch min(n, m) {
	case 1:
		return z * s.Value * math.Sqrt2
	case 2:
		return z * s.Value * math.Sqrt(1/float64(n)+1/float64(m))
	}
	return z * s.Session * math.Sqrt2
}

// LeastDetectable is the least change, as a logarithm, that n values against m tell from
// chance at a level, whatever they say of themselves; 0 where they are enough.
func LeastDetectable(n, m int, sessions bool, level float64) float64 {
	return RunSpread(sessions).least(n, m, level)
}

// Difference is by how much the mean of one side exceeds that of the other.
type Difference struct {
	Mean      float64
	Low, High float64 // its interval, with what is taken of values too few
	Own       float64 // half of the interval by the scatter of the values alone
}

// Differ is the difference of b from a and its interval at a level such as 0.95:
// Welch's, which what sessions have in common widens, and which of one or two
// values is as wide at least as what those are taken to vary by. There is none
// where a side has no value, or where nothing is known of two single ones.
func Differ(a, b []float64, s Spread, level float64) (d Difference, found bool) {
	if len(a) == 0 || len(b) == 0 {
		return Difference{Mean: math.NaN()}, false
	}
	return differ(momentsOf(a), momentsOf(b), 0, s, level)
}

// differ is Differ; half of the interval by the scatter alone is own at least.
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

// leastScatter is how many values tell what they vary by.
const leastScatter = 3

// SingleRuns is the logarithm of how many times as much the one run of b carried
// as the one of a, and its interval. To the doubt within each run (RunInterval)
// comes what runs differ by (RunSpreadPct). There is no interval where a run was
// too short to have seconds, or where neither carried anything. A run that carried
// nothing counts as 1 bit/s: no doubt within the other makes that chance.
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
	half := distuv.UnitNormal.Quantile(0.5+level/2) * math.Sqrt(x*x+y*y+2*spread*spread)
	return difference, difference - half, difference + half, true
}

// withinRun is the standard error of a single run's figure, relative to it: of its
// interval, or where there are too few seconds for one of their whole range.
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

// LossPct is the share of a cell's packets that were lost on the way, or of TCP
// sent again, in percent; nil where that is not known.
func LossPct(c *measure.Cell) *float64 { return lossPct(c) }

// Holm judges comparisons that share a doubt of 5% (Holm, A simple sequentially
// rejective multiple test procedure, 1979). differs judges number i at a level and
// says whether that shows a difference. The clearest must hold at 1-0.05/k of k,
// the next at 1-0.05/(k-1), and so on until one does not. What is shown to be the
// same leaves the others no doubt: they would be more than 5% wrong together.
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
