package diagnose

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/stat"
)

// CapturePoint is a capture of the flow. Its connections are oriented in the data direction, and its counts are of
// all of them.
type CapturePoint struct {
	*measure.Capture
	At          string               // Capture.Place; "": not known
	Connections []measure.Connection // the one with the most data first
	Data, Acks  measure.Direction
}

// Crossed compares two captures, over all connections.
type Crossed struct {
	Left, Right *CapturePoint // Left is nearer to the sender
	conns       []measure.CrossedConn
	Data, Acks  measure.Crossed
}

// findPackets fills the captures of the flow.
func (f *Flow) findPackets() {
	x := f.packets()
	if f.IsUDP() {
		return
	}
	for i := range x.Captures {
		f.CapturePoints = append(f.CapturePoints, f.newCapturePoint(&x.Captures[i], x.Sender))
	}
	c := x.Crossing
	if c == nil || c.Left == c.Right || c.Left < 0 || c.Right < 0 || c.Left >= len(f.CapturePoints) || c.Right >= len(f.CapturePoints) {
		return
	}
	f.Crossing = f.newCrossed(c, x)
}

// newCapturePoint returns a capture with the connections that carry the data; a program may have others.
func (f *Flow) newCapturePoint(c *measure.Capture, sender *measure.Evidence) *CapturePoint {
	var conns []measure.Connection
	most := int64(0)
	for _, conn := range c.Conns {
		if f.isBackwards(conn, sender) {
			conn = turned(conn)
		}
		conns = append(conns, conn)
		most = max(most, conn.Data.New)
	}
	conns = slices.DeleteFunc(conns, func(c measure.Connection) bool { return c.Data.New < most/leastPart })
	slices.SortStableFunc(conns, func(a, b measure.Connection) int { return cmp.Compare(b.Data.New, a.Data.New) })
	return capturePointOf(c, conns)
}

// leastPart: a connection counts if it carries at least 1/leastPart of the data of the largest.
const leastPart = 100

// capturePointOf returns a capture with these connections.
func capturePointOf(c *measure.Capture, conns []measure.Connection) *CapturePoint {
	s := &CapturePoint{Capture: c, At: c.Place, Connections: conns}
	if !slices.Contains([]string{measure.AtSender, measure.AtReceiver, measure.AtPath}, s.At) {
		s.At = ""
	}
	for i := range conns {
		addDirection(&s.Data, conns[i].Data)
		addDirection(&s.Acks, conns[i].Acks)
	}
	return s
}

// isBackwards reports whether a connection's From is the receiver of this flow: if a connection carries data in
// both directions, a capture takes the busier one as the data.
func (f *Flow) isBackwards(c measure.Connection, sender *measure.Evidence) bool {
	if sender != nil {
		for _, s := range sender.Streams {
			switch s.Local {
			case "":
			case c.From:
				return false
			case c.To:
				return true
			}
		}
	}
	return hostOf(c.To) == f.Cell.From && hostOf(c.From) != f.Cell.From
}

// hostOf returns the address of an end without its port.
func hostOf(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	return a.Addr().String()
}

// turned returns the connection with the other end as From, without the figures that a capture has only for the
// busier direction.
func turned(c measure.Connection) measure.Connection {
	t := measure.Connection{From: c.To, To: c.From, Index: c.Index, FirstPacket: c.FirstPacket, StartNs: c.StartNs, SpanNs: c.SpanNs,
		SYN: c.SYN, SYNACK: c.SYNACK, OpenNs: c.OpenNs, OpenFarNs: c.OpenFarNs, MaxPacket: c.MaxPacket, Data: c.Acks, Acks: c.Data, EndedBy: c.EndedBy}
	if c.FromOpened != nil {
		t.FromOpened = new(!*c.FromOpened)
	}
	return t
}

// addDirection adds the counts of one connection to those of the others.
func addDirection(sum *measure.Direction, w measure.Direction) {
	sum.Packets += w.Packets
	sum.Segments += w.Segments
	sum.Payload += w.Payload
	sum.New += w.New
	sum.ZeroNs += w.ZeroNs
	sum.MaxPacket = max(sum.MaxPacket, w.MaxPacket)
	sum.LateMost = max(sum.LateMost, w.LateMost)
	sum.SACKMost = max(sum.SACKMost, w.SACKMost)
	for _, x := range []struct{ to, from *measure.Count }{
		{&sum.Super, &w.Super}, {&sum.Again, &w.Again}, {&sum.Fast, &w.Fast}, {&sum.Timeout, &w.Timeout}, {&sum.Wake, &w.Wake}, {&sum.Spurious, &w.Spurious},
		{&sum.Late, &w.Late}, {&sum.SACKLate, &w.SACKLate}, {&sum.Gaps, &w.Gaps}, {&sum.Unseen, &w.Unseen}, {&sum.DupAcks, &w.DupAcks}, {&sum.DSACK, &w.DSACK},
		{&sum.SACKed, &w.SACKed}, {&sum.Zero, &w.Zero}, {&sum.Probes, &w.Probes},
	} {
		addCount(x.to, *x.from)
	}
}

// addCount adds a count, and as many of its packet numbers as there is room for.
func addCount(sum *measure.Count, c measure.Count) {
	sum.N += c.N
	sum.Bytes += c.Bytes
	sum.OnLink += c.OnLink
	room := max(0, measure.MostNumbers-len(sum.Packets))
	sum.Packets = append(sum.Packets, c.Packets[:min(room, len(c.Packets))]...)
}

// newCrossed compares the data connections that are in both captures; nil without any.
func (f *Flow) newCrossed(c *measure.Crossing, x measure.Flow) *Crossed {
	k := &Crossed{}
	var left, right []measure.Connection
	backwards := len(f.CapturePoints[c.Left].Connections) > 0 && f.isBackwards(x.Captures[c.Left].Conns[0], x.Sender)
	for _, conn := range f.CapturePoints[c.Left].Connections {
		pair := slices.IndexFunc(c.Conns, func(p measure.CrossedConn) bool { return p.LeftIndex == conn.Index })
		if pair < 0 {
			continue
		}
		both := c.Conns[pair]
		other := slices.IndexFunc(x.Captures[c.Right].Conns, func(c measure.Connection) bool { return c.Index == both.RightIndex })
		if other < 0 {
			continue
		}
		there := x.Captures[c.Right].Conns[other]
		if f.isBackwards(there, x.Sender) {
			there = turned(there)
		}
		if backwards {
			both.Data, both.Acks = both.Acks, both.Data
		}
		left, right, k.conns = append(left, conn), append(right, there), append(k.conns, both)
		addCrossed(&k.Data, both.Data)
		addCrossed(&k.Acks, both.Acks)
	}
	if len(k.conns) == 0 {
		return nil
	}
	k.Left, k.Right = capturePointOf(&x.Captures[c.Left], left), capturePointOf(&x.Captures[c.Right], right)
	if backwards {
		k.Left, k.Right = k.Right, k.Left
	}
	return k
}

func addCrossed(sum *measure.Crossed, c measure.Crossed) {
	sum.Sent += c.Sent
	sum.Arrived += c.Arrived
	sum.MaxArrived = max(sum.MaxArrived, c.MaxArrived)
	for _, x := range []struct{ to, from *measure.Count }{
		{&sum.Lost, &c.Lost}, {&sum.SuperSent, &c.SuperSent}, {&sum.SuperLost, &c.SuperLost}, {&sum.SingleSent, &c.SingleSent}, {&sum.SingleLost, &c.SingleLost},
		{&sum.FullSent, &c.FullSent}, {&sum.FullLost, &c.FullLost}, {&sum.SmallSent, &c.SmallSent}, {&sum.SmallLost, &c.SmallLost},
		{&sum.Late, &c.Late}, {&sum.Doubled, &c.Doubled},
	} {
		addCount(x.to, *x.from)
	}
	if sum.Delay == nil {
		sum.Delay = c.Delay
	}
}

// PacketsOnly reports whether captures are all that is known of the flow.
func (f *Flow) PacketsOnly() bool {
	reported := func(e *End) bool { return e.Seen == nil || e.Seen.Reported == measure.ByCapture }
	return len(f.CapturePoints) > 0 && reported(f.Sender) && reported(f.Receiver)
}

// CapturePoint returns the capture at the first of the places that has one; nil if none has.
func (f *Flow) CapturePoint(places ...string) *CapturePoint {
	for _, p := range places {
		for _, s := range f.CapturePoints {
			if s.At == p && len(s.Connections) > 0 {
				return s
			}
		}
	}
	return nil
}

// AnyCapturePoint returns the capture that shows most of a sender.
func (f *Flow) AnyCapturePoint() *CapturePoint {
	if f.Crossing != nil && f.Crossing.Left.At != measure.AtReceiver {
		return f.Crossing.Left
	}
	return f.CapturePoint(measure.AtSender, measure.AtPath, "", measure.AtReceiver)
}

// Main returns the connection with the most data.
func (s *CapturePoint) Main() *measure.Connection { return &s.Connections[0] }

// Misses reports whether the capture lacks packets, so that an absent packet proves nothing.
func (s *CapturePoint) Misses() bool {
	return s.Dropped != nil && *s.Dropped > 0 || 100*s.Data.Unseen.N > s.Data.Segments
}

// AgainPct returns the percentage of the payload that was retransmitted; false if too little passed to tell.
func (s *CapturePoint) AgainPct() (float64, bool) {
	if s.Data.Payload <= 0 || s.Data.Segments < LeastSegments {
		return 0, false
	}
	if s.Data.Again.Bytes > 0 {
		return stat.Pct(float64(s.Data.Again.Bytes), float64(s.Data.Payload)), true
	}
	return stat.Pct(float64(s.Data.Again.Segments()), float64(s.Data.Segments)), true
}

// LeastSegments is how many segments must be seen before zero losses mean something.
const LeastSegments = 100

// Rate returns the goodput of all connections in bit/s; 0 if it is not known.
func (s *CapturePoint) Rate() float64 {
	sum := 0.0
	for _, c := range s.Connections {
		switch {
		case c.GoodputBps != nil && *c.GoodputBps > 0:
			sum += *c.GoodputBps
		case c.SpanNs > 0 && c.Data.New > 0:
			sum += float64(c.Data.New) * 8e9 / float64(c.SpanNs)
		}
	}
	if !IsNumber(sum) {
		return 0
	}
	return sum
}

// RTT returns the median round-trip time under load and the minimum, in ns. A capture at the sender measures from
// data to its acknowledgement, one at the receiver from an acknowledgement to the data that it releases, one in
// between adds the two parts.
func (s *CapturePoint) RTT() (loaded, least float64, ok bool) {
	c := s.Main()
	parts := []*measure.Delay{c.RTT, c.RTTBack}
	switch s.At {
	case measure.AtSender:
		parts = parts[:1]
	case measure.AtReceiver:
		parts = parts[1:]
	}
	for _, d := range parts {
		if d == nil || d.Samples < leastSamples || d.Min < 0 || d.P50 <= 0 || d.P50 > mostNs {
			return 0, 0, false
		}
		loaded, least = loaded+float64(d.P50), least+float64(d.Min)
	}
	return loaded, max(1, least), true
}

// Limits of a delay that counts as a round trip.
const (
	leastSamples = 10
	mostNs       = 1e12
)

// Stands reports whether the round-trip time grows under load as it does when a queue fills; known is false if
// that cannot be told. On the sender's side a program that waits before it sends looks the same, but its data does
// not flow continuously.
func (s *CapturePoint) Stands() (queue, known bool) {
	loaded, least, ok := s.RTT()
	if !ok || !grows(loaded, least) {
		return false, ok
	}
	far := s.Main().RTT
	seen := s.At == measure.AtSender || s.At != measure.AtReceiver && grows(least+float64(far.P50-far.Min), least)
	return true, seen || s.flows()
}

// grows reports whether the round-trip time under load is well above the minimum.
func grows(loaded, least float64) bool {
	times, by := loaded/least, loaded-least
	return times > 1.4 && by > 0.7e6 || times > 1.15 && by > 3e6
}

// flows reports whether data passes in nearly every millisecond, as it does behind a queue; at a low rate segments
// are further apart.
func (s *CapturePoint) flows() bool {
	const slow, mostly = 20e6, 70
	if s.Rate() < slow {
		return true
	}
	c := s.Main()
	return stat.Pct(float64(c.Data.BusyMs)*1e6, float64(c.SpanNs)) > mostly
}

// Acked returns how much of the main connection's data was acknowledged, in bytes.
func (s *CapturePoint) Acked() (float64, bool) {
	c := s.Main().Timeline
	if c == nil || len(c.Acked) == 0 {
		return 0, false
	}
	return float64(max(0, slices.Max(c.Acked))), true
}

// MSS returns the payload of a full segment in bytes.
func (s *CapturePoint) MSS() float64 {
	if n := s.Main().MSS; n > 0 {
		return float64(n)
	}
	return scene.UsualMSS
}

// Proof returns a figure of the capture as evidence; packets are the numbers of the packets that show it.
func (s *CapturePoint) Proof(counter string, value float64, unit string, packets ...int64) measure.Proof {
	return measure.Proof{EndPoint: s.EndPoint, Counter: counter, Value: value, Unit: unit, SpanNs: s.SpanNs, Packets: packets, Capture: s.name()}
}

// Count returns a count as evidence.
func (s *CapturePoint) Count(counter string, c measure.Count) measure.Proof {
	return s.Proof(counter, float64(c.N), "packets", c.Packets...)
}

// From names the place of the capture in a sentence.
func (s *CapturePoint) From() string {
	switch s.At {
	case measure.AtSender, measure.AtReceiver:
		return "at the " + s.Place
	case measure.AtPath:
		return "between the ends"
	}
	return "at an unknown place"
}

// CaptureAt returns the outcome that a capture elsewhere would decide.
func CaptureAt(place, fact string) *Outcome {
	return captured(place, fact, "a capture at the "+place+" would show it")
}

// NoHandshake returns the outcome that only the handshake has a fact.
func NoHandshake(fact string) *Outcome {
	return captured(measure.CaptureHandshake, fact, "the handshake is not in the capture")
}

// SecondCapture returns why one capture cannot decide, and that one at the other end would.
func SecondCapture(fact, why string) *Outcome {
	return captured(measure.CaptureAtOtherEnd, fact, why+"; a second one at the other end would show it")
}

func captured(capture, fact, why string) *Outcome {
	o := Missing(fact, why)
	o.capture = capture
	return o
}

// LostPct returns the percentage of a class of packets that did not arrive.
func LostPct(sent, lost measure.Count) float64 { return stat.Pct(float64(lost.N), float64(sent.N)) }

// Arrived returns how many packets of a class arrived.
func Arrived(sent, lost measure.Count) int64 { return max(0, sent.N-lost.N) }

// Misses reports whether one of the two captures lacks packets.
func (x *Crossed) Misses() bool { return x.Left.Misses() || x.Right.Misses() }

// Sure returns the confidence of a proof by two captures: lower if one has gaps.
func (x *Crossed) Sure() string {
	if x.Misses() {
		return measure.Likely
	}
	return measure.Certain
}

// Join combines the outcomes of the ends' counters and of the packets; either may be nil. Packets that prove a
// cause win over counters that exclude it. Otherwise a cause that one finds and the other excludes loses a degree
// of confidence; a merely possible one is then excluded.
func Join(counted, shown *Outcome) *Outcome {
	switch {
	case counted == nil || shown == nil:
		return counted
	case shown.State == Unknown && counted.State != Unknown:
		return counted
	case counted.State == Unknown:
		return shown
	case counted.State == Excluded && shown.State == Excluded:
		return counted
	case counted.State == Holds && shown.State == Holds:
		return Both(counted, shown)
	case counted.State == Holds:
		return Doubted(counted, shown)
	case shown.Confidence == measure.Certain:
		return shown
	}
	return Doubted(shown, counted)
}

// surer returns the outcome if captures are all that is known. The counters come from the same packets: they may
// make a cause more certain, but are no independent evidence against it, nor about causes that do not limit the
// rate.
func surer(counted, shown *Outcome) *Outcome {
	if counted == nil || counted.State != Holds || shown.State != Holds || shown.NotBinding || Weight(counted.Confidence) <= Weight(shown.Confidence) {
		return shown
	}
	o := *shown
	o.Confidence = counted.Confidence
	o.Evidence = slices.Concat(counted.Evidence, shown.Evidence)
	return &o
}

// Both returns the more certain of two outcomes that hold, with the evidence of the other.
func Both(counted, shown *Outcome) *Outcome {
	o, other := *counted, shown
	if Sureness(shown) > Sureness(counted) {
		o, other = *shown, counted
	}
	o.Evidence = slices.Concat(counted.Evidence, shown.Evidence)
	if o.Effect == nil {
		o.Effect = other.Effect
	}
	if o.Fix == nil {
		o.Fix = other.Fix
	}
	return &o
}

// Doubted returns an outcome that one source finds and the other excludes.
func Doubted(o, against *Outcome) *Outcome {
	d := *o
	d.Text = fmt.Sprintf("%s; but %s", o.Text, against.Text)
	d.Evidence = slices.Concat(o.Evidence, against.Evidence)
	switch o.Confidence {
	case measure.Certain:
		d.Confidence = measure.Likely
	case measure.Likely:
		d.Confidence = measure.Possible
	default:
		return against
	}
	return &d
}

// Mathis returns the rate in bit/s that a loss in percent allows the connections of a capture over a round-trip
// time in ns (methods.md, formula 6).
func (s *CapturePoint) Mathis(rttNs, pct float64) float64 {
	return stat.Mathis(int64(s.MSS()), int64(rttNs), pct/100) * float64(len(s.Connections))
}

// name returns the capture's file, or the end point that captured.
func (s *CapturePoint) name() string { return cmp.Or(s.File, s.EndPoint) }

// HopsBetween returns by how much the TTL fell between two places; false if there are several values, or it rose.
func HopsBetween(from, to *CapturePoint, direction func(*measure.Connection) measure.Direction) (int, bool) {
	a, b := direction(from.Main()).TTLs, direction(to.Main()).TTLs
	if len(a) != 1 || len(b) != 1 || b[0] > a[0] {
		return 0, false
	}
	return a[0] - b[0], true
}
