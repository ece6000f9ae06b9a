package stamp

import (
	"math/bits"
	"time"
)

// Timestamp is the time of a packet: seconds since 1900 and a fraction of 32 bits (NTP, RFC 5905), or where its Error says so
// seconds since 1970 and nanoseconds (PTPv2, truncated).
type Timestamp uint64

const (
	toNTP = 2208988800 // seconds from 1900 to 1970
	era   = 1 << 32    // seconds of one era of NTP
)

// StampOf returns the time in NTP's format.
func StampOf(t time.Time) Timestamp {
	return Timestamp(uint64(t.Unix()+toNTP)<<32 | uint64(t.Nanosecond())<<32/uint64(time.Second))
}

// Time returns the time of a packet whose error estimate is e. Times before 1968 belong to the era of NTP that begins in 2036 (RFC 4330, 3).
func (t Timestamp) Time(e Error) time.Time {
	seconds, fraction := int64(t>>32), uint64(t&0xffffffff)
	if e.isPTP() {
		return time.Unix(seconds, int64(min(fraction, uint64(time.Second-1))))
	}
	if seconds < era/2 {
		seconds += era
	}
	return time.Unix(seconds-toNTP, int64((fraction*uint64(time.Second)+1<<31)>>32))
}

// Error is the error estimate of a sender's or reflector's clock (RFC 4656, 4.1.2; RFC 8762, 4.2.1): a bit for a clock that is in sync with UTC, one for the
// format of its timestamps, six for a scale, eight for a multiplier.
type Error uint16

const (
	errorSynced = 1 << 15
	errorPTP    = 1 << 14
)

// Unsynced is the estimate of a clock of which nothing is known: one second.
const Unsynced Error = 25<<8 | 128

// ErrorOf returns the estimate of a clock that is off by at most the bound; it is rounded up.
func ErrorOf(bound time.Duration) Error {
	units := uint64(max(bound, 0).Seconds()*(1<<32)) + 1 // of 2^-32 s
	scale := max(bits.Len64(units)-8, 0)
	multiplier := units >> scale
	if multiplier<<scale < units {
		multiplier++
	}
	if multiplier > 255 {
		multiplier, scale = multiplier>>1+multiplier&1, scale+1
	}
	return Error(errorSynced | min(scale, 63)<<8 | int(max(multiplier, 1)))
}

// estimateOf returns the estimate of a clock that is off by at most a bound; 0: nothing is known of it.
func estimateOf(bound time.Duration) Error {
	if bound <= 0 {
		return Unsynced
	}
	return ErrorOf(bound)
}

// apart returns how far two clocks may be apart, where both are in sync with UTC; else 0.
func apart(own time.Duration, far Error) time.Duration {
	if own <= 0 || far&errorSynced == 0 {
		return 0
	}
	return own + min(far.Bound(), time.Hour)
}

// Bound returns how far the clock may be off, by its own estimate.
func (e Error) Bound() time.Duration {
	scale, multiplier := int(e>>8&63), uint64(e&255)
	if scale+bits.Len64(multiplier) > 62 {
		return time.Duration(1<<63 - 1)
	}
	units := multiplier << scale
	return time.Duration(units>>32)*time.Second + time.Duration((units&0xffffffff)*uint64(time.Second)>>32)
}

func (e Error) isPTP() bool { return e&errorPTP != 0 }
