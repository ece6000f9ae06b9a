package report

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

// TestPicture: the answer stands at the top as bars: each direction against its
// ceiling, the rungs or the layers; where no rate is the answer there is none.
func TestPicture(t *testing.T) {
	for name, want := range map[string]struct {
		bars, marks int
		legend      string
	}{
		"verdict":   {2, 2, "carried, ceiling, 95% interval or range"},
		"localhost": {1, 0, "carried, 95% interval or range"},
		"ladder":    {1, 0, "carried, 95% interval or range"},
		"rungs":     {4, 2, "carried, the rung below, generator-limited, ceiling"},
		"transfer":  {6, 0, "carried, binds, not checked"},
		"mesh":      {},
		"rr":        {},
		"check":     {},
		"failed":    {},
	} {
		page := pageOf(t, goldenDocuments()[name])
		head, _, _ := strings.Cut(page, "<h2>")
		if n := strings.Count(head, `<svg class="track"`); n != want.bars || strings.Count(page, `<svg class="track"`) != n {
			t.Errorf("%s: %d bars at the top, want %d", name, n, want.bars)
		}
		p := newPage(goldenDocuments()[name]).Picture
		if p == nil {
			p = &picture{}
		}
		marks := slices.DeleteFunc(slices.Clone(p.Rows), func(r rungBar) bool { return r.Mark == 0 })
		if len(marks) != want.marks || strings.Join(names(p), ", ") != want.legend {
			t.Errorf("%s: %d ceilings, %q", name, len(marks), names(p))
		}
	}
}

func names(p *picture) (all []string) {
	for _, l := range p.Legend {
		all = append(all, l.Name)
	}
	return all
}

// TestBar: a bar has the length of its share, its ceiling and its interval where
// they are, and nothing where nothing was measured.
func TestBar(t *testing.T) {
	for _, c := range []struct {
		bar  rungBar
		has  []string
		none []string
	}{
		{rungBar{Carried: 0.5, Mark: 1, Low: 0.4, High: 0.6}, []string{`class="fall" width="50.00%"`, `class="roof" x1="100.00%"`, `x1="40.00%" y1="50%" x2="60.00%"`}, []string{"lost", "absent"}},
		{rungBar{Carried: 0.5, Below: 0.8, Binds: true}, []string{`class="lost" width="80.00%"`, `class="fall binds"`}, []string{"roof", "span"}},
		{rungBar{Carried: 0.5, Was: true}, []string{`class="was"`}, []string{"fall"}},
		{rungBar{Absent: true}, []string{`class="absent" width="100.00%"`}, []string{"fall"}},
		{rungBar{}, nil, []string{"rect"}},
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

// TestComparedPicture: a comparison shows each flow before and after, on one scale; a
// flow that was not measured after is no bar of nothing.
func TestComparedPicture(t *testing.T) {
	p := comparedPicture(comparisons()["compared-worse"])
	if p == nil || len(p.Rows) != 4 || !p.Rows[0].Was || p.Rows[1].Was || p.Rows[1].Carried >= p.Rows[0].Carried || p.Rows[1].Change != "-15.1%, worse" {
		t.Fatalf("%+v", p)
	}
	x := &measure.Compared{Cells: []measure.ComparedCell{{From: "a", To: "b", Before: &measure.Sample{Value: 1e9}}}}
	if p := comparedPicture(x); len(p.Rows) != 2 || !p.Rows[1].Absent || p.Rows[0].Carried != 1 {
		t.Errorf("%+v", p)
	}
	if p := comparedPicture(&measure.Compared{}); p != nil {
		t.Errorf("%+v", p)
	}
}
