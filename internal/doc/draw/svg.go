// Package draw makes the drawings of pages: panels of lines over one axis as SVG, and bars on one scale.
package draw

import (
	"fmt"
	"html"
	"math"
	"strings"

	"thru/internal/doc"
)

// Drawing is one SVG of panels stacked over a common x axis.
type Drawing struct {
	ID     string // of the title and description, unique on the page
	Title  string
	Desc   string // description for readers who cannot see it
	X      XAxis
	Panels []Panel
}

// XAxis runs from Low to High; its ticks carry their own labels.
type XAxis struct {
	Low, High float64
	Ticks     []Tick
	Title     string // with unit
}

// Tick is a mark on an axis with its label.
type Tick struct {
	At    float64
	Label string
}

// Panel is one y axis with its lines: from zero, or logarithmic with its own ticks.
type Panel struct {
	Title  string // with unit
	Height float64
	Max    float64 // of the data, in the axis's unit
	Log    []Tick  // at least two, ascending; none: an axis from zero
	Lines  []Line
}

// axis returns the ticks of a panel, and a function from a value to its position between bottom and top.
func (p Panel) axis(bottom, top float64) ([]Tick, func(float64) float64) {
	ticks := p.Log
	if len(ticks) < 2 {
		ticks = NiceTicks(p.Max, int(p.Height/36))
		return ticks, func(v float64) float64 { return Project(v, 0, ticks[len(ticks)-1].At, bottom, top) }
	}
	low, high := math.Log(ticks[0].At), math.Log(ticks[len(ticks)-1].At)
	return ticks, func(v float64) float64 { return Project(math.Log(max(v, ticks[0].At)), low, high, bottom, top) }
}

// Line is one series. Style selects colour and marker shape; the other fields distinguish series of one
// colour.
type Line struct {
	Points  []Point
	Errors  []Span // error bars, one for each point, or none
	Style   int
	Dashed  bool
	Wide    bool   // pale and broad, visible below an identical line
	Thin    bool   // no markers, dotted
	Bare    bool   // no markers; a NaN point breaks the line
	Marker  Marker // only a small shape at each point
	Stems   bool   // vertical bars from zero, for counts
	Markers int    // approximate number; 0: all
}

// Span is a part of an axis.
type Span struct{ Low, High float64 }

// Marker is the shape of points that no line joins.
type Marker int

const (
	NoMarkers Marker = iota
	Bars             // vertical
	Crosses
)

// path returns one marker as the data of an SVG path.
func (s Marker) path(x, y float64) string {
	if s == Crosses {
		return fmt.Sprintf("M%.1f %.1fl6 6m0-6l-6 6", x-3, y-3)
	}
	return fmt.Sprintf("M%.1f %.1fv12", x, y-6)
}

// Geometry in SVG units. The page's style sets the fonts.
const (
	Width       = 520.0
	leftMargin  = 60.0
	rightMargin = 16.0
	titleHeight = 42.0 // above each panel
	axisHeight  = 52.0 // below the last
	Styles      = 4
)

// Canvas collects SVG elements. Text escapes its string.
type Canvas struct{ strings.Builder }

// Add adds an element, formatted as by fmt.Fprintf.
func (c *Canvas) Add(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

// Text adds an escaped text of a CSS class, anchored at a point.
func (c *Canvas) Text(class, anchor string, x, y float64, s string) {
	c.Add(`<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`, class, anchor, x, y, html.EscapeString(s))
}

func (c *Canvas) stroke(class string, x1, y1, x2, y2 float64) {
	c.Add(`<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

// svg renders the drawing. The result contains only our own elements and escaped text.
func (d Drawing) svg() doc.Markup {
	height := axisHeight
	for _, p := range d.Panels {
		height += titleHeight + p.Height
	}
	var c Canvas
	id := html.EscapeString(d.ID)
	c.Add(`<svg viewBox="0 0 %.0f %.0f" role="img" aria-labelledby="%s-t %s-d">`, Width, height, id, id)
	c.Add(`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, id, html.EscapeString(d.Title), id, html.EscapeString(d.Desc))
	top := 0.0
	for _, p := range d.Panels {
		top += titleHeight
		d.panel(&c, p, top)
		top += p.Height
	}
	for _, t := range d.X.Ticks {
		c.Text("tick", "middle", d.X.pixel(t.At), top+20, t.Label)
	}
	c.Text("axis", "middle", (leftMargin+Width-rightMargin)/2, top+42, d.X.Title)
	c.Add("</svg>")
	return doc.Markup(c.String())
}

func (x XAxis) pixel(v float64) float64 {
	return Project(v, x.Low, x.High, leftMargin, Width-rightMargin)
}

// panel draws grid, ticks and lines of one panel whose plot begins at top.
func (d Drawing) panel(c *Canvas, p Panel, top float64) {
	bottom := top + p.Height
	ticks, y := p.axis(bottom, top)
	c.Text("axis", "start", 8, top-15, p.Title)
	for _, t := range ticks {
		c.stroke("grid", leftMargin, y(t.At), Width-rightMargin, y(t.At))
		c.Text("tick", "end", leftMargin-8, y(t.At)+4, t.Label)
	}
	for _, t := range d.X.Ticks {
		c.stroke("base", d.X.pixel(t.At), bottom, d.X.pixel(t.At), bottom+5)
	}
	c.stroke("base", leftMargin, bottom, Width-rightMargin, bottom)
	for _, l := range p.Lines {
		l.draw(c, d.X.pixel, y)
	}
}

func (l Line) draw(c *Canvas, x, y func(float64) float64) {
	class := l.class()
	if l.Stems {
		for _, p := range l.Points {
			c.stroke(class+" stem", x(p.X), y(0), x(p.X), y(p.Y))
		}
		return
	}
	if l.Marker != NoMarkers {
		l.markers(c, x, y)
		return
	}
	for _, part := range unbrokenParts(l.Points) {
		var path []string
		for _, p := range part {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x(p.X), y(p.Y)))
		}
		c.Add(`<polyline class="%s" points="%s"/>`, class, strings.Join(path, " "))
	}
	if l.Thin || l.Bare {
		return
	}
	every := 1
	if l.Markers > 0 {
		every = max(1, len(l.Points)/l.Markers)
	}
	for i := every / 2; i < len(l.Points); i += every {
		c.Add("%s", marker(l.Style, l.Dashed || l.Wide, x(l.Points[i].X), y(l.Points[i].Y)))
	}
	l.errorBars(c, x, y)
}

// markers draws all points in one path: there may be hundreds.
func (l Line) markers(c *Canvas, x, y func(float64) float64) {
	var path strings.Builder
	for _, p := range l.Points {
		path.WriteString(l.Marker.path(x(p.X), y(p.Y)))
	}
	if path.Len() > 0 {
		c.Add(`<path class="%s" d="%s"/>`, l.class(), path.String())
	}
}

// unbrokenParts splits a series at missing values. A single point draws nothing.
func unbrokenParts(ps []Point) (parts [][]Point) {
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

// errorBars draws error bars wider than a marker, so that short ones are visible.
func (l Line) errorBars(c *Canvas, x, y func(float64) float64) {
	for i, e := range l.Errors {
		if e.Low == e.High {
			continue // a single value has no interval
		}
		at := x(l.Points[i].X)
		c.stroke(l.class()+" bar", at, y(e.Low), at, y(e.High))
		c.stroke(l.class()+" bar", at-8, y(e.Low), at+8, y(e.Low))
		c.stroke(l.class()+" bar", at-8, y(e.High), at+8, y(e.High))
	}
}

// class returns the CSS class that gives a line its colour and dashes.
func (l Line) class() string {
	class := fmt.Sprintf("line c%d", l.Style%Styles)
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
	if l.Marker != NoMarkers {
		class += " spot"
	}
	return class
}

// marker returns the shape of a style. Dashed and wide lines have larger, hollow markers, so that both are
// visible where two lines coincide.
func marker(style int, hollow bool, x, y float64) string {
	class, r := fmt.Sprintf("mark c%d", style%Styles), 4.0
	if hollow {
		class, r = class+" hollow", 6.0
	}
	switch style % Styles {
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

// Key returns the sample of a line for a legend.
func Key(l Line) doc.Markup {
	if l.Stems {
		return doc.Markup(fmt.Sprintf(`<svg class="key" viewBox="0 0 34 16" aria-hidden="true"><line class="%s stem" x1="17" y1="15" x2="17" y2="1"/></svg>`, l.class()))
	}
	if l.Marker != NoMarkers {
		return doc.Markup(fmt.Sprintf(`<svg class="key" viewBox="0 0 34 16" aria-hidden="true"><path class="%s" d="%s"/></svg>`, l.class(), l.Marker.path(17, 8)))
	}
	mark := marker(l.Style, l.Dashed || l.Wide, 17, 8)
	if l.Thin || l.Bare {
		mark = ""
	}
	return doc.Markup(fmt.Sprintf(`<svg class="key" viewBox="0 0 34 16" aria-hidden="true"><polyline class="%s" points="1,8 33,8"/>%s</svg>`, l.class(), mark))
}

// Project maps v from one interval to another; values outside are drawn at the edge.
func Project(v, low, high, from, to float64) float64 {
	share := (v - low) / (high - low)
	if math.IsNaN(share) {
		share = 0
	}
	return from + min(max(share, 0), 1)*(to-from)
}

// NiceTicks divides 0 to at least high into about want steps of 1, 2 or 5 times a power of ten.
func NiceTicks(high float64, want int) []Tick {
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
	var ticks []Tick
	for i := 0; ; i++ {
		v := float64(i) * step
		ticks = append(ticks, Tick{v, doc.Plain(v)})
		if v >= high*(1-1e-9) || i > 20 {
			return ticks
		}
	}
}

// Point is one value of a series; X is seconds since the measured time began.
type Point struct{ X, Y float64 }

// Chart renders a drawing.
func Chart(d Drawing, caption string, legends []doc.Legend) doc.Chart {
	return doc.Chart{SVG: d.svg(), Caption: caption, Legend: legends}
}
