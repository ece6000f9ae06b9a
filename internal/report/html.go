package report

import (
	_ "embed"
	"io"

	"thru/internal/doc"
	blocks "thru/internal/doc/html"
	"thru/internal/measure"
)

// HTMLOptions choose what a page contains in addition to the result.
type HTMLOptions struct {
	Raw    bool       // embed the whole document, for Embedded; the page may then exceed 1 MB
	Signed *Signature // who signs the page; nil: nobody
}

// Signature describes the signer of a page.
type Signature = doc.Signature

// HTML prints a document as one self-contained page: no script, no network, and without the raw result under
// 1 MB. An inventory has a row for each of its guests, and grows with them.
func HTML(w io.Writer, d *measure.Document, o HTMLOptions) error {
	p := newPage(d)
	r := p.report()
	r.Signed = o.Signed.Clean()
	if o.Raw {
		raw, err := rawOf(d)
		if err != nil {
			return err
		}
		r.Kept = raw
	}
	return blocks.Print(w, r)
}
