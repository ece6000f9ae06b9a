package report

import (
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// isExperiment tells whether a cell was measured to tell causes apart, and is
// no result of its own.
func isExperiment(c *measure.Cell) bool { return c.Experiment != "" && c.Experiment != baseExperiment }

// baseExperiment is the experiment under the conditions that were asked for.
const baseExperiment = "base"

// binding is the finding that binds a flow of bulk data; nil where none is known.
func binding(c *measure.Cell) *measure.Finding {
	if c == nil || asks(c) || len(c.Findings) == 0 {
		return nil
	}
	return &c.Findings[0]
}

// isHeld tells of a cell that a fault holds back, even to no figure at all.
func isHeld(c *measure.Cell) bool {
	f := binding(c)
	return f != nil && !f.Healthy && f.Cause != measure.CauseNone
}

// isSentOnly tells of a flow that ended early and of which only the sending end
// is known: what a host delivers when its client did not fetch it.
func isSentOnly(c *measure.Cell) bool {
	return isPartial(c) && !slices.ContainsFunc(c.Runs, func(r measure.Run) bool {
		return !slices.ContainsFunc(r.Flows, func(f measure.Flow) bool { return f.Sender != nil && f.Sender.Bytes > 0 && f.Receiver == nil })
	})
}

// heldApart tells whether two directions need a sentence each: one is held
// back by what does not hold the other. A verdict that is met needs none.
func heldApart(v *measure.Verdict, first, back *measure.Cell) bool {
	if !isHeld(first) && !isHeld(back) || v != nil && v.Pass {
		return false
	}
	f, b := binding(first), binding(back)
	return f == nil || b == nil || f.Cause != b.Cause
}

// worseFirst orders two directions by what they carried; one of them may be missing.
func worseFirst(first, back *measure.Cell) (worse, other *measure.Cell) {
	if back != nil && isHeld(back) && (!isHeld(first) || amountOf(back) < amountOf(first)) {
		return back, first
	}
	return first, back
}

// reason is what binds a cell and the one back, as the end of a sentence; ""
// where nothing was found.
func reason(first, back *measure.Cell) string {
	worse, _ := worseFirst(first, back)
	if f := binding(worse); f != nil && f.Cause != measure.CauseNone {
		return inSentence(f)
	}
	return ""
}

// unended is a text without the full stop that ends it.
func unended(text string) string { return strings.TrimSuffix(strings.TrimSpace(text), ".") }

// inSentence is a finding in words: flat where it is certain.
func inSentence(f *measure.Finding) string {
	s := unended(doc.Clean(f.Summary))
	if f.Cause == causeLinkRate {
		s = "the link is full"
	}
	switch {
	case f.Cause == measure.CauseNone:
		return "nothing found that holds it back"
	case s == "":
		return doc.Clean(f.Cause)
	case f.Confidence == measure.Likely:
		return "probably " + s
	case f.Confidence == measure.Possible:
		return "perhaps " + s
	}
	return s
}

// causeLinkRate is the finding of a flow that fills a link of known rate.
const causeLinkRate = "link-rate"

// verdictReason stands behind the verdict: what kept it from being met, or that the link is full.
func verdictReason(v *measure.Verdict, first, back *measure.Cell) string {
	full := func(c *measure.Cell) bool { return c == nil || binding(c) != nil && binding(c).Cause == causeLinkRate }
	s := reason(first, back)
	if s == "" || v.Pass && !(full(first) && full(back)) {
		return ""
	}
	return ", " + s
}

// otherSentence is the direction that carried more, where another cause holds it, or none.
func otherSentence(worse, other *measure.Cell, v *measure.Verdict) string {
	print := unit.Rate
	if v != nil && other.Ceiling != nil {
		print = ofLink(other)
	}
	s := amounts(other, nil, print)
	if worse.Group == other.Group && stat.Measured(other) {
		s += " at the same time"
	}
	if f := binding(other); f != nil {
		s += ": " + inSentence(f)
	}
	return s
}
