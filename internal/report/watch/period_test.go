package watch

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"thru/internal/doc"
	"thru/internal/doc/markdown"
	"thru/internal/measure"
	"thru/internal/watch/judge"
	"thru/internal/watch/record"
)

// october has the days of two directions in the month in which the clocks of Berlin are set back. a -> b is down from 02:30 CEST to 02:30 CET on the 25th,
// and slower from the 28th on.
func october(t *testing.T) (zone *time.Location, days []record.Summary) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	j := judge.New(judge.Config{Location: zone, Goals: func(record.Pair) []record.Goal {
		return []record.Goal{
			{Objective: "goodput >= 9G, 95% of days", Metric: record.Goodput, Limit: 9e9, AtLeast: true, SharePct: 95, Per: record.PerDay},
			{Objective: "availability >= 99.9%", Metric: record.Availability, Limit: 0.999, AtLeast: true, SharePct: 99.9, Per: record.PerTime},
		}
	}})
	hear := func(events []record.Event) {
		for _, e := range events {
			switch {
			case e.Kind == record.Suspected && e.Alarm.Kind == record.KindChange:
				j.Explained(e.Alarm.ID, judge.Explanation{Findings: []measure.Finding{{Cause: "cpu", Summary: "the CPU of b limits the rate: core 3 is 100% busy"}}})
			case e.Kind == record.DayOver:
				days = append(days, *e.Day)
			}
		}
	}
	noise := rand.New(rand.NewPCG(1, 2))
	down, back := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC), time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC)
	slow := time.Date(2026, 10, 28, 10, 0, 0, 0, zone)
	for at := time.Date(2026, 10, 1, 0, 0, 0, 0, zone); at.Before(time.Date(2026, 11, 1, 0, 5, 0, 0, zone)); at = at.Add(time.Minute) {
		for _, p := range []record.Pair{{From: "a", To: "b"}, {From: "b", To: "a"}} {
			s := record.Sample{Pair: p, Layer: record.Probe, Begin: at, Seconds: 60, State: record.Up, Values: map[record.Metric]float64{
				record.Sent: 60, record.LossRatio: 0, record.RTTMedian: 400e3 + 20e3*noise.NormFloat64(), record.RTT99: 900e3 + 50e3*noise.NormFloat64()}}
			if p.From == "a" && !at.Before(down) && at.Before(back) {
				s.State, s.Reason, s.Values = record.Down, record.NoAnswer, map[record.Metric]float64{record.Sent: 60, record.LossRatio: 1}
			}
			hear(j.Take(s))
			if at.Minute() == 0 && at.Hour()%2 == 0 {
				rate := 9.4e9
				if p.From == "a" && !at.Before(slow) {
					rate = 8.2e9
				}
				hear(j.Take(record.Sample{Pair: p, Layer: record.TCP, Begin: at, Seconds: 3, State: record.Up, Values: map[record.Metric]float64{record.Goodput: rate * (1 + 0.01*noise.NormFloat64())}}))
			}
			if p.From == "a" && at.Equal(slow.Add(10*time.Hour)) {
				hear(j.Changed(record.Change{Pair: p, Metric: record.Goodput, Since: slow, Earliest: slow, Latest: slow, Found: at, Before: 9.4e9, After: 8.2e9, EffectPct: -12.8, LowPct: -13.5, HighPct: -12, Direction: record.Worse}))
			}
		}
		hear(j.Tick(at.Add(time.Minute)))
	}
	return zone, days
}

func TestPeriod(t *testing.T) {
	zone, days := october(t)
	p := record.PeriodOf(time.Date(2026, 10, 1, 0, 0, 0, 0, zone), time.Date(2026, 11, 1, 0, 0, 0, 0, zone), days)
	if len(p.Pairs) != 2 || len(p.Pairs[0].Days) != 31 {
		t.Fatalf("%d pairs, %d days", len(p.Pairs), len(days))
	}
	x := p.Pairs[0]
	if all := x.States.All(); all != 745*time.Hour { // 31 days and an hour
		t.Errorf("%v are accounted", all)
	}
	if d := x.States.In(record.Down); d != time.Hour || len(x.Outages) != 1 {
		t.Errorf("down for %v: %+v", d, x.Outages)
	}
	if want := 1 - 1.0/745; x.Availability == nil || *x.Availability != want || *p.Pairs[1].Availability != 1 {
		t.Errorf("availability %v, want %v", *x.Availability, want)
	}
	if n := missedOf(x.Goals); n != 2 || missedOf(p.Pairs[1].Goals) != 0 { // 4 of 31 days, 1 of 745 hours
		t.Errorf("%+v", x.Goals)
	}
	if i := slices.IndexFunc(x.Alarms, func(a record.Alarm) bool { return a.Kind == record.KindChange }); i < 0 || len(x.Alarms[i].Findings) != 1 {
		t.Errorf("%+v", x.Alarms)
	}
	m := new(markdown.Printer)
	m.Report(Period(p))
	var out strings.Builder
	if err := m.Flush(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2026-10-25 02:30:00.000 CEST", "2026-10-25 02:30:00.000 CET", "2026-10-25 (25 h)", "99.866%", "core 3 is 100% busy", "since 2026-10-28 10:00", "CEST and CET", "27 of 31 days", "missed", "down, misses availability >= 99.9% since",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	empty := Period(record.PeriodOf(p.Begin, p.End, nil))
	if empty.Tone != doc.ToneGood {
		t.Errorf("%+v", empty)
	}
}
