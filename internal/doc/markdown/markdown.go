// Package markdown prints blocks as text with headings and tables (GitHub Flavored Markdown), without charts.
package markdown

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/unit"
)

// Printer collects blocks and escapes all text.
type Printer struct {
	strings.Builder
	level int // heading level above the next block
}

// Face returns Markdown.
func (m *Printer) Face() doc.Audience { return doc.Markdown }

// Flush writes all that was printed.
func (m *Printer) Flush(w io.Writer) error {
	if _, err := io.WriteString(w, m.String()); err != nil {
		return fmt.Errorf("report: writing Markdown: %w", err)
	}
	return nil
}

// Report prints a whole report.
func (m *Printer) Report(r doc.Report) {
	m.Top(r)
	doc.Print(m, r.Body)
	m.Bottom(r)
}

// Top prints the answer, above the blocks.
func (m *Printer) Top(r doc.Report) {
	m.Head(1, cmp.Or(r.Answer, "No result"))
	m.Para(doc.Para{Text: doc.Join(r.Command, r.When)})
	for _, s := range r.More {
		m.Para(doc.Para{Text: s})
	}
}

// Bottom prints the program and the signer.
func (m *Printer) Bottom(r doc.Report) {
	m.WriteString("---\n\n")
	m.Para(doc.Para{Text: r.Foot})
	if s := r.Signed; s != nil {
		m.Para(doc.Para{Text: "Signed by " + doc.Clean(s.Host) + " with the key " + doc.Clean(s.Key) + ". To check that no byte has changed since:"})
		m.Code(doc.Code{Lines: []string{doc.Clean(s.Verify)}})
	}
}

// Section prints a heading with its body.
func (m *Printer) Section(s doc.Section) { m.below(s.Title, s.Body) }

// Details prints a section: Markdown does not fold.
func (m *Printer) Details(d doc.Details) { m.below(doc.Join(d.Title, d.Note), d.Body) }

// below prints a body one level below its title.
func (m *Printer) below(title string, body []doc.Block) {
	m.level++
	m.Head(m.level+1, title)
	doc.Print(m, body)
	m.level--
}

// Para prints a paragraph, unless it is empty.
func (m *Printer) Para(b doc.Para) {
	if b.Text != "" {
		fmt.Fprintf(m, "%s\n\n", lineStart(Escape(b.Text)))
	}
}

// List prints the lines as list items.
func (m *Printer) List(b doc.List) {
	for _, s := range b.Lines {
		fmt.Fprintf(m, "- %s\n", lineStart(Escape(s)))
	}
	if len(b.Lines) > 0 {
		m.WriteByte('\n')
	}
}

// Code prints a block of lines, fenced by more backticks than any of them has. No element can begin in it,
// not even one that looks like the file's signature.
func (m *Printer) Code(b doc.Code) {
	if len(b.Lines) == 0 {
		return
	}
	lines := slices.Clone(b.Lines)
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], "<!--", "<\u200b!--")
	}
	fence := "```"
	for strings.Contains(strings.Join(lines, "\n"), fence) {
		fence += "`"
	}
	fmt.Fprintf(m, "%s\n%s\n%s\n\n", fence, strings.Join(lines, "\n"), fence)
}

// Table prints a table with its caption above, and a line about omitted rows below.
func (m *Printer) Table(t doc.Table) {
	t = t.For(doc.Markdown).WithoutEmpty()
	if len(t.Rows) == 0 {
		return
	}
	if t.Caption != "" {
		fmt.Fprintf(m, "**%s**\n\n", Escape(t.Caption))
	}
	head, rule := make([]string, len(t.Columns)), ""
	for i, c := range t.Columns {
		head[i] = c.Name
		if c.Right {
			rule += "| ---: "
		} else {
			rule += "| --- "
		}
	}
	m.row(head, len(head))
	m.WriteString(rule + "|\n")
	for _, r := range t.Rows {
		m.row(r, len(head))
	}
	m.WriteByte('\n')
	m.Para(doc.Para{Text: t.More})
}

func (m *Printer) row(cells []string, n int) {
	for i := range n {
		s := ""
		if i < len(cells) {
			s = Escape(cells[i])
		}
		m.WriteString("| " + s + " ")
	}
	m.WriteString("|\n")
}

// Pairs prints a table of names and values.
func (m *Printer) Pairs(b doc.Pairs) {
	t := doc.Table{Caption: b.Name, Columns: make([]doc.Column, 2)}
	for _, r := range b.Rows {
		t.Rows = append(t.Rows, []string{r.Name, r.Value})
	}
	m.Table(t)
}

// Matrix prints a table, unless it is too wide.
func (m *Printer) Matrix(b doc.Matrix) {
	if len(b.Cols) > mostColumns {
		return
	}
	t := doc.Table{Columns: []doc.Column{{Name: b.Unit}}}
	for _, c := range b.Cols {
		t.Columns = append(t.Columns, doc.Column{Name: c})
	}
	for i, cells := range b.Cells {
		row := []string{b.Rows[i]}
		for _, c := range cells {
			row = append(row, c.Text)
		}
		t.Rows = append(t.Rows, row)
	}
	m.Table(t)
}

// mostColumns is the maximum width of a matrix.
const mostColumns = 16

// SideBySide prints the blocks one after the other.
func (m *Printer) SideBySide(b doc.SideBySide) { doc.Print(m, b.Body) }

// Filter prints its body: Markdown cannot filter.
func (m *Printer) Filter(b doc.Filter) { doc.Print(m, b.Body) }

// Card prints a heading with a list of its facts.
func (m *Printer) Card(b doc.Card) {
	m.Head(m.level+2, b.Name+doc.Prefixed(" ", doc.Bracket(doc.Join(b.Badge, b.Where))))
	m.Para(doc.Para{Text: b.Text})
	for _, f := range b.Facts {
		if f.For != 0 && f.For&doc.Markdown == 0 {
			continue
		}
		switch {
		case len(f.Lines) == 1:
			m.Para(doc.Para{Text: doc.Prefixed(upperFirst(f.Name)+": ", f.Lines[0])})
		case len(f.Lines) > 1:
			m.Para(doc.Para{Text: upperFirst(f.Name) + ":"})
			m.List(doc.List{Lines: f.Lines})
		case len(f.Code) > 0:
			m.Para(doc.Para{Text: upperFirst(f.Name) + ":"})
		}
		m.Code(doc.Code{Lines: f.Code})
	}
}

func upperFirst(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Notice prints a section with its lines.
func (m *Printer) Notice(b doc.Notice) {
	m.below(b.Title, []doc.Block{doc.List{Lines: b.Lines}})
}

// Brief prints a paragraph for each row.
func (m *Printer) Brief(b doc.Brief) {
	if v := b.Verdict; v != nil {
		fmt.Fprintf(m, "**Verdict:** **%s** %s\n\n", Escape(strings.TrimSpace(v.Mark+" "+v.Word)), Escape(v.Why))
		m.Para(doc.Para{Text: doc.Prefixed("To do: ", v.Do)})
		m.Para(doc.Para{Text: doc.Prefixed("Caution: ", strings.Join(v.But, "; "))})
		if len(v.How) > 0 {
			m.Para(doc.Para{Text: "For a verdict, give the link rate:"})
			m.Code(doc.Code{Lines: v.How})
		}
	}
	for _, r := range b.Rows {
		fmt.Fprintf(m, "**%s:** ", Escape(r.Name))
		for _, i := range r.Items {
			m.Para(doc.Para{Text: i.Text})
			m.Code(doc.Code{Lines: i.Commands})
		}
	}
}

// Bars prints nothing: tables have the figures.
func (m *Printer) Bars(doc.Bars) {}

// Charts prints nothing.
func (m *Printer) Charts(doc.Charts) {}

// Head begins a section; level is 1 to 6.
func (m *Printer) Head(level int, text string) {
	fmt.Fprintf(m, "%s %s\n\n", strings.Repeat("#", level), Escape(text))
}

// Escape makes text harmless: no element, link, table or emphasis. An underscore within a word has no effect
// in Markdown and stays as it is.
func Escape(s string) string {
	s = harmless().Replace(s)
	return edge().ReplaceAllStringFunc(s, func(found string) string { return strings.ReplaceAll(found, "_", `\_`) })
}

// harmless replaces what Markdown gives a meaning.
var harmless = unit.Once(func() *strings.Replacer {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`,
		"&", "&amp;", "<", "&lt;", "\n", " ", "://", ":&#8203;//", "www.", "www&#8203;.", "WWW.", "WWW&#8203;.", "@", "@&#8203;")
})

// edge matches underscores that are not between two letters or digits.
var edge = unit.Pattern(`(^|[^0-9A-Za-z])_+|_+([^0-9A-Za-z]|$)`)

// lineStart escapes the start of a line that would be a list or a quotation.
func lineStart(s string) string {
	if strings.IndexAny(s, "-+=>#") == 0 {
		return `\` + s
	}
	if n := strings.IndexAny(s, ".)"); n > 0 && strings.Trim(s[:n], "0123456789") == "" && strings.HasPrefix(s[n+1:]+" ", " ") {
		return s[:n] + `\` + s[n:]
	}
	return s
}
