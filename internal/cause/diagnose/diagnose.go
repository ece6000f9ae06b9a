// Package diagnose explains why a flow carries no more than it does: from the evidence of both ends, the facts of
// the hosts and the path, and the gates it makes findings, the binding one first (docs/causes.md).
//
// It is pure: the same document gives the same findings. It never guesses: for every cause of the catalogue it
// reports that it holds, that the evidence excludes it, or which fact is missing. A wrong "certain" is worse than
// "not checked".
package diagnose

import (
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/stat"
)

// Cells fills the findings of every cell that the user requested.
func Cells(d *measure.Document, cat *Catalogue) {
	for i := range d.Cells {
		c := &d.Cells[i]
		c.Diagnosis = measure.Diagnosis{}
		if f := NewFlow(cat, d, c); f != nil {
			c.Diagnosis = f.diagnose()
		}
	}
}

// NewFlow returns the diagnosis of one cell; nil if there is nothing to diagnose: requests, cells without a run,
// and the experiments of an explanation, which are evidence for their base.
func NewFlow(cat *Catalogue, d *measure.Document, c *measure.Cell) *Flow {
	if c.Spec.Traffic != measure.Bulk || c.Experiment != "" && c.Experiment != Base || len(c.Runs) == 0 {
		return nil
	}
	f := &Flow{Cat: cat, Doc: d, Cell: c}
	f.Run = RunShown(c)
	seen := f.FlowOf(f.Run)
	f.Sender = newEnd(f, measure.AtSender, c.From, seen.Sender)
	f.Receiver = newEnd(f, measure.AtReceiver, c.To, seen.Receiver)
	f.findPackets()
	return f
}

// FlowOf returns the traffic of the cell's direction in a run, of this cell or of an experiment; empty if there
// was none.
func (f *Flow) FlowOf(r *measure.Run) (seen measure.Flow) {
	for _, x := range r.Flows {
		if x.From == f.Cell.From && x.To == f.Cell.To || len(r.Flows) == 1 {
			seen = x
		}
	}
	return seen
}

// RunShown returns the complete run nearest the median of the runs, the most typical one. Without a complete one
// it is the last run; a cell without runs gives an empty one.
func RunShown(c *measure.Cell) *measure.Run {
	if len(c.Runs) == 0 {
		return &measure.Run{}
	}
	best, off := &c.Runs[len(c.Runs)-1], -1.0
	median := stat.Median(stat.RunFigures(c))
	for i := range c.Runs {
		r := &c.Runs[i]
		bps, ok := stat.RunFigure(c, r)
		if !ok || r.Partial || r.Error != nil {
			continue
		}
		if far := max(bps-median, median-bps); off < 0 || far < off {
			best, off = r, far
		}
	}
	return best
}

// diagnose applies every rule.
func (f *Flow) diagnose() measure.Diagnosis {
	var d measure.Diagnosis
	var held []Judged
	var lacking []string // causes that usually bind, with missing facts
	for n, r := range f.Cat.Causes {
		switch o := r.Apply(f); {
		case o == nil:
		case o.State == Holds:
			held = append(held, Judged{Rule: r, Place: n, Outcome: o})
		case o.State == Excluded:
			d.RuledOut = append(d.RuledOut, measure.Excluded{Cause: r.Cause, Why: Line(o.Text)})
		default:
			if f.PacketsOnly() && o.experiment {
				o.Text = "`thru explain END POINT` between the two runs it"
			}
			if !o.experiment && r.Binds {
				lacking = append(lacking, r.Cause)
			}
			d.NotChecked = append(d.NotChecked, measure.Unsettled{Cause: r.Cause, Fact: Line(o.Fact), Why: Line(o.Text), Tests: r.Tests, Capture: o.capture})
		}
	}
	if slices.ContainsFunc(held, fillsLink) { // then nothing else limits the rate
		for _, j := range held {
			j.Outcome.NotBinding = !fillsLink(j)
		}
	}
	for _, j := range InOrder(held) {
		d.Findings = append(d.Findings, f.Finding(j))
	}
	if !slices.ContainsFunc(held, f.binds) {
		d.Findings = append([]measure.Finding{f.nothing(lacking)}, d.Findings...)
	}
	return d
}

// fillsLink reports whether the finding is that the link is certainly full.
func fillsLink(j Judged) bool {
	return j.Rule.Cause == LinkFull && j.Outcome.Confidence == measure.Certain
}

// binds reports whether a cause that holds says more than "nothing was found": it limits the rate, or it is
// certain. For captures without counters, certainty is not enough: they also prove anomalies that cost nothing.
func (f *Flow) binds(j Judged) bool {
	return !j.Outcome.NotBinding || j.Outcome.Confidence == measure.Certain && !f.PacketsOnly()
}

// nothing returns the finding if no rule holds.
func (f *Flow) nothing(lacking []string) measure.Finding {
	n := measure.Finding{
		Cause: measure.CauseNone, Where: measure.Where{Place: measure.AtPath, From: f.Cell.From, To: f.Cell.To},
		Confidence: measure.Likely, Healthy: true, Summary: "no limit was found",
	}
	if why, proofs := f.deadPackets(); why != "" {
		n.Healthy, n.Confidence, n.Summary, n.Evidence = false, measure.Likely, Line(why), proofs
		return n
	}
	if _, known := f.Goodput(); !known {
		n.Healthy, n.Confidence, n.Summary = false, measure.Possible, "the evidence does not show why nothing was measured"
		return n
	}
	if len(lacking) > 0 {
		n.Confidence, n.Summary = measure.Possible, "no limit was found, but "+strings.Join(lacking, ", ")+" could not be checked"
	}
	if f.Cell.Ceiling == nil && !f.OnOneMachine() {
		n.Next = "state the rate of the link (--link-rate), to see how much of it this is"
	}
	return n
}

// Whole returns the findings of all main cells together: those of the cell with the greatest shortfall, then new
// ones of the others.
func Whole(d *measure.Document) []measure.Finding {
	var all []measure.Finding
	for _, c := range byNeed(d) {
		for _, x := range c.Findings {
			if !Repeated(all, x) {
				all = append(all, x)
			}
		}
	}
	return Settle(all)
}

// byNeed returns the diagnosed cells: unhealthy ones first, then the slower ones, with cells beside the main ones
// last.
func byNeed(d *measure.Document) []*measure.Cell {
	var cells []*measure.Cell
	for i := range d.Cells {
		if len(d.Cells[i].Findings) > 0 {
			cells = append(cells, &d.Cells[i])
		}
	}
	sortCells(cells)
	return cells
}
