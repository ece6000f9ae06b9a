package judge_test

import (
	"encoding/json"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thru/internal/watch/judge"
	"thru/internal/watch/record"
)

// step is one input of a judge.
type step func(*judge.Judge) []record.Event

// rich is a configuration with everything.
func rich() judge.Config {
	return judge.Config{
		Goals: func(p record.Pair) []record.Goal {
			return []record.Goal{
				{Objective: "rtt", Metric: record.RTTMedian, Limit: 2e6, SharePct: 99, Per: record.PerHour},
				{Objective: "up", Metric: record.Availability, SharePct: 99.9, Per: record.PerTime},
			}
		},
		Segments: func(p record.Pair) []string { return []string{"lan"} },
		Windows:  []record.MaintenanceWindow{{Begin: start().Add(40 * time.Minute), End: start().Add(70 * time.Minute), EveryDays: 1, Hosts: []string{"h00"}}},
		Wait:     2 * time.Minute,
	}
}

// script draws the inputs of some pairs over some time: minutes in all states with gaps, hours of silence, TCP turns, and changes.
func script(t *rapid.T) (steps []step, pairs []record.Pair, end time.Time) {
	pairs = mesh(hosts(rapid.IntRange(2, 3).Draw(t, "hosts")))
	w := &world{now: start()}
	add := func(s step) { steps = append(steps, s) }
	for range rapid.IntRange(1, 40).Draw(t, "turns") {
		for _, p := range pairs {
			s := draw(t, w.sample(p))
			add(func(j *judge.Judge) []record.Event { return j.Take(s) })
			if rapid.IntRange(0, 9).Draw(t, "twice") == 0 {
				add(func(j *judge.Judge) []record.Event { return j.Take(s) })
			}
		}
		p := rapid.SampledFrom(pairs).Draw(t, "pair")
		switch rapid.IntRange(0, 12).Draw(t, "extra") {
		case 0:
			c := record.Change{Pair: p, Metric: record.RTTMedian, Since: w.now, Found: w.now, Before: 1e6, After: 4e6,
				Direction: rapid.SampledFrom([]record.Direction{record.Better, record.Worse, record.Neither}).Draw(t, "direction")}
			add(func(j *judge.Judge) []record.Event { return j.Changed(c) })
		case 1:
			s := record.Sample{Pair: p, Layer: record.TCP, Begin: w.now.Add(3 * time.Second), Seconds: 5, State: record.Up}
			s.State = rapid.SampledFrom([]record.State{record.Up, record.Down, record.Deferred, record.NotMeasured}).Draw(t, "tcp")
			add(func(j *judge.Judge) []record.Event { return j.Take(s) })
		case 2:
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 2000).Draw(t, "silence")) * time.Minute)
			now := w.now
			add(func(j *judge.Judge) []record.Event { return j.Tick(now) })
		}
		w.now = w.now.Add(time.Minute)
		now := w.now
		if rapid.IntRange(0, 3).Draw(t, "tick") > 0 {
			add(func(j *judge.Judge) []record.Event { return j.Tick(now) })
		}
	}
	return steps, pairs, w.now
}

// draw varies a sample.
func draw(t *rapid.T, s record.Sample) record.Sample {
	if rapid.IntRange(0, 3).Draw(t, "healthy") > 0 {
		return s
	}
	s.State = rapid.SampledFrom([]record.State{record.Up, record.Up, record.Down, record.Degraded, record.Refused, record.Deferred, record.NotMeasured}).Draw(t, "state")
	s.Seconds = rapid.SampledFrom([]float64{60, 59.9, 30, 0}).Draw(t, "seconds")
	s.Values[record.RTTMedian] = rapid.Float64Range(5e5, 5e6).Draw(t, "rtt")
	at := rapid.IntRange(-3, 59).Draw(t, "gap")
	for range rapid.IntRange(0, 2).Draw(t, "gaps") {
		lost := rapid.IntRange(1, 20).Draw(t, "lost")
		g := record.Gap{Begin: s.Begin.Add(time.Duration(at) * time.Second), Lost: lost}
		if at += lost; at < 60 {
			g.End = s.Begin.Add(time.Duration(at) * time.Second)
		}
		s.Gaps = append(s.Gaps, g)
		if at += 5; at >= 60 {
			break
		}
	}
	return s
}

// run gives a judge all steps, and returns the events as JSON lines. Before each step, between may return another judge.
func run(t *rapid.T, j *judge.Judge, steps []step, between func(int, *judge.Judge) *judge.Judge) (lines []string, last *judge.Judge) {
	for i, s := range steps {
		if between != nil {
			j = between(i, j)
		}
		for _, e := range s(j) {
			data, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(data))
		}
	}
	return lines, j
}

// TestRestart checks that a judge that is killed and restored anywhere gives the same events.
func TestRestart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps, _, _ := script(t)
		want, whole := run(t, judge.New(rich()), steps, nil)
		seed := rapid.Uint64().Draw(t, "kills")
		dice := rand.New(rand.NewPCG(seed, 1))
		got, restored := run(t, judge.New(rich()), steps, func(_ int, j *judge.Judge) *judge.Judge {
			if dice.IntN(5) > 0 {
				return j
			}
			data, err := json.Marshal(j)
			if err != nil {
				t.Fatal(err)
			}
			if j, err = judge.Restore(rich(), data); err != nil {
				t.Fatal(err)
			}
			return j
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("events after restarts (-want +got):\n%s", diff)
		}
		one, _ := json.Marshal(whole)
		other, _ := json.Marshal(restored)
		if diff := cmp.Diff(string(one), string(other)); diff != "" {
			t.Errorf("state after restarts (-want +got):\n%s", diff)
		}
	})
}

// TestRepeats checks that samples that arrive again, in any order, change nothing.
func TestRepeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{now: start()}
		var samples []record.Sample
		for range rapid.IntRange(1, 60).Draw(t, "turns") {
			for _, p := range mesh(hosts(2)) {
				samples = append(samples, draw(t, w.sample(p)))
			}
			w.now = w.now.Add(time.Minute)
		}
		take := func(again bool) (lines []string, j *judge.Judge) {
			j = judge.New(rich())
			for i, s := range samples {
				events := j.Take(s)
				for again && rapid.Bool().Draw(t, "again") {
					events = append(events, j.Take(samples[rapid.IntRange(0, i).Draw(t, "which")])...)
				}
				for _, e := range append(events, j.Tick(s.Begin.Add(time.Minute))...) {
					lines = append(lines, line(e))
				}
			}
			return lines, j
		}
		want, once := take(false)
		got, often := take(true)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("events with repeats (-want +got):\n%s", diff)
		}
		for _, p := range mesh(hosts(2)) {
			one, other := days(t, once, rich(), p, w.now), days(t, often, rich(), p, w.now)
			if diff := cmp.Diff(one, other); diff != "" {
				t.Errorf("days with repeats (-want +got):\n%s", diff)
			}
		}
	})
}

// TestSums checks that the states of each pair have exactly its time, whatever happens.
func TestSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps, pairs, end := script(t)
		j := judge.New(rich())
		final := map[record.Pair][]record.Summary{}
		for _, s := range steps {
			for _, e := range s(j) {
				if e.Kind == record.DayOver {
					final[*e.Pair] = append(final[*e.Pair], *e.Day)
				}
			}
		}
		for _, p := range pairs {
			rest := days(t, j, rich(), p, end.Add(time.Hour))
			at := start()
			for _, d := range append(final[p], rest...) {
				if !d.Begin.Equal(at) || d.States.All()+d.Maintenance.All() != d.End.Sub(d.Begin) {
					t.Fatalf("%v: day %v to %v after %v has %v and %v", p, d.Begin, d.End, at, d.States, d.Maintenance)
				}
				at = d.End
			}
			if !at.Equal(end.Add(time.Hour)) {
				t.Errorf("%v: the days end at %v, not %v", p, at, end.Add(time.Hour))
			}
		}
	})
}

// TestMonth lets a month go by in Berlin, with an outage in the night of the longer day: days merge into the month that the turns tell.
func TestMonth(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zones on this machine: ", err)
	}
	pairs := mesh(hosts(3))
	w := newWorld(t, judge.Config{Location: berlin, Every: map[record.Layer]time.Duration{record.Probe: 5 * time.Minute}})
	begin := time.Date(2026, 10, 1, 0, 0, 0, 0, berlin)
	end := begin.AddDate(0, 1, 0)
	down := func(p record.Pair, at time.Time) bool {
		return p.From == "h00" && at.Day() == 25 && at.Hour() == 2
	}
	for w.now = begin; w.now.Before(end.Add(time.Hour)); w.now = w.now.Add(5 * time.Minute) {
		for _, p := range pairs {
			s := w.sample(p)
			s.Seconds = 300
			if down(p, w.now) {
				s.State = record.Down
			}
			w.keep(w.judge.Take(s))
		}
		w.keep(w.judge.Tick(w.now.Add(5 * time.Minute)))
	}
	for _, p := range pairs {
		var days []record.Summary
		for _, e := range w.events {
			if e.Kind == record.DayOver && *e.Pair == p {
				days = append(days, *e.Day)
			}
		}
		month := record.Merge(days...)
		want := time.Duration(0)
		if p.From == "h00" {
			want = 2 * time.Hour // the hour that comes twice
		}
		if len(days) != 31 || !month.Begin.Equal(begin) || !month.End.Equal(end) || month.States.All() != 31*24*time.Hour+time.Hour ||
			month.States.In(record.Down) != want || month.Turns != (31*24+1)*12 {
			t.Errorf("%v: %d days, %v to %v, %v, %d turns", p, len(days), month.Begin, month.End, month.States, month.Turns)
		}
		if want > 0 && (len(month.Outages) != 1 || month.Outages[0].End.Sub(month.Outages[0].Begin) != want) {
			t.Errorf("%v: outages %+v", p, month.Outages)
		}
	}
	raised := slices.DeleteFunc(w.events, func(e record.Event) bool { return e.Kind != record.AlarmRaised })
	if len(raised) != 1 || raised[0].Alarm.Host != "h00" || raised[0].Alarm.Side != record.SideSender {
		t.Errorf("alarms: %+v", raised)
	}
}

// BenchmarkMesh is a minute of 500 hosts, all pairs.
func BenchmarkMesh(b *testing.B) {
	pairs := mesh(hosts(500))
	w := newWorld(b, judge.Config{})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	values := map[record.Metric]float64{record.Sent: 60, record.LossRatio: 0, record.RTTMedian: 1e6, record.RTT99: 2e6}
	dice := rand.New(rand.NewPCG(1, 2))
	b.ResetTimer()
	for range b.N {
		for _, p := range pairs {
			values[record.RTTMedian], values[record.RTT99] = 1e6*(1+0.1*dice.Float64()), 2e6*(1+0.3*dice.Float64())
			w.judge.Take(record.Sample{Pair: p, Layer: record.Probe, Begin: w.now, Seconds: 60, State: record.Up, Values: values})
		}
		w.now = w.now.Add(time.Minute)
		w.judge.Tick(w.now)
	}
	b.StopTimer()
	b.ReportMetric(float64(heap()-before)/float64(len(pairs)), "B/pair")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(pairs)), "ns/sample")
	runtime.KeepAlive(w)
}
