package loss

import (
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// Bars of packets that come out of order.
const (
	oftenOrder  = 0.1 // percent of the segments: from here on it costs something
	fewLate     = 5   // packets
	fewNeedless = 10  // retransmissions: fewer prove nothing of the rate
)

func packetsReordering(f *diagnose.Flow) *diagnose.Outcome {
	const order = "the order in which segments arrive"
	if x := f.Crossing; x != nil && x.Data.Sent > 0 && diagnose.Arrived(x.Data.SingleSent, x.Data.SingleLost)+diagnose.Arrived(x.Data.SuperSent, x.Data.SuperLost) >= diagnose.LeastSegments {
		all := max(x.Right.Data.Segments, x.Data.SingleSent.N+x.Data.SuperSent.N) // as they arrive, for these are counted
		pct := diagnose.Share(float64(x.Data.Late.N), float64(all))
		switch {
		case pct >= rareOrder && x.Data.Late.N >= fewLate:
			return lateSegments(f, x.Right, pct, x.Data.Late, true)
		case x.Right.At == measure.AtPath:
			return diagnose.CaptureAt(measure.AtReceiver, order)
		}
		return diagnose.No("%d segments came out of order", x.Data.Late.N)
	}
	s := f.Spot(measure.AtReceiver, measure.AtPath, "", measure.AtSender)
	if s == nil || s.Data.Segments < diagnose.LeastSegments {
		return diagnose.Missing("segments in a row", "too few were captured")
	}
	late := s.Data.Late
	pct := diagnose.Share(float64(late.Segments()), float64(s.Data.Segments))
	switch {
	case s.At != measure.AtSender && pct >= rareOrder && late.N >= fewLate:
		return lateSegments(f, s, pct, late, s.At == measure.AtReceiver)
	case proveOrder(s) || s.Data.SACKLate.N >= fewLate && !s.Misses():
		return lateBeyond(f, s)
	case s.At == measure.AtReceiver && needless(s) < fewLate:
		return diagnose.No("%d segments came out of order", late.N)
	case s.At == measure.AtSender && s.Acks.DupAcks.N == 0 && s.Acks.SACKed.N == 0 && !s.Misses():
		return diagnose.No("no duplicate acknowledgement came back")
	}
	return diagnose.CaptureAt(measure.AtReceiver, order)
}

// lateSegments judges a share of segments, in percent, that came after later ones.
func lateSegments(f *diagnose.Flow, s *diagnose.Spot, pct float64, late measure.Count, direct bool) *diagnose.Outcome {
	o := diagnose.Likely("%s of the segments come out of order, by up to %d places", Rare(pct), max(1, s.Data.LateMost)).By(diagnose.Above(s.Proof("segments that came after later ones", pct, "pct", late.Packets...), rareOrder))
	if s.Acks.DSACK.N > 0 {
		o.By(s.Count("duplicates that the receiver told of (D-SACK)", s.Acks.DSACK))
	}
	if direct && pct >= oftenOrder && isNeedless(s) && needless(s) >= fewNeedless && !s.Misses() && !bearsOrder(s) {
		o.Confidence = measure.Certain
	}
	return asOrder(f, o, s)
}

// proveOrder tells whether data must have come out of order beyond the capture: most
// was sent again since later data had arrived, and arrived twice. So the first copy
// came after the later data, unless the path doubles packets.
func proveOrder(s *diagnose.Spot) bool {
	return needless(s) >= fewLate && 2*s.Data.Fast.N >= s.Data.Again.N && isNeedless(s) && !afterTimeouts(s) &&
		diagnose.Share(float64(needless(s)), float64(s.Data.Segments)) >= rareOrder && s.Acks.DSACK.N <= 2*s.Data.Again.N
}

// lateBeyond judges order beyond the capture, by what comes back.
func lateBeyond(f *diagnose.Flow, s *diagnose.Spot) *diagnose.Outcome {
	o := diagnose.Possible("segments come out of order").By(s.Count("sent again without having been lost", s.Data.Spurious), s.Count("sent again", s.Data.Again))
	if needless(s) > 0 && isNeedless(s) {
		o.Text = "much of what was sent again had not been lost: segments come out of order"
	}
	if n := s.Data.SACKLate; n.N > 0 {
		o.By(s.Count("acknowledged after later data, without having been sent again", n), s.Proof("later data that had come before it, most", float64(s.Data.SACKMost), "bytes"))
	}
	if s.Data.SACKLate.N >= fewNeedless || needless(s) >= fewNeedless && 4*needless(s) >= 3*s.Data.Again.N {
		o.Confidence = measure.Likely
	}
	return asOrder(f, o.Then("a capture at the receiver: the order in which they arrive"), s)
}

// asOrder adds what to do, and tells whether the rate hangs on the order: it makes
// the sender send again, which it takes for a loss.
func asOrder(f *diagnose.Flow, o *diagnose.Outcome, s *diagnose.Spot) *diagnose.Outcome {
	if needless(s) < fewLate || needless(s) < s.Data.Again.N/4 || f.LinkIsFull() || !costsOrder(s) {
		o.Beside() // it makes hardly anybody send again
	}
	return o.Mend(diagnose.Advise(nil, "have bundles and equal-cost routes choose a member by the flow (layer3+4), never by the packet"))
}

// costsOrder tells whether what was sent again without having been lost may hold the
// rate: the sender takes it for lost, and slows down as it does for a loss.
func costsOrder(s *diagnose.Spot) bool {
	loaded, _, timed := s.RTT()
	queue, _ := s.Stands()
	return !queue && (!timed || afterNeedless(s, loaded) < diagnose.RareBar*s.Rate())
}

// bearsOrder tells whether far more passes than that would leave: the sender finds
// out by D-SACK, and takes back that it slowed down (RFC 3708).
func bearsOrder(s *diagnose.Spot) bool {
	loaded, _, timed := s.RTT()
	return !timed || s.Rate() > diagnose.BurstBar*afterNeedless(s, loaded)
}

// afterNeedless is the rate in bit/s that losses as frequent as what was sent again
// for nothing would leave.
func afterNeedless(s *diagnose.Spot, rttNs float64) float64 {
	return s.Mathis(rttNs, diagnose.Share(float64(needless(s)), float64(s.Data.Segments)))
}
