package library

import (
	"testing"
	"time"
)

func TestReadSpan(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	now := time.Date(2026, 11, 22, 20, 15, 30, 0, zone) // a Sunday
	at := func(s string) time.Time {
		if s == "" {
			return time.Time{}
		}
		x, err := time.ParseInLocation("2006-01-02 15:04:05", s, zone)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, c := range []struct{ word, since, until string }{
		{"today", "2026-11-22 00:00:00", "2026-11-23 00:00:00"},
		{"yesterday", "2026-11-21 00:00:00", "2026-11-22 00:00:00"},
		{"this-week", "2026-11-16 00:00:00", "2026-11-23 00:00:00"},
		{"last-week", "2026-11-09 00:00:00", "2026-11-16 00:00:00"},
		{"last week", "2026-11-09 00:00:00", "2026-11-16 00:00:00"},
		{"this-month", "2026-11-01 00:00:00", "2026-12-01 00:00:00"},
		{"last-month", "2026-10-01 00:00:00", "2026-11-01 00:00:00"},
		{"7d", "2026-11-15 20:15:30", ""},
		{"2w", "2026-11-08 20:15:30", ""},
		{"90m", "2026-11-22 18:45:30", ""},
		{"12h..1h", "2026-11-22 08:15:30", "2026-11-22 19:15:30"},
		{"2026-11-20", "2026-11-20 00:00:00", "2026-11-21 00:00:00"},
		{"2026-11-20..2026-11-21", "2026-11-20 00:00:00", "2026-11-22 00:00:00"},
		{"2026-11-20..", "2026-11-20 00:00:00", ""},
		{"..2026-11-20", "", "2026-11-21 00:00:00"},
		{"2026-11-20T15:04", "2026-11-20 15:04:00", "2026-11-20 15:05:00"},
		{"2026-11-20T15:04..2026-11-20T16:00:00", "2026-11-20 15:04:00", "2026-11-20 16:00:01"},
		{"yesterday..today", "2026-11-21 00:00:00", "2026-11-23 00:00:00"},
		{"..", "", ""},
	} {
		got, err := ReadSpan(c.word, now)
		if err != nil || !got.Since.Equal(at(c.since)) || !got.Until.Equal(at(c.until)) {
			t.Errorf("%s: %v to %v (%v), want %q to %q", c.word, got.Since, got.Until, err, c.since, c.until)
		}
	}
	for _, word := range []string{"", "soon", "2026-13-01", "7", "d", "-3d", "9999999d", "2026-11-21..2026-11-19", "1h..12h", "last-weak", "2026-11-20...2026-11-21"} {
		if got, err := ReadSpan(word, now); err == nil {
			t.Errorf("%q is read as %v", word, got)
		}
	}
}
