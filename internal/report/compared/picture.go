package compared

import (
	"thru/internal/doc"
	"thru/internal/doc/draw"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// picture draws the flows of a comparison before and after, those with the first flow's kind of figure; nil
// if there are too many.
func picture(x *measure.Compared) *draw.Picture {
	var w draw.Fall
	for i := range x.Cells {
		c := &x.Cells[i]
		if c.Baseline || c.Figure != x.Cells[0].Figure || c.Before == nil && c.After == nil {
			continue
		}
		for _, s := range []*measure.Sample{c.Before, c.After} {
			b := draw.Rung{Name: doc.Clean(comparedName(x.Cells, c)) + ", before", Value: sampleText(c, s), Was: true}
			if s == c.After {
				b.Name, b.Was = "after", false
				b.Change = doc.Join(doc.Known("%s", c.ChangePct, unit.Change), doc.Clean(c.Outcome))
			}
			if b.Absent = s == nil; !b.Absent {
				b.Carried, b.Low, b.High = s.Value, s.Low, s.High
				w.Most = max(w.Most, s.Value, s.High)
			}
			w.Rungs = append(w.Rungs, b)
		}
	}
	if len(w.Rungs) == 0 || len(w.Rungs) > result.MaxBars {
		return nil
	}
	for i := range w.Rungs {
		r := &w.Rungs[i]
		r.Carried, r.Low, r.High = w.Share(r.Carried), w.Share(r.Low), w.Share(r.High)
	}
	return w.Picture("Each flow before and after.")
}
