package tuning

import (
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
)

// Limits of the short form.
const (
	fewChanges = 4
	fewLimits  = 2
)

// Brief returns the short form of a tuning: what was kept and what was not, what is left to try, and how to
// undo it. Of advice it returns the commands of the first change.
func (t *View) Brief(attempts []measure.Attempt) []doc.Block {
	if t.DryRun {
		return t.briefAdvice()
	}
	var kept, others, untried, next []string
	for i := range attempts {
		a := &attempts[i]
		named := doc.Clean(a.Title) + doc.Spaced(doc.Bracket(doc.Clean(a.Outcome)))
		switch {
		case isSelfComparison(a):
		case a.Outcome == measure.Kept:
			kept = append(kept, attemptText(a))
		case wasTried(a):
			others = append(others, named)
		default:
			untried = append(untried, named)
		}
	}
	for _, p := range t.Advice {
		next = append(next, p.Title)
	}
	var rows doc.Rows
	addEach(&rows, "kept", kept, fewChanges)
	rows.Add("not kept", listed(others))
	rows.Add("not tried", listed(untried))
	addEach(&rows, "not tuned", t.Untuned, fewLimits)
	if s := t.Same; s != nil {
		rows.Add("differences", strings.Join(append([]string{"at most " + s.Most}, doc.FirstOf(s.Cases, 1)...), "; "))
	}
	addEach(&rows, "limited by", t.Remains, fewLimits)
	rows.Add("left to try", listed(next))
	rows.Add("test options", t.Flags)
	if len(t.Persistent) > 0 {
		rows.Add("after a reboot", "the kept settings are lost; --all prints what makes them persistent")
	}
	rows.Add("undo", strings.Join(t.Undo, "; "))
	return []doc.Block{t.Restored.Brief().Cut(fewChanges, ""), doc.List{Lines: doc.FirstOf(t.Left, fewChanges)}, doc.Pairs{Rows: rows}}
}

// addEach adds a row for each line.
func addEach(rows *doc.Rows, name string, lines []string, most int) {
	for _, s := range doc.FirstOf(lines, most) {
		rows.Add(name, s)
	}
}

// listed names the first of some changes.
func listed(changes []string) string { return doc.Gap{Facts: changes}.Text(fewChanges) }

// briefAdvice returns the first change with its commands, and the others with what they should bring.
func (t *View) briefAdvice() []doc.Block {
	var cards []doc.Block
	var left []string
	first := true
	for i, p := range t.Advice {
		if i >= fewChanges {
			left = append(left, p.Title)
			continue
		}
		c := p.card().For(doc.Pages, "why", "source", "check")
		if c.Text = p.Expect; !first || !p.Change {
			c = c.For(doc.Pages, "expect", "risk", "manual step", "flags", "do", "undo")
		} else {
			c, first = c.For(doc.Pages, "expect"), false
		}
		cards = append(cards, c)
	}
	var rows doc.Rows
	rows.Add("further", listed(left))
	return []doc.Block{doc.Titled("Proposed changes", append(cards, doc.Pairs{Rows: rows})...)}
}
