package stat

import (
	"fmt"
	"math"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Before and With are the variants of a tried change (VariantAxis).
const (
	Before = "before"
	With   = "with"
)

// AB compares two cells of one direction whose runs alternated: the state before a change, and that with it. It is
// Compare's test at a level that the caller chooses, such as 0.99, since several comparisons share the error
// probability.
//
// Stalled traffic counts here, since a change may cure or cause a stall: an incomplete run counts as what it
// carried over its intended time, and none counts as less than one segment.
func AB(before, with *measure.Cell, level float64) measure.Comparison {
	x, a, b := abOf(before, with)
	x.settle(level)
	if x.Pairs > 0 {
		x.P = new(x.p)
	}
	if why := noTest(a, b); why != "" && x.Pairs > 0 {
		x.Outcome, x.Reason = measure.NotCompared, why
	} else {
		x.Guardrails = guardrails(a.team, b.team)
	}
	return x.Comparison
}

// abOf pairs the runs of a change.
func abOf(before, with *measure.Cell) (x *versus, a, b variant) {
	a = variant{name: Before, team: newTeam([]*measure.Cell{before})}
	b = variant{name: With, team: newTeam([]*measure.Cell{with})}
	x = &versus{Comparison: measure.Comparison{
		Base: Before, Variant: With, What: pairName(before), Figure: "goodput_bps", Groups: [2]int{before.Group, with.Group},
	}}
	x.pairUp(carriedIn(before), carriedIn(with))
	return x, a, b
}

// segment is the payload of a TCP segment at an MTU of 1500 with timestamps, in bytes.
const segment = 1448

// carriedIn returns what each run of a cell carried, in bit/s, by its number.
func carriedIn(c *measure.Cell) map[int]float64 {
	all := map[int]float64{}
	for i := range c.Runs {
		p := pairOf(c, &c.Runs[i])
		seconds := float64(c.Spec.Duration) / 1e9
		rate, ok := p.rate()
		switch {
		case seconds <= 0:
			seconds = 1
		case !ok || !p.complete():
			rate = 0
			if p.receiver != nil {
				rate = float64(max(p.receiver.Bytes, 0)) * 8 / seconds
			}
		}
		if rate = max(rate, segment*8/seconds); !math.IsInf(rate, 0) && !math.IsNaN(rate) {
			all[c.Runs[i].Index] = rate
		}
	}
	return all
}

// Carried returns what a run of a cell carried in bit/s, as AB counts it.
func Carried(c *measure.Cell, run int) float64 { return carriedIn(c)[run] }

// Looks is how often a tuning evaluates a comparison: at the least number of pairs for its level and, if it is
// undecided and may be an improvement, at twice that.
const Looks = 2

// TuneLevel returns the level of a tuning's comparisons with so many changes to judge, so that all looks at all of
// them share an error probability of 5%.
func TuneLevel(changes int) float64 { return 1 - doubtful/float64(Looks*max(changes, 1)) }

// GainLevel is the level of the interval of a kept change's gain, measured anew.
const GainLevel = 1 - doubtful

// Over reports whether a comparison of a tuning ends after so many pairs; its level needs at least least pairs. It
// ends at a look, or before the first one if an improvement is hopeless.
func Over(before, with *measure.Cell, found *measure.Comparison, pairs, least int) bool {
	switch {
	case pairs < least && Futile(before, with):
		found.Reason = fmt.Sprintf("none of %d pairs of runs was better by more than %d%%", pairs, EquivalencePct)
		return true
	case pairs < least:
		return false
	case pairs == least:
		return !Promising(*found)
	}
	return pairs >= Looks*least
}

// futile is the number of pairs after which a change that was never better is given up.
const futile = 3

// Futile reports whether a comparison in progress can be given up: of three or more pairs none was better by more
// than 2%. If it were an improvement after all, showing it would take more pairs than it is worth.
func Futile(before, with *measure.Cell) bool {
	x, _, _ := abOf(before, with)
	return x.Pairs >= futile && slices.Max(x.logs) <= math.Log1p(EquivalencePct/100.0)
}

// Promising reports whether more pairs may show an improvement that so many do not.
func Promising(c measure.Comparison) bool {
	return c.Outcome == measure.Undecided && c.ChangePct != nil && *c.ChangePct > EquivalencePct
}

// fullerPct is the gain from which a path was far from full before: it carried at most 4/5 of what it carries now.
const fullerPct = 25

// Price names the guardrails by which a gain is too expensive; "" if there are none. If the path was far from full
// before, a longer queue and some loss come with a path that is used at last: they are reported, not held against
// the change. The CPU cost of a Gb/s may rise by half of what the rate grows by. Fairness between streams does not
// depend on how full a path is.
func Price(c *measure.Comparison) string {
	gain := 0.0
	if c.ChangePct != nil {
		gain = *c.ChangePct
	}
	for _, g := range c.Guardrails {
		if !g.Worse || g.Base == nil || g.Variant == nil {
			continue
		}
		paid := gain >= fullerPct && (g.Name == railLoss || g.Name == railRTT) ||
			g.Name == railCPU && *g.Variant <= *g.Base*(1+gain/2/100)
		if !paid {
			return fmt.Sprintf("%s changed from %s to %s", g.Name, railText(g.Unit, *g.Base), railText(g.Unit, *g.Variant))
		}
	}
	return ""
}

// railText formats the value of a guardrail.
func railText(name string, x float64) string {
	switch name {
	case "ns":
		return unit.Duration(int64(x))
	case "pct":
		return unit.Percent(x)
	case "pct_per_gbps":
		return unit.Percent(x) + " of a core"
	}
	return fmt.Sprintf("%.2f", x)
}

// Levels returns the two levels of a time line, the second of which begins at second at.
func Levels(bins []float64) (at int, before, after float64, found bool) {
	if at, before, after, found = ChangePoint(bins); !found {
		at, before, after, found = stepDown(bins)
	}
	return at, before, after, found
}

// stepDown finds two levels in a time line too short for a change-point test: every second of the first exceeds by
// far every second of the rest.
func stepDown(bins []float64) (at int, before, after float64, found bool) {
	highest := slices.Clone(bins) // of that second and all after it: a soak has 100,000 seconds
	for i := len(bins) - 2; i >= 0; i-- {
		highest[i] = max(bins[i], highest[i+1])
	}
	least := math.Inf(1)
	for n := 1; n <= len(bins)-2; n++ {
		if least = min(least, bins[n-1]); least > 2*highest[n] {
			return n, Median(bins[:n]), Median(bins[n:]), true
		}
	}
	return 0, 0, 0, false
}
