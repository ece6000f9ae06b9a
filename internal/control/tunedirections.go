package control

import (
	"cmp"
	"slices"
	"time"

	"thru/internal/cause/knob"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/stat"
)

// direction is the traffic of one direction.
type direction struct {
	step plan.Step // with the kept test options
	cell int       // of the current state, in the document
	pace pace
}

// name returns the name of a direction: "local -> peer".
func (w *direction) name() string { return measure.PairName(w.step.Specs[0].From, w.step.Specs[0].To) }

// directionsOf returns the directions in which a change is judged: the one that it
// is proposed for, else the one that its knobs act on, else each until one
// improves, the slower one first.
func (x *tuning) directionsOf(p *measure.Proposal) []*direction {
	for _, w := range x.directions {
		if s := w.step.Specs[0]; s.From == p.From && s.To == p.To || p.From == "" && actsOn(p, s) {
			return []*direction{w}
		}
	}
	all := slices.Clone(x.directions)
	slices.SortStableFunc(all, x.carriesLess)
	if p.From != "" { // not a direction of this tuning
		return all[:1]
	}
	return all
}

// actsOn reports whether all knobs of a change act on the data of one direction.
func actsOn(p *measure.Proposal, s measure.Spec) bool {
	for _, set := range p.Settings {
		k, _ := knob.Find(set.Knob)
		if !(k.Role == knob.Sender && set.EndPoint == s.From || k.Role == knob.Receiver && set.EndPoint == s.To) {
			return false
		}
	}
	return len(p.Settings) > 0
}

// carriesLess orders directions by their share of the ceiling; by their rates where
// a ceiling is unknown.
func (x *tuning) carriesLess(a, b *direction) int {
	p, q := &x.doc.Cells[a.cell], &x.doc.Cells[b.cell]
	switch {
	case p.Goodput == nil || q.Goodput == nil:
		return cmp.Compare(known(p.Goodput), known(q.Goodput))
	case p.Ceiling != nil && q.Ceiling != nil:
		return cmp.Compare(p.Ceiling.SharePct, q.Ceiling.SharePct)
	}
	return cmp.Compare(p.Goodput.Value, q.Goodput.Value)
}

// known returns 1 where there is a figure, else 0.
func known(f *measure.Figure) int {
	if f == nil {
		return 0
	}
	return 1
}

// ofState returns the cells of a direction in the current state: as measured by
// itself, and as the baseline of each comparison.
func (x *tuning) ofState(w *direction) (all []*measure.Cell) {
	without := measure.Axis{Name: stat.VariantAxis, Value: stat.Before}
	base := &x.doc.Cells[w.cell]
	for i := w.cell; i < len(x.doc.Cells); i++ {
		if c := &x.doc.Cells[i]; c.From == base.From && c.To == base.To && (i == w.cell || slices.Contains(c.Axes, without)) {
			all = append(all, c)
		}
	}
	return all
}

// otherDirection returns the direction that a change was not made for; nil where only one is tuned.
func (x *tuning) otherDirection(w *direction) *direction {
	for _, o := range x.directions {
		if o != w {
			return o
		}
	}
	return nil
}

// pace is how long the runs of one direction take since the current state was
// first measured: on a stalled path runs end late.
type pace struct {
	runs int
	took time.Duration
}
