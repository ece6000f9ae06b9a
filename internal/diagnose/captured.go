package diagnose

import "thru/internal/measure"

// packets is the traffic of this direction whose packets were captured: the
// flow's own, else that of the experiment that was made for them. Without
// captures it is empty.
func (f *flow) packets() measure.Flow {
	if own := f.flowOf(f.run); len(own.Captures) > 0 {
		return own
	}
	for i := range f.doc.Cells { // also where nothing could be measured: packets tell of what stalls, too
		c := &f.doc.Cells[i]
		if c.Experiment != captured || c.From != f.cell.From || c.To != f.cell.To {
			continue
		}
		if x := f.flowOf(runShown(c)); len(x.Captures) > 0 {
			return x
		}
	}
	return measure.Flow{}
}

// varyCapture captures the packets of the same traffic.
func varyCapture(f *flow, s *measure.Spec) bool {
	s.Capture = 300_000
	return false // no end says yet that it can
}
