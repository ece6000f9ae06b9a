package pcapfile

import (
	"math"
	"math/bits"
)

// microseconds is the resolution of times where a file gives none.
const microseconds = 6

// nanoseconds is the resolution of times that we write.
const nanoseconds = 9

// clock converts the times of an interface to nanoseconds since 1970.
type clock struct {
	times  uint64 // a time is multiplied by this,
	over   uint64 // divided by this,
	shift  uint8  // or halved as often,
	offset int64  // and moved by this, nanoseconds
}

// newClock returns the clock of if_tsresol, a negative power of 10 or, with
// the highest bit set, of 2; and of if_tsoffset, in seconds.
func newClock(resolution byte, offset int64) clock {
	c := clock{times: 1, over: 1}
	power := int(resolution &^ 0x80)
	switch {
	case resolution&0x80 != 0:
		c.times, c.shift = 1e9, uint8(power)
	case power <= 9:
		c.times = pow10(9 - power)
	case power <= 9+19:
		c.over = pow10(power - 9)
	default: // 64 bits of such a unit are less than a nanosecond
		c.times = 0
	}
	const most = math.MaxInt64 / 1_000_000_000
	if offset > -most && offset < most {
		c.offset = offset * 1e9
	}
	return c
}

// pow10 returns a power of ten that fits in 64 bits.
func pow10(n int) uint64 {
	p := uint64(1)
	for range n {
		p *= 10
	}
	return p
}

// ns returns a time in nanoseconds since 1970. A time after the largest one,
// in the year 2262, becomes that one.
func (c clock) ns(time uint64) int64 {
	high, low := bits.Mul64(time, c.times)
	switch {
	case c.shift >= 64:
		high, low = 0, high>>(c.shift-64)
	case c.shift > 0:
		high, low = high>>c.shift, low>>c.shift|high<<(64-c.shift)
	case c.over > 1:
		low /= c.over // c.times is 1, so the upper half is 0
	}
	if high != 0 || low > math.MaxInt64 {
		low = math.MaxInt64
	}
	sum := int64(low) + c.offset
	if c.offset > 0 && sum < 0 {
		return math.MaxInt64
	}
	return sum
}
