package sock

import (
	"time"

	"thru/internal/measure"
)

// Readings sum up many readings of one connection, however many there are. The
// zero value has none; adding one allocates nothing.
type Readings struct {
	Count int64 // readings, of which each may have told less than all

	inFlight, cwnd, notSent, sendWnd, recvWnd, unread, rtt, pacing tally
	cwndFull, wndFull, recovery, idle                              portion
}

// States of congestion control in which segments are sent again (include/uapi/linux/tcp.h).
const (
	caRecovery = 3
	caLoss     = 4
)

// Sender adds what a reading tells of the end that sends.
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

// Receiver adds what a reading tells of the end that receives, with the bytes
// that wait for its program where they are known.
func (r *Readings) Receiver(m Moment, unread int64, knowsUnread bool) {
	r.recvWnd.add(m.RecvWnd, m.RecvWnd >= 0)
	r.unread.add(unread, knowsUnread)
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

// Timeline is what the readings of a span of time tell; nil without any.
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
