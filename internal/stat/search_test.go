package stat

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"thru/internal/measure"
)

func TestSearchCapacity(t *testing.T) {
	bin := func(span, bytes, packets, lost int64) measure.StreamBin {
		return measure.StreamBin{Span: span, Bytes: bytes, Datagrams: &measure.Datagrams{Packets: packets, Lost: lost}}
	}
	e := &measure.Evidence{Bins: []measure.StreamBin{
		bin(1e9, 100e6, 67_935, 0), bin(1e9, 119.5e6, 81_182, 820), bin(1e9, 110e6, 74_728, 5000), bin(0.7e9, 100e6, 67_935, 0), {Span: 1e9},
	}}
	found := SearchCapacity(e, Link{MTU: 1500}, 1472)
	near(t, "capacity", *found.CapacityBps, 956e6, 1)
	near(t, "with headers", *found.IPCapacityBps, 956e6*1500/1472, 1)
	near(t, "lost in that second", *found.LossPct, 1, 1e-4)
	found = SearchCapacity(e, Link{MTU: 1500, IPv6: true}, 2888) // two fragments, each with headers of 48
	near(t, "with headers of fragments", *found.IPCapacityBps, 956e6*(2888+8+2*48)/2888, 1)
	late := &measure.Evidence{Bins: []measure.StreamBin{bin(1e9, 125e5, 8491, 90), bin(1e9, 12e6, 8152, 90), bin(1e9, 13e6, 8831, 90)}}
	near(t, "what was read late", *SearchCapacity(late, Link{}, 1472).CapacityBps, 100e6, 1)
	for _, none := range []*measure.Evidence{nil, {}, {Bins: []measure.StreamBin{{Span: 1e9}}}} {
		if found := SearchCapacity(none, Link{}, 1472); found.CapacityBps != nil || found.Why == "" {
			t.Errorf("%+v", found)
		}
	}
}

func TestSearchCell(t *testing.T) {
	c := datagramCell(1000)
	c.Spec.Search, c.Spec.Rate = true, 0
	c.Search = &measure.Search{LosslessBps: new(9e8), Trials: []measure.Trial{{Pass: true}}, Why: "confirmed"}
	Summarise(c, twoHosts(), Link{RateBps: 1.1e9})
	s := c.Search
	if s == nil || s.CapacityBps == nil || s.LosslessBps == nil || len(s.Trials) != 1 || s.Why != "confirmed" {
		t.Fatalf("%+v", s)
	}
	near(t, "best second", *s.CapacityBps, 1.001e9, 1e6)
	near(t, "share of the ceiling", c.Ceiling.SharePct, 100*1.001e9/(1.1e9*1472/1538), 0.1)
	if len(c.Warnings) > 0 {
		t.Errorf("%q", c.Warnings)
	}
	r := flow(c).Receiver
	r.Bins[len(r.Bins)-1].Bytes *= 2
	if Summarise(c, twoHosts(), Link{}); !warned(c, "still rising when the search ended") {
		t.Errorf("%q", c.Warnings)
	}
}

// search runs the trials over a path that loses above a rate.
func search(capacity float64, passes func(bps float64) bool) (*LosslessSearch, measure.Search) {
	s := NewLosslessSearch(capacity)
	for range 100 { // far more than there may be
		rate, done := s.Next()
		if done {
			break
		}
		length := 5.0
		if s.Confirming() {
			length = 30
		}
		s.Report(measure.Trial{AskedBps: rate, ReceivedBps: rate, Seconds: length, Pass: passes(rate)})
	}
	var out measure.Search
	s.Outcome(&out)
	return s, out
}

// TestLosslessSearch: on a path that loses above a rate, the search finds it to 2%, from below, within the limit
// of trials, the last of which confirms it.
func TestLosslessSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.Float64Range(1e5, 1e12).Draw(t, "capacity")
		clean := capacity * rapid.Float64Range(1.1/losslessDepth, 1.5).Draw(t, "share")
		_, out := search(capacity, func(bps float64) bool { return bps <= clean })
		most := min(capacity, clean)
		if out.LosslessBps == nil || *out.LosslessBps > most || *out.LosslessBps < most*0.98 {
			t.Fatalf("%g passes of %g: %+v", clean, capacity, out)
		}
		last := out.Trials[len(out.Trials)-1]
		if len(out.Trials) > MaxTrials || last.Seconds != 30 || !last.Pass {
			t.Fatalf("%d trials, the last %+v", len(out.Trials), last)
		}
	})
}

// TestLosslessSearchOfAny: whatever the trials' results, it ends, stays within its bounds, and reports no rate
// that has not passed.
func TestLosslessSearchOfAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.Float64().Draw(t, "capacity")
		_, out := search(capacity, func(float64) bool { return rapid.Bool().Draw(t, "pass") })
		if len(out.Trials) > MaxTrials || out.Why == "" {
			t.Fatalf("%+v", out)
		}
		passed := out.LosslessBps == nil
		for _, trial := range out.Trials {
			if trial.AskedBps > capacity || trial.AskedBps <= 0 || math.IsInf(trial.AskedBps, 0) {
				t.Fatalf("a trial at %g of %g", trial.AskedBps, capacity)
			}
			passed = passed || trial.Pass && trial.AskedBps == *out.LosslessBps
		}
		if !passed {
			t.Fatalf("no trial at %g has passed: %+v", *out.LosslessBps, out.Trials)
		}
	})
}

func TestLosslessSearchGivesUp(t *testing.T) {
	for capacity, says := range map[float64]string{1e9: "no trial of", 0: "no trial was made"} {
		if _, out := search(capacity, func(float64) bool { return false }); out.LosslessBps != nil || !strings.Contains(out.Why, says) {
			t.Errorf("%+v", out)
		}
	}
}

func TestTrialOf(t *testing.T) {
	clean, lossy := datagramCell(0), datagramCell(1)
	if got := TrialOf(1e9, flow(clean)); !got.Pass || got.Seconds != 10 || got.Sent != 934_102 || got.ReceivedBps != 1e9 {
		t.Errorf("%+v", got)
	}
	if got := TrialOf(1e9, flow(lossy)); got.Pass || got.Lost != 2 {
		t.Errorf("a loss: %+v", got)
	}
	if TrialOf(1.1e9, flow(clean)).Pass {
		t.Error("a sender that was too slow passes")
	}
	flow(clean).Sender = nil
	if TrialOf(1e9, flow(clean)).Pass || TrialOf(1e9, nil).Pass || TrialOf(1e9, &measure.Flow{}).Pass {
		t.Error("a trial without evidence passes")
	}
}
