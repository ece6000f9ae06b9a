package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/markdown"
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
	m := newMarkup()
	m.top(&p)
	if o.Summary {
		m.shorten()
		m.foot(&p, o.Signed)
		return m.Flush(w)
	}
	doc.Print(m, p.Blocks)
	m.tuned(p.Tuning)
	m.why(&p)
	m.captured(p.Packets)
	m.tried(&p)
	m.planned(&p)
	m.gates(&p)
	m.measured(&p)
	m.whereabouts(p.Placed)
	doc.Print(m, p.Below)
	m.open(&p)
	m.cells(&p)
	m.about(&p)
	m.foot(&p, o.Signed)
	return m.Flush(w)
}

// Bounds of a summary, which is for a ticket, in lines.
const (
	summaryLines = 40
	footLines    = 11 // with a signature
)

// shorten keeps of what was printed as many whole blocks as leave room for the foot
// of a summary, and says what is left out.
func (m *markup) shorten() {
	left := summaryLines - footLines - 2
	var kept strings.Builder
	blocks := strings.SplitAfter(m.String(), "\n\n")
	for i, b := range blocks {
		if left -= strings.Count(b, "\n"); left < 0 {
			fmt.Fprintf(&kept, "%s of the answer left out: the whole report has them.\n\n", unit.Plural(len(blocks)-1-i, "paragraph"))
			break
		}
		kept.WriteString(b)
	}
	m.Reset()
	m.WriteString(kept.String())
}

// top is the answer and what a reader wants to know in the first minute.
func (m *markup) top(p *page) {
	title := p.Answer
	if title == "" {
		title = "No result"
	}
	m.Head(1, title)
	m.para(join("thru "+p.Command, p.Started))
	m.para(p.Back)
	a := p.First.Accepted
	if a.Word != "" { // an inventory has none
		fmt.Fprintf(m, "**Verdict:** **%s** %s\n\n", markdown.Escape(strings.TrimSpace(a.Mark()+" "+a.Word)), markdown.Escape(a.Why))
	}
	m.para(prefixed("To do: ", a.Do))
	m.para(prefixed("With care: ", strings.Join(a.But, "; ")))
	if len(a.How) > 0 {
		m.para("To get one, say what the link is meant to carry:")
		m.code(a.How)
	}
	for _, r := range p.First.Rows {
		fmt.Fprintf(m, "**%s:** ", markdown.Escape(r.Name))
		for _, i := range r.Items {
			m.para(i.Text)
			m.code(i.Commands)
		}
	}
	if p.Error != nil {
		m.Head(2, "Error")
		m.para(p.Error.Message)
		m.para(p.Error.Hint)
	}
	if p.Fleet != nil && len(p.Fleet.Failed) > 0 {
		m.Head(2, "What failed")
		m.list(p.Fleet.Failed)
	}
}

// why is each direction's findings with their evidence.
func (m *markup) why(p *page) {
	for _, w := range slices.Concat(p.Why, p.Judged) {
		title := "Why not more"
		if w.Way != "" {
			title += ", " + w.Way
		}
		m.Head(2, title)
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

func (m *markup) finding(f finding) {
	m.Head(3, f.Cause+" ("+join(f.Confidence, f.Where, prefixed("because of ", f.BecauseOf))+")")
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
func (m *markup) open(p *page) {
	for _, part := range []struct {
		name  string
		lines []string
	}{{"Advice", p.Advice}, {"Warnings", p.Warnings}} {
		if len(part.lines) > 0 {
			m.Head(2, part.name)
			m.list(part.lines)
		}
	}
	var rows [][]string
	for _, g := range slices.Concat(p.Missing, p.FactGaps) {
		rows = append(rows, []string{strings.Join(g.Facts, ", "), g.Why})
	}
	if len(rows) > 0 {
		m.Head(2, "Not checked")
		m.table("", []string{"fact", "why"}, nil, rows)
	}
}

// about is who took part, how it was measured, and how to do it again.
func (m *markup) about(p *page) {
	if p.Fleet != nil && len(p.Fleet.Points.Rows) > 0 {
		m.Head(2, "End points")
		m.Table(p.Fleet.Points)
	}
	if len(p.Inventory.Names) > 0 {
		m.Head(2, "Hosts and guests")
	}
	for _, part := range p.Inventory.Parts {
		m.facts(part.Caption, part.Names, part.Rows)
	}
	m.facts("All facts of the end points when they were measured", p.Hosts.Names, p.Hosts.Rows)
	m.para(p.Hosts.More)
	for _, i := range p.Interfaces {
		m.pairs(i.Name, i.Rows)
	}
	if len(p.Method) > 0 {
		m.Head(2, "How this was measured")
		m.list(p.Method)
	}
	if len(p.Again.Steps) > 0 {
		m.Head(2, "Reproduce")
	}
	for _, s := range p.Again.Steps {
		m.para("At " + s.At + spaced(bracket(s.Says)) + ":")
		m.code([]string{s.Command})
	}
	m.pairs("The plan", p.Again.Plan)
}

func (m *markup) facts(caption string, names []string, rows []factRow) {
	var all [][]string
	for _, r := range rows {
		all = append(all, append([]string{r.Name}, r.Values...))
	}
	m.table(caption, append([]string{"fact"}, names...), nil, all)
}

func (m *markup) foot(p *page, s *Signature) {
	m.WriteString("---\n\n")
	m.para(join("thru "+p.Thru, prefixed("started ", p.Started), "took "+p.Elapsed))
	if s != nil {
		m.para("Signed by " + clean(s.Host) + " with the key " + clean(s.Key) + ". To check that no byte has changed since:")
		m.code([]string{clean(s.Verify)})
	}
}
