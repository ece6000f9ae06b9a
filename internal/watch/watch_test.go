package watch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"thru/internal/measure"
	"thru/internal/watch/judge"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

var pair = record.Pair{From: "a", To: "b"}

// fakeFleet measures by formulas of the time.
type fakeFleet struct {
	goodput func(time.Time) float64
	loss    func(time.Time) float64
	takes   time.Duration
	noise   *rand.Rand

	turns     []time.Time
	explained []record.Pair
	probed    time.Time
}

func (f *fakeFleet) Turn(ctx context.Context, t schedule.Task) record.Sample {
	begin := time.Now()
	if t.Pair == pair {
		f.turns = append(f.turns, begin)
	}
	select {
	case <-time.After(f.takes):
	case <-ctx.Done():
		return notMeasured(t, begin, record.NotMeasured, record.Failed)
	}
	v := f.goodput(begin) * (1 + 0.03*f.noise.NormFloat64())
	return record.Sample{Pair: t.Pair, Layer: t.Layer, Begin: begin, ID: record.SampleID(t.Pair, t.Layer, begin), State: record.Up, Seconds: 3, Values: map[record.Metric]float64{record.Goodput: v}}
}

// Probes returns a summary for each minute that has passed.
func (f *fakeFleet) Probes(context.Context) (all []record.Sample, more bool) {
	now := time.Now().Truncate(time.Minute)
	if f.probed.IsZero() {
		f.probed = now
	}
	for ; f.probed.Before(now); f.probed = f.probed.Add(time.Minute) {
		at := f.probed
		s := record.Sample{
			Pair: pair, Layer: record.Probe, Begin: at, ID: record.SampleID(pair, record.Probe, at), State: record.Up, Seconds: 60,
			Values: map[record.Metric]float64{record.Sent: 60, record.LossRatio: f.loss(at), record.RTTMedian: 1e6 * (1 + 0.05*f.noise.Float64()), record.MTU: 1500},
		}
		if f.loss(at) == 1 {
			s.State, s.Reason, s.Gaps = record.Down, record.NoAnswer, []record.Gap{{Begin: at, Lost: 60}}
		}
		all = append(all, s)
		if len(all) == 7 { // as an agent sends pages
			f.probed = f.probed.Add(time.Minute)
			return all, true
		}
	}
	return all, false
}

func (f *fakeFleet) Explain(_ context.Context, x Unexplained) (judge.Explanation, error) {
	f.explained = append(f.explained, x.Pair)
	time.Sleep(40 * time.Second)
	return judge.Explanation{Findings: []measure.Finding{{Cause: "loss"}}, Result: "r1"}, nil
}

// watchFor runs a watch of a pair at 1 Gb/s for some time, and returns its events.
func watchFor(t *testing.T, f *fakeFleet, d time.Duration, change func(*Config)) (events []record.Event, samples []record.Sample) {
	t.Helper()
	events, samples, _ = watchOn(t, f, d, change)
	return events, samples
}

// watchOn does the same, and returns the state for the next run too.
func watchOn(t *testing.T, f *fakeFleet, d time.Duration, change func(*Config)) (events []record.Event, samples []record.Sample, state []byte) {
	t.Helper()
	f.noise = rand.New(rand.NewPCG(1, 2))
	if f.loss == nil {
		f.loss = func(time.Time) float64 { return 0 }
	}
	c := Config{
		Wish:  schedule.Wish{Paths: []schedule.Path{{Pair: pair, RateBps: 1e9, Uses: []string{"a", "b"}}}, ProbeEvery: time.Second, TCPPerDay: 12, TCPTime: 4 * time.Second},
		Fleet: f, Keep: func(s []record.Sample) error { samples = append(samples, s...); return nil },
		Report: func(e record.Event) { events = append(events, e) },
		Warn:   func(err error) { t.Error(err) },
		Save:   func(b []byte) { state = b },
	}
	if change != nil {
		change(&c)
	}
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	w.Run(ctx)
	return events, samples, state
}

func steady(time.Time) float64 { return 940e6 }

// TestStand checks that others learn how the pairs are, with their objectives, as samples come and not more often.
func TestStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times, last := 0, []record.Standing(nil)
		goal := record.Goal{Objective: "loss <= 1%, 99% of turns", Metric: record.LossRatio, Limit: 0.01, SharePct: 99, Per: record.PerTurn}
		watchFor(t, &fakeFleet{goodput: steady}, 10*time.Minute+30*time.Second, func(c *Config) {
			c.Judge.Goals = func(record.Pair) []record.Goal { return []record.Goal{goal} }
			c.Stand = func(all []record.Standing, _ []record.Alarm) { times, last = times+1, all }
		})
		if times < 9 || times > 15 || len(last) != 1 || last[0].State != record.Up || len(last[0].Goals) != 1 || last[0].Goals[0].Of < 9 {
			t.Errorf("%d times, the last: %+v", times, last)
		}
	})
}

// kinds returns the kinds of events.
func kinds(events []record.Event) (all []record.EventKind) {
	for _, e := range events {
		all = append(all, e.Kind)
	}
	return all
}

func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFleet{goodput: steady, takes: 4 * time.Second}
		events, samples := watchFor(t, f, 10*24*time.Hour, nil)
		for _, e := range events {
			if e.Kind != record.DayOver && (e.Kind != record.StateChanged || e.State != record.Up) {
				t.Errorf("%+v", e)
			}
		}
		if n := len(f.turns); n < 10*12-1 || n > 10*12+1 {
			t.Errorf("%d TCP turns in 10 days", n)
		}
		seen := map[string]bool{}
		for _, s := range samples {
			if seen[s.ID] {
				t.Errorf("%s is there twice", s.ID)
			}
			seen[s.ID] = true
		}
		if len(f.explained) > 0 {
			t.Errorf("explained %v", f.explained)
		}
	})
}

func TestDropIsExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drop := time.Now().Add(15 * 24 * time.Hour)
		f := &fakeFleet{takes: 4 * time.Second, goodput: func(at time.Time) float64 {
			if at.Before(drop) {
				return 940e6
			}
			return 820e6
		}}
		events, _ := watchFor(t, f, 18*24*time.Hour, nil)
		i := slices.IndexFunc(events, func(e record.Event) bool { return e.Kind == record.AlarmRaised })
		if i < 0 {
			t.Fatalf("no alarm: %v", kinds(events))
		}
		a := events[i].Alarm
		if len(a.Changes) != 1 || a.Changes[0].Metric != record.Goodput || a.Changes[0].Direction != record.Worse || a.Changes[0].EffectPct > -9 || a.Changes[0].EffectPct < -17 {
			t.Errorf("changes: %+v", a.Changes)
		}
		if len(a.Findings) != 1 || a.Result != "r1" || len(f.explained) != 1 {
			t.Errorf("explained %d times: %+v", len(f.explained), a)
		}
		if off := a.Since.Sub(drop).Abs(); off > 24*time.Hour {
			t.Errorf("since %v, %v off", a.Since, off)
		}
	})
}

// TestLoss: a loss of 0.1% shows in few minutes, yet its alarm stays until the loss is over.
func TestLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now().Add(4 * 24 * time.Hour)
		end := begin.Add(24 * time.Hour)
		f := &fakeFleet{goodput: steady, takes: time.Second, loss: func(at time.Time) float64 {
			if at.Before(begin) || !at.Before(end) || at.Minute()%17 != 0 {
				return 0
			}
			return 1.0 / 60
		}}
		events, _ := watchFor(t, f, 6*24*time.Hour, nil)
		alarms := slices.DeleteFunc(events, func(e record.Event) bool { return e.Alarm == nil })
		if want := []record.EventKind{record.Suspected, record.AlarmRaised, record.AlarmOver}; !slices.Equal(kinds(alarms), want) {
			t.Fatalf("events %v, want %v", kinds(alarms), want)
		}
		raised, over := alarms[1], alarms[2]
		if c := raised.Alarm.Changes; len(c) != 1 || c[0].Metric != record.LossRatio || raised.At.Sub(begin) > 24*time.Hour {
			t.Errorf("raised %v after the loss began: %+v", raised.At.Sub(begin), c)
		}
		if late := over.At.Sub(end); late < 0 || late > 24*time.Hour {
			t.Errorf("over %v after the loss ended", late)
		}
	})
}

func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now().Add(25 * time.Hour).Truncate(time.Minute)
		end := begin.Add(20 * time.Minute)
		f := &fakeFleet{goodput: steady, takes: time.Second, loss: func(at time.Time) float64 {
			if at.Before(begin) || !at.Before(end) {
				return 0
			}
			return 1
		}}
		events, _ := watchFor(t, f, 28*time.Hour, nil)
		i := slices.IndexFunc(events, func(e record.Event) bool { return e.Kind == record.OutageEnded })
		if i < 0 {
			t.Fatalf("no outage: %v", kinds(events))
		}
		if o := events[i].Outage; !o.Begin.Equal(begin) || o.End.Sub(end).Abs() > time.Minute {
			t.Errorf("outage from %v until %v, want %v until %v", o.Begin, o.End, begin, end)
		}
	})
}

// TestSlowTurn: a turn that takes longer than its place defers what would disturb it.
func TestSlowTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFleet{goodput: steady, takes: 5 * time.Hour}
		_, samples := watchFor(t, f, 24*time.Hour, nil)
		for _, s := range samples {
			if s.Layer == record.TCP && (s.State != record.NotMeasured || s.Values != nil) {
				t.Errorf("%+v", s)
			}
		}
	})
}

func TestLedger(t *testing.T) {
	l := new(ledger)
	l.bound([]schedule.Need{{Name: "a", Budget: 10}, {Name: "b", Budget: 5}})
	now := time.Date(2026, 1, 1, 23, 0, 0, 0, time.UTC)
	for i, c := range []struct {
		at    time.Time
		bytes int64
		want  bool
	}{{now, 4, true}, {now, 2, false}, {now, 1, true}, {now.Add(2 * time.Hour), 5, true}} {
		if got := l.spend(c.at, []string{"a", "b", "unbounded"}, c.bytes); got != c.want {
			t.Errorf("booking %d: %v", i, got)
		}
	}
	if l.Used["a"] != 5 {
		t.Errorf("%v", l.Used)
	}
}

// stored returns samples as a store does.
func stored(samples []record.Sample) iter.Seq2[record.Sample, error] {
	return func(yield func(record.Sample, error) bool) {
		for _, s := range samples {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// TestRestart: a watch that restarts repeats no event, and counts no sample twice.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := time.Now().Add(time.Hour)
		f := &fakeFleet{goodput: steady, takes: time.Second, loss: func(at time.Time) float64 {
			if at.Before(down) {
				return 0
			}
			return 1
		}}
		var events []record.Event
		var state []byte
		var past []record.Sample
		for range 3 {
			more, samples, next := watchOn(t, f, 2*time.Hour, func(c *Config) { c.State, c.Past = state, stored(past) })
			events, past, state = append(events, more...), append(past, samples...), next
		}
		n := 0
		for _, e := range events {
			if e.Kind == record.OutageBegan {
				n++
			}
		}
		if n != 1 {
			t.Errorf("the outage began %d times: %v", n, kinds(events))
		}
	})
}

var errFull = errors.New("disk full")

// TestBudgetOverRestart: the bytes of a day are used also for a watch that restarts, until the next day.
func TestBudgetOverRestart(t *testing.T) {
	c := Config{Wish: schedule.Wish{Paths: []schedule.Path{{Pair: pair, RateBps: 1e9, Uses: []string{"a", "b"}}}, TCPPerDay: 1, TCPTime: time.Second}, Warn: func(err error) { t.Error(err) }}
	c.Save = func(state []byte) { c.State = state }
	now := time.Now()
	for run := range 3 {
		w, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		all := w.ledger.budget["a"]
		if got := w.ledger.spend(now, []string{"a"}, all); got != (run == 0) || all == 0 {
			t.Errorf("run %d: %d bytes are allowed: %v", run, all, got)
		}
		w.save()
		if run == 2 && !w.ledger.spend(now.Add(24*time.Hour), []string{"a"}, all) {
			t.Error("the next day has no budget")
		}
	}
}

// TestOverdrawn: a turn for which the budget does not suffice says so in words.
func TestOverdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFleet{goodput: steady, takes: time.Second}
		_, samples := watchFor(t, f, 24*time.Hour, func(c *Config) {
			c.Wish.BudgetBytes = 8 << 30
			used := fmt.Sprintf(`{"judge":null,"ledger":{"used_bytes":{"b":%d},"day":%q}}`, 8<<30-1, time.Now().UTC().Truncate(24*time.Hour).Format(time.RFC3339))
			c.State = []byte(used)
		})
		i := slices.IndexFunc(samples, func(s record.Sample) bool { return s.Reason == record.Budget })
		if want := "the byte budget of the day is used at b: 8 GiB of 8 GiB, and a test takes up to 477 MiB"; i < 0 || samples[i].Error != want || samples[i].State != record.Deferred {
			t.Errorf("sample %d: %+v, want %q", i, samples[max(0, i)], want)
		}
	})
}

// TestPastIsLate: changes that TCP tests show while the samples of before are read are found when those are known.
func TestPastIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noise := rand.New(rand.NewPCG(3, 4))
		f := &fakeFleet{goodput: func(time.Time) float64 { return 700e6 }, takes: time.Second}
		var read time.Time
		events, _ := watchFor(t, f, 24*time.Hour, func(c *Config) {
			c.Past = func(yield func(record.Sample, error) bool) {
				begin := time.Now()
				for i := range 200 {
					s := record.Sample{Pair: pair, Layer: record.TCP, Begin: begin.Add(time.Duration(i-200) * 2 * time.Hour), State: record.Up,
						Values: map[record.Metric]float64{record.Goodput: 940e6 * (1 + 0.03*noise.NormFloat64())}}
					if !yield(s, nil) {
						return
					}
				}
				time.Sleep(20 * time.Hour)
				read = time.Now()
			}
		})
		i := slices.IndexFunc(events, func(e record.Event) bool { return e.Kind == record.AlarmRaised })
		if i < 0 || events[i].At.Before(read) || len(events[i].Alarm.Changes) != 1 {
			t.Errorf("read at %v: %v", read, kinds(events))
		}
	})
}

// TestKeepFails: samples count although they cannot be stored, and it is told.
func TestKeepFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		warned := 0
		f := &fakeFleet{goodput: steady, takes: time.Second}
		events, _ := watchFor(t, f, time.Hour, func(c *Config) {
			c.Keep = func([]record.Sample) error { return fmt.Errorf("store: %w", errFull) }
			c.Warn = func(err error) {
				if !errors.Is(err, errFull) {
					t.Error(err)
				}
				warned++
			}
		})
		if warned == 0 || len(events) == 0 {
			t.Errorf("%d warnings, %d events", warned, len(events))
		}
	})
}
