package stat

import (
	"testing"

	"thru/internal/measure"
)

// TestRecommend: the smallest setting that carries as much as the best, for each path separately; a clearly lower
// figure does not.
func TestRecommend(t *testing.T) {
	type setting struct {
		streams        int
		window, length int64
		gbps           float64
	}
	cells := func(to string, all ...setting) (out []measure.Cell) {
		for _, s := range all {
			c := measure.Cell{From: "a", To: to, Protocol: measure.TCP, Streams: s.streams, Window: measure.Pair{Send: s.window, Recv: s.window}, Length: measure.Pair{Send: s.length, Recv: s.length}}
			c.Goodput = severalRuns([]float64{s.gbps * 0.999e9, s.gbps * 1e9, s.gbps * 1.001e9, s.gbps * 1.0005e9, s.gbps * 0.9995e9}, 0)
			out = append(out, c)
		}
		return out
	}
	const k = 1 << 10
	for name, tt := range map[string]struct {
		cells                  []measure.Cell
		use, best              string
		sameSettings, settings int
		paths                  int
	}{
		"nothing was varied":        {cells("b", setting{1, 0, 128 * k, 9}), "", "", 0, 0, 0},
		"larger is better":          {cells("b", setting{1, 0, 8 * k, 2}, setting{1, 0, 128 * k, 9}), "length 128K", "length 128K", 1, 2, 1},
		"more is no better":         {cells("b", setting{1, 0, 8 * k, 2}, setting{1, 0, 64 * k, 9.0001}, setting{1, 0, 128 * k, 9.0002}), "length 64K", "length 128K", 2, 3, 1},
		"the default before a size": {cells("b", setting{1, 800 * k, 8 * k, 9.0001}, setting{1, 0, 8 * k, 9}), "window default", "window 800K", 2, 2, 1},
		"streams before windows":    {cells("b", setting{4, 0, 8 * k, 9}, setting{1, 800 * k, 8 * k, 9.0001}, setting{1, 0, 8 * k, 3}, setting{4, 800 * k, 8 * k, 9.0002}), "streams 1, window 800K", "streams 4, window 800K", 3, 4, 1},
		"each path by itself":       {append(cells("b", setting{1, 0, 8 * k, 2}, setting{1, 0, 16 * k, 9}), cells("c", setting{1, 0, 8 * k, 9}, setting{1, 0, 16 * k, 9.0001})...), "length 16K", "length 16K", 1, 2, 2},
		"twice the same":            {cells("b", setting{1, 0, 8 * k, 2}, setting{1, 0, 8 * k, 9}), "", "", 0, 0, 0},
	} {
		got := Recommend(&measure.Document{Cells: tt.cells})
		if len(got) != tt.paths {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		if tt.paths == 0 {
			continue
		}
		if r := got[0]; AxesText(r.Use) != tt.use || AxesText(r.Best) != tt.best || r.Equal != tt.sameSettings || r.Settings != tt.settings || r.From != "a" || r.To != "b" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for name, change := range map[string]func(*measure.Cell){
		"beside": func(c *measure.Cell) { c.Baseline = true }, "paced": func(c *measure.Cell) { c.Spec.Rate = 1e9 }, "failed": func(c *measure.Cell) { c.Error = &measure.Error{} },
		"at once": func(c *measure.Cell) { c.AtOnce = 2 }, "no figure": func(c *measure.Cell) { c.Goodput = nil },
	} {
		all := cells("b", setting{1, 0, 8 * k, 2}, setting{1, 0, 16 * k, 9})
		change(&all[1])
		if got := Recommend(&measure.Document{Cells: all}); len(got) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
