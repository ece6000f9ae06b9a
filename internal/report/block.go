package report

import (
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/text"
)

// Short names of the block model, for what is not yet made of blocks.
type (
	row    = doc.Row
	titled = doc.Pairs
	grid   = doc.Table
	column = doc.Column
	tone   = doc.Tone
	chart  = doc.Chart
	legend = doc.Legend
)

const (
	toneNone = doc.ToneNone
	toneOpen = doc.ToneOpen
	toneGood = doc.ToneGood
	toneWarn = doc.ToneWarn
	toneBad  = doc.ToneBad

	bold   = text.Bold
	red    = text.Red
	green  = text.Green
	yellow = text.Yellow

	gridIndent = text.Indent
)

func clean(s string) string               { return doc.Clean(s) }
func cleanUpTo(s string, most int) string { return doc.CleanUpTo(s, most) }
func join(parts ...string) string         { return doc.Join(parts...) }
func nonEmpty(all ...string) []string     { return doc.NonEmpty(all...) }
func colon(what, why string) string       { return strings.Join(nonEmpty(what, why), ": ") }
func orDash(s string) string              { return doc.OrDash(s) }
func bracket(s string) string             { return doc.Bracket(s) }
func prefixed(prefix, s string) string    { return doc.Prefixed(prefix, s) }
func pad(s string, n int) string          { return text.Pad(s, n) }

// TextOptions say how Text lays out its lines.
type TextOptions = text.Options

// printer prints on a terminal what is not yet made of blocks.
type printer struct{ *text.Printer }

func newPrinter(o TextOptions) *printer { return &printer{text.New(o)} }

// table is one of figures.
type table = doc.Table

// figureColumns name the rows, and then figures.
func figureColumns(names ...string) []doc.Column {
	all := make([]doc.Column, len(names))
	for i, n := range names {
		all[i] = doc.Column{Name: n, Right: i > 0}
	}
	return all
}

// section is a part with a title.
func section(title string, body ...doc.Block) doc.Block { return doc.Section{Title: title, Body: body} }

// onPages is a body that a terminal has no room for.
func onPages(body ...doc.Block) doc.Block { return doc.Only{For: doc.Pages, Body: body} }

// onTerminal is a body that pages say otherwise.
func onTerminal(body ...doc.Block) doc.Block { return doc.Only{For: doc.Terminal, Body: body} }

// HTMLOptions say what a page has beside the result itself.
type HTMLOptions struct {
	Raw    bool       // the whole document inside, which Embedded reads back; the page may be larger than 1 MB then
	Signed *Signature // who signs the page; nil: nobody
}

// Signature is what a page says of the one who signs it.
type Signature = doc.Signature

// signature is one made safe to print.
func signature(s *Signature) *Signature {
	if s == nil {
		return nil
	}
	return &Signature{Host: clean(s.Host), Key: clean(s.Key), Verify: clean(s.Verify)}
}
