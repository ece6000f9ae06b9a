package loss

import (
	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/rule"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Reordering is the cause `reordering`.
func Reordering() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "reordering", TCP: true, Title: "segments arrive out of order", Judge: judgeReordering, Packets: packetsReordering,
			Seen:        "the kernel saw segments arrive after later ones, and the receiver reported duplicates of segments that were not lost; in captures: segments arrive after later ones without a retransmission, and the receiver reports duplicates (D-SACK)",
			Distinction: "the sequence numbers of UDP", Fix: "hash flows, not packets, to the members of a bundle", Effect: "190 of 195 Mb/s with 1% reordered",
			Source: "TcpExt.TCPSACKReorder, TCPTSReorder; tcp_info.tcpi_reord_seen, tcpi_dsack_dups", Tests: []string{diagnose.UdpBelow, diagnose.Captured}, Brings: []string{"loss"},
		},
		Propose: []advise.Proposer{sturdier("bbr does not slow down for each late segment; the gain is measured")},
	}
}

func judgeReordering(f *diagnose.Flow) *diagnose.Outcome {
	seen, known := f.Sender.Seen.Delta(measure.Reorderings).Float()
	if !known {
		return f.Sender.Lacks("tcp_info.reord_seen")
	}
	below := f.Experiment(diagnose.UdpBelow)
	if below != nil && below.Datagrams != nil && below.Datagrams.Received > 0 {
		d := below.Datagrams
		pct := 100 * float64(d.Reordered) / float64(d.Received)
		if pct < 0.01 {
			return diagnose.No("only %s of the datagrams arrived out of order", unit.Percent(pct))
		}
		o := diagnose.Certain("%s of the packets arrive out of order, by up to %d places", unit.Percent(pct), d.ReorderMost)
		if d.Reordered < diagnose.FewEvents {
			o.Confidence = measure.Likely
		}
		if flat, known := f.Flatness(); pct < littleOrder && f.HasQueue() && known && flat < diagnose.FlatBar {
			o.MarkNotBinding() // a queue is full nevertheless
		}
		return outOfOrder(f, o, seen).
			By(diagnose.Above(measure.Proof{EndPoint: f.Receiver.Name, Counter: "UDP at 0.9 of the rate, reordered", Value: pct, Unit: "pct"}, 0.01))
	}
	if sent, ok := f.Sender.Seen.Delta(measure.SegmentsSent).Float(); seen == 0 || ok && 100*seen/sent < rareOrder {
		return diagnose.No("the sender's kernel saw segments out of order only %.0f times", seen)
	}
	return outOfOrder(f, diagnose.Possible("segments arrive out of order"), seen)
}

// littleOrder is the percentage of reordered packets that costs little with a sender that detects reordering
// (RACK, RFC 8985).
const littleOrder = 1

// outOfOrder adds what TCP saw of the reordering.
func outOfOrder(f *diagnose.Flow, o *diagnose.Outcome, seen float64) *diagnose.Outcome {
	o.By(f.Sender.Proof("tcp_info.reord_seen", seen, ""))
	again, _ := f.Sender.Seen.Delta(measure.Retransmits).Float()
	if doubled, ok := f.Sender.Seen.Delta(measure.Duplicates).Float(); ok && doubled > 0 {
		o.By(f.Sender.Proof("tcp_info.dsack_dups", doubled, "segments"))
		if o.Confidence == measure.Possible && again > 0 && doubled > again/2 {
			o.Confidence = measure.Likely // the retransmitted data had not been lost
		}
	}
	if f.LinkIsFull() {
		o.MarkNotBinding()
	}
	return o.AddFix(diagnose.Advise(nil, "have bundles and equal-cost routes choose a member by flow (layer3+4), not by packet"))
}

// rareOrder is the percentage of segments that a path may reorder now and then.
const rareOrder = 0.01

func packetsReordering(f *diagnose.Flow) *diagnose.Outcome {
	const order = "the order in which segments arrive"
	if x := f.Crossing; x != nil && x.Data.Sent > 0 && diagnose.Arrived(x.Data.SingleSent, x.Data.SingleLost)+diagnose.Arrived(x.Data.SuperSent, x.Data.SuperLost) >= diagnose.LeastSegments {
		all := max(x.Right.Data.Segments, x.Data.SingleSent.N+x.Data.SuperSent.N) // as they arrive, since those are counted
		pct := stat.Pct(float64(x.Data.Late.N), float64(all))
		switch {
		case pct >= rareOrder && x.Data.Late.N >= fewLate:
			return lateSegments(f, x.Right, pct, x.Data.Late, true)
		case x.Right.At == measure.AtPath:
			return diagnose.CaptureAt(measure.AtReceiver, order)
		}
		return diagnose.No("only %d segments arrived out of order", x.Data.Late.N)
	}
	s := f.CapturePoint(measure.AtReceiver, measure.AtPath, "", measure.AtSender)
	if s == nil || s.Data.Segments < diagnose.LeastSegments {
		return diagnose.Missing("the order of segments", "too few were captured")
	}
	late := s.Data.Late
	pct := stat.Pct(float64(late.Segments()), float64(s.Data.Segments))
	switch {
	case s.At != measure.AtSender && pct >= rareOrder && late.N >= fewLate:
		return lateSegments(f, s, pct, late, s.At == measure.AtReceiver)
	case proveOrder(s) || s.Data.SACKLate.N >= fewLate && !s.Misses():
		return lateBeyond(f, s)
	case s.At == measure.AtReceiver && needless(s) < fewLate:
		return diagnose.No("only %d segments arrived out of order", late.N)
	case s.At == measure.AtSender && s.Acks.DupAcks.N == 0 && s.Acks.SACKed.N == 0 && !s.Misses():
		return diagnose.No("the capture has no duplicate acknowledgement")
	}
	return diagnose.CaptureAt(measure.AtReceiver, order)
}

// Thresholds of reordering.
const (
	oftenOrder  = 0.1 // percent of the segments: it costs something from here
	fewLate     = 5   // packets
	fewNeedless = 10  // retransmissions: fewer prove nothing about the rate
)

// lateSegments judges a percentage of segments that arrived after later ones.
func lateSegments(f *diagnose.Flow, s *diagnose.CapturePoint, pct float64, late measure.Count, direct bool) *diagnose.Outcome {
	o := diagnose.Likely("%s of the segments arrive out of order, by up to %d places", Rare(pct), max(1, s.Data.LateMost)).By(diagnose.Above(s.Proof("segments that arrived after later ones", pct, "pct", late.Packets...), rareOrder))
	if s.Acks.DSACK.N > 0 {
		o.By(s.Count("duplicates that the receiver reported (D-SACK)", s.Acks.DSACK))
	}
	if direct && pct >= oftenOrder && isNeedless(s) && needless(s) >= fewNeedless && !s.Misses() && !bearsOrder(s) {
		o.Confidence = measure.Certain
	}
	return asOrder(f, o, s)
}

// needless returns how many retransmissions were spurious. D-SACKs alone do not show that: a path that duplicates
// packets causes them, too.
func needless(s *diagnose.CapturePoint) int64 { return s.Data.Spurious.N }

// bearsOrder reports whether far more passes than spurious retransmissions would leave: the sender detects them by
// D-SACK and undoes the slowdown (RFC 3708).
func bearsOrder(s *diagnose.CapturePoint) bool {
	loaded, _, timed := s.RTT()
	return !timed || s.Rate() > diagnose.BurstBar*afterNeedless(s, loaded)
}

// afterNeedless returns the rate in bit/s that losses as frequent as the spurious retransmissions would leave.
func afterNeedless(s *diagnose.CapturePoint, rttNs float64) float64 {
	return s.Mathis(rttNs, stat.Pct(float64(needless(s)), float64(s.Data.Segments)))
}

// asOrder adds the fix, and decides whether the reordering limits the rate: it causes retransmissions, which the
// sender takes for losses.
func asOrder(f *diagnose.Flow, o *diagnose.Outcome, s *diagnose.CapturePoint) *diagnose.Outcome {
	if needless(s) < fewLate || needless(s) < s.Data.Again.N/4 || f.LinkIsFull() || !costsOrder(s) {
		o.MarkNotBinding() // it causes hardly any retransmissions
	}
	return o.AddFix(diagnose.Advise(nil, "have bundles and equal-cost routes choose a member by flow (layer3+4), not by packet"))
}

// costsOrder reports whether spurious retransmissions may limit the rate: the sender takes them for losses and
// slows down.
func costsOrder(s *diagnose.CapturePoint) bool {
	loaded, _, timed := s.RTT()
	queue, _ := s.Stands()
	return !queue && (!timed || afterNeedless(s, loaded) < diagnose.RareBar*s.Rate())
}

// proveOrder reports whether data must have been reordered beyond the capture: most of it was retransmitted
// because later data had arrived, and then arrived twice. So the first copy came after the later data, unless the
// path duplicates packets.
func proveOrder(s *diagnose.CapturePoint) bool {
	return needless(s) >= fewLate && 2*s.Data.Fast.N >= s.Data.Again.N && isNeedless(s) && !afterTimeouts(s) &&
		stat.Pct(float64(needless(s)), float64(s.Data.Segments)) >= rareOrder && s.Acks.DSACK.N <= 2*s.Data.Again.N
}

// lateBeyond judges reordering beyond the capture, by what comes back.
func lateBeyond(f *diagnose.Flow, s *diagnose.CapturePoint) *diagnose.Outcome {
	o := diagnose.Possible("segments arrive out of order").By(s.Count("spurious retransmissions", s.Data.Spurious), s.Count("retransmissions", s.Data.Again))
	if needless(s) > 0 && isNeedless(s) {
		o.Text = "many retransmissions were spurious: segments arrive out of order"
	}
	if n := s.Data.SACKLate; n.N > 0 {
		o.By(s.Count("acknowledged after later data, without a retransmission", n), s.Proof("later data that had arrived before it, maximum", float64(s.Data.SACKMost), "bytes"))
	}
	if s.Data.SACKLate.N >= fewNeedless || needless(s) >= fewNeedless && 4*needless(s) >= 3*s.Data.Again.N {
		o.Confidence = measure.Likely
	}
	return asOrder(f, o.Then("a capture at the receiver, to see the order in which they arrive"), s)
}
