package stat

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"thru/internal/measure"
)

// TestDamagedKinds summarises datagrams, searches and requests with lost or wrong parts: no panic, figures that
// JSON can encode, no more loss attributed to places than there was, and a reason for each absent figure.
func TestDamagedKinds(t *testing.T) {
	made := timesOf(t, 1000, 1000, 1000)
	rapid.Check(t, func(t *rapid.T) {
		var c *measure.Cell
		switch kind := rapid.SampledFrom([]string{"udp", "search", "requests"}).Draw(t, "kind"); kind {
		case "requests":
			c = requestCell(new(*made), new(*made))
		default:
			c = datagramCell(rapid.Int64Range(0, 1e6).Draw(t, "lost"))
			c.Spec.Search = kind == "search"
			h := flow(c).Receiver.Host
			h.NIC.RxDropped, h.Proto["Udp.RcvbufErrors"] = rapid.Uint64().Draw(t, "dropped"), rapid.Uint64().Draw(t, "full")
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		rate := rapid.SampledFrom([]float64{0, 0.001, 0.01, 0.1, 0.5}).Draw(t, "rate")
		for i := range c.Runs {
			damage(reflect.ValueOf(&c.Runs[i].Flows).Elem(), r, rate)
		}
		Summarise(c, twoHosts(), Link{RateBps: rapid.SampledFrom([]int64{0, 10e9}).Draw(t, "stated")})
		checkKinds(t, c)
	})
}

func checkKinds(t *rapid.T, c *measure.Cell) {
	figures := *c
	figures.Runs = nil
	if _, err := json.Marshal(figures); err != nil {
		t.Fatalf("the summary is no JSON: %v", err)
	}
	if !Measured(c) && !isMissing(c, "goodput_bps") && !isMissing(c, "transactions_per_s") {
		t.Fatalf("nothing is measured, without a reason: %v", c.Missing)
	}
	if isUDP(c) && c.Datagrams == nil != isMissing(c, "datagrams") {
		t.Fatalf("datagrams %+v, missing %v", c.Datagrams, c.Missing)
	}
	if d := c.Datagrams; d != nil && (d.Lost < 0 || d.Received < 0 || d.LossPct < 0 || d.LossPct > 100 || d.Fragments < 0) {
		t.Fatalf("%+v", *d)
	}
	for _, p := range c.LossPlaces {
		if p.Packets <= 0 || p.Counter == "" {
			t.Fatalf("%+v", p)
		}
	}
	if v := Verdict([]measure.Cell{*c}); v != nil && asks(c) {
		t.Fatalf("requests are judged: %+v", *v)
	}
}

// TestJudgeable: a cell that was not meant to fill the link decides nothing.
func TestJudgeable(t *testing.T) {
	cell := func(share float64, change func(*measure.Cell)) measure.Cell {
		c := measure.Cell{From: "a", To: "b", Goodput: &measure.Figure{}, Ceiling: &measure.Ceiling{Bps: 957e6, SharePct: share}}
		if change != nil {
			change(&c)
		}
		return c
	}
	took := func(ns int64) func(*measure.Cell) {
		return func(c *measure.Cell) {
			c.Spec.Amount = 1e6
			c.Runs = []measure.Run{{Flows: []measure.Flow{{Receiver: &measure.Evidence{MeasuredNs: ns}}}}}
		}
	}
	for name, tt := range map[string]struct {
		cell   measure.Cell
		judged bool
	}{
		"plain":                 {cell(20, nil), true},
		"a rate below":          {cell(20, func(c *measure.Cell) { c.Spec.Rate = 200e6 }), false},
		"a rate above":          {cell(20, func(c *measure.Cell) { c.Spec.Rate = 2e9 }), true},
		"requests":              {cell(20, func(c *measure.Cell) { c.Spec.Traffic = measure.CRR }), false},
		"an amount in no time":  {cell(20, took(900e6)), false},
		"an amount that lasted": {cell(20, took(2e9)), true},
	} {
		if v := Verdict([]measure.Cell{cell(99, nil), tt.cell}); v == nil || v.Pass == tt.judged {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
