package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/stat"
)

// manyPairs reports whether the pairs of a plan are independent: a failed one
// leaves the others. A command about two hosts ends with its first failure.
func manyPairs(p plan.Plan) bool {
	apart := func(s plan.Step) bool { return s.Independent || s.Rung != "" }
	return p.Name != "" || len(p.EndPoints) > 0 || slices.ContainsFunc(p.Steps, apart)
}

// runAll makes the runs of the plan until there are enough repetitions.
func (r *Runner) runAll(ctx context.Context, p plan.Plan, doc *measure.Document, facts map[string]*measure.Facts) error {
	last := max(p.Repeat.Max, 1) - 1
	done, total := 0, p.Runs()
	for i, t := range p.Schedule() {
		if r.Until > 0 && i >= r.Until {
			return nil
		}
		step := p.Steps[t.Step]
		if hasRun(doc, t) { // resume has counted it
			done++
			continue
		}
		if t.Run > 0 && r.enough(p, doc, t.Step) {
			done++
			stepDone(doc)
			continue
		}
		r.notify(StepBegun{step.Label, step.Specs, done, total})
		runs, err := r.runStep(ctx, step, t.Run)
		if r.Record != nil && ctx.Err() == nil {
			var rerr error
			if runs, rerr = r.Record(i, runs); rerr != nil {
				return rerr
			}
		}
		r.keep(doc, t.Step, runs, facts, r.link(p, step))
		done++
		if err == nil && t.Run == last {
			err = r.searchLossless(ctx, step, doc, t.Step)
		}
		if err != nil && (!r.goesOn || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			r.failedStep(step, err)
		}
		r.saved(doc)
	}
	return nil
}

// failed reports whether a run is not a complete result.
func failed(x measure.Run) bool { return x.Partial || x.Error != nil }

// Recorded returns the document of a plan of which some turns were run, by their number in the
// schedule: for Runner.Before.
func Recorded(p plan.Plan, began time.Time, turns map[int][]measure.Run) *measure.Document {
	doc := &measure.Document{Schema: measure.Schema, Command: p.Command, StartedAt: began, Cells: cells(p), Plan: &measure.Planned{Began: []time.Time{began}}}
	for i, t := range p.Schedule() {
		of := cellsOf(doc, t.Step)
		for k := range min(len(of), len(turns[i])) {
			of[k].Runs = append(of[k].Runs, turns[i][k])
		}
	}
	return doc
}

// failedStep reports a step that failed as a whole; the run goes on.
func (r *Runner) failedStep(step plan.Step, err error) {
	for _, s := range step.Specs {
		if r.unfitPair(s.From, s.To) == nil { // an unfit pair was reported before the first step
			r.notify(Failed{s, err})
		}
	}
}

// stepDone counts one more step.
func stepDone(doc *measure.Document) {
	if doc.Plan != nil {
		doc.Plan.Done++
	}
}

// saved counts one more step and has the document saved.
func (r *Runner) saved(doc *measure.Document) {
	stepDone(doc)
	if r.Saved != nil {
		r.describeEnds(doc)
		r.Saved(doc)
	}
}

// enough reports whether all cells of a step have reached the required precision.
// It ignores a cell that cannot be measured any more.
func (r *Runner) enough(p plan.Plan, doc *measure.Document, group int) bool {
	if p.Repeat.PrecisionPct == 0 {
		return false
	}
	left := 0
	cells := cellsOf(doc, group)
	for i := range cells {
		c := &cells[i]
		if r.goesOn && r.hopeless(c) {
			continue
		}
		left++
		if !stat.Enough(stat.RunFigures(c), p.Repeat.PrecisionPct, p.Repeat.Min, p.Repeat.Max) {
			return false
		}
	}
	return left > 0 || !r.goesOn
}

// hopeless reports whether a cell cannot be measured: its ends are lost or unfit.
func (r *Runner) hopeless(c *measure.Cell) bool {
	return r.gone(r.end(c.From)) != nil || r.gone(r.end(c.To)) != nil || r.unfitPair(c.From, c.To) != nil
}

// keep adds the runs of a step to its cells and updates their figures.
func (r *Runner) keep(doc *measure.Document, group int, runs []measure.Run, facts map[string]*measure.Facts, link stat.Link) {
	cells := cellsOf(doc, group)
	for k := range min(len(cells), len(runs)) {
		c := &cells[k]
		c.Runs = append(c.Runs, runs[k])
		c.Spec.MaxRate = lowest(c.Spec.MaxRate, r.end(c.From).Hello.Limits.RateBps, r.end(c.To).Hello.Limits.RateBps)
		if c.Error = runs[k].Error; r.goesOn && c.Error != nil && c.Error.Interrupted {
			c.Error = nil // the cell has not failed: the run says how it ended
		}
		introduce(doc, runs[k])
		stat.Summarise(c, facts, link)
		r.notify(Ran{c})
	}
}

// cellsOf returns the cells of one step, which are adjacent: cells lists them in
// the order of the steps.
func cellsOf(doc *measure.Document, group int) []measure.Cell {
	of := func(c measure.Cell, g int) int { return cmp.Compare(c.Group, g) }
	from, _ := slices.BinarySearchFunc(doc.Cells, group, of)
	to, _ := slices.BinarySearchFunc(doc.Cells, group+1, of)
	return doc.Cells[from:to]
}

// resume takes over the results of an interrupted run of the same plan.
func (r *Runner) resume(p plan.Plan, doc *measure.Document, now time.Time) error {
	if r.goesOn || r.Planned != nil || r.Saved != nil {
		doc.Plan = &measure.Planned{Name: p.Name, Order: p.Order}
		if r.Planned != nil {
			*doc.Plan = *r.Planned
		}
		doc.Plan.Steps, doc.Plan.Done, doc.Plan.Began = len(p.Schedule()), 0, []time.Time{now}
	}
	b := r.Before
	if b == nil {
		return nil
	}
	if !slices.EqualFunc(doc.Cells, b.Cells, sameCell) {
		return fault.Usagef("run the plan from the start, without --resume", "control: the interrupted run is of another plan")
	}
	doc.StartedAt, doc.ElapsedNs, doc.Arguments = b.StartedAt, b.ElapsedNs, b.Arguments
	for i := range doc.Cells {
		doc.Cells[i].Runs = slices.Clone(b.Cells[i].Runs)
	}
	dropIncomplete(p, doc)
	if doc.Plan != nil {
		if b.Plan != nil {
			doc.Plan.Began = append(slices.Clone(b.Plan.Began), now)
		}
		for _, t := range p.Schedule() {
			if hasRun(doc, t) {
				doc.Plan.Done++
			}
		}
	}
	return nil
}

// interruption returns the error of a command that the user interrupted.
func interruption(doc *measure.Document) error {
	after := ""
	if p := doc.Plan; p != nil && p.Steps > 1 {
		after = fmt.Sprintf(" after %d of %d steps", p.Done, p.Steps)
	}
	return fmt.Errorf("%w%s: %s", fault.ErrInterrupted, after, kept(doc))
}

// sameCell reports whether two cells have the same plan.
func sameCell(a, b measure.Cell) bool {
	return a.From == b.From && a.To == b.To && a.Group == b.Group && a.Label == b.Label && a.Rung == b.Rung && slices.Equal(a.Axes, b.Axes) &&
		a.Protocol == b.Protocol && a.Streams == b.Streams && a.Window == b.Window && a.Length == b.Length && a.Spec.Duration == b.Spec.Duration
}

// dropIncomplete drops the runs of steps that did not finish: they are repeated
// as a whole, since their flows belong together.
func dropIncomplete(p plan.Plan, doc *measure.Document) {
	for _, t := range p.Schedule() {
		if hasRun(doc, t) {
			continue
		}
		cells := cellsOf(doc, t.Step)
		for i := range cells {
			cells[i].Runs = slices.DeleteFunc(cells[i].Runs, func(x measure.Run) bool { return x.Index == t.Run })
		}
	}
}

// hasRun reports whether all flows of a step have a complete run of that number.
func hasRun(doc *measure.Document, t plan.Turn) bool {
	complete := func(x measure.Run) bool { return x.Index == t.Run && !failed(x) }
	cells := cellsOf(doc, t.Step)
	for i := range cells {
		if !slices.ContainsFunc(cells[i].Runs, complete) {
			return false
		}
	}
	return len(cells) > 0
}

// Remains reports whether a turn of a plan is still to be run, given the results
// before; nil is no results.
func Remains(before *measure.Document, t plan.Turn) bool { return before == nil || !hasRun(before, t) }

// summarise updates the figures of the results that were taken over.
func (r *Runner) summarise(p plan.Plan, doc *measure.Document, facts map[string]*measure.Facts) {
	for i := range doc.Cells {
		if c := &doc.Cells[i]; len(c.Runs) > 0 {
			stat.Summarise(c, facts, r.link(p, p.Steps[c.Group]))
		}
	}
}

// failings counts the failed runs of one pair.
type failings struct {
	pair       string
	runs, of   int
	first      *measure.Error
	isOnlyGate bool // only a gate kept it from being measured
}

// missed returns the error of a plan in which pairs failed, and lists the first
// few; nil where none failed.
func (r *Runner) missed(doc *measure.Document) error {
	if !r.goesOn {
		return nil
	}
	pairs, failed := failedPairs(doc)
	if len(failed) == 0 {
		return nil
	}
	code := fault.Verdict
	var reasons []string
	names := map[string][]string{}
	for _, f := range failed {
		if !f.isOnlyGate {
			code = fault.Failed
		}
		name, why := f.pair, fault.Plain(f.first.Message)
		if f.runs < f.of {
			name += fmt.Sprintf(" (%d of %d runs)", f.runs, f.of)
		}
		if names[why] == nil {
			reasons = append(reasons, why)
		}
		names[why] = append(names[why], name)
	}
	for i, why := range reasons {
		reasons[i] = some(names[why], ", ") + ": " + why
	}
	return fault.New(code, failed[0].first.Hint, "control: %d of %d pairs failed: %s", len(failed), pairs, some(reasons, "; "))
}

// failedPairs returns the pairs with a failed run, and the number of all pairs.
func failedPairs(doc *measure.Document) (pairs int, failed []*failings) {
	all := map[string]*failings{}
	for i := range doc.Cells {
		c := &doc.Cells[i]
		name := measure.PairName(c.From, c.To)
		f := all[name]
		if f == nil {
			f = &failings{pair: name, isOnlyGate: true}
			all[name] = f
		}
		for _, x := range c.Runs {
			f.of++
			if x.Error == nil {
				continue
			}
			if f.runs++; f.first == nil {
				f.first = x.Error
				failed = append(failed, f)
			}
			f.isOnlyGate = f.isOnlyGate && x.Error.ExitCode == fault.Verdict
		}
	}
	return len(all), failed
}

// describeEnds adds to the end points what the run found out: which are lost, and
// how their clocks differ.
func (r *Runner) describeEnds(doc *measure.Document) {
	for i := range doc.EndPoints {
		e := &doc.EndPoints[i]
		if x := r.Ends[e.Name]; x != nil && r.goesOn {
			if err := r.gone(x); err != nil {
				e.Lost = err.Error()
			}
		}
		if wall, known := r.walls[e.Name]; known {
			e.ClockNs = new(int64(wall))
		}
	}
}

// introduce records which program a foreign end point reports to be.
func introduce(doc *measure.Document, run measure.Run) {
	for _, f := range run.Flows {
		for _, x := range []*measure.Evidence{f.Sender, f.Receiver} {
			for i := range doc.EndPoints {
				if x != nil && x.Reported != "" && doc.EndPoints[i].Name == x.EndPoint && !strings.HasPrefix(doc.EndPoints[i].Speaks, x.Reported) {
					doc.EndPoints[i].Speaks = x.Reported
				}
			}
		}
	}
}

// kept says what happens to the results of an interrupted command.
func kept(doc *measure.Document) string {
	for _, c := range doc.Cells {
		if stat.Measured(&c) {
			return "the results so far are kept"
		}
	}
	if t := doc.Transfer; t != nil && slices.ContainsFunc(t.Runs, func(x measure.TransferRun) bool { return x.Bps != nil }) {
		return "the results so far are kept"
	}
	return "there are no results yet"
}
