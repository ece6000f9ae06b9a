package report

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// maxSteps limits the steps that are printed.
const maxSteps = 60

// step is one experiment of an explanation, ready to print.
type step struct {
	Number     int
	Title      string // "8 streams"
	Direction  string // "local -> b"
	Figure     string // "4.12 Gb/s"
	Against    string // "4.10 Gb/s (+0.5%)"
	Conclusion string // "points to receiver-cpu; rules out loss, policer"
	Took       string
	Bar        doc.Bar // relative to the longest bar of all steps, with the value compared with
}

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
			s.Bar.Share = *b.Bps / most
			if b.BaseBps != nil {
				s.Bar.Mark = *b.BaseBps / most
			}
		}
		all = append(all, s)
	}
	return all
}

func newStep(s *measure.Step, number int) step {
	v := step{Number: number, Title: doc.Clean(s.Title), Figure: doc.Clean(s.Figure), Conclusion: conclusionText(s), Took: unit.Duration(s.ElapsedNs)}
	v.Title = cmp.Or(v.Title, doc.Clean(s.Experiment))
	if s.From != "" && s.To != "" {
		v.Direction = doc.Clean(s.From + " -> " + s.To)
	}
	if v.Figure == "" && s.Bps != nil {
		v.Figure = unit.Rate(*s.Bps)
	}
	if s.Bps != nil && s.BaseBps != nil {
		v.Against = unit.Rate(*s.BaseBps)
		if change := 100 * (*s.Bps - *s.BaseBps) / *s.BaseBps; *s.BaseBps > 0 && change < 1e6 {
			v.Against += " (" + unit.Change(change) + ")"
		}
	}
	if s.Error != "" {
		v.Figure = "failed: " + doc.Reason(s.Error)
	}
	return v
}

// conclusionText words which causes a step points to or rules out.
func conclusionText(s *measure.Step) string {
	var parts []string
	for _, p := range []struct {
		verb   string
		causes []string
	}{{"points to ", s.Raised}, {"rules out ", s.RuledOut}} {
		switch n := len(p.causes); {
		case n > mostShown: // the first step rules out nearly all: the report lists them
			parts = append(parts, p.verb+unit.Plural(n, "cause"))
		case n > 0:
			parts = append(parts, p.verb+doc.CleanUpTo(strings.Join(p.causes, ", "), result.MaxAnswer))
		}
	}
	return strings.Join(parts, "; ")
}

// mostShown is how many causes a step names.
const mostShown = 8

// StepLine returns a finished step in one line without a newline. It omits parts from the right that exceed
// width (0: no limit).
func StepLine(s measure.Step, width int) string { return newStep(&s, 0).line(width) }

func (v step) line(width int) string {
	line := doc.Join(v.Title, v.Direction)
	for i, part := range []struct{ before, text string }{{": ", v.Figure}, {", against ", v.Against}, {", ", v.Took}} {
		longer := line + part.before + part.text
		if part.text != "" && (i == 0 || width <= 0 || utf8.RuneCountInString(longer) <= width) {
			line = longer
		}
	}
	if v.Conclusion != "" && (width <= 0 || width-utf8.RuneCountInString(line) >= leastShown) {
		line += "; " + v.Conclusion
	}
	return unit.Cut(line, width)
}

// leastShown is the least room, in columns, for a part of a step's conclusion.
const leastShown = 24

// stepBlocks returns the steps of an explanation, and why it stopped.
func stepBlocks(steps []step, ended string) []doc.Block {
	if len(steps) == 0 {
		return nil
	}
	meters := make([]doc.Bar, 0, len(steps))
	t := doc.Table{Tone: stepTone}
	var lines []string
	for _, s := range steps {
		lines = append(lines, s.line(0))
		meters = append(meters, s.Bar)
		t.Rows = append(t.Rows, []string{fmt.Sprintf("%d. %s", s.Number, doc.Join(s.Title, s.Direction)), s.Figure, doc.OrDash(s.Against), doc.OrDash(s.Conclusion), s.Took})
	}
	t.Columns = []doc.Column{{Name: "tried", Least: 12}, {Name: "figure", Least: 10, Meters: meters}, {Name: "against", Least: 9}, {Name: "conclusion", Least: 20}, {Name: "took"}}
	return []doc.Block{doc.Titled("Experiments", doc.OnPages(t), doc.OnTerminal(doc.List{Lines: lines}), doc.Para{Text: doc.Prefixed("ended: ", ended)})}
}

func stepTone(cell string) doc.Tone {
	if strings.HasPrefix(cell, "failed: ") {
		return doc.ToneBad
	}
	return doc.ToneNone
}
