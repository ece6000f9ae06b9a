package diagnose

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"thru/internal/measure"
	"thru/internal/stat"
)

// spot is a capture of the flow. Its connections are those of the direction of
// the data, and its counts are of all of them.
type spot struct {
	*measure.Capture
	place      string               // Capture.Place; "": not known
	conns      []measure.Connection // those with the most data first
	data, acks measure.Way
}

// crossed is what two captures tell together, of all connections.
type crossed struct {
	left, right *spot // the left one is nearer to the sender
	conns       []measure.CrossedConn
	data, acks  measure.Crossed
}

// findPackets fills what was captured of the flow.
func (f *flow) findPackets() {
	x := f.packets()
	if f.isUDP() {
		return
	}
	for i := range x.Captures {
		f.spots = append(f.spots, f.newSpot(&x.Captures[i], x.Sender))
	}
	c := x.Crossing
	if c == nil || c.Left == c.Right || c.Left < 0 || c.Right < 0 || c.Left >= len(f.spots) || c.Right >= len(f.spots) {
		return
	}
	f.crossing = f.newCrossed(c, x)
}

// newSpot is a capture with those connections that carry the data: beside them a
// program may talk over others.
func (f *flow) newSpot(c *measure.Capture, sender *measure.Evidence) *spot {
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
	return spotOf(c, conns)
}

// leastPart of the data of the largest connection is what another one has to carry.
const leastPart = 100

// spotOf is a capture with these connections.
func spotOf(c *measure.Capture, conns []measure.Connection) *spot {
	s := &spot{Capture: c, place: c.Place, conns: conns}
	if !slices.Contains([]string{measure.AtSender, measure.AtReceiver, measure.AtPath}, s.place) {
		s.place = ""
	}
	for i := range conns {
		addWay(&s.data, conns[i].Data)
		addWay(&s.acks, conns[i].Acks)
	}
	return s
}

// isBackwards tells of a connection whose From is the receiver of this flow: of
// two ways on one connection, a capture calls the busier one the data.
func (f *flow) isBackwards(c measure.Connection, sender *measure.Evidence) bool {
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
	return hostOf(c.To) == f.cell.From && hostOf(c.From) != f.cell.From
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

// addWay adds the counts of one connection to those of the others.
func addWay(sum *measure.Way, w measure.Way) {
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
func (f *flow) newCrossed(c *measure.Crossing, x measure.Flow) *crossed {
	k := &crossed{}
	var left, right []measure.Connection
	backwards := len(f.spots[c.Left].conns) > 0 && f.isBackwards(x.Captures[c.Left].Conns[0], x.Sender)
	for _, conn := range f.spots[c.Left].conns {
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
		addCrossed(&k.data, both.Data)
		addCrossed(&k.acks, both.Acks)
	}
	if len(k.conns) == 0 {
		return nil
	}
	k.left, k.right = spotOf(&x.Captures[c.Left], left), spotOf(&x.Captures[c.Right], right)
	if backwards {
		k.left, k.right = k.right, k.left
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

// packetsOnly tells of a flow of which captures are all that is known.
func (f *flow) packetsOnly() bool {
	reported := func(e *end) bool { return e.seen == nil || e.seen.Reported == measure.ByCapture }
	return len(f.spots) > 0 && reported(f.sender) && reported(f.receiver)
}

// spot at the first of the places where there is a capture; nil where none is
// at any of them.
func (f *flow) spot(places ...string) *spot {
	for _, p := range places {
		for _, s := range f.spots {
			if s.place == p && len(s.conns) > 0 {
				return s
			}
		}
	}
	return nil
}

// anySpot is the capture that tells most of a sender.
func (f *flow) anySpot() *spot {
	if f.crossing != nil && f.crossing.left.place != measure.AtReceiver {
		return f.crossing.left
	}
	return f.spot(measure.AtSender, measure.AtPath, "", measure.AtReceiver)
}

// main is the connection with the most data.
func (s *spot) main() *measure.Connection { return &s.conns[0] }

// misses tells that the capture does not have all packets, so that what it lacks
// proves nothing.
func (s *spot) misses() bool {
	return s.Dropped != nil && *s.Dropped > 0 || 100*s.data.Unseen.N > s.data.Segments
}

// againPct is the share of the payload that was sent again, in percent; false
// where too little passed to tell.
func (s *spot) againPct() (float64, bool) {
	if s.data.Payload <= 0 || s.data.Segments < leastSegments {
		return 0, false
	}
	if s.data.Again.Bytes > 0 {
		return share(float64(s.data.Again.Bytes), float64(s.data.Payload)), true
	}
	return share(float64(s.data.Again.Segments()), float64(s.data.Segments)), true
}

// leastSegments have to be seen before nothing lost among them says something.
const leastSegments = 100

// rate is the goodput of all connections in bit/s; 0 where it is not known.
func (s *spot) rate() float64 {
	sum := 0.0
	for _, c := range s.conns {
		switch {
		case c.GoodputBps != nil && *c.GoodputBps > 0:
			sum += *c.GoodputBps
		case c.SpanNs > 0 && c.Data.New > 0:
			sum += float64(c.Data.New) * 8e9 / float64(c.SpanNs)
		}
	}
	if !isNumber(sum) {
		return 0
	}
	return sum
}

// rtt is the median round trip under load and the least, in ns. A capture at the
// sender sees all of it from data to its acknowledgement, one at the receiver
// from an acknowledgement to the data that it let go, one between them a part
// by each.
func (s *spot) rtt() (loaded, least float64, ok bool) {
	c := s.main()
	parts := []*measure.Delay{c.RTT, c.RTTBack}
	switch s.place {
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

// stands tells of a spot whether the round trip grows under load as it does
// before a queue that fills; false where it is not known. What is seen of the
// sender's side may also be a program that waits before it sends: then data does
// not come all the time.
func (s *spot) stands() (queue, known bool) {
	loaded, least, ok := s.rtt()
	if !ok || !grows(loaded, least) {
		return false, ok
	}
	far := s.main().RTT
	seen := s.place == measure.AtSender || s.place != measure.AtReceiver && grows(least+float64(far.P50-far.Min), least)
	return true, seen || s.flows()
}

// grows tells of a round trip under load that it is well above the least.
func grows(loaded, least float64) bool {
	times, by := loaded/least, loaded-least
	return times > 1.4 && by > 0.7e6 || times > 1.15 && by > 3e6
}

// flows tells whether data passes in nearly every millisecond, as it does behind
// a queue; at a low rate segments lie further apart.
func (s *spot) flows() bool {
	const slow, mostly = 20e6, 70
	if s.rate() < slow {
		return true
	}
	c := s.main()
	return share(float64(c.Data.BusyMs)*1e6, float64(c.SpanNs)) > mostly
}

// acked is how much of the main connection's data was acknowledged, in bytes.
func (s *spot) acked() (float64, bool) {
	c := s.main().Course
	if c == nil || len(c.Acked) == 0 {
		return 0, false
	}
	return float64(max(0, slices.Max(c.Acked))), true
}

// mss is the payload of a full segment in bytes.
func (s *spot) mss() float64 {
	if n := s.main().MSS; n > 0 {
		return float64(n)
	}
	return usualMSS
}

// proof is a figure of the capture; packets are the numbers of those that show it.
func (s *spot) proof(counter string, value float64, unit string, packets ...int64) measure.Proof {
	return measure.Proof{EndPoint: s.EndPoint, Counter: counter, Value: value, Unit: unit, SpanNs: s.SpanNs, Packets: packets, Capture: s.name()}
}

// count is the proof of a count.
func (s *spot) count(counter string, c measure.Count) measure.Proof {
	return s.proof(counter, float64(c.N), "packets", c.Packets...)
}

// from names the place of the capture in a sentence.
func (s *spot) from() string {
	switch s.place {
	case measure.AtSender, measure.AtReceiver:
		return "at the " + s.Place
	case measure.AtPath:
		return "between the ends"
	}
	return "at a place that is not known"
}

// captureAt says that a capture elsewhere would tell.
func captureAt(place, fact string) *outcome {
	return missing(fact, "a capture at the "+place+" would tell")
}

// lostPct is the share of a class of packets that did not arrive, in percent.
func lostPct(sent, lost measure.Count) float64 { return share(float64(lost.N), float64(sent.N)) }

// arrived is how many of a class of packets did.
func arrived(sent, lost measure.Count) int64 { return max(0, sent.N-lost.N) }

// misses tells that one of the two captures does not have all packets.
func (x *crossed) misses() bool { return x.left.misses() || x.right.misses() }

// sure is the confidence of what two captures prove: less where one has gaps.
func (x *crossed) sure() string {
	if x.misses() {
		return measure.Likely
	}
	return measure.Certain
}

// join makes one outcome of what the counters of the ends say and what the
// packets show; either may be nil. Packets that prove a cause win over counters
// that speak against it. Otherwise what one holds and the other speaks against
// loses a degree of confidence, so a possible cause is excluded.
func join(counted, shown *outcome) *outcome {
	switch {
	case counted == nil || shown == nil:
		return counted
	case shown.state == unknown && counted.state != unknown:
		return counted
	case counted.state == unknown:
		return shown
	case counted.state == excluded && shown.state == excluded:
		return counted
	case counted.state == holds && shown.state == holds:
		return both(counted, shown)
	case counted.state == holds:
		return doubted(counted, shown)
	case shown.confidence == measure.Certain:
		return shown
	}
	return doubted(shown, counted)
}

// surer is what packets show where they are all that is known. The counters were
// taken from the same packets: they may make it surer, but are no second witness
// against it, and say no more of what the rate does not hang on.
func surer(counted, shown *outcome) *outcome {
	if counted == nil || counted.state != holds || shown.state != holds || shown.aside || weight(counted.confidence) <= weight(shown.confidence) {
		return shown
	}
	o := *shown
	o.confidence = counted.confidence
	o.evidence = slices.Concat(counted.evidence, shown.evidence)
	return &o
}

// both is the surer of two outcomes that hold, with the evidence of the other.
func both(counted, shown *outcome) *outcome {
	o, other := *counted, shown
	if sureness(shown) > sureness(counted) {
		o, other = *shown, counted
	}
	o.evidence = slices.Concat(counted.evidence, shown.evidence)
	if o.effect == nil {
		o.effect = other.effect
	}
	if o.remedy == nil {
		o.remedy = other.remedy
	}
	return &o
}

// doubted is what holds by one and is spoken against by the other.
func doubted(o, against *outcome) *outcome {
	d := *o
	d.text = fmt.Sprintf("%s; but %s", o.text, against.text)
	d.evidence = slices.Concat(o.evidence, against.evidence)
	switch o.confidence {
	case measure.Certain:
		d.confidence = measure.Likely
	case measure.Likely:
		d.confidence = measure.Possible
	default:
		return against
	}
	return &d
}

// mathis is the rate that a loss of so many percent allows the connections of
// a capture over a round trip in ns (methods.md, formula 6).
func (s *spot) mathis(rttNs, pct float64) float64 {
	return stat.Mathis(int64(s.mss()), int64(rttNs), pct/100, 1.22) * float64(len(s.conns))
}

// name of the capture: its file, or the end point that captured.
func (s *spot) name() string { return cmp.Or(s.File, s.EndPoint) }
