package trace

import (
	"cmp"
	"slices"
)

// clock is what the clock at the right is ahead of the one at the left, as in
// NTP (RFC 5905): the packets that crossed fastest each way bound it from both
// sides. That also tells which place is nearer to the sender, for packets do not
// arrive before they leave.
type clock struct {
	nearer int     // side; -1: not known
	known  bool    // packets of both directions crossed
	jumped bool    // no straight line fits
	offset int64   // at base
	bound  int64   // of the offset: half of the least round trip between the places, and a tick at least
	tick   int64   // of the time stamps, in ns
	base   int64   // time at the left
	slope  float64 // drift, in ns per ns
	points []point
}

// point is a packet that is in both captures: when the first side had it, and
// how much later by its clock the second one did.
type point struct {
	at, ahead int64
	back      bool // against the data of the first couple
}

// newClock reckons with side 0 at the left; turn mends that.
func newClock(couples []couple) clock {
	c := clock{nearer: -1}
	for i := range couples {
		c.points = append(c.points, couples[i].points(couples[i].against)...)
	}
	slices.SortFunc(c.points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	c.nearer = nearer(c.points)
	return c
}

// points are the packets that are in both captures, in the order of side 0.
// against turns them: what goes one way between the places is data of one
// connection and acknowledgements of another.
func (c *couple) points(against bool) []point {
	var out []point
	for _, m := range c.matched {
		out = append(out, point{m.at[0], m.at[1] - m.at[0], m.back != against})
	}
	return out
}

// span of points.
type bounds struct {
	at         int64 // middle
	most       int64 // that the right clock can be ahead, by the data
	least      int64 // by the other direction
	data, back bool  // there are such
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

// windows cuts the time, so that a clock's drift within one is small.
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
		for { // one at least, whatever the times are
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

// nearer is the side that the data passes first: 0 where it needs positive
// time to side 1, and its acknowledgements positive time back. -1 is not known.
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

// turn takes a side for the left one, and fits the clocks.
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
			c.offset = all.most // as if the fastest had taken no time
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
	driftSpan = 30_000_000_000 // ns from which on clocks are taken to drift
	fitGain   = 50             // by more than this part of it a drift has to widen the gap
	mostDrift = 1e-3           // ten times that of a bad crystal
)

// fit is what all packets say of the offset, with a drift.
func (c *clock) fit(slope float64) bounds {
	var all bounds
	for _, p := range c.points {
		all.add(p, slope, c.base)
	}
	return all
}

// leastRTT is the least round trip between the places, in ns.
func (b bounds) leastRTT() int64 { return b.most - b.least }

// drift is the slope at which the fastest packets of both directions are the
// farthest apart: any other one takes the clock's drift for a shorter path. As
// the gap is a concave function of the slope, thirds of its range are cut off.
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

// atLeft is a time at the right, by the clock at the left.
func (c *clock) atLeft(ns int64) int64 {
	ns -= c.offset
	return ns - int64(c.slope*float64(ns-c.base))
}
