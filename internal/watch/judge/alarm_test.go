package judge_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
	"thru/internal/watch/judge"
	"thru/internal/watch/record"
)

// TestHysteresis checks that an alarm begins once and ends after the level is back, with one ID.
func TestHysteresis(t *testing.T) {
	w := newWorld(t, judge.Config{})
	w.minutes(1)
	down := func() {
		s := w.sample(ab())
		s.State, s.Reason = record.Down, record.NoAnswer
		w.minute(s)
	}
	down()
	down()
	w.expect("0s a>b up", "1m0s outage", "1m0s a>b down no-answer")
	down()
	w.expect("4m0s suspected outage 1 pairs", "4m0s alarm-raised outage 1 pairs")
	w.minutes(2)
	down()
	w.minutes(2)
	w.expect("4m0s outage of 3m0s", "4m0s a>b up", "6m0s outage", "6m0s a>b down no-answer", "7m0s outage of 1m0s", "7m0s a>b up")
	w.minutes(1)
	w.expect("10m0s alarm-over outage 1 pairs")
	ids := map[string]bool{}
	for _, e := range w.events {
		if e.Alarm != nil {
			ids[e.Alarm.ID] = true
		}
	}
	if len(ids) != 1 {
		t.Errorf("the alarm has %d IDs", len(ids))
	}
}

// TestShortOutages checks that short outages keep an alarm going, and that they are no flapping if they come seldom.
func TestShortOutages(t *testing.T) {
	w := newWorld(t, judge.Config{})
	short := func() {
		s := w.sample(ab())
		s.Gaps = []record.Gap{{Begin: w.now.Add(10 * time.Second), End: w.now.Add(20 * time.Second), Lost: 10}}
		w.minute(s)
	}
	w.minutes(1)
	for range 3 {
		s := w.sample(ab())
		s.State = record.Down
		w.minute(s)
	}
	w.said()
	short()
	w.minutes(2)
	short()
	w.minutes(2)
	for _, s := range w.said() {
		if strings.Contains(s, "alarm") {
			t.Errorf("after two calm minutes: %s", s)
		}
	}
	w.minutes(1)
	w.expect("11m0s alarm-over outage 1 pairs")
	for range 10 {
		w.minutes(60)
		short()
	}
	for _, e := range w.events {
		if e.Alarm != nil && e.Alarm.Flapping {
			t.Errorf("flapping: %s", line(e))
		}
	}
}

// TestFlapping checks that what comes and goes is told once.
func TestFlapping(t *testing.T) {
	w := newWorld(t, judge.Config{})
	w.minutes(1)
	for range 30 {
		s := w.sample(ab())
		s.Gaps = []record.Gap{{Begin: w.now.Add(10 * time.Second), End: w.now.Add(20 * time.Second), Lost: 10}}
		w.minute(s)
		w.minutes(3)
		if now := w.judge.Standings()[0]; now.State != record.Up || now.Since.Before(w.now.Add(-4*time.Minute)) {
			t.Errorf("at %v: %+v", w.now, now)
		}
	}
	w.minutes(70)
	alarms := slices.DeleteFunc(w.said(), func(s string) bool { return !strings.Contains(s, " outage ") || strings.Contains(s, "outage of") })
	want := []string{"16m0s suspected outage 1 pairs flapping", "16m0s alarm-raised outage 1 pairs flapping", "2h59m0s alarm-over outage 1 pairs flapping"}
	if diff := cmp.Diff(want, alarms); diff != "" {
		t.Errorf("alarms (-want +got):\n%s", diff)
	}
	states, last := 0, record.Event{}
	for _, e := range w.events {
		if e.Kind == record.StateChanged {
			states, last = states+1, e
		}
	}
	if last.State != record.Up {
		t.Errorf("the last state told is %s", line(last))
	}
	if all := w.sums(ab()); len(all.Outages) != 30 || states > 2*4 {
		t.Errorf("%d outages are listed, %d states told", len(all.Outages), states)
	}
}

// TestMaintenance checks that work is no alarm and no part of the availability, unless it leaves an outage behind.
func TestMaintenance(t *testing.T) {
	work := record.MaintenanceWindow{Begin: start().Add(5 * time.Minute), End: start().Add(15 * time.Minute), Hosts: []string{"b"}}
	for _, c := range []struct {
		name      string
		last      int // minute of the outage that began at minute 6
		available time.Duration
		want      []string
	}{
		{"within", 12, 0, nil},
		{"left behind", 20, 5 * time.Minute, []string{"18m0s suspected outage 1 pairs", "18m0s alarm-raised outage 1 pairs", "23m0s alarm-over outage 1 pairs"}},
	} {
		w := newWorld(t, judge.Config{Windows: []record.MaintenanceWindow{work}})
		for i := range 30 {
			s := w.sample(ab())
			if i >= 6 && i < c.last {
				s.State = record.Down
			}
			w.minute(s)
		}
		alarms := slices.DeleteFunc(w.said(), func(s string) bool { return !strings.Contains(s, "pairs") })
		if diff := cmp.Diff(c.want, append([]string(nil), alarms...)); diff != "" {
			t.Errorf("%s: alarms (-want +got):\n%s", c.name, diff)
		}
		all := w.sums(ab())
		if got := all.Maintenance.All(); got != 10*time.Minute {
			t.Errorf("%s: maintenance %v", c.name, got)
		}
		if got := all.States.In(record.Down); got != c.available || !all.Outages[0].Maintenance {
			t.Errorf("%s: down for %v outside of the work; %+v", c.name, got, all.Outages)
		}
	}
}

// TestWorkBeforeAlarm checks that an alarm that waits for its explanation when work begins is not raised before the work ends.
func TestWorkBeforeAlarm(t *testing.T) {
	w := newWorld(t, judge.Config{Windows: []record.MaintenanceWindow{{Begin: start().Add(14 * time.Minute), End: start().Add(30 * time.Minute)}}})
	w.rtt(1e6, 10)
	w.keep(w.judge.Changed(w.change(1e6, 6e6, record.Worse)))
	w.rtt(6e6, 25)
	w.expect("0s a>b up", "10m0s a>b degraded changed", "13m0s suspected change 1 pairs", "30m0s alarm-raised change 1 pairs")
}

// change is a change of the round-trip time, found now.
func (w *world) change(before, after float64, d record.Direction) record.Change {
	since := w.now.Add(-3 * time.Minute)
	return record.Change{Pair: ab(), Metric: record.RTTMedian, Since: since, Latest: since, Found: w.now, Before: before, After: after,
		EffectPct: 100 * (after/before - 1), Direction: d}
}

// over is the end of a change.
func (w *world) over(of record.Change) record.Change {
	c := w.change(of.After, of.Before, record.Better)
	c.Over = of.Since
	return c
}

// rtt lets minutes go by with a round-trip time.
func (w *world) rtt(ns float64, n int) {
	for range n {
		s := w.sample(ab())
		s.Values[record.RTTMedian] = ns
		w.minute(s)
	}
}

// TestChange checks that a change is explained once, raised with its cause, and over when the level is back.
func TestChange(t *testing.T) {
	worse := func(w *world) (c record.Change, alarm string) {
		w.rtt(1e6, 10)
		c = w.change(1e6, 6e6, record.Worse)
		w.keep(w.judge.Changed(c))
		w.rtt(6e6, 3)
		w.expect("0s a>b up", "10m0s a>b degraded changed", "13m0s suspected change 1 pairs")
		return c, w.events[len(w.events)-1].Alarm.ID
	}
	t.Run("explained", func(t *testing.T) {
		w := newWorld(t, judge.Config{})
		c, id := worse(w)
		w.judge.Explained(id, judge.Explanation{Findings: []measure.Finding{{Cause: "path.queue"}}, Result: "r1"})
		w.rtt(6e6, 1)
		w.expect("14m0s alarm-raised change 1 pairs")
		a := w.events[len(w.events)-1].Alarm
		if a.ID != id || len(a.Findings) != 1 || a.Result != "r1" || len(a.Changes) != 1 || a.Changes[0].After != 6e6 || !a.Since.Equal(start().Add(7*time.Minute)) {
			t.Errorf("%+v", a)
		}
		w.rtt(1.1e6, 5) // single turns do not end it
		w.expect()
		w.keep(w.judge.Changed(w.over(c)))
		w.rtt(1.1e6, 1)
		w.expect("19m0s a>b up", "20m0s alarm-over change 1 pairs")
	})
	t.Run("nobody explains", func(t *testing.T) {
		w := newWorld(t, judge.Config{})
		worse(w)
		w.rtt(6e6, 10)
		w.expect("18m0s alarm-raised change 1 pairs")
		more := w.change(6e6, 9e6, record.Worse)
		w.keep(w.judge.Changed(more))
		w.rtt(9e6, 1)
		w.expect("24m0s alarm-updated change 1 pairs")
		if c := w.events[len(w.events)-1].Alarm.Changes; len(c) != 1 || c[0].Before != 1e6 || c[0].After != 9e6 || math.Abs(c[0].EffectPct-800) > 1e-9 {
			t.Errorf("both changes as one: %+v", c)
		}
		w.keep(w.judge.Changed(w.over(more))) // back to where it was worse already
		w.rtt(6e6, 1)
		w.expect()
		w.keep(w.judge.Changed(w.change(9e6, 1.2e6, record.Better)))
		w.rtt(1.2e6, 1)
		w.expect("25m0s a>b up", "26m0s alarm-over change 1 pairs")
	})
	t.Run("the new normal", func(t *testing.T) {
		w := newWorld(t, judge.Config{Accept: 2 * time.Hour})
		worse(w)
		w.rtt(6e6, 116)
		w.expect("18m0s alarm-raised change 1 pairs", "2h7m0s alarm-over change 1 pairs", "2h7m0s a>b up")
	})
	t.Run("gone before it was told", func(t *testing.T) {
		w := newWorld(t, judge.Config{})
		c, _ := worse(w)
		w.keep(w.judge.Changed(w.over(c)))
		w.rtt(1e6, 20)
		w.expect("13m0s a>b up")
	})
	t.Run("a better time ends", func(t *testing.T) {
		w := newWorld(t, judge.Config{})
		w.rtt(6e6, 10)
		c := w.over(w.change(6e6, 1e6, record.Better))
		c.Direction = record.Worse
		w.keep(w.judge.Changed(c))
		w.rtt(6e6, 20)
		w.expect("0s a>b up")
	})
}

// TestObjectives checks what of an objective is told.
func TestObjectives(t *testing.T) {
	goal := func(per record.Per, share float64) record.Goal {
		return record.Goal{Objective: "rtt <= 2ms", Metric: record.RTTMedian, Limit: 2e6, SharePct: share, Per: per}
	}
	up := record.Goal{Objective: "up 99%", Metric: record.Availability, SharePct: 99, Per: record.PerTime}
	for _, c := range []struct {
		name     string
		goal     record.Goal
		bad      func(minute int) bool
		minutes  int
		kept, of int
		want     []string
	}{
		{"kept", goal(record.PerTurn, 99), func(int) bool { return false }, 100, 100, 100, nil},
		{"within the budget", goal(record.PerTurn, 99), func(m int) bool { return m == 50 || m == 90 }, 300, 298, 300, nil},
		{"burning", goal(record.PerTurn, 99), func(m int) bool { return m >= 60 && m < 80 }, 100, 80, 100, []string{
			"1h2m0s a>b degraded below-goal", "1h9m0s suspected objective 1 pairs", "1h14m0s alarm-raised objective 1 pairs",
			"1h22m0s a>b up", "1h23m0s alarm-over objective 1 pairs"}},
		{"most turns of an hour", goal(record.PerHour, 99), func(m int) bool { return m >= 60 && m < 80 }, 240, 4, 4, []string{
			"1h2m0s a>b degraded below-goal", "1h5m0s suspected objective 1 pairs", "1h10m0s alarm-raised objective 1 pairs",
			"1h22m0s a>b up", "1h40m0s alarm-over objective 1 pairs"}},
		{"a budget spent by single turns", goal(record.PerTurn, 99.9), func(m int) bool { return m%40 == 0 && m <= 720 }, 2300, 2281, 2300, []string{
			"12h0m0s day", "12h0m0s a>b degraded below-goal", "12h3m0s suspected objective 1 pairs", "12h3m0s a>b up",
			"12h8m0s alarm-raised objective 1 pairs", "21h7m0s alarm-over objective 1 pairs", "36h0m0s day"}},
		{"an availability", up, func(int) bool { return false },
			100, 100 * 60 * 1000, 100 * 60 * 1000, nil},
		{"an outage of two turns", up, func(m int) bool { return m == 60 || m == 61 }, 100, 98 * 60 * 1000, 100 * 60 * 1000, []string{
			"1h0m0s outage", "1h0m0s a>b down no-answer", "1h2m0s outage of 2m0s", "1h2m0s a>b up",
			"1h3m0s suspected outage 1 pairs", "1h3m0s alarm-raised outage 1 pairs", "1h5m0s alarm-over outage 1 pairs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, judge.Config{Goals: func(record.Pair) []record.Goal { return []record.Goal{c.goal} }})
			for m := range c.minutes {
				s := w.sample(ab())
				if c.bad(m) {
					s.Values[record.RTTMedian] = 3e6
					if c.goal.Metric == record.Availability {
						s.State, s.Reason = record.Down, record.NoAnswer
					}
				}
				w.minute(s)
			}
			w.expect(append([]string{"0s a>b up"}, c.want...)...)
			if g := w.sums(ab()).Goals[0]; g.Kept != c.kept || g.Of != c.of {
				t.Errorf("kept %d of %d, want %d of %d", g.Kept, g.Of, c.kept, c.of)
			}
		})
	}
}
