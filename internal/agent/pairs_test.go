package agent

import (
	"testing"

	"thru/internal/bus"
)

// TestPairs: a client reaches what measures the pairs of watches, and a closed agent leaves nothing of it.
func TestPairs(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	c, err := bus.InProcess(a)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const watch = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	r, err := bus.Call(t.Context(), c, bus.Reflect, bus.ReflectRequest{Watch: watch, LeaseNs: 1e12, From: "a", To: "b", IntervalNs: 1e9})
	if err != nil || r.Port == 0 || r.SSID == 0 || r.Token == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	pairs, err := bus.Call(t.Context(), c, bus.Pairs, bus.PairsRequest{Watch: watch, LeaseNs: 1e12, Pairs: []bus.Pair{{From: "a", To: "b", Target: "nowhere", IntervalNs: 1e9}}})
	if err != nil || len(pairs.Refused) != 1 {
		t.Errorf("%+v, %v", pairs, err)
	}
	if s, err := bus.Call(t.Context(), c, bus.Samples, bus.SamplesRequest{Watch: watch, LeaseNs: 1e12}); err != nil || len(s.Samples) > 0 {
		t.Errorf("%+v, %v", s, err)
	}
	a.Close()
	if _, err := bus.Call(t.Context(), c, bus.Samples, bus.SamplesRequest{Watch: watch, LeaseNs: 1e12}); err == nil {
		t.Error("a closed agent answers")
	}
}
