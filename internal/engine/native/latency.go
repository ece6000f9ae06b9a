package native

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/stat"
)

// latencies is the distribution that one asking thread records. Nothing of it
// is read before the thread has ended.
type latencies struct {
	h      *hdrhistogram.Histogram
	errors int64
	inRow  int // errors since the last response
}

// maxErrors in a row: then nobody answers.
const maxErrors = 100

func newLatencies() *latencies {
	return &latencies{h: stat.NewHistogram()}
}

// record takes one response.
func (l *latencies) record(ns int64) {
	l.inRow = 0
	l.h.RecordValue(min(max(ns, 1), stat.HistogramHighest)) // in range: never an error
}

// failed counts a request without a response, and gives up after many.
func (l *latencies) failed(err error) error {
	l.errors++
	if l.inRow++; l.inRow < maxErrors {
		return nil
	}
	return fault.Failf("is the end point still there, and does a firewall cut new connections or datagrams?",
		"native: asking: %d requests in a row failed, the last with: %w", maxErrors, err)
}

// mergeLatencies describes the distribution of several streams; nil of none.
func mergeLatencies(streams []*stream) (*measure.Latency, error) {
	all := newLatencies()
	for _, s := range streams {
		if s.latency != nil {
			all.h.Merge(s.latency.h)
			all.errors += s.latency.errors
		}
	}
	if all.h.TotalCount() == 0 {
		if all.errors == 0 {
			return nil, nil
		}
		return &measure.Latency{Errors: all.errors}, nil
	}
	r := stat.LatencyOf(all.h)
	var err error
	r.Errors = all.errors
	r.Histogram, err = stat.EncodeHistogram(all.h)
	return &r, err
}

// answerTime is how long the response to a datagram, or a connection, may take.
const answerTime = time.Second

// schedule says when requests are due: back to back, or at a fixed rate. One
// that is held up by those before it keeps its due time, so that its wait
// counts (no coordinated omission).
type schedule struct {
	every time.Duration // 0: back to back
	due   time.Duration // of the next request, since begin
	begin time.Time
	stop  *atomic.Bool // ends a wait
}

func newSchedule(f *flow) *schedule {
	c := &schedule{begin: f.begin, stop: &f.stop}
	if f.perSecond > 0 {
		c.every = time.Duration(float64(time.Second) / f.perSecond)
		c.due = time.Since(f.begin)
	}
	return c
}

// next waits until a request is due, and returns since when its latency
// counts: the time of sending, or the due time if that has passed.
func (c *schedule) next(now int64) (from int64) {
	if c.every == 0 {
		return now
	}
	due := int64(c.due)
	c.due += c.every
	if now >= due {
		return due
	}
	for now < due && !c.stop.Load() {
		sleepThread(min(time.Duration(due-now), paceStep))
		now = int64(time.Since(c.begin))
	}
	return now // waking late is this program's own delay
}

// A datagram of a request begins with its number, and so does the response:
// in eight bytes where there is room, else in one.
func putNumber(b []byte, n uint64) {
	if len(b) < 8 {
		b[0] = byte(n)
		return
	}
	binary.BigEndian.PutUint64(b, n)
}

func hasNumber(b []byte, n uint64) bool {
	if len(b) == 0 {
		return false
	}
	if len(b) < 8 {
		return b[0] == byte(n)
	}
	return binary.BigEndian.Uint64(b) == n
}
