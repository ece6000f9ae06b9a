package diagnose

import (
	"cmp"
	"fmt"
	"slices"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Tried returns the other measured cells of this direction that differ from this one only in what free makes
// equal: "with another number of streams". The cells may belong to a ladder or to experiments.
func (f *Flow) Tried(free func(*measure.Spec)) []*measure.Cell {
	var cells []*measure.Cell
	mine, mineFree := comparable(f.Cell.Spec), comparable(f.Cell.Spec)
	free(&mineFree)
	for i := range f.Doc.Cells {
		c := &f.Doc.Cells[i]
		if c == f.Cell || !passed(c) || c.AtOnce > 1 {
			continue
		}
		theirs, theirsFree := comparable(c.Spec), comparable(c.Spec)
		free(&theirsFree)
		if theirsFree == mineFree && theirs != mine {
			cells = append(cells, c)
		}
	}
	return cells
}

// comparable clears the fields of a Spec that do not change the outcome.
func comparable(s measure.Spec) measure.Spec {
	s.Duration, s.Ramp, s.NoRamp, s.Interval, s.EachStream, s.FarOutput, s.FirstStream, s.BindPort, s.Together, s.Capture = 0, 0, false, 0, false, false, 0, 0, false, 0
	s.IO, s.IOForced = dataPath(s), false
	s.SenderCPU, s.ReceiverCPU = nil, nil
	s.Length = measure.Pair{Send: cmp.Or(s.Length.Send, measure.DefaultLength), Recv: cmp.Or(s.Length.Recv, measure.DefaultLength)}
	return s
}

// dataPath returns the data path of a Spec.
func dataPath(s measure.Spec) string { return cmp.Or(s.IO, measure.IOCopy) }

// WithStreams returns the cells with another number of streams, fewest first.
func (f *Flow) WithStreams() []*measure.Cell {
	cells := f.Tried(func(s *measure.Spec) { s.Streams = 0 })
	slices.SortStableFunc(cells, func(a, b *measure.Cell) int { return cmp.Compare(a.Streams, b.Streams) })
	return cells
}

// WithMost returns the cell with the most streams, if it has more than this one; nil without one.
func (f *Flow) WithMost() *measure.Cell {
	cells := f.WithStreams()
	if n := len(cells); n > 0 && cells[n-1].Streams > f.Cell.Streams {
		return cells[n-1]
	}
	return nil
}

// Experiment returns the measured cell of an experiment of this direction; nil if it was not made or failed: the
// partial result of a failed run is no evidence.
func (f *Flow) Experiment(id string) *measure.Cell {
	for i := range f.Doc.Cells {
		if c := &f.Doc.Cells[i]; f.isOf(c, id) && passed(c) {
			return c
		}
	}
	return nil
}

// isOf reports whether a cell belongs to an experiment of this direction.
func (f *Flow) isOf(c *measure.Cell, id string) bool {
	return c.Experiment == id && c.From == f.Cell.From && c.To == f.Cell.To
}

// failure returns why an experiment of this direction failed; "" if it did not, or was not made.
func (f *Flow) failure(id string) string {
	for i := range f.Doc.Cells {
		if c := &f.Doc.Cells[i]; f.isOf(c, id) && c.Error != nil && f.Experiment(id) == nil {
			return c.Error.Message
		}
	}
	return ""
}

// passed reports whether a cell has a figure and a completed run.
func passed(c *measure.Cell) bool {
	return stat.Measured(c) && (c.Error == nil || slices.ContainsFunc(c.Runs, func(r measure.Run) bool { return r.Error == nil }))
}

// RateOf returns the goodput of a measured cell.
func RateOf(c *measure.Cell) float64 {
	if c == nil || c.Goodput == nil {
		return 0
	}
	return c.Goodput.Value
}

// Against compares another cell with this one, with all runs of either and those that an explanation made in
// turns. Every rule that compares the base with an experiment uses it.
func (f *Flow) Against(c *measure.Cell) stat.Turns {
	if c == nil {
		return stat.Turns{}
	}
	base := figures(f.Cell)
	if x := f.inTurn(c); x != nil {
		base = append(base, figures(x)...)
	}
	t := stat.InTurns(base, figures(c))
	if f.supposed != "" && f.supposed == c.Experiment && t.Times > GainBar {
		t.Sure = true
	}
	return t
}

// inTurn returns the cell with the base runs made in turns with an experiment; nil if there are none.
func (f *Flow) inTurn(c *measure.Cell) *measure.Cell {
	same := comparable(quick(f.Cell.Spec, Experiment{}))
	for i := range f.Doc.Cells {
		x := &f.Doc.Cells[i]
		if x != c && c.Experiment != "" && x.Experiment == c.Experiment && x.From == c.From && x.To == c.To && comparable(x.Spec) == same {
			return x
		}
	}
	return nil
}

// figures returns the goodputs of a cell's runs: of the completed ones, if there are any.
func figures(c *measure.Cell) []float64 {
	if len(c.Runs) < 2 && c.Goodput != nil {
		return []float64{c.Goodput.Value}
	}
	whole := *c
	whole.Runs = slices.DeleteFunc(slices.Clone(c.Runs), func(r measure.Run) bool { return r.Error != nil })
	if len(whole.Runs) == 0 {
		whole.Runs = c.Runs
	}
	return stat.RunFigures(&whole)
}

// GainBar is the least gain at which an experiment is evidence.
const GainBar = stat.TurnsBar

// Gains adds the ratio of an experiment to the base. It makes a cause certain if the scatter of runs cannot
// explain the gain.
func (o *Outcome) Gains(p measure.Proof, t stat.Turns) *Outcome {
	if t.Sure {
		o.Confidence = measure.Certain
	}
	return o.By(InTurns(p, t, GainBar))
}

// InTurns returns a proof of a gain, with the runs that it rests on.
func InTurns(p measure.Proof, t stat.Turns, bar float64) measure.Proof {
	p.Value, p.Note = t.Times, fmt.Sprintf("%s in turns with %s of the base", unit.Plural(t.Trial, "run"), unit.Plural(t.Base, "run"))
	if t.Base == 1 && t.Trial == 1 {
		p.Note = "one run each, which may differ by chance"
	}
	return Above(p, bar)
}
