package compare

import (
	"fmt"
	"math"
	"slices"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// rail is a figure of a cell of which more is worse. It is worse where it grew by
// more than both bars, and beyond all that a range of results had before.
type rail struct {
	name, unit string
	of         func(*measure.Cell) *float64
	pct        float64 // of what it was
	least      float64 // in its unit
}

// The bars are those of comparisons within one result (stat, guardrail.go) where
// there are such; percentiles far out vary more from run to run than medians do.
func allRails() []rail {
	return []rail{
		{"CPU per Gb/s, sender", "pct_per_gbps", func(c *measure.Cell) *float64 { return costOf(c.SenderCPU) }, 10, 1},
		{"CPU per Gb/s, receiver", "pct_per_gbps", func(c *measure.Cell) *float64 { return costOf(c.ReceiverCPU) }, 10, 1},
		{"RTT idle", "ns", func(c *measure.Cell) *float64 { return float(c.RTTIdle) }, 10, 2e5},
		{"RTT under load", "ns", func(c *measure.Cell) *float64 { return float(c.RTTLoaded) }, 10, 1e6},
		{"loss", "pct", lossOf, 0, 0.1},
		{"sent again", "pct", sentAgain, 0, 0.1},
		{"latency p50", "ns", latency(func(l *measure.Latency) int64 { return l.P50 }), 10, 5e3},
		{"latency p99", "ns", latency(func(l *measure.Latency) int64 { return l.P99 }), 25, 5e3},
		{"latency p50 under load", "ns", loaded(func(l *measure.Latency) int64 { return l.P50 }), 10, 1e6},
		{"latency p99 under load", "ns", loaded(func(l *measure.Latency) int64 { return l.P99 }), 25, 1e6},
		{"jitter", "ns", jitterOf, 50, 1e6},
	}
}

func costOf(c *measure.CPUFigure) *float64 {
	if c == nil {
		return nil
	}
	return c.PctPerGbps
}

func float(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

func lossOf(c *measure.Cell) *float64 {
	if c.Protocol != measure.UDP || c.Spec.Search {
		return nil
	}
	return stat.LossPct(c)
}

func sentAgain(c *measure.Cell) *float64 {
	if c.Protocol == measure.UDP {
		return nil
	}
	return stat.LossPct(c)
}

func latency(of func(*measure.Latency) int64) func(*measure.Cell) *float64 {
	return func(c *measure.Cell) *float64 {
		if c.Latency == nil || c.Latency.Count == 0 {
			return nil
		}
		return new(float64(of(c.Latency)))
	}
}

func loaded(of func(*measure.Latency) int64) func(*measure.Cell) *float64 {
	return func(c *measure.Cell) *float64 {
		if c.UnderLoad == nil || c.UnderLoad.Loaded == nil || c.UnderLoad.Loaded.Count == 0 {
			return nil
		}
		return new(float64(of(c.UnderLoad.Loaded)))
	}
}

func jitterOf(c *measure.Cell) *float64 {
	if c.Datagrams == nil || c.Spec.Search {
		return nil
	}
	return float(c.Datagrams.JitterNs)
}

// rails are the guardrails that both sides have.
func rails(p matched) (all []measure.ComparedRail) {
	if x, y := p.before.newest().guarded, p.after.newest().guarded; x == nil || y == nil || p.after.family == disks && x.Streams != y.Streams {
		return nil // the more workers a disk has, the longer each waits
	}
	for _, r := range allRails() {
		before, after := r.values(p.before.members), r.values(p.after.members)
		if len(before) > 0 && len(after) > 0 {
			all = append(all, r.judge(before, after))
		}
	}
	return all
}

func (r rail) values(of []*subject) (all []float64) {
	for _, s := range of {
		if s.guarded == nil {
			continue
		}
		if x := r.of(s.guarded); x != nil && *x >= 0 && !math.IsInf(*x, 0) {
			all = append(all, *x)
		}
	}
	return all
}

// fewFactor is how many times the bars of guardrails are as wide where a side has
// fewer than leastValues results: nothing tells then what they vary by.
const fewFactor = 5

// judge takes the median of each side: a range has results that were disturbed.
func (r rail) judge(before, after []float64) measure.ComparedRail {
	if min(len(before), len(after)) < leastValues {
		r.pct, r.least = fewFactor*r.pct, fewFactor*r.least
	}
	was, is := stat.Median(before), stat.Median(after)
	g := measure.ComparedRail{Name: r.name, Unit: r.unit, Before: was, After: is, Bar: r.bar()}
	if was > 0 {
		g.ChangePct = known(100 * (is/was - 1))
	}
	apart := func(less, more float64) bool { return more > less*(1+r.pct/100) && more > less+r.least }
	g.Worse = apart(was, is) && (len(before) < leastValues || is > slices.Max(before))
	g.Better = apart(is, was) && (len(before) < leastValues || is < slices.Min(before))
	return g
}

// bar is what counts as a change, in words.
func (r rail) bar() string {
	switch {
	case r.unit == "ns":
		return fmt.Sprintf("%s and %s", unit.Percent(r.pct), unit.Duration(int64(r.least)))
	case r.pct == 0:
		return fmt.Sprintf("%g percentage points", r.least)
	}
	return fmt.Sprintf("%s and %g percent of a core per Gb/s", unit.Percent(r.pct), r.least)
}
