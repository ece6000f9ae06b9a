package cli

import (
	"path/filepath"
	"testing"
	"time"

	"thru/internal/store"
	"thru/internal/watch/record"
)

// TestWatchedDays: a report has the days that began in its time, of the pairs of the named end points, and none of others.
func TestWatchedDays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.db")
	s, err := store.Open(file, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	midnight := time.Date(2026, 10, 31, 0, 0, 0, 0, time.Local)
	for _, p := range []record.Pair{{From: "a", To: "b"}, {From: "c", To: "a"}} {
		for day := range 3 {
			begin := midnight.AddDate(0, 0, day-1)
			if err := s.PutDay(t.Context(), record.Summary{Pair: p, Begin: begin, End: begin.AddDate(0, 0, 1)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		when  string
		names []string
		pairs int
		days  int // of each pair
	}{{"2026-10", nil, 2, 2}, {"2026-11-01", nil, 2, 1}, {"2026-10", []string{"b"}, 1, 2}, {"2026-10-30..", []string{"a"}, 2, 3}, {"2026-12", nil, 0, 0}, {"2026-10", []string{"x"}, 0, 0}} {
		cmd := reportCmd{Watch: c.when, Results: c.names}
		cmd.Store = file
		p, err := cmd.days(t.Context(), &env{}, midnight.AddDate(0, 1, 0))
		if len(p.Pairs) != c.pairs || (err != nil) != (c.pairs == 0) {
			t.Fatalf("%s %v: %d pairs, %v", c.when, c.names, len(p.Pairs), err)
		}
		for _, x := range p.Pairs {
			if len(x.Days) != c.days {
				t.Errorf("%s %v: %d days", c.when, c.names, len(x.Days))
			}
		}
	}
}
