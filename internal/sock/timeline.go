package sock

import (
	"time"

	"thru/internal/measure"
)

// Readings summarizes any number of readings of one connection. The zero value has none; adding one allocates nothing.
type Readings struct {
	Count int64 // number of readings, some of which may be partial

	inFlight, cwnd, notSent, sendWnd, recvWnd, unread, rtt, pacing tally
	cwndFull, wndFull, recovery, idle                              portion
}

// Congestion control states with retransmissions (include/uapi/linux/tcp.h).
const (
	caRecovery = 3
	caLoss     = 4
)

// Sender adds a reading of the sending end.
func (r *Readings) Sender(m Moment) {
	r.inFlight.add(m.InFlight, m.InFlight >= 0)
	r.cwnd.add(m.Cwnd, m.Cwnd >= 0)
	r.notSent.add(m.NotSent, m.NotSent >= 0)
	r.sendWnd.add(m.SendWnd, m.SendWnd >= 0)
	r.rtt.add(m.RTT, m.RTT > 0)
	r.pacing.add(m.PacingRate, m.PacingRate >= 0 && m.PacingRate != NoPacing)
	r.recovery.add(m.CAState == caRecovery || m.CAState == caLoss, m.CAState >= 0)
	cwnd, wnd := usedUp(m)
	knowsWnd := m.SendWnd >= 0
	r.cwndFull.add(cwnd, m.InFlight >= 0 && m.Cwnd >= 0)
	r.wndFull.add(wnd, knowsWnd)
	r.idle.add(m.NotSent < m.MSS && !cwnd && !wnd, knowsWnd && m.NotSent >= 0) // less than a segment may wait for more (Nagle)
}

// Receiver adds a reading of the receiving end, with the bytes that its program has not read, where they are known.
func (r *Readings) Receiver(m Moment, unread int64, knowsUnread bool) {
	r.recvWnd.add(m.RecvWnd, m.RecvWnd >= 0)
	r.unread.add(unread, knowsUnread)
}

// Limits of the free window that a sender leaves although data waits, to send one larger packet later (net/ipv4/tcp_output.c, tcp_tso_should_defer): a part of
// the smaller window, and less than a whole packet.
const (
	deferPart  = 3       // tcp_tso_win_divisor
	deferBytes = 1 << 16 // GSO_LEGACY_MAX_SIZE
)

// usedUp reports whether a sender has used up its congestion window and its peer's window, by the kernel's own tests (tcp_cwnd_test, tcp_snd_wnd_test). The
// first counts segments in the network; the second counts bytes since the last acknowledged one, and accepts only whole segments. Where a sender defers data
// that it could send, it waits for the window with less room; the kernel's flag for the congestion window limit (tcp_is_cwnd_limited) includes that case.
func usedUp(m Moment) (cwnd, wnd bool) {
	cwndRoom := (m.Cwnd - m.InFlight) * m.MSS
	wndRoom := m.SendWnd - m.Unacked*m.MSS
	if m.SendWnd < 0 {
		wndRoom = NoPacing
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

// tally sums readings and keeps the smallest and the greatest.
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

// spread returns nil without readings.
func (t tally) spread() *measure.Spread {
	if t.n == 0 {
		return nil
	}
	return &measure.Spread{Mean: float64(t.sum) / float64(t.n), Min: float64(t.min), Max: float64(t.max)}
}

// portion counts the readings in which a condition holds.
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

// pct returns nil without readings.
func (p portion) pct() *float64 {
	if p.n == 0 {
		return nil
	}
	return new(100 * float64(p.holds) / float64(p.n))
}

// Timeline returns the summary of the readings over a span of time; nil without any.
func (r *Readings) Timeline(span time.Duration) *measure.Timeline {
	if r.Count == 0 {
		return nil
	}
	return &measure.Timeline{
		Samples: int(r.Count), Every: int64(span) / r.Count,
		InFlight: r.inFlight.spread(), Cwnd: r.cwnd.spread(), NotSent: r.notSent.spread(), SendWnd: r.sendWnd.spread(),
		RecvWnd: r.recvWnd.spread(), Unread: r.unread.spread(), RTT: r.rtt.spread(), Pacing: r.pacing.spread(),
		CwndFull: r.cwndFull.pct(), WndFull: r.wndFull.pct(), Recovery: r.recovery.pct(), Idle: r.idle.pct(),
	}
}
