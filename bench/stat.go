//go:build linux

package main

import (
	"math"
	"slices"

	"thru/internal/stat"
)

// estimate is a ratio with its 95% interval: of fewer than six pairs, their range.
type estimate struct{ ratio, low, high float64 }

// ratioOf estimates the ratio a/b from pairs of runs of the same rounds, by the
// Hodges-Lehmann estimate of their logarithms: it does not suppose a normal
// distribution, and a single disturbed round moves it little.
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
	ratio, low, high, found := stat.HodgesLehmann(logs, 0.95)
	if !found {
		low, high = slices.Min(logs), slices.Max(logs)
	}
	return estimate{math.Exp(ratio), math.Exp(low), math.Exp(high)}, true
}

// median is NaN of nothing. Values that are NaN do not count.
func median(xs []float64) float64 {
	return stat.Median(slices.DeleteFunc(slices.Clone(xs), math.IsNaN))
}
