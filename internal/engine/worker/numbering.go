package worker

import (
	"encoding/binary"
	"time"
)

// Numbering is how a datagram carries its number and its time of sending.
type Numbering int

// Numberings. All are big-endian; a stamp is seconds and microseconds, 32 bits each.
const (
	OfThru          Numbering = iota // number of 64 bits, nanoseconds of 64 bits
	StampNumber32                    // stamp, number of 32 bits
	StampNumber64                    // stamp, number of 64 bits
	NumberStamp                      // signed number of 32 bits, stamp; a negative number is the last
	NumberStampHigh                  // low 32 bits of a signed number, stamp, high 32 bits; a negative number is the last
)

// size returns its size in a datagram, in bytes.
func (n Numbering) size() int {
	if n == StampNumber32 || n == NumberStamp {
		return 12
	}
	return datagramHeader
}

// put writes number and time of sending, in nanoseconds, into a datagram.
func (n Numbering) put(b []byte, number uint64, now int64) {
	if n == OfThru {
		binary.BigEndian.PutUint64(b, number)
		binary.BigEndian.PutUint64(b[8:], uint64(now))
		return
	}
	n.putStamped(b, number, now)
}

func (n Numbering) putStamped(b []byte, number uint64, now int64) {
	at := 0
	if n == NumberStamp || n == NumberStampHigh {
		binary.BigEndian.PutUint32(b, uint32(number))
		at = 4
	}
	binary.BigEndian.PutUint32(b[at:], uint32(now/int64(time.Second)))
	binary.BigEndian.PutUint32(b[at+4:], uint32(now%int64(time.Second)/int64(time.Microsecond)))
	switch n {
	case StampNumber32:
		binary.BigEndian.PutUint32(b[8:], uint32(number))
	case StampNumber64:
		binary.BigEndian.PutUint64(b[8:], number)
	case NumberStampHigh:
		binary.BigEndian.PutUint32(b[12:], uint32(number>>32))
	}
}

// get reads a datagram's number and time of sending. It extends 32-bit numbers to the value nearest to next. last is set for the final datagram.
func (n Numbering) get(b []byte, next uint64) (number uint64, sent int64, last bool) {
	if n == OfThru {
		return binary.BigEndian.Uint64(b), int64(binary.BigEndian.Uint64(b[8:])), false
	}
	return n.getStamped(b, next)
}

func (n Numbering) getStamped(b []byte, next uint64) (number uint64, sent int64, last bool) {
	at := 0
	if n == NumberStamp || n == NumberStampHigh {
		at = 4
	}
	sent = int64(binary.BigEndian.Uint32(b[at:]))*int64(time.Second) + int64(binary.BigEndian.Uint32(b[at+4:]))*int64(time.Microsecond)
	switch n {
	case StampNumber32:
		return near(binary.BigEndian.Uint32(b[8:]), next), sent, false
	case StampNumber64:
		return binary.BigEndian.Uint64(b[8:]), sent, false
	}
	id := int64(int32(binary.BigEndian.Uint32(b)))
	if n == NumberStampHigh {
		id = int64(binary.BigEndian.Uint32(b[12:]))<<32 | int64(binary.BigEndian.Uint32(b))
	} else if id >= 0 {
		return near(uint32(id), next), sent, false
	}
	return uint64(id), sent, id < 0
}

// near returns the number closest to next with these low 32 bits; before the first wrap there is no lower one.
func near(low uint32, next uint64) uint64 {
	d := int64(int32(low - uint32(next)))
	if d < 0 && uint64(-d) > next {
		return uint64(low)
	}
	return next + uint64(d)
}

// stamp returns the time to write into a datagram: in thru's own numbering since the flow began, in others since 1970, because the peer may compare it with
// its clock.
func (f *flow) stamp() int64 {
	if f.numbering == OfThru {
		return int64(time.Since(f.begin))
	}
	return f.begin.UnixNano() + int64(time.Since(f.begin))
}
