package record

import (
	"slices"
	"time"
)

// MaintenanceWindow is a time of announced work. A pair raises no alarm in it, and its summary counts that time separately.
type MaintenanceWindow struct {
	Begin     time.Time `json:"begin"`
	End       time.Time `json:"end"`
	EveryDays int       `json:"every_days,omitempty"` // repeats after so many days at the same local time, in the zone of Begin; 0 is once
	Hosts     []string  `json:"hosts,omitempty"`      // without hosts and segments it is for all pairs
	Segments  []string  `json:"segments,omitempty"`
	Why       string    `json:"why,omitempty"`
}

// Covers reports whether the window is for a pair that crosses the given segments.
func (w MaintenanceWindow) Covers(p Pair, segments []string) bool {
	if len(w.Hosts)+len(w.Segments) == 0 {
		return true
	}
	return slices.Contains(w.Hosts, p.From) || slices.Contains(w.Hosts, p.To) ||
		slices.ContainsFunc(segments, func(s string) bool { return slices.Contains(w.Segments, s) })
}

// At reports whether an instant is in the window, and when that changes next; zero for never.
func (w MaintenanceWindow) At(t time.Time) (in bool, edge time.Time) {
	first, last := 0, 0
	if w.EveryDays > 0 {
		first = max(0, int(t.Sub(w.Begin)/(24*time.Hour))/w.EveryDays-1) // daylight saving makes days of 23 to 25 hours
		last = first + 3
	}
	for n := first; n <= last; n++ {
		begin, end := w.Begin.AddDate(0, 0, n*w.EveryDays), w.End.AddDate(0, 0, n*w.EveryDays)
		if t.Before(begin) {
			return false, begin
		}
		if t.Before(end) {
			return true, end
		}
	}
	return false, time.Time{}
}
