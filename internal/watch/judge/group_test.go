package judge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thru/internal/watch/judge"
	"thru/internal/watch/record"
)

// hosts returns so many names, h00 and up.
func hosts(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("h%02d", i))
	}
	return names
}

// mesh returns all pairs of hosts.
func mesh(names []string) (pairs []record.Pair) {
	for _, from := range names {
		for _, to := range names {
			if from != to {
				pairs = append(pairs, record.Pair{From: from, To: to})
			}
		}
	}
	return pairs
}

// fleet lets minutes go by for all pairs; bad ones are down. Pairs end their minutes at different seconds.
func (w *world) fleet(pairs []record.Pair, minutes int, bad func(record.Pair) bool) {
	for range minutes {
		for i, p := range pairs {
			s := w.sample(p)
			if bad(p) {
				s.State = record.Down
			}
			w.keep(w.judge.Take(s))
			if i%50 == 49 {
				w.keep(w.judge.Tick(w.now.Add(time.Minute)))
			}
		}
		w.now = w.now.Add(time.Minute)
		w.keep(w.judge.Tick(w.now))
	}
}

func healthy(record.Pair) bool { return false }

// TestGroups checks that an alarm names what its pairs share, and nothing else.
func TestGroups(t *testing.T) {
	twenty := mesh(hosts(20))
	var star []record.Pair
	for _, spoke := range hosts(20) {
		star = append(star, record.Pair{From: "hub", To: spoke}, record.Pair{From: spoke, To: "hub"})
	}
	through := func(names ...string) func(record.Pair) bool {
		return func(p record.Pair) bool { return slices.Contains(names, p.From) || slices.Contains(names, p.To) }
	}
	west := func(host string) bool { return host < "h10" }
	between := func(p record.Pair) bool { return west(p.From) != west(p.To) }
	wan := judge.Config{Segments: func(p record.Pair) []string {
		if between(p) {
			return []string{"wan"}
		}
		return nil
	}}
	ring := judge.Config{Segments: func(p record.Pair) []string {
		if p.From == "h03" || p.From == "h04" && p.To < "h02" {
			return []string{"ring"}
		}
		return nil
	}}
	only := func(pairs ...string) func(record.Pair) bool {
		return func(p record.Pair) bool { return slices.Contains(pairs, p.From+p.To) }
	}
	for _, c := range []struct {
		name   string
		config judge.Config
		pairs  []record.Pair
		bad    func(record.Pair) bool
		want   []string
	}{
		{"a host of a mesh", judge.Config{}, twenty, through("h03"), []string{"of h03 38 pairs"}},
		{"the hub of a star", judge.Config{}, star, through("hub"), []string{"of hub 40 pairs"}},
		{"a spoke of a star", judge.Config{}, star, through("h03"), []string{"2 pairs"}},
		{"two hosts", judge.Config{}, twenty, through("h03", "h07"), []string{"of h03 38 pairs", "of h07 36 pairs"}},
		{"what a host sends", judge.Config{}, twenty, func(p record.Pair) bool { return p.From == "h03" }, []string{"of h03 sender 19 pairs"}},
		{"what a host receives", judge.Config{}, twenty, func(p record.Pair) bool { return p.To == "h03" }, []string{"of h03 receiver 19 pairs"}},
		{"a segment", wan, twenty, between, []string{"of wan 200 pairs"}},
		{"what a host sends, on a segment of others too", ring, mesh(hosts(5)), func(p record.Pair) bool { return p.From == "h03" }, []string{"of h03 sender 4 pairs"}},
		{"a segment that is not declared", judge.Config{}, twenty, between, []string{"200 pairs"}},
		{"two pairs of a host of twenty", judge.Config{}, twenty, only("h03h04", "h03h05"), []string{"1 pairs", "1 pairs"}},
		{"both directions of a pair", judge.Config{}, twenty, only("h03h04", "h04h03"), []string{"2 pairs"}},
		{"two hosts alone", judge.Config{}, mesh([]string{"a", "b"}), through("a"), []string{"2 pairs"}},
		{"a host and a pair", judge.Config{}, twenty, func(p record.Pair) bool { return through("h03")(p) || only("h08h09")(p) }, []string{"of h03 38 pairs", "1 pairs"}},
		{"a host with a pair that still works", judge.Config{}, twenty, func(p record.Pair) bool { return through("h03")(p) && !only("h03h09")(p) }, []string{"of h03 37 pairs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.config)
			w.fleet(c.pairs, 2, healthy)
			w.fleet(c.pairs, 10, c.bad)
			var raised []string
			for _, e := range w.events {
				if e.Kind == record.AlarmRaised {
					_, what, _ := strings.Cut(line(e), "outage ")
					raised = append(raised, what)
				}
			}
			slices.Sort(raised)
			slices.Sort(c.want)
			if diff := cmp.Diff(c.want, raised); diff != "" {
				t.Errorf("alarms (-want +got):\n%s", diff)
			}
			w.said()
			w.fleet(c.pairs, 5, healthy)
			got := slices.DeleteFunc(w.said(), func(s string) bool { return !strings.Contains(s, "alarm-") })
			if len(got) != len(c.want) || slices.ContainsFunc(got, func(s string) bool { return !strings.Contains(s, "alarm-over") }) {
				t.Errorf("over: %q, want %d", got, len(c.want))
			}
		})
	}
}

// TestGroupGrows checks that pairs that fail later join the alarm of their host, and that the first sign of it becomes it.
func TestGroupGrows(t *testing.T) {
	pairs := mesh(hosts(6))
	w := newWorld(t, judge.Config{})
	w.fleet(pairs, 2, healthy)
	w.fleet(pairs, 4, func(p record.Pair) bool { return p.From == "h03" && p.To == "h04" })
	w.fleet(pairs, 4, func(p record.Pair) bool { return p.From == "h03" || p.To == "h03" && p.From < "h02" })
	w.fleet(pairs, 4, func(p record.Pair) bool { return p.From == "h03" || p.To == "h03" })
	alarms := slices.DeleteFunc(w.said(), func(s string) bool { return !strings.Contains(s, "pairs") })
	want := []string{"5m0s suspected outage 1 pairs", "5m0s alarm-raised outage 1 pairs", "9m0s alarm-updated outage of h03 7 pairs", "11m0s alarm-updated outage of h03 10 pairs"}
	if diff := cmp.Diff(want, alarms); diff != "" {
		t.Errorf("alarms (-want +got):\n%s", diff)
	}
	w.fleet(pairs, 5, healthy)
	var labels []map[string]string // others know the alarm by them
	for _, e := range w.events {
		if e.Kind == record.AlarmRaised || e.Kind == record.AlarmOver {
			labels = append(labels, e.Alarm.Labels)
		}
	}
	first := map[string]string{"from": "h03", "to": "h04"}
	if diff := cmp.Diff([]map[string]string{first, first}, labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// TestLayersOfGroups checks that pairs that a layer does not measure do not speak for a host: two of its three TCP pairs are most of them,
// though all of its probes arrive.
func TestLayersOfGroups(t *testing.T) {
	pairs := mesh(hosts(8))
	w := newWorld(t, judge.Config{Wait: time.Second})
	w.fleet(pairs, 2, healthy)
	tcp := func(to string) record.Sample {
		return record.Sample{Pair: record.Pair{From: "h00", To: to}, Layer: record.TCP, Begin: w.now, Seconds: 5, State: record.Up,
			Values: map[record.Metric]float64{record.Goodput: 9e9}}
	}
	for _, to := range []string{"h01", "h02", "h03"} {
		w.keep(w.judge.Take(tcp(to)))
	}
	for _, to := range []string{"h01", "h02"} {
		w.keep(w.judge.Changed(record.Change{Pair: record.Pair{From: "h00", To: to}, Metric: record.Goodput, Since: w.now, Found: w.now,
			Before: 9e9, After: 5e9, Direction: record.Worse}))
	}
	w.fleet(pairs, 4, healthy)
	if last := w.lines[len(w.lines)-1]; last != "6m0s alarm-raised change of h00 2 pairs" {
		t.Errorf("events: %q", w.lines)
	}
}

// TestKindsOfAPair checks that what follows from an outage is no alarm of its own.
func TestKindsOfAPair(t *testing.T) {
	goal := record.Goal{Objective: "loss <= 1%", Metric: record.LossRatio, Limit: 0.01, SharePct: 99, Per: record.PerTurn}
	w := newWorld(t, judge.Config{Goals: func(record.Pair) []record.Goal { return []record.Goal{goal} }})
	w.minutes(100)
	for range 30 {
		s := w.sample(ab())
		s.State = record.Down
		w.minute(s)
	}
	for _, e := range w.events {
		if e.Alarm != nil && e.Alarm.Kind != record.KindOutage {
			t.Errorf("%s", line(e))
		}
	}
	if a := w.events[len(w.events)-1].Alarm; a == nil || len(a.Goals) != 1 || len(a.Outages) != 1 {
		t.Errorf("the alarm does not list the objective: %+v", a)
	}
}
