// Package diagnose names why a flow carries no more than it does: from the
// evidence of both ends, the facts of the hosts and the path, and the gates
// it makes findings, the binding one first (docs/causes.md).
//
// It is pure: the same document gives the same findings. It never guesses:
// of every cause of the catalogue it says that it holds, that the evidence
// speaks against it, or which fact is missing to tell. A wrong "certain" is
// worse than "not checked".
package diagnose

import (
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/stat"
)

// Diagnose fills the findings of every cell that a person asked for, and those
// of the whole. It may be called again as cells are added.
func Diagnose(d *measure.Document) {
	for i := range d.Cells {
		c := &d.Cells[i]
		c.Diagnosis = measure.Diagnosis{}
		if f := newFlow(d, c); f != nil {
			c.Diagnosis = f.diagnose()
		}
	}
	d.Findings = settle(slices.Concat(ofGroups(d), whole(d)))
	d.Missing = wanted(d)
	Transfer(d)
}

// newFlow is the work on one cell; nil where there is nothing to diagnose:
// requests, cells that no run was made of, and the experiments of an
// explanation, which are evidence for their base.
func newFlow(d *measure.Document, c *measure.Cell) *flow {
	if c.Spec.Traffic != measure.Bulk || c.Experiment != "" && c.Experiment != Base || len(c.Runs) == 0 {
		return nil
	}
	f := &flow{doc: d, cell: c}
	f.run = runShown(c)
	seen := f.flowOf(f.run)
	f.sender = newEnd(f, measure.AtSender, c.From, seen.Sender)
	f.receiver = newEnd(f, measure.AtReceiver, c.To, seen.Receiver)
	f.findPackets()
	return f
}

// flowOf is the traffic of the cell's direction in a run, of this cell or of
// an experiment; empty where it was not made.
func (f *flow) flowOf(r *measure.Run) (seen measure.Flow) {
	for _, x := range r.Flows {
		if x.From == f.cell.From && x.To == f.cell.To || len(r.Flows) == 1 {
			seen = x
		}
	}
	return seen
}

// runShown is the complete run nearest the median of the runs: one that was
// like most. Without a complete one it is the last; of a cell without any an
// empty one.
func runShown(c *measure.Cell) *measure.Run {
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
func (f *flow) diagnose() measure.Diagnosis {
	var d measure.Diagnosis
	var held []judged
	for n, r := range rules() {
		switch o := r.apply(f); {
		case o == nil:
		case o.state == holds:
			held = append(held, judged{rule: r, place: n, outcome: o})
		case o.state == excluded:
			d.RuledOut = append(d.RuledOut, measure.Excluded{Cause: r.Cause, Why: line(o.text)})
		default:
			if f.packetsOnly() && strings.HasPrefix(o.fact, anExperiment) {
				o.text = "`thru explain END POINT` between the two makes it"
			}
			d.NotChecked = append(d.NotChecked, measure.Unsettled{Cause: r.Cause, Fact: line(o.fact), Why: line(o.text), Tests: r.Tests})
		}
	}
	if slices.ContainsFunc(held, fillsLink) { // then the rate hangs on nothing else
		for _, j := range held {
			j.outcome.aside = !fillsLink(j)
		}
	}
	for _, j := range inOrder(held) {
		d.Findings = append(d.Findings, f.finding(j))
	}
	if !slices.ContainsFunc(held, f.binds) {
		d.Findings = append([]measure.Finding{f.nothing(d.NotChecked)}, d.Findings...)
	}
	return d
}

// fillsLink tells of the finding that the link is full for certain.
func fillsLink(j judged) bool {
	return j.rule.Cause == linkFull && j.outcome.confidence == measure.Certain
}

// binds tells whether a cause that holds says more than "nothing was found": the
// rate hangs on it, or it is certain. Of packets alone being certain is not
// enough: they show what is off for certain where it costs nothing, too.
func (f *flow) binds(j judged) bool {
	return !j.outcome.aside || j.outcome.confidence == measure.Certain && !f.packetsOnly()
}

// nothing is the finding where no rule holds.
func (f *flow) nothing(open []measure.Unsettled) measure.Finding {
	n := measure.Finding{
		Cause: measure.CauseNone, Where: measure.Where{Place: measure.AtPath, From: f.cell.From, To: f.cell.To},
		Confidence: measure.Likely, Healthy: true, Summary: "nothing was found that holds it back",
	}
	if why, proofs := f.deadPackets(); why != "" {
		n.Healthy, n.Confidence, n.Summary, n.Evidence = false, measure.Likely, line(why), proofs
		return n
	}
	if _, known := f.goodput(); !known {
		n.Healthy, n.Confidence, n.Summary = false, measure.Possible, "why nothing was measured cannot be told from the evidence"
		return n
	}
	if lacking := decisive(open); len(lacking) > 0 {
		n.Confidence, n.Summary = measure.Possible, "nothing was found that holds it back, but "+strings.Join(lacking, ", ")+" could not be checked"
	}
	if f.cell.Ceiling == nil && !f.onOneMachine() {
		n.Next = "--link-rate states what the link should carry"
	}
	return n
}

// decisive are those causes that were not checked without which "nothing was
// found" says little: what usually binds.
func decisive(open []measure.Unsettled) []string {
	var lacking []string
	for _, u := range open {
		if slices.Contains([]string{"receive-window", "sender-cpu", "receiver-cpu", "loss", "shaper"}, u.Cause) && !strings.HasPrefix(u.Fact, anExperiment) {
			lacking = append(lacking, u.Cause)
		}
	}
	return lacking
}

// whole is what is said of all main cells together: the findings of the cell
// that falls shortest, then those of the others that name something new.
func whole(d *measure.Document) []measure.Finding {
	var all []measure.Finding
	for _, c := range byNeed(d) {
		for _, x := range c.Findings {
			if !told(all, x) {
				all = append(all, x)
			}
		}
	}
	return settle(all)
}

// byNeed are the diagnosed cells, those that are not well first, then the
// slower ones; what ran beside the main ones comes last.
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
