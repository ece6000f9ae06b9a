package worker

import (
	"bytes"
	"sync/atomic"

	"thru/internal/measure"
)

// period of the pattern: a prime, so that no shift by a power of two, by a
// segment or by a page looks right.
const period = 65521

// checker compares what comes with what was sent: byte i of a stream is byte
// i modulo period of the pattern; a datagram begins anew at its number.
type checker struct {
	checked    atomic.Int64
	wrong      atomic.Int64
	firstWrong atomic.Int64 // offset plus one; 0 is none
}

// verifiable is a buffer from which any n bytes of the stream can be sent or compared.
func verifiable(n int) []byte {
	b := make([]byte, 0, period+n)
	one := pattern(period)
	for len(b) < period+n {
		b = append(b, one[:min(period, period+n-len(b))]...)
	}
	return b
}

// at is the pattern from offset on, n bytes of it.
func at(all []byte, offset int64, n int) []byte {
	from := int(offset % period)
	return all[from : from+n]
}

// compare counts got, which should be the pattern from offset on; where says
// what a difference is named by.
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

// result is the account of what was compared.
func (c *checker) result() *measure.Checked {
	r := &measure.Checked{Bytes: c.checked.Load(), WrongBytes: c.wrong.Load()}
	if at := c.firstWrong.Load(); at > 0 {
		r.FirstWrong = new(at - 1)
	}
	return r
}

// patternOf is the pattern of a datagram behind its header.
func patternOf(all []byte, number uint64, n int) []byte { return at(all, int64(number%period), n) }
