package report

import (
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/capture"
	"thru/internal/report/fleet"
	"thru/internal/report/inventory"
	"thru/internal/report/ladder"
	"thru/internal/report/result"
	"thru/internal/report/series"
	"thru/internal/report/transfer"
	"thru/internal/report/tuning"
	"thru/internal/unit"
)

// Answer returns the result in words, and what limits it.
func Answer(d *measure.Document) string { return strings.Join(answers(d), "; ") }

// answers returns the lines of the answer: two if different causes limit the two directions, the worse
// direction first. A pass does not hide a failed gate.
func answers(d *measure.Document) []string {
	all := answersOf(d)
	if len(all) > 0 && (d.Command != "ladder" || d.Ladder != nil) { // the answer of a single ladder has no verdict
		all[0] += FailedGates(d)
	}
	return all
}

// FailedGates returns "; 1 gate fails" for a verdict that passes all the same; else nothing.
func FailedGates(d *measure.Document) string {
	n := countGates(d.Gates, measure.GateFail)
	if n == 0 || d.Verdict == nil || !d.Verdict.Pass {
		return ""
	}
	return "; " + unit.Plural(n, "gate") + doc.Verb(n, " fails", " fail")
}

func answersOf(d *measure.Document) []string {
	switch {
	case result.IsTuning(d):
		return tuning.Answers(d)
	case result.IsTransfer(d):
		return transfer.Answers(d)
	case inventory.Is(d):
		return inventory.Answers(d)
	}
	if all := fleet.Answers(d); all != nil {
		return all
	}
	if s := ladder.Answer(d); s != "" {
		return []string{s}
	}
	if result.IsDisk(d) {
		return transfer.DiskAnswers(d)
	}
	if result.IsCheck(d) {
		return []string{gatesAnswer(d)}
	}
	if s := series.ClassesAnswer(d); s != "" {
		return []string{s}
	}
	first, back, others := result.MainCells(d)
	switch {
	case first == nil:
		if s := capture.Answer(d); s != "" {
			return []string{s}
		}
		return nil
	case back != nil && result.LimitsDiffer(d.Verdict, first, back):
		worse, other := result.WorseFirst(first, back)
		return []string{result.Sentence(d.Verdict, worse, nil, others), result.OtherSentence(worse, other, d.Verdict)}
	}
	return []string{result.Sentence(d.Verdict, first, back, others)}
}
