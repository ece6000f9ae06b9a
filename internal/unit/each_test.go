package unit

import (
	"slices"
	"strconv"
	"testing"
)

func TestEach(t *testing.T) {
	odd := func(n int) bool { return n%2 == 1 }
	xs := []int{3, 4, 3, 5}
	if got := Mapped(xs, strconv.Itoa); !slices.Equal(got, []string{"3", "4", "3", "5"}) {
		t.Errorf("mapped: %q", got)
	}
	if got := Filtered(xs, odd); !slices.Equal(got, []int{3, 3, 5}) {
		t.Errorf("filtered: %d", got)
	}
	if got := CountFunc(xs, odd); got != 3 {
		t.Errorf("counted: %d", got)
	}
	if got := Unique(xs); !slices.Equal(got, []int{3, 4, 5}) {
		t.Errorf("unique: %d", got)
	}
	if Mapped(nil, strconv.Itoa) != nil || Filtered(xs[1:2], odd) != nil || Unique[int](nil) != nil {
		t.Error("none is not nil, which documents omit")
	}
}
