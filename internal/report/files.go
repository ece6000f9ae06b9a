package report

import (
	"slices"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/capture"
	"thru/internal/report/why"
)

// What is special about results of captured files: no test was made, so what
// belongs to tests is left out, and what packets never tell is said once.

// fileGaps are the reasons in few words why something of files was not checked.
func fileGaps(all []doc.Gap) (out []doc.Gap) {
	unseen := false
	for _, g := range all {
		switch {
		case g.Why == measure.NotInCapture, g.Why == measure.ReadNotInCapture:
			unseen = true
		case slices.Contains(g.Facts, "ceiling"):
			out = append(out, doc.Gap{Why: "--link-rate names the link's", Facts: []string{"ceiling"}})
		case slices.Contains(g.Facts, "time ratio"), slices.Contains(g.Facts, "steady state"): // the ceiling, and a warning, tell of them
		default:
			out = append(out, g)
		}
	}
	if unseen {
		out = append(out, doc.Gap{Why: "packets do not show it", Facts: []string{"CPU and memory of both ends", "what the programs read"}})
	}
	return out
}

// filed prints a result of files: the finding and the handshake come first, the
// causes that were ruled out last.
func (p *printer) filed(v *view) {
	doc.Print(p, why.Blocks(v.Why, true))
	var figures []doc.Row // of a single direction: they go on with those of its connection
	if len(v.Cells) == 1 {
		figures = v.Cells[0].Rows
	}
	doc.Print(p, capture.Blocks(v.Packets, figures...))
	if len(v.Cells) > 1 {
		p.cells(v)
	}
	for i := range v.Why {
		var before *why.Diagnosis
		if i > 0 {
			before = &v.Why[i-1]
		}
		doc.Print(p, []doc.Block{doc.Pairs{Name: v.Why[i].Way, Rows: v.Why[i].Others(before, true)}})
	}
	left := *v
	if left.Missing = fileGaps(v.Missing); v.Silent {
		left.Missing = nil // of a connection that carried nothing there are no figures to miss
	}
	p.lists(&left)
}
