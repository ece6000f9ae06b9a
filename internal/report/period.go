package report

import (
	"io"

	blocks "thru/internal/doc/html"
	"thru/internal/doc/markdown"
	"thru/internal/doc/text"
	"thru/internal/report/watch"
	"thru/internal/watch/record"
)

// PeriodText prints what a watch knows of its pairs in a time.
func PeriodText(w io.Writer, x record.Period, o TextOptions) error {
	p := text.New(o)
	p.Report(watch.Period(x))
	return p.Flush(w)
}

// PeriodHTML prints it as one self-contained page.
func PeriodHTML(w io.Writer, x record.Period, o HTMLOptions) error {
	r := watch.Period(x)
	r.Signed = o.Signed.Clean()
	return blocks.Print(w, r)
}

// PeriodMarkdown prints it as text with headings and tables.
func PeriodMarkdown(w io.Writer, x record.Period, o MarkdownOptions) error {
	r, m := watch.Period(x), new(markdown.Printer)
	r.Signed = o.Signed.Clean()
	m.Report(r)
	return m.Flush(w)
}

// PeriodJSON prints it as a document of the schema thru.watch/1.
func PeriodJSON(w io.Writer, x record.Period) error { return encode(w, "period", x) }
