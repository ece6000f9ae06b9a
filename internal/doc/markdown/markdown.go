// Package markdown prints blocks as text with headings and tables (GitHub Flavored Markdown), without charts.
package markdown

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"thru/internal/doc"
)

// Printer collects blocks. All text that goes in is escaped here.
type Printer struct {
	strings.Builder
	level int // of the heading that the next block stands below
}

// Flush writes all that was printed.
func (m *Printer) Flush(w io.Writer) error {
	if _, err := io.WriteString(w, m.String()); err != nil {
		return fmt.Errorf("report: writing Markdown: %w", err)
	}
	return nil
}

// Section is a heading with its body.
func (m *Printer) Section(s doc.Section) { m.below(s.Title, s.Body) }

// Details are a section: nothing folds.
func (m *Printer) Details(d doc.Details) { m.below(d.Title, d.Body) }

func (m *Printer) below(title string, body []doc.Block) {
	if len(body) == 0 {
		return
	}
	m.level++
	m.Head(m.level+1, title)
	doc.Print(m, body)
	m.level--
}

// Para is a paragraph; one without words is none.
func (m *Printer) Para(b doc.Para) {
	if b.Text != "" {
		fmt.Fprintf(m, "%s\n\n", lineStart(Escape(b.Text)))
	}
}

// List is a line for each.
func (m *Printer) List(b doc.List) {
	for _, s := range b.Lines {
		fmt.Fprintf(m, "- %s\n", lineStart(Escape(s)))
	}
	if len(b.Lines) > 0 {
		m.WriteByte('\n')
	}
}

// Code is a block of lines, fenced by more ticks than any of them has. No
// element begins in it, not even what looks like a signature of the file.
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

// Table has its caption above it, and what it leaves out below.
func (m *Printer) Table(t doc.Table) {
	t = t.For(doc.Markdown)
	if len(t.Rows) == 0 || len(t.Columns) == 0 {
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

// Pairs is a table of names and values.
func (m *Printer) Pairs(b doc.Pairs) {
	t := doc.Table{Caption: b.Name, Columns: make([]doc.Column, 2)}
	for _, r := range b.Rows {
		t.Rows = append(t.Rows, []string{r.Name, r.Value})
	}
	m.Table(t)
}

// Charts are left out.
func (m *Printer) Charts(doc.Charts) {}

// Only prints what is meant for Markdown.
func (m *Printer) Only(b doc.Only) {
	if b.For&doc.Markdown != 0 {
		doc.Print(m, b.Body)
	}
}

// Head begins a section; level is 1 to 6.
func (m *Printer) Head(level int, text string) {
	fmt.Fprintf(m, "%s %s\n\n", strings.Repeat("#", level), Escape(text))
}

// Escape makes text harmless: no element, no link, no table, no emphasis of
// its own. An underscore within a word is none, and stays as it is.
func Escape(s string) string {
	s = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`,
		"&", "&amp;", "<", "&lt;", "\n", " ", "://", ":&#8203;//", "www.", "www&#8203;.", "WWW.", "WWW&#8203;.", "@", "@&#8203;").Replace(s)
	return edge().ReplaceAllStringFunc(s, func(found string) string { return strings.ReplaceAll(found, "_", `\_`) })
}

// edge finds underscores that are not between two letters or digits.
func edge() *regexp.Regexp { return regexp.MustCompile(`(^|[^0-9A-Za-z])_+|_+([^0-9A-Za-z]|$)`) }

// lineStart keeps a line from being a list or a quotation by how it begins.
func lineStart(s string) string {
	if strings.IndexAny(s, "-+=>#") == 0 {
		return `\` + s
	}
	if n := strings.IndexAny(s, ".)"); n > 0 && strings.Trim(s[:n], "0123456789") == "" && strings.HasPrefix(s[n+1:]+" ", " ") {
		return s[:n] + `\` + s[n:]
	}
	return s
}
