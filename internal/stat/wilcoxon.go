package stat

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// exactSigns is the highest number of differences for which the distribution of ranks is computed exactly; beyond
// it the normal approximation is as good.
const exactSigns = 100

// SignedRank returns the two-sided p-value of the Wilcoxon signed-rank test: how likely differences that scatter
// evenly about zero are to be as one-sided as these. Zeros are omitted, equal sizes share their mean rank, and the
// distribution is that of the given ranks (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3.1).
// It is 1 if no difference is left.
func SignedRank(differences []float64) float64 {
	xs := slices.DeleteFunc(slices.Clone(differences), func(x float64) bool { return x == 0 })
	if len(xs) == 0 {
		return 1
	}
	ranks := doubledRanks(xs)
	positive, total := 0, 0
	for i, x := range xs {
		total += ranks[i]
		if x > 0 {
			positive += ranks[i]
		}
	}
	lower := min(positive, total-positive)
	if len(xs) > exactSigns {
		return min(1, 2*normalTail(ranks, lower))
	}
	return min(1, 2*tailOf(ranks, lower))
}

// doubledRanks returns twice the ranks by size, so that a mean rank is an integer too.
func doubledRanks(xs []float64) []int {
	order := make([]int, len(xs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(math.Abs(xs[a]), math.Abs(xs[b])) })
	ranks := make([]int, len(xs))
	for i := 0; i < len(order); {
		k := i
		for k < len(order) && math.Abs(xs[order[k]]) == math.Abs(xs[order[i]]) {
			k++
		}
		for _, at := range order[i:k] {
			ranks[at] = i + 1 + k // twice the mean of i+1 to k
		}
		i = k
	}
	return ranks
}

// tailOf returns the probability that the ranks of the positive differences sum to at most that, if both signs are
// equally likely.
func tailOf(ranks []int, atMost int) float64 {
	chances := signChances(ranks)
	return min(1, Sum(chances[:min(max(atMost+1, 0), len(chances))]))
}

// signChances returns the probability of each sum of the ranks of the positive differences.
func signChances(ranks []int) []float64 {
	chances := []float64{1}
	for _, r := range ranks {
		next := make([]float64, len(chances)+r)
		for s, p := range chances {
			next[s] += p / 2
			next[s+r] += p / 2
		}
		chances = next
	}
	return chances
}

// normalTail returns the same by the normal distribution, with the correction for continuity (half a step of
// doubled ranks).
func normalTail(ranks []int, atMost int) float64 {
	m, v := 0.0, 0.0
	for _, r := range ranks {
		m += float64(r) / 2
		v += float64(r) * float64(r) / 4
	}
	return math.Erfc((m-float64(atMost)-1)/math.Sqrt(2*v)) / 2
}

// HodgesLehmann returns an estimate of the center of differences, the median of the means of all pairs of them,
// and its interval at a level such as 0.95 by the signed-rank test. There is no interval if so few differences
// cannot reach the level (found is false): 0.95 takes 6.
func HodgesLehmann(differences []float64, level float64) (estimate, low, high float64, found bool) {
	means := walshMeans(differences)
	estimate = sortedMedian(means)
	at, found := orderOf(len(differences), (1-level)/2)
	if !found {
		return estimate, math.NaN(), math.NaN(), false
	}
	return estimate, means[at], means[len(means)-1-at], true
}

func sortedMedian(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	return sortedQuantile(xs, 0.5)
}

// walshMeans returns the means of all pairs, each value with itself too, in order.
func walshMeans(xs []float64) []float64 {
	means := make([]float64, 0, len(xs)*(len(xs)+1)/2)
	for i := range xs {
		for k := i; k < len(xs); k++ {
			means = append(means, xs[i]/2+xs[k]/2)
		}
	}
	slices.Sort(means)
	return means
}

// orderOf returns which of the ordered means of n differences bounds the interval that leaves at most tail outside
// on either side.
func orderOf(n int, tail float64) (at int, found bool) {
	if n == 0 || math.Ldexp(1, -n) > tail {
		return 0, false
	}
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = 2 * (i + 1)
	}
	if n > exactSigns {
		m, v := float64(n*(n+1))/4, float64(n*(n+1)*(2*n+1))/24
		return max(0, int(m+mathext.NormalQuantile(tail)*math.Sqrt(v)-0.5)), true
	}
	left := 0.0
	for s, p := range signChances(ranks) {
		if s%2 == 1 {
			continue // doubled ranks have even sums
		}
		if left += p; left > tail {
			return s/2 - 1, true // the last one that leaves no more
		}
	}
	return 0, false
}

// LeastPairs returns how many differences an interval needs at a level such as 0.95: a comparison has at least
// that many pairs of runs.
func LeastPairs(level float64) int {
	n := 1
	for math.Ldexp(1, -n) > (1-level)/2 && n < exactSigns {
		n++
	}
	return n
}
