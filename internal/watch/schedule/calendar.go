package schedule

import "math/bits"

// calendar has a bit for each slot of a day: set if taken. The day is a circle. A nil calendar is free.
type calendar [slots / 64]uint64

// take takes n slots from s on.
func (c *calendar) take(s, n int) {
	for i := s; i < s+n; i++ {
		at := i % slots
		c[at/64] |= 1 << (at % 64)
	}
}

// blocked returns 0 if n slots from s on are free, else the distance from s to the slot after the last taken one of them.
func (c *calendar) blocked(s, n int) int {
	if c == nil {
		return 0
	}
	for i := n - 1; i >= 0; i-- {
		at := (s + i) % slots
		if c[at/64]&(1<<(at%64)) != 0 {
			return i + 1
		}
	}
	return 0
}

// count returns the number of taken slots.
func (c *calendar) count() (n int) {
	if c != nil {
		for _, word := range c {
			n += bits.OnesCount64(word)
		}
	}
	return n
}

// nthFree returns the n-th free slot of the day.
func (c *calendar) nthFree(n int) int {
	if c == nil {
		return n
	}
	for i, word := range c {
		free := bits.OnesCount64(^word)
		if n < free {
			for range n {
				word |= word + 1 // takes the first free slot
			}
			return i*64 + bits.TrailingZeros64(^word)
		}
		n -= free
	}
	return 0 // no slot is free: the caller finds none either
}
