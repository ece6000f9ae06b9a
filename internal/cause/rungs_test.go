package cause

import (
	"strings"
	"testing"

	"thru/internal/measure"
)

// alone is a rung of one machine against itself.
func alone(bps, link float64) *measure.Document {
	d := made{bps: bps, link: link}.document()
	c := &d.Cells[0]
	c.From, c.To, c.Spec.From, c.Spec.To, c.Runs[0].Flows[0].From, c.Runs[0].Flows[0].To = "a", "a", "a", "a", "a", "a"
	d.EndPoints = d.EndPoints[:1]
	return d
}

// A link is proved only by a machine that is clearly faster than it.
func TestRungs(t *testing.T) {
	path := func(bps, link float64) *measure.Document { return made{bps: bps, link: link}.document() }
	for name, tt := range map[string]struct {
		docs  []*measure.Document
		first []string // part of the first finding's summary of each; "" is none about a generator
	}{
		"slow machine below a link":         {[]*measure.Document{alone(5.8e9, 0), path(5.5e9, 10e9)}, []string{"", "can generate only 5.80 Gb/s: it cannot prove a link of 10.0 Gb/s"}},
		"fast machine below a link":         {[]*measure.Document{alone(40e9, 0), path(5.5e9, 10e9)}, []string{"", ""}},
		"slow machine, and the link full":   {[]*measure.Document{alone(11e9, 0), path(9.4e9, 10e9)}, []string{"", ""}},
		"two paths, of which none is below": {[]*measure.Document{path(900e6, 1e9), path(5.5e9, 10e9)}, []string{"", ""}},
		"a machine with a link rate stated": {[]*measure.Document{alone(5.8e9, 10e9)}, []string{"it cannot prove a link of 10.0 Gb/s"}},
		"a fast one":                        {[]*measure.Document{alone(40e9, 10e9)}, []string{""}},
		"nothing":                           {[]*measure.Document{{}}, []string{""}},
	} {
		for _, d := range tt.docs {
			Diagnose(d)
		}
		Rungs(tt.docs)
		for i, d := range tt.docs {
			got := ""
			if len(d.Findings) > 0 && d.Findings[0].Where.Place == measure.AtTool && strings.Contains(d.Findings[0].Summary, "cannot prove") {
				got = d.Findings[0].Summary
			}
			if (got == "") != (tt.first[i] == "") || !strings.Contains(got, tt.first[i]) {
				t.Errorf("%s, rung %d: %q, want %q", name, i+1, got, tt.first[i])
			}
			if got != "" && d.Cells[0].Findings[0].Summary != got {
				t.Errorf("%s: the cell begins with %q", name, d.Cells[0].Findings[0].Summary)
			}
		}
	}
}
