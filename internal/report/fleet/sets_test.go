package fleet

import (
	"slices"
	"testing"

	"thru/internal/measure"
)

// TestValues: a pair that failed midway counts only if all did.
func TestValues(t *testing.T) {
	part := Set{Pairs: []pairFigure{{Value: new(3.0)}, {Value: new(1.0), Failed: "lost"}, {Value: new(2.0)}, {Failed: "lost"}}}
	if got := part.values(); !slices.Equal(got, []float64{2, 3}) {
		t.Errorf("values %v", got)
	}
	part.Pairs = part.Pairs[1:2]
	if got := part.values(); !slices.Equal(got, []float64{1}) {
		t.Errorf("values of what failed alone: %v", got)
	}
}

// TestLevel: settings without a significant difference are reported as such.
func TestLevel(t *testing.T) {
	one := func(low, high float64) *Set {
		v := (low + high) / 2
		c := &measure.Cell{From: "a", To: "b", Goodput: &measure.Figure{Value: v, Low: low, High: high, Runs: 3}}
		return &Set{Cells: []*measure.Cell{c}, Pairs: []pairFigure{{From: "a", To: "b", Value: &v, Cells: []*measure.Cell{c}}}}
	}
	most, near, far := one(190e6, 194e6), one(188e6, 191e6), one(90e6, 95e6)
	for want, sets := range map[string][]*Set{"": {most, far}, "; all others may carry as much": {most, near}, "; 1 other may carry as much": {near, most, far}} {
		if got := levelText(sets, most); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
