package trace

import (
	"cmp"
	"slices"
)

// clock is the offset of the right clock from the left one, as in NTP (RFC
// 5905): the fastest packets of each direction limit it from both sides. The
// same limits show which capture point is nearer to the sender, since packets
// do not arrive before they leave.
type clock struct {
	nearer int     // side nearer to the sender; -1: not known
	known  bool    // packets of both directions crossed
	jumped bool    // no straight line fits
	offset int64   // at base
	bound  int64   // error limit of offset: half of the minimum round-trip time between the capture points, and a tick at least
	tick   int64   // of the time stamps, in ns
	base   int64   // time at the left
	slope  float64 // drift, in ns per ns
	points []point
}

// point is a packet in both captures: its time at the first side, and how
// much later the second side's clock shows it.
type point struct {
	at, ahead int64
	back      bool // against the data of the first couple
}

// newClock takes side 0 as the left one; turn corrects that.
func newClock(couples []couple) clock {
	c := clock{nearer: -1}
	for i := range couples {
		c.points = append(c.points, couples[i].points(couples[i].against)...)
	}
	slices.SortFunc(c.points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	c.nearer = nearer(c.points)
	return c
}

// points returns the packets in both captures, in the order of side 0.
// against inverts their direction: packets of one direction on the path are
// data of one connection and acknowledgements of another.
func (c *couple) points(against bool) []point {
	var out []point
	for _, m := range c.matched {
		out = append(out, point{m.at[0], m.at[1] - m.at[0], m.back != against})
	}
	return out
}

// bounds of the offset over a span of points.
type bounds struct {
	at         int64 // middle
	most       int64 // largest offset of the right clock, by the data
	least      int64 // smallest offset, by the other direction
	data, back bool  // points of that direction exist
}

func (b *bounds) add(p point, slope float64, base int64) {
	ahead := p.ahead - int64(slope*float64(p.at-base))
	if p.back {
		if !b.back || ahead > b.least {
			b.least, b.back = ahead, true
		}
	} else if !b.data || ahead < b.most {
		b.most, b.data = ahead, true
	}
}

// windows splits the time, so that a clock's drift within one window is
// small.
func windows(points []point) []bounds {
	const most, length = 256, 100_000_000 // ns
	if len(points) == 0 {
		return nil
	}
	first, last := points[0].at, points[len(points)-1].at
	step := max((last-first)/most, length)
	var out []bounds
	for i := 0; i < len(points); {
		begin := points[i].at
		w := bounds{at: begin + step/2}
		for { // at least once, whatever the times are
			w.add(points[i], 0, 0)
			if i++; i == len(points) || points[i].at-begin >= step {
				break
			}
		}
		if w.data && w.back {
			out = append(out, w)
		}
	}
	return out
}

// nearer returns the side that the data passes first: 0 where data takes
// positive time to side 1, and its acknowledgements positive time back. -1 is
// not known.
func nearer(points []point) int {
	first, second := 0, 0
	for _, w := range windows(points) {
		switch {
		case w.most > w.least:
			first++
		case w.most < w.least:
			second++
		}
	}
	switch {
	case first > second:
		return 0
	case second > first:
		return 1
	}
	return -1
}

// turn sets the left side, and fits the clocks.
func (c *clock) turn(left int) {
	if left == 1 {
		for i, p := range c.points {
			c.points[i] = point{p.at + p.ahead, -p.ahead, p.back}
		}
	}
	if len(c.points) == 0 {
		return
	}
	c.base = c.points[0].at
	all := c.fit(0)
	if c.known = all.data && all.back; !c.known {
		c.offset = all.least
		if all.data {
			c.offset = all.most // as if the fastest packet had taken no time
		}
		return
	}
	if span := c.points[len(c.points)-1].at - c.base; span >= driftSpan || all.leastRTT() < 0 {
		if slope := c.drift(); c.fit(slope).leastRTT() > all.leastRTT()+all.leastRTT()/fitGain {
			c.slope, all = slope, c.fit(slope)
		}
	}
	c.offset, c.bound = all.least+all.leastRTT()/2, all.leastRTT()/2
	if c.bound < 0 {
		c.bound, c.jumped = -c.bound, true
	}
	c.bound = max(c.bound, c.tick)
}

const (
	driftSpan = 30_000_000_000 // ns, from which on clocks are assumed to drift
	fitGain   = 50             // a drift must widen the gap by more than this part of it
	mostDrift = 1e-3           // ten times that of a bad crystal
)

// fit returns the bounds of the offset over all packets, with a drift.
func (c *clock) fit(slope float64) bounds {
	var all bounds
	for _, p := range c.points {
		all.add(p, slope, c.base)
	}
	return all
}

// leastRTT returns the minimum round-trip time between the capture points, in
// ns.
func (b bounds) leastRTT() int64 { return b.most - b.least }

// drift returns the slope at which the fastest packets of both directions are
// farthest apart: any other slope mistakes the clock's drift for a shorter
// path. As the gap is a concave function of the slope, a ternary search finds
// it.
func (c *clock) drift() float64 {
	low, high := -mostDrift, mostDrift
	for range 60 {
		a, b := low+(high-low)/3, high-(high-low)/3
		if c.fit(a).leastRTT() < c.fit(b).leastRTT() {
			low = a
		} else {
			high = b
		}
	}
	return (low + high) / 2
}

// atLeft converts a time at the right to the clock at the left.
func (c *clock) atLeft(ns int64) int64 {
	ns -= c.offset
	return ns - int64(c.slope*float64(ns-c.base))
}
