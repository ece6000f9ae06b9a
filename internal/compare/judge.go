package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// leastValues is how many values on one side show their scatter. With fewer, and with a single one on the other
// side, an outcome is indicative: that one may be an outlier.
const leastValues = 3

// contest is the comparison of one subject in progress.
type contest struct {
	measure.ComparedCell
	family  string
	a, b    []float64       // logarithms of the units
	was, is *measure.Figure // figures of single runs
	d       stat.Difference // of the two sides
	widened bool            // the interval includes the assumed scatter of few values
	guards  []*guard
}

// newContest gathers what is to be judged, or why it cannot be.
func newContest(p matched, o Options) *contest {
	before, after := p.before.newest(), p.after.newest()
	x := &contest{family: after.family}
	x.From, x.To, x.Place, x.What, x.Baseline = p.after.from, p.after.to, p.after.place, after.what(), after.baseline
	x.Settings = differing(before, after)
	x.Figure = after.key
	x.gather(p.before.members, p.after.members)
	x.Outcome = measure.NotCompared
	refused := slices.IndexFunc(x.Settings, func(s measure.SettingDiff) bool { return s.Refuses })
	switch {
	case len(x.a) == 0:
		x.Reason = "not measured before: " + before.why
	case len(x.b) == 0:
		x.Failed = true
		x.Reason = "measured before, but not after: " + after.why
	case refused >= 0 && !o.Anyway:
		s := x.Settings[refused]
		x.Reason = fmt.Sprintf("%s: %s before, %s after; the figures are not comparable (--anyway compares them)", s.Name, s.Before, s.After)
	default:
		x.Outcome = measure.Undecided
		x.guards = guardsOf(p)
	}
	return x
}

// isRate rejects figures that only a hostile document has.
func isRate(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }

// gather takes the units of both sides: results if a side has several, else runs.
func (x *contest) gather(before, after []*subject) {
	as, bs := unitsOf(before), unitsOf(after)
	switch {
	case len(as) > 1 || len(bs) > 1:
		x.Basis = measure.OfResults
		x.a, x.b = logs(unit.Mapped(as, stat.Mean)), logs(unit.Mapped(bs, stat.Mean))
	default:
		x.Basis = measure.OfRuns
		x.a, x.b = logs(slices.Concat(as...)), logs(slices.Concat(bs...))
	}
	x.Before, x.After = sampleOf(x.a), sampleOf(x.b)
	if len(x.a) == 1 && len(x.b) == 1 {
		x.Basis = measure.OfSingles
		x.was, x.is = figureOf(before), figureOf(after)
	}
	x.Indicative = max(len(x.a), len(x.b)) < leastValues || min(len(x.a), len(x.b)) < 2
}

// figureOf returns the figure of the only subject that has one.
func figureOf(all []*subject) *measure.Figure {
	for _, s := range all {
		if s.figure != nil {
			return s.figure
		}
	}
	return &measure.Figure{}
}

// unitsOf returns the values of each result that has any: of its completed runs or, if they are not stored, its
// figure.
func unitsOf(all []*subject) (units [][]float64) {
	byDoc := map[*measure.Document]int{}
	for _, s := range all {
		values := s.values
		if len(values) == 0 && s.figure != nil {
			values = []float64{s.figure.Value}
		}
		if len(values) == 0 {
			continue
		}
		at, known := byDoc[s.doc]
		if !known {
			at = len(units)
			byDoc[s.doc], units = at, append(units, nil)
		}
		units[at] = append(units[at], values...)
	}
	return units
}

// leastRate stands for a run that carried nothing, since zero has no logarithm.
const leastRate = 1

func logs(xs []float64) []float64 {
	return unit.Mapped(xs, func(x float64) float64 { return math.Log(max(x, leastRate)) })
}

// sampleOf summarises units; nil for none.
func sampleOf(logs []float64) *measure.Sample {
	if len(logs) == 0 {
		return nil
	}
	low, high, value := rateOf(slices.Min(logs)), rateOf(slices.Max(logs)), rateOf(stat.Mean(logs))
	if low == 0 && high > 0 { // zero has no ratio to the others: use their common mean
		value = stat.Mean(unit.Mapped(logs, rateOf))
	}
	return &measure.Sample{Value: min(max(value, low), high), Low: low, High: high, Units: len(logs)}
}

// rateOf returns the rate of a logarithm; 0 for that of leastRate.
func rateOf(log float64) float64 {
	if log <= math.Log(leastRate) {
		return 0
	}
	return math.Exp(log)
}

// judgement judges one figure at a level such as 0.95, and returns whether that shows a difference.
type judgement func(level float64) (differs bool)

// settle judges all figures that can be compared. The rates of the main flows share one error probability, their
// guardrails another, and the baselines a third. If guardrails count as regressions too (guards), all possible
// regressions share one.
func settle(all []*contest, barPct float64, guards bool) {
	var rates, guardrails, baseline []judgement
	for _, x := range all {
		if x.Outcome == measure.NotCompared {
			continue
		}
		rate := func(level float64) bool { return x.judge(level, barPct) }
		if x.Baseline {
			baseline = append(baseline, rate)
			for _, g := range x.guards {
				baseline = append(baseline, g.judge)
			}
			continue
		}
		rates = append(rates, rate)
		for _, g := range x.guards {
			guardrails = append(guardrails, g.judge)
		}
	}
	families := [][]judgement{rates, guardrails, baseline}
	if guards {
		families = [][]judgement{append(rates, guardrails...), baseline}
	}
	for _, f := range families {
		stat.Holm(len(f), func(i int, level float64) bool { return f[i](level) })
	}
	for _, x := range all {
		for _, g := range x.guards {
			x.Guards = append(x.Guards, g.ComparedRail)
		}
	}
}

// judge sets the outcome at a level such as 0.95, and reports whether it is a difference:
//
//	equivalent  the interval of the measured values is within the bar
//	improved    it is above, including the assumed scatter of few values or of one session
//	worse       it is below, likewise
//	undecided   else
func (x *contest) judge(level, barPct float64) (differs bool) {
	x.LowPct, x.HighPct, x.LevelPct, x.Outcome, x.widened = nil, nil, nil, measure.Undecided, false
	if stalled := x.stalled(); stalled != "" {
		x.ChangePct, x.Reason = stat.Known(100*(x.After.Value/x.Before.Value-1)), stalled
		return false
	}
	d, found := x.difference(level)
	x.ChangePct = x.percent(d.Mean)
	if !found {
		x.Reason = "too few values for an interval: " + x.advice()
		return false
	}
	up, down := math.Log1p(barPct/100), math.Log1p(-min(barPct, 99)/100)
	alike := d.Mean-d.Own > down && d.Mean+d.Own < up
	if alike {
		d.Low, d.High = d.Mean-d.Own, d.Mean+d.Own
	} else if d.High-d.Mean > d.Own {
		x.widened, x.Indicative = true, true
	}
	x.d, x.LowPct, x.HighPct, x.LevelPct = d, x.percent(d.Low), x.percent(d.High), stat.Known(100*level)
	switch {
	case alike:
		x.Outcome = measure.Equivalent
	case d.Low > up:
		x.Outcome = measure.Improved
	case d.High < down:
		x.Outcome = measure.Worse
	}
	x.Reason = x.words(barPct)
	return x.Outcome == measure.Improved || x.Outcome == measure.Worse
}

// difference returns that of both sides at a level.
func (x *contest) difference(level float64) (d stat.Difference, found bool) {
	if x.Basis != measure.OfSingles {
		return stat.Differ(x.a, x.b, stat.RunSpread(x.Basis == measure.OfRuns), level)
	}
	d.Mean, d.Low, d.High, found = stat.SingleRuns(x.was, x.is, level)
	d.Own = d.High - d.Mean
	return d, found
}

// stalled says if some values of a side are zero, and not all: they have no ratio, so that nothing else can be
// said of it.
func (x *contest) stalled() string {
	var words []string
	for _, s := range []struct {
		name string
		logs []float64
	}{{"before", x.a}, {"after", x.b}} {
		n := unit.CountFunc(s.logs, func(l float64) bool { return rateOf(l) == 0 })
		if n > 0 && n < len(s.logs) {
			words = append(words, fmt.Sprintf("%d of the %d %s %s carried nothing", n, len(s.logs), x.Basis, s.name))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return strings.Join(words, ", ") + ": find the reason before you compare rates"
}

// percent returns the change of a logarithm; nil if the value before is zero, of which there is no share.
func (x *contest) percent(log float64) *float64 {
	if x.Before != nil && x.Before.High == 0 {
		return nil
	}
	return stat.Known(stat.PctOfLog(log))
}

// words returns the outcome as a sentence.
func (x *contest) words(barPct float64) string {
	text := ""
	bar := unit.Percent(barPct)
	switch x.Outcome {
	case measure.Equivalent:
		text = "within " + bar
	case measure.Undecided:
		least := -stat.PctOfLog(x.d.Low - x.d.Mean + math.Log1p(-min(barPct, 99)/100))
		text = fmt.Sprintf("a change beyond %s is neither shown nor excluded; a fall by %s would be detected: %s", bar, unit.Percent(math.Ceil(least)), x.advice())
	default:
		text = "beyond " + bar
	}
	if x.Before.High == 0 || x.After.High == 0 {
		return text + "; nothing passed " + map[bool]string{true: "before", false: "after"}[x.Before.High == 0]
	}
	switch {
	case x.widened || x.Basis == measure.OfSingles:
		text += "; indicative: " + x.fewText()
	case !x.Indicative && x.Basis == measure.OfResults:
		text += fmt.Sprintf("; %d against %d results", len(x.b), len(x.a))
	case x.Indicative:
		text += fmt.Sprintf("; indicative: %d against %d %s", len(x.b), len(x.a), x.Basis)
	case x.Basis == measure.OfRuns:
		text += "; one session each, so variation from day to day is not included"
	}
	return text
}

// fewText words the assumed scatter of few values.
func (x *contest) fewText() string {
	values := fmt.Sprintf("%d against %d %s", len(x.b), len(x.a), x.Basis)
	if x.Basis == measure.OfSingles {
		values = "single runs"
	}
	if min(len(x.a), len(x.b)) >= leastValues {
		return fmt.Sprintf("%s, with an assumed standard deviation of %d%% from session to session", values, stat.SessionSpreadPct)
	}
	return fmt.Sprintf("%s, with an assumed standard deviation of %d%%", values, stat.RunSpreadPct)
}

// enoughRuns is the number beyond which other conditions show more than more runs.
const enoughRuns = 5

// advice says what would decide.
func (x *contest) advice() string {
	switch {
	case x.Basis == measure.OfResults:
		return "more results would decide"
	case x.family != flows:
		return "several results on each side would decide (spans, such as last-week and today)"
	case min(len(x.a), len(x.b)) >= leastValues && x.d.Own < stat.LeastDetectable(len(x.a), len(x.b), true, 0.95):
		return "more runs of one session add little; several results on each side would decide (spans, such as last-week and today)"
	case min(len(x.a), len(x.b)) >= enoughRuns:
		return fmt.Sprintf("the runs of a side vary by up to %s: longer runs (-t 30) on a quiet path, or several results on each side, would decide", unit.Percent(100*max(spanOf(x.a), spanOf(x.b))))
	}
	return "more runs would decide (--repeat 5)"
}

// spanOf returns by how much the highest value exceeds the lowest, relative to the lowest.
func spanOf(logs []float64) float64 { return math.Expm1(slices.Max(logs) - slices.Min(logs)) }

// warnings warns if a side has no single level for its mean.
func (x *contest) warnings() (all []string) {
	if x.Outcome == measure.NotCompared {
		return nil
	}
	for _, s := range []struct {
		name string
		logs []float64
	}{{"before", x.a}, {"after", x.b}} {
		if why := unevenness(s.logs, x.Basis); why != "" {
			all = append(all, fmt.Sprintf("%s, %s: %s", s.name, x.called(), why))
		}
	}
	return all
}

// called names the side in a warning.
func (x *contest) called() string {
	if x.family == flows {
		return measure.PairName(x.From, x.To)
	}
	return directionText(x.From, x.To) + ", " + x.What
}

// unevenness says why a mean does not represent values in order of time.
func unevenness(logs []float64, basis string) string {
	rates := make([]float64, len(logs))
	for i, l := range logs {
		rates[i] = math.Exp(l - slices.Max(logs)) // relative to the highest, to avoid overflow
	}
	if basis == measure.OfRuns {
		if low, high, found := stat.TwoGroups(rates); found {
			return fmt.Sprintf("the runs fall into two groups, one at %s of the other: their mean describes neither", unit.Percent(100*low/high))
		}
		return ""
	}
	s := stat.Steady(rates)
	switch {
	case !s.Checked || s.Steady:
		return ""
	case len(s.Levels) == 2:
		return fmt.Sprintf("two levels, the later results at %s of the earlier ones: compare spans of one level", unit.Percent(100*s.Levels[1]/s.Levels[0]))
	}
	return fmt.Sprintf("the results drift, by %s over the span: compare shorter spans", unit.Percent(s.SlopePct))
}
