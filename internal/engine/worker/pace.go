package worker

import (
	"sync/atomic"
	"time"

	"thru/internal/measure"
)

// pacer limits one stream to a rate: it sleeps when the stream is ahead (a token bucket a few milliseconds deep). The rate may change while it runs.
type pacer struct {
	bps  atomic.Int64
	next time.Time
	stop *atomic.Bool
}

const (
	paceDepth = 5 * time.Millisecond  // unused time that a stream may make up for
	paceStep  = 10 * time.Millisecond // time between calls, and the longest sleep
	leastCall = 1448                  // bytes: a segment
)

// leastKernelRate is the rate in bit/s below which thru itself paces TCP too: the kernel's bursts of two segments are too far apart there.
const leastKernelRate = 2_000_000

// Values of measure.Stream.PacedBy.
const (
	pacedByKernel = "kernel"
	pacedByThru   = "thru"
)

func newPacer(bps int64, stop *atomic.Bool) *pacer {
	p := &pacer{stop: stop}
	p.bps.Store(max(bps, 1))
	return p
}

// set changes the rate.
func (p *pacer) set(bps int64) { p.bps.Store(max(bps, 1)) }

// after must follow each call with its n bytes: it sleeps until the next call may start.
func (p *pacer) after(n int) {
	now := time.Now()
	if p.next.Before(now.Add(-paceDepth)) {
		p.next = now.Add(-paceDepth) // unused time expires, so that no burst follows
	}
	p.next = p.next.Add(time.Duration(float64(n) * 8e9 / float64(p.bps.Load())))
	for ahead := p.next.Sub(now); ahead > 0 && !p.stop.Load(); ahead = time.Until(p.next) {
		sleepThread(min(ahead, paceStep))
	}
}

// hold limits a stream of messages to the rate that its end allows.
func (s *stream) hold(n int) {
	if s.pace != nil {
		s.pace.after(n)
	}
}

// rateOfStream returns the rate limit of one stream of this end in bit/s: at a sender the requested rate, and at both ends the rate that they allow; 0: none.
func (c openCommand) rateOfStream(sends bool) int64 {
	rate := c.RateBps
	if sends {
		rate = lower(rate, c.Spec.Rate)
	}
	if rate == 0 {
		return 0
	}
	return max(rate/int64(c.Spec.Streams), 1)
}

// pace prepares a stream's rate limit. The kernel paces a requested rate where it can, because it spreads the segments (SO_MAX_PACING_RATE, socket(7)); thru
// enforces the rate that an end allows.
func (w *worker) pace(s *stream) {
	rate := w.cmd.rateOfStream(s.sends)
	if w.cmd.Spec.Search && s.sends {
		rate = lower(searchRow(0), w.cmd.RateBps)/int64(w.cmd.Spec.Streams) + 1
	}
	if rate == 0 {
		return
	}
	asked := s.sends && w.cmd.Spec.Protocol == measure.TCP && w.cmd.RateBps == 0 && rate >= leastKernelRate
	if asked && !w.cmd.without("pacing") && setPacing(s.sock, rate) == nil {
		s.pacedBy = pacedByKernel
		return
	}
	s.pace, s.pacedBy = newPacer(rate, &w.flow.stop), pacedByThru
}
