//go:build linux || darwin || freebsd || windows

package store

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/watch/record"
)

// Hour is what is kept for years of an hour of a layer of a pair.
type Hour struct {
	record.Pair
	Layer  record.Layer            `json:"layer"`
	Begin  time.Time               `json:"begin"`
	Turns  map[record.State]int    `json:"turns"`            // by their state
	Values map[record.Metric]Range `json:"values,omitempty"` // of the turns that measured them
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
func SumUp(samples []record.Sample) Hour {
	h := Hour{Turns: map[record.State]int{}}
	values := map[record.Metric][]float64{}
	for _, x := range samples {
		h.Pair, h.Layer, h.Begin = x.Pair, x.Layer, x.Begin.Truncate(time.Hour)
		h.Turns[x.State]++
		for m, v := range x.Values {
			values[m] = append(values[m], v)
		}
	}
	if len(values) > 0 {
		h.Values = map[record.Metric]Range{}
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

// Hours returns the stored summaries of hours, in order.
func Hours(t testing.TB, s Store) (all []Hour) {
	t.Helper()
	d := s.(*database)
	var packed []record.Sample
	err := eachRow(t.Context(), d.DB, func(r *sql.Rows) error {
		var of series
		var zipped []byte
		if err := r.Scan(&of.From, &of.To, &of.Layer, &zipped); err != nil {
			return err
		}
		some, err := d.unpack(zipped, of)
		packed = append(packed, some...)
		return err
	}, "SELECT source, target, layer, zstd FROM hours JOIN series AS s ON s.n = series")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range inOrder(packed) {
		all = append(all, asHour(x))
	}
	return all
}

// asHour is the inverse of sumOf without the order.
func asHour(x record.Sample) Hour {
	h := Hour{Pair: x.Pair, Layer: x.Layer, Begin: x.Begin, Turns: map[record.State]int{}}
	for m, v := range x.Values {
		name, part, _ := strings.Cut(string(m), " ")
		if state, is := strings.CutPrefix(name, turnsOf); is {
			h.Turns[record.State(state)] = int(v)
			continue
		}
		if h.Values == nil {
			h.Values = map[record.Metric]Range{}
		}
		r := h.Values[record.Metric(name)]
		switch part {
		case countPart:
			r.Count = int(v)
		case "min":
			r.Min = v
		case "median":
			r.Median = v
		case meanPart:
			r.Mean = v
		case "max":
			r.Max = v
		}
		h.Values[record.Metric(name)] = r
	}
	return h
}
