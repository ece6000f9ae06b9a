package worker

import (
	"math/rand/v2"
	"time"

	"thru/internal/measure"
	"thru/internal/sock"
)

// Rounds of readings of all connections. A reading takes one or two system
// calls of about a microsecond; more streams than courseStreams are read less
// often, so that it stays below a percent of a CPU.
const (
	courseEvery   = 20 * time.Millisecond // from one round to the next, on average
	courseLeast   = 10 * time.Millisecond // between two rounds
	courseStreams = 32
)

// courses are the readings of all streams in the measured time. Their size is
// fixed before it: a worker collects no garbage.
type courses struct {
	of    []course // of each stream; none where the streams are no TCP connections that last
	every time.Duration
	last  time.Time // of the last round
	next  time.Time
	buf   [sock.TCPInfoSize]byte
}

// course sums up the readings of one stream.
type course struct {
	readings                                                       int64
	inFlight, cwnd, notSent, sendWnd, recvWnd, unread, rtt, pacing tally
	cwndFull, wndFull, recovery, idle                              portion
}

// newCourses readies the readings of n streams.
func newCourses(n int) courses {
	rounds := (n + courseStreams - 1) / courseStreams
	return courses{of: make([]course, n), every: time.Duration(max(rounds, 1)) * courseEvery}
}

// observe takes a round of readings where one is due in the measured time, and
// returns how long to wait for the next. The waits are random, so that nothing
// that repeats itself on the path is always met at the same moment (RFC 2330,
// section 11.1).
func (w *worker) observe() time.Duration {
	c := &w.courses
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
	wait := courseLeast + rand.N(2*(c.every-courseLeast))
	c.next = now.Add(wait)
	return wait
}

// observeStream reads one connection. Requests and responses make both of its
// ends send.
func (w *worker) observeStream(s *stream, c *course) {
	if s.file != nil {
		w.observeDescriptor(s.file.Fd(), s.sends, c)
	} else if raw, err := s.sock.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { w.observeDescriptor(fd, s.sends, c) })
	}
}

func (w *worker) observeDescriptor(fd uintptr, sends bool, c *course) {
	b := w.courses.buf[:]
	n := sock.ReadTCPInfo(fd, b)
	if n == 0 {
		return
	}
	c.readings++
	m := sock.ParseMoment(b[:n])
	both := w.cmd.Spec.Traffic != measure.Bulk
	if sends || both {
		c.addSender(m)
	}
	if !sends || both {
		unread, ok := sock.Unread(fd)
		c.addReceiver(m, int64(unread), ok)
	}
}

// States of congestion control in which segments are sent again (include/uapi/linux/tcp.h).
const (
	caRecovery = 3
	caLoss     = 4
)

func (c *course) addSender(m sock.Moment) {
	c.inFlight.add(m.InFlight, m.InFlight >= 0)
	c.cwnd.add(m.Cwnd, m.Cwnd >= 0)
	c.notSent.add(m.NotSent, m.NotSent >= 0)
	c.sendWnd.add(m.SendWnd, m.SendWnd >= 0)
	c.rtt.add(m.RTTUs, m.RTTUs > 0)
	c.pacing.add(m.PacingRate, m.PacingRate >= 0 && m.PacingRate != sock.NoPacing)
	c.recovery.add(m.CAState == caRecovery || m.CAState == caLoss, m.CAState >= 0)
	cwnd, wnd := usedUp(m)
	knowsWnd := m.SendWnd >= 0
	c.cwndFull.add(cwnd, m.InFlight >= 0 && m.Cwnd >= 0)
	c.wndFull.add(wnd, knowsWnd)
	c.idle.add(m.NotSent < m.MSS && !cwnd && !wnd, knowsWnd && m.NotSent >= 0) // less than a segment may wait for more (Nagle)
}

func (c *course) addReceiver(m sock.Moment, unread int64, knowsUnread bool) {
	c.recvWnd.add(m.RecvWnd, m.RecvWnd >= 0)
	c.unread.add(unread, knowsUnread)
}

// Bounds of what a sender lets a window have free though data waits, to send
// it as one larger packet when more is acknowledged (net/ipv4/tcp_output.c,
// tcp_tso_should_defer): a part of the smaller window, and never a whole packet.
const (
	deferPart  = 3       // tcp_tso_win_divisor
	deferBytes = 1 << 16 // GSO_LEGACY_MAX_SIZE
)

// usedUp tells whether a sender has used up its congestion window and its
// peer's window, each as the kernel holds it against what is to be sent
// (tcp_cwnd_test, tcp_snd_wnd_test): the one counts segments in the network,
// the other the bytes since the last acknowledged one, and takes whole
// segments only. Of a sender that defers what it could send, the window with
// less room is the one that it waits for; the kernel's own note of being
// limited by the congestion window (tcp_is_cwnd_limited) has that too.
func usedUp(m sock.Moment) (cwnd, wnd bool) {
	cwndRoom := (m.Cwnd - m.InFlight) * m.MSS
	wndRoom := m.SendWnd - m.Unacked*m.MSS
	if m.SendWnd < 0 {
		wndRoom = sock.NoPacing
	}
	cwnd, wnd = cwndRoom <= 0, wndRoom <= m.MSS
	if m.NotSent <= 0 || cwnd || wnd {
		return cwnd, wnd
	}
	least := m.Cwnd * m.MSS
	if m.SendWnd >= 0 {
		least = min(least, m.SendWnd)
	}
	if room := min(cwndRoom, wndRoom); room >= min(least/deferPart, deferBytes) {
		return false, false
	}
	return cwndRoom <= wndRoom, wndRoom < cwndRoom
}

// tally is the sum of some readings with the least and the greatest of them.
type tally struct{ n, sum, min, max int64 }

func (t *tally) add(v int64, known bool) {
	if !known {
		return
	}
	if t.n == 0 {
		t.min, t.max = v, v
	}
	t.min, t.max = min(t.min, v), max(t.max, v)
	t.sum += v
	t.n++
}

// spread is nil where nothing was read.
func (t tally) spread() *measure.Spread {
	if t.n == 0 {
		return nil
	}
	return &measure.Spread{Mean: float64(t.sum) / float64(t.n), Min: float64(t.min), Max: float64(t.max)}
}

// portion counts the readings in which something holds.
type portion struct{ n, holds int64 }

func (p *portion) add(holds, known bool) {
	if !known {
		return
	}
	if holds {
		p.holds++
	}
	p.n++
}

// pct is nil where nothing was read.
func (p portion) pct() *float64 {
	if p.n == 0 {
		return nil
	}
	return new(100 * float64(p.holds) / float64(p.n))
}

// course is what the readings of a stream tell; nil without any.
func (w *worker) course(i int) *measure.Course {
	if i >= len(w.courses.of) || w.courses.of[i].readings == 0 {
		return nil
	}
	c := w.courses.of[i]
	return &measure.Course{
		Samples: int(c.readings), Every: int64(w.courses.last.Sub(w.mark)) / c.readings,
		InFlight: c.inFlight.spread(), Cwnd: c.cwnd.spread(), NotSent: c.notSent.spread(), SendWnd: c.sendWnd.spread(),
		RecvWnd: c.recvWnd.spread(), Unread: c.unread.spread(), RTT: c.rtt.spread(), Pacing: c.pacing.spread(),
		CwndFull: c.cwndFull.pct(), WndFull: c.wndFull.pct(), Recovery: c.recovery.pct(), Idle: c.idle.pct(),
	}
}
