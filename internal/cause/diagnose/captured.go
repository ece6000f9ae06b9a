package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
)

// Shown returns the run of a cell that its diagnosis uses; an empty one if there is none.
func Shown(c *measure.Cell) *measure.Run { return RunShown(c) }

// packets returns the captured traffic of this direction: the flow's own, or else that of the capture experiment.
// It is empty without captures.
func (f *Flow) packets() measure.Flow {
	if own := f.FlowOf(f.Run); len(own.Captures) > 0 {
		return own
	}
	for i := range f.Doc.Cells { // also if nothing could be measured: packets show stalls, too
		c := &f.Doc.Cells[i]
		if c.Experiment != Captured || c.From != f.Cell.From || c.To != f.Cell.To {
			continue
		}
		if x := f.FlowOf(RunShown(c)); len(x.Captures) > 0 {
			return x
		}
	}
	return measure.Flow{}
}

// varyCapture captures the packets of the same traffic, if an end can capture.
func varyCapture(f *Flow, s *measure.Spec) bool {
	s.Capture = measure.DefaultCapture
	return !f.IsUDP() && len(f.packets().Captures) == 0 && slices.ContainsFunc(f.Doc.EndPoints, func(e measure.EndPoint) bool { return e.Captures })
}

// Wanted reports, once for an explanation, that a capture would have shown more, and why there is none.
func Wanted(d *measure.Document, cat *Catalogue) []measure.NotChecked {
	const fact = "capture"
	rest := slices.DeleteFunc(slices.Clone(d.Missing), func(m measure.NotChecked) bool { return m.Fact == fact })
	var causes, why []string
	for _, e := range d.EndPoints {
		if e.Captures {
			return rest
		}
		if e.NoCapture != "" {
			why = append(why, e.NoCapture)
		}
	}
	if d.Command != "explain" || len(why) == 0 {
		return rest
	}
	for i := range d.Cells {
		c := &d.Cells[i]
		if Settled(c) {
			continue
		}
		f := NewFlow(cat, d, c)
		if f == nil {
			continue
		}
		for _, cause := range decides(cat, Captured, f.open()) {
			if !slices.Contains(causes, cause) {
				causes = append(causes, cause)
			}
		}
	}
	if len(causes) == 0 {
		return rest
	}
	const most = 4
	named := strings.Join(causes[:min(len(causes), most)], ", ")
	if n := len(causes) - most; n > 0 {
		named += fmt.Sprintf(" and %d more", n)
	}
	return append(rest, measure.NotChecked{Fact: fact, Why: fmt.Sprintf("it is needed to judge %s; %s", named, strings.Join(why, "; "))})
}
