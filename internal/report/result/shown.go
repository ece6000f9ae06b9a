package result

import (
	"thru/internal/doc"
	"thru/internal/measure"
)

// Cell is one flow with its figures as lines of name and value.
type Cell struct {
	Name     string // "local -> peer"
	What     string // "TCP, 4 streams, default window"
	Baseline bool
	Gauge    bool // latency of bulk data: shown with the figures of that data
	Tried    bool // an experiment of an explanation
	Rows     []doc.Row
	Source   *measure.Cell
}

// Experiment returns the name of the experiment that a cell was measured for, if any.
func (c Cell) Experiment() string {
	if !c.Tried {
		return ""
	}
	return doc.Clean(c.Source.Experiment)
}

// Main reports whether a cell is a result of its own.
func (c Cell) Main() bool { return !c.Baseline && !c.Gauge && !c.Tried }

// NewCell returns a flow ready to print.
func NewCell(d *measure.Document, c *measure.Cell) Cell {
	return Cell{Name: PathName(c), What: doc.Join(What(c), OtherAxes(c)), Baseline: c.Baseline, Gauge: IsGauge(d, c), Tried: IsExperiment(c), Rows: rows(c), Source: c}
}
