//go:build linux

package main

import (
	"math"
	"slices"
)

// estimate is a ratio with its interval.
type estimate struct {
	ratio, low, high float64
	confidence       float64 // 0.95 or more from six pairs on, else what they allow
	pairs            int
}

// ratioOf estimates the ratio a/b from pairs of runs of the same rounds. Of
// the logarithms it takes the Hodges-Lehmann estimate, and the interval of
// Wilcoxon's signed-rank test: neither supposes a normal distribution, and a
// single disturbed round moves them little.
func ratioOf(a, b []float64) (estimate, bool) {
	var logs []float64
	for i := range min(len(a), len(b)) {
		if a[i] > 0 && b[i] > 0 { // NaN is a run without a figure
			logs = append(logs, math.Log(a[i]/b[i]))
		}
	}
	if len(logs) == 0 {
		return estimate{}, false
	}
	walsh := walshAverages(logs)
	k, confidence := signedRankCut(len(logs), 0.95)
	return estimate{
		ratio: math.Exp(median(walsh)), low: math.Exp(walsh[k]), high: math.Exp(walsh[len(walsh)-1-k]),
		confidence: confidence, pairs: len(logs),
	}, true
}

// walshAverages are the means of all pairs, each value with itself included, sorted.
func walshAverages(xs []float64) []float64 {
	var w []float64
	for i, x := range xs {
		for _, y := range xs[i:] {
			w = append(w, (x+y)/2)
		}
	}
	slices.Sort(w)
	return w
}

// signedRankCut is how many Walsh averages the interval leaves out at either
// side, and its confidence. Under the hypothesis each of the ranks 1 to n is
// positive or not with equal chance; ways counts the sums.
func signedRankCut(n int, confidence float64) (cut int, reached float64) {
	most := n * (n + 1) / 2
	ways := make([]float64, most+1)
	ways[0] = 1
	for rank := 1; rank <= n; rank++ {
		for sum := most; sum >= rank; sum-- {
			ways[sum] += ways[sum-rank]
		}
	}
	all, tail := math.Pow(2, float64(n)), 0.0
	for cut = 0; cut <= most/2; cut++ {
		tail += ways[cut]
		if 1-2*tail/all < confidence {
			break
		}
		reached = 1 - 2*tail/all
	}
	if cut == 0 { // too few: all of them
		return 0, 1 - 2/all
	}
	return cut - 1, reached
}

// median is NaN of nothing. Values that are NaN do not count.
func median(xs []float64) float64 {
	s := slices.DeleteFunc(slices.Clone(xs), math.IsNaN)
	slices.Sort(s)
	n := len(s)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}
