package worker

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/stat"
)

// latencies is the distribution that one requesting thread records. Nothing reads it before the thread has ended.
type latencies struct {
	h      *hdrhistogram.Histogram
	errors int64
	inRow  int // errors since the last response
}

// maxErrors is how many errors in a row end the test: then the peer does not answer.
const maxErrors = 100

func newLatencies() *latencies {
	return &latencies{h: stat.NewHistogram()}
}

// record takes one response.
func (l *latencies) record(ns int64) {
	l.inRow = 0
	l.h.RecordValue(min(max(ns, 1), stat.HistogramHighest)) // in range: never an error
}

// answered records one response of a stream.
func (s *stream) answered(ns int64) {
	s.latency.record(ns)
	s.more[cTookNs].Add(ns)
	s.more[cTook].Add(1)
	if ns > s.more[cTookMaxNs].Load() {
		s.more[cTookMaxNs].Store(ns)
	}
}

// failed counts a request without a response in the measured time, and returns an error after too many.
func (l *latencies) failed(err error, measuring bool) error {
	if measuring {
		l.errors++
	}
	if l.inRow++; l.inRow < maxErrors {
		return nil
	}
	return fault.Failf("check that the end point still runs and that no firewall drops new connections or datagrams",
		"worker: sending requests: %d requests in a row failed, the last with: %w", maxErrors, err)
}

// mergeLatencies returns the distribution of several streams; nil without any.
func mergeLatencies(streams []*stream) (*measure.Latency, error) {
	all := newLatencies()
	for _, s := range streams {
		if s.latency != nil && closed(s.done) { // a stream that still runs continues to record
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

// describeDelays fills in the delays of each ended stream, and returns the distribution of all; empty without any. of has the order of streams.
func describeDelays(streams []*stream, of []measure.Stream) string {
	all := stat.NewHistogram()
	for i, s := range streams {
		if s.delays != nil && closed(s.done) { // a stream that still runs continues to record
			of[i].Datagrams = &measure.Datagrams{}
			s.delays.Describe(of[i].Datagrams, all)
		}
	}
	if all.TotalCount() == 0 {
		return ""
	}
	text, _ := stat.EncodeHistogram(all)
	return text
}

// answerTime is the timeout of the response to a datagram, or of a connection.
const answerTime = time.Second

// schedule decides when requests are due: back to back, or at a fixed rate. A request that earlier ones delay keeps its due time, so that its wait counts (no
// coordinated omission).
type schedule struct {
	every time.Duration // 0: back to back
	due   time.Duration // time of the next request, since begin
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

// next waits until a request is due, and returns the start of its latency: the time of sending, or the due time if that has passed.
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

// numberSize returns how many bytes of a request and of its response hold the number that matches them: eight where both have room, else one.
func numberSize(request, response int) int {
	if min(request, response) < 8 {
		return 1
	}
	return 8
}

// putNumber writes a number into all of b, which has numberSize bytes.
func putNumber(b []byte, n uint64) {
	if len(b) == 1 {
		b[0] = byte(n)
		return
	}
	binary.BigEndian.PutUint64(b, n)
}

// hasNumber reports whether b begins with the number n in that size.
func hasNumber(b []byte, size int, n uint64) bool {
	switch {
	case len(b) < size:
		return false
	case size == 1:
		return b[0] == byte(n)
	default:
		return binary.BigEndian.Uint64(b) == n
	}
}
