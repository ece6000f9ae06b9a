package capture

import (
	"math"

	"thru/internal/capture/trace"
	"thru/internal/measure"
)

// mostBins limits the bins of a capture; in a longer one a bin has several
// seconds.
const mostBins = 4096

// senderSide returns the sender's evidence, from the capture nearer to the
// sender.
func (d *draft) senderSide(w direction) *measure.Evidence {
	e := d.side(w.sender, w.sent, span{math.MaxInt64, math.MinInt64}, func(s *stream) trace.Volume { return s.sent })
	e.EndPoint, e.Sends = w.from, true
	atSender := w.placeOf(w.sender.Capture) == measure.AtSender
	for i := range w.sent {
		x := &e.Streams[i]
		if x.TCP = negotiated(w.sent[i].conn); atSender {
			w.sent[i].count(x.TCP)
			x.TCPStart = x.TCP.AtBirth()
		}
	}
	if !atSender {
		lack(e, "streams.tcp", "the capture may not be at the sender: it does not contain packets lost before the capture point")
		return e
	}
	for i := range e.Bins {
		w.roundTrips(&e.Bins[i])
	}
	unseen(e, "streams.tcp", "a capture does not show it")
	return e
}

// receiverSide returns the receiver's evidence, from the capture nearer to
// the receiver: what the receiver acknowledged had arrived in order.
func (d *draft) receiverSide(w direction) *measure.Evidence {
	e := d.side(w.receiver, w.acked, w.stall(), (*stream).got)
	e.EndPoint, e.Dialled = w.to, !e.Dialled
	e.LocalAddr, e.PeerAddr = e.PeerAddr, e.LocalAddr
	for i := range e.Streams {
		s := &e.Streams[i]
		s.Local, s.Peer = s.Peer, s.Local
	}
	unseen(e, "bytes_read", "a capture shows what was acknowledged, not what the program read")
	unseen(e, "streams.tcp", "a capture does not show it")
	return e
}

// span is a time span in ns since 1970, by the clock of one capture.
type span struct{ start, end int64 }

// stallNs is how long data must have been sent without success for a stall.
const stallNs = 1_000_000_000

// stall returns the time, by the clock at the receiver, in which the sender
// still tried to send but no data arrived any more: only the sender's capture
// shows how long it tried. It is empty where data arrived until the end.
func (w *direction) stall() span {
	s := span{math.MaxInt64, math.MinInt64}
	acked := int64(math.MinInt64)
	for i := range w.sent {
		x := &w.sent[i]
		s.start, s.end = min(s.start, x.sent.FirstNs), max(s.end, x.until())
		if x.acked.Total > 0 {
			acked = max(acked, x.acked.LastNs)
		}
	}
	none := span{math.MaxInt64, math.MinInt64}
	if w.crossing == nil || len(w.sent) == 0 || acked > s.end-stallNs {
		return none
	}
	offset, last := w.crossing.OffsetNs, w.receiver.Capture.StartedAt.UnixNano()+w.receiver.Capture.SpanNs
	if acked != math.MinInt64 && acked+offset > last+stallNs {
		return none // the receiver's capture ended before
	}
	return span{s.start + offset, s.end + offset}
}

// until returns when the sender last sent data, new or retransmitted.
func (s *stream) until() int64 {
	if s.turned {
		return s.sent.FirstNs + s.conn.Acks.SendNs
	}
	return s.sent.FirstNs + s.conn.Data.SendNs
}

// side fills in what both ends have: the streams and their seconds, and the
// handshakes' round-trip times, which are complete at any capture point. The
// time is that in which the sender tried to send, at this capture or, in
// tried, at the other one.
func (d *draft) side(f *File, all []stream, tried span, count func(*stream) trace.Volume) *measure.Evidence {
	e := &measure.Evidence{Reported: measure.ByCapture, Streams: []measure.Stream{}, Bins: []measure.StreamBin{}, RTTIdle: opened(all)}
	if len(all) == 0 { // no data passed, but the flow may have been opened
		e.RTTIdle = opened(d.allOf(f, false))
	}
	unseen(e, "host", "a capture does not show it")
	if e.RTTIdle == nil {
		lack(e, "rtt_idle", "the capture has no handshake with a reliable round trip")
	}
	var volumes []trace.Volume
	start, end := tried.start, tried.end
	for i := range all {
		s, v := &all[i], count(&all[i])
		volumes = append(volumes, v)
		if s.sent.Total > 0 {
			start, end = min(start, s.sent.FirstNs), max(end, v.LastNs)
			if until := s.until(); v.Total == 0 || until-v.LastNs > stallNs {
				end = max(end, until)
			}
		} else if v.Total > 0 { // acknowledged, but not in the capture
			start, end = min(start, v.FirstNs), max(end, v.LastNs)
		}
		e.Bytes += v.Total
		e.Streams = append(e.Streams, measure.Stream{Index: i, Local: s.local, Peer: s.peer, Bytes: v.Total, TotalBytes: v.Total, MSS: s.conn.MSS})
	}
	e.TotalBytes = e.Bytes
	if len(all) > 0 {
		e.LocalAddr, e.PeerAddr = all[0].local, all[0].peer
		e.Dialled = all[0].peer == d.server[f.Capture]
	}
	if end > start {
		e.MeasuredNs = end - start
		e.Bins = seconds(volumes, start, end)
	}
	return e
}

// seconds returns the bins of the time from start to end.
func seconds(volumes []trace.Volume, start, end int64) []measure.StreamBin {
	step := int64(measure.Bin)
	step *= (end-start)/step/mostBins + 1
	before := make([]int64, len(volumes))
	bins := []measure.StreamBin{}
	for n := range (end - start + step - 1) / step { // a count, which ends whatever the times are
		at := start + n*step
		until := at + min(step, end-at)
		b := measure.StreamBin{At: at - start, Span: until - at, Streams: make([]int64, len(volumes))}
		for i, v := range volumes {
			n := v.Until(until)
			b.Streams[i] = n - before[i]
			b.Bytes += b.Streams[i]
			before[i] = n
		}
		bins = append(bins, b)
	}
	return bins
}

// negotiated returns the part of the sender's TCP_INFO that any capture point
// shows: the negotiated options and the segment size.
func negotiated(c *measure.Connection) *measure.TCPInfo {
	t := &measure.TCPInfo{}
	if c.MSS > 0 {
		t.SendMSS = narrow(int64(c.MSS))
	}
	if a, b := c.SYN, c.SYNACK; a == nil || b == nil {
		if full := fullPacket(c); full > 0 {
			t.PMTU = narrow(int64(full)) // the largest packet sent; only a handshake shows what the ends could accept
		}
	} else {
		t.Timestamps, t.SACK, t.WScaleOK, t.ECN = both(a.Timestamps, b.Timestamps), both(a.SACK, b.SACK), both(a.HasScale, b.HasScale), both(a.ECN, b.ECN)
	}
	return t
}

// fullPacket returns the size of a full segment's IP packet; 0 where it is
// not known.
func fullPacket(c *measure.Connection) int {
	if c.MaxPacket == 0 && c.Data.Super.N == 0 {
		return c.Data.MaxPacket
	}
	return c.MaxPacket
}

// count adds the counters of the sender's TCP_INFO that packets show too.
func (s *stream) count(t *measure.TCPInfo) {
	data := s.conn.Data
	if s.turned {
		data = s.conn.Acks
	}
	t.Retrans, t.BytesSent, t.BytesRetrans = narrow(data.Again.Segments()), new(uint64(max(data.Payload, 0))), new(uint64(max(data.Again.Bytes, 0)))
	if rtt := s.conn.RTT; rtt != nil && !s.turned {
		t.RTT, t.MinRTT = new(rtt.P50), new(rtt.Min)
	}
}

// narrow converts a count to the type in TCP_INFO.
func narrow(n int64) *uint32 { return new(uint32(min(max(n, 0), math.MaxUint32))) }

// both reports whether both ends offer an option, which it takes to be in
// effect.
func both(a, b *bool) *bool {
	if a == nil || b == nil {
		return nil
	}
	return new(*a && *b)
}

// roundTrips sets the mean round-trip time of a bin, over the connections
// with a time line.
func (w *direction) roundTrips(b *measure.StreamBin) {
	all, start := w.sent, int64(math.MaxInt64)
	for i := range all {
		start = min(start, all[i].sent.FirstNs)
	}
	b.TCP = make([]measure.TCPInfo, len(all))
	known := false
	for i := range all {
		if all[i].turned {
			continue
		}
		if mean, ok := meanRTT(w.sender.Capture, all[i].conn, start+b.At, start+b.At+b.Span); ok {
			b.TCP[i].RTT, known = new(mean), true
		}
	}
	if !known {
		b.TCP = nil
	}
}

// meanRTT returns the mean of a time line's steps between two times.
func meanRTT(c *measure.Capture, conn *measure.Connection, from, to int64) (mean int64, ok bool) {
	timeline := conn.Timeline
	if timeline == nil || timeline.StepNs <= 0 {
		return 0, false
	}
	begin := c.StartedAt.UnixNano() + conn.StartNs
	var sum, n int64
	for i := max(0, (from-begin)/timeline.StepNs); i < int64(len(timeline.RTT)) && begin+i*timeline.StepNs < to; i++ {
		if rtt := timeline.RTT[i]; rtt >= 0 {
			sum, n = sum+rtt, n+1
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / n, true
}
