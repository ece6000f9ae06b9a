//go:build linux || darwin || freebsd || windows

package store

import (
	"strings"
	"testing"

	"thru/internal/watch/record"
)

// Hours returns the stored summaries of hours, in order.
func Hours(t testing.TB, s Store) (all []record.Hour) {
	t.Helper()
	d := s.(*database)
	of, err := d.named(t.Context(), d.db, SampleFilter{})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := column(t.Context(), d.db, "SELECT n FROM hours")
	if err != nil {
		t.Fatal(err)
	}
	var packed []record.Sample
	for _, n := range keys {
		some, err := d.packed(t.Context(), d.db, "hours", n, of.of[n&(1<<shift-1)])
		if err != nil {
			t.Fatal(err)
		}
		packed = append(packed, some...)
	}
	for _, x := range inOrder(packed) {
		all = append(all, asHour(x))
	}
	return all
}

// asHour is the inverse of asSample.
func asHour(x record.Sample) record.Hour {
	h := record.Hour{Pair: x.Pair, Layer: x.Layer, Begin: x.Begin, Turns: map[record.State]int{}}
	for m, v := range x.Values {
		name, part, _ := strings.Cut(string(m), " ")
		if state, is := strings.CutPrefix(name, turnsOf); is {
			h.Turns[record.State(state)] = int(v)
			continue
		}
		if h.Values == nil {
			h.Values = map[record.Metric]record.Range{}
		}
		r := h.Values[record.Metric(name)]
		switch part {
		case countPart:
			r.Count = int(v)
		case minPart:
			r.Min = v
		case medianPart:
			r.Median = v
		case meanPart:
			r.Mean = v
		case maxPart:
			r.Max = v
		}
		h.Values[record.Metric(name)] = r
	}
	return h
}
