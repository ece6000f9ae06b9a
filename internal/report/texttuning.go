package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"thru/internal/doc/text"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Columns of what is said of a tuning.
const (
	attemptColumn  = outcomeWidth + 2 // where a change and its figures begin
	proposalColumn = 11               // where the facts of a proposal begin
)

// tuningText prints what was done, or is advised, and what remains.
func (p *printer) tuningText(v *view) {
	t := v.Tuning
	p.answer(v)
	p.same(t.Same)
	if len(t.Restored.Rows) > 0 {
		p.WriteByte('\n')
		p.Grid(t.Restored)
	}
	for _, s := range t.Left {
		p.Wrap(yellow, 9, "left:", s)
	}
	p.journey(t)
	for _, s := range t.Untuned {
		p.Wrap("", 11, "not set at", s)
	}
	if len(t.Attempts) > 0 {
		fmt.Fprintf(p, "\n%s\n", p.Paint(bold, "what was tried"))
	}
	for _, a := range t.Attempts {
		p.attempt(a)
	}
	if t.Ending != "" {
		p.Wrap("", 0, "", "ended: "+t.Ending)
	}
	p.toKeep(t)
	if len(t.Remains) > 0 {
		fmt.Fprintf(p, "\n%s\n", p.Paint(bold, "what remains"))
	}
	for _, s := range t.Remains {
		p.Wrap("", 3, "  -", s)
	}
	p.proposals(t)
	p.lists(v)
}

// ending says why it ended, and how long it took beside what was said before.
func (t *tuning) ending(v *view) string {
	if v.Ended == "" || t.Expected == "" {
		return v.Ended
	}
	if t.DryRun {
		return v.Ended + "; to try it would take about " + t.Expected
	}
	return v.Ended + "; took " + v.Elapsed + ", expected " + t.Expected
}

// same prints the outcome of comparisons of a state with itself.
func (p *printer) same(s *sameness) {
	if s == nil {
		return
	}
	p.Wrap("", 0, "", "where nothing was changed, a change of at most "+s.Most+" was estimated, up or down")
	for _, c := range s.Cases {
		p.Wrap(yellow, 3, "  -", c)
	}
}

// journey prints the states as a table: with one unit in its head, or a unit at each figure.
func (p *printer) journey(t *tuning) {
	if len(t.Journey) == 0 {
		return
	}
	p.WriteByte('\n')
	p.Grid(t.table())
}

// table is the journey for a terminal.
func (t *tuning) table() grid {
	g := grid{Columns: []column{{Name: "state", Least: 14}, {Name: "path", Least: 8}, {Name: t.Unit(), Right: true}, {Name: "range", Right: true}, {Name: "change", Right: true}, {Name: "held back by", Least: 14}}}
	for _, s := range t.Journey {
		g.Rows = append(g.Rows, []string{s.State, s.Way, s.Figure, orDash(s.Range), orDash(s.Change), s.Held})
	}
	return g.WithoutEmpty()
}

// attempt prints a change with its outcome, and what it was judged by.
func (p *printer) attempt(a attempt) {
	p.Wrap(text.ColourOf(a.Tone), attemptColumn, "  "+a.Outcome, a.Title)
	for _, s := range []string{a.Figures, a.Other, a.Reason} {
		if s != "" {
			p.Wrap("", attemptColumn, strings.Repeat(" ", attemptColumn), s)
		}
	}
	for _, s := range a.Guards {
		p.Wrap("", attemptColumn, strings.Repeat(" ", attemptColumn), s)
	}
	if len(a.Proofs) > 0 {
		p.Wrap("", attemptColumn, strings.Repeat(" ", attemptColumn), "in force? "+strings.Join(a.Proofs, "; "))
	}
}

// toKeep prints how to make last what was kept, and how to undo it.
func (p *printer) toKeep(t *tuning) {
	if t.Flags != "" {
		fmt.Fprintf(p, "\n%s\n  %s\n", p.Paint(bold, "options of the test that were kept"), t.Flags)
	}
	if len(t.Lasting) > 0 {
		fmt.Fprintf(p, "\n%s\n", p.Paint(bold, "to make it last beyond the next boot"))
	}
	for _, l := range t.Lasting {
		p.lasting(l)
	}
	if len(t.Undo) > 0 {
		fmt.Fprintf(p, "\n%s\n", p.Paint(bold, "to undo it"))
		p.typed(2, t.Undo)
	}
}

func (p *printer) lasting(l lasting) {
	head := "at " + l.At
	if l.Manager != "" {
		head += " (" + l.Manager + ")"
	}
	if l.File != "" {
		head += ": write " + l.File
	}
	p.Wrap("", 1, " ", head)
	if l.Words != "" {
		p.Wrap("", 3, "   ", l.Words)
	}
	p.typed(6, l.Content)
	if len(l.Commands) > 0 && l.File != "" {
		fmt.Fprintln(p, "    then")
	}
	p.typed(6, l.Commands)
	if len(l.Undo) > 0 {
		fmt.Fprintln(p, "    to take it back")
		p.typed(6, l.Undo)
	}
}

// typed prints lines that are to be copied: they are not broken.
func (p *printer) typed(indent int, all []string) {
	for _, s := range all {
		fmt.Fprintln(p, strings.TrimRight(strings.Repeat(" ", indent)+s, " "))
	}
}

// proposals prints what a dry run advises, else what is left to the reader.
func (p *printer) proposals(t *tuning) {
	if len(t.Advice) == 0 {
		return
	}
	title := "left to you"
	if t.DryRun {
		title = "what to try, in this order"
	}
	fmt.Fprintf(p, "\n%s\n", p.Paint(bold, title))
	for i, x := range t.Advice {
		if i > 0 && x.Why != "" && x.Why == t.Advice[i-1].Why && x.For == t.Advice[i-1].For {
			x.Why, x.For = "as above", ""
		}
		p.proposal(x)
	}
}

func (p *printer) proposal(x proposal) {
	p.Wrap(bold, 3, fmt.Sprintf("%3d", x.Number), x.Title)
	for _, f := range []struct{ name, text string }{
		{"why", x.Why + spaced(bracket(x.For))}, {"expect", x.Expect}, {"source", x.Source}, {"risk", x.Danger()}, {"by hand", x.ByHand}, {"flags", x.Flags},
	} {
		if f.text != "" {
			p.Wrap("", proposalColumn, "    "+f.name, f.text)
		}
	}
	for _, h := range x.Hosts {
		p.handwork(h)
	}
}

// handwork prints what to type at one host.
func (p *printer) handwork(h handwork) {
	label := "    do"
	for _, words := range []string{strings.TrimPrefix(h.At+":", ":"), h.Words} {
		if words != "" {
			p.Wrap("", proposalColumn, label, words)
			label = strings.Repeat(" ", proposalColumn)
		}
	}
	p.labelled(label, h.Set)
	p.labelled("    check", h.Verify)
	p.labelled("    undo", h.Undo)
}

// labelled prints commands, whole, the first behind a name.
func (p *printer) labelled(name string, commands []string) {
	for _, c := range commands {
		fmt.Fprintf(p, "%-*s %s\n", proposalColumn, name, c)
		name = ""
	}
}

// Knobs prints what can be set at the end points, and why what cannot cannot.
func Knobs(w io.Writer, points []measure.EndPoint, o TextOptions) error {
	p := newPrinter(o)
	for i, e := range points {
		if i > 0 {
			p.WriteByte('\n')
		}
		p.knobs(e)
	}
	return p.Flush(w)
}

// knobs prints those of one end point.
func (p *printer) knobs(e measure.EndPoint) {
	name := clean(e.Name)
	switch {
	case len(e.Knobs) == 0 && e.NoTune == "":
		p.Wrap(bold, 0, "", name+": there is nothing to set")
		return
	case e.NoTune != "":
		p.Wrap(bold, 0, "", name+": "+reasonText(e.NoTune))
	default:
		p.Wrap(bold, 0, "", name+": "+unit.Plural(len(e.Knobs), "knob"))
	}
	g := grid{Columns: []column{{Name: "knob"}, {Name: "interface", Least: 12}, {Name: "now", Least: 10}, {Name: "settable", Least: 10}}}
	var refused []gap
	for _, k := range e.Knobs[:min(len(e.Knobs), maxKnobs)] {
		row := []string{clean(k.Knob), orDash(clean(k.Interface)), orDash(cleanUpTo(k.Value, longestWhy)), settableText(k)}
		if e.NoTune != "" { // nothing is, whatever the host could take
			row[3] = "-"
		} else if k.Refused != "" {
			refused = addGap(refused, strings.TrimSpace(clean(k.Knob)+" "+clean(k.Interface)), reasonText(cleanUpTo(k.Refused, longestWhy)))
		}
		g.Rows = append(g.Rows, row)
	}
	if n := len(e.Knobs) - len(g.Rows); n > 0 {
		g.More = fmt.Sprintf("and %d more, see --json", n)
	}
	if len(g.Rows) > 0 {
		p.Grid(g.WithoutEmpty())
	}
	for _, r := range refused {
		p.Wrap("", 15, "  cannot be set", r.text(maxLines))
	}
}

// settableText says what a knob can be set to: "no", "yes" where its values are not
// known beforehand, "up to 65535" of numbers, else all values.
func settableText(k measure.KnobState) string {
	possible := cleanUpTo(k.Possible, longestWhy)
	switch {
	case k.Refused != "":
		return "no"
	case possible == "":
		return "yes"
	case isBound(k.Value, k.Possible):
		return "up to " + possible
	}
	return possible
}

// isBound tells whether a text names the greatest of a value's numbers: it has the
// same words, and other numbers.
func isBound(value, possible string) bool {
	now, most := strings.Fields(value), strings.Fields(possible)
	if len(now) != len(most) {
		return false
	}
	numbers := 0
	for i := range now {
		_, is := strconv.ParseUint(now[i], 10, 64)
		_, was := strconv.ParseUint(most[i], 10, 64)
		if (is == nil) != (was == nil) || is != nil && now[i] != most[i] {
			return false
		}
		if is == nil {
			numbers++
		}
	}
	return numbers > 0
}

// maxKnobs bounds the knobs of one end point that are listed.
const maxKnobs = 400
