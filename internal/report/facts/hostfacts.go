package facts

import (
	"io"

	"thru/internal/doc"
	"thru/internal/doc/text"
	"thru/internal/measure"
)

// factsWidth is the width of the column of names.
const factsWidth = 22

// Print prints the known facts of each end point of a document. It omits facts that were not checked.
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
