package draw

import (
	"math"
	"reflect"
	"testing"
)

// TestLinesBreakWhereThereIsNoValue: a line continues after a gap, and a single point draws no line.
func TestLinesBreakWhereThereIsNoValue(t *testing.T) {
	nan := math.NaN()
	got := unbrokenParts([]Point{{1, nan}, {3, 1}, {5, 2}, {7, nan}, {9, 3}, {11, nan}, {17, 5}, {19, 6}})
	if want := [][]Point{{{3, 1}, {5, 2}}, {{17, 5}, {19, 6}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
