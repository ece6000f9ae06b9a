// Package html prints blocks as a page that needs nothing else: no script, no network.
package html

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"

	"thru/internal/doc"
)

//go:embed blocks.html.tmpl
var blocksTemplate string

//go:embed page.css
var style string

// Style is the style sheet of all pages.
func Style() template.CSS { return template.CSS(style) }

// Parse makes a template of a page of texts, in which {{blocks .}} prints a list of blocks,
// and {{fixed .}} a text in which no line breaks within a figure.
func Parse(funcs template.FuncMap, texts ...string) (*template.Template, error) {
	t := template.New("page")
	all := template.FuncMap{"fixed": doc.Fixed, "blocks": func(blocks []doc.Block) (template.HTML, error) {
		p := printer{template: t}
		doc.Print(&p, blocks)
		return template.HTML(p.out.String()), p.err
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

// Write writes a page of a template.
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

// printer prints each kind of block by a template of its own, which escapes.
type printer struct {
	template *template.Template
	out      bytes.Buffer
	err      error
}

func (p *printer) print(name string, b doc.Block) {
	if p.err == nil {
		p.err = p.template.ExecuteTemplate(&p.out, name, b)
	}
}

func (p *printer) Section(b doc.Section) {
	if len(b.Body) > 0 {
		p.print("section", b)
	}
}

func (p *printer) Para(b doc.Para) {
	if b.Text != "" {
		p.print("para", b)
	}
}

func (p *printer) List(b doc.List) {
	if len(b.Lines) > 0 {
		p.print("list", b)
	}
}

func (p *printer) Code(b doc.Code) {
	if len(b.Lines) > 0 {
		p.print("code", b)
	}
}

func (p *printer) Table(b doc.Table) {
	if len(b.Rows) > 0 {
		p.print("grid", b.For(doc.HTML))
	}
}

func (p *printer) Pairs(b doc.Pairs) {
	if len(b.Rows) > 0 {
		p.print("pairs", b)
	}
}

func (p *printer) Charts(b doc.Charts) {
	if len(b.Charts) > 0 {
		p.print("charts", b)
	}
}

func (p *printer) Details(b doc.Details) {
	if len(b.Body) > 0 {
		p.print("details", b)
	}
}

func (p *printer) Only(b doc.Only) {
	if b.For&doc.HTML != 0 {
		doc.Print(p, b.Body)
	}
}
