package tuning

import (
	"fmt"
	"math"
	"slices"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// isChange reports whether commands or flags make a change: commands that set no knob only display something.
func isChange(p *measure.Proposal) bool {
	return p.Test != nil || len(p.Settings) > 0 && slices.ContainsFunc(p.Commands, func(c measure.Commands) bool { return len(c.Set) > 0 })
}

// gainOf returns the comparison that shows the effect of a change: for a kept one that of runs after the
// decision.
func gainOf(a *measure.Attempt) *measure.Comparison {
	if a.Gain != nil {
		return a.Gain
	}
	return a.Comparison
}

// cellsOf returns cells of a document by their indices.
func cellsOf(d *measure.Document, indices []int) (all []*measure.Cell) {
	for _, i := range indices[:min(len(indices), result.MaxLines)] {
		if i >= 0 && i < len(d.Cells) {
			all = append(all, &d.Cells[i])
		}
	}
	return all
}

// comparedText returns "38.9 -> 181 Mb/s local -> b, +365% (99.4% interval +340..+391%, 9 pairs of runs)".
func comparedText(c *measure.Comparison) string {
	if c == nil || c.BaseValue == nil || c.Value == nil {
		return ""
	}
	s := fromTo(*c.BaseValue, *c.Value)
	if c.Figure == "transactions_per_s" {
		s = unit.Count(int64(*c.BaseValue)) + " -> " + unit.Count(int64(*c.Value)) + " requests/s"
	}
	if c.What != "" {
		s += " " + doc.Clean(c.What)
	}
	if c.ChangePct != nil {
		s += ", " + unit.Change(*c.ChangePct)
		if of := 100 * (*c.Value/max(*c.BaseValue, 1) - 1); math.Abs(of-*c.ChangePct) > max(2, math.Abs(of)/4) {
			s += " in paired runs" // on an unsteady path the two means can contradict the paired change
		}
	}
	interval := unit.ChangeRange(c.LowPct, c.HighPct)
	if interval != "" && c.LevelPct != nil {
		interval = unit.Percent(*c.LevelPct) + " interval " + interval
	}
	return s + doc.Spaced(doc.Bracket(doc.Join(interval, unit.Plural(c.Pairs, "pair")+" of runs")))
}

// fromTo returns "38.9 -> 181 Mb/s", each with its unit if they differ.
func fromTo(from, to float64) string {
	if in := doc.ScaleFor(to); doc.ScaleFor(from) == in || from > 0.1*in.Div && from < 10*in.Div {
		return in.Number(from) + " -> " + unit.Rate(to)
	}
	return unit.Rate(from) + " -> " + unit.Rate(to)
}

// orders returns commands, safe to print and limited in number; it does not cut readable ones.
func orders(commands []string) (all []string) {
	for i, c := range commands {
		if i == result.MaxLines {
			return append(all, fmt.Sprintf("# and %d more, see the JSON document", len(commands)-i))
		}
		all = append(all, doc.CleanUpTo(c, result.LongestOrder))
	}
	return all
}
