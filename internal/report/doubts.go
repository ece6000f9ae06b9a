package report

import (
	"slices"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/fleet"
	"thru/internal/report/result"
)

// doubts returns the reasons why a verdict is only an indication, for the flows that it judges.
func doubts(d *measure.Document) (all []string) {
	if over := fleet.OverText(d); over != "" {
		all = append(all, over)
	}
	first, back, _ := result.MainCells(d)
	var lines []string
	switch c, _ := fleet.Judged(d); {
	case c != nil && d.Ladder == nil && d.Command != "ladder":
		lines = cellLines(d, doubtsOf)
	case c != nil:
		lines = doubtsOfAll(c)
	default:
		lines = doubtsOfAll(first, back)
	}
	for _, s := range lines {
		if !slices.Contains(all, s) && len(all) < maxSummary {
			all = append(all, s)
		}
	}
	return all
}

// doubtsOfAll returns the doubts of some cells, which may be nil, each once.
func doubtsOfAll(cells ...*measure.Cell) (lines []string) {
	var all result.SharedTexts
	for _, c := range cells {
		if c == nil {
			continue
		}
		for _, w := range doubtsOf(c) {
			all.Add("", w, c)
		}
	}
	for _, x := range all.Joined() {
		lines = append(lines, x.Text())
	}
	return lines
}

// doubtsOf returns the warnings of a cell that matter for the verdict. The consequences of a busy host are
// among the warnings.
func doubtsOf(c *measure.Cell) (lines []string) {
	for _, w := range c.Coded {
		switch {
		case w.Code == measure.WindowCut, w.Code == measure.SingleRun && result.OfFile(c):
		case w.Code == measure.BusyHost:
			lines = append(lines, doc.Clean(w.Text))
		default:
			lines = append(lines, doc.Clean(w.String()))
		}
	}
	return lines
}

// maxSummary limits the lines of a row at the top of a page.
const maxSummary = 4
