package result

import (
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
)

// IsExperiment tells whether a cell was measured to tell causes apart, and is
// no result of its own.
func IsExperiment(c *measure.Cell) bool { return c.Experiment != "" && c.Experiment != baseExperiment }

// baseExperiment is the experiment under the conditions that were asked for.
const baseExperiment = "base"

// Binding is the finding that binds a flow of bulk data; nil where none is known.
func Binding(c *measure.Cell) *measure.Finding {
	if c == nil || Asks(c) || len(c.Findings) == 0 {
		return nil
	}
	return &c.Findings[0]
}

// IsLimited tells of a cell that a fault holds back, even to no figure at all.
func IsLimited(c *measure.Cell) bool {
	f := Binding(c)
	return f != nil && !f.Healthy && f.Cause != measure.CauseNone
}

// IsSentOnly tells of a flow that ended early and of which only the sending end
// is known: what a host delivers when its client did not fetch it.
func IsSentOnly(c *measure.Cell) bool {
	return IsPartial(c) && !slices.ContainsFunc(c.Runs, func(r measure.Run) bool {
		return !slices.ContainsFunc(r.Flows, func(f measure.Flow) bool { return f.Sender != nil && f.Sender.Bytes > 0 && f.Receiver == nil })
	})
}

// Unended is a text without the full stop that ends it.
func Unended(text string) string { return strings.TrimSuffix(strings.TrimSpace(text), ".") }

// InSentence is a finding in words: flat where it is certain.
func InSentence(f *measure.Finding) string {
	s := Unended(doc.Clean(f.Summary))
	if f.Cause == CauseLinkRate {
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

// CauseLinkRate is the finding of a flow that fills a link of known rate.
const CauseLinkRate = "link-rate"
