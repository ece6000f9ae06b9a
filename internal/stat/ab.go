package stat

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// VariantAxis is the axis whose values are compared.
const VariantAxis = "variant"

// EquivalencePct is by how many percent a variant may differ and still be equivalent (methods.md).
const EquivalencePct = 2

// doubtful is the share of comparisons without a real difference that may show one.
const doubtful = 0.05

// Compare fills d.Comparisons: it compares each variant with the first one, among steps that differ in nothing else.
// Runs of both variants with the same number were made in one block, and form a pair; its difference is the logarithm
// of the ratio of what all flows carried. The result is the Hodges-Lehmann estimate over the pairs, with the interval
// of Wilcoxon's signed-rank test:
//
//	improved    its lower bound is above +2%
//	worse       its upper bound is below -2%
//	equivalent  it lies within +-2%
//	undecided   else
//
// Variants that ran in blocks have no pairs; see blocks.go.
//
// Variants are not compared, and the reason says why, if their figures are of different things or if the setting that
// distinguishes them was not in force.
//
// Several variants against one base share the error probability (Holm, 1979): the clearest outcome must hold at
// 1-0.05/k of k variants, the next at 1-0.05/(k-1), and so on until one does not.
func Compare(d *measure.Document) {
	d.Comparisons = nil
	for _, f := range families(d) {
		d.Comparisons = append(d.Comparisons, f.compare(ranInBlocks(d))...)
	}
}

// family is a set of steps that differ only in their variant, in the order of the document.
type family struct {
	what     string
	variants []variant
}

// variant is one of them.
type variant struct {
	name string
	team *team
}

// families returns those with at least two variants.
func families(d *measure.Document) []family {
	var keys []string
	found := map[string]*family{}
	for _, cells := range variantCells(d) {
		name, rest := variantOf(cells[0].Axes)
		key := strings.Join(append([]string{cells[0].Rung, AxesText(rest)}, unit.Mapped(cells, pairName)...), "\n")
		f := found[key]
		if f == nil {
			f = &family{what: familyText(cells, rest)}
			keys, found[key] = append(keys, key), f
		}
		if !slices.ContainsFunc(f.variants, func(v variant) bool { return v.name == name }) {
			f.variants = append(f.variants, variant{name, newTeam(cells)})
		}
	}
	var all []family
	for _, k := range keys {
		if len(found[k].variants) > 1 {
			all = append(all, *found[k])
		}
	}
	return all
}

// variantCells returns the cells of each group that has a variant.
func variantCells(d *measure.Document) [][]*measure.Cell {
	var groups []int
	for _, c := range d.Cells {
		if name, _ := variantOf(c.Axes); name != "" && !c.Baseline && !slices.Contains(groups, c.Group) {
			groups = append(groups, c.Group)
		}
	}
	cells := byGroup(d)
	return unit.Mapped(groups, func(g int) []*measure.Cell { return cells[g] })
}

// variantOf separates the name of the variant from the other axes.
func variantOf(axes []measure.Axis) (name string, rest []measure.Axis) {
	for _, a := range axes {
		if a.Name == VariantAxis {
			name = a.Value
		} else {
			rest = append(rest, a)
		}
	}
	return name, rest
}

func familyText(cells []*measure.Cell, rest []measure.Axis) string {
	parts := []string{cells[0].Rung, pairsText(cells), AxesText(rest)}
	return strings.Join(unit.Filtered(parts, func(p string) bool { return p != "" }), ", ")
}

// runsOf returns what all flows of the variant carried in each repetition that counts, by its number: in bit/s, or
// in requests per second.
func (v variant) runsOf() map[int]float64 {
	all := map[int]float64{}
	for i := range v.team.repeats {
		r := &v.team.repeats[i]
		total := 0.0
		switch {
		case len(r.flows) > 0 && (r.why != noOverlap || len(r.flows) == 1):
			total = r.total()
		case len(r.flows) == 0:
			for _, m := range r.members {
				rate, _ := m.pair.rate()
				total += rate
			}
		}
		if total > 0 && !math.IsInf(total, 0) {
			all[r.index] = total
		}
	}
	return all
}

// versus is a comparison in progress.
type versus struct {
	measure.Comparison
	logs []float64 // of the ratios of the pairs
	p    float64

	base, own []float64 // in blocks: logarithms of each side's runs
}

// compare compares every variant of the family with the first one.
func (f family) compare(blocks bool) []measure.Comparison {
	base := f.variants[0]
	var all, tests []*versus
	for _, v := range f.variants[1:] {
		x := f.versus(base, v, blocks)
		if why := noTest(base, v); why != "" && (x.Pairs > 0 || x.Blocks != nil) {
			x.Outcome, x.Reason = measure.NotCompared, why
		} else {
			tests = append(tests, x)
		}
		all = append(all, x)
	}
	settleHolm(tests)
	holmP(tests)
	var out []measure.Comparison
	for i, v := range all {
		if v.Outcome != measure.NotCompared {
			v.Guardrails = guardrails(base.team, f.variants[i+1].team)
		}
		out = append(out, v.Comparison)
	}
	return out
}

// versus pairs the runs of two variants.
func (f family) versus(base, v variant, blocks bool) *versus {
	x := &versus{Comparison: measure.Comparison{
		Base: base.name, Variant: v.name, What: f.what, Figure: "goodput_bps",
		Groups: [2]int{base.team.cells[0].Group, v.team.cells[0].Group},
	}}
	if len(base.team.bulk) == 0 {
		x.Figure = "transactions_per_s"
	}
	if blocks {
		x.inBlocks(base, v)
	} else {
		x.pairUp(base.runsOf(), v.runsOf())
	}
	return x
}

// pairUp pairs the runs with the same number.
func (v *versus) pairUp(a, b map[int]float64) {
	var as, bs []float64
	for _, n := range slices.Sorted(maps.Keys(a)) {
		if b[n] > 0 {
			as, bs = append(as, a[n]), append(bs, b[n])
			v.logs = append(v.logs, math.Log(b[n]/a[n]))
		}
	}
	v.Pairs, v.BaseValue, v.Value = len(v.logs), Known(Mean(as)), Known(Mean(bs))
	v.p = SignedRank(v.logs)
}

// settleHolm judges comparisons with one base, each at the level for the number of comparisons that do not yet
// show a difference, until no more do.
func settleHolm(all []*versus) {
	Holm(len(all), func(i int, level float64) bool {
		all[i].settle(level)
		return all[i].Outcome == measure.Improved || all[i].Outcome == measure.Worse
	})
}

// holmP corrects the p-values for the number of comparisons.
func holmP(all []*versus) {
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b *versus) int { return cmp.Compare(a.p, b.p) })
	least := 0.0
	for i, v := range order {
		least = max(least, min(1, v.p*float64(len(order)-i)))
		if v.Pairs > 0 {
			v.P = new(least)
		}
	}
}

// settle judges one comparison at a level.
func (v *versus) settle(level float64) {
	v.ChangePct, v.LowPct, v.HighPct, v.LevelPct = nil, nil, nil, nil
	v.Outcome = measure.Undecided
	if v.Blocks != nil {
		v.settleBlocks(level)
		return
	}
	if v.Pairs == 0 {
		v.Reason = "no two runs can be compared"
		return
	}
	estimate, low, high, found := HodgesLehmann(v.logs, level)
	v.ChangePct = Known(PctOfLog(estimate))
	if !found {
		v.Reason = fmt.Sprintf("pairs of runs: %d; an interval at %s needs %d", v.Pairs, unit.Percent(100*level), LeastPairs(level))
		return
	}
	v.judge(estimate, low, high, level)
}

// judge compares the interval of a change, in logarithms, with the bar.
func (v *versus) judge(estimate, low, high, level float64) {
	v.LowPct, v.HighPct, v.LevelPct = Known(PctOfLog(low)), Known(PctOfLog(high)), new(100*level)
	bar := math.Log1p(EquivalencePct / 100.0)
	switch {
	case low > bar:
		v.Outcome = measure.Improved
	case high < -bar:
		v.Outcome = measure.Worse
	case low > -bar && high < bar:
		v.Outcome = measure.Equivalent
	}
	v.Reason = v.words(estimate, low, high, bar)
}

// PctOfLog returns the change in percent of the logarithm of a ratio.
func PctOfLog(x float64) float64 { return 100 * math.Expm1(x) }

// words returns the outcome as a sentence.
func (v *versus) words(estimate, low, high, bar float64) string {
	text := fmt.Sprintf("%s against %s: %s, between %s and %s", v.Variant, v.Base, unit.Change(PctOfLog(estimate)), unit.Change(PctOfLog(low)), unit.Change(PctOfLog(high)))
	switch v.Outcome {
	case measure.Undecided:
		if v.Blocks != nil {
			return text + "; a decision needs more runs in each block, or a quieter path"
		}
		room := math.Abs(math.Abs(estimate) - bar)
		if need := float64(v.Pairs) * math.Pow((high-low)/2/room, 2); need > float64(v.Pairs) && need < mostPairs {
			return fmt.Sprintf("%s; about %.0f pairs of runs would decide", text, math.Ceil(need))
		}
		return text + "; a decision needs more pairs of runs, or a quieter path"
	case measure.Equivalent:
		return fmt.Sprintf("%s: within %d%%", text, EquivalencePct)
	}
	return fmt.Sprintf("%s: beyond %d%%", text, EquivalencePct)
}

// mostPairs is the largest number of pairs that is recommended.
const mostPairs = 100

// Turns compares runs of a trial with runs of a base that alternated with them: base, trial, base, trial. So drift
// and changes affect both equally.
type Turns struct {
	Times       float64 // rate of the trial over that of the base (geometric means); 0 if not known
	Base, Trial int     // runs of each
	Sure        bool    // it carried more, and scatter of runs alone does not explain that
}

const (
	// TurnsBar is the least gain that matters: a smaller one is not investigated.
	TurnsBar = 1.2
	// TurnsMost is the highest number of runs of a trial.
	TurnsMost = 5
	// turnsDoubt is the number of standard errors from which a difference is beyond chance. It is so high because
	// the difference is tested after each run, for several trials: docs/statistics.md has the error rate.
	turnsDoubt = 4.4
)

// InTurns compares what runs carried, in bit/s, in the order in which they were made. The scatter of the runs is
// at least RunSpreadPct, even if so few show less, and the observed one if that is more. One run of each is never
// sure: a second run of the base shows whether the first was an outlier, or the base has changed.
func InTurns(base, trial []float64) Turns {
	t := Turns{Base: len(base), Trial: len(trial)}
	if len(base) == 0 || len(trial) == 0 || slices.Min(base) <= 0 || slices.Min(trial) <= 0 {
		return t
	}
	a, b := logs(base), logs(trial)
	difference := Mean(b) - Mean(a)
	if t.Times = math.Exp(difference); math.IsInf(t.Times, 0) || math.IsNaN(t.Times) {
		return Turns{Base: len(base), Trial: len(trial)}
	}
	spread, n, m := RunSpreadPct/100.0, float64(len(a)), float64(len(b))
	if n+m > 2 {
		spread = max(spread, math.Sqrt((Squares(a)+Squares(b))/(n+m-2)))
	}
	t.Sure = len(a) > 1 && t.Times > TurnsBar && difference > turnsDoubt*spread*math.Sqrt(1/n+1/m)
	return t
}

// Open reports whether more runs may make a relevant difference sure.
func (t Turns) Open() bool { return t.Times > TurnsBar && !t.Sure && t.Trial < TurnsMost }

// NextIsBase reports whether the base runs next.
func (t Turns) NextIsBase() bool { return t.Base <= t.Trial }

func logs(xs []float64) []float64 {
	return unit.Mapped(xs, math.Log)
}
