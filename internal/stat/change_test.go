package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

// pairOfCells returns a state before a change and that with it, by the rates of their runs in Gb/s; a rate of 0 is
// a stalled run.
func pairOfCells(before, with []float64) (a, b *measure.Cell) {
	cell := func(group int, rates []float64) *measure.Cell {
		c := &measure.Cell{From: "a", To: "b", Group: group, Protocol: measure.TCP, Spec: measure.Spec{Protocol: measure.TCP, Duration: 2e9}}
		for n, g := range rates {
			r := part{"a", "b", 0, []float64{g, g}, 0}.run(n)
			if g == 0 {
				r.Partial, r.Error, r.Goodput = true, &measure.Error{Message: "connected, but no data came within 8s"}, nil
				r.Flows[0].Receiver.MeasuredNs, r.Flows[0].Receiver.Bytes, r.Flows[0].Receiver.Bins = 0, 0, nil
			}
			c.Runs = append(c.Runs, r)
		}
		Summarise(c, nil, Link{})
		return c
	}
	return cell(0, before), cell(1, with)
}

// A change is judged at the requested level, and one that cures a stall is an improvement.
func TestAB(t *testing.T) {
	for name, tt := range map[string]struct {
		before, with []float64
		level        float64
		want         string
	}{
		"better":             {around(5, 0.3, 7, 1), around(5.5, 0.3, 7, 2), 0.975, measure.Improved},
		"too few":            {around(5, 0.3, 6, 1), around(5.5, 0.3, 6, 2), 0.975, measure.Undecided},
		"worse":              {around(5, 0.3, 7, 1), around(4, 0.3, 7, 2), 0.975, measure.Worse},
		"the same":           {around(5, 0.1, 7, 1), around(5, 0.1, 7, 2), 0.975, measure.Equivalent},
		"a stall is cured":   {make([]float64, 7), around(5, 0.3, 7, 2), 0.975, measure.Improved},
		"a stall is caused":  {around(5, 0.3, 7, 2), make([]float64, 7), 0.975, measure.Worse},
		"a stall stays":      {make([]float64, 7), make([]float64, 7), 0.975, measure.Equivalent},
		"some of them stall": {[]float64{0, 1, 0, 1, 0, 1, 0}, around(5, 0.3, 7, 2), 0.975, measure.Improved},
		"none was made":      {nil, nil, 0.975, measure.Undecided},
	} {
		a, b := pairOfCells(tt.before, tt.with)
		c := AB(a, b, tt.level)
		if c.Outcome != tt.want || c.Base != Before || c.Variant != With || c.Groups != [2]int{0, 1} || c.Reason == "" || c.What != "a -> b" {
			t.Errorf("%s: %+v", name, c)
		}
	}
	a, b := pairOfCells(make([]float64, 7), around(5, 0.3, 7, 2))
	if c := AB(a, b, 0.975); c.BaseValue == nil || *c.BaseValue != segment*8/2.0 || Carried(a, 0) != *c.BaseValue {
		t.Errorf("a stall is worth %v", c.BaseValue)
	}
}

// An aborted run counts over its whole intended time, not until the stall.
func TestCutRunsCountInFull(t *testing.T) {
	a, _ := pairOfCells([]float64{1}, nil)
	whole := Carried(a, 0)
	a.Runs[0].Partial, a.Runs[0].Error = true, &measure.Error{Message: "cut"}
	e := a.Runs[0].Flows[0].Receiver
	e.Bytes, e.MeasuredNs = e.Bytes/10, e.MeasuredNs/10
	if got := Carried(a, 0); got > whole/9 {
		t.Errorf("%g of %g", got, whole)
	}
}

func TestFutileAndPromising(t *testing.T) {
	for name, tt := range map[string]struct {
		before, with []float64
		futile       bool
	}{
		"two pairs":        {[]float64{5, 5}, []float64{4, 4}, false},
		"none better":      {[]float64{5, 5, 5}, []float64{4, 5, 5.05}, true},
		"one better":       {[]float64{5, 5, 5}, []float64{4, 5, 5.5}, false},
		"never any better": {[]float64{5, 5, 5, 5}, []float64{4, 5, 5, 5}, true},
	} {
		if a, b := pairOfCells(tt.before, tt.with); Futile(a, b) != tt.futile {
			t.Errorf("%s: %v", name, !tt.futile)
		}
	}
	a, b := pairOfCells([]float64{5, 5, 5, 5, 5, 5, 5}, []float64{5.5, 5.4, 5.6, 5.05, 5.7, 5.6, 4.9})
	if c := AB(a, b, 0.975); c.Outcome != measure.Undecided || !Promising(c) {
		t.Errorf("%+v", c)
	}
	if Promising(AB(b, a, 0.975)) {
		t.Error("a loss is promising")
	}
}

// A guardrail can outweigh a gain; those of a path's load do not if the path was far from full before.
func TestPrice(t *testing.T) {
	rail := []measure.Guardrail{{Name: "loss", Unit: "pct", NotJudged: "x"}, {Name: "RTT under load", Unit: "ns", Base: new(20e6), Variant: new(140e6), Worse: true}}
	for _, tt := range []struct {
		gain       float64
		guardrails []measure.Guardrail
		want       string
	}{{5, rail, "RTT under load changed from 20.0 ms to 140 ms"}, {300, rail, ""}, {5, rail[:1], ""}} {
		c := measure.Comparison{ChangePct: &tt.gain, Guardrails: tt.guardrails}
		if got := Price(&c); got != tt.want {
			t.Errorf("%+.0f%%: %q", tt.gain, got)
		}
	}
	for _, g := range []measure.Guardrail{{Name: "CPU per Gb/s", Unit: "pct_per_gbps"}, {Name: "loss", Unit: "pct"}, {Name: "fairness", Unit: "fairness"}} {
		g.Worse, g.Base, g.Variant = true, new(1.0), new(2.0)
		if got := Price(&measure.Comparison{ChangePct: new(3.0), Guardrails: []measure.Guardrail{g}}); !strings.HasPrefix(got, g.Name+" changed from 1") {
			t.Errorf("%q", got)
		}
		full := Price(&measure.Comparison{ChangePct: new(900.0), Guardrails: []measure.Guardrail{g}})
		if (full == "") != (g.Name != "fairness") {
			t.Errorf("%s of a path that was far from full: %q", g.Name, full)
		}
	}
	// From a tuning on a busy machine: 212% of a core per Gb/s before, 241% with a gain of 73%.
	for _, tt := range []struct {
		gain, cost float64
		dear       bool
	}{{73, 241, false}, {26, 241, true}, {12, 236, true}, {73, 292, true}, {200, 400, false}} {
		g := measure.Guardrail{Name: "CPU per Gb/s", Unit: "pct_per_gbps", Base: new(212.0), Variant: &tt.cost, Worse: true}
		if got := Price(&measure.Comparison{ChangePct: &tt.gain, Guardrails: []measure.Guardrail{g}}); (got != "") != tt.dear {
			t.Errorf("%+.0f%% for %.0f%% of a core a Gb/s instead of 212%%: %q", tt.gain, tt.cost, got)
		}
	}
}

// stepDown finds what its definition says, also in a time line of a million seconds, for which testing all pairs
// takes hours.
func TestStepDown(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		bins := make([]float64, random.IntN(9))
		for i := range bins {
			bins[i] = math.Round(math.Exp(3 * random.Float64()))
		}
		want := 0
		for n := 1; n <= len(bins)-2 && want == 0; n++ {
			if slices.Min(bins[:n]) > 2*slices.Max(bins[n:]) {
				want = n
			}
		}
		if at, _, _, found := stepDown(bins); at != want || found != (want > 0) {
			t.Fatalf("%v: a step at %d, %v; want %d", bins, at, found, want)
		}
	}
	long := slices.Repeat([]float64{5, 5.5, 6}, 300_000)
	if at, _, _, found := stepDown(long); found {
		t.Errorf("a step at %d of a flat course", at)
	}
	long = append(long, slices.Repeat([]float64{1, 2}, 50_000)...)
	if at, before, after, found := stepDown(long); !found || at != 900_000 || before != 5.5 || after != 1.5 {
		t.Errorf("a step at %d from %g to %g, %v", at, before, after, found)
	}
}

func TestMedianDeviation(t *testing.T) {
	near(t, "of 1 to 5", MedianDeviation([]float64{1, 2, 3, 4, 5}), 100.0/3, 1e-9)
	near(t, "of nothing", MedianDeviation(nil), 100, 0)
	near(t, "of zeros", MedianDeviation([]float64{0, 0}), 100, 0)
	near(t, "rising", Rising([]float64{1, 2, 3}), 1, 0)
	near(t, "falling", Rising([]float64{3, 2, 1}), 0, 0)
	near(t, "rising of nothing", Rising(nil), 0, 0)
	near(t, "more than all", Pct(7, 5), 100, 0)
	near(t, "of none", Pct(7, 0), 0, 0)
	if c, ok := Correlation([]float64{1, 2, 3}, []float64{6, 4, 2}); !ok || math.Abs(c+1) > 1e-9 {
		t.Errorf("correlation %g, %v", c, ok)
	}
	if _, ok := Correlation([]float64{1, 1}, []float64{6, 4}); ok {
		t.Error("what does not vary has a correlation")
	}
}
