package report

import (
	"io"

	blocks "thru/internal/doc/html"
	"thru/internal/doc/markdown"
	"thru/internal/doc/text"
	"thru/internal/measure"
	"thru/internal/report/compared"
)

// ComparedText prints a comparison with the answer as its first line.
func ComparedText(w io.Writer, x *measure.Compared, o TextOptions) error {
	p, r := text.New(o), compared.Report(x)
	if len(r.More) > 0 { // one answer for a program to read
		r.Answer, r.More = r.Answer+"; "+r.More[0], nil
	}
	p.Report(r)
	return p.Flush(w)
}

// ComparedHTML prints a comparison as one self-contained page.
func ComparedHTML(w io.Writer, x *measure.Compared, o HTMLOptions) error {
	r := compared.Report(x)
	r.Signed = o.Signed.Clean()
	return blocks.Print(w, r)
}

// ComparedMarkdown prints a comparison as text with headings and tables.
func ComparedMarkdown(w io.Writer, x *measure.Compared, o MarkdownOptions) error {
	r, m := compared.Report(x), new(markdown.Printer)
	r.Signed = o.Signed.Clean()
	m.Report(r)
	return m.Flush(w)
}

// ComparedJSON prints the document of docs/comparison.md. It writes nothing if encoding fails.
func ComparedJSON(w io.Writer, x *measure.Compared) error { return encode(w, "comparison", x) }
