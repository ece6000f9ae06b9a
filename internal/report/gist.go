package report

import (
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/fleet"
	"thru/internal/report/inventory"
	"thru/internal/report/result"
	"thru/internal/report/transfer"
	"thru/internal/report/why"
	"thru/internal/stat"
)

// Gist holds the contents of the short form on a terminal (package short), in the words of the long form.
type Gist struct {
	Check    bool     // hosts and path were judged, nothing was measured
	Answer   []string // its lines
	Tone     doc.Tone // of the answer
	Partial  bool     // it ended early
	AtOnce   bool     // both directions ran at the same time
	Flows    []Flow   // the first direction, and the reverse one
	Others   int      // flows that are omitted
	Failed   []string // flows without any figure, and why
	Why      []Reason
	Limit    string   // without a finding to show: "the link (full)"
	Also     []string // findings after the first, "paced (likely)"
	Gates    []doc.Block
	Warned   []string // names of gates that warn
	Warnings []string // except those that the figures contain
	Advice   []string
	Path     []doc.Block // of a check
	Body     []doc.Block // what other results have in place of flows
	Reason   string      // of the verdict
	Risks    bool        // of the fixes, which --all names
	RuledOut int         // causes
	Facts    int         // not checked, including those that causes lack
}

// Reason is the first finding of a direction. Help: a page explains its cause.
type Reason struct {
	why.Finding
	Direction string
	Help      bool
}

// Flow is one direction, and what limits it.
type Flow struct {
	Name, Limit string
	Cell        *measure.Cell
}

// NewGist returns the short form of a document; false if nothing was measured.
func NewGist(whole *measure.Document) (g Gist, ok bool) {
	v, d := newView(whole), result.LastState(whole)
	special := result.IsTuning(d) || result.IsTransfer(d) || result.IsDisk(d) || inventory.Is(d)
	if !special && !result.IsCheck(d) && !result.OfFiles(d) && !measured(d) {
		return g, false
	}
	g = Gist{Check: result.IsCheck(d), Answer: doc.NonEmpty(v.Answer, v.Back), Advice: v.Advice, Warnings: warningsBut(d, isInFigure)}
	if v.Verdict != nil {
		g.Reason = v.Verdict.Reason
	}
	switch g.Tone = acceptanceOf(whole, d).Tone; {
	case g.Check:
		g.Tone = checkTone(d)
	case g.Tone == doc.ToneOpen:
		g.Tone = doc.ToneWarn
	}
	if g.body(v, d); !special && d.Command != "ladder" && len(g.Body) == 0 {
		if g.flows(d); v.Fleet != nil {
			g.Failed, g.Body = nil, []doc.Block{v.Fleet.BriefFailures()} // also of flows without a cell
		}
	}
	if !result.IsTuning(d) { // it has tried what findings and gates advise
		g.reasons(v, !result.IsTransfer(d))
		g.gates(v)
	}
	for _, x := range slices.Concat(v.Missing, v.FactGaps) {
		g.Facts += len(x.Facts)
	}
	return g, true
}

// body sets what a result other than that of two directions shows.
func (g *Gist) body(v *view, d *measure.Document) {
	switch {
	case result.IsTuning(d):
		g.Body = v.Tuning.Brief(d.Tuning.Attempts)
	case v.Moving != nil:
		g.Body = v.Moving.Brief()
	case result.IsDisk(d):
		g.Body, g.Facts = transfer.BriefDisks(d.Disks)
	case inventory.Is(d):
		g.Body, g.Facts = inventory.Brief(d)
	case v.Fleet != nil && v.Fleet.Waterfall == nil && len(v.Ladders) == 0:
		if all, _ := fleet.Answers(d); all != nil { // else it is a test of two hosts
			g.Body = v.Fleet.Brief(d)
		}
	default:
		g.Body = v.shortLadder()
	}
}

// isInFigure reports whether a word next to the figure covers the warning, or every short test has it.
func isInFigure(code string) bool {
	return slices.Contains([]string{measure.SingleRun, measure.FewRuns, measure.TooShort, measure.EndedEarly}, code)
}

func (g *Gist) flows(d *measure.Document) {
	first, back, others := result.MainCells(d)
	g.Others, g.AtOnce = others, first != nil && back != nil && first.Group == back.Group
	for _, c := range []*measure.Cell{first, back} {
		if c == nil {
			continue
		}
		g.Partial = g.Partial || result.IsPartial(c)
		f := Flow{Name: result.PathName(c), Cell: c}
		if others > 0 && c.AtOnce > 2 { // each class at once (--rrul)
			f.Name = doc.Join(f.Name, result.ClassName(c.Spec.DSCP))
		}
		if len(c.Findings) > 0 {
			x := why.NewFinding(&c.Findings[0], nil)
			f.Limit = x.Limit()
		}
		g.Flows = append(g.Flows, f)
	}
	for i := range d.Cells {
		c := &d.Cells[i]
		if !c.Baseline && !result.IsExperiment(c) && !result.IsGauge(d, c) && !slices.Contains([]*measure.Cell{first, back}, c) && stat.MainFigure(c) == nil && c.Error != nil {
			g.Failed = append(g.Failed, result.PathName(c)+": "+doc.Reason(c.Error.Message))
		}
	}
}

// reasons adds the first finding of each direction, with its evidence and fix. explained: pages have its cause.
func (g *Gist) reasons(v *view, explained bool) {
	open := 0
	for _, d := range slices.Concat(v.Why, v.Judged) {
		g.RuledOut, open = max(g.RuledOut, len(d.RuledOut)), max(open, len(d.Open))
		for n := range d.Findings {
			f := &d.Findings[n]
			switch {
			case f.Healthy || f.Cause == measure.CauseNone:
				if n == 0 {
					g.Limit = doc.Colon(d.Direction, f.Limit())
				}
			case n == 0 && !slices.ContainsFunc(g.Why, func(x Reason) bool { return x.Cause == f.Cause && x.Summary == f.Summary }):
				g.Why = append(g.Why, Reason{*f, d.Direction, explained && len(g.Why) == 0})
				g.Risks = g.Risks || f.Risk != ""
			case n > 0 && !slices.Contains(g.Also, f.Limit()):
				g.Also = append(g.Also, f.Limit())
			}
		}
	}
	g.Facts += open
}

// gates adds the gates that need action: of a check with the fix, else by name. It gives each advice once, also if
// a finding has it.
func (g *Gist) gates(v *view) {
	var said, ran []string
	order := func(host string, commands []string) string { return host + ": " + strings.Join(commands, "\n") }
	for _, f := range g.Why {
		said, ran = append(said, f.Advice), append(ran, order(f.Host, f.Commands))
	}
	for _, x := range v.Gates {
		switch failed := x.Status == measure.GateFail; {
		case !failed && x.Status != measure.GateWarn:
		case g.Check || failed:
			g.Risks = g.Risks || x.Risk != ""
			x.Why, x.Risk = "", ""
			if slices.Contains(said, x.Advice) {
				x.Advice = ""
			}
			run := order(x.host, x.Fix)
			if x.Advice == "" && slices.Contains(ran, run) {
				x.At, x.Fix = "", nil
			}
			said, ran = append(said, x.Advice), append(ran, run)
			g.Gates = append(g.Gates, gateList{x}.Cards()...)
		default:
			g.Warned = append(g.Warned, x.ID+" "+doc.Bracket(x.Where))
		}
	}
	for _, p := range v.Paths {
		if rows := doc.BriefRows(p.Rows); g.Check && len(rows) > 0 {
			g.Path = append(g.Path, doc.Pairs{Name: p.Name, Rows: rows})
		}
	}
}

// shortLadder returns the cost of each layer, or the figures of a single ladder.
func (v *view) shortLadder() (all []doc.Block) {
	if v.Fleet != nil && v.Fleet.Waterfall != nil {
		w := v.Fleet.Waterfall
		var lines []string
		for _, r := range w.Rungs {
			if (r.Limited || r.Carried == 0) && len(r.Said) > 0 {
				lines = append(lines, r.Name+": "+r.Said[0])
			}
		}
		return []doc.Block{doc.Titled("What each layer costs", w.Table(), doc.List{Lines: lines, Notes: true})}
	}
	for i := range v.Ladders {
		l := &v.Ladders[i]
		all = append(all, doc.Section{Title: l.Path, Named: true, Body: []doc.Block{l.Table(i == 0)}})
	}
	return all
}
