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

// leastValues is how many values it takes on one side at least to know what they
// vary by. With fewer, and with one alone on the other side, an outcome is
// indicative: that one may be the exception.
const leastValues = 3

// contest is the comparison of one subject under way.
type contest struct {
	measure.ComparedCell
	family  string
	a, b    []float64       // logarithms of the units
	was, is *measure.Figure // of single runs
	widened bool            // the interval is what so few values take, not what they say
}

// newContest gathers what is to be judged, or why it cannot be.
func newContest(p matched, o Options) *contest {
	before, after := p.before.newest(), p.after.newest()
	x := &contest{family: after.family}
	x.From, x.To, x.Place, x.What, x.Beside = p.after.from, p.after.to, p.after.place, after.what(), after.beside
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
		x.Reason = "measured before, and not after: " + after.why
	case refused >= 0 && !o.Anyway:
		s := x.Settings[refused]
		x.Reason = fmt.Sprintf("%s: %s before, %s after; figures of different things (--anyway compares them)", s.Name, s.Before, s.After)
	default:
		x.Outcome = measure.Undecided
		x.Guards = rails(p)
	}
	return x
}

// isRate tells figures from what only a hostile document has.
func isRate(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }

// gather takes the units of both sides: results where a side has several, else
// runs.
func (x *contest) gather(before, after []*subject) {
	as, bs := unitsOf(before), unitsOf(after)
	switch {
	case len(as) > 1 || len(bs) > 1:
		x.Basis = measure.OfResults
		x.a, x.b = logs(means(as)), logs(means(bs))
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

// figureOf is the figure of the only one that has any.
func figureOf(all []*subject) *measure.Figure {
	for _, s := range all {
		if s.figure != nil {
			return s.figure
		}
	}
	return &measure.Figure{}
}

// unitsOf are the values of each result that has any: of its runs that came to
// their end, or where they are not kept its figure.
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

func means(groups [][]float64) (all []float64) {
	for _, g := range groups {
		total := 0.0
		for _, x := range g {
			total += x / float64(len(g))
		}
		all = append(all, total)
	}
	return all
}

// leastRate stands for a run that carried nothing, of which there is no logarithm.
const leastRate = 1

func logs(xs []float64) (all []float64) {
	for _, x := range xs {
		all = append(all, math.Log(max(x, leastRate)))
	}
	return all
}

// sampleOf sums up units; nil of none.
func sampleOf(logs []float64) *measure.Sample {
	if len(logs) == 0 {
		return nil
	}
	total := 0.0
	for _, l := range logs {
		total += l / float64(len(logs))
	}
	low, high, value := rateOf(slices.Min(logs)), rateOf(slices.Max(logs)), rateOf(total)
	if low == 0 && high > 0 { // nothing has no ratio to the others: their common mean
		value = 0
		for _, l := range logs {
			value += rateOf(l) / float64(len(logs))
		}
	}
	return &measure.Sample{Value: min(max(value, low), high), Low: low, High: high, Units: len(logs)}
}

// rateOf is what a logarithm stands for: of leastRate nothing.
func rateOf(log float64) float64 {
	if log <= math.Log(leastRate) {
		return 0
	}
	return math.Exp(log)
}

// settle judges all flows that can be compared: the main ones share the doubt,
// and each of those beside them has its own.
func settle(all []*contest, barPct float64) {
	var main []*contest
	for _, x := range all {
		switch {
		case x.Outcome == measure.NotCompared:
		case x.Beside:
			x.judge(0.95, barPct)
		default:
			main = append(main, x)
		}
	}
	stat.Holm(len(main), func(i int, level float64) bool {
		main[i].judge(level, barPct)
		return main[i].Outcome != measure.Undecided
	})
}

// judge says the outcome at a level such as 0.95:
//
//	equivalent  the interval lies within the bar
//	improved    it lies above, and would if it were as wide as so few values take
//	worse       below, likewise
//	undecided   else
func (x *contest) judge(level, barPct float64) {
	x.LowPct, x.HighPct, x.LevelPct, x.Outcome, x.widened = nil, nil, nil, measure.Undecided, false
	if stalled := x.stalled(); stalled != "" {
		x.ChangePct, x.Reason = known(100*(x.After.Value/x.Before.Value-1)), stalled
		return
	}
	var change, low, high float64
	var found bool
	if x.Basis == measure.OfSingles {
		change, low, high, found = stat.SingleRuns(x.was, x.is, level)
	} else {
		change, low, high, found = stat.Welch(x.a, x.b, level)
	}
	x.ChangePct = x.percent(change)
	if !found {
		x.Reason = "too little was measured for an interval: " + x.advice()
		return
	}
	up, down := math.Log1p(barPct/100), math.Log1p(-min(barPct, 99)/100)
	alike := low > down && high < up
	if least := stat.LeastTold(len(x.a), len(x.b), x.Basis != measure.OfResults, level); !alike && high-change < least {
		low, high, x.widened, x.Indicative = change-least, change+least, true, true
	}
	x.LowPct, x.HighPct, x.LevelPct = x.percent(low), x.percent(high), known(100*level)
	switch {
	case alike:
		x.Outcome = measure.Equivalent
	case low > up:
		x.Outcome = measure.Improved
	case high < down:
		x.Outcome = measure.Worse
	}
	x.Reason = x.words(barPct)
}

// stalled says that some values of a side are nothing, and not all: they have no
// ratio, so that nothing can be said of it but this.
func (x *contest) stalled() string {
	var words []string
	for _, s := range []struct {
		name string
		logs []float64
	}{{"before", x.a}, {"after", x.b}} {
		n := 0
		for _, l := range s.logs {
			if rateOf(l) == 0 {
				n++
			}
		}
		if n > 0 && n < len(s.logs) {
			words = append(words, fmt.Sprintf("%d of the %d %s %s carried nothing", n, len(s.logs), x.Basis, s.name))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return strings.Join(words, ", ") + ": find out why before rates are compared"
}

// percent is the change of a logarithm; nil where there was nothing before, of
// which no share can be taken.
func (x *contest) percent(log float64) *float64 {
	if x.Before != nil && x.Before.High == 0 {
		return nil
	}
	return known(pctOf(log))
}

// pctOf is the change in percent of the logarithm of a ratio.
func pctOf(log float64) float64 { return 100 * math.Expm1(log) }

// known is a figure to keep, or nil of one that JSON cannot hold.
func known(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// words are the outcome in a sentence.
func (x *contest) words(barPct float64) string {
	text := ""
	bar := unit.Percent(barPct)
	switch x.Outcome {
	case measure.Equivalent:
		text = "within " + bar
	case measure.Undecided:
		text = fmt.Sprintf("whether it is beyond %s cannot be told: %s", bar, x.advice())
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
	case x.Basis == measure.OfRuns && x.Outcome != measure.Undecided:
		text += "; of one session each: what differs from day to day is not in it"
	}
	return text
}

// fewText says what so few values are taken to differ by.
func (x *contest) fewText() string {
	values, spread := fmt.Sprintf("%d against %d %s", len(x.b), len(x.a), x.Basis), stat.RunSpreadPct
	if x.Basis == measure.OfSingles {
		values = "single runs"
	}
	if min(len(x.a), len(x.b)) >= leastValues {
		spread = stat.SessionSpreadPct
	}
	return fmt.Sprintf("%s, which are taken to differ by %d%% (standard deviation)", values, spread)
}

// enoughRuns is the number beyond which other conditions tell more than more runs.
const enoughRuns = 5

// advice is what would tell.
func (x *contest) advice() string {
	switch {
	case x.Basis == measure.OfResults:
		return "more results would tell"
	case x.family != flows:
		return "several results each side would tell (spans, such as last-week and today)"
	case min(len(x.a), len(x.b)) >= enoughRuns:
		return fmt.Sprintf("the runs of a side vary by up to %s: longer runs (-t 30) on a quiet path would tell, or several results each side", unit.Percent(100*max(spanOf(x.a), spanOf(x.b))))
	}
	return "more runs would tell (--repeat 5)"
}

// spanOf is by how much the greatest of values exceeds the least, relative to that.
func spanOf(logs []float64) float64 { return math.Expm1(slices.Max(logs) - slices.Min(logs)) }

// warnings tell where a side has no one level that its mean would be of.
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

// called is what a warning calls it.
func (x *contest) called() string {
	if x.family == flows {
		return measure.PairName(x.From, x.To)
	}
	return wayText(x.From, x.To) + ", " + x.What
}

// unevenness says what keeps a mean from standing for values in order of time.
func unevenness(logs []float64, basis string) string {
	rates := make([]float64, len(logs))
	for i, l := range logs {
		rates[i] = math.Exp(l - slices.Max(logs)) // of the greatest, so that none is beyond what can be said
	}
	if basis == measure.OfRuns {
		if low, high, found := stat.TwoGroups(rates); found {
			return fmt.Sprintf("the runs fall into two groups, one at %s of the other: their mean is of neither", unit.Percent(100*low/high))
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
