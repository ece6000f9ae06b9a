package report

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Bounds of what text shows of a diagnosis; page and JSON document have more.
const (
	textFindings  = 4
	textGroups    = 4 // reasons for which causes were not checked
	findingMargin = 3
	findingColumn = 9  // where the facts of a finding begin
	othersColumn  = 14 // where the other causes do
)

// why prints for each direction what holds it back, what does not, and what
// is not known. Of files the first finding has its figures, and the others a
// line each; other causes stand further below.
func (p *printer) why(all []diagnosis, files bool) {
	for i, d := range all {
		title := "why not more"
		if d.Way != "" {
			title += ", " + d.Way
		}
		fmt.Fprintf(p, "\n%s\n", p.Paint(bold, title))
		for n, f := range d.Findings[:min(len(d.Findings), textFindings)] {
			if n > 0 && (files || f.Confidence == measure.Possible) {
				p.Wrap("", findingColumn, "  "+f.name()+" ", f.head()+": "+f.Summary)
				continue
			}
			p.finding(f, i > 0 && has(all[i-1].Findings, f))
		}
		if more := d.More + len(d.Findings) - textFindings; more > 0 {
			fmt.Fprintf(p, "  %d more in the JSON document and the page\n", more)
		}
		switch {
		case files:
		case i > 0 && sameOthers(d, all[i-1]):
			p.Wrap("", othersColumn, "  other causes:", "as for "+all[i-1].Way)
		default:
			p.others(d)
		}
	}
}

// has tells whether the direction printed before has the same finding, whose
// advice is then not repeated.
func has(before []finding, f finding) bool {
	for _, x := range before {
		if x.Cause == f.Cause && x.Advice == f.Advice && x.Risk == f.Risk && x.Next == f.Next {
			return true
		}
	}
	return false
}

// name is the cause; where there is none, that.
func (f finding) name() string {
	if f.Cause == "none" {
		return "nothing found"
	}
	return f.Cause
}

// head says "certain, receiver b, CPU 3, because of irq-one-cpu".
func (f finding) head() string {
	because := ""
	if f.BecauseOf != "" {
		because = "because of " + f.BecauseOf
	}
	return join(f.Confidence, f.Where, because)
}

// finding prints one cause with its figures, and what to do. Told: the other
// direction has said what to do.
func (p *printer) finding(f finding, told bool) {
	code := yellow
	if f.Healthy {
		code = green
	}
	p.Wrap(code, findingColumn, "  "+f.name()+" ", f.head())
	if !f.Said && f.Summary != "" {
		p.Wrap("", findingMargin, strings.Repeat(" ", findingMargin), f.Summary)
	}
	p.fact("seen:", strings.Join(f.Evidence, "; "))
	p.fact("cost:", f.Effect)
	if !told {
		p.fact("next:", f.Next)
	}
	name := "do:"
	for _, words := range []string{f.Advice, f.At} {
		if words != "" && !(told && words == f.Advice) {
			p.fact(name, words)
			name = ""
		}
	}
	for _, c := range f.Commands { // a command is not broken: it shall be copied
		label := name
		if label != "" {
			label = strings.Repeat(" ", findingMargin+1) + label
		}
		fmt.Fprintf(p, "%-*s %s\n", findingColumn, label, c)
		name = ""
	}
	if !told {
		p.fact("risk:", f.Risk)
	}
}

// fact prints one line of a finding, where there is anything to say.
func (p *printer) fact(name, text string) {
	if text != "" {
		p.Wrap("", findingColumn, strings.Repeat(" ", findingMargin+1)+name, text)
	}
}

// sameOthers tells whether two directions rule out the same, and leave the same open.
func sameOthers(a, b diagnosis) bool {
	return slices.EqualFunc(a.RuledOut, b.RuledOut, func(x, y row) bool { return x.Name == y.Name }) &&
		slices.EqualFunc(a.Open, b.Open, func(x, y unsettled) bool { return x.Cause == y.Cause && x.Fact == y.Fact })
}

// others names the causes that are ruled out, and those that were not checked
// by what is missing.
func (p *printer) others(d diagnosis) {
	if ids := d.ids(); len(ids) > 0 {
		p.Wrap("", othersColumn, "  ruled out:", strings.Join(ids, ", "))
	}
	if len(d.Open) == 0 {
		return
	}
	groups := d.groups()
	var parts []string
	for _, g := range groups[:min(len(groups), textGroups)] {
		parts = append(parts, g.Text(gapFacts))
	}
	if n := len(groups) - textGroups; n > 0 {
		parts = append(parts, "and more that lack "+unit.Plural(n, "other fact"))
	}
	p.Wrap("", othersColumn, "  not checked:", unit.Plural(len(d.Open), "cause")+": "+strings.Join(parts, "; "))
}
