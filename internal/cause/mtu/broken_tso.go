package mtu

import (
	"cmp"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/knob"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// BrokenTSO is the cause `broken-tso`.
func BrokenTSO() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "broken-tso", TCP: true, Title: "packets of segmentation offload are lost", Judge: JudgeBrokenTSO, Packets: PacketsBrokenTSO,
			Seen:        "goodput of a few Mb/s at most with timeouts and many retransmissions, while the path MTU search (DF) passes full segments; in captures: packets larger than a segment leave the sender and do not arrive, but single segments do",
			Distinction: "small segments pass without loss; so does UDP in full packets, which excludes random loss and a policer; a black hole drops single full segments too; large packets in a capture at the receiver come from its receive offload and are no evidence",
			Fix:         "switch TSO and GSO off at the sender, then update driver or firmware", Effect: "0.001 to 12.1 Gb/s (S-03); 6.5 Mb/s to 10 Gb/s",
			Source: "ethtool(8), -K tso gso; TcpExt.TCPTimeouts", Tests: []string{diagnose.SmallSegments, diagnose.UdpThrice, diagnose.Captured}, Brings: []string{"loss", "policer", "reordering"},
		},
		Propose:    []advise.Proposer{proposeBrokenTSO},
		LastResort: lastResort,
	}
}

// JudgeBrokenTSO judges by the counters of both ends.
func JudgeBrokenTSO(f *diagnose.Flow) *diagnose.Outcome {
	bps, ok := f.Goodput()
	again, counted := f.AgainPct()
	x, reported := Stalled(f)
	switch {
	case !ok || !counted || !reported:
		return f.Sender.Lacks("tcp_info.total_retrans_segments")
	case bps > brokenRate || again < BrokenAgain || x.Timeouts == 0:
		return diagnose.No("%s pass, %s of the segments were retransmitted", unit.Rate(bps), unit.Percent(again))
	case f.OnOneMachine():
		return diagnose.No("both ends are on one host")
	}
	s, searched := sizes(f)
	switch {
	case searched && !s.passes() && !segmentsFit(f, s):
		return diagnose.No("the path itself passes at most %d bytes", s.Bytes)
	case offload(f, "tcp-segmentation-offload") == "off":
		return diagnose.No("segmentation offload is off at the sender")
	}
	o := diagnose.Possible("large packets of the sender's segmentation offload are lost, but single segments pass").At(f.Sender.OnFace()).
		By(diagnose.UnderBar(f.Sender.Proof("goodput", bps, "bps"), brokenRate), diagnose.Above(f.Sender.Proof("tcp_info.total_retrans of data_segs_out", again, "pct"), BrokenAgain),
			diagnose.Above(f.Sender.Proof("retransmission timeouts", x.Timeouts, ""), 0)).AddFix(OffloadOff(f))
	if searched {
		o.By(s.proof(f))
	}
	if n := f.Sender.NIC(); n != nil && n.TxPackets > 0 {
		o.By(f.Sender.Proof("mean size of sent packets", float64(n.TxBytes)/float64(n.TxPackets), "bytes"))
	}
	return triedSmall(f, o, again, bps, searched)
}

// Thresholds of a broken offload. Only single segments get through, retransmitted after a timeout: 0.9 to 100 Mb/s
// were measured.
const (
	brokenRate  = 500e6 // bit/s: between neighbouring hosts at MTU 9000 it was 100
	BrokenAgain = 3     // percent of the segments
)

// segmentsFit reports whether single segments are known to be no larger than what passes, whatever the sender's
// MTU claims: the other end's MSS keeps them small.
func segmentsFit(f *diagnose.Flow, s sized) bool {
	n := packet(f, s)
	return n > 0 && n <= float64(s.Bytes)
}

// offload returns "on" or "off" for the sender's interface; "" unknown.
func offload(f *diagnose.Flow, name string) string {
	if f.Sender.Face == nil {
		return ""
	}
	switch on, known := f.Sender.Face.Offloads[name]; {
	case !known:
		return ""
	case on:
		return "on"
	}
	return "off"
}

// OffloadOff switches segmentation offload off at the sender's interface.
func OffloadOff(f *diagnose.Flow) *measure.Fix {
	a := f.Sender.Adapter()
	r := a.Host.Fix(segmentationOff(a))
	r.Advice = "switch segmentation offload off at the sender for a test; if that helps, update the driver and firmware of the card or the hypervisor's switch"
	return r
}

// segmentationOff makes the kernel, not the adapter, split long packets.
func segmentationOff(f *scene.Face) scene.Fix {
	return f.Set(knob.TSO, "off").And(f.Set(knob.GSO, "off")).Costing("more work for the CPU").Or("switch TSO and GSO off")
}

// triedSmall decides about a broken offload by the results of small segments and datagrams.
func triedSmall(f *diagnose.Flow, o *diagnose.Outcome, again, bps float64, searched bool) *diagnose.Outcome {
	small := f.Experiment(diagnose.SmallSegments)
	if small == nil {
		// Random loss at that share would have hit the probe's small packets too.
		if searched && unharmed(f)*again/100 >= 3 {
			o.Confidence = measure.Likely
		}
		return o
	}
	lost, counted := againOf(small)
	asked := float64(small.Spec.Rate)
	if counted && lost > again/10 && lost <= again/3 { // less than before, as if the ends themselves stood still
		return o.By(measure.Proof{EndPoint: f.Sender.Name, Counter: "retransmitted with segments of 536 bytes", Value: lost, Unit: "pct"}).
			Then("the same test while the hosts are otherwise idle")
	}
	if !counted || lost > again/10 || diagnose.RateOf(small) < 0.9*asked {
		return diagnose.No("small segments at a low rate are lost too: %s pass", unit.Rate(diagnose.RateOf(small)))
	}
	o.By(diagnose.UnderBar(measure.Proof{EndPoint: f.Sender.Name, Counter: "retransmitted with segments of 536 bytes", Value: lost, Unit: "pct"}, again/10))
	o.Confidence = measure.Likely
	far := f.Experiment(diagnose.UdpThrice)
	switch {
	case far != nil && diagnose.PathLossPct(far) > max(diagnose.LostBar, again/10):
		return diagnose.No("UDP at %s in full packets is lost too: %s", unit.Rate(diagnose.RateOf(far)), unit.Percent(diagnose.PathLossPct(far)))
	case searched && (far != nil && diagnose.RateOf(far) > 2*bps || bps < 0.4*asked): // a policer or a slow link that passes these would have passed TCP
		o.Confidence = measure.Certain
		o.Text = "packets of the sender's segmentation offload (TSO) never arrive, but single segments do"
		o.Costs(0, "only segments that were retransmitted singly pass", "small segments at "+unit.Rate(asked)+" pass without loss")
	}
	return o
}

// unharmed returns how many small packets of the path's probe got through without a single loss: a lost TCP packet
// costs a timeout of 200 ms.
func unharmed(f *diagnose.Flow) float64 {
	n := 0.0
	if p := f.Path(); p != nil && p.RTT != nil && p.RTT.P50 > 0 && p.RTT.Max < p.RTT.P50+150e6 {
		n += 2 * float64(p.RTT.Samples)
	}
	if direction, _ := f.Direction(); direction != nil && direction.UDP != nil {
		if direction.UDP.Got < direction.UDP.Sent {
			return 0
		}
		n += float64(direction.UDP.Sent)
	}
	return n
}

// againOf returns the percentage of a cell's segments that were retransmitted.
func againOf(c *measure.Cell) (float64, bool) {
	f := &diagnose.Flow{Cell: c, Run: diagnose.RunShown(c)}
	for _, x := range f.Run.Flows {
		if x.From == c.From && x.To == c.To || len(f.Run.Flows) == 1 {
			f.Sender = &diagnose.End{Flow: f, Seen: x.Sender}
			return f.AgainPct()
		}
	}
	return 0, false
}

// PacketsBrokenTSO judges by captures alone.
func PacketsBrokenTSO(f *diagnose.Flow) *diagnose.Outcome {
	if o := NothingAgain(f); o != nil {
		return o
	}
	if x := f.Crossing; x != nil {
		return superCrossed(f, x)
	}
	if s := f.CapturePoint(measure.AtSender); s != nil {
		return superSent(f, s)
	}
	return diagnose.CaptureAt(measure.AtSender, "packets as they leave the sender's kernel")
}

// NothingAgain excludes a cause of retransmissions if there were none; nil if there were some, or it is not known.
func NothingAgain(f *diagnose.Flow) *diagnose.Outcome {
	s := f.AnyCapturePoint()
	if s == nil {
		return diagnose.Missing("a connection of the flow", "the capture has none")
	}
	if again, ok := s.AgainPct(); ok && again == 0 && s.Data.Again.N == 0 && !s.Misses() {
		return diagnose.No("none of %d segments was retransmitted", s.Data.Segments)
	}
	return nil
}

// superCrossed judges segmentation offload by what left the sender and what of it reached the other place.
func superCrossed(f *diagnose.Flow, x *diagnose.Crossed) *diagnose.Outcome {
	d := x.Data
	single, full := diagnose.LostPct(d.SingleSent, d.SingleLost), diagnose.Arrived(d.FullSent, d.FullLost)
	// Everything that arrived besides single segments came from larger packets.
	came := stat.Pct(float64(d.Arrived-(d.SingleSent.Bytes-d.SingleLost.Bytes)), float64(d.SuperSent.Bytes))
	switch {
	case d.SuperSent.N < fewSuper && x.Left.At != measure.AtSender:
		return diagnose.CaptureAt(measure.AtSender, "packets as they leave the sender's kernel")
	case d.SuperSent.N < fewSuper:
		return diagnose.No("no packets larger than a segment left the sender")
	case came > 50:
		return diagnose.No("%s of the data in packets larger than a segment arrived at the first attempt", unit.Percent(came))
	case full == 0 && d.FullSent.N >= fewSuper:
		return diagnose.No("single full segments do not arrive either")
	case single > diagnose.LostPct(d.SuperSent, d.SuperLost)/2:
		return diagnose.No("%s of the single segments are lost too", unit.Percent(single))
	}
	o := diagnose.Likely("most packets that are larger than a segment are lost after the sender, but single segments pass")
	if came < passBar && single < passBar && full >= fewSuper && diagnose.LostPct(d.SuperSent, d.SuperLost) > swallowBar {
		o.Confidence = x.Sure()
		o.Text = "packets of the sender's segmentation offload (TSO) leave it and never arrive, but single segments do"
	}
	return asOffload(f, o, x.Left).By(
		diagnose.Above(x.Left.Proof("packets larger than a segment, lost", diagnose.LostPct(d.SuperSent, d.SuperLost), "pct", d.SuperLost.Packets...), swallowBar),
		diagnose.UnderBar(x.Left.Proof("single segments, lost", single, "pct", d.SingleLost.Packets...), passBar),
		x.Left.Count(superProof, d.SuperSent))
}

// fewSuper is how many packets larger than a segment show something about offload.
const fewSuper = 3

// asOffload adds where a broken offload is, and the fix.
func asOffload(f *diagnose.Flow, o *diagnose.Outcome, s *diagnose.CapturePoint) *diagnose.Outcome {
	w := f.Sender.OnFace()
	w.Interface = cmp.Or(w.Interface, s.Interface)
	return o.At(w).AddFix(OffloadOff(f)).Costs(0, "only segments that were retransmitted singly pass", "the capture")
}

// superProof names packets larger than a segment.
const superProof = "packets larger than a segment sent"

// superSent judges it by the sender's retransmissions.
func superSent(f *diagnose.Flow, s *diagnose.CapturePoint) *diagnose.Outcome {
	d := s.Data
	acked, known := s.Acked()
	again := stat.Pct(float64(d.Again.Bytes), float64(d.Super.Bytes))
	switch {
	case known && acked < s.MSS() && d.Timeout.N > 1:
		return diagnose.No("single segments are not acknowledged either")
	case (d.Super.N < fewSuper || d.Super.Bytes <= 0) && d.Segments < diagnose.LeastSegments:
		return diagnose.Missing("packets larger than a segment", "too few were captured")
	case d.Super.N < fewSuper || d.Super.Bytes <= 0:
		return diagnose.No("no packets larger than a segment left the sender")
	case again < passBar:
		return diagnose.No("packets larger than a segment left the sender, and only %s of their bytes were retransmitted", unit.Percent(again))
	case again < 80 || d.Timeout.N < fewSuper || s.Rate() > brokenRate || s.Misses():
		return diagnose.CaptureAt(measure.AtReceiver, "which packets larger than a segment arrive")
	}
	o := diagnose.Possible("all data in packets larger than a segment was retransmitted after timeouts")
	if known {
		o.Confidence = measure.Likely
		o.Text += ", but single segments were acknowledged"
	}
	return asOffload(f, o, s).Then("a capture at the receiver too, to see what arrives").
		By(diagnose.Above(s.Proof("retransmitted, of the bytes in packets larger than a segment", again, "pct", d.Again.Packets...), 80),
			diagnose.Above(s.Count("retransmissions after a timeout", d.Timeout), fewSuper), s.Count(superProof, d.Super))
}

// proposeBrokenTSO makes the kernel split what the adapter splits wrongly: first by TSO off alone, then GSO too,
// for an adapter that still gets packets for several segments.
func proposeBrokenTSO(r advise.Request) []advise.Draft {
	h := r.Direction.From
	face := r.Direction.Face(h)
	if r.At == h {
		face = r.Here(h)
	}
	tso, gso := h.State(knob.TSO, face), h.State(knob.GSO, face)
	if face == "" || tso.Is("off") && gso.Is("off") {
		return nil
	}
	alone := advise.Change(h, knob.TSO, face, "off", "TSO off at %s of %s: the kernel makes the segments, not the adapter", face, h.Name).ForDirection(r.Direction).
		Bring(r.Direction.Hope(), "measured in network namespaces, without delay and with 5 ms each way", "segments arrive again: 6.5 Mb/s to 10 Gb/s, or 0.9 Mb/s to 3.5 Gb/s on a long path, if this was the fault")
	both := alone.And(advise.Change(h, knob.GSO, face, "off", ""), "TSO and GSO off at %s of %s", face, h.Name)
	if tso.Is("off") {
		return []advise.Draft{advise.Change(h, knob.GSO, face, "off", "GSO off at %s of %s", face, h.Name).ForDirection(r.Direction)}
	}
	return []advise.Draft{alone, both}
}

// Thresholds of a direction that carries almost nothing.
const (
	stallAgain = 0.5  // of the segments retransmitted
	stallShare = 0.01 // of the rate that is plausible there,
	someAgain  = 0.03 // if at least so many segments are retransmitted: lost data is
)

// lastResort is tried if almost nothing passes: segmentation offload off, whether or not a rule found it broken,
// since another fault may hide it.
func lastResort(w *advise.Direction) *measure.Finding {
	if !stalled(w) {
		return nil
	}
	return &measure.Finding{
		Cause: "broken-tso", Confidence: measure.Possible,
		Where:   measure.Where{Place: measure.AtSender, EndPoint: w.From.Name, From: w.From.Name, To: w.To.Name},
		Summary: "almost no data passes: packets of segmentation offload may not arrive",
	}
}

// stalled reports whether TCP between two hosts, without a deliberate limit, retransmits half of all segments, or
// carries 1% of what the link or the other direction does.
func stalled(w *advise.Direction) bool {
	c := w.Cell
	if c == nil || c.Goodput == nil || c.Protocol != measure.TCP || w.Local() || c.Spec.Rate > 0 || c.Spec.MaxRate > 0 {
		return false
	}
	again, reported := sentAgain(w)
	slower := float64(min(w.From.FaceOf(w.Face(w.From)).Speed(), w.To.FaceOf(w.Face(w.To)).Speed()))
	return again >= stallAgain || (again >= someAgain || !reported) && w.Goodput() < stallShare*max(w.Hope(), slower)
}

// sentAgain returns the share of its segments that the sender retransmitted in the last run; reported is false if its
// kernel does not report it.
func sentAgain(w *advise.Direction) (share float64, reported bool) {
	if len(w.Cell.Runs) == 0 {
		return 0, false
	}
	sent, again := measure.Delta{Known: true}, measure.Delta{Known: true}
	for _, f := range w.Cell.Runs[len(w.Cell.Runs)-1].Flows {
		if f.From == w.From.Name && f.To == w.To.Name {
			sent, again = sent.Plus(f.Sender.Delta(measure.SegmentsSent)), again.Plus(f.Sender.Delta(measure.Retransmits))
		}
	}
	pct, reported := again.Pct(sent)
	return pct / 100, reported
}
