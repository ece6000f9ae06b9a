package diagnose

import (
	"cmp"
	"math"
	"slices"

	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/stat"
)

// Goodput at the receiver in bit/s, of the run that is judged.
func (f *Flow) Goodput() (float64, bool) {
	if f.Run.Goodput != nil {
		return *f.Run.Goodput, true
	}
	if f.Cell.Goodput != nil {
		return f.Cell.Goodput.Value, true
	}
	return 0, false
}

// Rate is the goodput, or 0 where it is not known.
func (f *Flow) Rate() float64 {
	bps, _ := f.Goodput()
	return bps
}

// IsRateLimited tells whether a rate was asked for, or is all that an end point allows.
func (f *Flow) IsRateLimited() bool { return f.Cell.Spec.Rate > 0 || f.Cell.Spec.MaxRate > 0 }

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

// RwndPct is the share of the busy time in which the peer's window held the
// sender up.
func (f *Flow) RwndPct() (float64, bool) {
	return f.Sender.Seen.Delta(measure.WindowLimited).Pct(f.Sender.Seen.Delta(measure.BusyTime))
}

// AgainPct is the share of data segments that were sent again. Where the
// kernel's count of segments is not known it is that of the bytes.
func (f *Flow) AgainPct() (float64, bool) {
	segments := f.Sender.Seen.Delta(measure.Retransmits)
	if pct, ok := segments.Pct(f.Sender.Seen.Delta(measure.SegmentsSent)); ok {
		return pct, true
	}
	again, ok := segments.Float()
	if !ok || f.MSS() <= 0 || f.Sender.Seen.Bytes <= 0 {
		return 0, false
	}
	return 100 * again / (float64(f.Sender.Seen.Bytes)/f.MSS() + again), true
}

// mean of a figure over the streams of an end, from their courses, else from
// the readings of each second.
func (e *End) mean(timeline func(*measure.Timeline) *measure.Spread, second func(*measure.TCPInfo) *uint64) (float64, bool) {
	var all []float64
	for i, s := range e.Streams() {
		if s.Timeline != nil {
			if x := timeline(s.Timeline); x != nil {
				all = append(all, x.Mean)
				continue
			}
		}
		var one []float64
		for _, b := range e.Seen.Bins {
			if second == nil || i >= len(b.TCP) {
				continue
			}
			if x := second(&b.TCP[i]); x != nil {
				one = append(one, float64(*x))
			}
		}
		if len(one) > 0 {
			all = append(all, stat.Mean(one))
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return stat.Mean(all), true
}

// Figures of one stream of the sender, the mean of all.

// InFlight is sent and not acknowledged, in bytes.
func (f *Flow) InFlight() (float64, bool) {
	n, ok := f.Sender.mean(func(c *measure.Timeline) *measure.Spread { return c.InFlight }, func(t *measure.TCPInfo) *uint64 { return wide(t.Unacked) })
	return n * f.MSS(), ok
}

// Cwnd is the congestion window in bytes.
func (f *Flow) Cwnd() (float64, bool) {
	n, ok := f.Sender.mean(func(c *measure.Timeline) *measure.Spread { return c.Cwnd }, func(t *measure.TCPInfo) *uint64 { return wide(t.Cwnd) })
	return n * f.MSS(), ok
}

// SendWindow is the window that the receiver advertises, in bytes.
func (f *Flow) SendWindow() (float64, bool) {
	return f.Sender.mean(func(c *measure.Timeline) *measure.Spread { return c.SendWnd }, func(t *measure.TCPInfo) *uint64 { return wide(t.SendWnd) })
}

// NotSent is what waits in the sender's socket, in bytes.
func (f *Flow) NotSent() (float64, bool) {
	return f.Sender.mean(func(c *measure.Timeline) *measure.Spread { return c.NotSent }, func(t *measure.TCPInfo) *uint64 { return wide(t.NotSent) })
}

// unread is what waits in the receiver's socket for the program, in bytes.
func (f *Flow) unread() (float64, bool) {
	return f.Receiver.mean(func(c *measure.Timeline) *measure.Spread { return c.Unread }, nil)
}

// Pacing is the rate at which the kernel lets a stream's segments go, in bit/s.
func (f *Flow) Pacing() (float64, bool) {
	bytes, ok := f.Sender.mean(func(c *measure.Timeline) *measure.Spread { return c.Pacing }, func(t *measure.TCPInfo) *uint64 { return t.PacingRate })
	return 8 * bytes, ok && bytes < math.MaxUint32*1e6 // "no limit" is all ones
}

// LoadedRTT is the mean round trip under load in ns.
func (f *Flow) LoadedRTT() (float64, bool) {
	ns, ok := f.Sender.mean(func(c *measure.Timeline) *measure.Spread { return c.RTT }, func(t *measure.TCPInfo) *uint64 { return span(t.RTT) })
	return ns, ok && ns > 0
}

// RTT is the mean round trip under load, and its least, in ns; false where one
// of them is not known.
func (f *Flow) RTT() (loaded, least float64, ok bool) {
	loaded, ok1 := f.LoadedRTT()
	least, ok2 := f.BaseRTT()
	return loaded, least, ok1 && ok2
}

// BaseRTT is the round trip of the empty path in ns: the least that the
// sender's kernel saw, the idle one before the traffic, or that of the probe.
func (f *Flow) BaseRTT() (float64, bool) {
	var all []float64
	for _, s := range f.Sender.Streams() {
		if s.TCP != nil && s.TCP.MinRTT != nil && *s.TCP.MinRTT > 0 {
			all = append(all, float64(*s.TCP.MinRTT))
		}
	}
	for _, e := range f.Ends() {
		if e.Seen != nil && e.Seen.RTTIdle != nil && e.Seen.RTTIdle.Min > 0 {
			all = append(all, float64(e.Seen.RTTIdle.Min))
		}
	}
	if p := f.Path(); p != nil && p.RTT != nil && p.RTT.Min > 0 {
		all = append(all, float64(p.RTT.Min))
	}
	if len(all) == 0 {
		return 0, false
	}
	return slices.Min(all), true
}

// MSS is the payload of the sender's segments in bytes; 0 where it is not known.
func (f *Flow) MSS() float64 {
	for _, s := range f.Sender.Streams() {
		if s.TCP != nil && s.TCP.SendMSS != nil && *s.TCP.SendMSS > 0 {
			return float64(*s.TCP.SendMSS)
		}
		if s.MSS > 0 {
			return float64(s.MSS)
		}
	}
	return 0
}

// Segment is the payload of a full segment in bytes: where it is not known, that of MTU 1500.
func (f *Flow) Segment() float64 { return cmp.Or(f.MSS(), scene.UsualMSS) }

// Threads. A hot thread is on a CPU, waits for one, or is blocked in its
// socket calls: shares of the measured time in percent, of the stream with the
// busiest thread.
type Threads struct{ Run, Wait, Blocked float64 }

// Threads of an end's streams.
func (e *End) Threads() (Threads, bool) {
	var busiest Threads
	known := false
	for _, s := range e.Streams() {
		if s.RunNs == nil || s.WaitNs == nil || s.BlockedNs == nil || e.Span() <= 0 {
			return Threads{}, false
		}
		pct := func(ns int64) float64 { return max(0, min(100, 100*float64(ns)/float64(e.Span()))) }
		t := Threads{pct(*s.RunNs), pct(*s.WaitNs), pct(*s.BlockedNs)}
		stolen := min(e.stolen(s, t.Run), max(0, t.Blocked))
		t.Wait, t.Blocked = t.Wait+stolen, t.Blocked-stolen
		if !known || t.Run+t.Wait > busiest.Run+busiest.Wait {
			busiest = t
		}
		known = true
	}
	return busiest, known
}

// Counter of the end's protocol stack that moved in the measured time, such as
// "TcpExt.TCPTimeouts". It is of the whole host. A counter that did not move is
// 0; without readings it is not known.
func (e *End) Counter(name string) (float64, bool) {
	return e.Seen.Protocol(name).Float()
}

// Bins are the rates of the flow's seconds in bit/s.
func (f *Flow) Bins() []float64 {
	if f.Receiver.Seen != nil && f.Receiver.Seen.Reported == "" || f.Sender.Seen == nil {
		return stat.Bins(f.Receiver.Seen)
	}
	return stat.Bins(f.Sender.Seen)
}

// Flatness is how much the rates of the seconds differ from their median, in
// percent (the median of the deviations); it takes three seconds.
func (f *Flow) Flatness() (float64, bool) {
	bins := f.Bins()
	if len(bins) < 3 {
		return 0, false
	}
	if stat.Median(bins) <= 0 {
		return 0, false
	}
	return stat.MedianDeviation(bins), true
}

// CeilingShare is the goodput in percent of what the link can carry, where its
// rate is known; of flows that share a link at the same time that of all.
func (f *Flow) CeilingShare() (float64, bool) {
	if f.Cell.Ceiling == nil {
		return 0, false
	}
	pct, _ := stat.LinkShare(f.Doc, f.Cell)
	return max(pct, f.Cell.Ceiling.SharePct), true
}
