package groups

import (
	"slices"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/measurement"
	"thru/internal/measure"
)

// Rungs is cause.Rungs with this catalogue.
func Rungs(cat *diagnose.Catalogue, docs []*measure.Document) {
	var lower *measure.Document
	for _, d := range docs {
		if d.Ladder != nil {
			climb(cat, d)
			continue
		}
		alone := isAlone(cat, d)
		switch {
		case alone: // compared with the link rate that was stated for it
			itself := *d
			itself.Cells = slices.Clone(d.Cells)
			addFirst(d, measurement.Generators(cat, &itself, d))
			lower = d
		case lower != nil:
			addFirst(d, measurement.Generators(cat, lower, d))
		}
	}
}

// climb judges the rungs of one ladder, each with the measured one below it.
func climb(cat *diagnose.Catalogue, d *measure.Document) {
	below := ""
	for _, r := range d.Ladder.Rungs {
		if r.Limited && below != "" {
			upper := ofRung(d, r.Name)
			if _, best := measurement.Strongest(cat, upper, true); best != nil { // the best cell stands for what the rung carried
				upper.Cells = []measure.Cell{*best}
			}
			addFirst(d, measurement.Generators(cat, ofRung(d, below), upper))
		}
		if r.Best != nil {
			below = r.Name
		}
	}
}

// ofRung returns the document with only the cells of one rung.
func ofRung(d *measure.Document, name string) *measure.Document {
	part := *d
	part.Cells = slices.DeleteFunc(slices.Clone(d.Cells), func(c measure.Cell) bool { return c.Rung != name })
	return &part
}

// isAlone reports whether all traffic of a document stayed on one machine.
func isAlone(cat *diagnose.Catalogue, d *measure.Document) bool {
	on := func(c measure.Cell) bool {
		f := diagnose.NewFlow(cat, d, &c)
		return f == nil || f.OnOneMachine()
	}
	return len(d.Cells) > 0 && !slices.ContainsFunc(d.Cells, func(c measure.Cell) bool { return !on(c) })
}

// addFirst puts findings before those of their direction and of the whole document, and drops "nothing was found".
func addFirst(d *measure.Document, found []measure.Finding) {
	none := func(x measure.Finding) bool { return x.Cause == measure.CauseNone }
	for _, x := range slices.Backward(found) {
		d.Findings = slices.Insert(slices.DeleteFunc(d.Findings, none), 0, x)
		for i := range d.Cells {
			c := &d.Cells[i]
			if len(c.Findings) > 0 && c.From == x.Where.From && c.To == x.Where.To {
				c.Findings = slices.Insert(slices.DeleteFunc(c.Findings, none), 0, x)
			}
		}
	}
}
