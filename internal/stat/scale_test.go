package stat

import (
	"strings"
	"testing"

	"thru/internal/measure"
)

// rung returns the cells of a window by the rates of 5 runs each: the interval and the mean.
func rung(values map[int][3]float64, window int64) []measure.Cell {
	var cells []measure.Cell
	for _, p := range []int{1, 2, 4, 8} {
		v := values[p]
		cells = append(cells, measure.Cell{From: "local", To: "local", Streams: p, Window: measure.Pair{Send: window, Recv: window},
			Goodput: &measure.Figure{Low: v[0] * 1e9, Value: v[1] * 1e9, High: v[2] * 1e9, CI95Low: new(v[0] * 1e9), CI95High: new(v[2] * 1e9), Runs: 5}})
	}
	return cells
}

func TestScale(t *testing.T) {
	cells := rung(map[int][3]float64{1: {9, 10, 11}, 2: {19, 20, 21}, 4: {24, 25, 26}, 8: {17, 18, 19}}, 0)
	cells[3].Window.Send = 5 // has no single stream to compare with
	Scale(cells)
	if cells[0].Scaling != nil || *cells[1].Scaling != 2 || *cells[2].Scaling != 2.5 || cells[3].Scaling != nil {
		t.Errorf("scaling %v %v %v %v", cells[0].Scaling, cells[1].Scaling, cells[2].Scaling, cells[3].Scaling)
	}
}

func TestStreamAdvice(t *testing.T) {
	for name, c := range map[string]struct {
		values map[int][3]float64
		want   string
	}{
		"more is better, then worse": {map[int][3]float64{1: {9, 10, 11}, 2: {19, 20, 21}, 4: {24, 25, 26}, 8: {17, 18, 19}}, "Use 4 streams: 25.0 Gb/s at the default window; 8 streams cost 28%"},
		"no clear gain":              {map[int][3]float64{1: {9, 10, 11}, 2: {9, 10.4, 12}, 4: {9, 10.6, 12}, 8: {9, 10, 11}}, "Use 1 stream: 10.0 Gb/s at the default window; 10.6 Gb/s with 4 is not a clear gain"},
	} {
		got := StreamAdvice(rung(c.values, 0), 8).Lines
		if len(got) != 1 || !strings.HasPrefix(got[0], c.want) || !strings.HasSuffix(got[0], "would be 4 of this machine's 8.") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := StreamAdvice(nil, 8).Lines; len(got) != 0 {
		t.Errorf("advice without figures: %q", got)
	}
}

// With one run each, a possible chance difference is not reported as a gain or cost.
func TestSingleRunAdvice(t *testing.T) {
	for name, c := range map[string]struct {
		values map[int][3]float64
		want   string
	}{
		"a little":   {map[int][3]float64{1: {9.9, 10, 10.1}, 2: {10.9, 11, 11.1}, 4: {11.9, 12, 12.1}, 8: {8.9, 9, 9.1}}, "Use 1 stream: 10.0 Gb/s at the default window; one run each does not show whether 4, with 12.0 Gb/s, carry more (--repeat 5)."},
		"twice":      {map[int][3]float64{1: {9.9, 10, 10.1}, 2: {19, 20, 21}, 4: {24, 25, 26}, 8: {10, 10.1, 10.2}}, "Use 2 streams: 20.0 Gb/s at the default window; one run each does not show whether 4, with 25.0 Gb/s, carry more (--repeat 5); 8 streams cost 60%."},
		"no seconds": {map[int][3]float64{1: {10, 10, 10}, 2: {20, 20, 20}, 4: {40, 40, 40}, 8: {80, 80, 80}}, "Use 1 stream: 10.0 Gb/s at the default window; one run each does not show whether 8, with 80.0 Gb/s, carry more (--repeat 5)."},
	} {
		cells := rung(c.values, 0)
		for i := range cells {
			f := cells[i].Goodput
			f.Runs, f.CI95Low, f.CI95High = 1, nil, nil
		}
		if got := StreamAdvice(cells, 0).Lines; len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWindowAdvice(t *testing.T) {
	base := rung(map[int][3]float64{1: {9, 10, 11}, 2: {19, 20, 21}, 4: {24, 25, 26}, 8: {17, 18, 19}}, 0)
	slow := rung(map[int][3]float64{1: {7, 7.5, 8}, 2: {13, 14, 15}, 4: {17, 18, 19}, 8: {17, 18, 19}}, 800<<10)
	got := StreamAdvice(append(base, slow...), 4)
	if len(got.Lines) != 2 || !strings.Contains(got.Lines[1], "clearly slower in 3 of 4 cells, faster in 0") || got.Streams != 4 || !got.Costly || got.Faster != 0 || got.Slower != 3 {
		t.Errorf("%+v", got)
	}
}
