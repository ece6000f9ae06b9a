package result

import (
	"slices"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// CapturedFlow returns the flow of a cell that has captures: of the run shown, or else of another.
func CapturedFlow(c *measure.Cell) *measure.Flow {
	runs := []*measure.Run{ShownRun(c)}
	for i := range c.Runs {
		runs = append(runs, &c.Runs[i])
	}
	for _, r := range runs {
		for i := 0; r != nil && i < len(r.Flows); i++ {
			if len(r.Flows[i].Captures) > 0 {
				return &r.Flows[i]
			}
		}
	}
	return nil
}

// IsDisk reports whether a document is of `thru disk` and has results.
func IsDisk(d *measure.Document) bool { return len(d.Disks) > 0 }

// OfFile reports whether a cell was read from capture files only.
func OfFile(c *measure.Cell) bool {
	f := CapturedFlow(c)
	return f != nil && f.Captures[0].File != "" && f.Captures[0].EndPoint == ""
}

// OfFiles reports whether a document was made from capture files.
func OfFiles(d *measure.Document) bool {
	return slices.ContainsFunc(d.Cells, func(c measure.Cell) bool { return OfFile(&c) })
}

// IsSilent reports whether a document of capture files has no figure.
func IsSilent(d *measure.Document) bool {
	return OfFiles(d) && !slices.ContainsFunc(d.Cells, func(c measure.Cell) bool { return stat.Measured(&c) || IsLimited(&c) })
}

// IsPlanned reports whether tables, not cells, represent a document.
func IsPlanned(d *measure.Document) bool {
	return len(d.Groups) > 0 || d.Ladder != nil || len(d.Targets) > 0 || len(d.Comparisons) > 0
}

// MainCount counts the cells that are results of their own.
func MainCount(d *measure.Document) int {
	return unit.CountFunc(d.Cells, func(c measure.Cell) bool { return !c.Baseline && !IsExperiment(&c) && !IsGauge(d, &c) })
}

// IsCheck reports whether a document judges hosts and path, and measures nothing.
func IsCheck(d *measure.Document) bool { return d.Command == "check" && len(d.Gates) > 0 }

// IsTransfer reports whether a document is of `thru transfer`.
func IsTransfer(d *measure.Document) bool { return d.Transfer != nil }

// IsTuning reports whether a document is of `thru tune`.
func IsTuning(d *measure.Document) bool { return d.Tuning != nil }

// LastState returns the document with the cells of a tuning's final state as its results. It omits the runs
// that were compared before.
func LastState(d *measure.Document) *measure.Document {
	if !IsTuning(d) {
		return d
	}
	shown := *d
	shown.Cells, shown.Comparisons, shown.Steps = nil, nil, nil
	take := func(c measure.Cell) {
		c.Experiment, c.Axes = "", nil
		shown.Cells = append(shown.Cells, c)
	}
	if n := len(d.Tuning.Journey); n > 0 {
		for _, i := range d.Tuning.Journey[n-1].Cells {
			if i >= 0 && i < len(d.Cells) {
				take(d.Cells[i])
			}
		}
	}
	if len(shown.Cells) == 0 {
		for i := range d.Cells {
			if !IsExperiment(&d.Cells[i]) {
				take(d.Cells[i])
			}
		}
	}
	return &shown
}
