package watch

import (
	"slices"
	"testing"
	"time"

	"thru/internal/plan/planfile"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

// TestChanges: each key of a plan that changes is named, and nothing else is.
func TestChanges(t *testing.T) {
	ba := record.Pair{From: "b", To: "a"}
	paths := []schedule.Path{{Pair: ab, Uses: []string{"a", "b"}}, {Pair: ba, RateBps: 1e10, Uses: []string{"b", "a"}}}
	keys := planfile.Watch{Probes: time.Second, TCP: planfile.Auto, Time: 3 * time.Second, Alarms: []planfile.Sink{{Kind: planfile.SinkExec, Args: []string{"/bin/page", "noc"}}}}
	if got := Changes(paths, paths, keys, keys); len(got) > 0 {
		t.Errorf("the same plan: %q", got)
	}
	others := []schedule.Path{paths[0], {Pair: ba, RateBps: 1e10, Uses: []string{"b", "a", "wan"}}}
	changed := planfile.Watch{
		TCP: 8, Load: 0.3, Time: 5 * time.Second, Budget: 50 << 30, Hours: []planfile.DayHours{{From: 22 * time.Hour, To: 6*time.Hour + 30*time.Minute}},
		Objectives:  []record.Goal{{Objective: "loss <= 1%, 99% of days"}},
		Maintenance: []record.MaintenanceWindow{{Begin: now, End: now.Add(time.Hour), EveryDays: 7, Hosts: []string{"a"}, Segments: []string{"wan"}}},
	}
	want := []string{
		"- path b -> a at 10.0 Gb/s", "- probes each 1 s", "- TCP tests as the budget allows", "- time 3 s", "- budget 0.1% of the link", "- load none", "- alarms to exec /bin/page noc",
		"+ path b -> a at 10.0 Gb/s over wan", "+ probes none", "+ TCP tests 8 a day", "+ time 5 s", "+ budget 50 GiB a day", "+ load 30%", "+ hours 22:00-06:30",
		"+ objective loss <= 1%, 99% of days", "+ maintenance 2026-05-01 12:00 to 2026-05-01 13:00, every 7 days on a, wan",
	}
	if got := Changes(paths, others, keys, changed); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
