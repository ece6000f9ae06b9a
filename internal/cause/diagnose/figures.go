package diagnose

import (
	"cmp"
	"math"
	"slices"

	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Goodput returns the receiver's goodput in bit/s in the judged run.
func (f *Flow) Goodput() (float64, bool) {
	if f.Run.Goodput != nil {
		return *f.Run.Goodput, true
	}
	if f.Cell.Goodput != nil {
		return f.Cell.Goodput.Value, true
	}
	return 0, false
}

// Rate returns the goodput, or 0 if it is not known.
func (f *Flow) Rate() float64 {
	bps, _ := f.Goodput()
	return bps
}

// IsRateLimited reports whether the user requested a rate, or an end point limits it.
func (f *Flow) IsRateLimited() bool { return f.Cell.Spec.Rate > 0 || f.Cell.Spec.MaxRate > 0 }

// wide converts a 32-bit counter to 64 bits.
func wide(x *uint32) *uint64 {
	if x == nil {
		return nil
	}
	return new(uint64(*x))
}

// span converts a time in ns, at least 0, to a counter.
func span(ns *int64) *uint64 {
	if ns == nil {
		return nil
	}
	return new(uint64(*ns))
}

// RwndPct returns the share of the busy time in which the peer's receive window limited the sender.
func (f *Flow) RwndPct() (float64, bool) {
	return f.Sender.Seen.Delta(measure.WindowLimited).Pct(f.Sender.Seen.Delta(measure.BusyTime))
}

// AgainPct returns the share of data segments that were retransmitted. If the kernel's segment count is not known,
// it is the share of bytes.
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

// mean returns the mean of a figure over the streams of an end, from their time lines, or else from the readings
// of each second.
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

// Figures of one stream of the sender, averaged over all streams.

// InFlight returns the bytes sent and not acknowledged.
func (f *Flow) InFlight() (float64, bool) {
	n, ok := f.Sender.mean(func(c *measure.Timeline) *measure.Spread { return c.InFlight }, func(t *measure.TCPInfo) *uint64 { return wide(t.Unacked) })
	return n * f.MSS(), ok
}

// Cwnd returns the congestion window in bytes.
func (f *Flow) Cwnd() (float64, bool) {
	n, ok := f.Sender.mean(func(c *measure.Timeline) *measure.Spread { return c.Cwnd }, func(t *measure.TCPInfo) *uint64 { return wide(t.Cwnd) })
	return n * f.MSS(), ok
}

// SendWindow returns the window that the receiver advertises, in bytes.
func (f *Flow) SendWindow() (float64, bool) {
	return f.Sender.mean(func(c *measure.Timeline) *measure.Spread { return c.SendWnd }, func(t *measure.TCPInfo) *uint64 { return wide(t.SendWnd) })
}

// NotSent returns the unsent bytes in the sender's socket.
func (f *Flow) NotSent() (float64, bool) {
	return f.Sender.mean(func(c *measure.Timeline) *measure.Spread { return c.NotSent }, func(t *measure.TCPInfo) *uint64 { return wide(t.NotSent) })
}

// unread returns the bytes in the receiver's socket that the program has not read.
func (f *Flow) unread() (float64, bool) {
	return f.Receiver.mean(func(c *measure.Timeline) *measure.Spread { return c.Unread }, nil)
}

// Pacing returns the pacing rate of a stream in bit/s.
func (f *Flow) Pacing() (float64, bool) {
	bytes, ok := f.Sender.mean(func(c *measure.Timeline) *measure.Spread { return c.Pacing }, func(t *measure.TCPInfo) *uint64 { return t.PacingRate })
	return 8 * bytes, ok && bytes < math.MaxUint32*1e6 // "no limit" is all ones
}

// LoadedRTT returns the mean round-trip time under load in ns.
func (f *Flow) LoadedRTT() (float64, bool) {
	ns, ok := f.Sender.mean(func(c *measure.Timeline) *measure.Spread { return c.RTT }, func(t *measure.TCPInfo) *uint64 { return span(t.RTT) })
	return ns, ok && ns > 0
}

// RTT returns the mean round-trip time under load and the minimum, in ns; false if one of them is not known.
func (f *Flow) RTT() (loaded, least float64, ok bool) {
	loaded, ok1 := f.LoadedRTT()
	least, ok2 := f.BaseRTT()
	return loaded, least, ok1 && ok2
}

// BaseRTT returns the round-trip time of the empty path in ns: the minimum that the sender's kernel saw, that of
// the idle path before the traffic, or that of the probe.
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

// MSS returns the payload of the sender's segments in bytes; 0 if it is not known.
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

// Segment returns the payload of a full segment in bytes, or that of MTU 1500 if it is not known.
func (f *Flow) Segment() float64 { return cmp.Or(f.MSS(), scene.UsualMSS) }

// Threads has the time shares of the stream with the busiest thread: on a CPU, waiting for one, or blocked in
// socket calls, in percent of the measured time.
type Threads struct{ Run, Wait, Blocked float64 }

// Threads returns those of the end's streams.
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

// Counter returns the increase of a counter of the host's protocol stack in the measured time, such as
// "TcpExt.TCPTimeouts". It covers the whole host. A counter that did not change is 0; without readings it is not
// known.
func (e *End) Counter(name string) (float64, bool) {
	return e.Seen.Protocol(name).Float()
}

// Bins returns the rates of the flow's seconds in bit/s.
func (f *Flow) Bins() []float64 {
	if f.Receiver.Seen != nil && f.Receiver.Seen.Reported == "" || f.Sender.Seen == nil {
		return stat.Bins(f.Receiver.Seen)
	}
	return stat.Bins(f.Sender.Seen)
}

// Flatness returns how much the rates of the seconds deviate from their median, in percent (median of the
// deviations); it needs three seconds.
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

// Silent returns in what share of its seconds the flow carried nothing: the path was down, or lost all packets. 0 if
// it never carried anything.
func (f *Flow) Silent() float64 {
	bins := f.Bins()
	empty := 0
	for _, rate := range bins {
		empty += unit.Bit(rate == 0)
	}
	if empty == len(bins) {
		return 0
	}
	return float64(empty) / float64(len(bins))
}

// Cut returns why the rates of a flow show no limit: no data arrived a tenth of the time or more. nil for others.
func (f *Flow) Cut() *Outcome {
	if silent := f.Silent(); silent >= 0.1 {
		return No("no data arrives %s of the time: the path was down, or lost all packets", unit.Percent(100*silent))
	}
	return nil
}

// CeilingShare returns the goodput in percent of the link's ceiling, if its rate is known; for flows that share a
// link at the same time, that of all of them.
func (f *Flow) CeilingShare() (float64, bool) {
	if f.Cell.Ceiling == nil {
		return 0, false
	}
	pct, _ := stat.LinkShare(f.Doc, f.Cell)
	return max(pct, f.Cell.Ceiling.SharePct), true
}
