package report

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// MarkdownOptions say what the text has beside the result itself.
type MarkdownOptions struct {
	Signed  *Signature // who signs it; nil: nobody
	Summary bool       // the answer alone, at most summaryLines
}

// Markdown prints a document as text with headings and tables (GitHub Flavored
// Markdown), in the order of the page and without its drawings.
func Markdown(w io.Writer, d *measure.Document, o MarkdownOptions) error {
	p := newPage(d)
	m := &markdown{}
	m.top(&p)
	if o.Summary {
		m.shorten()
		m.foot(&p, o.Signed)
		return m.write(w)
	}
	m.transferred(p.Moving)
	m.disks(p.Disks)
	m.estates(p.Estates, false)
	m.tuned(p.Tuning)
	m.why(&p)
	m.captured(p.Packets)
	m.tried(&p)
	m.planned(&p)
	m.gates(&p)
	m.measured(&p)
	m.whereabouts(p.Placed)
	m.estates(p.Estates, true)
	m.open(&p)
	m.cells(&p)
	m.about(&p)
	m.foot(&p, o.Signed)
	return m.write(w)
}

func (m *markdown) write(w io.Writer) error {
	if _, err := io.WriteString(w, m.out.String()); err != nil {
		return fmt.Errorf("report: writing Markdown: %w", err)
	}
	return nil
}

// Bounds of a summary, which is for a ticket, in lines.
const (
	summaryLines = 40
	footLines    = 11 // with a signature
)

// shorten keeps of what was printed as many whole blocks as leave room for the foot
// of a summary, and says what is left out.
func (m *markdown) shorten() {
	left := summaryLines - footLines - 2
	var kept strings.Builder
	blocks := strings.SplitAfter(m.out.String(), "\n\n")
	for i, b := range blocks {
		if left -= strings.Count(b, "\n"); left < 0 {
			fmt.Fprintf(&kept, "%s of the answer left out: the whole report has them.\n\n", unit.Plural(len(blocks)-1-i, "paragraph"))
			break
		}
		kept.WriteString(b)
	}
	m.out.Reset()
	m.out.WriteString(kept.String())
}

// markdown collects blocks. All text that goes in is escaped here.
type markdown struct{ out strings.Builder }

// escape makes text harmless: no element, no link, no table, no emphasis of
// its own. An underscore within a word is none, and stays as it is.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`,
		"&", "&amp;", "<", "&lt;", "\n", " ", "://", ":&#8203;//", "www.", "www&#8203;.", "WWW.", "WWW&#8203;.", "@", "@&#8203;").Replace(s)
	return edge().ReplaceAllStringFunc(s, func(found string) string { return strings.ReplaceAll(found, "_", `\_`) })
}

// edge finds underscores that are not between two letters or digits.
func edge() *regexp.Regexp { return regexp.MustCompile(`(^|[^0-9A-Za-z])_+|_+([^0-9A-Za-z]|$)`) }

// head begins a section; level is 1 to 6.
func (m *markdown) head(level int, text string) {
	fmt.Fprintf(&m.out, "%s %s\n\n", strings.Repeat("#", level), escape(text))
}

// para is a paragraph; one without words is none.
func (m *markdown) para(text string) {
	if text != "" {
		fmt.Fprintf(&m.out, "%s\n\n", lineStart(escape(text)))
	}
}

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

func (m *markdown) list(lines []string) {
	for _, s := range lines {
		fmt.Fprintf(&m.out, "- %s\n", lineStart(escape(s)))
	}
	if len(lines) > 0 {
		m.out.WriteByte('\n')
	}
}

// code is a block of commands, fenced by more ticks than any of them has. No
// element begins in it, not even what looks like a signature of the file.
func (m *markdown) code(lines []string) {
	if len(lines) == 0 {
		return
	}
	lines = slices.Clone(lines)
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], "<!--", "<\u200b!--")
	}
	fence := "```"
	for strings.Contains(strings.Join(lines, "\n"), fence) {
		fence += "`"
	}
	fmt.Fprintf(&m.out, "%s\n%s\n%s\n\n", fence, strings.Join(lines, "\n"), fence)
}

// table prints rows below their heads; a caption stands above it.
func (m *markdown) table(caption string, head []string, right []bool, rows [][]string) {
	if len(rows) == 0 || len(head) == 0 {
		return
	}
	if caption != "" {
		fmt.Fprintf(&m.out, "**%s**\n\n", escape(caption))
	}
	m.row(head, len(head))
	for i := range head {
		if i < len(right) && right[i] {
			m.out.WriteString("| ---: ")
		} else {
			m.out.WriteString("| --- ")
		}
	}
	m.out.WriteString("|\n")
	for _, r := range rows {
		m.row(r, len(head))
	}
	m.out.WriteByte('\n')
}

func (m *markdown) row(cells []string, n int) {
	for i := range n {
		s := ""
		if i < len(cells) {
			s = escape(cells[i])
		}
		m.out.WriteString("| " + s + " ")
	}
	m.out.WriteString("|\n")
}

// pairs is a table of names and values.
func (m *markdown) pairs(caption string, rows []row) {
	var all [][]string
	for _, r := range rows {
		all = append(all, []string{r.Name, r.Value})
	}
	m.table(caption, []string{"", ""}, nil, all)
}

func (m *markdown) grid(g grid) {
	var head []string
	var right []bool
	for _, c := range g.Columns {
		head, right = append(head, c.Name), append(right, c.Right)
	}
	m.table(g.Caption, head, right, g.Rows)
	m.para(g.More)
}

func (m *markdown) tableOf(t table) {
	m.table(t.Caption, t.Head, nil, t.Rows)
	m.para(t.More)
}

// top is the answer and what a reader wants to know in the first minute.
func (m *markdown) top(p *page) {
	title := p.Answer
	if title == "" {
		title = "No result"
	}
	m.head(1, title)
	m.para(join("thru "+p.Command, p.Started))
	m.para(p.Back)
	a := p.First.Accepted
	if a.Word != "" { // an inventory has none
		fmt.Fprintf(&m.out, "**Verdict:** **%s** %s\n\n", escape(strings.TrimSpace(a.Mark()+" "+a.Word)), escape(a.Why))
	}
	m.para(prefixed("To do: ", a.Do))
	m.para(prefixed("With care: ", strings.Join(a.But, "; ")))
	if len(a.How) > 0 {
		m.para("To get one, say what the link is meant to carry:")
		m.code(a.How)
	}
	for _, r := range p.First.Rows {
		fmt.Fprintf(&m.out, "**%s:** ", escape(r.Name))
		for _, i := range r.Items {
			m.para(i.Text)
			m.code(i.Commands)
		}
	}
	if p.Error != nil {
		m.head(2, "Error")
		m.para(p.Error.Message)
		m.para(p.Error.Hint)
	}
	if p.Fleet != nil && len(p.Fleet.Failed) > 0 {
		m.head(2, "What failed")
		m.list(p.Fleet.Failed)
	}
}

// why is each direction's findings with their evidence.
func (m *markdown) why(p *page) {
	for _, w := range slices.Concat(p.Why, p.Judged) {
		title := "Why not more"
		if w.Way != "" {
			title += ", " + w.Way
		}
		m.head(2, title)
		for _, f := range w.Findings {
			m.finding(f)
		}
		m.table("Ruled out by the figures of this run", []string{"cause", "because"}, nil, pairRows(w.RuledOut))
		var open [][]string
		for _, u := range w.Open {
			open = append(open, []string{u.Cause, u.Fact, u.Why, orDash(u.Tests)})
		}
		m.table("Not checked: a fact is missing", []string{"cause", "missing", "why", "what would tell"}, nil, open)
	}
}

func pairRows(rows []row) (all [][]string) {
	for _, r := range rows {
		all = append(all, []string{r.Name, r.Value})
	}
	return all
}

func (m *markdown) finding(f finding) {
	m.head(3, f.Cause+" ("+join(f.Confidence, f.Where, prefixed("because of ", f.BecauseOf))+")")
	m.para(f.Summary)
	m.list(f.Evidence)
	m.para(prefixed("Cost: ", f.Effect))
	m.para(prefixed("Next: ", f.Next))
	m.para(prefixed("To do: ", strings.TrimSpace(f.Advice+" "+f.At)))
	m.code(f.Commands)
	m.para(prefixed("Risk: ", f.Risk))
	m.para(prefixed("Rule: ", f.Source))
}

// open is what was not judged: advice, warnings, facts that are missing.
func (m *markdown) open(p *page) {
	for _, part := range []struct {
		name  string
		lines []string
	}{{"Advice", p.Advice}, {"Warnings", p.Warnings}} {
		if len(part.lines) > 0 {
			m.head(2, part.name)
			m.list(part.lines)
		}
	}
	var rows [][]string
	for _, g := range slices.Concat(p.Missing, p.FactGaps) {
		rows = append(rows, []string{strings.Join(g.Facts, ", "), g.Why})
	}
	if len(rows) > 0 {
		m.head(2, "Not checked")
		m.table("", []string{"fact", "why"}, nil, rows)
	}
}

// about is who took part, how it was measured, and how to do it again.
func (m *markdown) about(p *page) {
	if p.Fleet != nil && len(p.Fleet.Points.Rows) > 0 {
		m.head(2, "End points")
		m.grid(p.Fleet.Points)
	}
	if len(p.Inventory.Names) > 0 {
		m.head(2, "Hosts and guests")
	}
	for _, part := range p.Inventory.Parts {
		m.facts(part.Name, p.Inventory.Names, part.Rows)
	}
	m.facts("All facts of the end points when they were measured", p.Hosts.Names, p.Hosts.Rows)
	m.para(p.Hosts.More)
	for _, i := range p.Interfaces {
		m.pairs(i.Name, i.Rows)
	}
	if len(p.Method) > 0 {
		m.head(2, "How this was measured")
		m.list(p.Method)
	}
	if len(p.Again.Steps) > 0 {
		m.head(2, "Reproduce")
	}
	for _, s := range p.Again.Steps {
		m.para("At " + s.At + spaced(bracket(s.Says)) + ":")
		m.code([]string{s.Command})
	}
	m.pairs("The plan", p.Again.Plan)
}

func (m *markdown) facts(caption string, names []string, rows []factRow) {
	var all [][]string
	for _, r := range rows {
		all = append(all, append([]string{r.Name}, r.Values...))
	}
	m.table(caption, append([]string{"fact"}, names...), nil, all)
}

func (m *markdown) foot(p *page, s *Signature) {
	m.out.WriteString("---\n\n")
	m.para(join("thru "+p.Thru, prefixed("started ", p.Started), "took "+p.Elapsed))
	if s != nil {
		m.para("Signed by " + clean(s.Host) + " with the key " + clean(s.Key) + ". To check that no byte has changed since:")
		m.code([]string{clean(s.Verify)})
	}
}
