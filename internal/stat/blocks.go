package stat

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Orders of a plan whose variants run in blocks (docs/plan.md).
const (
	blocksOrder = "blocks"
	backOrder   = "there-and-back"
)

// ranInBlocks reports whether the runs of a document's variants are in blocks.
func ranInBlocks(d *measure.Document) bool {
	return d.Plan != nil && (d.Plan.Order == blocksOrder || d.Plan.Order == backOrder)
}

// inBlocks takes the runs of two variants that did not alternate. If the base was measured again after the
// variant, the difference of its two blocks is drift.
func (v *versus) inBlocks(base, own variant) {
	a, b := base.runsOf(), own.runsOf()
	v.base, v.own = logsOf(a, slices.Sorted(maps.Keys(a))), logsOf(b, slices.Sorted(maps.Keys(b)))
	v.Blocks = &measure.Blocks{BaseRuns: len(a), VariantRuns: len(b)}
	v.BaseValue, v.Value = Known(Mean(valuesOf(a))), Known(Mean(valuesOf(b)))
	v.p = 1
	began := slices.Sorted(maps.Values(own.begins()))
	if len(began) == 0 {
		return
	}
	begins := base.begins()
	before := slices.DeleteFunc(slices.Sorted(maps.Keys(a)), func(n int) bool { return begins[n] > began[0] })
	after := slices.DeleteFunc(slices.Sorted(maps.Keys(a)), func(n int) bool { return begins[n] <= began[0] })
	if len(before) == 0 || len(after) == 0 {
		return
	}
	drift, low, high, found := Welch(logsOf(a, before), logsOf(a, after), 1-doubtful)
	v.Blocks.DriftPct = Known(PctOfLog(drift))
	if found {
		v.Blocks.DriftLowPct, v.Blocks.DriftHighPct = Known(PctOfLog(low)), Known(PctOfLog(high))
	}
}

// begins returns when the runs of the variant began, in ns, by their numbers.
func (v variant) begins() map[int]int64 {
	all := map[int]int64{}
	for _, c := range v.team.cells {
		for i := range c.Runs {
			all[c.Runs[i].Index] = c.Runs[i].StartedAt.UnixNano()
		}
	}
	return all
}

// settleBlocks judges a comparison of blocks at a level. If the base itself drifted beyond the bar, nothing is
// decided.
func (v *versus) settleBlocks(level float64) {
	if len(v.base) == 0 || len(v.own) == 0 {
		v.Reason = "one of the two variants has no run"
		return
	}
	d, _ := Differ(v.base, v.own, RunSpread(true), level) // a block is a session
	v.ChangePct = Known(PctOfLog(d.Mean))
	if max(len(v.base), len(v.own)) < 2 {
		v.Reason = fmt.Sprintf("runs: %d and %d; an interval at %s needs 2 of one of them", len(v.base), len(v.own), unit.Percent(100*level))
		return
	}
	if math.Abs(d.Mean)+d.Own < math.Log1p(EquivalencePct/100.0) { // the measured values are equivalent
		d.Low, d.High = d.Mean-d.Own, d.Mean+d.Own
	}
	v.judge(d.Mean, d.Low, d.High, level)
	switch b := v.Blocks; {
	case v.drifted(d.Mean):
		v.Outcome = measure.Undecided
		v.Reason = fmt.Sprintf("%s itself changed by %s when it was measured again at the end: the path changed during the comparison", v.Base, unit.Change(*b.DriftPct))
	case b.DriftPct == nil:
		v.Reason += "; the runs were in blocks: any other change between them, such as a reboot, would look the same"
	default:
		v.Reason += fmt.Sprintf("; measured again at the end, %s changed by %s", v.Base, unit.Change(*b.DriftPct))
	}
}

// drifted reports whether the base drifted significantly and beyond the bar, by at least half of the variant's
// change.
func (v *versus) drifted(estimate float64) bool {
	d := v.Blocks
	if d.DriftPct == nil || d.DriftLowPct == nil || d.DriftHighPct == nil {
		return false
	}
	beyond := *d.DriftLowPct > EquivalencePct || *d.DriftHighPct < -EquivalencePct
	return beyond && 2*math.Abs(math.Log1p(*d.DriftPct/100)) >= math.Abs(estimate)
}

// logsOf returns the logarithms of some runs.
func logsOf(runs map[int]float64, keys []int) []float64 {
	return unit.Mapped(keys, func(n int) float64 { return math.Log(runs[n]) })
}

// valuesOf returns the runs in order.
func valuesOf(runs map[int]float64) []float64 {
	return unit.Mapped(slices.Sorted(maps.Keys(runs)), func(n int) float64 { return runs[n] })
}
