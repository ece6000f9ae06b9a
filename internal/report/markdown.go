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

// MarkdownOptions choose what the text contains in addition to the result.
type MarkdownOptions struct {
	Signed  *Signature // who signs it; nil: nobody
	Summary bool       // only the answer, at most summaryLines
}

// Markdown prints a document as text with headings and tables (GitHub Flavored Markdown), in the order of the
// page and without its charts.
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

// Limits of a summary, which is for a ticket, in lines.
const (
	summaryLines = 40
	footLines    = 11 // with a signature
)

// shorten keeps as many whole blocks as leave room for the foot of a summary, and counts the omitted ones.
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
