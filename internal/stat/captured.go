package stat

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// captured reports what capturing cost the figures, and which capture failed.
func (s *summary) captured() {
	var last []measure.Capture
	for i := range s.cell.Runs {
		f := flowOf(s.cell, &s.cell.Runs[i])
		if f == nil {
			continue
		}
		for _, m := range f.Missing {
			if !slices.Contains(s.cell.Missing, m) {
				s.cell.Missing = append(s.cell.Missing, m)
			}
		}
		if len(f.Captures) > 0 {
			last = f.Captures
		}
	}
	var ends []string
	for _, c := range last {
		if c.EndPoint != "" {
			ends = append(ends, costOf(c))
		}
	}
	if len(ends) > 0 {
		s.warn("a capture ran: %s; the figures include its cost", strings.Join(ends, ", "))
	}
}

// costOf words the cost of a capture: CPU time of the thread that took the packets, over their time.
func costOf(c measure.Capture) string {
	text := fmt.Sprintf("%s packets at %s", unit.Count(c.Packets), c.EndPoint)
	if c.CPUNs != nil && c.SpanNs > 0 {
		text += fmt.Sprintf(" for %s of a core", unit.Percent(100*float64(*c.CPUNs)/float64(c.SpanNs)))
	}
	return text
}
