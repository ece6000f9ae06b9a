package measure

import (
	"math"
	"slices"
)

// Delta is by how much a counter rose over a time, as a rule the measured time.
// It has one meaning throughout:
//
//   - It is the reading at the end less the reading at the start.
//   - Where one of the two was not read, it is unknown: neither zero nor the whole of
//     the other. A connection made within the time has a start of zeros (TCPInfo.AtBirth).
//   - A counter that went back was reset in between: unknown, never negative.
//   - Of several streams it is their sum; unknown where that of one is.
//
// Counters of a host (HostSpan) are deltas already, made by host.Span in the same way;
// it counts on through a wrap at 32 bits.
type Delta struct {
	N     uint64
	Known bool
	Why   string // why it is not known
}

// Why a delta is not known.
const (
	notRead  = "the kernel gives no such counter at both ends of the measured time"
	wasReset = "the counter went back in the measured time: it was reset"
)

// DeltaOf is the delta between two readings; nil is one that was not read.
func DeltaOf(from, to *uint64) Delta {
	switch {
	case from == nil || to == nil:
		return Delta{Why: notRead}
	case *to < *from:
		return Delta{Why: wasReset}
	}
	return Delta{N: *to - *from, Known: true}
}

// Plus is the sum of two; unknown where one is.
func (d Delta) Plus(x Delta) Delta {
	switch {
	case !d.Known:
		return d
	case !x.Known:
		return x
	}
	return Delta{N: saturating(d.N, x.N), Known: true}
}

// saturating is a sum that does not wrap: a document may come from anybody.
func saturating(a, b uint64) uint64 { return a + min(b, math.MaxUint64-a) }

// Float is the delta as a number, and whether it is known.
func (d Delta) Float() (float64, bool) { return float64(d.N), d.Known }

// Signed is the delta for a field of JSON; nil where it is not known.
func (d Delta) Signed() *int64 {
	if !d.Known {
		return nil
	}
	return new(int64(min(d.N, math.MaxInt64)))
}

// Pct is the share of one delta in another, in percent.
func (d Delta) Pct(of Delta) (float64, bool) {
	if !d.Known || !of.Known || of.N == 0 {
		return 0, false
	}
	return 100 * float64(d.N) / float64(of.N), true
}

// Counter picks a counter of TCP_INFO that only rises; nil where the kernel has not
// told it.
type Counter func(*TCPInfo) *uint64

// Retransmits are the segments that were sent again.
func Retransmits(t *TCPInfo) *uint64 { return As[uint64](t.Retrans) }

// SegmentsSent are the data segments that were sent, retransmissions among them.
func SegmentsSent(t *TCPInfo) *uint64 { return As[uint64](t.DataSegsOut) }

// SegmentsReceived are the data segments that came.
func SegmentsReceived(t *TCPInfo) *uint64 { return As[uint64](t.DataSegsIn) }

// Duplicates are the segments that the receiver had already (DSACK).
func Duplicates(t *TCPInfo) *uint64 { return As[uint64](t.DSACKDups) }

// Reorderings are how often the kernel saw reordering.
func Reorderings(t *TCPInfo) *uint64 { return As[uint64](t.ReordSeen) }

// BytesSent are the bytes that were sent, retransmissions among them.
func BytesSent(t *TCPInfo) *uint64 { return t.BytesSent }

// BytesRetransmitted are the bytes that were sent again.
func BytesRetransmitted(t *TCPInfo) *uint64 { return t.BytesRetrans }

// BusyTime is how long the connection had data to send, in us.
func BusyTime(t *TCPInfo) *uint64 { return t.BusyUs }

// WindowLimited is how long the receiver's window held it up, in us (its resolution is a jiffy).
func WindowLimited(t *TCPInfo) *uint64 { return t.RwndLimitedUs }

// BufferLimited is how long the send buffer held it up, in us.
func BufferLimited(t *TCPInfo) *uint64 { return t.SndbufLimUs }

// BytesAcked are the bytes that were acknowledged, the SYN among them.
func BytesAcked(t *TCPInfo) *uint64 { return t.BytesAcked }

// BytesReceived are the bytes that came in order.
func BytesReceived(t *TCPInfo) *uint64 { return t.BytesReceived }

// AtBirth is the start of a connection that was made within the time: the counters
// that t has, at zero.
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

// DeltaTo is the delta of a counter from one reading of a connection to another; nil
// is a reading that was not made.
func (t *TCPInfo) DeltaTo(to *TCPInfo, of Counter) Delta {
	if t == nil || to == nil {
		return Delta{Why: notRead}
	}
	return DeltaOf(of(t), of(to))
}

// Readings are what the kernel told of the connection, as far as it was read: at the end and the
// start of the measured time, and when it closed.
func (s *Stream) Readings() []*TCPInfo {
	return slices.DeleteFunc([]*TCPInfo{s.TCP, s.TCPStart, s.TCPEnd}, func(t *TCPInfo) bool { return t == nil })
}

// Delta of a counter over the measured time.
func (s *Stream) Delta(of Counter) Delta { return s.TCPStart.DeltaTo(s.TCP, of) }

// Delta of a counter over the measured time, of all streams.
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

// SecondDelta is the delta of a stream's counter in one of the seconds.
func (e *Evidence) SecondDelta(second, stream int, of Counter) Delta {
	tcp := e.Bins[second].TCP
	if stream >= len(tcp) {
		return Delta{Why: notRead}
	}
	return e.tcpBefore(second, stream).DeltaTo(&tcp[stream], of)
}

// tcpBefore is the reading of a stream when a second began; nil where there is none.
func (e *Evidence) tcpBefore(second, stream int) *TCPInfo {
	switch {
	case second > 0 && stream < len(e.Bins[second-1].TCP):
		return &e.Bins[second-1].TCP[stream]
	case second == 0 && stream < len(e.Streams):
		return e.Streams[stream].TCPStart
	}
	return nil
}

// Protocol is the delta of counters of the host's protocol stack, such as
// "TcpExt.TCPTimeouts", over the measured time; it is of the whole host. A counter that did not move is 0.
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

// protocol is one of these counters; unknown where it was reset.
func (h *HostSpan) protocol(name string) Delta {
	n, moved := h.Proto[name]
	i := slices.IndexFunc(h.Missing, func(m NotChecked) bool { return m.Fact == "protocol."+name })
	if !moved && i >= 0 {
		return Delta{Why: h.Missing[i].Why}
	}
	return Delta{N: n, Known: true}
}
