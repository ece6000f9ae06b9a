package why

import (
	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
)

// Limit names the limiting cause in a word or two.
func (f *Finding) Limit() string {
	switch {
	case f.Cause == measure.CauseNone:
		return "not found"
	case f.Cause == result.CauseLinkRate:
		return "the link (full)"
	case f.Confidence != measure.Certain:
		return f.Cause + " " + doc.Bracket(f.Confidence)
	}
	return f.Cause
}

// mostSeen is how many figures a short card shows.
const mostSeen = 2

// ShortCard returns the card of a finding with its first evidence, and the fix.
func (f *Finding) ShortCard(direction string) doc.Card {
	brief := *f
	brief.Evidence = f.Evidence[:min(len(f.Evidence), mostSeen)]
	if len(f.Commands) > 0 || f.Advice != "" && f.Confidence == measure.Certain {
		brief.Next = ""
	}
	c := brief.card().For(doc.Pages, "rule")
	c.Where = doc.Join(direction, c.Where)
	return c
}
