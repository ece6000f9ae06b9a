package fleet

import (
	"fmt"
	"slices"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// Limits of what is shown of targets and comparisons.
const (
	textTargetRows = 20
	fewTargets     = 8 // up to this number a terminal lists all
	maxCompared    = 40
)

// TargetTable lists the targets of the plan and their results, failed ones first.
func TargetTable(d *measure.Document) doc.Table {
	g := doc.Table{Tone: failedTone, Columns: []doc.Column{{Name: "target", Least: 14}, {Name: "required", Right: true}, {Name: "measured", Right: true}, {Name: ""}, {Name: "why", Least: 14, Detail: true}}}
	sorted := slices.Clone(d.Targets)
	slices.SortStableFunc(sorted, func(a, b measure.Target) int { return passed(a) - passed(b) })
	for _, t := range sorted {
		got := "not measured"
		if t.Got != nil {
			got = result.TargetValue(*t.Got, t.Unit)
		}
		bar := "at least "
		if t.AtMost {
			bar = "at most "
		}
		bar += result.TargetValue(t.Wanted, t.Unit)
		why := doc.Clean(t.Reason)
		if why == got { // the column before has it
			why = ""
		}
		g.Rows = append(g.Rows, []string{doc.Clean(t.What), bar, got, []string{"fail", "pass"}[passed(t)], doc.OrDash(why)})
	}
	return g
}

// brief omits met targets, which come after the missed ones, if there are many.
func brief(g doc.Table, missed int) doc.Table {
	if n := len(g.Rows) - missed; n > 0 && len(g.Rows) > fewTargets {
		g.Rows, g.More = g.Rows[:missed], fmt.Sprintf("and %d met", n)
	}
	if left := len(g.Rows) - textTargetRows; left > 0 {
		g.Rows, g.More = g.Rows[:textTargetRows], fmt.Sprintf("and %d more not met", left)
	}
	return g
}

func passed(t measure.Target) int {
	if t.Pass {
		return 1
	}
	return 0
}

// TargetsLine returns "3 of 8 targets are not met", "all 8 targets are met".
func TargetsLine(d *measure.Document) string {
	failed := FailedTargets(d)
	switch n := len(d.Targets); {
	case n == 0:
		return ""
	case failed == 0 && n == 1:
		return "the target is met"
	case failed == 0:
		return fmt.Sprintf("all %d targets are met", n)
	case n == 1:
		return "the target is not met"
	default:
		return fmt.Sprintf("%d of %d targets %s not met", failed, n, doc.Verb(failed, "is", "are"))
	}
}

// targetsAnswer is TargetsLine for the answer: a target that is not met may be inconclusive.
func targetsAnswer(d *measure.Document) string {
	if v := d.Verdict; v != nil && v.Inconclusive {
		return result.VerdictWord(v) + ", " + TargetsLine(d)
	}
	return TargetsLine(d)
}

// FailedTargets counts the targets that are not met.
func FailedTargets(d *measure.Document) int {
	failed := 0
	for _, t := range d.Targets {
		failed += 1 - passed(t)
	}
	return failed
}

// comparison is an A/B test in words.
type comparison struct {
	Text    string // one sentence
	Reason  string
	Outcome string
	Guards  []string // guardrails that got worse, or were not judged
	Tone    doc.Tone
}

func newComparisons(d *measure.Document) []comparison {
	var all []comparison
	for i := range d.Comparisons[:min(len(d.Comparisons), maxCompared)] {
		c := &d.Comparisons[i]
		v := comparison{Text: comparisonText(c), Reason: doc.Clean(c.Reason), Outcome: doc.Clean(c.Outcome)}
		v.Tone = map[string]doc.Tone{measure.Improved: doc.ToneGood, measure.Worse: doc.ToneBad, measure.Undecided: doc.ToneWarn}[c.Outcome]
		for j := range c.Guardrails[:min(len(c.Guardrails), result.MaxProofs)] {
			if s := result.GuardText(&c.Guardrails[j]); s != "" {
				v.Guards = append(v.Guards, s)
			}
		}
		all = append(all, v)
	}
	return all
}

// comparisonText returns "bbr against cubic: goodput +12.0% (95% interval +9.1..+15.0%, 8 pairs of runs):
// improved".
func comparisonText(c *measure.Comparison) string {
	s := doc.Clean(c.Variant) + " against " + doc.Clean(c.Base)
	if c.ChangePct != nil {
		figure := "goodput"
		if c.Figure == "transactions_per_s" {
			figure = "requests"
		}
		s += ": " + figure + " " + unit.Change(*c.ChangePct)
	}
	interval := unit.ChangeRange(c.LowPct, c.HighPct)
	if interval != "" {
		level := 95.0
		if c.LevelPct != nil {
			level = *c.LevelPct
		}
		interval = unit.Percent(level) + " interval " + interval
	}
	s += " (" + doc.Join(interval, comparedRuns(c)) + ")"
	if c.What != "" {
		s += ", " + doc.Clean(c.What)
	}
	if c.Outcome == measure.NotCompared {
		return s + ": " + doc.Clean(c.Outcome) + doc.Spaced(doc.Bracket(doc.Clean(c.Reason)))
	}
	return s + ": " + doc.Clean(c.Outcome)
}

// comparedRuns returns the number of runs of a comparison: "8 pairs of runs".
func comparedRuns(c *measure.Comparison) string {
	if b := c.Blocks; b != nil {
		return fmt.Sprintf("%d and %s, in blocks", b.BaseRuns, unit.Plural(b.VariantRuns, "run"))
	}
	return unit.Plural(c.Pairs, "pair") + " of runs"
}
