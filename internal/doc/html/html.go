// Package html prints blocks as a self-contained page: no script, no network.
//
// It needs no template engine: one that calls methods by name keeps the linker from dropping any exported
// method of the program (cmd/link, deadcode), which is a sixth of the binary.
package html

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	escape "html"
	"io"
	"strings"

	"thru/internal/doc"
)

//go:embed page.css
var style string

// Style returns the style sheet of all pages.
func Style() string { return style }

// Print prints a whole report as one page.
func Print(w io.Writer, r doc.Report) error {
	var p printer
	p.page(r)
	if _, err := w.Write(dress(p.out.Bytes())); err != nil {
		return fmt.Errorf("report: writing the page: %w", err)
	}
	return nil
}

// printer writes the elements of each kind of block.
type printer struct {
	level int // sections around the current block
	out   bytes.Buffer
}

// put adds markup. The format is our own; of the arguments only numbers and doc.Markup stay as they are, all
// others are escaped, so that foreign text never adds an element or an attribute.
func (p *printer) put(format string, args ...any) {
	for i, a := range args {
		switch a.(type) {
		case doc.Markup, int, float64:
		default:
			args[i] = escape.EscapeString(fmt.Sprint(a))
		}
	}
	fmt.Fprintf(&p.out, format, args...)
}

// with adds markup of one text, unless that is empty.
func (p *printer) with(format, text string) {
	if text != "" {
		p.put(format, text)
	}
}

// each adds markup of each text.
func (p *printer) each(format string, texts []string) {
	for _, s := range texts {
		p.put(format, doc.Fixed(s))
	}
}

// code adds lines to copy.
func (p *printer) code(lines ...string) {
	p.put("<pre><code>%s</code></pre>", strings.Join(lines, "\n"))
}

// lines adds a text of several lines.
func (p *printer) lines(texts []string) {
	for i, s := range texts {
		if i > 0 {
			p.put("<br>")
		}
		p.put("%s", doc.Fixed(s))
	}
}

// class returns a class attribute; nothing without a class.
func class(names ...string) doc.Markup {
	all := strings.Join(doc.NonEmpty(names...), " ")
	if all == "" {
		return ""
	}
	return doc.Markup(` class="` + escape.EscapeString(all) + `"`)
}

// when returns a name if a condition holds.
func when(holds bool, name string) string {
	if holds {
		return name
	}
	return ""
}

func (p *printer) page(r doc.Report) {
	p.put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>%s: %s</title>
<style>%s</style>
</head>
<body>
<header>
<p class="over">%s`, r.Command, cmp.Or(r.Answer, "no result"), doc.Markup(style), r.Command)
	p.with(" <span>%s</span>", r.When)
	p.put("</p>\n<h1>%s</h1>\n", doc.Fixed(cmp.Or(r.Answer, "No result")))
	p.each("<p class=\"back\">%s</p>\n", r.More)
	p.put("</header>\n<main>\n")
	doc.Print(p, r.Body)
	p.put("</main>\n<footer><p>%s</p>\n", r.Foot)
	if s := r.Signed; s != nil {
		p.put("<p>Signed by %s with the key <code>%s</code>.", s.Host, s.Key)
		p.with(" To check that no byte has changed since: <code>%s</code>", s.Verify)
		p.put("</p>\n")
	}
	if r.Kept != "" {
		p.put("<p>The page contains the whole result: extract it with <code>thru report FILE --json</code>.</p>\n")
	}
	p.put("</footer>\n")
	if r.Kept != "" {
		p.put("%s\n", r.Kept)
	}
	p.put("</body>\n</html>\n")
}

// Face returns HTML: a page on screen and paper.
func (p *printer) Face() doc.Audience { return doc.HTML }

// Section prints a section; a nested one has a title of lower rank.
func (p *printer) Section(b doc.Section) {
	title := doc.Fixed(b.Title)
	if p.level > 0 {
		p.put("<h3>%s</h3>\n", title)
	} else {
		p.put("<section>\n<h2>%s</h2>\n", title)
	}
	p.level++
	doc.Print(p, b.Body)
	if p.level--; p.level == 0 {
		p.put("</section>\n")
	}
}

func (p *printer) Para(b doc.Para) { p.put("<p>%s</p>\n", doc.Fixed(b.Text)) }

func (p *printer) List(b doc.List) {
	p.put("<ul%s>", class(when(b.Notes, "notes")))
	p.each("<li>%s</li>", b.Lines)
	p.put("</ul>\n")
}

func (p *printer) Code(b doc.Code) {
	p.code(append(b.Lines[:len(b.Lines):len(b.Lines)], "")...)
	p.put("\n")
}

func (p *printer) Pairs(b doc.Pairs) {
	p.put("<table class=\"pair\">\n")
	p.with("<caption>%s</caption>\n", b.Name)
	p.put("<tbody>")
	for _, r := range b.Rows {
		p.put("<tr><th scope=\"row\">%s</th><td%s>%s</td></tr>\n", r.Name, unknown(r.Value), doc.Fixed(r.Value))
	}
	p.put("</tbody>\n</table>\n")
}

// unknown returns the class of a reason why a value is unknown.
func unknown(value string) doc.Markup { return class(when(doc.Unknown(value), "unknown")) }

func (p *printer) Charts(b doc.Charts) {
	p.put(`<div class="charts">`)
	for _, c := range b.Charts {
		p.put("\n<figure>\n")
		p.caption(c.Caption, c.Legend)
		p.put("%s\n</figure>\n", c.SVG)
	}
	p.put("</div>\n")
}

func (p *printer) Bars(b doc.Bars) {
	p.put("<figure class=\"bars\">\n")
	p.caption(b.Caption, b.Legend)
	p.put("<ul>")
	for _, r := range b.Rows {
		p.put("<li><p><span>%s</span> <span>%s</span></p>%s</li>\n", r.Name, doc.Fixed(r.Value), r.Track)
	}
	p.put("</ul>\n</figure>\n")
}

// caption adds the caption of a figure with its legend.
func (p *printer) caption(text string, legend []doc.Legend) {
	p.put("<figcaption>%s\n<ul class=\"legend\">", text)
	for _, l := range legend {
		p.put("<li>%s %s</li>", l.Key, l.Name)
	}
	p.put("</ul></figcaption>\n")
}

// Details prints a part that the reader unfolds.
func (p *printer) Details(b doc.Details) {
	p.put("<details%s%s><summary>%s", doc.Markup(when(b.Open, " open")), class(when(b.Brief, "brief-print")), b.Title)
	p.with(` <span class="count">%s</span>`, b.Note)
	p.with(`<span class="paper">: %s</span>`, b.Paper)
	p.put("</summary>\n")
	doc.Print(p, b.Body)
	p.put("</details>\n")
}

func (p *printer) SideBySide(b doc.SideBySide) {
	p.put(`<div class="pairs">`)
	doc.Print(p, b.Body)
	p.put("</div>\n")
}

func (p *printer) Filter(b doc.Filter) {
	p.put("<div class=\"guests\">\n<p class=\"filter\">")
	for _, c := range b.Choices {
		p.put(`<label><input type="checkbox"%s> %s</label> `, class(c.Class), c.Text)
	}
	p.put("</p>\n")
	doc.Print(p, b.Body)
	p.put("</div>\n")
}

func (p *printer) Card(b doc.Card) {
	p.put("<article%s>\n<h3>%s", class("finding", string(b.Tone)), b.Name)
	p.with(` <span class="sure">%s</span>`, b.Badge)
	p.with(` <span class="where">%s</span>`, b.Where)
	p.put("</h3>\n")
	p.with("<p>%s</p>\n", doc.Fixed(b.Text))
	if len(b.Facts) > 0 {
		p.put(`<table class="pair"><tbody>`)
		for _, f := range b.Facts {
			p.fact(f)
		}
		p.put("</tbody></table>\n")
	}
	p.put("</article>\n")
}

// fact adds a row of a card, if it is for pages.
func (p *printer) fact(f doc.Fact) {
	if f.For != 0 && f.For&doc.HTML == 0 {
		return
	}
	p.put(`<tr><th scope="row">%s</th><td>`, f.Name)
	p.lines(f.Lines)
	if len(f.Code) > 0 {
		p.code(f.Code...)
	}
	p.put("</td></tr>\n")
}

func (p *printer) Notice(b doc.Notice) {
	p.put("<section%s><h2>%s</h2><ul>", class("box", string(b.Tone)), b.Title)
	p.each("<li>%s</li>", b.Lines)
	p.put("</ul></section>\n")
}

func (p *printer) Brief(b doc.Brief) {
	p.put("<section class=\"brief\" aria-label=\"In short\">\n<dl>\n")
	if b.Verdict != nil {
		p.verdict(*b.Verdict)
	}
	for _, r := range b.Rows {
		p.put("<div><dt>%s</dt><dd>", r.Name)
		for _, i := range r.Items {
			p.put("<p>%s</p>", doc.Fixed(i.Text))
			if len(i.Commands) > 0 {
				p.code(append(i.Commands[:len(i.Commands):len(i.Commands)], "")...)
			}
		}
		p.put("</dd></div>\n")
	}
	p.put("</dl>\n</section>\n")
}

func (p *printer) verdict(v doc.Verdict) {
	p.put(`<div><dt>Verdict</dt><dd><strong%s>`, class("badge", cmp.Or(string(v.Tone), "none")))
	p.with(`<span aria-hidden="true">%s</span> `, v.Mark)
	p.put("%s</strong> %s", v.Word, doc.Fixed(v.Why))
	p.with("<p><b>To do:</b> %s</p>", doc.Fixed(v.Do))
	p.with(`<p class="but"><b>Caution:</b> %s</p>`, doc.Fixed(strings.Join(v.But, "; ")))
	for _, command := range v.How {
		p.put("<p>For a verdict, give the link rate:</p>")
		p.code(command)
	}
	p.put("</dd></div>\n")
}
