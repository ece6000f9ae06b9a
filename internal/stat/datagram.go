package stat

import (
	"cmp"
	"math"

	"thru/internal/measure"
)

// payload returns how many bytes a datagram carries: as requested, else from the receiver's counts; 0 is unknown.
func (s *summary) payload() int {
	for _, n := range []int64{s.cell.Spec.Length.Send, s.cell.Length.Send} {
		if n > 0 {
			return int(min(n, measure.MaxDatagram))
		}
	}
	for _, p := range s.runs {
		for _, e := range []*measure.Evidence{p.receiver, p.sender} {
			for _, x := range streams(e) {
				if d := x.DatagramsAll; d != nil && d.Packets > 0 && x.TotalBytes > 0 {
					return int(min(math.Round(float64(x.TotalBytes)/float64(d.Packets)), measure.MaxDatagram))
				}
			}
		}
	}
	return 0
}

// tally is what one end counted over all its streams.
type tally struct {
	measure.Datagrams
	known bool // every stream has its counts
}

// countOf sums the counts of an end's streams, in the measured time or over their lives. Jitter, IPDV, delay
// variation and skew are means, the maxima are maxima.
func countOf(e *measure.Evidence, of func(*measure.Stream) *measure.Datagrams) tally {
	var t tally
	var jitter, ipdv, delay, skew []float64
	t.known = len(streams(e)) > 0
	for i := range streams(e) {
		d := of(&e.Streams[i])
		if d == nil {
			t.known = false
			continue
		}
		addTo(&t.Packets, d.Packets)
		addTo(&t.Lost, d.Lost)
		addTo(&t.Duplicates, d.Duplicates)
		addTo(&t.Reordered, d.Reordered)
		addTo(&t.SendErrors, d.SendErrors)
		addTo(&t.Foreign, d.Foreign)
		t.ReorderMost = max(t.ReorderMost, d.ReorderMost)
		jitter, ipdv, delay = appendKnown(jitter, d.JitterNs), appendKnown(ipdv, d.IPDVMeanNs), appendKnown(delay, d.DelayMeanNs)
		skew = appendKnown(skew, d.SkewPPM)
		if d.DelayMaxNs != nil {
			t.DelayMaxNs = new(max(*d.DelayMaxNs, measure.Value(t.DelayMaxNs)))
		}
	}
	t.JitterNs, t.IPDVMeanNs, t.DelayMeanNs = whole(max(Mean(jitter), 0)), whole(max(Mean(ipdv), 0)), whole(max(Mean(delay), 0))
	t.SkewPPM = Known(Mean(skew))
	return t
}

func inTime(x *measure.Stream) *measure.Datagrams { return x.Datagrams }
func inLife(x *measure.Stream) *measure.Datagrams { return x.DatagramsAll }

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// datagrams fills the figures of a UDP cell from the runs with the receiver's counts.
func (s *summary) datagrams() {
	f := measure.DatagramFigures{Bytes: int64(s.payload()), AskedBps: s.cell.Spec.Rate}
	var sent, got, offered, jitter, ipdv, delay, skew []float64
	for _, p := range s.runs {
		life, span := inLifeOr(p.receiver), countOf(p.receiver, inTime)
		if !life.known || !span.known || p.receiver.MeasuredNs <= 0 {
			continue
		}
		s.addLife(&f, p, life)
		got = append(got, perSecond(span.Packets, p.receiver))
		if t := countOf(p.sender, inTime); t.known && p.sender.MeasuredNs > 0 {
			sent = append(sent, perSecond(t.Packets, p.sender))
			if bps, ok := Goodput(p.sender); ok {
				offered = append(offered, bps)
			}
		}
		jitter, ipdv = appendKnown(jitter, cmp.Or(span.IPDVMeanNs, span.JitterNs)), appendKnown(ipdv, span.IPDVMeanNs)
		delay, skew = appendKnown(delay, span.DelayMeanNs), appendKnown(skew, span.SkewPPM)
		if span.DelayMaxNs != nil {
			f.DelayMaxNs = new(max(*span.DelayMaxNs, measure.Value(f.DelayMaxNs)))
		}
	}
	if len(got) == 0 {
		s.missing("datagrams", s.why(receiverSide, "streams.datagrams", "the receiver did not count the datagrams"))
		return
	}
	f.ReceivedPps, f.SentPps, f.OfferedBps = Mean(got), Known(Mean(sent)), Known(Mean(offered))
	f.JitterNs, f.DelayMeanNs, f.SkewPPM = whole(Mean(jitter)), whole(Mean(delay)), Known(Mean(skew))
	if f.SkewPPM == nil && len(ipdv) > 0 { // the receiver looked for clock skew
		s.missing("datagrams.clock_skew_ppm", "the minimum delays are not on one line (a queue was full, the path changed, or the run was short): the delays include any clock skew")
	}
	s.delayPercentiles(&f)
	f.LossPct = 100 * measure.Value(Known(ratio(float64(f.Lost), float64(f.Sent))))
	f.Fragments = Fragments(Link{MTU: s.pathMTU(), IPv6: s.isIPv6()}, int(f.Bytes))
	s.cell.Datagrams = &f
}

// pathMTU returns the stated MTU, else the one that the ends know; 0 is unknown.
func (s *summary) pathMTU() int {
	if s.link.MTU > 0 {
		return s.link.MTU
	}
	return s.mtu()
}

// addLife adds a run's counts over the life of its streams. The sender knows what was sent; the receiver sees gaps
// in the sequence, but not losses after the last received datagram.
func (s *summary) addLife(f *measure.DatagramFigures, p pair, received tally) {
	sent := countOf(p.sender, inLife)
	lost := sent.Packets - received.Packets
	switch {
	case isReported(p.receiver) || isReported(p.sender) && !sent.known:
		lost = received.Lost // the datagrams in flight at the end are in one count and not in the other
	case !sent.known:
		s.missing("datagrams.sent_packets", s.why(senderSide, "streams.datagrams", "the sender did not count its datagrams")+
			": loss is counted by gaps in the sequence, without datagrams lost at the end")
		lost = received.Lost
	case lost < 0:
		s.warn("run %d: the receiver counted more datagrams than were sent: one of the two counts is wrong, and loss is counted by gaps in the sequence", p.run.Index+1)
		lost = received.Lost
	}
	addTo(&f.Received, received.Packets)
	addTo(&f.Lost, lost)
	f.Sent = 0
	addTo(&f.Sent, f.Received)
	addTo(&f.Sent, f.Lost)
	addTo(&f.Duplicates, received.Duplicates)
	addTo(&f.Reordered, received.Reordered)
	f.ReorderMost = max(f.ReorderMost, received.ReorderMost)
}

func perSecond(n int64, e *measure.Evidence) float64 {
	return float64(n) * 1e9 / float64(e.MeasuredNs)
}

func appendKnown[T int64 | float64](xs []float64, x *T) []float64 {
	if x == nil {
		return xs
	}
	return append(xs, float64(*x))
}

// delayPercentiles fills in the percentiles of the delay variation of all runs, each of which has one distribution
// over its streams.
func (s *summary) delayPercentiles(f *measure.DatagramFigures) {
	all := NewHistogram()
	for _, p := range s.runs {
		if p.receiver == nil || p.receiver.DelayHistogram == "" {
			continue
		}
		h, err := DecodeHistogram(p.receiver.DelayHistogram)
		if err != nil {
			s.missing("datagrams.delay_variation_p50_ns", err.Error())
			return
		}
		all.Merge(h)
	}
	if all.TotalCount() > 0 {
		f.DelayP50Ns, f.DelayP99Ns, f.DelayP999Ns = new(all.ValueAtPercentile(50)), new(all.ValueAtPercentile(99)), new(all.ValueAtPercentile(99.9))
	}
}

// verified sums the bytes that the receivers compared with those sent.
func (s *summary) verified() {
	var sum measure.Checked
	found := false
	for _, p := range s.runs {
		for _, e := range []*measure.Evidence{p.sender, p.receiver} {
			for _, x := range streams(e) {
				c := x.Checked
				if c == nil {
					continue
				}
				found = true
				addTo(&sum.Bytes, c.Bytes)
				addTo(&sum.WrongBytes, c.WrongBytes)
				if c.FirstWrong != nil && (sum.FirstWrong == nil || *c.FirstWrong < *sum.FirstWrong) {
					sum.FirstWrong = c.FirstWrong
				}
			}
		}
	}
	switch {
	case found:
		s.cell.Checked = &sum
	case s.cell.Spec.Verify:
		s.missing("verified", s.why(receiverSide, "streams.verified", "the receiver did not compare the data"))
	}
}
