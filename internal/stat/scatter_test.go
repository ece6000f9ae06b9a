package stat

import (
	"math"
	"strings"
	"testing"

	"thru/internal/measure"
)

// The scatter of runs of the same state is reported if it hides gains, and only then.
func TestScatter(t *testing.T) {
	cell := func(rates ...float64) *measure.Cell {
		c := &measure.Cell{From: "a", To: "b"}
		c.Spec = measure.Spec{From: "a", To: "b", Duration: 1e9}
		for i, r := range rates {
			f := measure.Flow{From: "a", To: "b", Sender: &measure.Evidence{Sends: true}, Receiver: &measure.Evidence{Bytes: int64(r / 8), MeasuredNs: 1e9, Bins: []measure.StreamBin{{Span: 1e9, Bytes: int64(r / 8)}}}}
			c.Runs = append(c.Runs, measure.Run{Index: i, Flows: []measure.Flow{f}})
		}
		return c
	}
	for name, tt := range map[string]struct {
		cells []*measure.Cell
		want  string
	}{
		"restless":       {[]*measure.Cell{cell(4e8, 8e8), cell(4e8, 8e8, 4e8, 8e8)}, "6 runs with the same settings carried 400 Mb/s to 800 Mb/s, a spread of 46"},
		"quiet":          {[]*measure.Cell{cell(4e8, 4.1e8), cell(4.05e8, 4.1e8, 4e8, 4e8)}, ""},
		"too few":        {[]*measure.Cell{cell(4e8, 8e8, 4e8)}, ""},
		"none":           {nil, ""},
		"one that stops": {[]*measure.Cell{cell(4e8, 4e8, 4e8, 4e8, 4e8, 4e8, 0)}, ""},
	} {
		s := ScatterOf(tt.cells)
		if got := s.String(); !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" || math.IsNaN(s.Pct) {
			t.Errorf("%s: %+v, %q, want %q", name, s, got, tt.want)
		}
	}
}
