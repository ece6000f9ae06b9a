package stat

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"thru/internal/measure"
)

// checkSummary checks what must be true of any evidence: no panic, figures that JSON can encode and that are
// consistent, and a reason for each absent one.
func checkSummary(t *rapid.T, c *measure.Cell, facts map[string]*measure.Facts, link Link) {
	Summarise(c, facts, link)
	figures := *c
	figures.Runs = nil // the input is not judged
	if _, err := json.Marshal(figures); err != nil {
		t.Fatalf("the summary is no JSON: %v", err)
	}
	if g := c.Goodput; g != nil && (g.Low > g.Value*(1+1e-9) || g.High < g.Value*(1-1e-9) || g.Value < 0 || g.Runs < 1) {
		t.Fatalf("goodput %+v", *g)
	}
	absent := map[string]bool{
		"goodput_bps": c.Goodput == nil, "ceiling": c.Ceiling == nil, "reconciled": c.Reconciled == nil, "bdp_bytes": c.BDP == nil,
		"rtt_idle_ns": c.RTTIdle == nil, "rtt_loaded_ns": c.RTTLoaded == nil, "retransmits_segments": c.Retransmits == nil,
		"sender_cpu": c.SenderCPU == nil, "receiver_cpu": c.ReceiverCPU == nil, "mean_packet_bytes": c.MeanPacket == nil,
	}
	for _, m := range c.Missing {
		if gone, figure := absent[m.Fact]; figure && !gone || m.Why == "" {
			t.Fatalf("%+v is said of a figure that is there, or without a reason", m)
		}
		delete(absent, m.Fact)
	}
	for fact, gone := range absent {
		if gone {
			t.Fatalf("%s is absent without a reason: %v", fact, c.Missing)
		}
	}
	if v := Verdict([]measure.Cell{*c}); v != nil && v.Pass && (v.Share < PassPct || v.Share > AboveCeilingPct) {
		t.Fatalf("verdict %+v", *v)
	}
}

// damage removes and corrupts parts of recorded evidence at random.
func damage(v reflect.Value, r *rand.Rand, rate float64) {
	if hit := r.Float64() < rate; hit && v.CanSet() {
		v.SetZero()
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			damage(v.Elem(), r, rate)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			damage(v.Field(i), r, rate)
		}
	case reflect.Slice:
		if n := v.Len(); n > 0 && r.Float64() < rate {
			v.Set(v.Slice(0, r.IntN(n)))
		}
		for i := range v.Len() {
			damage(v.Index(i), r, rate)
		}
	case reflect.Int64:
		if r.Float64() < rate {
			v.SetInt([]int64{-1, 1, math.MaxInt64, math.MinInt64}[r.IntN(4)])
		}
	case reflect.Uint32:
		if r.Float64() < rate {
			v.SetUint(math.MaxUint32)
		}
	}
}

// TestSummariseDamaged summarises evidence with lost or wrong parts.
func TestSummariseDamaged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := recorded(rapid.SliceOfN(rapid.Float64Range(0, 11), 0, 6).Draw(t, "gbps")...)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		rate := rapid.SampledFrom([]float64{0, 0.001, 0.01, 0.1, 0.5}).Draw(t, "rate")
		for i := range c.Runs {
			damage(reflect.ValueOf(&c.Runs[i].Flows).Elem(), r, rate)
			c.Runs[i].Partial = r.Float64() < rate
		}
		facts := twoHosts()
		for _, f := range facts {
			damage(reflect.ValueOf(f).Elem(), r, rate)
		}
		link := Link{RateBps: rapid.SampledFrom([]int64{0, 0, 10e9}).Draw(t, "stated")}
		checkSummary(t, c, facts, link)
	})
}
