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
	difference = mean(b) - mean(a)
	square, degrees, found := welchError(a, b)
	if !found {
		return difference, math.NaN(), math.NaN(), false
	}
	half := halfWidth(square, degrees, level)
	if len(a) > 1 && len(b) > 1 {
		half = max(half, pooledHalf(a, b, level))
	}
	return difference, difference - half, difference + half, true
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
func pooledHalf(a, b []float64, level float64) float64 {
	if len(a) > len(b) {
		a, b = b, a
	}
	x, y, n, m := variance(a), variance(b), float64(len(a)), float64(len(b))
	if x >= y {
		return 0
	}
	pooled := (x*(n-1) + y*(m-1)) / (n + m - 2)
	return halfWidth(pooled*(1/n+1/m), n+m-2, level)
}

// welchError is the squared standard error of a difference of means, and its
// degrees of freedom (Satterthwaite).
func welchError(a, b []float64) (square, degrees float64, found bool) {
	n, m := float64(len(a)), float64(len(b))
	switch {
	case n < 2 && m < 2:
		return 0, 0, false
	case n < 2:
		return variance(b) * (1 + 1/m), m - 1, true
	case m < 2:
		return variance(a) * (1 + 1/n), n - 1, true
	}
	x, y := variance(a)/n, variance(b)/m
	if x+y == 0 {
		return 0, n + m - 2, true
	}
	// Divided by the sum first: squares of small variances would be zero.
	p, q := x/(x+y), y/(x+y)
	return x + y, 1 / (p*p/(n-1) + q*q/(m-1)), true
}

// variance of two values or more, about their mean.
func variance(xs []float64) float64 {
	m, squares := mean(xs), 0.0
	for _, x := range xs {
		squares += (x - m) * (x - m)
	}
	return squares / float64(len(xs)-1)
}

// What is taken of values that are too few to tell what they vary by, as standard
// deviations in percent. Seconds within a run say nothing of what differs from run
// to run: connections and ports, placement, other load. RunSpreadPct covers paths
// on which one run in ten loses a quarter, or half of them a fifth; so of two
// single runs a fall by less than some 30% is not told from chance.
// SessionSpreadPct is of the means of runs in one session each. TestFewRarelyFire
// measures how often either is too little.
const (
	RunSpreadPct     = 12
	SessionSpreadPct = 3
)

// LeastTold is the least change, as a logarithm, that n values against m tell from
// chance at a level, whatever they say of themselves; 0 where they are enough.
// One value tells no more against many than against one. With sessions, values are
// runs of one session each side.
func LeastTold(n, m int, sessions bool, level float64) float64 {
	z, few := distuv.UnitNormal.Quantile(0.5+level/2), min(n, m)
	switch {
	case few < 2:
		return z * RunSpreadPct / 100 * math.Sqrt2
	case few < 3:
		return z * RunSpreadPct / 100 * math.Sqrt(1/float64(n)+1/float64(m))
	case few < fewRuns && sessions:
		return z * SessionSpreadPct / 100 * math.Sqrt2
	}
	return 0
}

// fewRuns is how many runs a session has at least, whose scatter is believed.
const fewRuns = 5

// SingleRuns is the logarithm of how many times as much the one run of b carried
// as the one of a, and its interval. To the doubt within each run (batch means)
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
// rejective multiple test procedure, 1979). settle judges number i at a level
// and says whether that settled it. The clearest outcome must hold at 1-0.05/k
// of k, the next at 1-0.05/(k-1), and so on until one does not.
func Holm(k int, settle func(i int, level float64) bool) {
	done := make([]bool, k)
	for open := k; open > 0; {
		level, settled := 1-doubtful/float64(open), 0
		for i := range k {
			if !done[i] && settle(i, level) {
				done[i] = true
				settled++
			}
		}
		if settled == 0 {
			return
		}
		open -= settled
	}
}
