package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// waterfall is the rungs of a ladder, the lowest first, with what each layer costs.
type waterfall struct {
	Unit  scale
	Rungs []rungBar
	Most  float64 // bit/s at the end of the scale
	Notes []string
}

// rungBar is one rung ready to print. A share is of the scale.
type rungBar struct {
	Name, Way string
	Value     string // "9.41 of 10 Gb/s", "not measured"
	With      string // cell that carried it
	Change    string // against the rung below: "-53% (10.8 Gb/s)"
	Ceiling   string // "94.1%"
	Verdict   string // "pass", "fail" or ""
	Limited   bool
	Binds     bool     // of a transfer: the whole carries no more than it
	Absent    bool     // it was not measured, which is not nothing
	Said      []string // what is to be said of it
	Carried   float64  // share of the bar
	Mark      float64  // share of the ceiling's mark; 0: none
	Below     float64  // share that the rung below carried; 0: none
}

// newWaterfall makes the rungs of a document ready; nil where it has none.
func newWaterfall(d *measure.Document) *waterfall {
	if d.Ladder == nil || len(d.Ladder.Rungs) == 0 {
		return nil
	}
	w := &waterfall{Notes: cleanAll(d.Ladder.Notes)}
	rungs := d.Ladder.Rungs[:min(len(d.Ladder.Rungs), maxLines)]
	for i := range rungs {
		if b := rungs[i].Best; b != nil {
			w.Most = max(w.Most, b.Value)
		}
	}
	w.Unit = scaleFor(w.Most)
	below := 0.0
	for i := range rungs {
		w.Rungs = append(w.Rungs, w.bar(&rungs[i], below))
		if b := rungs[i].Best; b != nil {
			below = b.Value
		}
	}
	return w
}

func (w *waterfall) bar(r *measure.Rung, below float64) rungBar {
	b := rungBar{Name: clean(r.Name), Way: wayOf(r.From, r.To), With: clean(r.Label), Limited: r.Limited, Below: w.share(below)}
	if b.Value = "not measured"; r.Best != nil {
		b.Value, b.Carried = rungRate(r), w.share(r.Best.Value)
	}
	if r.Ceiling != nil {
		b.Mark = w.share(r.Ceiling.Bps)
		if r.Best != nil {
			b.Ceiling = unit.Percent(100 * r.Best.Value / r.Ceiling.Bps)
		}
	}
	if r.LossPct != nil {
		b.Change = changeText(-*r.LossPct)
		if r.LostBps != nil {
			b.Change += " (" + unit.Rate(math.Abs(*r.LostBps)) + ")"
		}
		if why := strings.TrimPrefix(chanceText(r), ", which "); why != "" {
			b.Said = append(b.Said, "what it takes of the rung below "+why)
		}
	}
	if r.Error != "" {
		b.Said = append(b.Said, "failed: "+clean(r.Error))
	}
	switch {
	case r.Limited:
		b.Said = append(b.Said, strings.TrimSuffix("generator-limited: "+clean(r.Why), ": "))
	case r.Why != "":
		b.Said = append(b.Said, clean(r.Why))
	}
	if r.Verdict != nil {
		b.Verdict = verdictWord(r.Verdict)
		if r.Verdict.Reason != "" {
			b.Said = append(b.Said, b.Verdict+": "+strings.TrimPrefix(clean(r.Verdict.Reason), b.Name+" "))
		}
		if r.Verdict.Pass && r.Verdict.Share > tooMuch {
			b.Said = append(b.Said, overWords)
		}
	}
	return b
}

// wayOf is the path of a rung: "a -> b", or the one host.
func wayOf(from, to string) string {
	if from == to {
		return clean(from)
	}
	return clean(from + " -> " + to)
}

// share of the scale, 0 to 1.
func (w *waterfall) share(bps float64) float64 {
	if !(w.Most > 0) || !(bps > 0) {
		return 0
	}
	return min(bps/w.Most, 1)
}

// rungRate is what a rung carried, of its link where that is known.
func rungRate(r *measure.Rung) string {
	if r.Ceiling == nil || r.Ceiling.LinkBps <= 0 {
		return unit.Rate(r.Best.Value)
	}
	in := scaleFor(float64(r.Ceiling.LinkBps))
	return rateOf(r.Best.Value, float64(r.Ceiling.LinkBps), in)
}

// rateOf is "9.41 of 10 Gb/s", in two units where one would not do for both.
func rateOf(bps, link float64, in scale) string {
	if bps < in.div/10 {
		return unit.Rate(bps) + " of " + plain(link/in.div) + " " + in.name
	}
	return in.number(bps) + " of " + plain(link/in.div) + " " + in.name
}

// changeText is a change in percent with its sign: "-53%", "+4.2%".
func changeText(pct float64) string {
	if s := unit.Percent(pct); pct > 0 {
		return "+" + s
	} else {
		return s
	}
}

// waterfall prints a bar for each rung, and below them what is to be said.
func (p *printer) waterfall(w *waterfall) {
	g := w.table(true)
	room := barRoom(g, p.width)
	if room < mostBar/2 { // the matrix of each rung says it too
		g = w.table(false)
		room = barRoom(g, p.width)
	}
	if room >= leastBar {
		for i, r := range w.Rungs {
			g.Rows[i][1] = barText(r, room)
		}
	}
	p.out.WriteByte('\n')
	p.grid(g.withoutEmpty())
	for _, s := range w.Lines() {
		p.wrap("", 3, "  -", s)
	}
}

// table is the rungs with a column for their bars.
func (w *waterfall) table(with bool) grid {
	g := grid{Tone: failedTone, Columns: []column{{Name: "rung", Least: 14}, {Name: ""}, {Name: "carries", Right: true}, {Name: "to the rung below", Right: true},
		{Name: "of ceiling", Right: true}, {Name: ""}, {Name: "best with"}}}
	for _, r := range w.Rungs {
		g.Rows = append(g.Rows, []string{r.Name, "-", r.Value, orDash(r.Change), orDash(r.Ceiling), orDash(r.Verdict), "-"})
		if with {
			g.Rows[len(g.Rows)-1][6] = orDash(r.With)
		}
	}
	return g
}

// barRoom is how wide the bars can be beside the other columns.
func barRoom(g grid, width int) int {
	room := width - gridIndent
	short := g.withoutEmpty()
	widths := short.widths()
	short.shrink(widths, 0)
	for _, n := range widths {
		room -= n + gridGap
	}
	return min(room, mostBar)
}

const (
	mostBar  = 32
	leastBar = 8
)

// barText is a bar of text, with a mark where the ceiling is.
func barText(r rungBar, width int) string {
	n := int(math.Round(r.Carried * float64(width)))
	if r.Carried > 0 {
		n = max(n, 1)
	}
	bar := []rune(strings.Repeat("█", n) + strings.Repeat(" ", width-n))
	if at := int(math.Round(r.Mark*float64(width))) - 1; r.Mark > 0 && r.Mark < 1 && at >= n {
		bar[at] = '|'
	}
	return strings.TrimRight(string(bar), " ")
}

// Lines say what stands behind the figures.
func (w *waterfall) Lines() (all []string) {
	for _, r := range w.Rungs {
		for _, s := range r.Said {
			all = append(all, r.Name+": "+s)
		}
	}
	return append(all, append(w.Notes, "published figures are there to compare how they change with streams and window: "+caution)...)
}

// Page is the table for a page, which draws the bars beside it.
func (w *waterfall) Page() grid { return w.table(true).withoutEmpty() }

// Geometry of the drawing, in SVG units.
const (
	barTop    = 26.0 // of the text above a bar
	barHeight = 20.0
	barPitch  = 62.0
)

// chart draws the rungs as bars: what the rung below carried stands behind
// each, so that the loss can be seen, and a line is at the ceiling.
func (w *waterfall) chart() chart {
	var c canvas
	var words []string
	w, logarithmic := w.drawn()
	height := barPitch*float64(len(w.Rungs)) + 8
	c.add(`<svg viewBox="0 0 %.0f %.0f" role="img" aria-labelledby="waterfall-t waterfall-d">`, svgWidth, height)
	for _, r := range w.Rungs {
		words = append(words, join(r.Name+": "+r.Value, r.Change))
	}
	c.add(`<title id="waterfall-t">What each layer costs</title><desc id="waterfall-d">%s</desc>`, template.HTMLEscapeString(strings.Join(words, "; ")))
	for i, r := range w.Rungs {
		w.drawRung(&c, r, barPitch*float64(i))
	}
	c.add("</svg>")
	legends := []legend{{barKey("fall"), "carried"}, {barKey("lost"), "the rung below"}}
	marked, limited := false, false
	for _, r := range w.Rungs {
		marked, limited = marked || r.Mark > 0 && r.Mark < 1, limited || r.Limited
	}
	if marked {
		legends = append(legends, legend{template.HTML(`<svg class="key" viewBox="0 0 34 16" aria-hidden="true"><line class="roof" x1="17" y1="0" x2="17" y2="16"/></svg>`), "ceiling"})
	}
	if limited {
		legends = append(legends, legend{barKey("fall limited"), "generator-limited"})
	}
	caption := "What each layer costs, by the best cell of each rung."
	if logarithmic {
		caption += " The scale is logarithmic: half the length is far less than half the rate."
	}
	return chart{SVG: template.HTML(c.String()), Caption: caption, Legend: legends}
}

// leastShare of the longest bar is the least that still can be seen beside it.
const leastShare = 0.02

// drawn is the waterfall as it is drawn: where a bar would be too short to be
// seen, all have the length of the logarithm of their rate.
func (w *waterfall) drawn() (shown *waterfall, logarithmic bool) {
	least := 1.0
	for _, r := range w.Rungs {
		if r.Carried > 0 {
			least = min(least, r.Carried)
		}
	}
	if least >= leastShare {
		return w, false
	}
	length := func(share float64) float64 {
		if !(share > 0) {
			return 0
		}
		return max(0.1+0.9*(1-math.Log(share)/math.Log(least)), 0.01)
	}
	shown = new(*w)
	shown.Rungs = slices.Clone(w.Rungs)
	for i := range shown.Rungs {
		r := &shown.Rungs[i]
		r.Carried, r.Below, r.Mark = length(r.Carried), length(r.Below), length(r.Mark)
	}
	return shown, true
}

func barKey(class string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="key" viewBox="0 0 34 16" aria-hidden="true"><rect class="%s" x="1" y="3" width="32" height="10"/></svg>`, class))
}

func (w *waterfall) drawRung(c *canvas, r rungBar, top float64) {
	value := r.Value
	if r.Change != "" {
		value += ", " + r.Change
	}
	c.text("axis", "start", 0, top+barTop-7, shortened(r.Name, 28))
	c.text("axis", "end", svgWidth, top+barTop-7, value)
	y := top + barTop
	rect := func(class string, share float64) {
		c.add(`<rect class="%s" x="0" y="%.1f" width="%.1f" height="%.1f"/>`, class, y, share*svgWidth, barHeight)
	}
	if r.Below > r.Carried {
		rect("lost", r.Below)
	}
	class := "fall"
	switch {
	case r.Limited:
		class += " limited"
	case r.Binds:
		class += " binds"
	}
	switch {
	case r.Absent:
		c.add(`<rect class="absent" x="1" y="%.1f" width="%.1f" height="%.1f"/>`, y, svgWidth-2, barHeight)
	case r.Carried > 0:
		rect(class, max(r.Carried, 0.003))
	}
	if r.Mark > 0 && r.Mark < 1 {
		c.stroke("roof", r.Mark*svgWidth, y-3, r.Mark*svgWidth, y+barHeight+3)
	}
}
