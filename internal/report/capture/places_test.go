package capture

import (
	"math"
	"testing"

	"thru/internal/measure"
)

func TestPlacesOfAFlow(t *testing.T) {
	at := func(places ...string) (all []measure.Capture) {
		for _, p := range places {
			all = append(all, measure.Capture{Place: p})
		}
		return all
	}
	for _, tt := range []struct {
		name      string
		f         measure.Flow
		near, far int // index; -1: none
	}{
		{"one", measure.Flow{Captures: at(measure.AtReceiver)}, 0, -1},
		{"two of no known place", measure.Flow{Captures: at("", "")}, 0, 1},
		{"the sender's second", measure.Flow{Captures: at("", measure.AtSender)}, 1, 0},
		{"the receiver's first", measure.Flow{Captures: at(measure.AtReceiver, "")}, 1, 0},
		{"as the crossing says", measure.Flow{Captures: at("", "", ""), Crossing: &measure.Crossing{Left: 2, Right: 1}}, 2, 1},
		{"a crossing of nowhere", measure.Flow{Captures: at("", ""), Crossing: &measure.Crossing{Left: 9, Right: 1}}, 0, -1},
		{"a crossing with itself", measure.Flow{Captures: at("", ""), Crossing: &measure.Crossing{Left: 1, Right: 1}}, 1, -1},
	} {
		index := func(c *measure.Capture) int {
			for i := range tt.f.Captures {
				if c == &tt.f.Captures[i] {
					return i
				}
			}
			return -1
		}
		near, far := PlacesOf(&tt.f)
		if index(near) != tt.near || index(far) != tt.far {
			t.Errorf("%s: %d and %d, want %d and %d", tt.name, index(near), index(far), tt.near, tt.far)
		}
	}
}

func TestSeriesHaveNoValueWhereNothingWasSeen(t *testing.T) {
	k := trace{step: 2}
	nan := math.NaN()
	got := k.series([]int64{-1, 10, 20, -1, 30, -1, 40, 900, 50, 60}, 0.5, 10, 50)
	want := []float64{nan, 1, 2, nan, 3, nan, 4, nan, 5, 6}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i, y := range want {
		if got[i].Y != y && !(math.IsNaN(y) && math.IsNaN(got[i].Y)) {
			t.Errorf("%d: %v, want %v", i, got[i], y)
		}
	}
}
