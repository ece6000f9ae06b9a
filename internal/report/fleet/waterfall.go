package fleet

import (
	"math"
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/draw"
	"thru/internal/measure"
	"thru/internal/report/ladder"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// waterfall holds the rungs of a ladder, the lowest first, with the cost of each layer.
type waterfall struct {
	draw.Fall
	Unit  doc.Scale
	Notes []string
}

// newWaterfall returns the rungs of a document; nil if it has none.
func newWaterfall(d *measure.Document) *waterfall {
	if d.Ladder == nil || len(d.Ladder.Rungs) == 0 {
		return nil
	}
	w := &waterfall{Notes: doc.CleanAll(d.Ladder.Notes)}
	rungs := d.Ladder.Rungs[:min(len(d.Ladder.Rungs), result.MaxLines)]
	for i := range rungs {
		if b := rungs[i].Best; b != nil {
			w.Most = max(w.Most, b.Value)
		}
	}
	w.Unit = doc.ScaleFor(w.Most)
	below := 0.0
	for i := range rungs {
		w.Rungs = append(w.Rungs, w.bar(&rungs[i], below))
		if b := rungs[i].Best; b != nil {
			below = b.Value
		}
	}
	return w
}

func (w *waterfall) bar(r *measure.Rung, below float64) draw.Rung {
	b := draw.Rung{Name: doc.Clean(r.Name), Path: pathOf(r.From, r.To), With: doc.Clean(r.Label), Limited: r.Limited, Below: w.Share(below)}
	if b.Value = "not measured"; r.Best != nil {
		b.Value, b.Carried = RungRate(r), w.Share(r.Best.Value)
	}
	if r.Ceiling != nil {
		b.Mark = w.Share(r.Ceiling.Bps)
		if r.Best != nil {
			b.Ceiling = unit.Percent(100 * r.Best.Value / r.Ceiling.Bps)
		}
	}
	if r.LossPct != nil {
		b.Change = unit.Change(-*r.LossPct)
		if r.LostBps != nil {
			b.Change += " (" + unit.Rate(math.Abs(*r.LostBps)) + ")"
		}
		if why := strings.TrimPrefix(chanceText(r), ", which "); why != "" {
			b.Said = append(b.Said, "the difference from the rung below "+why)
		}
	}
	if r.Error != "" {
		b.Said = append(b.Said, "failed: "+doc.Reason(r.Error))
	}
	switch {
	case r.Limited:
		b.Said = append(b.Said, doc.Colon("generator-limited", doc.Clean(r.Why)))
	case r.Why != "":
		b.Said = append(b.Said, doc.Clean(r.Why))
	}
	if r.Verdict != nil {
		b.Verdict = result.VerdictWord(r.Verdict)
		if r.Verdict.Reason != "" {
			b.Said = append(b.Said, b.Verdict+": "+doc.Clean(r.Verdict.Reason))
		}
		if r.Verdict.Pass && r.Verdict.Share > tooMuch {
			b.Said = append(b.Said, overWords)
		}
	}
	return b
}

// pathOf returns the path of a rung: "a -> b", or the one host.
func pathOf(from, to string) string {
	if from == to {
		return doc.Clean(from)
	}
	return doc.Clean(from + " -> " + to)
}

// RungRate returns what a rung carried, as a part of its link rate if known.
func RungRate(r *measure.Rung) string {
	if r.Ceiling == nil || r.Ceiling.LinkBps <= 0 {
		return unit.Rate(r.Best.Value)
	}
	in := doc.ScaleFor(float64(r.Ceiling.LinkBps))
	return rateOf(r.Best.Value, float64(r.Ceiling.LinkBps), in)
}

// rateOf returns "9.41 of 10 Gb/s", with two units if one does not fit both.
func rateOf(bps, link float64, in doc.Scale) string {
	if bps < in.Div/10 {
		return unit.Rate(bps) + " of " + doc.Plain(link/in.Div) + " " + in.Name
	}
	return in.Number(bps) + " of " + doc.Plain(link/in.Div) + " " + in.Name
}

// Table returns the rungs with their bars. On a terminal the matrix of each rung shows its best setting.
func (w *waterfall) Table() doc.Table {
	bars := make([]doc.Bar, 0, len(w.Rungs))
	t := doc.Table{Tone: failedTone}
	for _, r := range w.Rungs {
		bars = append(bars, doc.Bar{Share: r.Carried, Mark: r.Mark})
		t.Rows = append(t.Rows, []string{r.Name, "-", r.Value, doc.OrDash(r.Change), doc.OrDash(r.Ceiling), doc.OrDash(r.Verdict), doc.OrDash(r.With)})
	}
	t.Columns = []doc.Column{{Name: "rung", Least: 14}, {Bars: bars}, {Name: "carries", Right: true}, {Name: "against the rung below", Right: true},
		{Name: "of ceiling", Right: true}, {}, {Name: "best with", Wide: true}}
	return t.WithoutEmpty()
}

// Blocks returns the rungs, and the notes about their figures.
func (w *waterfall) Blocks() []doc.Block {
	return []doc.Block{doc.Section{Title: "What each layer costs", Body: []doc.Block{w.Table(), doc.List{Lines: w.Lines(), Notes: true}}}}
}

// Lines returns the notes about the figures.
func (w *waterfall) Lines() (all []string) {
	for _, r := range w.Rungs {
		for _, s := range r.Said {
			all = append(all, r.Name+": "+s)
		}
	}
	return append(all, append(w.Notes, "compare only how published figures change with streams and window: "+ladder.Caution)...)
}

// chanceText words that the loss of a rung against the one below may be chance: its interval contains 0.
// Older results have no interval.
func chanceText(r *measure.Rung) string {
	if r.LossLowPct == nil || r.LossHighPct == nil || *r.LossLowPct > 0 || *r.LossHighPct < 0 {
		return ""
	}
	return ", which may be chance"
}
