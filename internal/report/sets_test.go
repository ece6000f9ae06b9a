package report

import (
	"slices"
	"testing"
)

// TestValues: what failed on its way counts only where all did.
func TestValues(t *testing.T) {
	part := set{Pairs: []pairFigure{{Value: new(3.0)}, {Value: new(1.0), Failed: "lost"}, {Value: new(2.0)}, {Failed: "lost"}}}
	if got := part.values(); !slices.Equal(got, []float64{2, 3}) {
		t.Errorf("values %v", got)
	}
	part.Pairs = part.Pairs[1:2]
	if got := part.values(); !slices.Equal(got, []float64{1}) {
		t.Errorf("values of what failed alone: %v", got)
	}
}
