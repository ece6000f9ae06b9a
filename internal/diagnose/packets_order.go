package diagnose

import "thru/internal/measure"

// Bars of packets that come out of order.
const (
	oftenOrder  = 0.1 // percent of the segments: from here on it costs something
	fewLate     = 5   // packets
	fewNeedless = 10  // retransmissions: fewer prove nothing of the rate
)

func packetsReordering(f *flow) *outcome {
	const order = "the order in which segments arrive"
	if x := f.crossing; x != nil && x.data.Sent > 0 && arrived(x.data.SingleSent, x.data.SingleLost)+arrived(x.data.SuperSent, x.data.SuperLost) >= leastSegments {
		all := max(x.right.data.Segments, x.data.SingleSent.N+x.data.SuperSent.N) // as they arrive, for these are counted
		pct := share(float64(x.data.Late.N), float64(all))
		switch {
		case pct >= rareOrder && x.data.Late.N >= fewLate:
			return f.lateSegments(x.right, pct, x.data.Late, true)
		case x.right.place == measure.AtPath:
			return captureAt(measure.AtReceiver, order)
		}
		return no("%d segments came out of order", x.data.Late.N)
	}
	s := f.spot(measure.AtReceiver, measure.AtPath, "", measure.AtSender)
	if s == nil || s.data.Segments < leastSegments {
		return missing("segments in a row", "too few were captured")
	}
	late := s.data.Late
	pct := share(float64(late.Segments()), float64(s.data.Segments))
	switch {
	case s.place != measure.AtSender && pct >= rareOrder && late.N >= fewLate:
		return f.lateSegments(s, pct, late, s.place == measure.AtReceiver)
	case s.proveOrder() || s.data.SACKLate.N >= fewLate && !s.misses():
		return f.lateBeyond(s)
	case s.place == measure.AtReceiver && s.needless() < fewLate:
		return no("%d segments came out of order", late.N)
	case s.place == measure.AtSender && s.acks.DupAcks.N == 0 && s.acks.SACKed.N == 0 && !s.misses():
		return no("no duplicate acknowledgement came back")
	}
	return captureAt(measure.AtReceiver, order)
}

// lateSegments judges a share of segments, in percent, that came after later ones.
func (f *flow) lateSegments(s *spot, pct float64, late measure.Count, direct bool) *outcome {
	o := likely("%s of the segments come out of order, by up to %d places", rare(pct), max(1, s.data.LateMost)).by(above(s.proof("segments that came after later ones", pct, "pct", late.Packets...), rareOrder))
	if s.acks.DSACK.N > 0 {
		o.by(s.count("duplicates that the receiver told of (D-SACK)", s.acks.DSACK))
	}
	if direct && pct >= oftenOrder && s.isNeedless() && s.needless() >= fewNeedless && !s.misses() && !s.bearsOrder() {
		o.confidence = measure.Certain
	}
	return f.asOrder(o, s)
}

// proveOrder tells whether data must have come out of order beyond the capture: most
// was sent again since later data had arrived, and arrived twice. So the first copy
// came after the later data, unless the path doubles packets.
func (s *spot) proveOrder() bool {
	return s.needless() >= fewLate && 2*s.data.Fast.N >= s.data.Again.N && s.isNeedless() && !s.afterTimeouts() &&
		share(float64(s.needless()), float64(s.data.Segments)) >= rareOrder && s.acks.DSACK.N <= 2*s.data.Again.N
}

// lateBeyond judges order beyond the capture, by what comes back.
func (f *flow) lateBeyond(s *spot) *outcome {
	o := possible("segments come out of order").by(s.count("sent again without having been lost", s.data.Spurious), s.count("sent again", s.data.Again))
	if s.needless() > 0 && s.isNeedless() {
		o.text = "much of what was sent again had not been lost: segments come out of order"
	}
	if n := s.data.SACKLate; n.N > 0 {
		o.by(s.count("acknowledged after later data, without having been sent again", n), s.proof("later data that had come before it, most", float64(s.data.SACKMost), "bytes"))
	}
	if s.data.SACKLate.N >= fewNeedless || s.needless() >= fewNeedless && 4*s.needless() >= 3*s.data.Again.N {
		o.confidence = measure.Likely
	}
	return f.asOrder(o.then("a capture at the receiver: the order in which they arrive"), s)
}

// asOrder adds what to do, and tells whether the rate hangs on the order: it makes
// the sender send again, which it takes for a loss.
func (f *flow) asOrder(o *outcome, s *spot) *outcome {
	if s.needless() < fewLate || s.needless() < s.data.Again.N/4 || f.linkIsFull() || !s.costsOrder() {
		o.beside() // it makes hardly anybody send again
	}
	return o.mend(advise(nil, "have bundles and equal-cost routes choose a member by the flow (layer3+4), never by the packet"))
}

// costsOrder tells whether what was sent again without having been lost may hold the
// rate: the sender takes it for lost, and slows down as it does for a loss.
func (s *spot) costsOrder() bool {
	loaded, _, timed := s.rtt()
	queue, _ := s.stands()
	return !queue && (!timed || s.afterNeedless(loaded) < rareBar*s.rate())
}

// bearsOrder tells whether far more passes than that would leave: the sender finds
// out by D-SACK, and takes back that it slowed down (RFC 3708).
func (s *spot) bearsOrder() bool {
	loaded, _, timed := s.rtt()
	return !timed || s.rate() > burstBar*s.afterNeedless(loaded)
}

// afterNeedless is the rate in bit/s that losses as frequent as what was sent again
// for nothing would leave.
func (s *spot) afterNeedless(rttNs float64) float64 {
	return s.mathis(rttNs, share(float64(s.needless()), float64(s.data.Segments)))
}
