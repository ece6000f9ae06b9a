package facts

import (
	"io"

	"thru/internal/doc"
	"thru/internal/doc/text"
	"thru/internal/measure"
)

// factsWidth is the column of the names of facts.
const factsWidth = 22

// Print prints what is known of each end point of a document, one after the
// other: what was not checked is left out.
func Print(w io.Writer, d *measure.Document, o text.Options) error {
	p := text.New(o)
	for i := range d.EndPoints {
		h := NewHosts(&measure.Document{EndPoints: d.EndPoints[i : i+1]})
		p.WriteByte('\n')
		p.Wrap(text.Bold, 0, "", h.Names[0])
		for _, r := range h.Rows {
			if v := r.Values[0]; v != doc.NotChecked && v != "-" {
				p.Wrap("", factsWidth, "  "+r.Name, v)
			}
		}
	}
	return p.Flush(w)
}
