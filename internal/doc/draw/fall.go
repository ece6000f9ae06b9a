package draw

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"thru/internal/doc"
)

// Fall is a waterfall: bars on one scale.
type Fall struct {
	Rungs []Rung
	Most  float64 // at the end of the scale
}

// Picture is the picture of an answer: rates as bars on one scale, as wide as the page.
type Picture struct {
	Caption string
	Legend  []doc.Legend
	Rows    []Rung
}

// Rung is one bar, ready to print. Shares are of the scale.
type Rung struct {
	Name, Path string
	Value      string // "9.41 of 10 Gb/s", "not measured"
	With       string // the cell that carried it
	Change     string // against the rung below: "-53% (10.8 Gb/s)"
	Ceiling    string // "94.1%"
	Verdict    string // "pass", "fail" or ""
	Limited    bool
	Binds      bool     // of a transfer: the layer limits the whole
	Absent     bool     // not measured, which differs from zero
	Said       []string // notes about it
	Carried    float64  // share of the bar
	Mark       float64  // share of the ceiling's mark; 0: none
	Below      float64  // share that the rung below carried; 0: none
	Low, High  float64  // shares of the interval; equal: unknown
	Was        bool     // of a comparison: the figure before
}

// Share returns a rate as a share of the scale, 0 to 1.
func (w *Fall) Share(bps float64) float64 {
	if !(w.Most > 0) || !(bps > 0) {
		return 0
	}
	return min(bps/w.Most, 1)
}

// Picture returns the picture of the bars, with a legend.
func (w *Fall) Picture(caption string) *Picture {
	w, logarithmic := w.drawn()
	if logarithmic {
		caption += " The scale is logarithmic."
	}
	b := &Picture{Caption: caption, Rows: w.Rungs}
	for _, k := range []struct {
		class, name string
		in          func(Rung) bool
	}{
		{"was", "before", func(r Rung) bool { return r.Was }},
		{"fall", "after", func(r Rung) bool { return !r.Was && w.compares() }},
		{"fall", "carried", func(r Rung) bool { return r.Carried > 0 && !w.compares() }},
		{"lost", "the rung below", func(r Rung) bool { return r.Below > r.Carried }},
		{"fall limited", "generator-limited", func(r Rung) bool { return r.Limited }},
		{"fall binds", "limit", func(r Rung) bool { return r.Binds && r.Carried > 0 }},
		{"absent", "not checked", func(r Rung) bool { return r.Absent }},
	} {
		if slices.ContainsFunc(w.Rungs, k.in) {
			b.Legend = append(b.Legend, doc.Legend{Key: barKey(`<rect class="` + k.class + `" x="1" y="3" width="32" height="10"/>`), Name: k.name})
		}
	}
	if slices.ContainsFunc(w.Rungs, func(r Rung) bool { return r.Mark > 0 }) {
		b.Legend = append(b.Legend, doc.Legend{Key: barKey(`<line class="roof" x1="17" y1="0" x2="17" y2="16"/>`), Name: "ceiling"})
	}
	if slices.ContainsFunc(w.Rungs, func(r Rung) bool { return r.Low < r.High }) {
		name := "95% interval or range"
		if w.compares() {
			name = "min and max"
		}
		b.Legend = append(b.Legend, doc.Legend{Key: barKey(`<path class="span" d="M3 8h28M3 3v10M31 3v10"/>`), Name: name})
	}
	return b
}

// Block returns the picture as a block; an empty one for nil.
func (p *Picture) Block() doc.Block {
	if p == nil {
		return doc.Bars{}
	}
	b := doc.Bars{Caption: p.Caption, Legend: p.Legend}
	for _, r := range p.Rows {
		b.Rows = append(b.Rows, doc.BarRow{Name: r.Name, Value: doc.Join(r.Value, r.Change), Track: r.Track()})
	}
	return b
}

// compares reports whether there is a bar of an earlier figure.
func (w *Fall) compares() bool {
	return slices.ContainsFunc(w.Rungs, func(r Rung) bool { return r.Was })
}

// leastShare is the shortest visible bar, as a share of the longest.
const leastShare = 0.02

// drawn returns the waterfall as drawn: if a bar would be too short to see, the lengths are logarithmic.
func (w *Fall) drawn() (shown *Fall, logarithmic bool) {
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
		r.Carried, r.Below, r.Mark, r.Low, r.High = length(r.Carried), length(r.Below), length(r.Mark), length(r.Low), length(r.High)
	}
	return shown, true
}

func barKey(shape string) doc.Markup {
	return doc.Markup(`<svg class="key" viewBox="0 0 34 16" aria-hidden="true">` + shape + `</svg>`)
}

// Track returns the bar as SVG, in shares of the page's width; its row has the same in words.
func (r Rung) Track() doc.Markup {
	var c strings.Builder
	rect := func(class string, share float64) {
		fmt.Fprintf(&c, `<rect class="%s" width="%.2f%%" height="100%%"/>`, class, 100*share)
	}
	upright := func(class string, share float64, from, to int) {
		fmt.Fprintf(&c, `<line class="%s" x1="%.2f%%" y1="%d%%" x2="%.2f%%" y2="%d%%"/>`, class, 100*share, from, 100*share, to)
	}
	c.WriteString(`<svg class="track" aria-hidden="true">`)
	if r.Below > r.Carried {
		rect("lost", r.Below)
	}
	class := "fall"
	switch {
	case r.Was:
		class = "was"
	case r.Limited:
		class += " limited"
	case r.Binds:
		class += " binds"
	}
	switch {
	case r.Absent:
		rect("absent", 1)
	case r.Carried > 0:
		rect(class, max(r.Carried, 0.003))
	}
	if r.Low < r.High {
		fmt.Fprintf(&c, `<g class="span"><line x1="%.2f%%" y1="50%%" x2="%.2f%%" y2="50%%"/>`, 100*r.Low, 100*r.High)
		upright("end", r.Low, 25, 75)
		upright("end", r.High, 25, 75)
		c.WriteString("</g>")
	}
	if r.Mark > 0 {
		upright("roof", r.Mark, -20, 120)
	}
	c.WriteString("</svg>")
	return doc.Markup(c.String())
}
