package mtu

import (
	"fmt"
	"slices"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Bars of packets that do not arrive. A share is in percent.
const (
	fewSuper   = 3  // packets larger than a segment that say something of offload
	fewFull    = 4  // full segments that have to be lost, none arriving, to be sure
	swallowBar = 90 // above it a size does not pass
	passBar    = 10 // below it a size passes
)

// superProof names packets larger than a segment.
const superProof = "packets larger than a segment sent"

func packetsTSO(f *diagnose.Flow) *diagnose.Outcome {
	if o := NothingAgain(f); o != nil {
		return o
	}
	if x := f.Crossing; x != nil {
		return superCrossed(f, x)
	}
	if s := f.Spot(measure.AtSender); s != nil {
		return superSent(f, s)
	}
	return diagnose.CaptureAt(measure.AtSender, "packets as they leave the sender's kernel")
}

// NothingAgain excludes what makes a sender send again, where none was; nil where
// some was, or it is not known.
func NothingAgain(f *diagnose.Flow) *diagnose.Outcome {
	s := f.AnySpot()
	if s == nil {
		return diagnose.Missing("a connection of the flow", "none is in the capture")
	}
	if again, ok := s.AgainPct(); ok && again == 0 && s.Data.Again.N == 0 && !s.Misses() {
		return diagnose.No("none of %d segments was sent again", s.Data.Segments)
	}
	return nil
}

// superCrossed judges segmentation offload by what left the sender and what of it
// came to the other place.
func superCrossed(f *diagnose.Flow, x *diagnose.Crossed) *diagnose.Outcome {
	d := x.Data
	single, full := diagnose.LostPct(d.SingleSent, d.SingleLost), diagnose.Arrived(d.FullSent, d.FullLost)
	// What arrived besides single segments was of larger packets.
	came := diagnose.Share(float64(d.Arrived-(d.SingleSent.Bytes-d.SingleLost.Bytes)), float64(d.SuperSent.Bytes))
	switch {
	case d.SuperSent.N < fewSuper && x.Left.At != measure.AtSender:
		return diagnose.CaptureAt(measure.AtSender, "packets as they leave the sender's kernel")
	case d.SuperSent.N < fewSuper:
		return diagnose.No("no packets larger than a segment left the sender")
	case came > 50:
		return diagnose.No("%s of what left in packets larger than a segment arrived the first time", unit.Percent(came))
	case full == 0 && d.FullSent.N >= fewSuper:
		return diagnose.No("single full segments do not arrive either")
	case single > diagnose.LostPct(d.SuperSent, d.SuperLost)/2:
		return diagnose.No("%s of the single segments are lost as well", unit.Percent(single))
	}
	o := diagnose.Likely("most packets that are larger than a segment are lost behind the sender, single segments pass")
	if came < passBar && single < passBar && full >= fewSuper && diagnose.LostPct(d.SuperSent, d.SuperLost) > swallowBar {
		o.Confidence = x.Sure()
		o.Text = "packets of the sender's segmentation offload (TSO) leave it and never arrive, single segments do"
	}
	return asOffload(f, o, x.Left).By(
		diagnose.Above(x.Left.Proof("packets larger than a segment, lost", diagnose.LostPct(d.SuperSent, d.SuperLost), "pct", d.SuperLost.Packets...), swallowBar),
		diagnose.Below(x.Left.Proof("single segments, lost", single, "pct", d.SingleLost.Packets...), passBar),
		x.Left.Count(superProof, d.SuperSent))
}

// superSent judges it by what the sender had to send again.
func superSent(f *diagnose.Flow, s *diagnose.Spot) *diagnose.Outcome {
	d := s.Data
	acked, known := s.Acked()
	again := diagnose.Share(float64(d.Again.Bytes), float64(d.Super.Bytes))
	switch {
	case known && acked < s.MSS() && d.Timeout.N > 1:
		return diagnose.No("single segments are not acknowledged either")
	case (d.Super.N < fewSuper || d.Super.Bytes <= 0) && d.Segments < diagnose.LeastSegments:
		return diagnose.Missing("packets larger than a segment", "too few were captured")
	case d.Super.N < fewSuper || d.Super.Bytes <= 0:
		return diagnose.No("no packets larger than a segment left the sender")
	case again < passBar:
		return diagnose.No("packets larger than a segment left the sender, and %s of their bytes had to be sent again", unit.Percent(again))
	case again < 80 || d.Timeout.N < fewSuper || s.Rate() > brokenRate || s.Misses():
		return diagnose.CaptureAt(measure.AtReceiver, "what arrives of packets larger than a segment")
	}
	o := diagnose.Possible("all that left the sender in packets larger than a segment had to be sent again after timeouts")
	if known {
		o.Confidence = measure.Likely
		o.Text += ", single segments were acknowledged"
	}
	return asOffload(f, o, s).Then("a capture at the receiver too: what arrives").
		By(diagnose.Above(s.Proof("sent again, of the bytes of packets larger than a segment", again, "pct", d.Again.Packets...), 80),
			diagnose.Above(s.Count("sent again after a timeout", d.Timeout), fewSuper), s.Count(superProof, d.Super))
}

// asOffload adds where a broken offload is, and what to do.
func asOffload(f *diagnose.Flow, o *diagnose.Outcome, s *diagnose.Spot) *diagnose.Outcome {
	w := f.Sender.OnFace()
	if w.Interface == "" {
		w.Interface = s.Interface
	}
	return o.At(w).Mend(OffloadOff(f)).Costs(0, "what passes are segments that were sent again alone", "the capture")
}

func packetsBlackHole(f *diagnose.Flow) *diagnose.Outcome {
	if x := f.Crossing; x != nil {
		return fullCrossed(f, x)
	}
	s := f.AnySpot()
	if s == nil {
		return diagnose.Missing("a connection of the flow", "none is in the capture")
	}
	full := float64(s.Main().MaxPacket)
	passed := float64(s.Data.MaxPacket)
	acked, known := s.Acked()
	switch {
	case full <= 0:
		return diagnose.Missing("the size of a full segment", "the handshake is not in the capture")
	case s.At == measure.AtReceiver && passed >= full-ClampBar:
		return diagnose.No("full segments arrive: packets of %d bytes", int64(min(passed, full)))
	case s.At == measure.AtReceiver, s.At != measure.AtSender && passed < full-ClampBar: // that they are not here is how a black hole looks, too
		return diagnose.CaptureAt(measure.AtSender, "full segments that were sent")
	case passed < full-ClampBar:
		return diagnose.No("no packet was larger than %d bytes", int64(passed))
	case !known:
		return diagnose.Missing("how much was acknowledged", "the capture has no course of the connection")
	case acked >= 10*s.MSS():
		return diagnose.No("full segments pass: %s of their payload were acknowledged", unit.Size(int64(acked)))
	case s.Data.Timeout.N < 2 || acked >= s.MSS():
		return diagnose.Missing("full segments that are sent again and again", "too little passed to tell")
	}
	return asBlackHole(f, silentPackets(f, s, acked), s)
}

// silentPackets words a connection of which no full segment was acknowledged.
func silentPackets(f *diagnose.Flow, s *diagnose.Spot, acked float64) *diagnose.Outcome {
	o := diagnose.Possible("nothing passes after the handshake: full segments are sent again and again").Then("a capture at the receiver too, or `thru check`, which searches the size that passes")
	answered := s.Acks.New > 0 && s.Acks.Again.N == 0 // its small acknowledgements came to the other end
	if acked > 0 || answered {
		o.Confidence = measure.Likely
		o.Text = fmt.Sprintf("small segments pass, full ones of %d bytes are never acknowledged", s.Main().MaxPacket)
	}
	o.By(diagnose.Above(s.Count("sent again after a timeout", s.Data.Timeout), 1), s.Proof("acknowledged of the data", acked, "bytes"))
	if big := tooBig(f, s); big != nil {
		o.Confidence = measure.Certain
		o.Text = fmt.Sprintf("%s says that no more than %d bytes pass, and the sender goes on with packets of %d", diagnose.Line(big.From), big.MTU, s.Main().MaxPacket)
		o.By(s.Proof("ICMP that a packet was too large", float64(big.Count), "", big.Packet))
	}
	return o
}

// tooBig is a router's word to the sender of the flow that its packets are too
// large; nil where none came.
func tooBig(f *diagnose.Flow, s *diagnose.Spot) *measure.TooBig {
	for i := range s.TooBig {
		if b := &s.TooBig[i]; b.Of == s.Main().From && b.MTU > 0 && b.MTU < s.Main().MaxPacket {
			return b
		}
	}
	return nil
}

// fullCrossed judges by the sizes that left one place and came to the other.
func fullCrossed(f *diagnose.Flow, x *diagnose.Crossed) *diagnose.Outcome {
	d := x.Data
	full := float64(x.Left.Main().MaxPacket)
	heeded := tooBig(f, x.Left)
	switch {
	case diagnose.Arrived(d.FullSent, d.FullLost) > 0 || full > 0 && float64(d.MaxArrived) >= full-ClampBar:
		return diagnose.No("full segments arrive: packets of %d bytes", d.MaxArrived)
	case heeded != nil && d.MaxArrived > heeded.MTU*swallowBar/100:
		return diagnose.No("a router says what passes, and the sender heeds it: %d bytes", heeded.MTU)
	case d.FullSent.N < 2:
		return diagnose.Missing("full segments", "the sender sent none alone")
	case diagnose.Arrived(d.SmallSent, d.SmallLost) == 0 || diagnose.LostPct(d.SmallSent, d.SmallLost) > 50:
		return diagnose.No("small segments are lost as well")
	}
	o := diagnose.Likely("small segments arrive, none of %d full ones does", d.FullSent.N)
	if d.FullSent.N >= fewFull && diagnose.LostPct(d.SmallSent, d.SmallLost) < passBar {
		o.Confidence = x.Sure()
	}
	if heeded != nil {
		o.Text += fmt.Sprintf("; %s says that %d bytes pass, and the sender does not heed it", diagnose.Line(heeded.From), heeded.MTU)
		o.By(x.Left.Proof("ICMP that a packet was too large", float64(heeded.Count), "", heeded.Packet))
	}
	o.By(diagnose.Above(x.Left.Proof("full segments, lost", diagnose.LostPct(d.FullSent, d.FullLost), "pct", d.FullLost.Packets...), swallowBar),
		diagnose.Below(x.Left.Proof("small segments, lost", diagnose.LostPct(d.SmallSent, d.SmallLost), "pct", d.SmallLost.Packets...), passBar),
		x.Right.Proof("largest packet that arrived", float64(d.MaxArrived), "bytes"))
	return asBlackHole(f, o, x.Left)
}

// asBlackHole adds what a black hole costs and what to do.
func asBlackHole(f *diagnose.Flow, o *diagnose.Outcome, s *diagnose.Spot) *diagnose.Outcome {
	o.At(measure.Where{Place: measure.AtPath}).Mend(mendSize(f, "mtu-black-hole", ProbeSizes(f)))
	return o.Costs(0, fmt.Sprintf("TCP stalls: its segments of %d bytes never arrive", s.Main().MaxPacket), "the capture")
}

func packetsJumbo(f *diagnose.Flow) *diagnose.Outcome {
	s := f.AnySpot()
	if s == nil || s.Main().SYN == nil || s.Main().SYNACK == nil || s.Main().SYN.MSS == nil || s.Main().SYNACK.MSS == nil {
		return diagnose.Missing("the MSS of both ends", "the handshake is not in the capture")
	}
	a, b := *s.Main().SYN.MSS, *s.Main().SYNACK.MSS
	switch {
	case max(a, b) < jumboClaim-tcpHeaders:
		return diagnose.No("neither end offers jumbo frames: MSS %d and %d", a, b)
	case min(a, b) < jumboClaim-tcpHeaders:
		return diagnose.Missing("the size that passes", fmt.Sprintf("one end offers jumbo frames and the other does not (MSS %d and %d): TCP uses the smaller ones; `thru check` searches it", a, b))
	case tooBig(f, s) != nil:
		return diagnose.No("a router says that the next link takes less")
	}
	o := packetsBlackHole(f)
	if o.State == diagnose.Holds {
		o.Text = fmt.Sprintf("jumbo frames are set at both ends (MSS %d and %d) and do not pass between: %s", a, b, o.Text)
		o.Mend(diagnose.Advise(nil, "the same MTU at both ends and on every switch between"))
		if isRouted(f, s) {
			o.Beside() // the router is to say so
		}
	}
	return o
}

// isRouted tells whether packets pass a router, by their time to live.
func isRouted(f *diagnose.Flow, s *diagnose.Spot) bool {
	if x := f.Crossing; x != nil {
		hops, ok := diagnose.HopsBetween(x.Right, x.Left, func(c *measure.Connection) measure.Way { return c.Acks })
		return ok && hops > 0
	}
	ttls := s.Main().Acks.TTLs
	return len(ttls) > 0 && !slices.Contains([]int{32, 64, 128, 255}, ttls[0]) // hosts begin with one of these
}

func packetsClamp(f *diagnose.Flow) *diagnose.Outcome {
	if f.Cell.Spec.MSS > 0 {
		return nil // it was asked for, as the counters say
	}
	s := f.AnySpot()
	if f.Crossing != nil {
		s = f.Crossing.Left
	}
	if s == nil {
		return diagnose.Missing("a connection of the flow", "none is in the capture")
	}
	theirs, own := openings(s)
	seen, mine := mssOf(theirs), mssOf(own)
	if seen <= 0 || mine <= 0 {
		return diagnose.Missing("the MSS of both ends", "the handshake is not in the capture")
	}
	if x := f.Crossing; x != nil {
		if there, _ := openings(x.Right); mssOf(there) > 0 {
			return clamped(f, x, mssOf(there), seen, theirs.Packet)
		}
	}
	if min(seen, mine) >= max(seen, mine)-ClampBar {
		return diagnose.No("both ends offer the same MSS: %d and %d bytes", int64(mine), int64(seen))
	}
	return diagnose.Possible("one end's MSS is %d bytes %s, the other's %d: it offers no more, or a device on the way makes it smaller", int64(seen), s.From(), int64(mine)).
		By(diagnose.Below(s.Proof("smaller MSS", min(seen, mine), "bytes", theirs.Packet, own.Packet), max(seen, mine))).Beside().
		Then("a capture at the other end too: what it offers").Mend(diagnose.Advise(nil, "compare the MTU of both ends, and look for an MSS clamp between"))
}

// mssOf an opening in bytes; 0 where it is not known.
func mssOf(o *measure.Opening) float64 {
	if o == nil || o.MSS == nil {
		return 0
	}
	return float64(*o.MSS)
}

// openings are the SYN or SYN-ACK of the receiver of the data, and of its sender;
// nil where they were not captured.
func openings(s *diagnose.Spot) (receivers, senders *measure.Opening) {
	for _, c := range s.Connections {
		if c.FromOpened == nil || c.SYN == nil || c.SYNACK == nil {
			continue
		}
		if *c.FromOpened {
			return c.SYNACK, c.SYN
		}
		return c.SYN, c.SYNACK
	}
	return nil, nil
}

// leastPath is the MTU in bytes that every path of IPv6 has (RFC 8200, section 5).
const leastPath = 1280

// clamped judges the MSS of the receiver, which bounds the segments of the data, as
// it left one place and came to the other.
func clamped(f *diagnose.Flow, x *diagnose.Crossed, sent, seen float64, packet int64) *diagnose.Outcome {
	if o := noClamp(f, sent, seen); o != nil {
		return o
	}
	o := diagnose.Likely("a device on the way makes the MSS smaller: %d bytes of %d", int64(seen), int64(sent)).At(measure.Where{Place: measure.AtPath}).
		By(diagnose.Below(x.Left.Proof("MSS as it arrived", seen, "bytes", packet), sent)).
		Costs(0, fmt.Sprintf("%.2g times the packets", sent/seen), "the handshake at both places").
		Mend(diagnose.Advise(nil, "raise the MSS clamp of the router, firewall or VPN between, or take it out; where it is for a tunnel that takes no more, it is right"))
	if _, searched := sizes(f); searched || seen+tcpHeaders+ClampBar < leastPath {
		o.Confidence = measure.Certain
	} else {
		o.Then("whether the path takes more: `thru check` searches it")
	}
	if !isHeaders(f, seen, sent) {
		o.Beside()
	}
	return o
}
