package result

import (
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
)

// IsExperiment reports whether a cell was measured to distinguish causes, and is no result of its own.
func IsExperiment(c *measure.Cell) bool { return c.Experiment != "" && c.Experiment != baseExperiment }

// baseExperiment is the experiment under the requested conditions.
const baseExperiment = "base"

// Binding returns the finding that limits a flow of bulk data; nil if none is known.
func Binding(c *measure.Cell) *measure.Finding {
	if c == nil || Asks(c) || len(c.Findings) == 0 {
		return nil
	}
	return &c.Findings[0]
}

// IsLimited reports whether a fault limits a cell, even to no figure at all.
func IsLimited(c *measure.Cell) bool {
	f := Binding(c)
	return f != nil && !f.Healthy && f.Cause != measure.CauseNone
}

// IsSentOnly reports whether a flow ended early and only the sender's evidence exists: what a host delivers
// if its client did not fetch it.
func IsSentOnly(c *measure.Cell) bool {
	return IsPartial(c) && !slices.ContainsFunc(c.Runs, func(r measure.Run) bool {
		return !slices.ContainsFunc(r.Flows, func(f measure.Flow) bool { return f.Sender != nil && f.Sender.Bytes > 0 && f.Receiver == nil })
	})
}

// Unended returns a text without its final full stop.
func Unended(text string) string { return strings.TrimSuffix(strings.TrimSpace(text), ".") }

// InSentence words a finding; a certain one without a hedge.
func InSentence(f *measure.Finding) string {
	s := Unended(doc.Clean(f.Summary))
	if f.Cause == CauseLinkRate {
		s = "the link is full"
	}
	switch {
	case f.Cause == measure.CauseNone:
		return "no limit found"
	case s == "":
		return doc.Clean(f.Cause)
	case f.Confidence == measure.Likely:
		return "probably " + s
	case f.Confidence == measure.Possible:
		return "possibly " + s
	}
	return s
}

// CauseLinkRate is the finding that a flow fills a link of known rate.
const CauseLinkRate = "link-rate"
