package stat

import (
	"fmt"
	"math"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Before and With are the variants of a change that is tried (VariantAxis).
const (
	Before = "before"
	With   = "with"
)

// AB compares two cells of one direction whose runs were made in turns: the state
// before a change, and that with it. It is Compare's test at a level that the
// caller has chosen, such as 0.99, since several comparisons share the doubt.
//
// Traffic that stalls is a figure here, since a change may cure or cause that: a
// run that did not come to its end counts as what it carried in the time that it
// was to take, and none as less than one segment.
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

// segment is the payload of one of TCP at an MTU of 1500 with timestamps, in bytes.
const segment = 1448

// carriedIn is what each run of a cell carried, in bit/s, by its number.
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

// Carried is what a run of a cell carried in bit/s, as AB counts it.
func Carried(c *measure.Cell, run int) float64 { return carriedIn(c)[run] }

// Looks is how often a comparison of a tuning is looked at: at the least number of
// pairs for its level, and where it is open and may be an improvement at twice that.
const Looks = 2

// TuneLevel is that of the comparisons of a tuning with so many changes to judge, so
// that all looks at all of them share a doubt of 5%.
func TuneLevel(changes int) float64 { return 1 - doubtful/float64(Looks*max(changes, 1)) }

// GainLevel is that of the interval of what a kept change brings, measured anew.
const GainLevel = 1 - doubtful

// Over tells whether a comparison of a tuning ends after so many pairs, of which it
// takes least at its level: at a look, or before the first one where there is no hope.
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

// futile is after how many pairs a change that never was better is given up.
const futile = 3

// Futile tells whether a comparison under way can be given up: of three pairs or
// more none was better by more than 2%. Were it an improvement after all, that
// would take more pairs to show than it is worth.
func Futile(before, with *measure.Cell) bool {
	x, _, _ := abOf(before, with)
	return x.Pairs >= futile && slices.Max(x.logs) <= math.Log1p(EquivalencePct/100.0)
}

// Promising tells whether more pairs may show an improvement that so many do not.
func Promising(c measure.Comparison) bool {
	return c.Outcome == measure.Undecided && c.ChangePct != nil && *c.ChangePct > EquivalencePct
}

// fullerPct is from which gain on a path was far from full before: it carried at
// most 4/5 of what it carries now.
const fullerPct = 25

// Price names the guardrails by which a gain is too dear; "" where none is. Where
// the path was far from full, a longer queue and some loss are those of a path
// that is used at last, and are told, not held against the change. A Gb/s may
// cost the CPUs more by half of what the rate grows by. Whether streams get the
// same has nothing to do with how full a path is.
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
			return fmt.Sprintf("%s went from %s to %s", g.Name, railText(g.Unit, *g.Base), railText(g.Unit, *g.Variant))
		}
	}
	return ""
}

// railText is the value of a guardrail for a person.
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

// Levels are the two levels of a course, of which the second begins at that second.
func Levels(bins []float64) (at int, before, after float64, found bool) {
	if at, before, after, found = ChangePoint(bins); !found {
		at, before, after, found = stepDown(bins)
	}
	return at, before, after, found
}

// stepDown finds two levels in a course too short for a change-point test: a
// first one of which every second exceeds by far every second of the rest.
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
