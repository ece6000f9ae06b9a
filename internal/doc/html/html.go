// Package html prints blocks as a self-contained page: no script, no network.
package html

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"strings"

	"thru/internal/doc"
)

//go:embed blocks.html.tmpl
var blocksTemplate string

//go:embed page.html.tmpl
var pageTemplate string

//go:embed page.css
var style string

// Style returns the style sheet of all pages.
func Style() template.CSS { return template.CSS(style) }

// Parse parses the template of a page, in which {{blocks .}} prints a list of blocks, and {{fixed .}} a text
// without line breaks within a figure.
func Parse(funcs template.FuncMap, texts ...string) (*template.Template, error) {
	t := template.New("page")
	all := template.FuncMap{"fixed": doc.Fixed, "lines": func(s string) []string { return strings.Split(s, "\n") }, "typed": doc.Commands, "unknown": doc.Unknown, "page": func(a doc.Audience) bool { return a == 0 || a&doc.HTML != 0 }, "blocks": func(blocks []doc.Block) (template.HTML, error) {
		p := printer{template: t}
		return p.body(blocks), p.err
	}}
	maps.Copy(all, funcs)
	t.Funcs(all)
	for _, text := range append(texts, blocksTemplate) {
		if _, err := t.Parse(text); err != nil {
			return nil, fmt.Errorf("report: parsing the page: %w", err)
		}
	}
	return t, nil
}

// Print prints a whole report as one page.
func Print(w io.Writer, r doc.Report) error {
	t, err := Parse(nil, pageTemplate)
	if err != nil {
		return err
	}
	return Write(w, t, struct {
		doc.Report
		Style template.CSS
	}{r, Style()})
}

// Write executes a page's template and writes the page.
func Write(w io.Writer, t *template.Template, page any) error {
	var b bytes.Buffer
	err := t.Execute(&b, page)
	if err == nil {
		_, err = w.Write(dress(b.Bytes()))
	}
	if err != nil {
		return fmt.Errorf("report: writing the page: %w", err)
	}
	return nil
}

// printer prints each kind of block with its own template, which escapes.
type printer struct {
	template *template.Template
	level    int // sections around this one
	out      bytes.Buffer
	err      error
}

func (p *printer) print(name string, b any) {
	if p.err == nil {
		p.err = p.template.ExecuteTemplate(&p.out, name, b)
	}
}

// Face returns HTML: a page on screen and paper.
func (p *printer) Face() doc.Audience { return doc.HTML }

func (p *printer) Para(b doc.Para)     { p.print("para", b) }
func (p *printer) List(b doc.List)     { p.print("list", b) }
func (p *printer) Code(b doc.Code)     { p.print("code", b) }
func (p *printer) Matrix(b doc.Matrix) { p.print("matrix", b) }
func (p *printer) Pairs(b doc.Pairs)   { p.print("pairs", b) }
func (p *printer) Charts(b doc.Charts) { p.print("charts", b) }
func (p *printer) Bars(b doc.Bars)     { p.print("bars", b) }
func (p *printer) Card(b doc.Card)     { p.print("card", b) }
func (p *printer) Notice(b doc.Notice) { p.print("notice", b) }
func (p *printer) Brief(b doc.Brief)   { p.print("brief", b) }

func (p *printer) Table(b doc.Table) {
	p.print(map[bool]string{true: "sheet", false: "grid"}[b.Sheet], b.For(doc.HTML))
}

// Section prints a section; a nested one has a title of lower rank.
func (p *printer) Section(b doc.Section) {
	name := "section"
	if p.level > 0 {
		name = "subsection"
	}
	p.level++
	body := p.body(b.Body)
	p.level--
	p.around(name, b, body)
}

func (p *printer) Details(b doc.Details)       { p.around("details", b, p.body(b.Body)) }
func (p *printer) SideBySide(b doc.SideBySide) { p.around("beside", b, p.body(b.Body)) }
func (p *printer) Filter(b doc.Filter)         { p.around("filter", b, p.body(b.Body)) }

// body prints nested blocks.
func (p *printer) body(blocks []doc.Block) template.HTML {
	inner := printer{template: p.template, level: p.level}
	doc.Print(&inner, blocks)
	if p.err == nil {
		p.err = inner.err
	}
	return template.HTML(inner.out.String())
}

// around prints a block with its body.
func (p *printer) around(name string, b doc.Block, body template.HTML) {
	p.print(name, struct {
		Block doc.Block
		Body  template.HTML
	}{b, body})
}
