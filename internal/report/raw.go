package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"thru/internal/doc"
	"thru/internal/fault"
	"thru/internal/measure"
)

// MaxPage limits what Embedded reads, in bytes: a page with the largest document in it.
const MaxPage = 2*MaxDocument + 2<<20

// A page embeds the document as gzipped, base64-encoded JSON in an element that a browser neither shows nor
// runs. All foreign text of a page is escaped, so it cannot contain this start tag.
const (
	rawBegin = `<template id="thru-result">`
	rawEnd   = `</template>`
	rawLine  = 120 // characters, so that an editor can open the page
)

// rawOf returns the document as the page embeds it.
func rawOf(d *measure.Document) (doc.Markup, error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := JSON(z, d); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", fmt.Errorf("report: packing the result: %w", err)
	}
	text := base64.StdEncoding.EncodeToString(packed.Bytes())
	var b bytes.Buffer
	b.WriteString(rawBegin)
	for len(text) > 0 {
		n := min(len(text), rawLine)
		b.WriteString("\n" + text[:n])
		text = text[n:]
	}
	b.WriteString("\n" + rawEnd)
	return doc.Markup(b.String()), nil
}

// Embedded reads the document from a page made with HTMLOptions.Raw. It does not trust the page: it limits
// sizes, and refuses a page without a document or with two.
func Embedded(r io.Reader) (*measure.Document, error) {
	const hint = "write the page with its result: `thru report --html FILE --with-raw`"
	refuse := func(err error) (*measure.Document, error) {
		return nil, fault.Failf(hint, "report: reading the result inside a page: %w", err)
	}
	page, err := io.ReadAll(io.LimitReader(r, MaxPage+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("report: reading a page: %w", err)
	case len(page) > MaxPage:
		return refuse(fmt.Errorf("more than %d MiB", MaxPage>>20))
	}
	_, rest, found := bytes.Cut(page, []byte(rawBegin))
	text, after, closed := bytes.Cut(rest, []byte(rawEnd))
	switch {
	case !found:
		return refuse(errors.New("the page has no result"))
	case !closed:
		return refuse(errors.New("it is truncated"))
	case bytes.Contains(after, []byte(rawBegin)):
		return refuse(errors.New("there are two"))
	}
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(text)))
	if err != nil {
		return refuse(err)
	}
	d, err := ReadJSON(z) // it limits the unpacked size
	if err != nil {
		return refuse(err)
	}
	return d, nil
}
