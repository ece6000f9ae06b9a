package trace

import (
	"slices"
	"testing"

	"thru/internal/capture/frame"
)

// turnedRound makes the packets of tapes those of a connection on another
// port whose data flows in the opposite direction: it swaps hosts and capture
// points.
func turnedRound(x *tapes, port uint16) *tapes {
	swap := func(packets []frame.Packet) []frame.Packet {
		out := slices.Clone(packets)
		for i := range out {
			p := &out[i]
			for _, e := range []*frame.Endpoint{&p.Source, &p.Target} {
				switch e.Port {
				case hostA.Port:
					*e = frame.Endpoint{Addr: hostB.Addr, Port: hostB.Port}
				default:
					*e = frame.Endpoint{Addr: hostA.Addr, Port: port}
				}
			}
		}
		return out
	}
	out := &tapes{left: swap(x.right), right: swap(x.left)}
	for i := range out.left { // the clock ahead is that of the right place
		out.left[i].TimeNs -= ahead
	}
	for i := range out.right {
		out.right[i].TimeNs += ahead
	}
	return out
}

// TestCrossBothDirections verifies that a second connection, whose data flows
// in the opposite direction, swaps neither the capture points nor the clocks.
func TestCrossBothDirections(t *testing.T) {
	for name, back := range map[string]int{"less data back": 30, "more": 90} {
		t.Run(name, func(t *testing.T) {
			x, y := &tapes{}, &tapes{}
			x.open()
			x.bulk(0, 60, 20*ms)
			y.bulk(0, back/2, 20*ms) // A opened it, before
			y.lost(dataPacket(back/2*testMSS, testMSS, 140*ms))
			y.bulk((back/2+1)*testMSS, 4, 141*ms)
			y.bulk(back/2*testMSS, 1, 170*ms)
			y.bulk((back/2+5)*testMSS, back/2-5, 180*ms)
			y = turnedRound(y, 40001)
			left, right := append(x.left, y.left...), append(x.right, y.right...)
			for _, swapped := range []bool{false, true} {
				places := [2]Side{side(left), side(right)}
				near := 0 // to A
				if swapped {
					places[0], places[1], near = places[1], places[0], 1
				}
				c, err := Cross(places[0], places[1])
				if err != nil || len(c.Conns) != 2 {
					t.Fatal(err, c)
				}
				wantLeft, offset, lost := near, ahead, [2]int64{0, 1}
				if back > 60 { // then A's place is the one that its data comes to
					wantLeft, offset, lost = 1-near, -ahead, [2]int64{1, 0}
				}
				if c.Left != wantLeft || c.OffsetNs != offset || c.BoundNs != oneWay {
					t.Errorf("left %d, offset %d within %d", c.Left, c.OffsetNs, c.BoundNs)
				}
				for i, conn := range c.Conns {
					if conn.Data.Lost.N != lost[i] || conn.Acks.Lost.N != 0 || conn.Data.Late.N != 0 || conn.Data.Delay.P50 != oneWay || conn.Acks.Delay.P50 != oneWay {
						t.Errorf("connection %d: %+v", i, conn)
					}
				}
			}
		})
	}
}

// TestCrossBlackHole verifies that where no data arrives the capture at its
// sender determines the direction, though the other one has more
// acknowledgements.
func TestCrossBlackHole(t *testing.T) {
	x := &tapes{}
	x.open()
	request := ackPacket(0, 20*ms)
	request.Payload, request.IPBytes = 200, 252
	x.pass(request)
	for i := range 10 {
		p := dataPacket(i*testMSS, testMSS, 30*ms)
		p.Ack += 200
		x.lost(p)
	}
	x.lost(dataPacket(0, testMSS, 300*ms))
	x.lost(dataPacket(0, testMSS, 800*ms))
	keep := ackPacket(0, 1500*ms)
	keep.Seq += 200
	x.pass(keep)
	near, far := side(x.left), side(x.right)
	if far.Capture.Conns[0].From != textOf(hostB) {
		t.Fatal("alone, the far capture takes the request for the data")
	}
	c, err := Cross(far, near)
	if err != nil || c.Left != 1 {
		t.Fatal(err, c)
	}
	for _, s := range []Side{near, far} {
		if m := s.Capture.Conns[0]; m.From != textOf(hostA) || m.To != textOf(hostB) || m.FromOpened == nil || !*m.FromOpened {
			t.Errorf("%+v", m)
		}
	}
	if d := c.Conns[0]; d.Data.Lost.N < 10 || d.Data.Arrived != 0 || d.Acks.Lost.N != 0 || d.Acks.Arrived != 200 {
		t.Errorf("%+v", d)
	}
}

// TestCrossOrder verifies which packets are counted as reordered, by their
// numbers at the receiver.
func TestCrossOrder(t *testing.T) {
	after := func(ns int64) func(*frame.Packet) { return func(p *frame.Packet) { p.TimeNs += ns } }
	super := func(x *tapes, seq int, at int64, late func(segment int) int64) {
		p := dataPacket(seq, 4*testMSS, at)
		x.lost(p)
		for i := range 4 {
			s := dataPacket(seq+i*testMSS, testMSS, at)
			x.arrive(s, after(late(i)+int64(i)*1000))
		}
	}
	for name, c := range map[string]struct {
		tell func(*tapes)
		want []int64
	}{
		"single segment": {func(x *tapes) {
			x.pass(dataPacket(0, testMSS, 40*ms), after(2*ms+ms/2))
			x.bulk(testMSS, 10, 41*ms)
		}, []int64{8}}, // after the handshake two packets and their acknowledgements
		"within a super-packet": {func(x *tapes) {
			super(x, 0, 40*ms, func(i int) int64 { return []int64{0, 500_000, 0, 0}[i] })
			x.bulk(4*testMSS, 10, 41*ms)
		}, []int64{7}},
		"of a super-packet, by the next one": {func(x *tapes) {
			super(x, 0, 40*ms, func(i int) int64 { return []int64{0, 0, 0, 2*ms + ms/2}[i] })
			super(x, 4*testMSS, 41*ms, func(int) int64 { return 0 })
			x.bulk(8*testMSS, 10, 50*ms)
		}, []int64{11}},
		"and sent again for nothing": {func(x *tapes) {
			x.pass(dataPacket(0, testMSS, 40*ms), after(2*ms+ms/2))
			x.bulk(testMSS, 10, 41*ms)
			x.pass(dataPacket(0, testMSS, 60*ms))
			x.bulk(11*testMSS, 10, 70*ms)
		}, []int64{8}},
		"sent again after the first capture ended": {func(x *tapes) {
			p := dataPacket(0, 4*testMSS, 40*ms)
			x.lost(p)
			for i := range 2 {
				x.arrive(dataPacket((2+i)*testMSS, testMSS, 40*ms))
			}
			x.bulk(4*testMSS, 10, 41*ms)
			x.arrive(dataPacket(0, testMSS, 80*ms))
			x.arrive(dataPacket(testMSS, testMSS, 80*ms))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			x := &tapes{}
			x.open()
			c.tell(x)
			_, conn := crossed(t, x)
			if d := conn.Data; d.Late.N != int64(len(c.want)) || !slices.Equal(d.Late.Packets, c.want) {
				t.Errorf("overtaken: %+v, not %v", d.Late, c.want)
			}
		})
	}
}

// A packet that the receiver's host drops after its interface has arrived,
// and is retransmitted without a D-SACK.
func TestIgnored(t *testing.T) {
	for name, c := range map[string]struct {
		acked bool // the first copy was, and the sender did not hear of it
		want  int64
	}{"dropped behind the capture": {false, testMSS}, "acknowledged": {true, 0}} {
		x := &tapes{}
		x.open()
		x.bulk(0, 20, 20*ms)
		x.pass(dataPacket(20*testMSS, testMSS, 60*ms))
		if c.acked {
			x.lost(ackPacket(21*testMSS, 65*ms))
		}
		x.pass(dataPacket(20*testMSS, testMSS, 300*ms))
		x.bulk(21*testMSS, 20, 320*ms)
		_, one := crossed(t, x)
		if got := side(x.right).Capture.Conns[0].Ignored(); got != c.want || one.Data.Lost.N != 0 {
			t.Errorf("%s: %d bytes, want %d; %+v", name, got, c.want, one.Data.Lost)
		}
	}
}
