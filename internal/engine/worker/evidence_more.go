package worker

import (
	"thru/internal/engine"
	"thru/internal/measure"
	"thru/internal/sock"
)

// The part of the evidence that only datagrams and requests have.

// streamMore fills the counts of one stream between two readings (a, b), and over its life (now).
func (v *evidence) streamMore(x *measure.Stream, a, b, now streamSample) {
	x.Requests = b.More[cRequests] - a.More[cRequests]
	if v.spec.PerSecond > 0 { // the clock belongs to one of the two threads that share the work
		x.RunNs, x.WaitNs, x.BlockedNs = nil, nil, nil
	}
	if v.spec.Protocol != measure.UDP || v.spec.Traffic != measure.Bulk {
		return
	}
	x.Datagrams, x.DatagramsAll = v.datagrams(a, b), v.datagrams(streamSample{}, now)
	for _, d := range []*measure.Datagrams{x.Datagrams, x.DatagramsAll} {
		d.DelayMeanNs, d.DelayMaxNs = nil, nil // the worker sends them when it is done
	}
}

// datagrams returns the counts between two readings of one stream.
func (v *evidence) datagrams(a, b streamSample) *measure.Datagrams {
	d := func(i int) int64 { return b.More[i] - a.More[i] }
	if v.e.Sends {
		return &measure.Datagrams{Packets: d(cPackets), SendErrors: d(cSendErrors)}
	}
	r := &measure.Datagrams{
		Packets: d(cPackets), Lost: d(cLost), Duplicates: d(cDuplicates), Reordered: d(cReordered),
		ReorderMost: b.More[cReorderMost], Foreign: d(cForeign),
	}
	if b.More[cDelayCount] > 1 { // a single arrival has no variation
		r.JitterNs = new(b.More[cJitterNs])
	}
	if n := d(cDelayCount); n > 0 {
		r.DelayMeanNs = new(d(cDelaySumUs) * 1000 / n)
		r.DelayMaxNs = new(b.More[cDelayMaxNs])
	}
	if drops := b.More[cSocketDrops]; drops != notKnown {
		r.SocketDrops = new(drops - max(a.More[cSocketDrops], 0))
	}
	return r
}

// addMore fills the counts of one second over all streams.
func (v *evidence) addMore(bin *measure.StreamBin, from, to *sample) {
	took, count := int64(0), int64(0)
	for i := range to.Streams {
		a, b := from.Streams[i], to.Streams[i]
		took, count = took+b.More[cTookNs]-a.More[cTookNs], count+b.More[cTook]-a.More[cTook]
		bin.LatencyMax = max(bin.LatencyMax, b.More[cTookMaxNs])
		bin.Requests += b.More[cRequests] - a.More[cRequests]
		bin.RateBps += b.More[cRateBps]
		if v.spec.Protocol != measure.UDP || v.spec.Traffic != measure.Bulk {
			continue
		}
		bin.Datagrams = addDatagrams(bin.Datagrams, v.datagrams(a, b), int64(i))
	}
	if count > 0 {
		bin.LatencyMean = took / count
	}
}

// addDatagrams sums the counts of streams; jitter and mean delay become means over the earlier streams and this one.
func addDatagrams(sum, d *measure.Datagrams, before int64) *measure.Datagrams {
	if sum == nil {
		return d
	}
	sum.Packets += d.Packets
	sum.Lost += d.Lost
	sum.Duplicates += d.Duplicates
	sum.Reordered += d.Reordered
	sum.SendErrors += d.SendErrors
	sum.Foreign += d.Foreign
	sum.ReorderMost = max(sum.ReorderMost, d.ReorderMost)
	sum.JitterNs = meanWith(sum.JitterNs, d.JitterNs, before)
	sum.DelayMeanNs = meanWith(sum.DelayMeanNs, d.DelayMeanNs, before)
	if sum.DelayMaxNs != nil && d.DelayMaxNs != nil {
		sum.DelayMaxNs = new(max(*sum.DelayMaxNs, *d.DelayMaxNs))
	}
	if sum.SocketDrops != nil && d.SocketDrops != nil {
		*sum.SocketDrops += *d.SocketDrops
	}
	return sum
}

func meanWith(mean, x *int64, before int64) *int64 {
	if mean == nil || x == nil {
		return mean
	}
	return new((*mean*before + *x) / (before + 1))
}

// progressMore adds the figures of its kind of traffic to a live figure.
func (v *evidence) progressMore(u *engine.Update, s *sample) {
	from := &sample{Streams: make([]streamSample, len(s.Streams))}
	if v.last != nil {
		from = v.last
	}
	for i := range s.Streams {
		a, b := from.Streams[i], s.Streams[i]
		u.Requests += b.More[cRequests] - a.More[cRequests]
		u.Packets += b.More[cPackets] - a.More[cPackets]
		if !v.e.Sends {
			u.Lost += b.More[cLost] - a.More[cLost]
		}
		if v.spec.EachStream {
			u.Each = append(u.Each, v.tick(a, b, v.resent(i, s)))
		}
	}
}

// tick returns one stream in the interval from a to b.
func (v *evidence) tick(a, b streamSample, resent measure.Delta) measure.Tick {
	t := measure.Tick{Bytes: b.Bytes - a.Bytes, Sends: v.e.Sends, Packets: b.More[cPackets] - a.More[cPackets]}
	if v.spec.Protocol == measure.UDP {
		if !v.e.Sends {
			t.Lost, t.Reordered = b.More[cLost]-a.More[cLost], b.More[cReordered]-a.More[cReordered]
			t.JitterNs = new(b.More[cJitterNs])
		}
		return t
	}
	now := sock.ParseTCPInfo(b.Info)
	t.RTT, t.RTTVar, t.PathMTU = now.RTT, now.RTTVar, measure.As[int64](now.PMTU)
	t.SendWindow, t.ReordSeen = measure.As[int64](now.SendWnd), measure.As[int64](now.ReordSeen)
	if v.e.Sends {
		t.Retransmits = resent.Signed()
	}
	if now.Cwnd != nil && now.SendMSS != nil {
		t.Cwnd = new(int64(*now.Cwnd) * int64(*now.SendMSS))
	}
	return t
}
