package ladder

import (
	"strings"
	"testing"

	"thru/internal/measure"
)

// TestLegend: the legend says where single runs are compared, and stands without any figure too.
func TestLegend(t *testing.T) {
	for name, figure := range map[string]*measure.Figure{"single": {Value: 1e9, Runs: 1}, "repeated": {Value: 1e9, Runs: 5}, "none": nil} {
		c := &measure.Cell{Streams: 1, Goodput: figure}
		l := Ladder{Rungs: []rung{{Source: c}}, Streams: []int{1}, Windows: []measure.Pair{{}}}
		if figure != nil {
			l.Best = &l.Rungs[0]
		}
		if got := strings.Contains(l.Table(true).Caption, "(one run)"); got != (name == "single") {
			t.Errorf("%s: %q", name, l.Table(true).Caption)
		}
	}
}
