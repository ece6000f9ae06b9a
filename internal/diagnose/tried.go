package diagnose

import (
	"cmp"
	"slices"

	"thru/internal/measure"
	"thru/internal/stat"
)

// tried are the other measured cells of this direction that differ from this
// one in what free makes equal, and in nothing else that matters: "with
// another number of streams". The cells may be of a ladder, or experiments.
func (f *flow) tried(free func(*measure.Spec)) []*measure.Cell {
	var cells []*measure.Cell
	mine, mineFree := comparable(f.cell.Spec), comparable(f.cell.Spec)
	free(&mineFree)
	for i := range f.doc.Cells {
		c := &f.doc.Cells[i]
		if c == f.cell || !stat.Measured(c) || c.AtOnce > 1 {
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

// comparable leaves out of a Spec what does not change the outcome.
func comparable(s measure.Spec) measure.Spec {
	s.Duration, s.Ramp, s.NoRamp, s.Interval, s.EachStream, s.FarOutput, s.FirstStream, s.BindPort, s.Together, s.Capture = 0, 0, false, 0, false, false, 0, 0, false, 0
	s.IO, s.IOForced = dataPath(s), false
	s.SenderCPU, s.ReceiverCPU = nil, nil
	s.Length = measure.Pair{Send: cmp.Or(s.Length.Send, measure.DefaultLength), Recv: cmp.Or(s.Length.Recv, measure.DefaultLength)}
	return s
}

// dataPath that a Spec stands for.
func dataPath(s measure.Spec) string { return cmp.Or(s.IO, measure.IOCopy) }

// withStreams are the cells with another number of streams, fewest first.
func (f *flow) withStreams() []*measure.Cell {
	cells := f.tried(func(s *measure.Spec) { s.Streams = 0 })
	slices.SortStableFunc(cells, func(a, b *measure.Cell) int { return cmp.Compare(a.Streams, b.Streams) })
	return cells
}

// withMost is the cell with the most streams, if that are more than these; nil without one.
func (f *flow) withMost() *measure.Cell {
	cells := f.withStreams()
	if n := len(cells); n > 0 && cells[n-1].Streams > f.cell.Streams {
		return cells[n-1]
	}
	return nil
}

// experiment is the measured cell of an experiment of this direction; nil
// where it was not made.
func (f *flow) experiment(id string) *measure.Cell {
	for i := range f.doc.Cells {
		if c := &f.doc.Cells[i]; c.Experiment == id && c.From == f.cell.From && c.To == f.cell.To && stat.Measured(c) {
			return c
		}
	}
	return nil
}

// rateOf is the goodput of a measured cell.
func rateOf(c *measure.Cell) float64 {
	if c == nil || c.Goodput == nil {
		return 0
	}
	return c.Goodput.Value
}

// against is the rate of another cell over this one's; 0 where either is not known.
func (f *flow) against(c *measure.Cell) float64 {
	mine, ok := f.goodput()
	if !ok || mine <= 0 {
		return 0
	}
	if times := rateOf(c) / mine; times < mostTimes {
		return times
	}
	return 0
}

// mostTimes is a multiple that no two measured rates are apart.
const mostTimes = 1e6
