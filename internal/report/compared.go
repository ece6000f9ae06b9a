package report

import (
	"io"

	"thru/internal/doc"
	blocks "thru/internal/doc/html"
	"thru/internal/doc/markdown"
	"thru/internal/doc/text"
	"thru/internal/measure"
	"thru/internal/report/compared"
)

// ComparedText prints a comparison with the answer as its first line.
func ComparedText(w io.Writer, x *measure.Compared, o TextOptions) error {
	r := compared.Report(x)
	if len(r.More) > 0 { // one answer for a program to read
		r.Answer, r.More = r.Answer+"; "+r.More[0], nil
	}
	return PageText(w, r, o)
}

// ComparedHTML prints a comparison as one self-contained page.
func ComparedHTML(w io.Writer, x *measure.Compared, o HTMLOptions) error {
	return PageHTML(w, compared.Report(x), o.Signed)
}

// ComparedMarkdown prints a comparison as text with headings and tables.
func ComparedMarkdown(w io.Writer, x *measure.Compared, o MarkdownOptions) error {
	return PageMarkdown(w, compared.Report(x), o.Signed)
}

// ComparedJSON prints the document of docs/comparison.md. It writes nothing if encoding fails.
func ComparedJSON(w io.Writer, x *measure.Compared) error { return encode(w, "comparison", x) }

// PageText prints a separate document, such as a comparison or a month of a watch.
func PageText(w io.Writer, r doc.Report, o TextOptions) error {
	p := text.New(o)
	p.Report(r)
	return p.Flush(w)
}

// PageHTML prints it as one self-contained page.
func PageHTML(w io.Writer, r doc.Report, by *Signature) error {
	r.Signed = by.Clean()
	return blocks.Print(w, r)
}

// PageMarkdown prints it as text with headings and tables.
func PageMarkdown(w io.Writer, r doc.Report, by *Signature) error {
	m := new(markdown.Printer)
	r.Signed = by.Clean()
	m.Report(r)
	return m.Flush(w)
}

// PageJSON prints what it is made of.
func PageJSON(w io.Writer, x any) error { return encode(w, "document", x) }
