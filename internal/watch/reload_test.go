package watch

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"thru/internal/unit"
	"thru/internal/watch/judge"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

// TestReload: what both plans have keeps its turns, its outage and its spent budget; what is new begins, what is removed ends, and a plan that does not fit changes nothing.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := func(reload func(*Watch, schedule.Wish)) ([]time.Duration, []record.Event, map[record.Pair]int) {
			f := &fakeFleet{goodput: steady, takes: time.Second, noise: rand.New(rand.NewPCG(1, 2))}
			begin := time.Now()
			f.loss = func(at time.Time) float64 {
				if at.Sub(begin) < time.Hour {
					return 0
				}
				return 1
			}
			var events []record.Event
			samples := map[record.Pair]int{}
			wish := schedule.Wish{Paths: []schedule.Path{{Pair: pair, RateBps: 1e9, Uses: []string{"a", "b"}}}, ProbeEvery: time.Second, TCPPerDay: 3, TCPTime: 4 * time.Second}
			w, err := New(Config{Wish: wish, Fleet: f, Warn: func(err error) { t.Error(err) },
				Report: func(e record.Event) { events = append(events, e) },
				Keep: func(all []record.Sample) error {
					for _, s := range all {
						samples[s.Pair]++
					}
					return nil
				}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 48*time.Hour)
			defer cancel()
			ended := make(chan bool)
			go func() { w.Run(ctx); close(ended) }()
			time.Sleep(24 * time.Hour)
			w.Alive(ctx)
			reload(w, wish)
			<-ended
			if reload(w, wish); ctx.Err() == nil {
				t.Error("it runs on")
			}
			return offsets(f.turns, begin), events, samples
		}
		count := func(events []record.Event, of record.EventKind) (n int) {
			for _, e := range events {
				if e.Kind == of {
					n++
				}
			}
			return n
		}
		before, _, _ := turns(func(*Watch, schedule.Wish) {})

		other := schedule.Path{Pair: record.Pair{From: "c", To: "b"}, RateBps: 1e9, Uses: []string{"c", "b"}}
		after, events, samples := turns(func(w *Watch, wish schedule.Wish) {
			small := wish
			small.BudgetBytes = 1e6
			if err := w.Reload(t.Context(), small, judge.Config{}, w.Fleet); err == nil {
				t.Error("a budget that is too small is taken")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // at the end nobody takes it
			defer cancel()
			spent := func() (bytes int64) {
				_ = w.call(ctx, func() error { bytes = w.ledger.Used["a"]; return nil })
				return bytes
			}
			used := spent()
			wish.Paths = []schedule.Path{other, wish.Paths[0]}
			if err := w.Reload(ctx, wish, judge.Config{}, w.Fleet); err == nil && (spent() != used || used == 0) {
				t.Errorf("%d bytes of the day are spent, %d before", spent(), used)
			}
		})
		if !slices.EqualFunc(before, after, func(a, b time.Duration) bool { return (a - b).Abs() <= 10*time.Second }) || len(before) == 0 { // less the jitter of the day
			t.Errorf("turns at %v, and with another pair at %v", before, after)
		}
		if samples[other.Pair] < 2 || count(events, record.OutageBegan) != 1 || count(events, record.OutageEnded) != 0 {
			t.Errorf("%v; %v", samples, kinds(events))
		}

		_, events, _ = turns(func(w *Watch, wish schedule.Wish) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			wish.Paths = []schedule.Path{other}
			if err := w.Reload(ctx, wish, judge.Config{}, w.Fleet); err != nil {
				return
			}
			_ = w.call(ctx, func() error {
				if all := w.Standings(); len(all) > 0 || len(w.series.detectors) > 0 {
					t.Errorf("%+v, %d series", all, len(w.series.detectors))
				}
				return nil
			})
		})
		if count(events, record.AlarmOver) != 1 {
			t.Errorf("the alarm of a removed pair does not end: %v", kinds(events))
		}
	})
}

// offsets returns the times since a begin.
func offsets(all []time.Time, begin time.Time) []time.Duration {
	return unit.Mapped(all, func(at time.Time) time.Duration { return at.Sub(begin) })
}
