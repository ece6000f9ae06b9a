package iperf2

import (
	"cmp"
	"time"

	"thru/internal/fault"
)

// Limits for a UDP client that sends more than this end allows.
const (
	guardEvery = 250 * time.Millisecond
	mostBurst  = time.Second     // that it may be ahead, plus a tenth for its clock
	ignoreTime = 2 * time.Second // of silence, after which it counts as a new client
)

// holdClient ends the session when more arrives over UDP than the limit allows. This end cannot slow down datagrams, and the rate in a header may be wrong (-b
// 9000pps of 2.1.8 says 9000 bit/s). It ends with the session.
func (s *session) holdClient(c *caller) {
	most := cmp.Or(s.end.Spec.MaxRate, s.end.MaxRate)
	if most <= 0 {
		return
	}
	begin := c.began()
	tick := time.NewTicker(guardEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-tick.C:
		}
		since := time.Since(begin)
		came := s.Session.Evidence().TotalBytes
		if float64(came)*8 <= float64(most)*(since*11/10+mostBurst).Seconds() {
			continue
		}
		for _, x := range c.streams {
			if u, ok := x.(*source); ok {
				u.ignore()
			}
		}
		s.Abort(fault.Failf("use a smaller -b there, or a higher limit here",
			"iperf2: receiving: the client sent %d bytes in %v, which exceeds the limit of %d bit/s", came, since.Round(time.Millisecond), most))
		return
	}
}

// began returns when the first datagram of a caller arrived.
func (c *caller) began() time.Time {
	first := time.Now()
	for _, x := range c.streams {
		u, ok := x.(*source)
		if !ok {
			continue
		}
		u.mu.Lock()
		if since := time.Unix(0, u.early.Since); u.early.Since > 0 && since.Before(first) {
			first = since
		}
		u.mu.Unlock()
	}
	return first
}
