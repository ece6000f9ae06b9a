package report

import (
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/draw"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// maxBars bounds the flows in a picture; more are a matrix or a table further down.
const maxBars = 8

// newPicture draws what the answer says: the layers of a transfer, the rungs of a
// ladder, or each direction against its ceiling. Nil where the answer is no rate,
// or has too many of them.
func newPicture(d *measure.Document, v *view) *draw.Picture {
	switch {
	case v.Moving != nil:
		return v.Moving.Fall.Picture("What each layer carries: the whole carries what the least of them does.")
	case v.Fleet != nil && v.Fleet.Waterfall != nil:
		return v.Fleet.Waterfall.Picture("What each layer costs, by the best cell of each rung.")
	case v.Silent:
		return nil
	}
	cells := pictured(d, v)
	if len(cells) == 0 || len(cells) > maxBars {
		return nil
	}
	var w draw.Fall
	caption, ways := "What each direction carries; no ceiling is known.", map[string]int{}
	for _, c := range cells {
		_, high := figureSpan(c)
		w.Most, ways[pathName(c)] = max(w.Most, amountOf(c), high), ways[pathName(c)]+1
		if c.Ceiling != nil {
			w.Most, caption = max(w.Most, c.Ceiling.Bps), "What each direction carries, against its ceiling: what the link leaves for payload."
		}
	}
	for _, c := range cells {
		b := draw.Rung{Name: pathName(c), Value: unit.Rate(amountOf(c)), Carried: w.Share(amountOf(c))}
		if ways[b.Name] > 1 {
			caption = strings.Replace(caption, "direction", "flow", 1)
			b.Name = doc.Join(b.Name, what(c), otherAxes(c))
		}
		if c.Ceiling != nil {
			b.Mark, b.Change = w.Share(c.Ceiling.Bps), unit.Percent(c.Ceiling.SharePct)+" of "+unit.Rate(c.Ceiling.Bps)
		}
		low, high := figureSpan(c)
		b.Low, b.High = w.Share(low), w.Share(high)
		w.Rungs = append(w.Rungs, b)
	}
	return w.Picture(caption)
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
func comparedPicture(x *measure.Compared) *draw.Picture {
	var w draw.Fall
	for i := range x.Cells {
		c := &x.Cells[i]
		if c.Beside || c.Figure != x.Cells[0].Figure || c.Before == nil && c.After == nil {
			continue
		}
		for _, s := range []*measure.Sample{c.Before, c.After} {
			b := draw.Rung{Name: doc.Clean(comparedName(x.Cells, c)) + ", before", Value: sampleText(c, s), Was: true}
			if s == c.After {
				b.Name, b.Was = "after", false
				if c.ChangePct != nil {
					b.Change = signedPct(*c.ChangePct)
				}
				b.Change = doc.Join(b.Change, doc.Clean(c.Outcome))
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
		r.Carried, r.Low, r.High = w.Share(r.Carried), w.Share(r.Low), w.Share(r.High)
	}
	return w.Picture("Each flow before and after.")
}

// figureSpan is the 95% interval of a cell's rate, or its range; nothing where neither is known.
func figureSpan(c *measure.Cell) (low, high float64) {
	if c.Goodput == nil || hasCapacity(c) || !hasRange(c.Goodput) {
		return 0, 0
	}
	return interval(c.Goodput)
}
