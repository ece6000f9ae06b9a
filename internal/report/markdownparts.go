package report

import (
	"fmt"
	"strings"

	"thru/internal/doc"
)

// tuned is what a tuning did: the journey, each change, what makes it last.
func (m *markup) tuned(t *tuning) {
	if t == nil {
		return
	}
	if len(t.Restored.Rows) > 0 {
		m.Head(2, "What was undone")
		m.Table(t.Restored)
		m.list(t.Left)
	}
	if t.Same != nil {
		m.Head(2, "Trust in the method")
		m.para("The greatest change that was estimated, where nothing was changed: " + t.Same.Most)
		m.list(t.Same.Cases)
	}
	var rows [][]string
	for _, s := range t.Journey {
		held := s.Words
		if held == "" {
			held = s.Held
		}
		rows = append(rows, []string{s.State, s.Way, s.Figure, orDash(s.Range), orDash(s.Change), held})
	}
	if len(rows) > 0 {
		m.Head(2, "The journey")
		m.table("", []string{"state", "path", t.Unit(), "range", "change", "held back by"}, []bool{false, false, true, true, true}, rows)
	}
	m.list(t.Untuned)
	m.attempts(t.Attempts)
	m.para(prefixed("Ended: ", t.Ending))
	if t.Flags != "" {
		m.Head(2, "Options of the test that were kept")
		m.code([]string{t.Flags})
	}
	m.lasting(t)
	if len(t.Remains) > 0 {
		m.Head(2, "What remains")
		m.list(t.Remains)
	}
	m.proposals(t)
}

func (m *markup) attempts(all []attempt) {
	if len(all) > 0 {
		m.Head(2, "What was tried")
	}
	for _, a := range all {
		m.Head(3, a.Outcome+": "+a.Title)
		m.list(nonEmpty(append(append([]string{a.Figures, a.Other, a.Reason, prefixed("why: ", a.Why)}, a.Guards...), a.Proofs...)...))
	}
}

func (m *markup) lasting(t *tuning) {
	if len(t.Lasting) > 0 {
		m.Head(2, "To make it last beyond the next boot")
	}
	for _, l := range t.Lasting {
		m.Head(3, "At "+l.At+spaced(bracket(l.Manager)))
		m.para(l.Words)
		m.para(prefixed("Write ", l.File))
		m.code(l.Content)
		m.code(l.Commands)
	}
	if len(t.Undo) > 0 {
		m.Head(2, "To undo it")
		m.code(t.Undo)
	}
}

func (m *markup) proposals(t *tuning) {
	if len(t.Advice) == 0 {
		return
	}
	m.Head(2, map[bool]string{true: "What to try, in this order", false: "Left to you"}[t.DryRun])
	for _, a := range t.Advice {
		m.Head(3, fmt.Sprintf("%d. %s", a.Number, a.Title))
		m.list(nonEmpty(prefixed("why: ", a.Why), prefixed("for: ", a.For), prefixed("expect: ", a.Expect), prefixed("risk: ", a.Risk), prefixed("by hand: ", a.ByHand), prefixed("flags: ", a.Flags)))
		for _, h := range a.Hosts {
			m.para(strings.TrimSpace(h.At + " " + h.Words))
			m.code(h.Set)
		}
	}
}

// captured is what the packets show.
func (m *markup) captured(all []packets) {
	for _, p := range all {
		title := "What the packets show"
		if p.Way != "" {
			title += ", " + p.Way
		}
		m.Head(2, title)
		places := p.Places()
		m.pairs(places.Name, places.Rows)
		if x := p.Crossed(); x != nil {
			m.pairs(x.Name, x.Rows)
		}
		var rows [][]string
		for _, r := range p.Conns.Rows {
			row := []string{r.Label()}
			for _, v := range r.Values {
				row = append(row, orDash(v))
			}
			rows = append(rows, row)
		}
		m.table("Connections", append([]string{""}, p.Conns.Names...), nil, rows)
	}
}

// tried is the steps of an explanation.
func (m *markup) tried(p *page) {
	if len(p.Steps) == 0 {
		return
	}
	m.Head(2, "What was tried")
	var rows [][]string
	for _, s := range p.Steps {
		rows = append(rows, []string{fmt.Sprint(s.Number), join(s.Title, s.Way), s.Figure, orDash(s.Against), s.Tells, s.Took})
	}
	m.table("", []string{"", "tried", "figure", "against", "what it says", "took"}, nil, rows)
	m.para(prefixed("Ended: ", p.Ended))
}

// planned is what a plan measured: rungs, comparisons, targets, settings, pairs.
func (m *markup) planned(p *page) {
	if p.Fleet != nil {
		m.fleet(p.Fleet)
	}
	for _, l := range p.Ladders {
		m.Head(2, l.Path)
		m.ladder(l)
	}
}

func (m *markup) fleet(f *fleet) {
	if f.Waterfall != nil {
		doc.Print(m, f.Waterfall.Blocks())
	}
	if len(f.Compared) > 0 {
		m.Head(2, "Against each other")
	}
	for _, c := range f.Compared {
		m.para(c.Text)
		m.list(nonEmpty(append([]string{c.Reason}, c.Guards...)...))
	}
	for _, part := range []struct {
		name string
		grid grid
	}{{"Targets", f.AllTargets()}, {"What was varied", f.AllSets()}} {
		if len(part.grid.Rows) > 0 {
			m.Head(2, part.name)
			m.Table(part.grid)
		}
	}
	for _, s := range f.Details {
		m.set(s)
	}
}

func (m *markup) set(s setView) {
	name := s.Name
	if name == "" {
		name = "All pairs"
	}
	m.Head(2, name)
	m.para(s.Overlap)
	if s.Matrix != nil {
		m.Matrix(*s.Matrix)
	}
	for _, g := range append([]grid{s.Hosts, s.Labels, s.Held, s.Slow}, s.Pairs...) {
		if len(g.Rows) > 0 {
			m.Table(g)
		}
	}
}

func (m *markup) ladder(l ladderPage) {
	head, right := []string{"streams"}, []bool{true}
	for _, n := range l.Names {
		head, right = append(head, n+" window, "+l.Unit.Name(), "range", "CPU sender/receiver"), append(right, true, true, true)
	}
	var rows [][]string
	for _, r := range l.Table {
		row := []string{fmt.Sprint(r.Streams)}
		for _, x := range r.Rungs {
			row = append(row, strings.TrimSpace(x.Value+" "+x.Mark()), x.Range, x.CPU)
		}
		rows = append(rows, row)
	}
	m.table("* the most; ~ may be as much", head, right, rows)
	m.list(l.Notes)
}

// gates are the conditions, those that did not pass first.
func (m *markup) gates(p *page) {
	if len(p.Gates) > 0 {
		m.Head(2, "Gates")
	}
	var rows [][]string
	for _, g := range append(firstGates(p.Open()), firstGates(p.Passed())...) {
		found := strings.Join(nonEmpty(g.Fact, g.Advice, g.At, strings.Join(g.Remedy, "; ")), "; ")
		rows = append(rows, []string{g.Word + " " + g.ID, g.Where, found, g.Why})
	}
	m.table("", []string{"gate", "of", "found", "why it matters"}, nil, rows)
	m.para(join(moreGates(p.Open()), moreGates(p.Passed())))
	if len(p.Paths) > 0 {
		m.Head(2, "Path")
	}
	for _, t := range p.Paths {
		m.pairs(t.Name, t.Rows)
	}
}

// measured is the figures of each flow, with its seconds.
func (m *markup) measured(p *page) {
	if len(p.Main) > 0 {
		m.Head(2, map[bool]string{true: "The slowest pairs", false: "Figures"}[p.Slowest()])
	}
	for _, c := range p.Main {
		m.pairs(join(c.Name, c.What), c.Rows)
	}
	if p.Latency != nil {
		m.Head(2, "Latency")
		m.tableOf(p.Latency.Table)
	}
}

// cells are the streams and seconds of each flow.
func (m *markup) cells(p *page) {
	if len(p.Details) > 0 {
		m.Head(2, "Each cell")
	}
	for _, c := range p.Details {
		m.Head(3, join(c.Name, c.What))
		if !c.Shown {
			m.pairs("", c.Rows)
		}
		if len(c.Streams.Rows) > 0 {
			m.tableOf(c.Streams)
		}
		if len(c.Seconds.Rows) > 0 {
			m.tableOf(c.Seconds)
		}
	}
	if p.Hidden > 0 {
		m.para(fmt.Sprintf("%d more cells are in the JSON document.", p.Hidden))
	}
}
