package measure

import (
	"math"
	"slices"
)

// Delta is the increase of a counter over a time, usually the measured time. It has one meaning throughout:
//
//   - It is the reading at the end minus the reading at the start.
//   - Where one of the two readings is missing, it is unknown: neither zero nor the value of the other.
//     A connection that opens within the time starts from zeros (TCPInfo.AtBirth).
//   - A counter that went back was reset in between: unknown, never negative.
//   - For several streams it is their sum; unknown where one of them is unknown.
//
// Counters of a host (HostSpan) are deltas already. host.Span makes them in the same way, but counts on through a 32-bit wrap.
type Delta struct {
	N     uint64
	Known bool
	Why   string // why it is unknown
}

// Reasons for an unknown delta.
const (
	notRead  = "the kernel does not report this counter at both the start and the end of the measured time"
	wasReset = "the counter decreased in the measured time: it was reset"
)

// DeltaOf returns the delta between two readings; nil stands for a missing reading.
func DeltaOf(from, to *uint64) Delta {
	switch {
	case from == nil || to == nil:
		return Delta{Why: notRead}
	case *to < *from:
		return Delta{Why: wasReset}
	}
	return Delta{N: *to - *from, Known: true}
}

// Plus returns the sum of two deltas; unknown where one is unknown.
func (d Delta) Plus(x Delta) Delta {
	switch {
	case !d.Known:
		return d
	case !x.Known:
		return x
	}
	return Delta{N: saturating(d.N, x.N), Known: true}
}

// saturating returns a sum that does not wrap: a document may be untrusted.
func saturating(a, b uint64) uint64 { return a + min(b, math.MaxUint64-a) }

// Float returns the delta as a number, and whether it is known.
func (d Delta) Float() (float64, bool) { return float64(d.N), d.Known }

// Signed returns the delta for a JSON field; nil where it is unknown.
func (d Delta) Signed() *int64 {
	if !d.Known {
		return nil
	}
	return new(int64(min(d.N, math.MaxInt64)))
}

// Pct returns d as a share of another delta, in percent.
func (d Delta) Pct(of Delta) (float64, bool) {
	if !d.Known || !of.Known || of.N == 0 {
		return 0, false
	}
	return 100 * float64(d.N) / float64(of.N), true
}

// Counter picks a monotonic counter of TCP_INFO; nil where the kernel does not report it.
type Counter func(*TCPInfo) *uint64

// Retransmits picks the retransmitted segments.
func Retransmits(t *TCPInfo) *uint64 { return As[uint64](t.Retrans) }

// SegmentsSent picks the data segments sent, including retransmissions.
func SegmentsSent(t *TCPInfo) *uint64 { return As[uint64](t.DataSegsOut) }

// SegmentsReceived picks the data segments received.
func SegmentsReceived(t *TCPInfo) *uint64 { return As[uint64](t.DataSegsIn) }

// Duplicates picks the segments that the receiver had already (DSACK).
func Duplicates(t *TCPInfo) *uint64 { return As[uint64](t.DSACKDups) }

// Reorderings picks how often the kernel saw reordering.
func Reorderings(t *TCPInfo) *uint64 { return As[uint64](t.ReordSeen) }

// BytesSent picks the bytes sent, including retransmissions.
func BytesSent(t *TCPInfo) *uint64 { return t.BytesSent }

// BytesRetransmitted picks the retransmitted bytes.
func BytesRetransmitted(t *TCPInfo) *uint64 { return t.BytesRetrans }

// BusyTime picks how long the connection had data to send, in us.
func BusyTime(t *TCPInfo) *uint64 { return t.BusyUs }

// WindowLimited picks how long the receiver's window limited the connection, in us (with a resolution of one jiffy).
func WindowLimited(t *TCPInfo) *uint64 { return t.RwndLimitedUs }

// BufferLimited picks how long the send buffer limited the connection, in us.
func BufferLimited(t *TCPInfo) *uint64 { return t.SndbufLimUs }

// BytesAcked picks the acknowledged bytes, including the SYN.
func BytesAcked(t *TCPInfo) *uint64 { return t.BytesAcked }

// BytesReceived picks the bytes received in order.
func BytesReceived(t *TCPInfo) *uint64 { return t.BytesReceived }

// AtBirth returns the starting point of a connection that opens within the time: the counters that t has, at zero.
func (t *TCPInfo) AtBirth() *TCPInfo {
	if t == nil {
		return nil
	}
	return &TCPInfo{
		Retrans: zero(t.Retrans), BytesAcked: zero(t.BytesAcked), BytesReceived: zero(t.BytesReceived), SegsOut: zero(t.SegsOut), SegsIn: zero(t.SegsIn),
		DataSegsIn: zero(t.DataSegsIn), DataSegsOut: zero(t.DataSegsOut), BusyUs: zero(t.BusyUs), RwndLimitedUs: zero(t.RwndLimitedUs), SndbufLimUs: zero(t.SndbufLimUs),
		Delivered: zero(t.Delivered), DeliveredCE: zero(t.DeliveredCE), BytesSent: zero(t.BytesSent), BytesRetrans: zero(t.BytesRetrans), DSACKDups: zero(t.DSACKDups),
		ReordSeen: zero(t.ReordSeen), RecvOOO: zero(t.RecvOOO), TotalRTO: zero(t.TotalRTO),
	}
}

func zero[T any](counter *T) *T {
	if counter == nil {
		return nil
	}
	return new(T)
}

// DeltaTo returns the delta of a counter from reading t to reading "to" of a connection; nil stands for a missing reading.
func (t *TCPInfo) DeltaTo(to *TCPInfo, of Counter) Delta {
	if t == nil || to == nil {
		return Delta{Why: notRead}
	}
	return DeltaOf(of(t), of(to))
}

// Readings returns the TCP_INFO readings of the connection that exist: at the end and the start of the measured time, and at its close.
func (s *Stream) Readings() []*TCPInfo {
	return slices.DeleteFunc([]*TCPInfo{s.TCP, s.TCPStart, s.TCPEnd}, func(t *TCPInfo) bool { return t == nil })
}

// Delta returns the delta of a counter over the measured time.
func (s *Stream) Delta(of Counter) Delta { return s.TCPStart.DeltaTo(s.TCP, of) }

// Delta returns the delta of a counter over the measured time, summed over all streams.
func (e *Evidence) Delta(of Counter) Delta {
	if e == nil || len(e.Streams) == 0 {
		return Delta{Why: notRead}
	}
	sum := Delta{Known: true}
	for i := range e.Streams {
		sum = sum.Plus(e.Streams[i].Delta(of))
	}
	return sum
}

// SecondDelta returns the delta of a stream's counter in one second.
func (e *Evidence) SecondDelta(second, stream int, of Counter) Delta {
	tcp := e.Bins[second].TCP
	if stream >= len(tcp) {
		return Delta{Why: notRead}
	}
	return e.tcpBefore(second, stream).DeltaTo(&tcp[stream], of)
}

// tcpBefore returns a stream's reading at the start of a second; nil where there is none.
func (e *Evidence) tcpBefore(second, stream int) *TCPInfo {
	switch {
	case second > 0 && stream < len(e.Bins[second-1].TCP):
		return &e.Bins[second-1].TCP[stream]
	case second == 0 && stream < len(e.Streams):
		return e.Streams[stream].TCPStart
	}
	return nil
}

// Protocol returns the summed delta over the measured time of counters of the host's protocol stack, such as "TcpExt.TCPTimeouts". They count for the whole
// host. A counter that did not move is 0.
func (e *Evidence) Protocol(names ...string) Delta {
	if e == nil || e.Host == nil || e.Host.Proto == nil {
		return Delta{Why: "the counters of the host's protocol stack were not read"}
	}
	sum := Delta{Known: true}
	for _, name := range names {
		sum = sum.Plus(e.Host.protocol(name))
	}
	return sum
}

// protocol returns one of these counters; unknown where it was reset.
func (h *HostSpan) protocol(name string) Delta {
	n, moved := h.Proto[name]
	i := slices.IndexFunc(h.Missing, func(m NotChecked) bool { return m.Fact == "protocol."+name })
	if !moved && i >= 0 {
		return Delta{Why: h.Missing[i].Why}
	}
	return Delta{N: n, Known: true}
}
