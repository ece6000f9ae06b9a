package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// picture is rates as bars on one scale, as wide as the page: a picture of the answer.
type picture struct {
	Caption string
	Legend  []legend
	Rows    []rungBar
}

// maxBars bounds the flows in a picture; more are a matrix or a table further down.
const maxBars = 8

// newPicture draws what the answer says: the layers of a transfer, the rungs of a
// ladder, or each direction against its ceiling. Nil where the answer is no rate,
// or has too many of them.
func newPicture(d *measure.Document, v *view) *picture {
	switch {
	case v.Moving != nil:
		return v.Moving.Fall.picture("What each layer carries: the whole carries what the least of them does.")
	case v.Fleet != nil && v.Fleet.Waterfall != nil:
		return v.Fleet.Waterfall.picture("What each layer costs, by the best cell of each rung.")
	case v.Silent:
		return nil
	}
	cells := pictured(d, v)
	if len(cells) == 0 || len(cells) > maxBars {
		return nil
	}
	var w waterfall
	caption, ways := "What each direction carries; no ceiling is known.", map[string]int{}
	for _, c := range cells {
		_, high := figureSpan(c)
		w.Most, ways[pathName(c)] = max(w.Most, amountOf(c), high), ways[pathName(c)]+1
		if c.Ceiling != nil {
			w.Most, caption = max(w.Most, c.Ceiling.Bps), "What each direction carries, against its ceiling: what the link leaves for payload."
		}
	}
	for _, c := range cells {
		b := rungBar{Name: pathName(c), Value: unit.Rate(amountOf(c)), Carried: w.share(amountOf(c))}
		if ways[b.Name] > 1 {
			caption = strings.Replace(caption, "direction", "flow", 1)
			b.Name = join(b.Name, what(c), otherAxes(c))
		}
		if c.Ceiling != nil {
			b.Mark, b.Change = w.share(c.Ceiling.Bps), unit.Percent(c.Ceiling.SharePct)+" of "+unit.Rate(c.Ceiling.Bps)
		}
		low, high := figureSpan(c)
		b.Low, b.High = w.share(low), w.share(high)
		w.Rungs = append(w.Rungs, b)
	}
	return w.picture(caption)
}

// pictured are the main cells with a rate; of a ladder the best one of each path.
func pictured(d *measure.Document, v *view) (all []*measure.Cell) {
	for _, l := range v.Ladders {
		if l.Best != nil {
			all = append(all, l.Best.Source)
		}
	}
	for i := range d.Cells {
		c := &d.Cells[i]
		if len(v.Ladders) == 0 && !c.Beside && !isExperiment(c) && !isGauge(d, c) && !asks(c) && stat.Measured(c) {
			all = append(all, c)
		}
	}
	return all
}

// comparedPicture draws the flows of a comparison before and after, those of one
// kind of figure; nil where they are too many.
func comparedPicture(x *measure.Compared) *picture {
	var w waterfall
	for i := range x.Cells {
		c := &x.Cells[i]
		if c.Beside || c.Figure != x.Cells[0].Figure || c.Before == nil && c.After == nil {
			continue
		}
		for _, s := range []*measure.Sample{c.Before, c.After} {
			b := rungBar{Name: clean(comparedName(x.Cells, c)) + ", before", Value: sampleText(c, s), Was: true}
			if s == c.After {
				b.Name, b.Was = "after", false
				if c.ChangePct != nil {
					b.Change = signedPct(*c.ChangePct)
				}
				b.Change = join(b.Change, clean(c.Outcome))
			}
			if b.Absent = s == nil; !b.Absent {
				b.Carried, b.Low, b.High = s.Value, s.Low, s.High
				w.Most = max(w.Most, s.Value, s.High)
			}
			w.Rungs = append(w.Rungs, b)
		}
	}
	if len(w.Rungs) == 0 || len(w.Rungs) > maxBars {
		return nil
	}
	for i := range w.Rungs {
		r := &w.Rungs[i]
		r.Carried, r.Low, r.High = w.share(r.Carried), w.share(r.Low), w.share(r.High)
	}
	return w.picture("Each flow before and after.")
}

// figureSpan is the 95% interval of a cell's rate, or its range; nothing where neither is known.
func figureSpan(c *measure.Cell) (low, high float64) {
	if c.Goodput == nil || hasCapacity(c) || !hasRange(c.Goodput) {
		return 0, 0
	}
	return interval(c.Goodput)
}

// picture is a waterfall as a picture, with a legend of what is in it.
func (w *waterfall) picture(caption string) *picture {
	w, logarithmic := w.drawn()
	if logarithmic {
		caption += " The scale is logarithmic: half the length is far less than half the rate."
	}
	b := &picture{Caption: caption, Rows: w.Rungs}
	for _, k := range []struct {
		class, name string
		in          func(rungBar) bool
	}{
		{"was", "before", func(r rungBar) bool { return r.Was }},
		{"fall", "after", func(r rungBar) bool { return !r.Was && w.compares() }},
		{"fall", "carried", func(r rungBar) bool { return r.Carried > 0 && !w.compares() }},
		{"lost", "the rung below", func(r rungBar) bool { return r.Below > r.Carried }},
		{"fall limited", "generator-limited", func(r rungBar) bool { return r.Limited }},
		{"fall binds", "binds", func(r rungBar) bool { return r.Binds && r.Carried > 0 }},
		{"absent", "not checked", func(r rungBar) bool { return r.Absent }},
	} {
		if slices.ContainsFunc(w.Rungs, k.in) {
			b.Legend = append(b.Legend, legend{Key: barKey(`<rect class="` + k.class + `" x="1" y="3" width="32" height="10"/>`), Name: k.name})
		}
	}
	if slices.ContainsFunc(w.Rungs, func(r rungBar) bool { return r.Mark > 0 }) {
		b.Legend = append(b.Legend, legend{Key: barKey(`<line class="roof" x1="17" y1="0" x2="17" y2="16"/>`), Name: "ceiling"})
	}
	if slices.ContainsFunc(w.Rungs, func(r rungBar) bool { return r.Low < r.High }) {
		name := "95% interval or range"
		if w.compares() {
			name = "least and greatest"
		}
		b.Legend = append(b.Legend, legend{Key: barKey(`<path class="span" d="M3 8h28M3 3v10M31 3v10"/>`), Name: name})
	}
	return b
}

// block is the picture on a page; none where there is no picture.
func (p *picture) block() doc.Block {
	if p == nil {
		return doc.Bars{}
	}
	b := doc.Bars{Caption: p.Caption, Legend: p.Legend}
	for _, r := range p.Rows {
		b.Rows = append(b.Rows, doc.BarRow{Name: r.Name, Value: join(r.Value, r.Change), Track: r.Track()})
	}
	return b
}

// compares tells whether there is a figure of before.
func (w *waterfall) compares() bool {
	return slices.ContainsFunc(w.Rungs, func(r rungBar) bool { return r.Was })
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
		r.Carried, r.Below, r.Mark, r.Low, r.High = length(r.Carried), length(r.Below), length(r.Mark), length(r.Low), length(r.High)
	}
	return shown, true
}

func barKey(shape string) template.HTML {
	return template.HTML(`<svg class="key" viewBox="0 0 34 16" aria-hidden="true">` + shape + `</svg>`)
}

// Track is the bar itself, in shares of the page's width; its row says the same in words.
func (r rungBar) Track() template.HTML {
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
	return template.HTML(c.String())
}
