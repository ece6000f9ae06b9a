package fleet

import (
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/draw"
	"thru/internal/doc/text"
	"thru/internal/measure"
	"thru/internal/report/ladder"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// maxChartLines limits the lines of a chart to the number of styles.
const maxChartLines = draw.Styles

// numericAxes returns the axes with ordered values, the most useful one first.
func numericAxes() []string { return []string{"end_points", "cpus", "streams", "window", "length"} }

// newSetChart draws what the sets carried over one axis, with a line for each value of another one; nil if a
// chart would not show it.
func newSetChart(sets []*Set) *doc.Chart {
	over, second, ok := chartAxes(sets)
	if !ok {
		return nil
	}
	in := scaleOf(sets, (*Set).amount)
	if in.Div == 0 { // small values would lie on the axis
		return nil
	}
	at, names := valuesOf(sets, over), valuesOf(sets, second)
	lines, words := make([]draw.Line, max(1, len(names))), []string(nil)
	p := draw.Panel{Title: in.Name, Height: ladder.ChartHeight}
	for _, s := range sets {
		n := max(0, slices.Index(names, axisValue(s.Axes, second)))
		low, high := s.interval()
		x := float64(slices.Index(at, axisValue(s.Axes, over))) + (float64(n)-float64(len(lines)-1)/2)*0.08
		l := &lines[n]
		l.Style, l.Points, l.Errors = n, append(l.Points, draw.Point{X: x, Y: s.amount() / in.Div}), append(l.Errors, draw.Span{Low: low / in.Div, High: high / in.Div})
		p.Max = max(p.Max, s.amount()/in.Div, high/in.Div)
		words = append(words, s.Name+": "+in.Number(s.amount()))
	}
	p.Lines = lines
	x := draw.XAxis{Low: -0.5, High: float64(len(at)) - 0.5, Title: axisTitle(over)}
	for i, v := range at {
		x.Ticks = append(x.Ticks, draw.Tick{At: float64(i), Label: text.Shortened(v, 12)})
	}
	var legends []doc.Legend
	for i, n := range names {
		legends = append(legends, doc.Legend{Key: draw.Key(lines[i]), Name: result.AxisWords(measure.Axis{Name: second, Value: n})})
	}
	what := "Rate of a pair"
	if slices.ContainsFunc(sets, (*Set).AtOnce) {
		what = "Total rate of all pairs"
	}
	what += ", by " + x.Title
	c := draw.Chart(draw.Drawing{ID: "sets", Title: what, Desc: "In " + in.Name + ". " + strings.Join(words, "; "), X: x, Panels: []draw.Panel{p}}, what+". Bars: the 95% interval, or the range without one.", legends)
	return &c
}

// chartAxes chooses the x axis of a chart and the axis that its lines stand for: each pair of their values
// must have at most one point.
func chartAxes(sets []*Set) (over, second string, ok bool) {
	varied := unit.Filtered(axisNames(sets), func(n string) bool { return len(valuesOf(sets, n)) > 1 })
	for _, n := range numericAxes() {
		if over == "" && slices.Contains(varied, n) {
			over = n
		}
	}
	if over == "" || slices.ContainsFunc(sets, func(s *Set) bool { return s.Rung != "" || s.Asks || len(s.values()) == 0 }) {
		return "", "", false
	}
	if len(sets) == len(valuesOf(sets, over)) {
		return over, "", true
	}
	if len(varied) != 2 {
		return "", "", false
	}
	second = varied[1-slices.Index(varied, over)]
	return over, second, len(valuesOf(sets, second)) <= maxChartLines
}

// valuesOf returns the values of an axis, in order of appearance.
func valuesOf(sets []*Set, name string) []string {
	var all []string
	for _, s := range sets {
		if v := axisValue(s.Axes, name); name != "" && v != "" && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// interval returns the interval of a set's rate; for several pairs in turn only the value.
func (s *Set) interval() (low, high float64) {
	if f := s.figure(); f != nil {
		return result.Interval(f)
	}
	return s.amount(), s.amount()
}
