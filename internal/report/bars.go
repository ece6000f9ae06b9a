package report

import (
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/draw"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/stat"
	"thru/internal/unit"
)

// newPicture draws the answer: the layers of a transfer, the rungs of a ladder, or each direction against its
// ceiling. It returns nil if the answer has no rate, or too many.
func newPicture(d *measure.Document, v *view) *draw.Picture {
	switch {
	case v.Moving != nil:
		return v.Moving.Fall.Picture("What each layer carries. The slowest layer limits the transfer.")
	case v.Fleet != nil && v.Fleet.Waterfall != nil:
		return v.Fleet.Waterfall.Picture("What each layer costs, from the best cell of each rung.")
	case v.Silent:
		return nil
	}
	cells := pictured(d, v)
	if len(cells) == 0 || len(cells) > result.MaxBars {
		return nil
	}
	var w draw.Fall
	caption, directions := "What each direction carries; no ceiling is known.", map[string]int{}
	for _, c := range cells {
		_, high := figureSpan(c)
		w.Most, directions[result.PathName(c)] = max(w.Most, result.AmountOf(c), high), directions[result.PathName(c)]+1
		if c.Ceiling != nil {
			w.Most, caption = max(w.Most, c.Ceiling.Bps), "What each direction carries, and its ceiling: the payload rate that the link allows."
		}
	}
	for _, c := range cells {
		b := draw.Rung{Name: result.PathName(c), Value: unit.Rate(result.AmountOf(c)), Carried: w.Share(result.AmountOf(c))}
		if directions[b.Name] > 1 {
			caption = strings.Replace(caption, "direction", "flow", 1)
			b.Name = doc.Join(b.Name, result.What(c), result.OtherAxes(c))
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

// pictured returns the main cells with a rate; of a ladder the best one of each path.
func pictured(d *measure.Document, v *view) (all []*measure.Cell) {
	for _, l := range v.Ladders {
		if l.Best != nil {
			all = append(all, l.Best.Source)
		}
	}
	for i := range d.Cells {
		c := &d.Cells[i]
		if len(v.Ladders) == 0 && !c.Baseline && !result.IsExperiment(c) && !result.IsGauge(d, c) && !result.Asks(c) && stat.Measured(c) {
			all = append(all, c)
		}
	}
	return all
}

// figureSpan returns the 95% interval of a cell's rate, or its range; 0, 0 if neither is known.
func figureSpan(c *measure.Cell) (low, high float64) {
	if c.Goodput == nil || result.HasCapacity(c) || !result.HasRange(c.Goodput) {
		return 0, 0
	}
	return result.Interval(c.Goodput)
}
