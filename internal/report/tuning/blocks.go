package tuning

import (
	"fmt"

	"thru/internal/doc"
)

// Blocks returns what a tuning did, or advises: the states, each change, and how to make it persistent.
func (t *View) Blocks() []doc.Block {
	if t == nil {
		return nil
	}
	var same doc.Notice
	if s := t.Same; s != nil {
		same = doc.Notice{Title: "A/A check", Tone: doc.ToneBad, Lines: append([]string{"the largest difference between two equal states is " + s.Most}, s.Cases...)}
		if s.trusted() {
			same.Tone = doc.ToneGood
		}
	}
	var untuned []string
	for _, s := range t.Untuned {
		untuned = append(untuned, "not set at "+s)
	}
	var flags []string
	if t.Flags != "" {
		flags = []string{t.Flags}
	}
	title := "Further options"
	if t.DryRun {
		title = "Proposed changes, in this order"
	}
	return []doc.Block{
		same,
		doc.Titled("Undone changes", t.Restored, doc.List{Lines: t.Left}),
		doc.Titled("Progress", t.journey(), doc.List{Lines: untuned, Notes: true}),
		doc.Titled("Tried changes", doc.Cards(t.Attempts, attempt.card)...),
		doc.Para{Text: doc.Prefixed("ended: ", t.Ending)},
		doc.Titled("Kept test options", doc.Code{Lines: flags}),
		doc.Titled("Make the changes persistent", doc.Cards(t.Persistent, persistence.card)...),
		doc.Titled("Undo the changes", doc.Code{Lines: t.Undo}),
		doc.Titled("Remaining limits", doc.List{Lines: t.Remains}),
		doc.Titled(title, doc.Cards(t.Advice, Proposal.card)...),
	}
}

// journey returns each state, first to last, with each direction.
func (t *View) journey() doc.Table {
	meters := make([]doc.Bar, 0, len(t.Journey))
	g := doc.Table{}
	for _, s := range t.Journey {
		meters = append(meters, doc.Bar{Share: s.Bar / 100})
		g.Rows = append(g.Rows, []string{s.State, s.Path, s.Figure, doc.OrDash(s.Range), doc.OrDash(s.Change), s.Limit, doc.OrDash(s.Words)})
	}
	g.Columns = []doc.Column{{Name: "state", Least: 14}, {Name: "path", Least: 8}, {Name: t.Unit(), Right: true, Meters: meters}, {Name: "range", Right: true},
		{Name: "change", Right: true}, {Name: "limited by", Least: 14}, {Name: "explanation", Wide: true}}
	return g.WithoutEmpty()
}

// card returns a change with its outcome, and the figures that decided it.
func (a attempt) card() doc.Card {
	c := doc.Card{Name: a.Title, Badge: a.Outcome, Tone: a.Tone, Text: a.Figures}
	c.Say("reverse", a.Other)
	c.Say("because", a.Reason)
	c.Say("guardrails", a.Guards...)
	c.Say("in force", a.Proofs...)
	c.Say("why", a.Why)
	c.Say("took", a.Took)
	return c.For(doc.Pages, "why", "took")
}

// card returns what makes kept settings persistent on one host.
func (l persistence) card() doc.Card {
	c, run := doc.Card{Name: "At " + l.At, Where: l.Manager, Text: l.Words}, "run"
	if l.File != "" {
		c.Type("write", l.Content, l.File)
		run = "then"
	}
	c.Type(run, l.Commands)
	c.Type("undo", l.Undo)
	return c
}

// card returns an advised change, with the commands for each host.
func (x Proposal) card() doc.Card {
	c := doc.Card{Name: fmt.Sprintf("%d. %s", x.Number, x.Title)}
	c.Say("why", x.Why+doc.Spaced(doc.Bracket(x.For)))
	c.Say("expect", x.Expect)
	c.Say("source", x.Source)
	c.Say("risk", x.danger())
	c.Say("manual step", x.Manual)
	c.Say("flags", x.Flags)
	for _, h := range x.Hosts {
		c.Type("do", h.Set, h.At, h.Words)
		c.Type("check", h.Verify)
		c.Type("undo", h.Undo)
	}
	return c
}
