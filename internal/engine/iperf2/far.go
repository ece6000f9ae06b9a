package iperf2

import (
	"math"

	"thru/internal/measure"
)

// Far implements engine.Session. Over UDP a server reports what it received. Over TCP, and of itself as a sender, an iperf2 reports nothing: the receiver's
// bytes are those that its kernel has acknowledged.
func (s *session) Far() (far, back *measure.Evidence) {
	own := s.Evidence()
	far = s.farOf(own)
	if b, ok := s.Back(); ok {
		back = s.farOf(b)
	}
	return far, back
}

// farOf returns the evidence of the other end of a direction; own is that of this end.
func (s *session) farOf(own measure.Evidence) *measure.Evidence {
	spec := s.end.Spec
	name := spec.From
	if s.end.Sends {
		name = spec.To
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := measure.Evidence{
		EndPoint: name, Reported: s.peer.program(), Sends: !own.Sends, Dialled: !own.Dialled,
		LocalAddr: own.PeerAddr, PeerAddr: own.LocalAddr, Streams: []measure.Stream{}, Bins: []measure.StreamBin{},
	}
	not := func(fact, why string) { e.Missing = append(e.Missing, measure.NotChecked{Fact: fact, Why: why}) }
	const silent = "iperf2 reports nothing to the other end"
	switch {
	case spec.Protocol == measure.UDP && own.Sends && own.Dialled:
		reported(&e, own, s.words, not)
	case spec.Protocol == measure.UDP && !own.Sends:
		counted(&e, own)
		not("bytes", silent+"; thru counts its datagrams by their sequence numbers")
	case spec.Protocol == measure.TCP && own.Sends:
		acknowledged(&e, own, not)
	default:
		not("bytes", silent)
	}
	not("host", silent)
	not("streams.tcp", silent)
	not("io", silent)
	return &e
}

// reported fills the evidence from the server's reports of its UDP streams, without the client's final datagrams. The server counts these: those that it
// missed, as lost datagrams.
func reported(e *measure.Evidence, own measure.Evidence, words []lastWords, not func(fact, why string)) {
	for i, w := range words {
		if i >= len(own.Streams) {
			break
		}
		x, r := own.Streams[i], w.report
		if r == nil {
			*e = measure.Evidence{EndPoint: e.EndPoint, Reported: e.Reported, Dialled: e.Dialled, Streams: []measure.Stream{}, Bins: []measure.StreamBin{}}
			not("bytes", "the server's report did not arrive: the path lost it, or the server runs with --no-udp-fin")
			return
		}
		missed := min(max(r.datagrams-w.first, 0), r.lost)
		d := measure.Datagrams{Lost: r.lost - missed, Reordered: r.reordered, JitterNs: new(int64(r.jitter))}
		d.Packets = max(min(r.datagrams, w.first)-1-d.Lost, 0)
		bytes := max(r.bytes-x.Length, 0)
		e.Streams = append(e.Streams, measure.Stream{Index: i, Local: x.Peer, Peer: x.Local, Bytes: bytes, TotalBytes: bytes, Datagrams: &d, DatagramsAll: new(d)})
		e.Bytes += bytes
		e.TotalBytes += bytes
		e.MeasuredNs = max(e.MeasuredNs, int64(r.duration))
	}
	if own.RampNs > 0 {
		not("measured_ns", "its report covers the whole test, including the ramp")
	}
	not("streams.datagrams.duplicates", "iperf2 counts them as out of order")
}

// counted fills the evidence from the numbers of a sender's datagrams. They show how many datagrams there were, but not in which time.
func counted(e *measure.Evidence, own measure.Evidence) {
	for _, x := range own.Streams {
		y := measure.Stream{Index: x.Index, Local: x.Peer, Peer: x.Local, Length: x.Length}
		if x.Datagrams != nil {
			y.Datagrams = &measure.Datagrams{Packets: x.Datagrams.Packets + x.Datagrams.Lost}
		}
		if x.DatagramsAll != nil {
			y.DatagramsAll = &measure.Datagrams{Packets: x.DatagramsAll.Packets + x.DatagramsAll.Lost}
		}
		e.Streams = append(e.Streams, y)
	}
}

// acknowledged fills the evidence from the bytes that the receiver's kernel has acknowledged, as the sender's kernel saw it.
func acknowledged(e *measure.Evidence, own measure.Evidence, not func(fact, why string)) {
	begin := make([]uint64, len(own.Streams))
	for i, x := range own.Streams {
		a, okA := acked(x.TCPStart)
		b, okB := acked(x.TCP)
		all, okAll := acked(x.TCPEnd)
		if !okA || !okB || !okAll {
			not("bytes", "iperf2 reports nothing over TCP, and this system does not report the acknowledged bytes")
			return
		}
		if own.RampNs == 0 { // the measured time began with the first byte, before the first reading
			a = 0
		}
		moved := measure.DeltaOf(&a, &b)
		if !moved.Known {
			not("bytes", "iperf2 reports nothing over TCP; acknowledged bytes: "+moved.Why)
			return
		}
		begin[i] = a
		y := measure.Stream{Index: x.Index, Local: x.Peer, Peer: x.Local, Bytes: int64(moved.N), TotalBytes: min(int64(all), x.TotalBytes)}
		y.Bytes = min(y.Bytes, y.TotalBytes)
		e.Streams = append(e.Streams, y)
		e.Bytes += y.Bytes
		e.TotalBytes += y.TotalBytes
	}
	e.RampNs, e.MeasuredNs = own.RampNs, own.MeasuredNs
	e.Bins = ackedBins(own, begin)
	not("bytes_read", "iperf2 reports nothing over TCP: the bytes are those acknowledged to the sender")
}

// ackedBins returns the acknowledged bytes of each second of the measured time; nothing where the kernel did not report each second.
func ackedBins(own measure.Evidence, before []uint64) []measure.StreamBin {
	bins := []measure.StreamBin{}
	for _, b := range own.Bins {
		if len(b.TCP) != len(before) {
			return []measure.StreamBin{}
		}
		bin := measure.StreamBin{At: b.At, Span: b.Span}
		for i := range b.TCP {
			now, ok := acked(&b.TCP[i])
			if !ok || now < before[i] {
				return []measure.StreamBin{}
			}
			bin.Streams = append(bin.Streams, int64(now-before[i]))
			bin.Bytes += int64(now - before[i])
			before[i] = now
		}
		bins = append(bins, bin)
	}
	return bins
}

// acked returns the acknowledged bytes of a TCP_INFO, without the SYN, which the kernel counts.
func acked(t *measure.TCPInfo) (uint64, bool) {
	if t == nil || t.BytesAcked == nil || *t.BytesAcked > math.MaxInt64 {
		return 0, false
	}
	return max(*t.BytesAcked, 1) - 1, true
}
