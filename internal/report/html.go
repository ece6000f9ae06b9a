package report

import (
	_ "embed"
	"io"

	"thru/internal/doc"
	blocks "thru/internal/doc/html"
	"thru/internal/measure"
)

// HTMLOptions say what a page has beside the result itself.
type HTMLOptions struct {
	Raw    bool       // the whole document inside, which Embedded reads back; the page may be larger than 1 MB then
	Signed *Signature // who signs the page; nil: nobody
}

// Signature is what a page says of the one who signs it.
type Signature = doc.Signature

// HTML prints a document as one page that needs nothing else: no script, no
// network, and without the raw result under 1 MB; that of an inventory has a row
// for each of its guests, and grows with them.
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
