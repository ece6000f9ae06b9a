package diagnose

import (
	"slices"

	"thru/internal/measure"
)

// Rungs looks at several results as the rungs of a ladder, the lowest first:
// where a machine measured against itself is no faster than 1.3 times what a
// link above it should carry, that comes first in the findings of the upper
// rung, which then proves nothing of the link. Diagnose comes before it.
//
// Only a rung on one machine is taken for the lower one: of two paths nobody
// says that one is a part of the other. The rungs of one document are a ladder
// of which the plan says so (stat.Ladder has judged them).
func Rungs(docs []*measure.Document) {
	var lower *measure.Document
	for _, d := range docs {
		if d.Ladder != nil {
			climb(d)
			continue
		}
		alone := isAlone(d)
		switch {
		case alone: // held against the link rate that was stated for it
			itself := *d
			itself.Cells = slices.Clone(d.Cells)
			addFirst(d, Generator(&itself, d))
			lower = d
		case lower != nil:
			addFirst(d, Generator(lower, d))
		}
	}
}

// climb looks at the rungs of one ladder, each with the measured one below it.
func climb(d *measure.Document) {
	below := ""
	for _, r := range d.Ladder.Rungs {
		if r.Limited && below != "" {
			upper := ofRung(d, r.Name)
			if _, best := strongest(upper, true); best != nil { // what the rung carried is what its best cell did
				upper.Cells = []measure.Cell{*best}
			}
			addFirst(d, Generator(ofRung(d, below), upper))
		}
		if r.Best != nil {
			below = r.Name
		}
	}
}

// ofRung is the document with the cells of one rung alone.
func ofRung(d *measure.Document, name string) *measure.Document {
	part := *d
	part.Cells = slices.DeleteFunc(slices.Clone(d.Cells), func(c measure.Cell) bool { return c.Rung != name })
	return &part
}

// isAlone tells whether all traffic of a document stayed on one machine.
func isAlone(d *measure.Document) bool {
	on := func(c measure.Cell) bool {
		f := newFlow(d, &c)
		return f == nil || f.onOneMachine()
	}
	return len(d.Cells) > 0 && !slices.ContainsFunc(d.Cells, func(c measure.Cell) bool { return !on(c) })
}

// addFirst puts findings before those of their direction and of the whole.
// What "nothing was found" said is then no longer true.
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
