package trace

import (
	"errors"
	"math"
	"slices"
	"testing"

	"thru/internal/capture/frame"
	"thru/internal/measure"
)

// The path of the tests: data from A to B, a delay each way, and a clock at the
// right that is ahead.
const (
	ms        = int64(1_000_000)
	epoch     = int64(1_700_000_000_000_000_000)
	oneWay    = 5 * ms
	ahead     = 3_000 * ms
	testMSS   = 1448
	isnA      = 1_000_000
	isnB      = 4_294_000_000 // wraps
	fullBytes = testMSS + 52
)

var (
	hostA = frame.Endpoint{Addr: [16]byte{10: 255, 11: 255, 12: 10, 15: 1}, Port: 40000}
	hostB = frame.Endpoint{Addr: [16]byte{10: 255, 11: 255, 12: 10, 15: 2}, Port: 5201}
)

// tapes are the packets of two capture points.
type tapes struct {
	left, right []frame.Packet
	id          uint16
}

// dataPacket carries n bytes from seq on.
func dataPacket(seq, n int, at int64) frame.Packet {
	return frame.Packet{
		TimeNs: epoch + at, Proto: frame.TCP, Source: hostA, Target: hostB, TTL: 64, DF: true, Flags: frame.ACK,
		Seq: uint32(isnA + 1 + seq), Ack: (isnB + 1) & math.MaxUint32, Window: 500, Payload: n, IPBytes: n + 52,
		Options: frame.Options{Timestamps: true, TSVal: uint32(1000 + at/ms)},
	}
}

func ackPacket(ack int, at int64) frame.Packet {
	return frame.Packet{
		TimeNs: epoch + at, Proto: frame.TCP, Source: hostB, Target: hostA, TTL: 64, Flags: frame.ACK,
		Seq: (isnB + 1) & math.MaxUint32, Ack: uint32(isnA + 1 + ack), Window: 700, IPBytes: 52,
		Options: frame.Options{Timestamps: true, TSVal: uint32(9000 + at/ms)},
	}
}

func syn(at int64) frame.Packet {
	p := dataPacket(-1, 0, at)
	p.Flags, p.Ack, p.IPBytes = frame.SYN, 0, 60
	p.Options = frame.Options{HasMSS: true, MSS: 1460, HasScale: true, Scale: 7, SACKOK: true, Timestamps: true, TSVal: 1000, Kinds: [12]uint8{2, 4, 8, 1, 3}}
	return p
}

func synAck(at int64) frame.Packet {
	p := syn(at)
	p.Source, p.Target, p.Flags, p.Seq, p.Ack = hostB, hostA, frame.SYN|frame.ACK, isnB, isnA+1
	return p
}

// pass records a packet at both capture points; lost leaves it out at the
// second.
func (t *tapes) pass(p frame.Packet, changes ...func(*frame.Packet)) {
	t.id++
	p.ID = t.id
	t.lost(p)
	t.arrive(p, changes...)
}

func (t *tapes) lost(p frame.Packet) {
	if p.Source == hostA {
		t.left = append(t.left, p)
		return
	}
	p.TimeNs += ahead
	t.right = append(t.right, p)
}

func (t *tapes) arrive(p frame.Packet, changes ...func(*frame.Packet)) {
	p.TimeNs += oneWay
	p.TTL -= 2
	for _, change := range changes {
		change(&p)
	}
	if p.Source == hostA || p.Target == hostB {
		p.TimeNs += ahead
		t.right = append(t.right, p)
		return
	}
	t.left = append(t.left, p)
}

// open is a handshake.
func (t *tapes) open() {
	t.pass(syn(0))
	t.pass(synAck(oneWay))
	t.pass(ackOfA(0, 2*oneWay))
}

func ackOfA(seq int, at int64) frame.Packet { return dataPacket(seq, 0, at) }

// bulk passes full segments from seq on, one a millisecond, each
// acknowledged.
func (t *tapes) bulk(from, n int, at int64, changes ...func(*frame.Packet)) {
	for i := range n {
		now := at + int64(i)*ms
		t.pass(dataPacket(from+i*testMSS, testMSS, now), changes...)
		t.pass(ackPacket(from+(i+1)*testMSS, now+oneWay))
	}
}

// split makes a super-packet arrive as segments.
func (t *tapes) split(p frame.Packet) {
	for seq := 0; seq < p.Payload; seq += testMSS {
		s := p
		s.Seq, s.Payload = p.Seq+uint32(seq), min(testMSS, p.Payload-seq)
		s.IPBytes = s.Payload + 52
		t.arrive(s)
	}
}

// side reads a tape as a capture.
func side(packets []frame.Packet) Side {
	r := NewRecorder()
	b := New(Options{Record: r})
	ordered := slices.Clone(packets)
	slices.SortStableFunc(ordered, func(x, y frame.Packet) int { return int(x.TimeNs - y.TimeNs) })
	for i := range ordered {
		ordered[i].Number = int64(i + 1)
		b.Add(&ordered[i], frame.IsTCP)
	}
	return Side{b.Capture(), r}
}

// crossed compares the tapes in both orders, and returns the one connection.
func crossed(t *testing.T, x *tapes) (*measure.Crossing, measure.CrossedConn) {
	t.Helper()
	back, err := Cross(side(x.right), side(x.left))
	if err != nil || back.Left != 1 || back.Right != 0 {
		t.Fatalf("in reverse order: %v, %+v", err, back)
	}
	c, err := Cross(side(x.left), side(x.right))
	if err != nil || c.Left != 0 || len(c.Conns) != 1 {
		t.Fatalf("%v: %+v", err, c)
	}
	return c, c.Conns[0]
}

// TestCross verifies the counts of losses, by the kind of fault.
func TestCross(t *testing.T) {
	type counts struct{ lost, super, superLost, single, singleLost, full, fullLost, small, smallLost, late, doubled int64 }
	super := func(seq, segments int, at int64) frame.Packet {
		p := dataPacket(seq, segments*testMSS, at)
		p.ID = 7
		return p
	}
	for name, c := range map[string]struct {
		tell func(*tapes)
		want counts
	}{
		"healthy": {func(x *tapes) { x.bulk(0, 20, 20*ms) }, counts{single: 22, full: 20, small: 2}},
		"one lost and sent again": {func(x *tapes) {
			x.bulk(0, 5, 20*ms)
			x.lost(dataPacket(5*testMSS, testMSS, 25*ms))
			x.bulk(6*testMSS, 3, 26*ms)
			x.bulk(5*testMSS, 1, 60*ms)
			x.bulk(9*testMSS, 5, 80*ms)
		}, counts{lost: 1, single: 17, singleLost: 1, full: 15, fullLost: 1, small: 2}},
		"broken TSO": {func(x *tapes) {
			at := 20 * ms
			for i := range 5 {
				x.lost(super(i*10*testMSS, 10, at))
				x.bulk(i*10*testMSS, 10, at+300*ms)
				at += 400 * ms
			}
		}, counts{lost: 5, super: 5, superLost: 5, single: 52, full: 50, small: 2}},
		"super-packets that are split, and merged anew": {func(x *tapes) {
			for i := range 5 {
				p := super(i*10*testMSS, 10, int64(20+10*i)*ms)
				x.lost(p)
				if i%2 == 0 {
					x.split(p)
				} else {
					half := p
					half.Payload, half.IPBytes = 5*testMSS, 5*testMSS+52
					x.arrive(half)
					half.Seq += uint32(half.Payload)
					x.arrive(half)
				}
				x.pass(ackPacket((i+1)*10*testMSS, int64(20+10*i)*ms+oneWay))
			}
			x.bulk(50*testMSS, 5, 100*ms)
		}, counts{super: 5, single: 7, full: 5, small: 2}},
		"one segment of a super-packet is lost": {func(x *tapes) {
			p := super(0, 10, 20*ms)
			x.lost(p)
			first := p
			first.Payload, first.IPBytes = 4*testMSS, 4*testMSS+52
			x.split(first)
			rest := p
			rest.Seq, rest.Payload = p.Seq+5*testMSS, 5*testMSS
			x.split(rest)
			x.bulk(4*testMSS, 1, 50*ms)
			x.bulk(10*testMSS, 10, 60*ms)
		}, counts{lost: 1, super: 1, single: 13, full: 11, small: 2}},
		"MTU black hole": {func(x *tapes) {
			x.bulk(0, 0, 0)
			p := dataPacket(0, 100, 20*ms)
			x.pass(p)
			x.pass(ackPacket(100, 20*ms+oneWay))
			for i := range 6 {
				x.lost(dataPacket(100, testMSS, int64(40+200<<i)*ms))
			}
		}, counts{lost: 5, single: 8, singleLost: 5, full: 5, fullLost: 5, small: 3}}, // the last one may be in flight
		"overtaken": {func(x *tapes) {
			x.bulk(0, 10, 20*ms)
			x.pass(dataPacket(10*testMSS, testMSS, 40*ms), func(p *frame.Packet) { p.TimeNs += 2*ms + ms/2 })
			x.bulk(11*testMSS, 10, 41*ms)
		}, counts{single: 23, full: 21, small: 2, late: 1}},
		"doubled": {func(x *tapes) {
			x.bulk(0, 10, 20*ms)
			p := dataPacket(10*testMSS, testMSS, 40*ms)
			x.pass(p)
			p.ID = x.id
			x.arrive(p, func(p *frame.Packet) { p.TimeNs += 8 * ms })
			x.bulk(11*testMSS, 10, 41*ms)
		}, counts{single: 23, full: 21, small: 2, doubled: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			x := &tapes{}
			x.open()
			c.tell(x)
			crossing, conn := crossed(t, x)
			d := conn.Data
			got := counts{
				d.Lost.N, d.SuperSent.N, d.SuperLost.N, d.SingleSent.N, d.SingleLost.N, d.FullSent.N, d.FullLost.N,
				d.SmallSent.N, d.SmallLost.N, d.Late.N, d.Doubled.N,
			}
			if got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			if d.Arrived+d.Lost.Bytes != d.Sent || d.Sent == 0 {
				t.Errorf("%d sent, %d arrived, %d lost", d.Sent, d.Arrived, d.Lost.Bytes)
			}
			if conn.Acks.Lost.N != 0 || len(crossing.Missing) > 0 {
				t.Errorf("acknowledgements: %+v; missing: %v", conn.Acks.Lost, crossing.Missing)
			}
			if crossing.OffsetNs != ahead || crossing.BoundNs != oneWay || d.Delay == nil || d.Delay.P50 != oneWay {
				t.Errorf("offset %d within %d, delay %+v", crossing.OffsetNs, crossing.BoundNs, d.Delay)
			}
		})
	}
}

// TestCrossLosesNothing verifies that a packet which a capture lacks is not
// counted as lost.
func TestCrossLosesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		cut  func(*tapes)
		says string
	}{
		"the right one began later":  {func(x *tapes) { x.right = x.right[40:] }, ""},
		"the right one ended before": {func(x *tapes) { x.right = x.right[:len(x.right)-40] }, ""},
		"the left one began later":   {func(x *tapes) { x.left = x.left[40:] }, ""},
		"the left one ended before":  {func(x *tapes) { x.left = x.left[:len(x.left)-40] }, ""},
		"the right one has a hole":   {func(x *tapes) { x.right = slices.Delete(x.right, 60, 80) }, "lost"},
		"the left one has a hole":    {func(x *tapes) { x.left = slices.Delete(x.left, 60, 80) }, "lost"},
		"the left one has many holes": {func(x *tapes) {
			n := 0
			x.left = slices.DeleteFunc(x.left, func(frame.Packet) bool { n++; return n%17 == 16 })
		}, "lost"},
	} {
		t.Run(name, func(t *testing.T) {
			x := &tapes{}
			x.open()
			x.bulk(0, 100, 20*ms)
			order := func(a, b frame.Packet) int { return int(a.TimeNs - b.TimeNs) }
			slices.SortStableFunc(x.left, order)
			slices.SortStableFunc(x.right, order)
			c.cut(x)
			crossing, conn := crossed(t, x)
			if conn.Data.Lost.N != 0 || conn.Acks.Lost.N != 0 || conn.Data.Sent == 0 || conn.Data.Late.N != 0 || conn.Data.Doubled.N != 0 {
				t.Errorf("lost %+v of %d, back %+v", conn.Data.Lost, conn.Data.Sent, conn.Acks.Lost)
			}
			if got := len(crossing.Missing) > 0; got != (c.says != "") || got && crossing.Missing[0].Fact != c.says {
				t.Errorf("missing: %v", crossing.Missing)
			}
		})
	}
}

// TestCrossWithoutStamps verifies that copies are distinguished without time
// stamps, by time.
func TestCrossWithoutStamps(t *testing.T) {
	x := &tapes{}
	x.open()
	x.bulk(0, 10, 20*ms)
	x.lost(dataPacket(10*testMSS, testMSS, 40*ms))
	x.bulk(10*testMSS, 10, 250*ms)
	for _, tape := range [][]frame.Packet{x.left, x.right} {
		for i := range tape {
			tape[i].Options.Timestamps, tape[i].Options.TSVal, tape[i].ID = false, 0, 0
		}
	}
	_, conn := crossed(t, x)
	if d := conn.Data; d.Lost.N != 1 || d.Lost.Packets[0] != 24 || d.Arrived != 20*testMSS {
		t.Errorf("%+v", d)
	}
}

// TestCrossChanges verifies the reported changes of a device that rewrites
// packets.
func TestCrossChanges(t *testing.T) {
	isSYN := func(p *frame.Packet) bool { return p.Flags&frame.SYN != 0 }
	for name, c := range map[string]struct {
		right func(*frame.Packet) // as packets are at the right
		want  []string
		lost  bool // nothing is compared
	}{
		"nothing": {func(*frame.Packet) {}, nil, false},
		"MSS clamped": {func(p *frame.Packet) {
			if isSYN(p) && p.Source == hostA {
				p.Options.MSS = 1360
			}
		}, []string{"syn mss 1460 1360"}, false},
		"SACK and scaling taken out": {func(p *frame.Packet) {
			if isSYN(p) && p.Source == hostA {
				p.Options.SACKOK, p.Options.HasScale, p.Options.Kinds = false, false, [12]uint8{2, 8}
			}
		}, []string{"syn window-scale 7 none", "syn sack-permitted yes no"}, false},
		"options cut by the snap length": {func(p *frame.Packet) {
			if p.Options = (frame.Options{Cut: true}); isSYN(p) {
				p.Options = frame.Options{HasMSS: true, MSS: 1460, Kinds: [12]uint8{2}, Cut: true}
			}
		}, nil, false},
		"of the answer": {func(p *frame.Packet) {
			if isSYN(p) && p.Source == hostB {
				p.Options.MSS = 9000 - 40
			}
		}, []string{"synack mss 8960 1460"}, false},
		"DSCP bleached": {func(p *frame.Packet) {
			if p.Source == hostB {
				p.TOS = 46 << 2
			}
		}, []string{"acks dscp 46 0"}, false},
		"time stamps rewritten": {func(p *frame.Packet) { p.Options.TSVal += 5000 }, []string{"timestamps its own other ones, or none"}, false},
		"NAT": {func(p *frame.Packet) {
			for _, e := range []*frame.Endpoint{&p.Source, &p.Target} {
				if *e == hostA {
					e.Addr[12], e.Port = 192, 1024
				}
			}
		}, []string{"from address 10.0.0.1:40000 192.0.0.1:1024"}, false},
		"sequence numbers rewritten": {func(p *frame.Packet) {
			if p.Source == hostA {
				p.Seq += 12345
			} else {
				p.Ack += 12345
			}
		}, []string{"sequence numbers +0 +12345"}, false},
		"proxy": {func(p *frame.Packet) {
			if p.Source == hostA {
				p.Seq += 12345
			} else {
				p.Ack += 12345
			}
			p.Options.TSVal += 777
			p.Window = 60
		}, []string{"sequence numbers its own other ones", "syn window 500 60", "synack window 60 500"}, true},
		"proxy with the sender's stack": {func(p *frame.Packet) {
			if p.Source == hostA {
				p.Seq += 12345
			} else {
				p.Ack += 12345
			}
			p.Options.TSVal += 777 + uint32(p.TimeNs/ms%3)
		}, []string{"sequence numbers its own other ones"}, true},
		"proxy with the sender's stack and clock": {func(p *frame.Packet) {
			if p.Source == hostA {
				p.Seq += 12345
			} else {
				p.Ack += 12345
			}
			if p.Source == hostB && !isSYN(p) {
				p.Window = 60
			}
		}, []string{"sequence numbers its own other ones"}, true},
		"sequence numbers and time stamps shifted": {func(p *frame.Packet) {
			if p.Source == hostA {
				p.Seq += 12345
			} else {
				p.Ack += 12345
			}
			p.Options.TSVal += 777
		}, []string{"sequence numbers +0 +12345", "timestamps its own other ones, or none"}, false},
		"proxy with an address of its own": {func(p *frame.Packet) {
			for _, e := range []*frame.Endpoint{&p.Source, &p.Target} {
				if *e == hostA {
					e.Addr[12], e.Port = 192, 1024
				}
			}
			p.Seq, p.Ack, p.Options.TSVal, p.Window = p.Seq+99, p.Ack+99, 5, 60
		}, []string{"from address 10.0.0.1:40000 192.0.0.1:1024", "sequence numbers its own other ones", "syn window 500 60", "synack window 60 500"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			x := &tapes{}
			x.open()
			x.bulk(0, 1000, 20*ms)
			for i := range x.right {
				c.right(&x.right[i])
			}
			crossing, err := Cross(side(x.left), side(x.right))
			if err != nil || len(crossing.Conns) != 1 {
				t.Fatal(err, crossing)
			}
			conn := crossing.Conns[0]
			var got []string
			for _, ch := range conn.Changed {
				if len(ch.Packets) != 2 || ch.Packets[0] == 0 || ch.Packets[1] == 0 {
					t.Errorf("%s: packets %v", ch.What, ch.Packets)
				}
				if text := ch.What + " " + ch.Left + " " + ch.Arrived; ch.What != "data ttl" && ch.What != "acks ttl" {
					got = append(got, text)
				} else if text != ch.What+" 64 62" {
					t.Error(text)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if c.lost != (conn.Data.Sent == 0) || conn.Data.Lost.N != 0 {
				t.Errorf("sent %d, lost %d", conn.Data.Sent, conn.Data.Lost.N)
			}
		})
	}
}

// TestCrossRefuses verifies which captures cannot be compared.
func TestCrossRefuses(t *testing.T) {
	x, y := &tapes{}, &tapes{}
	x.open()
	x.bulk(0, 20, 20*ms)
	y.open()
	y.bulk(0, 20, 20*ms)
	for i := range y.right {
		for _, e := range []*frame.Endpoint{&y.right[i].Source, &y.right[i].Target} {
			e.Addr[13]++
		}
		y.right[i].Seq, y.right[i].Ack = y.right[i].Seq+4321, y.right[i].Ack+1234
	}
	if _, err := Cross(side(x.left), side(x.left)); !errors.Is(err, ErrSamePlace) {
		t.Errorf("one place: %v", err)
	}
	if _, err := Cross(side(x.left), side(y.right)); !errors.Is(err, ErrOtherFlow) {
		t.Errorf("other flows: %v", err)
	}
}
