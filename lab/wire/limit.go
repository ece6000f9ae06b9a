package wire

import "time"

// smallestQueue has room for one super-packet, in bytes.
const smallestQueue = 64 << 10

// limiter is a rate with a token bucket before it and a queue after it: a shaper, or without a queue a
// policer. It holds no packets: it computes when each leaves. All times are nanoseconds since the path began.
// A nil limiter limits nothing.
type limiter struct {
	perByte float64 // time per byte
	burst   float64 // time equivalent of a full bucket
	queue   float64 // longest wait
	free    float64 // when all passed packets have left; in the past while the bucket has tokens
}

// newLimiter returns the limiter of a rate in bit/s; 0 limits nothing.
func newLimiter(rate, burst, queue int64) *limiter {
	if rate <= 0 {
		return nil
	}
	perByte := 8 * float64(time.Second) / float64(rate)
	return &limiter{perByte: perByte, burst: float64(burst) * perByte, queue: float64(queue) * perByte, free: -float64(burst) * perByte}
}

// held returns the size of a queue or bucket in bytes: given, or by default what passes at the rate in span,
// at least smallestQueue.
func held(given, rate int64, span time.Duration) int64 {
	if given > 0 {
		return given
	}
	return max(smallestQueue, int64(float64(rate)/8*span.Seconds()))
}

// pass returns when a packet that arrives at a time leaves, or false if it is dropped.
func (l *limiter) pass(at float64, size int) (float64, bool) {
	if l == nil {
		return at, true
	}
	through := max(l.free, at-l.burst) + float64(size)*l.perByte
	if through-at > l.queue {
		return at, false
	}
	l.free = through
	return max(at, through), true
}
