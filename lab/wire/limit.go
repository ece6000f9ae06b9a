package wire

import "time"

// smallestQueue lets one super-packet pass every limit at once, bytes.
const smallestQueue = 64 << 10

// limiter is a rate with a bucket before it and a queue behind: a shaper, or
// without a queue a policer. It holds no packets: it says when each leaves. All
// times are nanoseconds since the path began. A nil limiter limits nothing.
type limiter struct {
	perByte float64 // time that a byte takes
	burst   float64 // time that a full bucket is worth
	queue   float64 // time that may be waited
	free    float64 // when all that has passed is through; lies in the past while the bucket has something
}

// newLimiter returns the limiter of a rate in bit/s; 0 limits nothing.
func newLimiter(rate, burst, queue int64) *limiter {
	if rate <= 0 {
		return nil
	}
	perByte := 8 * float64(time.Second) / float64(rate)
	return &limiter{perByte: perByte, burst: float64(burst) * perByte, queue: float64(queue) * perByte, free: -float64(burst) * perByte}
}

// held is what so much time of a rate holds in bytes, smallestQueue at least:
// the size of a queue or bucket that was not given.
func held(given, rate int64, span time.Duration) int64 {
	if given > 0 {
		return given
	}
	return max(smallestQueue, int64(float64(rate)/8*span.Seconds()))
}

// pass says when a packet leaves that comes at a time, or that it is dropped.
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
