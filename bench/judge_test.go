//go:build linux

package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Names of participants that are no peers.
var notPeers = []string{"thru", ceilingName}

// column returns one metric of a tool, round by round.
func (e *entry) column(m metric) []float64 {
	var xs []float64
	for _, r := range e.readings {
		xs = append(xs, map[metric]float64{figure: r.figure, p99: r.p99, cost: r.cost()}[m])
	}
	return xs
}

func (e *entry) median(m metric) float64 {
	if m == cost && e.costHidden != "" {
		return math.NaN()
	}
	return median(e.column(m))
}

func (e *entry) isPeer() bool { return !slices.Contains(notPeers, e.name) }

// find returns the first tool with the prefix; nil if it did not take part.
func (r *result) find(name string) *entry {
	for i, e := range r.entries {
		if strings.HasPrefix(e.name, name) {
			return &r.entries[i]
		}
	}
	return nil
}

// against returns the tools that a claim compares thru with.
func (r *result) against(c claim) []*entry {
	var peers []*entry
	for i := range r.entries {
		if e := &r.entries[i]; e.isPeer() && !math.IsNaN(e.median(c.of)) {
			peers = append(peers, e)
		}
	}
	switch c.against {
	case everyPeer:
		return peers
	case bestPeer:
		if len(peers) == 0 {
			return nil
		}
		return []*entry{slices.MaxFunc(peers, func(a, b *entry) int {
			return int(math.Copysign(1, a.median(c.of)-b.median(c.of)))
		})}
	}
	if e := r.find(c.against); e != nil {
		return []*entry{e}
	}
	return nil
}

// outcome is the result of a bar.
type outcome struct {
	bar   string
	words string // "met", "missed by 3%", "not checked"
	basis string // the ratios that decide
	met   bool
}

// judge compares thru with a bar: the claim with the smallest shortfall decides.
func (r *result) judge(b bar) outcome {
	thru := r.find("thru")
	best := outcome{bar: b.text, words: "not checked: nothing to compare with"}
	least := math.Inf(1)
	if thru == nil {
		return best
	}
	for _, c := range b.claims {
		for _, e := range worst(r.against(c), thru, c) {
			ratio, ok := ratioOf(thru.column(c.of), e.column(c.of))
			if !ok {
				continue
			}
			short, met := shortfall(c, ratio)
			if o := (outcome{b.text, words(short, met), fmt.Sprintf("%s %s of %s", c.of, ratio, e.name), met}); short < least {
				best, least = o, short
			}
		}
	}
	return best
}

// worst returns, of several tools, the one that thru compares worst with.
func worst(tools []*entry, thru *entry, c claim) []*entry {
	if len(tools) < 2 {
		return tools
	}
	return []*entry{slices.MaxFunc(tools, func(a, b *entry) int {
		x, _ := ratioOf(thru.column(c.of), a.column(c.of))
		y, _ := ratioOf(thru.column(c.of), b.column(c.of))
		return int(math.Copysign(1, x.ratio-y.ratio))
	})}
}

// shortfall returns how far a ratio is from the bound, as a share of it; less than zero is beyond it. At
// parity the interval decides: a difference within it does not count.
func shortfall(c claim, e estimate) (short float64, met bool) {
	short, reaches := 1-e.ratio/c.bound, e.high >= c.bound
	if c.of != figure {
		short, reaches = e.ratio/c.bound-1, e.low <= c.bound
	}
	parity := c.bound == 1 && c.of != cost
	return short, short <= 0 || parity && reaches
}

func words(short float64, met bool) string {
	switch {
	case met && short > 0:
		return "met, within the interval"
	case met:
		return fmt.Sprintf("met, %.1f%% beyond", -100*short)
	}
	return fmt.Sprintf("missed by %.1f%%", 100*short)
}

// String returns the ratio with its interval.
func (e estimate) String() string { return fmt.Sprintf("%.3f [%.3f-%.3f]", e.ratio, e.low, e.high) }
