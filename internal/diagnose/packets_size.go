package diagnose

import (
	"fmt"
	"slices"

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

func packetsTSO(f *flow) *outcome {
	if o := f.nothingAgain(); o != nil {
		return o
	}
	if x := f.crossing; x != nil {
		return f.superCrossed(x)
	}
	if s := f.spot(measure.AtSender); s != nil {
		return f.superSent(s)
	}
	return captureAt(measure.AtSender, "packets as they leave the sender's kernel")
}

// nothingAgain excludes what makes a sender send again, where none was; nil where
// some was, or it is not known.
func (f *flow) nothingAgain() *outcome {
	s := f.anySpot()
	if s == nil {
		return missing("a connection of the flow", "none is in the capture")
	}
	if again, ok := s.againPct(); ok && again == 0 && s.data.Again.N == 0 && !s.misses() {
		return no("none of %d segments was sent again", s.data.Segments)
	}
	return nil
}

// superCrossed judges segmentation offload by what left the sender and what of it
// came to the other place.
func (f *flow) superCrossed(x *crossed) *outcome {
	d := x.data
	single, full := lostPct(d.SingleSent, d.SingleLost), arrived(d.FullSent, d.FullLost)
	// What arrived besides single segments was of larger packets.
	came := share(float64(d.Arrived-(d.SingleSent.Bytes-d.SingleLost.Bytes)), float64(d.SuperSent.Bytes))
	switch {
	case d.SuperSent.N < fewSuper && x.left.place != measure.AtSender:
		return captureAt(measure.AtSender, "packets as they leave the sender's kernel")
	case d.SuperSent.N < fewSuper:
		return no("no packets larger than a segment left the sender")
	case came > 50:
		return no("%s of what left in packets larger than a segment arrived the first time", unit.Percent(came))
	case full == 0 && d.FullSent.N >= fewSuper:
		return no("single full segments do not arrive either")
	case single > lostPct(d.SuperSent, d.SuperLost)/2:
		return no("%s of the single segments are lost as well", unit.Percent(single))
	}
	o := likely("most packets that are larger than a segment are lost behind the sender, single segments pass")
	if came < passBar && single < passBar && full >= fewSuper && lostPct(d.SuperSent, d.SuperLost) > swallowBar {
		o.confidence = x.sure()
		o.text = "packets of the sender's segmentation offload (TSO) leave it and never arrive, single segments do"
	}
	return f.asOffload(o, x.left).by(
		above(x.left.proof("packets larger than a segment, lost", lostPct(d.SuperSent, d.SuperLost), "pct", d.SuperLost.Packets...), swallowBar),
		below(x.left.proof("single segments, lost", single, "pct", d.SingleLost.Packets...), passBar),
		x.left.count(superProof, d.SuperSent))
}

// superSent judges it by what the sender had to send again.
func (f *flow) superSent(s *spot) *outcome {
	d := s.data
	acked, known := s.acked()
	again := share(float64(d.Again.Bytes), float64(d.Super.Bytes))
	switch {
	case known && acked < s.mss() && d.Timeout.N > 1:
		return no("single segments are not acknowledged either")
	case (d.Super.N < fewSuper || d.Super.Bytes <= 0) && d.Segments < leastSegments:
		return missing("packets larger than a segment", "too few were captured")
	case d.Super.N < fewSuper || d.Super.Bytes <= 0:
		return no("no packets larger than a segment left the sender")
	case again < passBar:
		return no("packets larger than a segment left the sender, and %s of their bytes had to be sent again", unit.Percent(again))
	case again < 80 || d.Timeout.N < fewSuper || s.rate() > brokenRate || s.misses():
		return captureAt(measure.AtReceiver, "what arrives of packets larger than a segment")
	}
	o := possible("all that left the sender in packets larger than a segment had to be sent again after timeouts")
	if known {
		o.confidence = measure.Likely
		o.text += ", single segments were acknowledged"
	}
	return f.asOffload(o, s).then("a capture at the receiver too: what arrives").
		by(above(s.proof("sent again, of the bytes of packets larger than a segment", again, "pct", d.Again.Packets...), 80),
			above(s.count("sent again after a timeout", d.Timeout), fewSuper), s.count(superProof, d.Super))
}

// asOffload adds where a broken offload is, and what to do.
func (f *flow) asOffload(o *outcome, s *spot) *outcome {
	w := f.sender.onFace()
	if w.Interface == "" {
		w.Interface = s.Interface
	}
	return o.at(w).mend(f.offloadOff()).costs(0, "what passes are segments that were sent again alone", "the capture")
}

func packetsBlackHole(f *flow) *outcome {
	if x := f.crossing; x != nil {
		return f.fullCrossed(x)
	}
	s := f.anySpot()
	if s == nil {
		return missing("a connection of the flow", "none is in the capture")
	}
	full := float64(s.main().MaxPacket)
	passed := float64(s.data.MaxPacket)
	acked, known := s.acked()
	switch {
	case full <= 0:
		return missing("the size of a full segment", "the handshake is not in the capture")
	case s.place == measure.AtReceiver && passed >= full-clampBar:
		return no("full segments arrive: packets of %d bytes", int64(min(passed, full)))
	case s.place == measure.AtReceiver, s.place != measure.AtSender && passed < full-clampBar: // that they are not here is how a black hole looks, too
		return captureAt(measure.AtSender, "full segments that were sent")
	case passed < full-clampBar:
		return no("no packet was larger than %d bytes", int64(passed))
	case !known:
		return missing("how much was acknowledged", "the capture has no course of the connection")
	case acked >= 10*s.mss():
		return no("full segments pass: %s of their payload were acknowledged", unit.Size(int64(acked)))
	case s.data.Timeout.N < 2 || acked >= s.mss():
		return missing("full segments that are sent again and again", "too little passed to tell")
	}
	return f.asBlackHole(f.silentPackets(s, acked), s)
}

// silentPackets words a connection of which no full segment was acknowledged.
func (f *flow) silentPackets(s *spot, acked float64) *outcome {
	o := possible("nothing passes after the handshake: full segments are sent again and again").then("a capture at the receiver too, or `thru check`, which searches the size that passes")
	answered := s.acks.New > 0 && s.acks.Again.N == 0 // its small acknowledgements came to the other end
	if acked > 0 || answered {
		o.confidence = measure.Likely
		o.text = fmt.Sprintf("small segments pass, full ones of %d bytes are never acknowledged", s.main().MaxPacket)
	}
	o.by(above(s.count("sent again after a timeout", s.data.Timeout), 1), s.proof("acknowledged of the data", acked, "bytes"))
	if big := f.tooBig(s); big != nil {
		o.confidence = measure.Certain
		o.text = fmt.Sprintf("%s says that no more than %d bytes pass, and the sender goes on with packets of %d", line(big.From), big.MTU, s.main().MaxPacket)
		o.by(s.proof("ICMP that a packet was too large", float64(big.Count), "", big.Packet))
	}
	return o
}

// tooBig is a router's word to the sender of the flow that its packets are too
// large; nil where none came.
func (f *flow) tooBig(s *spot) *measure.TooBig {
	for i := range s.TooBig {
		if b := &s.TooBig[i]; b.Of == s.main().From && b.MTU > 0 && b.MTU < s.main().MaxPacket {
			return b
		}
	}
	return nil
}

// fullCrossed judges by the sizes that left one place and came to the other.
func (f *flow) fullCrossed(x *crossed) *outcome {
	d := x.data
	full := float64(x.left.main().MaxPacket)
	heeded := f.tooBig(x.left)
	switch {
	case arrived(d.FullSent, d.FullLost) > 0 || full > 0 && float64(d.MaxArrived) >= full-clampBar:
		return no("full segments arrive: packets of %d bytes", d.MaxArrived)
	case heeded != nil && d.MaxArrived > heeded.MTU*swallowBar/100:
		return no("a router says what passes, and the sender heeds it: %d bytes", heeded.MTU)
	case d.FullSent.N < 2:
		return missing("full segments", "the sender sent none alone")
	case arrived(d.SmallSent, d.SmallLost) == 0 || lostPct(d.SmallSent, d.SmallLost) > 50:
		return no("small segments are lost as well")
	}
	o := likely("small segments arrive, none of %d full ones does", d.FullSent.N)
	if d.FullSent.N >= fewFull && lostPct(d.SmallSent, d.SmallLost) < passBar {
		o.confidence = x.sure()
	}
	if heeded != nil {
		o.text += fmt.Sprintf("; %s says that %d bytes pass, and the sender does not heed it", line(heeded.From), heeded.MTU)
		o.by(x.left.proof("ICMP that a packet was too large", float64(heeded.Count), "", heeded.Packet))
	}
	o.by(above(x.left.proof("full segments, lost", lostPct(d.FullSent, d.FullLost), "pct", d.FullLost.Packets...), swallowBar),
		below(x.left.proof("small segments, lost", lostPct(d.SmallSent, d.SmallLost), "pct", d.SmallLost.Packets...), passBar),
		x.right.proof("largest packet that arrived", float64(d.MaxArrived), "bytes"))
	return f.asBlackHole(o, x.left)
}

// asBlackHole adds what a black hole costs and what to do.
func (f *flow) asBlackHole(o *outcome, s *spot) *outcome {
	o.at(measure.Where{Place: measure.AtPath}).mend(f.mendSize("mtu-black-hole", f.probeSizes()))
	return o.costs(0, fmt.Sprintf("TCP stalls: its segments of %d bytes never arrive", s.main().MaxPacket), "the capture")
}

func packetsJumbo(f *flow) *outcome {
	s := f.anySpot()
	if s == nil || s.main().SYN == nil || s.main().SYNACK == nil || s.main().SYN.MSS == nil || s.main().SYNACK.MSS == nil {
		return missing("the MSS of both ends", "the handshake is not in the capture")
	}
	a, b := *s.main().SYN.MSS, *s.main().SYNACK.MSS
	switch {
	case max(a, b) < jumboClaim-tcpHeaders:
		return no("neither end offers jumbo frames: MSS %d and %d", a, b)
	case min(a, b) < jumboClaim-tcpHeaders:
		return missing("the size that passes", fmt.Sprintf("one end offers jumbo frames and the other does not (MSS %d and %d): TCP uses the smaller ones; `thru check` searches it", a, b))
	case f.tooBig(s) != nil:
		return no("a router says that the next link takes less")
	}
	o := packetsBlackHole(f)
	if o.state == holds {
		o.text = fmt.Sprintf("jumbo frames are set at both ends (MSS %d and %d) and do not pass between: %s", a, b, o.text)
		o.mend(advise(nil, "the same MTU at both ends and on every switch between"))
		if f.isRouted(s) {
			o.beside() // the router is to say so
		}
	}
	return o
}

// isRouted tells whether packets pass a router, by their time to live.
func (f *flow) isRouted(s *spot) bool {
	if x := f.crossing; x != nil {
		hops, ok := hopsBetween(x.right, x.left, func(c *measure.Connection) measure.Way { return c.Acks })
		return ok && hops > 0
	}
	ttls := s.main().Acks.TTLs
	return len(ttls) > 0 && !slices.Contains([]int{32, 64, 128, 255}, ttls[0]) // hosts begin with one of these
}

func packetsClamp(f *flow) *outcome {
	if f.cell.Spec.MSS > 0 {
		return nil // it was asked for, as the counters say
	}
	s := f.anySpot()
	if f.crossing != nil {
		s = f.crossing.left
	}
	if s == nil {
		return missing("a connection of the flow", "none is in the capture")
	}
	theirs, own := s.openings()
	seen, mine := mssOf(theirs), mssOf(own)
	if seen <= 0 || mine <= 0 {
		return missing("the MSS of both ends", "the handshake is not in the capture")
	}
	if x := f.crossing; x != nil {
		if there, _ := x.right.openings(); mssOf(there) > 0 {
			return f.clamped(x, mssOf(there), seen, theirs.Packet)
		}
	}
	if min(seen, mine) >= max(seen, mine)-clampBar {
		return no("both ends offer the same MSS: %d and %d bytes", int64(mine), int64(seen))
	}
	return possible("one end's MSS is %d bytes %s, the other's %d: it offers no more, or a device on the way makes it smaller", int64(seen), s.from(), int64(mine)).
		by(below(s.proof("smaller MSS", min(seen, mine), "bytes", theirs.Packet, own.Packet), max(seen, mine))).beside().
		then("a capture at the other end too: what it offers").mend(advise(nil, "compare the MTU of both ends, and look for an MSS clamp between"))
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
func (s *spot) openings() (receivers, senders *measure.Opening) {
	for _, c := range s.conns {
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
func (f *flow) clamped(x *crossed, sent, seen float64, packet int64) *outcome {
	if o := f.noClamp(sent, seen); o != nil {
		return o
	}
	o := likely("a device on the way makes the MSS smaller: %d bytes of %d", int64(seen), int64(sent)).at(measure.Where{Place: measure.AtPath}).
		by(below(x.left.proof("MSS as it arrived", seen, "bytes", packet), sent)).
		costs(0, fmt.Sprintf("%.2g times the packets", sent/seen), "the handshake at both places").
		mend(advise(nil, "raise the MSS clamp of the router, firewall or VPN between, or take it out; where it is for a tunnel that takes no more, it is right"))
	if _, searched := f.sizes(); searched || seen+tcpHeaders+clampBar < leastPath {
		o.confidence = measure.Certain
	} else {
		o.then("whether the path takes more: `thru check` searches it")
	}
	if !f.isHeaders(seen, sent) {
		o.beside()
	}
	return o
}
