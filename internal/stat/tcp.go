package stat

import (
	"cmp"
	"math"

	"thru/internal/measure"
)

// retransmits fills the retransmissions in the measured time, of all streams and all runs that count: a mean would
// round a single one away.
func (s *summary) retransmits() {
	if n := s.total(measure.Retransmits); n.Known {
		s.cell.Retransmits = whole(float64(n.N))
	} else if !s.asks() {
		s.missing("retransmits_segments", s.why(senderSide, "streams.tcp.total_retrans_segments", n.Why))
	}
}

// total returns the increase of a counter of the sender over all runs; it is not known if that of one run is not.
func (s *summary) total(counter measure.Counter) measure.Delta {
	if len(s.runs) == 0 {
		return (*measure.Evidence)(nil).Delta(counter)
	}
	sum := measure.Delta{Known: true}
	for _, p := range s.runs {
		sum = sum.Plus(p.sender.Delta(counter))
	}
	return sum
}

// rfc6349 fills the metrics of RFC 6349, section 4. The transfer time ratio is against the ceiling, and for a test
// of a fixed time it is the ratio of the rates. The base of the buffer delay is the minimum round-trip time that
// the sender's kernel saw (min_rtt), else the idle one from socket to socket.
func (s *summary) rfc6349() {
	var m measure.RFC6349
	c := s.cell
	if c.Ceiling != nil && c.Goodput != nil {
		m.TransferTimeRatio = Known(TransferTimeRatio(c.Ceiling.Bps, c.Goodput.Value))
	}
	if m.TransferTimeRatio == nil {
		s.missing("rfc6349.transfer_time_ratio", "it needs the ceiling and a goodput")
	}
	sent, again := s.total(measure.BytesSent), s.total(measure.BytesRetransmitted)
	if sent.Known && again.Known {
		m.EfficiencyPct = Known(Efficiency(float64(sent.N), float64(again.N)))
	}
	if m.EfficiencyPct == nil {
		s.missing("rfc6349.tcp_efficiency_pct", s.why(senderSide, "streams.tcp.bytes_sent", cmp.Or(sent.Why, again.Why, "nothing was sent")))
	}
	if base := s.baseRTT(); c.RTTLoaded != nil && base > 0 {
		m.BufferDelayPct = Known(BufferDelay(float64(*c.RTTLoaded), base))
		m.BaseRTT = new(int64(base))
	}
	if m.BufferDelayPct == nil {
		s.missing("rfc6349.buffer_delay_pct", "it needs a round trip of the idle path and one under load")
	}
	if m != (measure.RFC6349{}) {
		c.RFC6349 = &m
	}
}

// baseRTT returns the round-trip time of the empty path in ns; 0 is unknown.
func (s *summary) baseRTT() float64 {
	least := int64(math.MaxInt64)
	for _, p := range s.runs {
		for _, x := range streams(p.sender) {
			if x.TCP != nil && x.TCP.MinRTT != nil && *x.TCP.MinRTT > 0 {
				least = min(least, *x.TCP.MinRTT)
			}
		}
	}
	if least < math.MaxInt64 {
		return float64(least)
	}
	return float64(measure.Value(s.cell.RTTIdle))
}

// fairness fills Jain's index over what the streams brought to the receiver, the mean of the runs. A single stream
// has none, and nothing is missing then.
func (s *summary) fairness() {
	var indices []float64
	several := s.cell.Streams > 1
	for _, p := range s.runs {
		var shares []float64
		for _, x := range streams(p.receiver) {
			shares = append(shares, float64(max(0, x.Bytes)))
		}
		several = several || len(shares) > 1
		if index := Known(Jain(shares)); index != nil && len(shares) > 1 {
			indices = append(indices, *index)
		}
	}
	s.cell.Fairness = Known(Mean(indices))
	if several && s.cell.Fairness == nil {
		s.missing("jain_fairness", s.why(receiverSide, "streams", "the receiver did not count each stream"))
	}
}

// packets fills the mean size of the packets that the receiver's interface received in the measured time, of all
// its traffic and with the Ethernet header: on `lo` these are the 64 KB packets of segmentation offload. If the
// interface was not counted, or counted clearly less than the payload, it is the payload per data segment.
func (s *summary) packets() {
	var nicBytes, nicPackets, payload, segments float64
	counted := true
	for _, p := range s.runs {
		if p.receiver == nil {
			continue
		}
		payload += float64(p.receiver.Bytes)
		if h := p.receiver.Host; h != nil && h.NIC != nil {
			nicBytes += float64(h.NIC.RxBytes)
			nicPackets += float64(h.NIC.RxPackets)
		}
		n, ok := p.receiver.Delta(measure.SegmentsReceived).Float()
		segments, counted = segments+n, counted && ok
	}
	if nicBytes >= 0.95*payload && nicPackets > 0 { // the two are not read at the same instant
		s.cell.MeanPacket = Known(MeanPacket(nicBytes, nicPackets))
	} else if counted {
		s.cell.MeanPacket = Known(MeanPacket(payload, segments))
	}
	if s.cell.MeanPacket == nil {
		why := "neither the receiver's interface nor its segments were counted"
		if s.isUDP() {
			why = "the receiver's interface was not counted"
		}
		s.missing("mean_packet_bytes", s.why(receiverSide, "host.interface", why))
	}
}
