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
func Answer(d *measure.Document) string {
	return strings.Join(unit.Mapped(answers(d), func(l line) string { return l.text }), "; ")
}

// line is a line of the answer.
type line struct {
	text string
	says *measure.Finding // what it contains; nil: no finding
}

// lines returns the lines of an answer that contain a finding, or nil.
func lines(says *measure.Finding, texts ...string) []line {
	return unit.Mapped(texts, func(s string) line { return line{s, says} })
}

// answers returns the lines of the answer: two if different causes limit the two directions, the worse
// direction first. A pass does not hide a failed gate.
func answers(d *measure.Document) []line {
	all := answersOf(d)
	if len(all) > 0 && (d.Command != "ladder" || d.Ladder != nil) { // the answer of a single ladder has no verdict
		all[0].text += FailedGates(d)
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

func answersOf(d *measure.Document) []line {
	switch {
	case result.IsTuning(d):
		return lines(nil, tuning.Answers(d)...)
	case result.IsTransfer(d):
		return lines(transfer.Limit(d), transfer.Answers(d)...)
	case inventory.Is(d):
		return lines(nil, inventory.Answers(d)...)
	}
	if all, says := fleet.Answers(d); all != nil {
		return lines(says, all...)
	}
	if s := ladder.Answer(d); s != "" {
		return lines(nil, s)
	}
	if result.IsDisk(d) {
		return lines(nil, transfer.DiskAnswers(d)...)
	}
	if result.IsCheck(d) {
		return lines(nil, gatesAnswer(d))
	}
	first, back, others := result.MainCells(d)
	if s := series.ClassesAnswer(d); s != "" {
		return lines(result.Named(nil, first, back), s)
	}
	switch {
	case first == nil:
		return lines(nil, doc.NonEmpty(capture.Answer(d))...)
	case back != nil && result.LimitsDiffer(d.Verdict, first, back):
		worse, other := result.WorseFirst(first, back)
		return []line{{result.Sentence(d.Verdict, worse, nil, others), result.Named(d.Verdict, worse, nil)},
			{result.OtherSentence(worse, other, d.Verdict), result.Binding(other)}}
	}
	return lines(result.Named(d.Verdict, first, back), result.Sentence(d.Verdict, first, back, others))
}
