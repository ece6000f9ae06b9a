package iperfdoc

import (
	"cmp"
	"math"
	"slices"

	"thru/internal/measure"
)

// intervals returns the intervals of the document, up to the limit.
func (r *reading) intervals() []member {
	all := r.root.get("intervals").list()
	return all[:min(len(all), maxIntervals)]
}

// bins returns the complete intervals of one direction that are not omitted.
func (r *reading) bins(sends bool, rows []stream) []measure.StreamBin {
	out := []measure.StreamBin{}
	sent := make([]uint64, len(rows)) // retransmissions since the measured time began
	mss := r.mss()
	for _, m := range r.intervals() {
		if !m.value.whole {
			continue
		}
		b := measure.StreamBin{Streams: make([]int64, len(rows))}
		tcp := make([]measure.TCPInfo, len(rows))
		seen, told := 0, 0
		for _, s := range m.value.get("streams").list() {
			row := s.value
			socket := row.get("socket").count()
			i := slices.IndexFunc(rows, func(x stream) bool { return x.socket == socket })
			if i < 0 || row.get("omitted").isTrue() {
				continue
			}
			seen++
			add(&b, row, i)
			if n, ok := row.get("retransmits").integer(); ok {
				sent[i] += uint64(n)
				tcp[i] = tcpInfo(row, mss)
				tcp[i].Retrans = new(uint32(min(sent[i], math.MaxUint32)))
				told++
			}
			if r.protocol == measure.UDP {
				addDatagrams(&b, row, sends)
			}
		}
		if seen == 0 || b.Span <= 0 {
			continue
		}
		if told == len(rows) && sends {
			b.TCP = tcp
		}
		out = append(out, b)
	}
	return out
}

// add adds a row to the interval.
func add(b *measure.StreamBin, row node, i int) {
	span := cmp.Or(duration(row.get("seconds")), duration(row.get("end"))-duration(row.get("start")))
	b.At, b.Span = duration(row.get("start")), max(b.Span, span)
	n := min(row.get("bytes").count(), math.MaxInt64/(2*maxStreams))
	b.Bytes += n
	b.Streams[i] += n
}

// addDatagrams adds a row to the interval. The jitter is that of the last stream that has one, which is good enough: `end` holds the mean over the streams.
func addDatagrams(b *measure.StreamBin, row node, sends bool) {
	packets, ok := row.get("packets").integer()
	if !ok {
		return
	}
	if b.Datagrams == nil {
		b.Datagrams = &measure.Datagrams{}
	}
	const most = math.MaxInt64 / (2 * maxStreams)
	lost := min(row.get("lost_packets").count(), packets, most)
	b.Datagrams.Packets += min(packets, most) - lost
	if !sends {
		b.Datagrams.Lost += lost
		if ms, ok := row.get("jitter_ms").number(); ok && ms < 1e9 {
			b.Datagrams.JitterNs = new(int64(ms * 1e6))
		}
	}
}

// tcpInfo returns the kernel's figures of a stream at the end of the interval.
func tcpInfo(row node, mss uint32) measure.TCPInfo {
	t := measure.TCPInfo{
		RTT: nanos(row.get("rtt")), RTTVar: nanos(row.get("rttvar")), PMTU: narrow(row.get("pmtu")),
		SendWnd: narrow(row.get("snd_wnd")), ReordSeen: narrow(row.get("reorder")),
	}
	if c := narrow(row.get("snd_cwnd")); c != nil && mss > 0 { // the kernel counts it in segments
		t.Cwnd, t.SendMSS = new(*c/mss), new(mss)
	}
	return t
}

// nanos returns a time that iperf3 reports in microseconds as ns; nil without one.
func nanos(n node) *int64 {
	us := narrow(n)
	if us == nil {
		return nil
	}
	return new(int64(*us) * 1000)
}

// narrow returns a 32-bit counter; nil for another value, and for 0, which means not known.
func narrow(n node) *uint32 {
	i, ok := n.integer()
	if !ok || i > math.MaxUint32 {
		return nil
	}
	return new(uint32(i))
}

// mss returns a segment size that divides all congestion windows: the MSS of the control connection may differ from that of the data. 0: unknown.
func (r *reading) mss() uint32 {
	var windows, sizes []uint32
	if n := narrow(r.start.get("tcp_mss_default")); n != nil {
		sizes = append(sizes, *n)
	}
	for _, m := range r.intervals() {
		for _, s := range m.value.get("streams").list() {
			if c := narrow(s.value.get("snd_cwnd")); c != nil {
				windows = append(windows, *c)
			}
			if mtu := narrow(s.value.get("pmtu")); mtu != nil && len(sizes) < 2 && *mtu > 100 {
				// TCP and IP headers, with and without timestamps, of both families
				sizes = append(sizes, *mtu-52, *mtu-40, *mtu-72, *mtu-60)
			}
		}
	}
	for _, size := range sizes {
		if size > 0 && !slices.ContainsFunc(windows, func(w uint32) bool { return w%size != 0 }) {
			return size
		}
	}
	return 0
}

// merged joins intervals shorter than a second (-i 0.1) to seconds, because statistics use seconds.
func merged(bins []measure.StreamBin) []measure.StreamBin {
	const whole = int64(measure.Bin) * 95 / 100 // timers are never exact
	out := []measure.StreamBin{}
	for _, b := range bins {
		if n := len(out); n > 0 && out[n-1].Span < whole {
			join(&out[n-1], b)
			continue
		}
		out = append(out, b)
	}
	return out
}

func join(to *measure.StreamBin, b measure.StreamBin) {
	to.Span += b.Span
	to.Bytes += b.Bytes
	for i := range to.Streams {
		to.Streams[i] += b.Streams[i]
	}
	to.TCP = b.TCP
	if d := b.Datagrams; d != nil && to.Datagrams != nil {
		to.Datagrams.Packets += d.Packets
		to.Datagrams.Lost += d.Lost
		to.Datagrams.JitterNs = d.JitterNs
	}
}
