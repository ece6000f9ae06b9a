package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
	"thru/internal/store"
	"thru/internal/watch/record"
)

// midnight is when the samples of the tests begin.
func midnight() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) }

// sampled returns a sample of each layer of a pair that has a turn in a minute: like those of a LAN whose delay wanders.
func sampled(pair, minute int) (all []record.Sample) {
	r := rand.New(rand.NewPCG(uint64(pair), uint64(minute)))
	of := record.Pair{From: fmt.Sprintf("host-%d", pair), To: "db"}
	begin := midnight().Add(time.Duration(minute)*time.Minute + time.Duration(r.IntN(2000))*time.Microsecond)
	base := 250e3 + 40e3*math.Sin(float64(minute)/200)
	x := record.Sample{
		Pair: of, Layer: record.Probe, Begin: begin, Seconds: 60, State: record.Up, Route: "eth0 192.0.2.1", Facts: "d41d8cd98f00b204",
		Values: map[record.Metric]float64{
			record.Sent: 60, record.LossRatio: 0, record.RTTMin: base + 2e3*r.NormFloat64(), record.RTTMedian: base + 20e3 + 5e3*r.NormFloat64(),
			record.RTT99: base + 150e3 + 60e3*r.ExpFloat64(), record.Delay: base/2 + 3e3*r.NormFloat64(), record.DelayBound: 9e3 + 2e3*r.Float64(),
			record.MTU: 1500, record.Hops: 3, record.TrafficBytes: 60 * 2 * 94,
		},
	}
	if r.IntN(200) == 0 {
		x.Values[record.LossRatio] = 1.0 / 60
	}
	if r.IntN(500) == 0 {
		x.Gaps = []record.Gap{{Begin: begin.Add(3 * time.Second), End: begin.Add(6 * time.Second), Lost: 3}}
		x.Values[record.LossRatio] = 3.0 / 60
	}
	all = append(all, x)
	if minute%15 == 3 {
		all = append(all, record.Sample{Pair: of, Layer: record.Train, Begin: begin, Seconds: 0.2, State: record.Up,
			Values: map[record.Metric]float64{record.Capacity: 9.4e9 + 5e7*r.NormFloat64(), record.TrafficBytes: 3e6}})
	}
	if minute%240 == 7 {
		all = append(all, record.Sample{Pair: of, Layer: record.TCP, Begin: begin, Seconds: 3, State: record.Deferred, Reason: record.Load,
			NotChecked: []measure.NotChecked{{Fact: "goodput_bps", Why: "production traffic"}}})
	}
	return all
}

// putMinutes stores the samples of a pair from one minute to another, in turns of ten minutes.
func putMinutes(t testing.TB, s store.Store, pair, from, to int) (all []record.Sample) {
	t.Helper()
	var some []record.Sample
	for m := from; m < to; m++ {
		some = append(some, sampled(pair, m)...)
		if m%10 == 9 || m == to-1 {
			putSamples(t, s, some...)
			all, some = append(all, some...), nil
		}
	}
	return all
}

func putSamples(t testing.TB, s store.Store, samples ...record.Sample) {
	t.Helper()
	if err := s.PutSamples(within(t), samples); err != nil {
		t.Fatalf("PutSamples: %v", err)
	}
}

// collect returns what a sequence yields.
func collect[T any](t testing.TB, sequence func(func(T, error) bool)) (all []T) {
	t.Helper()
	for x, err := range sequence {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	return all
}

func samples(t testing.TB, s store.Store, f store.SampleFilter) []record.Sample {
	t.Helper()
	return collect(t, s.Samples(within(t), f))
}

// near fails where samples are not those that were kept, but for the resolution of the store.
func near(t *testing.T, got, want []record.Sample) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d samples, want %d", len(got), len(want))
	}
	for i, g := range got {
		w := want[i]
		if g.Begin.Sub(w.Begin).Abs() > time.Millisecond || g.ID != record.SampleID(w.Pair, w.Layer, w.Begin) {
			t.Fatalf("sample %d began %v, want %v; id %q", i, g.Begin, w.Begin, g.ID)
		}
		for m, v := range w.Values {
			if got, has := g.Values[m]; !has || math.Abs(got-v) > max(1e-6*v, 501) && math.Abs(got-v) > 1e-9 {
				t.Fatalf("sample %d: %s is %v, want %v", i, m, got, v)
			}
		}
		if len(g.Values) != len(w.Values) {
			t.Fatalf("sample %d has the values %v, want %v", i, g.Values, w.Values)
		}
		g.Begin, g.ID, g.Values, w.Begin, w.ID, w.Values = time.Time{}, "", nil, time.Time{}, "", nil
		if d := cmp.Diff(w, g); d != "" {
			t.Fatalf("sample %d (-kept +read):\n%s", i, d)
		}
	}
}

func (x contract) samples(t *testing.T) {
	s := x.Open(t)
	kept := putMinutes(t, s, 1, 0, 30)
	before := samples(t, s, store.SampleFilter{})
	near(t, before, kept)
	kept = append(kept, putMinutes(t, s, 1, 30, 26*60)...)
	all := samples(t, s, store.SampleFilter{})
	near(t, all, kept)
	if d := cmp.Diff(before, all[:len(before)]); d != "" {
		t.Errorf("samples are not the same after their hour was packed (-before +after):\n%s", d)
	}
	putMinutes(t, s, 2, 0, 26*60)
	of := func(pair int) record.Pair { return record.Pair{From: fmt.Sprintf("host-%d", pair), To: "db"} }
	at := func(minute int) time.Time { return midnight().Add(time.Duration(minute) * time.Minute) }
	both := len(samples(t, s, store.SampleFilter{Pair: record.Pair{To: "db"}}))
	for name, c := range map[string]struct {
		f    store.SampleFilter
		want int
	}{
		"all": {store.SampleFilter{}, both}, "pair": {store.SampleFilter{Pair: of(1)}, len(kept)}, "another": {store.SampleFilter{Pair: of(3)}, 0},
		"one end": {store.SampleFilter{Pair: record.Pair{From: "host-2"}}, both - len(kept)}, "no host": {store.SampleFilter{Pair: record.Pair{From: "db"}}, 0},
		"layer": {store.SampleFilter{Pair: of(1), Layer: record.Train}, 26 * 4}, "layer of all": {store.SampleFilter{Layer: record.TCP}, 14},
		"time":  {store.SampleFilter{Pair: of(1), Layer: record.Probe, From: at(90), To: at(150)}, 60},
		"begin": {store.SampleFilter{Pair: of(1), Layer: record.Probe, To: at(1)}, 1}, "later": {store.SampleFilter{From: at(26 * 60)}, 0},
	} {
		got := samples(t, s, c.f)
		if len(got) != c.want {
			t.Errorf("%s: %d samples, want %d", name, len(got), c.want)
		}
		for i := range got[min(1, len(got)):] {
			if got[i+1].Begin.Before(got[i].Begin) {
				t.Fatalf("%s: sample %d is not in order", name, i+1)
			}
		}
	}
	for range s.Samples(within(t), store.SampleFilter{}) {
		break // holds nothing
	}
}

// Samples come again and late, in any order: each counts once, and hours have what their samples have.
func (x contract) samplesAgain(t *testing.T) {
	s := x.Open(t)
	var all []record.Sample
	for m := range 5 * 60 {
		all = append(all, sampled(1, m)...)
	}
	shuffled := append(append([]record.Sample(nil), all...), all...)
	r := rand.New(rand.NewPCG(5, 5))
	r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for len(shuffled) > 0 {
		n := min(len(shuffled), 1+r.IntN(40))
		putSamples(t, s, shuffled[:n]...)
		shuffled = shuffled[n:]
	}
	near(t, samples(t, s, store.SampleFilter{}), all)
	other := all[0]
	other.State, other.Values = record.Down, nil
	putSamples(t, s, other)
	near(t, samples(t, s, store.SampleFilter{}), all)

	all = samples(t, s, store.SampleFilter{})
	if err := s.PruneSamples(within(t), midnight().Add(6*time.Hour), time.Hour, 0); err != nil {
		t.Fatal(err)
	}
	hours := x.Hours(t, s)
	for _, h := range hours {
		of := slices.DeleteFunc(slices.Clone(all), func(s record.Sample) bool {
			return s.Pair != h.Pair || s.Layer != h.Layer || !s.Begin.Truncate(time.Hour).Equal(h.Begin)
		})
		if d := cmp.Diff(store.SumUp(of), h, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(a)+500 })); d != "" {
			t.Errorf("hour (-of its samples +stored):\n%s", d)
		}
	}
	hours = slices.DeleteFunc(hours, func(h store.Hour) bool { return h.Layer != record.Probe })
	if len(hours) != 5 || hours[2].Turns[record.Up] != 60 || hours[2].Values[record.RTTMin].Count != 60 {
		t.Errorf("hours: %+v", hours)
	}
}

func (x contract) samplesPruned(t *testing.T) {
	s := x.Open(t)
	putMinutes(t, s, 1, 0, 72*60+10)
	now := midnight().Add(72 * time.Hour)
	prune := func(raw, hours time.Duration) {
		t.Helper()
		if err := s.PruneSamples(within(t), now, raw, hours); err != nil {
			t.Fatal(err)
		}
	}
	prune(0, 0)
	prune(24*time.Hour, 365*24*time.Hour)
	if got := samples(t, s, store.SampleFilter{Layer: record.Probe}); len(got) != 24*60+10 {
		t.Errorf("%d samples are left", len(got))
	}
	want := x.Hours(t, s)
	if len(want) == 0 {
		t.Error("no hour is summed up")
	}
	putSamples(t, s, sampled(1, 100)...) // of an hour whose samples were removed
	prune(24*time.Hour, 0)
	if d := cmp.Diff(want, x.Hours(t, s)); d != "" {
		t.Errorf("hours before and after their samples were removed:\n%s", d)
	}
	days := func(f store.SampleFilter) []record.Summary {
		t.Helper()
		all, err := s.Days(within(t), f)
		if err != nil {
			t.Error(err)
		}
		return all
	}
	day := record.Summary{Pair: record.Pair{From: "host-1", To: "db"}, Begin: midnight(), End: midnight().Add(24 * time.Hour), Turns: 5}
	day.Add(record.RTTMedian, 5)
	later := day
	later.Begin, later.End = day.End, day.End.Add(24*time.Hour)
	for _, d := range []record.Summary{later, day, {Pair: day.Pair, Begin: day.Begin}, day} {
		if err := s.PutDay(within(t), d); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []store.SampleFilter{{}, {Pair: day.Pair}, {From: day.Begin, To: later.End}} {
		if d := cmp.Diff([]record.Summary{day, later}, days(f)); d != "" {
			t.Errorf("days of %+v:\n%s", f, d)
		}
	}
	if got := days(store.SampleFilter{From: later.Begin}); len(got) != 1 {
		t.Errorf("days from the second: %+v", got)
	}
	prune(0, 48*time.Hour)
	if got := x.Hours(t, s); !got[0].Begin.Equal(midnight().Add(24 * time.Hour)) {
		t.Errorf("the first hour is %v", got[0].Begin)
	}
	if got := days(store.SampleFilter{}); len(got) != 1 || !got[0].Begin.Equal(later.Begin) {
		t.Errorf("days that are left: %+v", got)
	}
}

// What no store accepts does not keep the rest out.
func (x contract) unfitSamples(t *testing.T) {
	s := x.Open(t)
	good, late, name := sampled(1, 0)[0], sampled(1, 1)[0], sampled(1, 2)[0]
	late.Begin = time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)
	name.From, name.Error = "'\x1b\";\xff", "\u202e\n"
	good.Values[record.Delay], good.Values[record.RTTMin], good.Values["new metric"] = math.NaN(), 1e300, 7.25
	if err := s.PutSamples(within(t), []record.Sample{late, good, name}); !errors.Is(err, store.ErrPartly) {
		t.Errorf("a sample of the year 12026: %v", err)
	}
	putSamples(t, s)
	putSamples(t, s, sampled(1, 120)...)
	got := samples(t, s, store.SampleFilter{Pair: record.Pair{From: "host-1"}})
	if len(got) != 2 || len(got[0].Values) != 9 || got[0].Values["new metric"] != 7.25 {
		t.Errorf("stored: %+v", got)
	}
	if got := samples(t, s, store.SampleFilter{Pair: record.Pair{From: name.From}}); len(got) != 1 || got[0].Error != name.Error {
		t.Errorf("stored: %+v", got)
	}
	cancelled, cancel := context.WithCancel(within(t))
	cancel()
	errs := map[string]error{"put": s.PutSamples(cancelled, sampled(1, 130)), "prune": s.PruneSamples(cancelled, midnight(), 1, 1)}
	for _, err := range s.Samples(cancelled, store.SampleFilter{}) {
		errs["samples"] = err
	}
	for name, err := range errs {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
