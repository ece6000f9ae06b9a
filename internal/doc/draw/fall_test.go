package draw

import (
	"strings"
	"testing"
)

// TestBar: a bar has the length of its share, with its ceiling and its interval if known, and no length if
// nothing was measured.
func TestBar(t *testing.T) {
	for _, c := range []struct {
		bar  Rung
		has  []string
		none []string
	}{
		{Rung{Carried: 0.5, Mark: 1, Low: 0.4, High: 0.6}, []string{`class="fall" width="50.00%"`, `class="roof" x1="100.00%"`, `x1="40.00%" y1="50%" x2="60.00%"`}, []string{"lost", "absent"}},
		{Rung{Carried: 0.5, Below: 0.8, Binds: true}, []string{`class="lost" width="80.00%"`, `class="fall binds"`}, []string{"roof", "span"}},
		{Rung{Carried: 0.5, Was: true}, []string{`class="was"`}, []string{"fall"}},
		{Rung{Absent: true}, []string{`class="absent" width="100.00%"`}, []string{"fall"}},
		{Rung{}, nil, []string{"rect"}},
	} {
		svg := string(c.bar.Track())
		for _, s := range c.has {
			if !strings.Contains(svg, s) {
				t.Errorf("%+v: no %s in %s", c.bar, s, svg)
			}
		}
		for _, s := range c.none {
			if strings.Contains(svg, s) {
				t.Errorf("%+v: %s in %s", c.bar, s, svg)
			}
		}
	}
}

// TestUnlikeRungs: next to a rung that is hundreds of times faster a bar stays visible, and the caption
// mentions the logarithmic scale.
func TestUnlikeRungs(t *testing.T) {
	far := &Fall{Rungs: []Rung{{Carried: 1}, {Carried: 0.0048, Below: 1, Mark: 0.0044}, {Carried: 0.0023, Below: 0.0048, Mark: 0.0022}, {}}}
	w, logarithmic := far.drawn()
	if last := w.Rungs[2]; !logarithmic || last.Carried < 0.09 || last.Carried >= w.Rungs[1].Carried || w.Rungs[0].Carried != 1 || last.Mark > last.Carried || w.Rungs[3].Carried != 0 || far.Rungs[2].Carried != 0.0023 {
		t.Errorf("%+v", w.Rungs)
	}
	if b := far.Picture("Rungs."); !strings.Contains(b.Caption, "logarithmic") {
		t.Error(b.Caption)
	}
	if _, logarithmic := (&Fall{Rungs: []Rung{{Carried: 1}, {Carried: 0.5}}}).drawn(); logarithmic {
		t.Error("bars that can be seen are drawn as they are")
	}
}
