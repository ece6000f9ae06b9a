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

// CapturePoint is a capture of the flow. Its connections are those of the direction of
// the data, and its counts are of all of them.
type CapturePoint struct {
	*measure.Capture
	At          string               // Capture.Place; "": not known
	Connections []measure.Connection // those with the most data first
	Data, Acks  measure.Direction
}

// Crossed is what two captures tell together, of all connections.
type Crossed struct {
	Left, Right *CapturePoint // the left one is nearer to the sender
	conns       []measure.CrossedConn
	Data, Acks  measure.Crossed
}

// findPackets fills what was captured of the flow.
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

// newCapturePoint is a capture with those connections that carry the data: beside them a
// program may talk over others.
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

// leastPart of the data of the largest connection is what another one has to carry.
const leastPart = 100

// capturePointOf is a capture with these connections.
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

// isBackwards tells of a connection whose From is the receiver of this flow: of
// two ways on one connection, a capture calls the busier one the data.
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

// hostOf is the address of an end without its port.
func hostOf(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	return a.Addr().String()
}

// turned is the connection with the other end as From. What a capture tells of
// the data of the busier way only is not known then.
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

// addCount adds a count, and as many of its packets as there is room for.
func addCount(sum *measure.Count, c measure.Count) {
	sum.N += c.N
	sum.Bytes += c.Bytes
	sum.OnLink += c.OnLink
	room := max(0, measure.MostNumbers-len(sum.Packets))
	sum.Packets = append(sum.Packets, c.Packets[:min(room, len(c.Packets))]...)
}

// newCrossed compares the connections of the data that are in both captures; nil
// without any.
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

// PacketsOnly tells of a flow of which captures are all that is known.
func (f *Flow) PacketsOnly() bool {
	reported := func(e *End) bool { return e.Seen == nil || e.Seen.Reported == measure.ByCapture }
	return len(f.CapturePoints) > 0 && reported(f.Sender) && reported(f.Receiver)
}

// CapturePoint at the first of the places where there is a capture; nil where none is
// at any of them.
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

// AnyCapturePoint is the capture that tells most of a sender.
func (f *Flow) AnyCapturePoint() *CapturePoint {
	if f.Crossing != nil && f.Crossing.Left.At != measure.AtReceiver {
		return f.Crossing.Left
	}
	return f.CapturePoint(measure.AtSender, measure.AtPath, "", measure.AtReceiver)
}

// Main is the connection with the most data.
func (s *CapturePoint) Main() *measure.Connection { return &s.Connections[0] }

// Misses tells that the capture does not have all packets, so that what it lacks
// proves nothing.
func (s *CapturePoint) Misses() bool {
	return s.Dropped != nil && *s.Dropped > 0 || 100*s.Data.Unseen.N > s.Data.Segments
}

// AgainPct is the share of the payload that was sent again, in percent; false
// where too little passed to tell.
func (s *CapturePoint) AgainPct() (float64, bool) {
	if s.Data.Payload <= 0 || s.Data.Segments < LeastSegments {
		return 0, false
	}
	if s.Data.Again.Bytes > 0 {
		return stat.Pct(float64(s.Data.Again.Bytes), float64(s.Data.Payload)), true
	}
	return stat.Pct(float64(s.Data.Again.Segments()), float64(s.Data.Segments)), true
}

// LeastSegments have to be seen before nothing lost among them says something.
const LeastSegments = 100

// Rate is the goodput of all connections in bit/s; 0 where it is not known.
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

// RTT is the median round trip under load and the least, in ns. A capture at the
// sender sees all of it from data to its acknowledgement, one at the receiver
// from an acknowledgement to the data that it let go, one between them a part
// by each.
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

// Bounds of a delay that is taken for a round trip.
const (
	leastSamples = 10
	mostNs       = 1e12
)

// Stands tells of a spot whether the round trip grows under load as it does
// before a queue that fills; false where it is not known. What is seen of the
// sender's side may also be a program that waits before it sends: then data does
// not come all the time.
func (s *CapturePoint) Stands() (queue, known bool) {
	loaded, least, ok := s.RTT()
	if !ok || !grows(loaded, least) {
		return false, ok
	}
	far := s.Main().RTT
	seen := s.At == measure.AtSender || s.At != measure.AtReceiver && grows(least+float64(far.P50-far.Min), least)
	return true, seen || s.flows()
}

// grows tells of a round trip under load that it is well above the least.
func grows(loaded, least float64) bool {
	times, by := loaded/least, loaded-least
	return times > 1.4 && by > 0.7e6 || times > 1.15 && by > 3e6
}

// flows tells whether data passes in nearly every millisecond, as it does behind
// a queue; at a low rate segments lie further apart.
func (s *CapturePoint) flows() bool {
	const slow, mostly = 20e6, 70
	if s.Rate() < slow {
		return true
	}
	c := s.Main()
	return stat.Pct(float64(c.Data.BusyMs)*1e6, float64(c.SpanNs)) > mostly
}

// Acked is how much of the main connection's data was acknowledged, in bytes.
func (s *CapturePoint) Acked() (float64, bool) {
	c := s.Main().Timeline
	if c == nil || len(c.Acked) == 0 {
		return 0, false
	}
	return float64(max(0, slices.Max(c.Acked))), true
}

// MSS is the payload of a full segment in bytes.
func (s *CapturePoint) MSS() float64 {
	if n := s.Main().MSS; n > 0 {
		return float64(n)
	}
	return scene.UsualMSS
}

// Proof is a figure of the capture; packets are the numbers of those that show it.
func (s *CapturePoint) Proof(counter string, value float64, unit string, packets ...int64) measure.Proof {
	return measure.Proof{EndPoint: s.EndPoint, Counter: counter, Value: value, Unit: unit, SpanNs: s.SpanNs, Packets: packets, Capture: s.name()}
}

// Count is the proof of a count.
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
	return "at a place that is not known"
}

// CaptureAt says that a capture elsewhere would tell.
func CaptureAt(place, fact string) *Outcome {
	return captured(place, fact, "a capture at the "+place+" would tell")
}

// NoHandshake says of a fact that only the handshake has it.
func NoHandshake(fact string) *Outcome {
	return captured(measure.CaptureHandshake, fact, "the handshake is not in the capture")
}

// SecondCapture says why one capture does not tell, and that one at the other end would.
func SecondCapture(fact, why string) *Outcome {
	return captured(measure.CaptureAtOtherEnd, fact, why+"; a second one at the other end would tell")
}

func captured(capture, fact, why string) *Outcome {
	o := Missing(fact, why)
	o.capture = capture
	return o
}

// LostPct is the share of a class of packets that did not arrive, in percent.
func LostPct(sent, lost measure.Count) float64 { return stat.Pct(float64(lost.N), float64(sent.N)) }

// Arrived is how many of a class of packets did.
func Arrived(sent, lost measure.Count) int64 { return max(0, sent.N-lost.N) }

// Misses tells that one of the two captures does not have all packets.
func (x *Crossed) Misses() bool { return x.Left.Misses() || x.Right.Misses() }

// Sure is the confidence of what two captures prove: less where one has gaps.
func (x *Crossed) Sure() string {
	if x.Misses() {
		return measure.Likely
	}
	return measure.Certain
}

// Join makes one outcome of what the counters of the ends say and what the
// packets show; either may be nil. Packets that prove a cause win over counters
// that speak against it. Otherwise what one holds and the other speaks against
// loses a degree of confidence, so a possible cause is excluded.
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

// surer is what packets show where they are all that is known. The counters were
// taken from the same packets: they may make it surer, but are no second witness
// against it, and say no more of what the rate does not hang on.
func surer(counted, shown *Outcome) *Outcome {
	if counted == nil || counted.State != Holds || shown.State != Holds || shown.NotBinding || Weight(counted.Confidence) <= Weight(shown.Confidence) {
		return shown
	}
	o := *shown
	o.Confidence = counted.Confidence
	o.Evidence = slices.Concat(counted.Evidence, shown.Evidence)
	return &o
}

// Both is the surer of two outcomes that hold, with the evidence of the other.
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

// Doubted is what holds by one and is spoken against by the other.
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

// Mathis is the rate that a loss of so many percent allows the connections of
// a capture over a round trip in ns (methods.md, formula 6).
func (s *CapturePoint) Mathis(rttNs, pct float64) float64 {
	return stat.Mathis(int64(s.MSS()), int64(rttNs), pct/100, 1.22) * float64(len(s.Connections))
}

// name of the capture: its file, or the end point that captured.
func (s *CapturePoint) name() string { return cmp.Or(s.File, s.EndPoint) }

// HopsBetween is by how much the time to live fell from one place to the other;
// false where there are several, or it rose.
func HopsBetween(from, to *CapturePoint, direction func(*measure.Connection) measure.Direction) (int, bool) {
	a, b := direction(from.Main()).TTLs, direction(to.Main()).TTLs
	if len(a) != 1 || len(b) != 1 || b[0] > a[0] {
		return 0, false
	}
	return a[0] - b[0], true
}
