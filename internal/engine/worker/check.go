package worker

import (
	"bytes"
	"sync/atomic"

	"thru/internal/measure"
)

// period is the length of the pattern: a prime, so that a shift by a power of two, by a segment or by a page never matches.
const period = 65521

// checker compares received data with the data sent: byte i of a stream is byte i modulo period of the pattern; a datagram starts at the offset of its number.
type checker struct {
	checked    atomic.Int64
	wrong      atomic.Int64
	firstWrong atomic.Int64 // offset plus one; 0: none
}

// verifiable returns a buffer from which any n bytes of the stream can be sent or compared.
func verifiable(n int) []byte {
	b := make([]byte, 0, period+n)
	one := pattern(period)
	for len(b) < period+n {
		b = append(b, one[:min(period, period+n-len(b))]...)
	}
	return b
}

// at returns n bytes of the pattern, from offset on.
func at(all []byte, offset int64, n int) []byte {
	from := int(offset % period)
	return all[from : from+n]
}

// compare counts got, which should be the pattern from offset on; where is the position to report for a difference.
func (c *checker) compare(all, got []byte, offset, where int64) {
	c.checked.Add(int64(len(got)))
	want := at(all, offset, len(got))
	if bytes.Equal(got, want) {
		return
	}
	for i := range got {
		if got[i] != want[i] {
			c.wrong.Add(1)
			if where < 0 {
				c.firstWrong.CompareAndSwap(0, offset+int64(i)+1)
			} else {
				c.firstWrong.CompareAndSwap(0, where+1)
			}
		}
	}
}

// result returns the counts of the comparison.
func (c *checker) result() *measure.Checked {
	r := &measure.Checked{Bytes: c.checked.Load(), WrongBytes: c.wrong.Load()}
	if at := c.firstWrong.Load(); at > 0 {
		r.FirstWrong = new(at - 1)
	}
	return r
}

// patternOf returns the pattern of a datagram after its header.
func patternOf(all []byte, number uint64, n int) []byte { return at(all, int64(number%period), n) }
