package control

import (
	"context"
	"slices"
	"time"

	"thru/internal/cause"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Run runs the whole plan. The document is usable on error too: it holds the
// results until then, and the error.
func (r *Runner) Run(ctx context.Context, p plan.Plan) (*measure.Document, error) {
	begin := time.Now()
	doc := r.document(p.Command, begin)
	doc.Cells = cells(p)
	r.goesOn = manyPairs(p)
	err := r.resume(p, doc, begin)
	if err == nil {
		err = r.carryOut(ctx, p, doc)
	}
	if ctx.Err() != nil {
		err = interruption(doc)
	}
	r.fetchCounters(ctx, doc)
	r.conclude(p, doc)
	if err != nil && ctx.Err() == nil {
		if v := r.unseen(doc); v != nil {
			doc.Verdict, err = v, fault.New(fault.Inconclusive, fault.Hint(err), "%w", err)
		}
	}
	if err == nil {
		err = damaged(doc)
	}
	if err == nil && r.wholly(p) {
		err = r.missed(doc)
	}
	return finished(doc, begin, err)
}

// carryOut reads the hosts, judges the gates and measures.
func (r *Runner) carryOut(ctx context.Context, p plan.Plan, doc *measure.Document) error {
	facts, routes, err := r.facts(ctx, doc, 0, r.facing(p))
	if err == nil {
		err = r.allowed(p)
	}
	brief := false
	if err == nil {
		r.findGuests(ctx, doc, routes)
		r.summarise(p, doc, facts)
		brief, err = r.fit(ctx, p, doc, routes)
	}
	if err == nil {
		r.placeEnds(ctx, doc, brief)
	}
	if err == nil {
		r.watchGuests(ctx, doc)
		if err = r.runAll(ctx, p, doc, facts); err != nil {
			r.forgetPath()
		}
	}
	return err
}

// wholly reports whether this Runner runs the plan to its end.
func (r *Runner) wholly(p plan.Plan) bool { return r.Until == 0 || r.Until >= p.Runs() }

// damaged returns an error where --verify found data changed on the path.
func damaged(doc *measure.Document) error {
	for _, c := range doc.Cells {
		if v := c.Checked; v != nil && v.WrongBytes > 0 {
			return fault.Failf("find what changes data on the path (NIC, switch, middlebox); the figures are right",
				"control: the path corrupted %d of %d bytes from %s to %s", v.WrongBytes, v.Bytes, c.From, c.To)
		}
	}
	return nil
}

// cells lists the plan's flows, in the order of its steps.
func cells(p plan.Plan) []measure.Cell {
	out := []measure.Cell{}
	for g, s := range p.Steps {
		for i, spec := range s.Specs {
			out = append(out, measure.Cell{
				From: spec.From, To: spec.To, Label: cellLabel(s, i), Group: g, Protocol: spec.Protocol, Streams: spec.Streams,
				Window: spec.Window, Length: spec.Length, Spec: spec, Baseline: s.Baseline, Runs: []measure.Run{},
				AtOnce: len(s.Specs), AskedPct: p.Repeat.PrecisionPct, Rung: s.Rung, Axes: s.Axes,
			})
		}
	}
	return out
}

// cellLabel returns the label that distinguishes the flows of a step: two
// directions, or requests during the traffic. Pairs are distinguished by their names.
func cellLabel(s plan.Step, i int) string {
	bulk := unit.CountFunc(s.Specs, func(x measure.Spec) bool { return x.Traffic == measure.Bulk })
	switch {
	case i < len(s.Labels):
		return s.Labels[i]
	case len(s.Specs) < 2 || s.Independent:
		return s.Label
	case s.Specs[i].Traffic != measure.Bulk:
		return plan.LoadedLatency
	case bulk < 2:
		return s.Label
	default:
		return []string{"forward", "back"}[i%2]
	}
}

// unseen returns an inconclusive verdict where a rate was required and an end
// point was lost before its results came: that says nothing about the path. nil where none was lost.
func (r *Runner) unseen(doc *measure.Document) *measure.Verdict {
	if r.Link.RateBps == 0 || doc.Verdict != nil && !doc.Verdict.Pass {
		return nil
	}
	for _, e := range doc.EndPoints {
		if x := r.Ends[e.Name]; x != nil && x.Down == nil && r.gone(x) != nil {
			return &measure.Verdict{Inconclusive: true, Required: stat.PassPct, Reason: "the control connection to " + e.Name + " was lost before its results arrived", Do: "use another path for the control connection than for the traffic, and measure again"}
		}
	}
	return nil
}

// conclude adds what concerns the whole document: warnings, verdict, comparisons, diagnosis.
func (r *Runner) conclude(p plan.Plan, doc *measure.Document) {
	onlyShown(doc)
	r.describeEnds(doc)
	if w := wallWarning(doc.EndPoints); w != "" {
		doc.Warnings = append(doc.Warnings, w)
	}
	stat.Scale(doc.Cells)
	stat.LatencyUnderLoad(doc.Cells)
	doc.Verdict = stat.Verdict(doc.Cells)
	if r.goesOn {
		stat.Groups(doc)
		stat.Ladder(doc, func(rung string) stat.Link { return r.linkOfRung(p, rung) })
		stat.Compare(doc)
		stat.Goals(doc, goals(p))
	}
	doc.Recommended = stat.Recommend(doc)
	cause.Diagnose(doc)
	cause.Rungs([]*measure.Document{doc})
	if p.Command == "ladder" {
		doc.Advice = stat.StreamAdvice(topmost(doc.Cells), cpusOf(doc)).Lines
	}
}

// topmost returns the cells of a ladder's last rung, which measures the path in
// question. Cells confined to CPUs say nothing about how many streams to use.
func topmost(cells []measure.Cell) []measure.Cell {
	return slices.DeleteFunc(slices.Clone(cells), func(c measure.Cell) bool {
		return c.Rung != cells[len(cells)-1].Rung || c.Spec.SenderCPUs != ""
	})
}

// goals returns the targets of the plan in the form that stat uses.
func goals(p plan.Plan) (gs []stat.Goal) {
	for _, t := range p.Targets {
		gs = append(gs, stat.Goal{Of: t.Of, Where: t.Where, Rung: t.Rung, Figure: t.Figure, Wanted: t.Wanted, AtMost: t.AtMost})
	}
	return gs
}

// linkOfRung returns the link of the rung's first step.
func (r *Runner) linkOfRung(p plan.Plan, rung string) stat.Link {
	for _, s := range p.Steps {
		if s.Rung == rung {
			return r.link(p, s)
		}
	}
	return r.Link
}

func cpusOf(doc *measure.Document) int {
	for _, e := range doc.EndPoints {
		if e.Facts != nil && e.Facts.Cores != nil {
			return *e.Facts.Cores
		}
	}
	return 0
}
