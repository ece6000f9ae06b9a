package compare

import (
	"fmt"
	"math"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// rail is a figure of a cell for which lower is better. It is worse if it grew significantly, by more than both
// bars.
type rail struct {
	name, unit string
	of         func(*measure.Cell) *float64
	pct        float64 // of the value before; 0: the unit's bar alone counts
	least      float64 // in its unit
	spread     float64 // assumed standard deviation of one or two results: in percent, or in its unit
}

// The bars are those of comparisons within one result (stat, guardrail.go) if there are such; high percentiles
// vary more from run to run than medians do. The spreads are assumptions, like that of single runs
// (stat.RunSpreadPct).
func allGuardrails() []rail {
	p50 := func(l *measure.Latency) int64 { return l.P50 }
	p99 := func(l *measure.Latency) int64 { return l.P99 }
	latency := func(l *measure.Latency, of func(*measure.Latency) int64) *float64 {
		if l == nil || l.Count == 0 {
			return nil
		}
		return new(float64(of(l)))
	}
	idle := func(of func(*measure.Latency) int64) func(*measure.Cell) *float64 {
		return func(c *measure.Cell) *float64 { return latency(c.Latency, of) }
	}
	loaded := func(of func(*measure.Latency) int64) func(*measure.Cell) *float64 {
		return func(c *measure.Cell) *float64 { return latency(measure.Value(c.UnderLoad).Loaded, of) }
	}
	return []rail{
		{"CPU per Gb/s, sender", "pct_per_gbps", func(c *measure.Cell) *float64 { return measure.Value(c.SenderCPU).PctPerGbps }, 10, 1, 12},
		{"CPU per Gb/s, receiver", "pct_per_gbps", func(c *measure.Cell) *float64 { return measure.Value(c.ReceiverCPU).PctPerGbps }, 10, 1, 12},
		{"RTT idle", "ns", func(c *measure.Cell) *float64 { return measure.As[float64](c.RTTIdle) }, 10, 2e5, 20},
		{"RTT under load", "ns", func(c *measure.Cell) *float64 { return measure.As[float64](c.RTTLoaded) }, 10, 1e6, 20},
		{"loss", "pct", lossOf, 0, 0.1, 0.15},
		{"sent again", "pct", sentAgain, 0, 0.1, 0.15},
		{"latency p50", "ns", idle(p50), 10, 5e3, 20},
		{"latency p99", "ns", idle(p99), 25, 5e3, 30},
		{"latency p50 under load", "ns", loaded(p50), 10, 1e6, 20},
		{"latency p99 under load", "ns", loaded(p99), 25, 1e6, 30},
		{"jitter", "ns", jitterOf, 50, 1e6, 40},
	}
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

func jitterOf(c *measure.Cell) *float64 {
	if c.Datagrams == nil || c.Spec.Search {
		return nil
	}
	return measure.As[float64](c.Datagrams.JitterNs)
}

// guard is a guardrail under judgement.
type guard struct {
	measure.ComparedRail
	rail
	before, after []float64
}

// guardsOf returns the guardrails that both sides have.
func guardsOf(p matched) (all []*guard) {
	if x, y := p.before.newest().guarded, p.after.newest().guarded; x == nil || y == nil || p.after.family == disks && x.Streams != y.Streams {
		return nil // the more workers a disk has, the longer each waits
	}
	for _, r := range allGuardrails() {
		before, after := r.values(p.before.members), r.values(p.after.members)
		if len(before) > 0 && len(after) > 0 {
			all = append(all, newGuard(r, before, after))
		}
	}
	return all
}

// newGuard takes the median of each side: a range includes disturbed results.
func newGuard(r rail, before, after []float64) *guard {
	was, is := stat.Median(before), stat.Median(after)
	g := &guard{rail: r, before: before, after: after}
	g.ComparedRail = measure.ComparedRail{Name: r.name, Unit: r.unit, Before: was, After: is, Bar: r.bar()}
	if was > 0 {
		g.ChangePct = stat.Known(100 * (is/was - 1))
	}
	return g
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

// judge decides at a level whether the guardrail is worse or better: the interval of its change is beyond its bar.
// With a bar in percent the change is a ratio, and values below the bar in the unit do not count.
func (g *guard) judge(level float64) (differs bool) {
	bar, spread := g.least, g.spread
	if g.pct > 0 {
		bar, spread = math.Log1p(g.pct/100), g.spread/100
	}
	d, found := stat.Differ(g.scaled(g.before), g.scaled(g.after), stat.Spread{Value: spread}, level)
	g.Worse = found && d.Low > bar && g.After-g.Before > g.least
	g.Better = found && d.High < -bar && g.Before-g.After > g.least
	return g.Worse || g.Better
}

// scaled returns values in the scale in which they are compared.
func (r rail) scaled(values []float64) []float64 {
	if r.pct == 0 {
		return values
	}
	return unit.Mapped(values, func(x float64) float64 { return math.Log(max(x, r.least)) })
}

// bar words what counts as a change.
func (r rail) bar() string {
	switch {
	case r.unit == "ns":
		return fmt.Sprintf("%s and %s", unit.Percent(r.pct), unit.Duration(int64(r.least)))
	case r.pct == 0:
		return fmt.Sprintf("%g percentage points", r.least)
	}
	return fmt.Sprintf("%s and %g percent of a core per Gb/s", unit.Percent(r.pct), r.least)
}
