package stat

import "thru/internal/measure"

// By how much a guardrail may differ before it counts as worse.
const (
	costPct     = 10  // of the CPU per Gb/s and of the round trip under load
	lossPoints  = 0.1 // percent of what was sent
	jainPoints  = 0.05
	leastRTTNs  = 1e6 // a smaller increase of the round-trip time does not matter
	leastCostPP = 1   // percent of a core per Gb/s, likewise
)

// Guardrails that Price compares with the gain.
const (
	railCPU  = "CPU per Gb/s"
	railLoss = "loss"
	railRTT  = "RTT under load"
)

// guardrails returns the figures that may have paid for a gain: CPU per Gb/s of all hosts together, and the worst
// loss and round-trip time under load of the pairs.
func guardrails(base, variant *team) []measure.Guardrail {
	guardrails := []struct {
		name, unit string
		of         func(*team) *float64
		worse      func(a, b float64) bool
		why        string
	}{
		{railCPU, "pct_per_gbps", cpuCost, func(a, b float64) bool { return b > a*(1+costPct/100.0) && b > a+leastCostPP }, "the CPU cost of the test is not known"},
		{railLoss, "pct", worstPair(lossPct), func(a, b float64) bool { return b > a+lossPoints }, "neither end counts losses"},
		{railRTT, "ns", worstPair(loadedRTT), func(a, b float64) bool { return b > a*(1+costPct/100.0) && b > a+leastRTTNs }, "no round trip was measured under load"},
		{"fairness", "fairness", fairnessOf, func(a, b float64) bool { return b < a-jainPoints }, "there is one flow of one stream"},
	}
	var all []measure.Guardrail
	for _, r := range guardrails {
		g := measure.Guardrail{Name: r.name, Unit: r.unit, Base: r.of(base), Variant: r.of(variant)}
		if g.Base == nil || g.Variant == nil {
			g.NotJudged = r.why
		} else {
			g.Worse = r.worse(*g.Base, *g.Variant)
		}
		all = append(all, g)
	}
	return all
}

// cpuCost returns the CPU of all hosts per Gb/s carried, in percent of a core, if it is known of each of them
// (cpuCostOf).
func cpuCost(t *team) *float64 {
	if len(t.repeats) == 0 || len(t.bulk) == 0 {
		return nil
	}
	cores, bps := 0.0, 0.0
	quiet := &team{cells: t.cells, bulk: t.bulk, repeats: t.repeats} // what it records is recorded already
	for _, h := range quiet.hosts() {
		if h.CPU == nil || h.CPU.PctPerGbps == nil {
			return nil
		}
		cores += h.CPU.Cores
		bps += measure.Value(h.ReceivedBps)
	}
	return Known(PctPerGbps(cores, bps))
}

// worstPair returns the maximum of a figure over the data flows.
func worstPair(of func(*measure.Cell) *float64) func(*team) *float64 {
	return func(t *team) *float64 {
		if len(t.bulk) == 0 {
			return nil
		}
		if r := worstOf("", t.bulk, of, "not known"); r.why == "" {
			return Known(r.value)
		}
		return nil
	}
}

// fairnessOf returns that of the group, or of a single flow over its streams.
func fairnessOf(t *team) *float64 {
	quiet := &team{cells: t.cells, bulk: t.bulk, repeats: t.repeats}
	if len(t.repeats) > 0 {
		quiet.fairness()
	}
	if quiet.group.Fairness == nil && len(t.bulk) == 1 {
		return t.bulk[0].Fairness
	}
	return quiet.group.Fairness
}
