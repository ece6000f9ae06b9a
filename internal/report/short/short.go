// Package short prints the answer of a result: the short form on a terminal; `--all` prints the whole result
// instead. It takes its words from package report and prints few lines: the answer, what limits the rate and
// the fix, a small table of figures, and one line that counts what is omitted.
package short

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"thru/internal/doc"
	"thru/internal/doc/text"
	"thru/internal/measure"
	"thru/internal/report"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// mostLines limits what is listed; a line counts the others.
const mostLines = 3

// Text prints the answer of a result; nothing if nothing was measured. all is the command that shows the whole
// result.
func Text(w io.Writer, d *measure.Document, o text.Options, all string) error {
	g, ok := report.NewGist(d)
	if !ok {
		return report.Text(w, d, o)
	}
	p := text.New(o)
	lines := answer(d, &g)
	p.Report(doc.Report{Answer: lines[0], More: lines[1:], Tone: g.Tone, Body: blocks(&g)})
	if s := hidden(d, &g); s != "" {
		all = "(" + all + ")"
		if utf8.RuneCountInString(s+" "+all) > p.Width { // a command to copy stays in one line
			p.Wrap("", 0, "", s)
			s = ""
		}
		p.Wrap("", 0, "", strings.TrimSpace(s+" "+all))
	}
	return p.Flush(w)
}

// answer returns the rate against its ceiling with the verdict; without a ceiling the answer of the whole
// report.
func answer(d *measure.Document, g *report.Gist) []string {
	c := worst(g.Flows)
	if c == nil {
		return append(judged(d, g.Answer), reasons(d, g, d.Ladder != nil)...)
	}
	x := c.Cell.Ceiling
	name := " " + c.Name
	if v := d.Verdict; v != nil && v.Pass { // both directions pass, and the table has their names
		name = ""
	}
	s := fmt.Sprintf("%s%s, %s of the %s that MTU %d allows on %s", unit.Rate(c.Cell.Goodput.Value), name,
		unit.Percent(x.SharePct), unit.Rate(x.Bps), x.MTU, result.LinkRate(x))
	if g.Partial {
		s += " (partial: ended early)"
	}
	return append([]string{s + verdict(d) + result.UnderLoadAnswer(c.Cell.UnderLoad)}, reasons(d, g, true)...)
}

// verdict returns the word at the end of the answer, and the requirement if it is not met.
func verdict(d *measure.Document) string {
	switch v := d.Verdict; {
	case v == nil:
		return ""
	case v.Pass || v.Inconclusive:
		return ": " + result.VerdictWord(v) + report.FailedGates(d)
	default:
		return fmt.Sprintf(": %s, %s is required", result.VerdictWord(v), unit.Percent(v.Required))
	}
}

// judged returns the answer of the whole report, and adds the verdict for a single ladder.
func judged(d *measure.Document, lines []string) []string {
	if len(lines) == 0 {
		return []string{"no complete result"}
	}
	if d.Command == "ladder" && d.Ladder == nil {
		lines[0] += verdict(d)
	}
	return lines
}

// worst returns the TCP flow with the lowest share of its ceiling; nil if one has no ceiling.
func worst(flows []report.Flow) (least *report.Flow) {
	for i := range flows {
		c := flows[i].Cell
		if c.Ceiling == nil || c.Goodput == nil || result.Asks(c) || c.Protocol != measure.TCP {
			return nil
		}
		if least == nil || c.Ceiling.SharePct < least.Cell.Ceiling.SharePct {
			least = &flows[i]
		}
	}
	return least
}

// reasons returns why a verdict is inconclusive, and what would decide it; for a failed one only if no share
// shows it. It omits the share that the answer has.
func reasons(d *measure.Document, g *report.Gist, hasShare bool) []string {
	v, reason := d.Verdict, g.Reason
	if v == nil || v.Pass || hasShare && !v.Inconclusive {
		return nil
	}
	if d.Ladder != nil {
		reason = doc.Clean(v.Reason)
	}
	for _, f := range g.Flows {
		if c := f.Cell.Ceiling; c != nil && c.SharePct == v.Share && v.Undecided != "" {
			reason = doc.Clean(v.Undecided)
		}
	}
	return doc.NonEmpty(reason, doc.Prefixed("do: ", doc.Clean(v.Do)))
}

// blocks returns what follows the answer.
func blocks(g *report.Gist) (all []doc.Block) {
	all = append(all, doc.Titled("What limits it"+help(g), cards(g)...), doc.Titled("Gates", g.Gates...), figures(g))
	all = append(all, g.Path...)
	all = append(all, g.Body...)
	var rest doc.Rows
	add := rest.Add
	if len(g.Flows)+len(g.Why) == 0 { // the table of flows has it
		add("limited by", g.Limit)
	}
	add("not measured", first(g.Failed))
	if g.Others > 0 {
		add("and", unit.Plural(g.Others, "more flow"))
	}
	if showsWarned(g) {
		add("gates", fmt.Sprintf("%d warn: %s", len(g.Warned), first(g.Warned)))
	}
	for _, s := range doc.FirstOf(g.Advice, mostLines) {
		add("advice", s)
	}
	for _, s := range warnings(g) {
		add("warning", s)
	}
	return append(all, doc.Pairs{Rows: rest})
}

// cards returns the findings, and the names of further ones.
func cards(g *report.Gist) (all []doc.Block) {
	for i := range g.Why {
		f := &g.Why[i]
		f.Said = f.Said && worst(g.Flows) == nil // else the answer has the verdict instead
		all = append(all, f.ShortCard(f.Direction))
	}
	if len(g.Also) > 0 {
		all = append(all, doc.Card{Name: "also", Badge: first(g.Also)})
	}
	return all
}

// help returns the page about the first finding.
func help(g *report.Gist) string {
	if len(g.Why) == 0 || !g.Why[0].Help {
		return ""
	}
	return " (thru help " + g.Why[0].Cause + ")"
}

// showsWarned reports whether gates that warn may explain a result: not a good one, nor one with a cause.
func showsWarned(g *report.Gist) bool {
	return len(g.Warned) > 0 && g.Tone != doc.ToneGood && len(g.Why) == 0
}

// warnings returns the warnings that are shown: few if the rate has a known cause.
func warnings(g *report.Gist) []string {
	most := mostLines
	if len(g.Why) > 0 {
		most = max(0, 2-len(g.Why))
	}
	return g.Warnings[:min(len(g.Warnings), most)]
}

// first returns some of a list, and counts the others.
func first(all []string) string { return strings.Join(doc.FirstOf(all, mostLines), ", ") }

// hidden returns one line that counts what the short form omits.
func hidden(d *measure.Document, g *report.Gist) string {
	var parts []string
	if g.Risks {
		parts = append(parts, "fix has risks")
	}
	if n := len(g.Warned); n > 0 && !showsWarned(g) {
		parts = append(parts, unit.Plural(n, "gate")+doc.Verb(n, " warns", " warn"))
	}
	if n := len(g.Warnings) - len(warnings(g)); n > 0 {
		parts = append(parts, unit.Plural(n, "warning"))
	}
	if g.RuledOut > 0 && (g.Tone != doc.ToneGood && len(g.Why) == 0 || d.Command == "explain") { // else irrelevant
		parts = append(parts, unit.Plural(g.RuledOut, "cause")+" ruled out")
	}
	if g.Facts > 0 {
		parts = append(parts, unit.Plural(g.Facts, "fact")+" not checked")
	}
	switch {
	case len(parts) > 0:
	case d.Tuning != nil && len(d.Cells) == 0: // a rollback
		return ""
	default:
		parts = []string{"everything else"}
	}
	return strings.Join(parts, "; ")
}
