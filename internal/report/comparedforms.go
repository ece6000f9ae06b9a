package report

import (
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"io"
	"strings"

	blocks "thru/internal/doc/html"
	"thru/internal/doc/text"
	"thru/internal/measure"
	"thru/internal/unit"
)

//go:embed compared.html.tmpl
var comparedTemplate string

// ComparedText prints a comparison whose first line is the answer.
func ComparedText(w io.Writer, x *measure.Compared, o TextOptions) error {
	p, v := newPrinter(o), newCompared(x)
	answer := v.Answer
	if v.Changed != "" {
		answer += "; " + v.Changed
	}
	p.Loud(strings.TrimSuffix(bold+";"+text.ColourOf(v.Tone), ";"), answer)
	for _, s := range v.Tells {
		p.Wrap("", 0, "", s)
	}
	p.WriteByte('\n')
	for _, r := range v.Sides {
		p.Wrap("", 9, "  "+r.Name, r.Value)
	}
	p.titledGrid(v.Flows.Caption, v.Flows)
	if len(v.Reasons) > 0 {
		p.WriteByte('\n')
	}
	for _, r := range v.Reasons {
		p.Broken("", gridIndent, r.Name+": "+r.Value)
	}
	p.titledGrid("what changed", v.Facts)
	p.titledRows("held back by", v.Causes)
	p.rails(v)
	p.titledGrid("settings that differ", v.Settings)
	p.titledGrid("gates", v.Gates)
	if n := len(v.Minor.Rows); n > 0 {
		fmt.Fprintf(p, "\nand %s that hardly %s on a rate, see --html or --json\n", unit.Plural(n, "fact"), map[bool]string{true: "bears", false: "bear"}[n == 1])
	}
	if len(v.Alone)+len(v.Warnings) > 0 {
		p.WriteByte('\n')
	}
	for _, s := range v.Alone[:min(len(v.Alone), fleetLines)] {
		p.Wrap("", 0, "", s)
	}
	if n := len(v.Alone) - fleetLines; n > 0 {
		fmt.Fprintf(p, "and %s, see --html or --json\n", unit.Plural(n, "more flow"))
	}
	for _, s := range v.Warnings {
		p.Wrap(yellow, 9, "warning:", s)
	}
	return p.Flush(w)
}

// rails prints the guardrails that changed, and names the others.
func (p *printer) rails(v *compared) {
	if len(v.Rails.Rows) == 0 && v.AsBefore != "" {
		fmt.Fprintf(p, "\n%s\n", p.Paint(bold, "beside the rate"))
	}
	p.titledGrid("beside the rate (more is worse)", v.Rails)
	if v.AsBefore != "" {
		p.Broken("", gridIndent, v.AsBefore)
	}
}

// titledGrid prints a table that has rows below its title.
func (p *printer) titledGrid(title string, g grid) {
	if len(g.Rows) == 0 {
		return
	}
	p.WriteByte('\n')
	if title != "" {
		fmt.Fprintln(p, p.Paint(bold, title))
	}
	p.Grid(g)
}

func (p *printer) titledRows(title string, rows []row) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(p, "\n%s\n", p.Paint(bold, title))
	for _, r := range rows {
		p.Broken("", gridIndent, r.Name+": "+r.Value)
	}
}

// comparedPage is a comparison with what only a page has.
type comparedPage struct {
	*compared
	Style   template.CSS
	Picture *picture
	Signed  *Signature
}

// ComparedHTML prints a comparison as one page that needs nothing else.
func ComparedHTML(w io.Writer, x *measure.Compared, o HTMLOptions) error {
	t, err := blocks.Parse(nil, comparedTemplate, fleetTemplate)
	if err != nil {
		return err
	}
	p := comparedPage{compared: newCompared(x), Style: blocks.Style(), Picture: comparedPicture(x)}
	if s := o.Signed; s != nil {
		p.Signed = &Signature{clean(s.Host), clean(s.Key), clean(s.Verify)}
	}
	return blocks.Write(w, t, p)
}

// Title is the answer as the page's heading.
func (v *compared) Title() template.HTML { return wholeFigures(v.Answer) }

// Made says by which thru and when.
func (v *compared) Made() string { return join("thru "+v.Thru, prefixed("compared ", v.When)) }

// Beside are the facts that changed, below it.
func (v *compared) Beside() template.HTML { return wholeFigures(v.Changed) }

// wholeFigures is a text for a page, in which no line breaks within a figure.
func wholeFigures(text string) template.HTML {
	return template.HTML(html.EscapeString(fixed(text)))
}

// Badge is the class of the outcome's badge: what is the same is fine too.
func (v *compared) Badge() string {
	switch v.Tone {
	case toneGood, toneNone:
		return "good"
	case toneBad:
		return "bad"
	}
	return "none"
}

// ComparedMarkdown prints a comparison as text with headings and tables.
func ComparedMarkdown(w io.Writer, x *measure.Compared, o MarkdownOptions) error {
	v, m := newCompared(x), newMarkup()
	m.Head(1, v.Answer)
	m.para(v.Changed)
	for _, s := range v.Tells {
		m.para(s)
	}
	m.pairs("", v.Sides)
	m.part("The change", v.Flows, flatRows(v.Reasons))
	m.part("What changed beside it", v.Facts, flatRows(v.Causes))
	m.part("Facts that hardly bear on a rate", v.Minor, nil)
	var same []string
	if v.AsBefore != "" {
		same = []string{v.AsBefore}
	}
	m.part("Beside the rate", v.Rails, same)
	m.part("Settings that differ", v.Settings, nil)
	m.part("Gates", v.Gates, nil)
	m.part("Measured on one side only", grid{}, v.Alone)
	m.part("Warnings", grid{}, v.Warnings)
	if v.Command != "" {
		m.Head(2, "Reproduce")
		m.code([]string{v.Command})
	}
	m.para(v.Made())
	if s := o.Signed; s != nil {
		m.para("Signed by " + clean(s.Host) + " with the key " + clean(s.Key) + ". To check it:")
		m.code([]string{clean(s.Verify)})
	}
	return m.Flush(w)
}

// part is a section; one without a row and a line is none.
func (m *markup) part(title string, g grid, lines []string) {
	if len(g.Rows)+len(lines) == 0 {
		return
	}
	m.Head(2, title)
	m.Table(g)
	m.list(lines)
}

func flatRows(rows []row) (lines []string) {
	for _, r := range rows {
		lines = append(lines, r.Name+": "+r.Value)
	}
	return lines
}
