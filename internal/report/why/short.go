package why

import (
	"strings"

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

// ShortCard returns the card of a finding with a line or two of evidence, and the fix, or what would confirm
// the cause. A summary that the answer contains leaves room for another figure.
func (f *Finding) ShortCard(direction string) doc.Card {
	if strings.HasSuffix(f.Where, direction) { // the path
		direction = ""
	}
	c := doc.Card{Name: f.Cause, Badge: f.Confidence, Where: doc.Join(direction, f.Where), Tone: f.tone(), Text: f.Summary, Said: f.Said && len(f.Evidence) > 0}
	seen := 2
	if c.Text != "" && !c.Said {
		seen = 1
	}
	c.Say("seen", f.Evidence[:min(len(f.Evidence), seen)]...)
	if f.Advice == "" && len(f.Commands) == 0 {
		c.Say("next", f.Next)
	}
	c.Type("do", f.Commands, f.Advice, f.At)
	return c
}
