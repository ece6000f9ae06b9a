package fleet

import (
	"fmt"
	"slices"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/report/why"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Answers returns the lines of the answer of a plan: for the rungs of a ladder, an A/B test, or pairs that
// ran at once; and the finding that they contain. It returns nil for plans whose answer is that of a test of two hosts.
func Answers(d *measure.Document) (all []string, says *measure.Finding) {
	if !result.IsPlanned(d) {
		return nil, nil
	}
	if s := rungsAnswer(d); s != "" {
		return []string{s}, nil
	}
	sets := slices.DeleteFunc(Sets(d), func(s *Set) bool { return inLadders(d, s) })
	pairs := setsAnswer(d, sets)
	switch n := len(d.Comparisons); {
	case n > 1:
		pairs += "; " + unit.Plural(n-1, "more comparison") + " below"
		fallthrough
	case n == 1:
		return []string{comparisonText(&d.Comparisons[0]), pairs}, nil
	case pairs == "" || len(d.Targets) == 0 && result.MainCount(d) <= 2 && len(sets) == 1:
		return nil, nil
	}
	if whole := why.OfWhole(d); len(whole) > 0 {
		says = &whole[0]
	}
	return []string{pairs + CauseAnswer(d, Best(sets))}, says
}

// rungsAnswer returns "the interconnect carries 9.41 of 10 Gb/s, -53.0% against the LAN below it: pass".
func rungsAnswer(d *measure.Document) string {
	if d.Ladder == nil {
		return ""
	}
	var top, below *measure.Rung
	rungs := d.Ladder.Rungs
	for i := range rungs {
		if rungs[i].Best != nil {
			top, below = &rungs[i], top
		}
	}
	if top == nil {
		return ""
	}
	s := rungName(top.Name) + " carries " + RungRate(top)
	if below != nil && top.LossPct != nil {
		s += fmt.Sprintf(", %s against %s below it", unit.Change(-*top.LossPct), rungName(below.Name)) + chanceText(top)
	}
	if top.Limited {
		s += " (generator-limited: it may carry more)"
	}
	if top.Verdict != nil {
		s += ": " + result.VerdictWord(top.Verdict)
	}
	for i := range rungs {
		if r := &rungs[i]; r != top && r.Verdict != nil && !r.Verdict.Pass {
			fails := " fails"
			if r.Verdict.Inconclusive {
				fails = " is inconclusive"
			}
			s += "; " + rungName(r.Name) + fails
		}
	}
	if len(d.Targets) > 0 {
		s += "; " + targetsAnswer(d)
	}
	if last := &rungs[len(rungs)-1]; last != top {
		s += "; " + rungName(last.Name) + " was not measured"
	}
	return s
}

// rungName adds an article if a rung has the name of a kind of network.
func rungName(name string) string {
	switch name {
	case "virtual switch", "LAN", "interconnect":
		return "the " + name
	}
	return doc.Clean(name)
}

// setsAnswer returns what the pairs of the best set carried.
func setsAnswer(d *measure.Document, sets []*Set) string {
	s := Best(sets)
	if s == nil {
		return ""
	}
	text := s.Answer()
	if other := otherDirection(sets, s); other != nil {
		text += "; reverse " + other.Answer()
	} else if len(sets) > 1 && s.Name != "" {
		text += " with " + doc.Join(s.Rung, s.Name) + ", the highest rate of " + unit.Plural(len(sets), "setting")
		if len(d.Comparisons) == 0 { // else the comparisons, of pairs of runs, say it with less uncertainty
			text += levelText(sets, s)
		}
	}
	if n := s.failed(); n > 0 {
		text += fmt.Sprintf("; %d failed", n)
	}
	if len(d.Targets) > 0 {
		return text + ": " + targetsAnswer(d)
	}
	if d.Verdict != nil {
		text += ": " + result.VerdictWord(d.Verdict)
	}
	return text
}

// levelText counts the settings that do not differ significantly from the best one.
func levelText(sets []*Set, most *Set) string {
	of := figuresOf(sets)
	n := unit.CountFunc(sets, func(s *Set) bool {
		return s != most && s.Asks == most.Asks && len(s.values()) > 0 && !stat.Exceeds(most.figure(), s.figure(), of)
	})
	switch {
	case n == 0 || most.Asks:
		return ""
	case n == len(sets)-1:
		return "; all others may carry as much"
	}
	return "; " + unit.Plural(n, "other") + " may carry as much"
}

// otherDirection returns the set of the reverse direction if there are only these two sets: they are not
// alternatives to choose from.
func otherDirection(sets []*Set, s *Set) *Set {
	if len(sets) != 2 || len(s.Axes) != 1 || s.Axes[0].Name != "direction" {
		return nil
	}
	for _, o := range sets {
		if o != s && len(o.values()) > 0 {
			return o
		}
	}
	return nil
}

// Answer returns what the pairs of a set carried: "8 pairs at once carried 7.52 Gb/s, 880-960 Mb/s each".
func (s *Set) Answer() string {
	values := s.values()
	whole, _, together := s.together()
	switch {
	case len(s.Pairs) == 1 && together:
		return fmt.Sprintf("%s at once carried %s %s", unit.Plural(len(s.Cells), "flow"), s.ofLink(whole), s.Pairs[0].Name())
	case len(s.Pairs) == 1:
		return s.rate(values[0]) + " " + s.Pairs[0].Name()
	case together:
		return fmt.Sprintf("%s at once carried %s, %s each", s.pairsCarried(len(values)), s.ofLink(whole), s.span(values))
	}
	one := " one after the other"
	if len(s.Groups) < len(s.Pairs) {
		one = " in turns"
	}
	text := s.pairsCarried(len(values)) + one + " carried " + s.span(values) + " each, median " + s.rate(stat.Median(values))
	for _, p := range s.slowest() {
		if p.Value != nil && *p.Value < tellingShare*stat.Median(values) {
			return text + ", the slowest " + p.Name()
		}
	}
	return text
}

// tellingShare is the share of the median pair below which the slowest pair is named.
const tellingShare = 0.8

// pairsCarried returns "8 pairs", or "6 of 8 pairs" if two have no figure.
func (s *Set) pairsCarried(n int) string {
	if n < len(s.Pairs) {
		return fmt.Sprintf("%d of %s", n, unit.Plural(len(s.Pairs), "pair"))
	}
	return unit.Plural(n, "pair")
}

func (s *Set) span(sorted []float64) string {
	low, high := sorted[0], sorted[len(sorted)-1]
	if s.Asks {
		return stat.ThreeDigits(low) + "-" + stat.ThreeDigits(high) + " requests/s"
	}
	return unit.RateRange(low, high)
}

// ofLink returns a rate as a part of the link rate if all flows share a link: they have one end in common,
// and the same nominal rate.
func (s *Set) ofLink(bps float64) string {
	if s.Asks || len(s.Cells) == 0 {
		return s.rate(bps)
	}
	first := s.Cells[0]
	from, to := true, true
	for _, c := range s.Cells {
		from, to = from && c.From == first.From, to && c.To == first.To
		if c.Ceiling == nil || c.Ceiling.LinkBps <= 0 || c.Ceiling.LinkBps != first.Ceiling.LinkBps || !from && !to {
			return unit.Rate(bps)
		}
	}
	link := float64(first.Ceiling.LinkBps)
	return rateOf(bps, link, doc.ScaleFor(link))
}

// CauseAnswer returns what limits the whole plan, for the end of the answer: a finding of the plan, or of at
// least half of the pairs of the best set.
func CauseAnswer(d *measure.Document, s *Set) string {
	mark := ": "
	if len(d.Targets) > 0 || d.Verdict != nil {
		mark = "; "
	}
	if whole := why.OfWhole(d); len(whole) > 0 {
		return mark + result.InSentence(&whole[0])
	}
	var all result.SharedTexts
	for _, c := range s.Cells {
		if result.IsLimited(c) {
			all.Add(c.Findings[0].Cause, result.InSentence(result.Binding(c)), c)
		}
	}
	for _, x := range all.Joined() {
		switch n := len(x.Pairs); {
		case n == len(s.Cells):
			return mark + x.Text()
		case 2*n >= len(s.Cells):
			return fmt.Sprintf("%slimit of %d of %s: %s", mark, n, unit.Plural(len(s.Cells), "flow"), x.Text())
		}
	}
	return ""
}
