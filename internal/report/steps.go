package report

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// maxSteps bounds the steps that are printed.
const maxSteps = 60

// step is one experiment of an explanation, ready to print.
type step struct {
	Number  int
	Title   string // "8 streams"
	Way     string // "local -> b"
	Figure  string // "4.12 Gb/s"
	Against string // "4.10 Gb/s (+0.5%)"
	Tells   string // "points to receiver-cpu; rules out loss, policer"
	Took    string
	Failed  bool
	Bar     *stepBar
}

// stepBar is a figure beside the one that it is held against, in percent of
// the greatest of all steps.
type stepBar struct{ Figure, Base float64 }

func newSteps(d *measure.Document) (all []step) {
	most := 0.0
	for _, s := range d.Steps {
		for _, bps := range []*float64{s.Bps, s.BaseBps} {
			if bps != nil {
				most = max(most, *bps)
			}
		}
	}
	for i := range d.Steps[:min(len(d.Steps), maxSteps)] {
		s := newStep(&d.Steps[i], i+1)
		if b := &d.Steps[i]; b.Bps != nil && most > 0 {
			s.Bar = &stepBar{Figure: stat.Pct(*b.Bps, most)}
			if b.BaseBps != nil {
				s.Bar.Base = stat.Pct(*b.BaseBps, most)
			}
		}
		all = append(all, s)
	}
	return all
}

func newStep(s *measure.Step, number int) step {
	v := step{Number: number, Title: clean(s.Title), Figure: clean(s.Figure), Tells: tellsText(s), Took: unit.Duration(s.ElapsedNs)}
	if v.Title == "" {
		v.Title = clean(s.Experiment)
	}
	if s.From != "" && s.To != "" {
		v.Way = clean(s.From + " -> " + s.To)
	}
	if v.Figure == "" && s.Bps != nil {
		v.Figure = unit.Rate(*s.Bps)
	}
	if s.Bps != nil && s.BaseBps != nil {
		v.Against = unit.Rate(*s.BaseBps)
		if change := 100 * (*s.Bps - *s.BaseBps) / *s.BaseBps; *s.BaseBps > 0 && change < 1e6 {
			v.Against += " (" + signed(change) + ")"
		}
	}
	if s.Error != "" {
		v.Failed, v.Figure = true, "failed: "+doc.Reason(s.Error)
	}
	return v
}

// signed is a change in percent, with its sign.
func signed(pct float64) string {
	switch {
	case math.Abs(pct) >= 100:
		return fmt.Sprintf("%+.0f%%", pct)
	case math.Abs(pct) < 0.05: // no sign of what is not seen
		return "0.0%"
	}
	return fmt.Sprintf("%+.1f%%", pct)
}

// tellsText is what a step has told of which causes.
func tellsText(s *measure.Step) string {
	var parts []string
	for _, p := range []struct {
		verb   string
		causes []string
	}{{"points to ", s.Raised}, {"rules out ", s.RuledOut}} {
		switch n := len(p.causes); {
		case n > mostTold: // a first look rules out nearly all: the report lists them
			parts = append(parts, p.verb+unit.Plural(n, "cause"))
		case n > 0:
			parts = append(parts, p.verb+cleanUpTo(strings.Join(p.causes, ", "), maxAnswer))
		}
	}
	return strings.Join(parts, "; ")
}

// mostTold is how many causes a step names.
const mostTold = 8

// StepLine is a step in one line without a newline, as it is told when it has
// ended. What has no room in width (0: no bound) is left out from the right.
func StepLine(s measure.Step, width int) string {
	v := newStep(&s, 0)
	line := join(v.Title, v.Way)
	for i, part := range []struct{ before, text string }{{": ", v.Figure}, {", against ", v.Against}, {", ", v.Took}} {
		longer := line + part.before + part.text
		if part.text != "" && (i == 0 || width <= 0 || utf8.RuneCountInString(longer) <= width) {
			line = longer
		}
	}
	if v.Tells != "" && (width <= 0 || width-utf8.RuneCountInString(line) >= leastTells) {
		line += "; " + v.Tells
	}
	if r := []rune(line); width > 3 && len(r) > width {
		line = string(r[:width-3]) + "..."
	}
	return line
}

// leastTells is the room, in columns, from which a part of what a step told is worth its place.
const leastTells = 24

// Columns of the table of steps; what was tried and what it told share the rest.
const (
	stepsTable   = 100 // columns from which there is a table; under it each step is a block
	numberWidth  = 2
	tookWidth    = 8
	againstWidth = 20
)

// steps prints what an explanation has tried, and why it stopped.
func (p *printer) steps(v *view) {
	if len(v.Steps) > 0 {
		fmt.Fprintf(p, "\n%s\n", p.Paint(bold, "what was tried"))
	}
	if p.Width >= stepsTable {
		p.stepsTable(v.Steps)
	} else {
		for _, s := range v.Steps {
			p.stepBlock(s)
		}
	}
	if v.Ended != "" {
		p.Wrap("", 0, "", "ended: "+v.Ended)
	}
}

func (p *printer) stepBlock(s step) {
	text := join(s.Title, s.Way)
	for _, part := range []struct{ before, text string }{{": ", s.Figure}, {", against ", s.Against}, {", ", s.Took}} {
		if part.text != "" {
			text += part.before + part.text
		}
	}
	p.Wrap(bold, numberWidth, fmt.Sprintf("%*d", numberWidth, s.Number), text)
	if s.Tells != "" {
		p.Wrap("", numberWidth, strings.Repeat(" ", numberWidth), s.Tells)
	}
}

func (p *printer) stepsTable(steps []step) {
	if len(steps) == 0 {
		return
	}
	rest := p.Width - numberWidth - againstWidth - tookWidth - 5*2
	widths := []int{numberWidth, rest * 3 / 10, rest * 3 / 10, againstWidth, rest - rest*3/10*2, tookWidth}
	p.Columns(widths, []string{"#", "tried", "figure", "against", "what it says", "took"})
	for _, s := range steps {
		p.Columns(widths, []string{fmt.Sprint(s.Number), join(s.Title, s.Way), s.Figure, s.Against, s.Tells, s.Took})
	}
}
