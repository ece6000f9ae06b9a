package worker

import (
	"math/rand/v2"
	"time"

	"thru/internal/measure"
	"thru/internal/sock"
)

// Rounds of readings of all connections. A reading takes one or two system calls of about a microsecond; more streams than timelineStreams are read less
// often, so that the cost stays below a percent of a CPU.
const (
	timelineEvery   = 20 * time.Millisecond // from one round to the next, on average
	timelineLeast   = 10 * time.Millisecond // between two rounds
	timelineStreams = 32
)

// timelines are the readings of all streams in the measured time. Their size is fixed before: a worker collects no garbage.
type timelines struct {
	of    []sock.Readings // of each stream; empty where the streams are no lasting TCP connections
	every time.Duration
	last  time.Time // of the last round
	next  time.Time
	buf   [sock.TCPInfoSize]byte
}

// newTimelines prepares the readings of n streams.
func newTimelines(n int) timelines {
	rounds := (n + timelineStreams - 1) / timelineStreams
	return timelines{of: make([]sock.Readings, n), every: time.Duration(max(rounds, 1)) * timelineEvery}
}

// observe takes a round of readings where one is due in the measured time, and returns the wait until the next. The waits are random, so that the readings do
// not coincide with a periodic event on the path (RFC 2330, section 11.1).
func (w *worker) observe() time.Duration {
	c := &w.timelines
	if len(c.of) == 0 || !w.flow.measuring.Load() {
		return pollEvery
	}
	now := time.Now()
	if now.Before(c.next) {
		return c.next.Sub(now)
	}
	if !c.next.IsZero() {
		for i, s := range w.flow.streams {
			if !closed(s.done) {
				w.observeStream(s, &c.of[i])
			}
		}
		c.last = now
	}
	wait := timelineLeast + rand.N(2*(c.every-timelineLeast))
	c.next = now.Add(wait)
	return wait
}

// observeStream reads one connection. With requests and responses both of its ends send.
func (w *worker) observeStream(s *stream, c *sock.Readings) {
	if s.file != nil {
		w.observeDescriptor(s.file.Fd(), s.sends, c)
	} else if raw, err := s.sock.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { w.observeDescriptor(fd, s.sends, c) })
	}
}

func (w *worker) observeDescriptor(fd uintptr, sends bool, c *sock.Readings) {
	b := w.timelines.buf[:]
	n := sock.ReadTCPInfo(fd, b)
	if n == 0 {
		return
	}
	c.Count++
	m := sock.ParseMoment(b[:n])
	both := w.cmd.Spec.Traffic != measure.Bulk
	if sends || both {
		c.Sender(m)
	}
	if !sends || both {
		unread, ok := sock.Unread(fd)
		c.Receiver(m, int64(unread), ok)
	}
}

// timeline returns the summary of a stream's readings; nil without any.
func (w *worker) timeline(i int) *measure.Timeline {
	if i >= len(w.timelines.of) {
		return nil
	}
	return w.timelines.of[i].Timeline(w.timelines.last.Sub(w.mark))
}
