package report

import (
	"fmt"
	"io"
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/markdown"
	"thru/internal/measure"
	"thru/internal/unit"
)

// MarkdownOptions say what the text has beside the result itself.
type MarkdownOptions struct {
	Signed  *Signature // who signs it; nil: nobody
	Summary bool       // the answer alone, at most summaryLines
}

// Markdown prints a document as text with headings and tables (GitHub Flavored
// Markdown), in the order of the page and without its drawings.
func Markdown(w io.Writer, d *measure.Document, o MarkdownOptions) error {
	p, m := newPage(d), new(markdown.Printer)
	r := p.report()
	r.Signed = o.Signed.Clean()
	if o.Summary {
		m.Top(r)
		doc.Print(m, p.brief())
		shorten(m)
		m.Bottom(r)
	} else {
		m.Report(r)
	}
	return m.Flush(w)
}

// Bounds of a summary, which is for a ticket, in lines.
const (
	summaryLines = 40
	footLines    = 11 // with a signature
)

// shorten keeps of what was printed as many whole blocks as leave room for the foot
// of a summary, and says what is left out.
func shorten(m *markdown.Printer) {
	left := summaryLines - footLines - 2
	var kept strings.Builder
	blocks := strings.SplitAfter(m.String(), "\n\n")
	for i, b := range blocks {
		if left -= strings.Count(b, "\n"); left < 0 {
			fmt.Fprintf(&kept, "%s of the answer left out: the whole report has them.\n\n", unit.Plural(len(blocks)-1-i, "paragraph"))
			break
		}
		kept.WriteString(b)
	}
	m.Reset()
	m.WriteString(kept.String())
}
