package iperfdoc

import (
	"math"
	"strings"
	"time"

	"thru/internal/measure"
)

// intervals returns the seconds of the near end. Two directions begin at nearly the same time, so the n-th second of both is one interval.
func intervals(all []chosenCell) []Interval {
	var out []Interval
	for n, b := range all[0].near.Bins {
		i := Interval{Start: time.Duration(b.At), End: time.Duration(b.At + b.Span)}
		for k := range all {
			if n < len(all[k].near.Bins) {
				i.Directions = append(i.Directions, all[k].direction(n))
			}
		}
		out = append(out, i)
	}
	return out
}

// direction returns the n-th second of one direction.
func (x *chosenCell) direction(n int) Direction {
	e, b := x.near, x.near.Bins[n]
	count := len(e.Streams)
	w := Direction{Sends: x.sends}
	for j := range count {
		p := Part{Socket: Socket(x.first + j)}
		switch {
		case len(b.Streams) == count:
			p.Bytes = b.Streams[j]
		case count == 1:
			p.Bytes = b.Bytes
		default:
			continue // it is not known which stream had what
		}
		if len(b.TCP) == count {
			p.tcp(&b.TCP[j], e.SecondDelta(n, j, measure.Retransmits))
		}
		p.datagrams(b.Datagrams, count, e.Streams[j].Length)
		w.Streams = append(w.Streams, p)
	}
	w.Sum = Sum(w.Streams)
	w.Sum.Bytes = b.Bytes
	w.Sum.datagrams(b.Datagrams, 1, 0)
	return w
}

func (p *Part) tcp(now *measure.TCPInfo, resent measure.Delta) {
	p.Cwnd, p.RTTUs, p.RTTVarUs = cwnd(now), Micros(now.RTT), Micros(now.RTTVar)
	p.SendWindow, p.PathMTU, p.Reordering = measure.As[int64](now.SendWnd), measure.As[int64](now.PMTU), measure.As[int64](now.ReordSeen)
	p.Retransmits = resent.Signed()
}

// datagrams fills in a share of a second's counts, which cover all streams: the losses of one among several streams are not known.
func (p *Part) datagrams(d *measure.Datagrams, streams int, length int64) {
	switch {
	case d == nil:
	case streams == 1:
		p.Packets, p.JitterNs = d.Packets, d.JitterNs
		p.Lost = new(d.Lost)
	case length > 0:
		p.Packets, p.JitterNs = int64(math.Round(float64(p.Bytes)/float64(length))), d.JitterNs
	}
}

// cwnd returns the congestion window in bytes.
func cwnd(t *measure.TCPInfo) *int64 {
	if t.Cwnd == nil || t.SendMSS == nil {
		return nil
	}
	return new(int64(*t.Cwnd) * int64(*t.SendMSS))
}

// Micros converts ns to microseconds, iperf3's unit.
func Micros(ns *int64) *int64 {
	if ns == nil {
		return nil
	}
	return new(*ns / 1000)
}

// end returns the figures of the measured time.
func end(all []chosenCell) End {
	var e End
	for i, x := range all {
		e.Directions = append(e.Directions, x.endDirection())
		if i > 0 && x.cell.Spec.Duplex {
			break // the first direction's processes moved both directions, and counted them together
		}
		local, remote := cpu(x.near), cpu(x.far)
		e.Local = CPU{e.Local.User + local.User, e.Local.System + local.System}
		e.Remote = CPU{e.Remote.User + remote.User, e.Remote.System + remote.System}
		if x.far != nil && e.ServerText == "" && e.ServerJSON == "" {
			if text := strings.TrimSpace(x.far.Output); strings.HasPrefix(text, "{") {
				e.ServerJSON = text
			} else {
				e.ServerText = x.far.Output
			}
		}
	}
	return e
}

// cpu returns the CPU use of the process at one end.
func cpu(e *measure.Evidence) CPU {
	if e == nil || e.Worker == nil || e.MeasuredNs <= 0 {
		return CPU{}
	}
	pct := func(ns int64) float64 { return 100 * float64(ns) / float64(e.MeasuredNs) }
	return CPU{pct(e.Worker.UserNs), pct(e.Worker.SystemNs)}
}

func (x *chosenCell) endDirection() EndDirection {
	s, r := x.sender(), x.receiver()
	w := EndDirection{Sends: x.sends, HasSent: s != nil, HasReceived: r != nil}
	if s != nil {
		w.Sent, w.SenderCongestion = time.Duration(s.MeasuredNs), congestion(s)
	}
	if r != nil {
		w.Received, w.ReceiverCongestion = time.Duration(r.MeasuredNs), congestion(r)
	}
	// For an unknown end iperf3 prints the time of the other.
	if s == nil {
		w.Sent = w.Received
	} else if r == nil {
		w.Received = w.Sent
	}
	for j := range x.near.Streams {
		stream := EndStream{Socket: Socket(x.first + j)}
		if s != nil && j < len(s.Streams) {
			stream.Sent = total(allSent(x.cell, &s.Streams[j]))
			stream.Sent.Timeline = timeline(s, j)
		}
		if r != nil && j < len(r.Streams) {
			stream.Received = total(&r.Streams[j])
			stream.Received.lostAll(stream.Sent)
		}
		w.Streams = append(w.Streams, stream)
	}
	return w
}

func congestion(e *measure.Evidence) string {
	if len(e.Streams) == 0 {
		return ""
	}
	return e.Streams[0].Congestion
}

// allSent returns a datagram sender's counts over the whole test where it had no ramp: its last call ends after the measured time, and the receiver gets that
// data.
func allSent(c *measure.Cell, s *measure.Stream) *measure.Stream {
	if s.DatagramsAll == nil || s.Datagrams == nil || !c.Spec.NoRamp {
		return s
	}
	all := *s
	all.Bytes, all.Datagrams = s.TotalBytes, s.DatagramsAll
	return &all
}

// total returns one end's counts of a stream in the measured time.
func total(s *measure.Stream) Total {
	t := Total{Bytes: s.Bytes, Retransmits: s.Delta(measure.Retransmits).Signed()}
	if d := s.Datagrams; d != nil {
		t.Packets, t.Lost, t.OutOfOrder = d.Packets, d.Lost, d.Reordered
		t.JitterNs = measure.Value(d.JitterNs)
	}
	return t
}

// lostAll counts all sent datagrams as lost where none arrived: no gap shows that loss.
func (t *Total) lostAll(sent Total) {
	if t.Packets == 0 && t.Lost == 0 {
		t.Lost = sent.Packets
	}
}

// timeline returns a stream's TCP figures at the end of each second.
func timeline(e *measure.Evidence, stream int) Timeline {
	var c Timeline
	var sum, n int64
	for _, b := range e.Bins {
		if len(b.TCP) != len(e.Streams) {
			continue
		}
		t := &b.TCP[stream]
		c.Known = true
		c.MaxCwnd = max(c.MaxCwnd, measure.Value(cwnd(t)))
		c.MaxWindow = max(c.MaxWindow, int64(measure.Value(t.SendWnd)))
		c.Reordering = max(c.Reordering, int64(measure.Value(t.ReordSeen)))
		if rtt := measure.Value(Micros(t.RTT)); rtt > 0 {
			c.MaxRTT = max(c.MaxRTT, rtt)
			if c.MinRTT == 0 || rtt < c.MinRTT {
				c.MinRTT = rtt
			}
			sum, n = sum+rtt, n+1
		}
	}
	if n > 0 {
		c.MeanRTTUs = sum / n
	}
	return c
}
