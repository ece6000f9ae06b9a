package watch

import (
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

var (
	now  = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	ab   = record.Pair{From: "a", To: "b"}
	drop = record.Change{Pair: ab, Metric: record.Goodput, Before: 940e6, After: 820e6, EffectPct: -12.8, Direction: record.Worse}
)

func TestLine(t *testing.T) {
	alarm := record.Alarm{Kind: record.KindChange, Pairs: []record.Pair{ab}, Since: now.Add(-time.Hour), Changes: []record.Change{drop},
		Findings: []measure.Finding{{Summary: "packets are lost"}}, Facts: []record.FactChange{{Host: "b", Fact: "interfaces[eth0].mtu_bytes", Name: "MTU of eth0", Before: "9000", After: "1500", Since: now.Add(-30 * time.Minute)}}}
	unsure := record.Alarm{Kind: record.KindChange, Pairs: []record.Pair{ab}, Since: now, Changes: []record.Change{drop}, Findings: []measure.Finding{{Summary: "packets are lost", Confidence: measure.Possible}}}
	waits := record.Alarm{Kind: record.KindChange, Pairs: []record.Pair{ab}, Since: now, Changes: []record.Change{drop}, Deferred: "b receives 500 Mb/s of other traffic"}
	host := record.Alarm{Kind: record.KindOutage, Host: "b", Pairs: []record.Pair{ab, {From: "c", To: "b"}}, Since: now.Add(-24 * time.Hour)}
	goal := record.Alarm{Kind: record.KindObjective, Segment: "wan", Pairs: []record.Pair{ab}, Since: now, Flapping: true, Goals: []record.Goal{{Objective: "goodput >= 9G, 99% of days"}}}
	for want, e := range map[string]record.Event{
		"a -> b is up":                         {Kind: record.StateChanged, Pair: &ab, State: record.Up},
		"a -> b is down: no packet comes back": {Kind: record.StateChanged, Pair: &ab, State: record.Down, Reason: record.NoAnswer, Before: record.Up},
		"a -> b carries packets again, after 36 s (11:59:24 to 12:00:00)":                                                                     {Kind: record.OutageEnded, Outage: &record.Outage{Pair: ab, Begin: now.Add(-36 * time.Second), End: now}},
		"ALARM a -> b: goodput -12.8% (940 Mb/s -> 820 Mb/s) since 11:00:00; packets are lost; MTU of eth0 at b: 9000 -> 1500, seen 11:30:00": {Kind: record.AlarmRaised, Alarm: &alarm},
		"ALARM a -> b: goodput -12.8% (940 Mb/s -> 820 Mb/s) since 12:00:00; possible cause: packets are lost":                                {Kind: record.AlarmRaised, Alarm: &unsure},
		"ALARM a -> b: goodput -12.8% (940 Mb/s -> 820 Mb/s) since 12:00:00; not explained yet: b receives 500 Mb/s of other traffic":         {Kind: record.AlarmRaised, Alarm: &waits},
		"over: b (2 pairs): down since 2026-04-30 12:00":                                                                                      {Kind: record.AlarmOver, Alarm: &host},
		"ALARM wan (1 pair): misses goodput >= 9G, 99% of days, flapping since 12:00:00":                                                      {Kind: record.AlarmUpdated, Alarm: &goal},
		"": {Kind: record.Suspected, Alarm: &alarm},
	} {
		e.At = now
		if got := Line(e, time.UTC); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// TestWords: each state and reason has words, and each metric a name and a unit.
func TestWords(t *testing.T) {
	for _, s := range []record.State{record.Up, record.Degraded, record.Down, record.Refused, record.Deferred, record.NotMeasured} {
		if State(s, "") == "" {
			t.Errorf("%s has no words", s)
		}
	}
	for m, want := range map[record.Metric]string{
		record.Goodput: "820 Mb/s", record.RTTMedian: "820 ms", record.MTU: "820 000 000",
	} {
		if got := Value(m, 820e6); got != want || Metric(m) == string(m) {
			t.Errorf("%s: %s, want %s; its name is %s", m, got, want, Metric(m))
		}
	}
	if got := Value(record.LossRatio, 0.01); got != "1%" {
		t.Errorf("a loss of 0.01 is %s", got)
	}
}

// TestBegun: the first lines fit a terminal, and name what is measured and its cost.
func TestBegun(t *testing.T) {
	w := schedule.Wish{ProbeEvery: time.Second, TCPPerDay: schedule.Auto, TCPTime: 4 * time.Second, Paths: []schedule.Path{{Pair: ab, RateBps: 1e10, Uses: []string{"a", "b"}}}}
	for want, change := range map[string]func(){
		"a -> b: a probe each 1 s, 15 TCP tests a day\n69.9 GiB of at most 101 GiB a day at a": func() {},
		"a -> b: a probe each 1 s\n18.5 MiB a day at a; TCP tests need --link-rate":            func() { w.TCPPerDay, w.Paths[0].RateBps = 0, 0 },
		"a -> local: a probe each 1 s, 15 TCP tests a day\nnobody dials this machine, so that no probes measure a -> local: its first state comes with its first TCP test\n" +
			"69.8 GiB of at most 101 GiB a day at a": func() { w.Paths[0].To = "local" },
		"a -> local: a probe each 1 s\nnobody dials this machine, so that nothing measures a -> local without TCP tests\n0 B a day at a; TCP tests need --link-rate": func() {
			w.TCPPerDay, w.Paths[0] = 0, schedule.Path{Pair: record.Pair{From: "a", To: "local"}, Uses: []string{"a"}}
		},
	} {
		saved, path := w, w.Paths[0]
		change()
		tasks, needs, err := schedule.Fit(w)
		if err != nil {
			t.Fatal(err)
		}
		if got := Begun(w, tasks, needs); got != want || strings.IndexByte(got, '\n') > 80 {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		w = saved
		w.Paths[0] = path
	}
}
