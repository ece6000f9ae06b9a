package record

import (
	"slices"
	"time"
)

// Hour is what is kept for years of an hour of a layer of a pair.
type Hour struct {
	Pair
	Layer  Layer            `json:"layer"`
	Begin  time.Time        `json:"begin"`
	Turns  map[State]int    `json:"turns"`            // by their state
	Values map[Metric]Range `json:"values,omitempty"` // of the turns that measured them
}

// Range sums up the values of a metric.
type Range struct {
	Count  int     `json:"count"`
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Mean   float64 `json:"mean"`
	Max    float64 `json:"max"`
}

// SumUp returns the hour of samples, which are of one layer of a pair and begin in the same hour.
func SumUp(samples []Sample) Hour {
	h := Hour{Turns: map[State]int{}}
	values := map[Metric][]float64{}
	for _, x := range samples {
		h.Pair, h.Layer, h.Begin = x.Pair, x.Layer, x.Begin.Truncate(time.Hour)
		h.Turns[x.State]++
		for m, v := range x.Values {
			values[m] = append(values[m], v)
		}
	}
	if len(values) > 0 {
		h.Values = map[Metric]Range{}
	}
	for m, all := range values {
		slices.Sort(all)
		n := len(all)
		r := Range{Count: n, Min: all[0], Median: (all[(n-1)/2] + all[n/2]) / 2, Max: all[n-1]}
		for _, v := range all {
			r.Mean += v
		}
		r.Mean /= float64(n)
		h.Values[m] = r
	}
	return h
}
