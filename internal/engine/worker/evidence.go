package worker

import (
	"cmp"
	"time"

	"thru/internal/engine"
	"thru/internal/measure"
	"thru/internal/sock"
)

// evidence builds measure.Evidence from the worker's samples.
type evidence struct {
	e            measure.Evidence
	mark, finish *sample // start and end of the measured time
	bin          *sample // start of the current second
	last         *sample // start of the current interval
	spec         measure.Spec
}

func newEvidence(e engine.End, sends bool) evidence {
	return evidence{spec: e.Spec, e: measure.Evidence{EndPoint: e.Name, Sends: sends, Dialled: e.Dials, Streams: []measure.Stream{}, Bins: []measure.StreamBin{}}}
}

// document returns a copy that later samples do not change.
func (v *evidence) document() measure.Evidence {
	e := v.e
	e.Bins = append([]measure.StreamBin{}, e.Bins...)
	e.Streams = append([]measure.Stream{}, e.Streams...)
	e.Missing = append([]measure.NotChecked{}, e.Missing...)
	return e
}

// add adds one sample and returns the updates that follow from it.
func (v *evidence) add(s sample) []engine.Update {
	var ups []engine.Update
	total := sum(s)
	v.e.TotalBytes = total
	if s.Why&atInterval != 0 {
		ups = append(ups, v.progress(&s))
	}
	if s.Why&atMark != 0 {
		v.mark, v.bin = &s, &s
		v.e.RampBytes = new(total)
		ups = append(ups, engine.Update{Kind: engine.Mark, At: s.At, Began: s.Mark})
	}
	if s.Why&atBin != 0 && v.mark != nil {
		v.addBin(&s)
		ups = append(ups, engine.Update{Kind: engine.Bin, At: s.At})
	}
	if s.Why&atFinish != 0 && v.mark != nil {
		ups = append(ups, engine.Update{Kind: engine.Finish, At: s.At})
	}
	v.close(&s)
	return ups
}

// progress returns the interval that ends with s.
func (v *evidence) progress(s *sample) engine.Update {
	// The first interval starts with the ramp.
	u := engine.Update{Kind: engine.Progress, Ramp: s.At <= 0, At: -time.Duration(v.e.RampNs), Bytes: sum(*s)}
	if v.last != nil {
		u.At, u.Bytes = v.last.At, u.Bytes-sum(*v.last)
	}
	u.Span = s.At - u.At
	v.progressMore(&u, s)
	if v.e.Sends {
		u.Retransmits = v.resentOfAll(s).Signed()
	}
	v.last = s
	return u
}

// addBin closes the second that ends with s, and updates the measured time's totals.
func (v *evidence) addBin(s *sample) {
	span := s.At - v.bin.At
	if span <= 0 {
		v.trim(s)
		return
	}
	b := measure.StreamBin{At: int64(v.bin.At), Span: int64(span), Bytes: sum(*s) - sum(*v.bin)}
	for i := range s.Streams {
		b.Streams = append(b.Streams, s.Streams[i].Bytes-v.bin.Streams[i].Bytes)
		if len(s.Streams[i].Info) > 0 {
			b.TCP = append(b.TCP, sock.ParseTCPInfo(s.Streams[i].Info))
		}
	}
	v.addMore(&b, v.bin, s)
	v.e.Bins = append(v.e.Bins, b)
	v.bin = s
	v.finishAt(s)
}

// finishAt ends the measured time with s.
func (v *evidence) finishAt(s *sample) {
	v.finish = s
	v.e.MeasuredNs = int64(s.At - v.mark.At)
	v.e.Worker = used(v.mark.Usage, s.Usage)
	v.e.Bytes = sum(*s) - sum(*v.mark)
}

// trim ends the measured time before seconds that are stored already: no data arrived in them.
func (v *evidence) trim(s *sample) {
	for n := len(v.e.Bins); n > 0 && v.e.Bins[n-1].At >= int64(s.At); n-- {
		v.e.Bins = v.e.Bins[:n-1]
	}
	if n := len(v.e.Bins); n > 0 {
		b := &v.e.Bins[n-1]
		b.Span = int64(s.At) - b.At
	}
	v.finishAt(s)
}

// close stores the per-stream figures as of s.
func (v *evidence) close(s *sample) {
	if v.mark == nil {
		return
	}
	if len(v.e.Streams) != len(s.Streams) {
		v.e.Streams = make([]measure.Stream, len(s.Streams))
	}
	end := cmp.Or(v.finish, s)
	for i := range s.Streams {
		x := &v.e.Streams[i]
		a, b := v.mark.Streams[i], end.Streams[i]
		x.Index = i
		x.TotalBytes = s.Streams[i].Bytes
		x.Bytes, x.Calls = b.Bytes-a.Bytes, b.Calls-a.Calls
		if s.Why&(atBin|atClose) == 0 {
			continue
		}
		x.RunNs, x.WaitNs, x.BlockedNs = threadTimes(a, b)
		v.streamMore(x, a, b, s.Streams[i])
		x.TCPStart, x.TCP = info(a), info(b)
		if s.Why&atClose != 0 {
			x.TCPEnd = info(s.Streams[i])
		}
	}
}

// threadTimes splits the measured time of a thread that only makes socket calls: on a CPU, waiting for one, and blocked in its call.
func threadTimes(a, b streamSample) (run, wait, blocked *int64) {
	if a.RunNs == notKnown || b.RunNs == notKnown {
		return nil, nil, nil
	}
	r, q := b.RunNs-a.RunNs, b.Wait-a.Wait
	return new(r), new(q), new(max(0, b.WallNs-a.WallNs-r-q))
}

// used returns the resources that the worker used between two readings.
func used(a, b usage) *measure.Process {
	if a.UserNs == notKnown || b.UserNs == notKnown {
		return nil
	}
	return &measure.Process{
		UserNs: b.UserNs - a.UserNs, SystemNs: b.SystemNs - a.SystemNs, ResidentB: b.PeakBytes,
		Voluntary: new(b.Voluntary - a.Voluntary), Involuntary: new(b.Involuntary - a.Involuntary),
	}
}

func info(s streamSample) *measure.TCPInfo {
	if len(s.Info) == 0 {
		return nil
	}
	return new(sock.ParseTCPInfo(s.Info))
}

// describe adds the worker's final description of some streams.
func (v *evidence) describe(d doneReply) {
	v.e.IO, v.e.Latency, v.e.CPUs, v.e.DelayHistogram = d.IO, d.Latency, d.CPUs, d.Delays
	v.e.Missing = append(v.e.Missing, d.Missing...)
	for i, x := range d.Streams {
		if i >= len(v.e.Streams) {
			v.e.Streams = append(v.e.Streams, measure.Stream{})
		}
		y := &v.e.Streams[i]
		y.Index, y.Local, y.Peer, y.Window, y.Length = x.Index, x.Local, x.Peer, x.Window, x.Length
		y.Congestion, y.MSS, y.CPU, y.Error = x.Congestion, x.MSS, x.CPU, x.Error
		y.Placed, y.PacedBy, y.Checked = x.Placed, x.PacedBy, x.Checked
		y.Timeline = x.Timeline
		if from, to := x.Datagrams, y.Datagrams; from != nil && to != nil {
			to.IPDVMeanNs, to.SkewPPM = from.IPDVMeanNs, from.SkewPPM
			to.DelayMeanNs, to.DelayMaxNs = from.DelayMeanNs, from.DelayMaxNs
		}
		if x.PacedBy == pacedByThru {
			y.BlockedNs = nil // it also slept
		}
		if y.TCP != nil && y.TCP.SendMSS != nil {
			y.MSS = int(*y.TCP.SendMSS) // TCP_MAXSEG returns the requested value
		}
	}
	if len(d.Streams) > 0 {
		v.e.LocalAddr, v.e.PeerAddr = d.Streams[0].Local, d.Streams[0].Peer
	}
	v.missing()
}

// missing lists the counters that this kernel or system does not provide.
func (v *evidence) missing() {
	if len(v.e.Streams) == 0 || v.mark == nil {
		return
	}
	s := v.e.Streams[0]
	not := func(fact, why string) { v.e.Missing = append(v.e.Missing, measure.NotChecked{Fact: fact, Why: why}) }
	if v.spec.Protocol == measure.TCP && v.spec.Traffic != measure.CRR {
		if s.TCP == nil {
			not("streams.tcp", "thru does not read TCP_INFO on this system")
		} else if s.TCP.RwndLimitedUs == nil {
			not("streams.tcp.rwnd_limited_us", "the kernel's TCP_INFO is too short (before 4.9)")
		}
	}
	if d := s.Datagrams; d != nil && !v.e.Sends && d.SocketDrops == nil {
		not("streams.datagrams.socket_drops", "this system does not report them (SO_MEMINFO, Linux 4.12)")
	}
	if v.spec.PerSecond > 0 {
		not("streams.blocked_ns", "one thread sends requests and another receives the responses")
	} else if s.PacedBy == pacedByThru {
		not("streams.blocked_ns", "thru paced its calls to keep a rate")
	} else if s.BlockedNs == nil {
		not("streams.blocked_ns", "this system has no schedstat for threads")
	}
}

func sum(s sample) int64 {
	var n int64
	for i := range s.Streams {
		n += s.Streams[i].Bytes
	}
	return n
}

// resent returns the segments that a stream has retransmitted since the last sample; without one, since it was connected.
func (v *evidence) resent(stream int, s *sample) measure.Delta {
	now := info(s.Streams[stream])
	if now == nil || v.last == nil {
		return now.AtBirth().DeltaTo(now, measure.Retransmits)
	}
	return info(v.last.Streams[stream]).DeltaTo(now, measure.Retransmits)
}

func (v *evidence) resentOfAll(s *sample) measure.Delta {
	sum := measure.Delta{Known: len(s.Streams) > 0}
	for i := range s.Streams {
		sum = sum.Plus(v.resent(i, s))
	}
	return sum
}

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
