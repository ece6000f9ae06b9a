package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"

	"thru/internal/doc"
)

// drawing is one SVG of panels stacked over a common x axis.
type drawing struct {
	ID     string // of the title and description, unique on the page
	Title  string
	Desc   string // what a person who cannot see it should know
	X      xAxis
	Panels []panel
}

// xAxis runs from Low to High; its ticks carry their own labels.
type xAxis struct {
	Low, High float64
	Ticks     []tick
	Title     string // with unit
}

type tick struct {
	At    float64
	Label string
}

// panel is one y axis with its lines: from zero, or with ticks of its own that
// grow by a factor, logarithmic.
type panel struct {
	Title  string // with unit
	Height float64
	Max    float64 // of the data, in the axis's unit
	Log    []tick  // at least two, rising; none is an axis from zero
	Lines  []line
}

// axis is the ticks of a panel, and where a value lies between bottom and top.
func (p panel) axis(bottom, top float64) ([]tick, func(float64) float64) {
	ticks := p.Log
	if len(ticks) < 2 {
		ticks = niceTicks(p.Max, int(p.Height/36))
		return ticks, func(v float64) float64 { return project(v, 0, ticks[len(ticks)-1].At, bottom, top) }
	}
	low, high := math.Log(ticks[0].At), math.Log(ticks[len(ticks)-1].At)
	return ticks, func(v float64) float64 { return project(math.Log(max(v, ticks[0].At)), low, high, bottom, top) }
}

// line is one series. Style picks colour and marker shape; the other fields
// tell series of one colour apart.
type line struct {
	Points  []point
	Errors  []span // error bars, one a point, or none
	Style   int
	Dashed  bool
	Wide    bool // pale and broad, so that it shows below a line of the same course
	Thin    bool // no markers, dotted
	Bare    bool // no markers; a point that is no number breaks it
	Spots   spot // nothing but a small shape at each point
	Stems   bool // upright bars from zero, for counts
	Markers int  // about how many; 0 means all
}

type span struct{ Low, High float64 }

// spot is the shape of points that no line joins.
type spot int

const (
	noSpots spot = iota
	bars         // upright
	crosses
)

// path is one spot, as the data of an SVG path.
func (s spot) path(x, y float64) string {
	if s == crosses {
		return fmt.Sprintf("M%.1f %.1fl6 6m0-6l-6 6", x-3, y-3)
	}
	return fmt.Sprintf("M%.1f %.1fv12", x, y-6)
}

// Geometry in SVG units. Fonts are set by the page's style.
const (
	svgWidth    = 520.0
	leftMargin  = 60.0
	rightMargin = 16.0
	titleHeight = 42.0 // above each panel
	axisHeight  = 52.0 // below the last
	styles      = 4
)

// canvas collects SVG elements. All text that goes in is escaped here.
type canvas struct{ strings.Builder }

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

func (c *canvas) text(class, anchor string, x, y float64, s string) {
	c.add(`<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`, class, anchor, x, y, html.EscapeString(s))
}

func (c *canvas) stroke(class string, x1, y1, x2, y2 float64) {
	c.add(`<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

// svg draws it. The result holds nothing but our own elements and escaped text.
func (d drawing) svg() template.HTML {
	height := axisHeight
	for _, p := range d.Panels {
		height += titleHeight + p.Height
	}
	var c canvas
	id := html.EscapeString(d.ID)
	c.add(`<svg viewBox="0 0 %.0f %.0f" role="img" aria-labelledby="%s-t %s-d">`, svgWidth, height, id, id)
	c.add(`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, id, html.EscapeString(d.Title), id, html.EscapeString(d.Desc))
	top := 0.0
	for _, p := range d.Panels {
		top += titleHeight
		d.panel(&c, p, top)
		top += p.Height
	}
	for _, t := range d.X.Ticks {
		c.text("tick", "middle", d.X.pixel(t.At), top+20, t.Label)
	}
	c.text("axis", "middle", (leftMargin+svgWidth-rightMargin)/2, top+42, d.X.Title)
	c.add("</svg>")
	return template.HTML(c.String())
}

func (x xAxis) pixel(v float64) float64 {
	return project(v, x.Low, x.High, leftMargin, svgWidth-rightMargin)
}

// panel draws grid, ticks and lines of one panel whose plot begins at top.
func (d drawing) panel(c *canvas, p panel, top float64) {
	bottom := top + p.Height
	ticks, y := p.axis(bottom, top)
	c.text("axis", "start", 8, top-15, p.Title)
	for _, t := range ticks {
		c.stroke("grid", leftMargin, y(t.At), svgWidth-rightMargin, y(t.At))
		c.text("tick", "end", leftMargin-8, y(t.At)+4, t.Label)
	}
	for _, t := range d.X.Ticks {
		c.stroke("base", d.X.pixel(t.At), bottom, d.X.pixel(t.At), bottom+5)
	}
	c.stroke("base", leftMargin, bottom, svgWidth-rightMargin, bottom)
	for _, l := range p.Lines {
		l.draw(c, d.X.pixel, y)
	}
}

func (l line) draw(c *canvas, x, y func(float64) float64) {
	class := l.class()
	if l.Stems {
		for _, p := range l.Points {
			c.stroke(class+" stem", x(p.X), y(0), x(p.X), y(p.Y))
		}
		return
	}
	if l.Spots != noSpots {
		l.spots(c, x, y)
		return
	}
	for _, part := range unbrokenParts(l.Points) {
		var path []string
		for _, p := range part {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x(p.X), y(p.Y)))
		}
		c.add(`<polyline class="%s" points="%s"/>`, class, strings.Join(path, " "))
	}
	if l.Thin || l.Bare {
		return
	}
	every := 1
	if l.Markers > 0 {
		every = max(1, len(l.Points)/l.Markers)
	}
	for i := every / 2; i < len(l.Points); i += every {
		c.add("%s", marker(l.Style, l.Dashed || l.Wide, x(l.Points[i].X), y(l.Points[i].Y)))
	}
	l.errorBars(c, x, y)
}

// spots draws all points in one path: there may be hundreds.
func (l line) spots(c *canvas, x, y func(float64) float64) {
	var path strings.Builder
	for _, p := range l.Points {
		path.WriteString(l.Spots.path(x(p.X), y(p.Y)))
	}
	if path.Len() > 0 {
		c.add(`<path class="%s" d="%s"/>`, l.class(), path.String())
	}
}

// unbrokenParts splits a series where it has no value. A single point draws nothing.
func unbrokenParts(ps []point) (parts [][]point) {
	begin := 0
	for i := range len(ps) + 1 {
		if i < len(ps) && !math.IsNaN(ps[i].Y) {
			continue
		}
		if i-begin > 1 {
			parts = append(parts, ps[begin:i])
		}
		begin = i + 1
	}
	return parts
}

// errorBars are wider than a marker, so that a small one shows.
func (l line) errorBars(c *canvas, x, y func(float64) float64) {
	for i, e := range l.Errors {
		if e.Low == e.High {
			continue // a single value has no doubt to show
		}
		at := x(l.Points[i].X)
		c.stroke(l.class()+" bar", at, y(e.Low), at, y(e.High))
		c.stroke(l.class()+" bar", at-8, y(e.Low), at+8, y(e.Low))
		c.stroke(l.class()+" bar", at-8, y(e.High), at+8, y(e.High))
	}
}

// class is the CSS class that gives a line its colour and dashes.
func (l line) class() string {
	class := fmt.Sprintf("line c%d", l.Style%styles)
	if l.Dashed {
		class += " dashed"
	}
	if l.Wide {
		class += " wide"
	}
	if l.Thin {
		class += " thin"
	}
	if l.Bare {
		class += " bare"
	}
	if l.Spots != noSpots {
		class += " spot"
	}
	return class
}

// marker is a shape of its own for each style. Those of dashed and wide lines are
// hollow and larger, so that both show where two lines have one course.
func marker(style int, hollow bool, x, y float64) string {
	class, r := fmt.Sprintf("mark c%d", style%styles), 4.0
	if hollow {
		class, r = class+" hollow", 6.0
	}
	switch style % styles {
	case 0:
		return fmt.Sprintf(`<circle class="%s" cx="%.1f" cy="%.1f" r="%.1f"/>`, class, x, y, r)
	case 1:
		return fmt.Sprintf(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, class, x-r, y-r, 2*r, 2*r)
	case 2:
		return fmt.Sprintf(`<path class="%s" d="M%.1f %.1fl%.1f %.1fh%.1fz"/>`, class, x, y-1.2*r, 1.2*r, 2.1*r, -2.4*r)
	default:
		return fmt.Sprintf(`<path class="%s" d="M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz"/>`, class, x, y-1.3*r, 1.3*r, 1.3*r, -1.3*r, 1.3*r, -1.3*r, -1.3*r)
	}
}

// key is the sample of a line in a legend.
func key(l line) template.HTML {
	if l.Stems {
		return template.HTML(fmt.Sprintf(`<svg class="key" viewBox="0 0 34 16" aria-hidden="true"><line class="%s stem" x1="17" y1="15" x2="17" y2="1"/></svg>`, l.class()))
	}
	if l.Spots != noSpots {
		return template.HTML(fmt.Sprintf(`<svg class="key" viewBox="0 0 34 16" aria-hidden="true"><path class="%s" d="%s"/></svg>`, l.class(), l.Spots.path(17, 8)))
	}
	mark := marker(l.Style, l.Dashed || l.Wide, 17, 8)
	if l.Thin || l.Bare {
		mark = ""
	}
	return template.HTML(fmt.Sprintf(`<svg class="key" viewBox="0 0 34 16" aria-hidden="true"><polyline class="%s" points="1,8 33,8"/>%s</svg>`, l.class(), mark))
}

// project maps v from one span to another; what lies outside is drawn at the edge.
func project(v, low, high, from, to float64) float64 {
	share := (v - low) / (high - low)
	if math.IsNaN(share) {
		share = 0
	}
	return from + min(max(share, 0), 1)*(to-from)
}

// niceTicks divides 0 to at least high into about want steps of 1, 2 or 5 times a power of ten.
func niceTicks(high float64, want int) []tick {
	if !(high > 1e-6) {
		high = 1
	}
	high = min(high, 1e18)
	raw := high / float64(max(want, 2))
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, f := range []float64{5, 2, 1} {
		if f*power >= raw*(1-1e-9) {
			step = f * power
		}
	}
	var ticks []tick
	for i := 0; ; i++ {
		v := float64(i) * step
		ticks = append(ticks, tick{v, doc.Plain(v)})
		if v >= high*(1-1e-9) || i > 20 {
			return ticks
		}
	}
}
