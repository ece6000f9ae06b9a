package diagnose

import (
	"math"
	"slices"

	"thru/internal/measure"
	"thru/internal/stat"
)

// goodput at the receiver in bit/s, of the run that is judged.
func (f *flow) goodput() (float64, bool) {
	if f.run.Goodput != nil {
		return *f.run.Goodput, true
	}
	if f.cell.Goodput != nil {
		return f.cell.Goodput.Value, true
	}
	return 0, false
}

// rate is the goodput, or 0 where it is not known.
func (f *flow) rate() float64 {
	bps, _ := f.goodput()
	return bps
}

// isHeld tells whether a rate was asked for, or is all that an end point allows.
func (f *flow) isHeld() bool { return f.cell.Spec.Rate > 0 || f.cell.Spec.MaxRate > 0 }

// grew is by how much a counter of TCP_INFO grew in the measured time, all
// streams together. It is not known where one stream lacks it.
func (e *end) grew(counter func(*measure.TCPInfo) *uint64) (float64, bool) {
	n, known := uint64(0), false
	for _, s := range e.streams() {
		if s.TCP == nil {
			return 0, false
		}
		to := counter(s.TCP)
		if to == nil {
			return 0, false
		}
		from := new(uint64)
		if s.TCPStart != nil {
			if from = counter(s.TCPStart); from == nil || *from > *to {
				return 0, false
			}
		}
		n, known = n+*to-*from, true
	}
	return float64(n), known
}

// wide makes a counter of 32 bits one of 64.
func wide(x *uint32) *uint64 {
	if x == nil {
		return nil
	}
	return new(uint64(*x))
}

// span makes a length of time in ns, which is never less than 0, a counter.
func span(ns *int64) *uint64 {
	if ns == nil {
		return nil
	}
	return new(uint64(*ns))
}

// share of one counter in another, in percent.
func (e *end) share(part, of func(*measure.TCPInfo) *uint64) (float64, bool) {
	a, ok := e.grew(part)
	b, okToo := e.grew(of)
	if !ok || !okToo || b <= 0 {
		return 0, false
	}
	return 100 * a / b, true
}

func busyTime(t *measure.TCPInfo) *uint64       { return t.BusyUs }
func rwndLimited(t *measure.TCPInfo) *uint64    { return t.RwndLimitedUs }
func segsAgain(t *measure.TCPInfo) *uint64      { return wide(t.Retrans) }
func segsSent(t *measure.TCPInfo) *uint64       { return wide(t.DataSegsOut) }
func segsDoubled(t *measure.TCPInfo) *uint64    { return wide(t.DSACKDups) }
func timesReordered(t *measure.TCPInfo) *uint64 { return wide(t.ReordSeen) }

// rwndPct is the share of the busy time in which the peer's window held the
// sender up (tcp_info.tcpi_rwnd_limited; its resolution is a jiffy).
func (f *flow) rwndPct() (float64, bool) { return f.sender.share(rwndLimited, busyTime) }

// againPct is the share of data segments that were sent again. Where the
// kernel's count of segments is not known it is that of the bytes.
func (f *flow) againPct() (float64, bool) {
	if pct, ok := f.sender.share(segsAgain, segsSent); ok {
		return pct, true
	}
	again, ok := f.sender.grew(segsAgain)
	if !ok || f.mss() <= 0 || f.sender.seen.Bytes <= 0 {
		return 0, false
	}
	return 100 * again / (float64(f.sender.seen.Bytes)/f.mss() + again), true
}

// mean of a figure over the streams of an end, from their courses, else from
// the readings of each second.
func (e *end) mean(course func(*measure.Course) *measure.Spread, second func(*measure.TCPInfo) *uint64) (float64, bool) {
	var all []float64
	for i, s := range e.streams() {
		if s.Course != nil {
			if x := course(s.Course); x != nil {
				all = append(all, x.Mean)
				continue
			}
		}
		var one []float64
		for _, b := range e.seen.Bins {
			if second == nil || i >= len(b.TCP) {
				continue
			}
			if x := second(&b.TCP[i]); x != nil {
				one = append(one, float64(*x))
			}
		}
		if len(one) > 0 {
			all = append(all, mean(one))
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return mean(all), true
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// Figures of one stream of the sender, the mean of all.

// inFlight is sent and not acknowledged, in bytes.
func (f *flow) inFlight() (float64, bool) {
	n, ok := f.sender.mean(func(c *measure.Course) *measure.Spread { return c.InFlight }, func(t *measure.TCPInfo) *uint64 { return wide(t.Unacked) })
	return n * f.mss(), ok
}

// cwnd is the congestion window in bytes.
func (f *flow) cwnd() (float64, bool) {
	n, ok := f.sender.mean(func(c *measure.Course) *measure.Spread { return c.Cwnd }, func(t *measure.TCPInfo) *uint64 { return wide(t.Cwnd) })
	return n * f.mss(), ok
}

// sendWindow is the window that the receiver advertises, in bytes.
func (f *flow) sendWindow() (float64, bool) {
	return f.sender.mean(func(c *measure.Course) *measure.Spread { return c.SendWnd }, func(t *measure.TCPInfo) *uint64 { return wide(t.SendWnd) })
}

// notSent is what waits in the sender's socket, in bytes.
func (f *flow) notSent() (float64, bool) {
	return f.sender.mean(func(c *measure.Course) *measure.Spread { return c.NotSent }, func(t *measure.TCPInfo) *uint64 { return wide(t.NotSent) })
}

// unread is what waits in the receiver's socket for the program, in bytes.
func (f *flow) unread() (float64, bool) {
	return f.receiver.mean(func(c *measure.Course) *measure.Spread { return c.Unread }, nil)
}

// pacing is the rate at which the kernel lets a stream's segments go, in bit/s.
func (f *flow) pacing() (float64, bool) {
	bytes, ok := f.sender.mean(func(c *measure.Course) *measure.Spread { return c.Pacing }, func(t *measure.TCPInfo) *uint64 { return t.PacingRate })
	return 8 * bytes, ok && bytes < math.MaxUint32*1e6 // "no limit" is all ones
}

// loadedRTT is the mean round trip under load in ns.
func (f *flow) loadedRTT() (float64, bool) {
	ns, ok := f.sender.mean(func(c *measure.Course) *measure.Spread { return c.RTT }, func(t *measure.TCPInfo) *uint64 { return span(t.RTT) })
	return ns, ok && ns > 0
}

// rtt is the mean round trip under load, and its least, in ns; false where one
// of them is not known.
func (f *flow) rtt() (loaded, least float64, ok bool) {
	loaded, ok1 := f.loadedRTT()
	least, ok2 := f.baseRTT()
	return loaded, least, ok1 && ok2
}

// baseRTT is the round trip of the empty path in ns: the least that the
// sender's kernel saw, the idle one before the traffic, or that of the probe.
func (f *flow) baseRTT() (float64, bool) {
	var all []float64
	for _, s := range f.sender.streams() {
		if s.TCP != nil && s.TCP.MinRTT != nil && *s.TCP.MinRTT > 0 {
			all = append(all, float64(*s.TCP.MinRTT))
		}
	}
	for _, e := range f.ends() {
		if e.seen != nil && e.seen.RTTIdle != nil && e.seen.RTTIdle.Min > 0 {
			all = append(all, float64(e.seen.RTTIdle.Min))
		}
	}
	if p := f.path(); p != nil && p.RTT != nil && p.RTT.Min > 0 {
		all = append(all, float64(p.RTT.Min))
	}
	if len(all) == 0 {
		return 0, false
	}
	return slices.Min(all), true
}

// mss is the payload of the sender's segments in bytes; 0 where it is not known.
func (f *flow) mss() float64 {
	for _, s := range f.sender.streams() {
		if s.TCP != nil && s.TCP.SendMSS != nil && *s.TCP.SendMSS > 0 {
			return float64(*s.TCP.SendMSS)
		}
		if s.MSS > 0 {
			return float64(s.MSS)
		}
	}
	return 0
}

// Threads. A hot thread is on a CPU, waits for one, or is blocked in its
// socket calls: shares of the measured time in percent, of the stream with the
// busiest thread.
type threads struct{ run, wait, blocked float64 }

// threads of an end's streams.
func (e *end) threads() (threads, bool) {
	var busiest threads
	known := false
	for _, s := range e.streams() {
		if s.RunNs == nil || s.WaitNs == nil || s.BlockedNs == nil || e.span() <= 0 {
			return threads{}, false
		}
		pct := func(ns int64) float64 { return max(0, min(100, 100*float64(ns)/float64(e.span()))) }
		t := threads{pct(*s.RunNs), pct(*s.WaitNs), pct(*s.BlockedNs)}
		stolen := min(e.stolen(s, t.run), max(0, t.blocked))
		t.wait, t.blocked = t.wait+stolen, t.blocked-stolen
		if !known || t.run+t.wait > busiest.run+busiest.wait {
			busiest = t
		}
		known = true
	}
	return busiest, known
}

// counter of the end's protocol stack that moved in the measured time, such as
// "TcpExt.TCPTimeouts". It is of the whole host. A counter that did not move is
// 0; without readings it is not known.
func (e *end) counter(name string) (float64, bool) {
	if e.seen == nil || e.seen.Host == nil || e.seen.Host.Proto == nil {
		return 0, false
	}
	return float64(e.seen.Host.Proto[name]), true
}

// bins are the rates of the flow's seconds in bit/s.
func (f *flow) bins() []float64 {
	if f.receiver.seen != nil && f.receiver.seen.Reported == "" || f.sender.seen == nil {
		return stat.Bins(f.receiver.seen)
	}
	return stat.Bins(f.sender.seen)
}

// flatness is how much the rates of the seconds differ from their median, in
// percent (the median of the deviations); it takes three seconds.
func (f *flow) flatness() (float64, bool) {
	bins := f.bins()
	if len(bins) < 3 {
		return 0, false
	}
	if stat.Median(bins) <= 0 {
		return 0, false
	}
	return spreadOf(bins), true
}

// ceilingShare is the goodput in percent of what the link can carry, where its
// rate is known; of flows that share a link at the same time that of all.
func (f *flow) ceilingShare() (float64, bool) {
	if f.cell.Ceiling == nil {
		return 0, false
	}
	pct, _ := stat.LinkShare(f.doc, f.cell)
	return max(pct, f.cell.Ceiling.SharePct), true
}
