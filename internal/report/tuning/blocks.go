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
		same = doc.Notice{Title: "Trust in the method", Tone: doc.ToneBad, Lines: append([]string{"where nothing was changed, a change of at most " + s.Most + " was estimated, up or down"}, s.Cases...)}
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
	title := "Left to you"
	if t.DryRun {
		title = "What to try, in this order"
	}
	return []doc.Block{
		same,
		doc.Titled("What was undone", t.Restored, doc.List{Lines: t.Left}),
		doc.Titled("The journey", t.journey(), doc.List{Lines: untuned, Notes: true}),
		doc.Titled("What was tried", doc.Cards(t.Attempts, attempt.card)...),
		doc.Para{Text: doc.Prefixed("ended: ", t.Ending)},
		doc.Titled("Options of the test that were kept", doc.Code{Lines: flags}),
		doc.Titled("To make it last beyond the next boot", doc.Cards(t.Persistent, persistence.card)...),
		doc.Titled("To undo it", doc.Code{Lines: t.Undo}),
		doc.Titled("What remains", doc.List{Lines: t.Remains}),
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
		{Name: "change", Right: true}, {Name: "held back by", Least: 14}, {Name: "in words", Wide: true}}
	return g.WithoutEmpty()
}

// card returns a change with its outcome, and the figures that decided it.
func (a attempt) card() doc.Card {
	c := doc.Card{Name: a.Title, Badge: a.Outcome, Tone: a.Tone, Text: a.Figures}
	c.Say("other way", a.Other)
	c.Say("because", a.Reason)
	c.Say("beside it", a.Guards...)
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
	c.Type("take back", l.Undo)
	return c
}

// card returns an advised change, with the commands for each host.
func (x Proposal) card() doc.Card {
	c := doc.Card{Name: fmt.Sprintf("%d. %s", x.Number, x.Title)}
	c.Say("why", x.Why+doc.Spaced(doc.Bracket(x.For)))
	c.Say("expect", x.Expect)
	c.Say("source", x.Source)
	c.Say("risk", x.danger())
	c.Say("by hand", x.Manual)
	c.Say("flags", x.Flags)
	for _, h := range x.Hosts {
		c.Type("do", h.Set, h.At, h.Words)
		c.Type("check", h.Verify)
		c.Type("undo", h.Undo)
	}
	return c
}
