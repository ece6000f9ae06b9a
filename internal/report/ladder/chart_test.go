package ladder

import "testing"

// TestNoChartOfOneRow: the table shows the same.
func TestNoChartOfOneRow(t *testing.T) {
	l := &Ladder{Streams: []int{4}, Best: &rung{}}
	if c := charts(l, 0); c != nil {
		t.Errorf("%d charts of one number of streams", len(c))
	}
}
