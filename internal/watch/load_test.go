package watch

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
	"thru/internal/control"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/watch/judge"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

// endWith returns an end point whose interface eth0 has traffic, and whose other one has more.
func endWith(t *testing.T, name string, rx, tx float64, change func(*bus.FactsReply)) *control.EndPoint {
	t.Helper()
	r := bus.FactsReply{Route: &measure.Route{Interface: "eth0"}, Facts: measure.Facts{Load: &measure.Load{
		Interfaces: []measure.InterfaceLoad{{Name: "eth1", RxBps: 9e9, TxBps: 9e9}, {Name: "eth0", RxBps: rx, TxBps: tx}},
	}}}
	if change != nil {
		change(&r)
	}
	h := bustest.New()
	bustest.Reply(h, bus.Facts, r)
	return &control.EndPoint{Name: name, Client: bustest.NewClient(h.Answers()...), DataHosts: []string{"10.0.0.7"}}
}

func TestLoad(t *testing.T) {
	byAddress := func(r *bus.FactsReply) {
		r.Route = nil
		r.Facts.Interfaces = []measure.Interface{{Name: "eth1", Addrs: []string{"10.0.0.8/24"}}, {Name: "eth0", Addrs: []string{"10.0.0.7/24"}}}
	}
	unread := func(r *bus.FactsReply) { r.Facts.NotChecked = []measure.NotChecked{{Fact: "load.interfaces"}} }
	for _, c := range []struct {
		name     string
		from, to *control.EndPoint
		share    float64 // NaN: not known
		at       string  // the end that is over the bar
	}{
		{"idle", endWith(t, "a", 0, 0, nil), endWith(t, "b", 0, 0, nil), 0, ""},
		{"below the bar", endWith(t, "a", 0, 290e6, nil), endWith(t, "b", 100e6, 0, nil), 0.29, ""},
		{"the other direction", endWith(t, "a", 900e6, 0, nil), endWith(t, "b", 0, 900e6, nil), 0, ""},
		{"the sender sends", endWith(t, "a", 0, 500e6, nil), endWith(t, "b", 310e6, 0, nil), 0.5, "a"},
		{"the receiver receives", endWith(t, "a", 0, 310e6, nil), endWith(t, "b", 500e6, 0, nil), 0.5, "b"},
		{"by its address", endWith(t, "a", 0, 0, byAddress), endWith(t, "b", 500e6, 0, byAddress), 0.5, "b"},
		{"one end is not read", endWith(t, "a", 0, 0, unread), endWith(t, "b", 200e6, 0, nil), math.NaN(), ""},
		{"one end is not read, the other one is busy", endWith(t, "a", 0, 0, unread), endWith(t, "b", 500e6, 0, nil), 0.5, "b"},
	} {
		h := Hosts{Bar: 0.3, Link: plan.Link{RateBps: 1e9}, ProbeEvery: time.Second, Paths: []schedule.Path{{Pair: pair}}}
		l := h.load(t.Context(), pair, map[string]*control.EndPoint{"a": c.from, "b": c.to})
		if known := l.err == nil; known == math.IsNaN(c.share) || known && math.Abs(l.share-c.share) > 1e-5 || l.isOver() != (c.at != "") || c.at != "" && l.end != c.at {
			t.Errorf("%s: %+v", c.name, l)
		}
		s := deferred(schedule.Task{Pair: pair, Layer: record.TCP}, time.Now(), l)
		if c.at != "" && (s.State != record.Deferred || s.Reason != record.Load || len(s.Values) != 1 || s.Values[record.OtherLoad] != l.share || s.Error == "") {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

// TestLoadedTurn: before a turn under load no traffic is requested.
func TestLoadedTurn(t *testing.T) {
	ends := map[string]*control.EndPoint{"a": endWith(t, "a", 0, 0, nil), "b": endWith(t, "b", 400e6, 0, nil)}
	h := Hosts{Bar: 0.3, Link: plan.Link{RateBps: 1e9}, Connect: func(_ context.Context, name string) (*control.EndPoint, func(), error) {
		return ends[name], func() {}, nil
	}}.Open(nil)
	s := h.Turn(t.Context(), schedule.Task{Pair: pair, Layer: record.TCP})
	if s.State != record.Deferred || s.Reason != record.Load {
		t.Errorf("%+v", s)
	}
	h.Bar = 0
	if s := h.Turn(t.Context(), schedule.Task{Pair: pair, Layer: record.TCP}); s.Reason == record.Load {
		t.Errorf("without a bar: %+v", s)
	}
}

// loaded is a fleet with other traffic until some time.
type loaded struct {
	*fakeFleet
	until time.Time
	asked []time.Time
}

func (f *loaded) Turn(ctx context.Context, t schedule.Task) record.Sample {
	if now := time.Now(); now.Before(f.until) {
		f.turns = append(f.turns, now)
		return deferred(t, now, load{end: "b", bps: 5e8, share: 0.5, bar: 0.3})
	}
	return f.fakeFleet.Turn(ctx, t)
}

func (f *loaded) Explain(ctx context.Context, x Unexplained) (judge.Explanation, error) {
	f.asked = append(f.asked, time.Now())
	if time.Now().Before(f.until) {
		return judge.Explanation{Deferred: "busy"}, nil
	}
	return f.fakeFleet.Explain(ctx, x)
}

// TestDeferred: turns under load are deferred one by one, without a burst after it, and are no change. An alarm comes without its cause, which follows.
func TestDeferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		lossy := begin.Add(4 * 24 * time.Hour)
		f := &loaded{fakeFleet: &fakeFleet{goodput: steady, takes: 4 * time.Second}, until: begin.Add(5 * 24 * time.Hour)}
		f.loss = func(at time.Time) float64 {
			if at.Before(lossy) {
				return 0
			}
			return 0.02
		}
		events, samples := watchFor(t, f.fakeFleet, 6*24*time.Hour, func(c *Config) { c.Fleet = f })
		for i, at := range f.turns[1:] {
			if at.Sub(f.turns[i]) < 110*time.Minute {
				t.Errorf("turns at %v and %v", f.turns[i], at)
			}
		}
		for _, s := range samples {
			if s.Layer == record.TCP && (s.State == record.Deferred) != s.Begin.Before(f.until) {
				t.Errorf("%+v", s)
			}
		}
		var told []record.Alarm
		for _, e := range events {
			switch {
			case e.Kind == record.AlarmRaised || e.Kind == record.AlarmUpdated:
				told = append(told, *e.Alarm)
			case e.State == record.Down || e.State == record.Deferred:
				t.Errorf("%+v", e) // probes judge the path all the time
			}
		}
		if len(told) != 2 || told[0].Deferred != "busy" || told[0].Findings != nil || told[1].Deferred != "" || told[1].Result != "r1" || len(f.explained) != 1 {
			t.Errorf("told %+v", told)
		}
		tries := slices.IndexFunc(f.asked, func(at time.Time) bool { return !at.Before(f.until) })
		if tries != len(f.asked)-1 || tries < 2 {
			t.Errorf("asked at %v", f.asked)
		}
	})
}
