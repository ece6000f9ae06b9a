package report

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/doc/draw"
)

// TestPicture: the page begins with the answer as bars: each direction against its ceiling, the rungs or the
// layers; if the answer has no rate there are none.
func TestPicture(t *testing.T) {
	for name, want := range map[string]struct {
		bars, marks int
		legend      string
	}{
		"verdict":   {2, 2, "carried, ceiling, 95% interval or range"},
		"localhost": {1, 0, "carried, 95% interval or range"},
		"ladder":    {1, 0, "carried, 95% interval or range"},
		"rungs":     {4, 2, "carried, the rung below, generator-limited, ceiling"},
		"transfer":  {6, 0, "carried, limit, not checked"},
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
			p = &draw.Picture{}
		}
		marks := slices.DeleteFunc(slices.Clone(p.Rows), func(r draw.Rung) bool { return r.Mark == 0 })
		if len(marks) != want.marks || strings.Join(names(p), ", ") != want.legend {
			t.Errorf("%s: %d ceilings, %q", name, len(marks), names(p))
		}
	}
}

func names(p *draw.Picture) (all []string) {
	for _, l := range p.Legend {
		all = append(all, l.Name)
	}
	return all
}
