package trace

import (
	"fmt"
	"slices"
	"testing"

	"thru/internal/capture/frame"
	"thru/internal/measure"
)

// counts are the expected counts of a direction that are not 0.
func counts(w *measure.Direction) string {
	s := ""
	for _, c := range []struct {
		name string
		n    int64
	}{
		{"again", w.Again.N}, {"fast", w.Fast.N}, {"timeout", w.Timeout.N}, {"wake", w.Wake.N}, {"tail", w.Tail.N},
		{"spurious", w.Spurious.N}, {"late", w.Late.N}, {"extent", int64(w.LateMost)}, {"sacklate", w.SACKLate.N}, {"sackmost", w.SACKMost}, {"gaps", w.Gaps.N}, {"unseen", w.Unseen.N},
		{"dup", w.DupAcks.N}, {"dsack", w.DSACK.N}, {"sack", w.SACKed.N}, {"zero", w.Zero.N}, {"probes", w.Probes.N},
		{"keep", w.KeepAlive.N}, {"filled", w.Filled.N}, {"super", w.Super.N}, {"rst", w.RST.N},
	} {
		if c.n != 0 {
			s += fmt.Sprintf("%s %d ", c.name, c.n)
		}
	}
	return s
}

// overtakenByCopy plays a receiver's view of a segment that comes later than its retransmission.
func overtakenByCopy(x *tape, late int64) {
	const size = 1448
	us, _ := x.open(10, 10_000).bulk(11_000, 20)
	first := x.ids[0] + 1
	x.ids[0]++
	for i := range 2 {
		x.data(us+int64(i), (21+i)*size, size, stampOf(5000))
		x.ack(us+int64(i), 20*size, x.sack(21*size, (22+i)*size))
	}
	x.data(us+12_000, 20*size, size, stampOf(5012))
	x.ack(us+12_001, 23*size)
	x.data(us+12_010, 23*size, size, stampOf(5013))
	x.data(us+late, 20*size, size, stampOf(4999), func(p *frame.Packet) {
		if p.ID != 0 {
			p.ID = first
		}
	})
	x.ack(us+late+1, 24*size, x.sack(20*size, 21*size))
}

// TestRoundTripOfOrder: an acknowledgement that waited for reordered data
// shows how late the data was, not the time of the path.
func TestRoundTripOfOrder(t *testing.T) {
	const ms, size = 1000, 1448
	x := newTape(Options{})
	us, _ := x.open(10*ms, 10*ms+20).bulk(11*ms, 10)
	for i := range 2 {
		x.data(us+int64(i), (10+i)*size, size)
	}
	x.ack(us+10*ms, 10*size, x.sack(11*size, 12*size))
	x.ack(us+90*ms, 12*size)
	if c := x.conn(); c.RTT == nil || c.RTT.Max > 12*ms*1000 {
		t.Errorf("round trips: %+v, want none of the 90 ms that a late segment took", c.RTT)
	}
}

// TestKinds: each kind of packet counts as what it is.
func TestKinds(t *testing.T) {
	const ms, size = 1000, 1448
	tests := []struct {
		name       string
		play       func(x *tape)
		data, acks string
	}{
		{"nothing is wrong", func(x *tape) {
			x.open(10*ms, 10*ms+20).bulk(11*ms, 20)
		}, "", ""},
		{"fast, by duplicate acknowledgements", func(x *tape) {
			us, _ := x.open(10*ms, 10*ms+20).bulk(11*ms, 10)
			x.data(us, 10*size, size)
			for i := range 3 {
				x.data(us+10, (11+i)*size, size)
			}
			for i := range 3 {
				x.ack(us+10*ms+int64(i), 10*size)
			}
			x.data(us+10*ms+10, 10*size, size)
			x.ack(us+20*ms+10, 14*size)
		}, "again 1 fast 1 ", "dup 3 "},
		{"fast, by SACK alone", func(x *tape) {
			us, _ := x.open(10*ms, 10*ms+20).bulk(11*ms, 10)
			x.data(us, 10*size, size)
			x.data(us+10, 11*size, size)
			x.ack(us+10*ms, 10*size, x.sack(11*size, 12*size))
			x.data(us+10*ms+10, 10*size, size)
		}, "again 1 fast 1 ", "dup 1 sack 1 "},
		{"timeout, and what it gave up for lost", func(x *tape) {
			us, _ := x.open(10*ms, 10*ms+20).bulk(11*ms, 10)
			for i := range 4 {
				x.data(us+int64(i), (10+i)*size, size)
			}
			x.data(us+220*ms, 10*size, size)
			x.ack(us+230*ms, 11*size)
			x.data(us+230*ms+10, 11*size, size)
			x.data(us+230*ms+11, 12*size, size)
			x.ack(us+240*ms+10, 13*size)
		}, "again 3 timeout 1 wake 2 ", ""},
		{"timeout again and again", func(x *tape) {
			x.open(10*ms, 10*ms+20).data(11*ms, 0, size)
			x.data(215*ms, 0, size)
			x.data(620*ms, 0, size)
			x.data(1430*ms, 0, size)
		}, "again 3 timeout 3 ", ""},
		{"tail loss probe", func(x *tape) {
			us, _ := x.open(10*ms, 10*ms+20).bulk(11*ms, 10)
			for i := range 4 {
				x.data(us+int64(i), (10+i)*size, size)
			}
			x.ack(us+10*ms, 12*size)
			x.data(us+35*ms, 13*size, size)
			x.ack(us+45*ms, 12*size, x.sack(13*size, 14*size))
			x.data(us+45*ms+10, 12*size, size)
		}, "again 2 fast 1 tail 1 ", "dup 1 sack 1 "},
		{"spurious: it was acknowledged", func(x *tape) {
			us, _ := x.open(10*ms, 10*ms+20).bulk(11*ms, 10)
			x.data(us+300*ms, 9*size, size)
		}, "again 1 timeout 1 spurious 1 ", ""},
		{"spurious: a D-SACK says so", func(x *tape) {
			us, _ := x.open(10*ms, 10*ms+20).bulk(11*ms, 10)
			x.data(us, 10*size, size)
			x.data(us+1, 11*size, size)
			x.data(us+215*ms, 10*size, size)
			x.ack(us+216*ms, 12*size)
			x.ack(us+225*ms, 12*size, x.sack(10*size, 11*size))
		}, "again 1 timeout 1 spurious 1 ", "dup 1 dsack 1 "},
		{"a D-SACK of what the path doubled", func(x *tape) {
			us, _ := x.open(10*ms, 10*ms+20).bulk(11*ms, 10)
			x.ack(us, 10*size, x.sack(4*size, 5*size))
		}, "", "dup 1 dsack 1 "},
		{"overtaken, by IP identification", func(x *tape) {
			us, _ := x.open(10, 10*ms).bulk(11*ms, 20)
			x.ids[0]++
			x.data(us, 21*size, size)
			x.data(us+1, 22*size, size)
			x.data(us+15*ms, 20*size, size, id(x.ids[0]-2))
		}, "late 1 extent 2 gaps 1 ", ""},
		{"lost before, by IP identification", func(x *tape) {
			us, _ := x.open(10, 10*ms).bulk(11*ms, 20)
			x.ids[0]++
			x.data(us, 21*size, size)
			x.ack(us+1, 20*size, x.sack(21*size, 22*size))
			x.data(us+2*ms, 20*size, size)
		}, "again 1 fast 1 gaps 1 ", "dup 1 sack 1 "},
		{"overtaken, by time stamp", func(x *tape) {
			x.noIDs = true
			us, _ := x.open(10, 10*ms).bulk(11*ms, 20)
			x.data(us+20*ms, 21*size, size, stampOf(5000))
			x.data(us+40*ms, 20*size, size, stampOf(4998))
		}, "late 1 extent 1 gaps 1 ", ""},
		{"lost before, by time stamp", func(x *tape) {
			x.noIDs = true
			us, _ := x.open(10, 10*ms).bulk(11*ms, 20)
			x.data(us, 21*size, size, stampOf(5000))
			x.ack(us+10, 20*size, x.sack(21*size, 22*size))
			x.data(us+1*ms, 20*size, size, stampOf(5001))
		}, "again 1 fast 1 gaps 1 ", "dup 1 sack 1 "},
		{"overtaken, by the time alone", func(x *tape) {
			x.noIDs, x.noStamps = true, true
			us, _ := x.open(10, 10*ms).bulk(11*ms, 20)
			x.data(us, 21*1448, 1448)
			x.data(us+5*ms, 20*1448, 1448)
		}, "late 1 extent 1 gaps 1 ", ""},
		{"lost before, by the time alone", func(x *tape) {
			x.noIDs, x.noStamps = true, true
			us, _ := x.open(10, 10*ms).bulk(11*ms, 20)
			x.data(us, 21*1448, 1448)
			for i := range 3 {
				x.ack(us+int64(i), 20*1448)
			}
			x.data(us+11*ms, 20*1448, 1448)
		}, "again 1 fast 1 gaps 1 ", "dup 3 "},
		{"overtaken by its copy, by IP identification", func(x *tape) {
			overtakenByCopy(x, 30*ms)
		}, "again 1 fast 1 spurious 1 late 1 extent 4 gaps 1 ", "dup 2 sack 2 dsack 1 "},
		{"overtaken by its copy, by time stamp", func(x *tape) {
			x.noIDs = true
			overtakenByCopy(x, 30*ms)
		}, "again 1 fast 1 spurious 1 late 1 extent 4 gaps 1 ", "dup 2 sack 2 dsack 1 "},
		{"overtaken by its copy, by the time alone", func(x *tape) {
			x.noIDs, x.noStamps = true, true
			overtakenByCopy(x, 15*ms)
		}, "again 1 fast 1 spurious 1 late 1 extent 4 gaps 1 ", "dup 2 sack 2 dsack 1 "},
		{"sent again twice after a loss", func(x *tape) {
			us, _ := x.open(10, 10*ms).bulk(11*ms, 20)
			x.ids[0]++
			x.data(us, 21*size, size)
			x.ack(us+1, 20*size, x.sack(21*size, 22*size))
			x.data(us+11*ms, 20*size, size)
			x.ack(us+11*ms+1, 22*size)
			x.data(us+30*ms, 20*size, size)
		}, "again 2 fast 2 spurious 1 gaps 1 ", "dup 1 sack 1 "},
		{"late by more than a round trip, of the same tick", func(x *tape) {
			x.noIDs = true
			us, _ := x.open(10, 15*ms).bulk(16*ms, 20)
			x.data(us, 21*size, size, stampOf(5000))
			x.data(us+20*ms, 20*size, size, stampOf(5000))
		}, "late 1 extent 1 gaps 1 ", ""},
		{"overtaken beyond the sender", func(x *tape) {
			us, _ := x.open(10*ms, 10*ms+20).bulk(11*ms, 10)
			for i := range 4 {
				x.data(us+int64(i), (10+i)*size, size)
			}
			x.ack(us+10*ms, 10*size, x.sack(11*size, 12*size))
			x.ack(us+10*ms+1, 10*size, x.sack(11*size, 14*size))
			x.ack(us+14*ms, 14*size)
		}, "sacklate 1 sackmost 5792 ", "dup 2 sack 2 "},
		{"lost beyond the sender", func(x *tape) {
			us, _ := x.open(10*ms, 10*ms+20).bulk(11*ms, 10)
			for i := range 4 {
				x.data(us+int64(i), (10+i)*size, size)
			}
			x.ack(us+10*ms, 10*size, x.sack(11*size, 14*size))
			x.data(us+10*ms+10, 10*size, size)
			x.ack(us+20*ms+10, 14*size)
		}, "again 1 fast 1 ", "dup 1 sack 1 "},
		{"acknowledged, but not in the capture", func(x *tape) {
			us, _ := x.open(10*ms, 10*ms+20).bulk(11*ms, 10)
			x.data(us, 12*size, size)
			x.ack(us+10*ms, 13*size)
			x.ack(us+20*ms, 15*size)
			x.data(us+21*ms, 15*size, size)
		}, "unseen 2 gaps 1 ", ""},
		{"zero window and its probes", func(x *tape) {
			us, _ := x.open(10*ms, 10*ms+20).bulk(11*ms, 10)
			x.ack(us, 10*size, window(0))
			x.packet(us+200*ms, fromA, frame.ACK, 10*size-1, 0, 0)
			x.ack(us+210*ms, 10*size, window(0))
			x.data(us+600*ms, 10*size, 1)
			x.ack(us+610*ms, 10*size, window(0))
			x.ack(us+700*ms, 10*size, window(400))
			x.data(us+701*ms, 10*size, size)
		}, "probes 2 ", "zero 3 "},
		{"keep-alive", func(x *tape) {
			us, _ := x.open(10*ms, 10*ms+20).bulk(11*ms, 10)
			x.packet(us+75e6, fromA, frame.ACK, 10*size-1, 0, 0)
			x.ack(us+75e6+10*ms, 10*size)
			x.packet(us+150e6, fromA, frame.ACK, 10*size-1, 0, 1)
			x.ack(us+150e6+10*ms, 10*size)
		}, "keep 2 ", ""},
		{"the window is filled", func(x *tape) {
			x.open(10*ms, 10*ms+20).data(11*ms, 0, size)
			x.ack(21*ms, size, window(100)) // 12800 bytes
			for i := range 8 {
				x.data(22*ms+int64(i), (1+i)*size, size)
			}
			x.data(22*ms+9, 9*size, 12800-8*size)
		}, "filled 1 ", ""},
		{"super-packets", func(x *tape) {
			x.open(10*ms, 10*ms+20).data(11*ms, 0, 10*size)
			x.data(12*ms, 10*size, size)
			x.data(13*ms, 11*size, size+1)
		}, "super 2 ", ""},
		{"a reset", func(x *tape) {
			x.open(10*ms, 10*ms+20).data(11*ms, 0, size)
			x.packet(21*ms, fromZ, frame.RST, 0, 0, 0)
		}, "", "rst 1 "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := newTape(Options{})
			test.play(x)
			c := x.conn()
			if c.From != "10.0.0.1:40000" {
				t.Fatalf("from %s", c.From)
			}
			data, acks := counts(&c.Data), counts(&c.Acks)
			if want := sorted(test.data); sorted(data) != want {
				t.Errorf("data: %q, want %q", data, want)
			}
			if want := sorted(test.acks); sorted(acks) != want {
				t.Errorf("acknowledgements: %q, want %q", acks, want)
			}
		})
	}
}

// sorted puts words in an order.
func sorted(s string) string {
	var words []string
	for rest := s; rest != ""; {
		var name string
		var n int
		if _, err := fmt.Sscanf(rest, "%s %d ", &name, &n); err != nil {
			return s
		}
		word := fmt.Sprintf("%s %d ", name, n)
		words = append(words, word)
		rest = rest[len(word):]
	}
	slices.Sort(words)
	return fmt.Sprint(words)
}

// TestHandshakeWithoutItsEnd: a filter kept only packets that open and close
// connections; the last one does not show the round-trip time.
func TestHandshakeWithoutItsEnd(t *testing.T) {
	x := newTape(Options{})
	x.packet(0, fromA, frame.SYN, -1, 0, 0)
	x.packet(10_000, fromZ, frame.SYN|frame.ACK, -1, 0, 0)
	x.packet(8_000_000, fromA, frame.FIN|frame.ACK, 5000, 90_000, 0)
	if c := x.conn(); c.OpenNs != nil || c.OpenFarNs == nil {
		t.Errorf("handshake %v, far part %v", c.OpenNs, c.OpenFarNs)
	}
}

// TestFigures: sizes, times and rates of one healthy connection.
func TestFigures(t *testing.T) {
	const ms, size = 1000, 1448
	x := newTape(Options{})
	us, _ := x.open(10*ms, 10*ms+20).bulk(11*ms, 20)
	x.packet(us, fromA, frame.FIN|frame.ACK, 20*size, 0, 0)
	x.packet(us+10*ms, fromZ, frame.FIN|frame.ACK, 0, 20*size+1, 0)
	x.packet(us+10*ms+20, fromA, frame.ACK, 20*size+1, 1, 0)
	capture := x.b.Capture()
	if capture.Packets != 36 || capture.TCP != 36 || capture.Known != 1 {
		t.Errorf("capture: %+v", capture)
	}
	c := capture.Conns[0]
	check := func(name string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	check("new", c.Data.New, int64(20*size))
	check("payload", c.Data.Payload, int64(20*size))
	check("packets", c.Data.Packets, int64(24))
	check("segments", c.Data.Segments, int64(24))
	check("mss", c.MSS, size)
	check("full packet", c.MaxPacket, 1500)
	check("opened", *c.FromOpened, true)
	check("handshake", *c.OpenNs, int64(10_020_000))
	check("far part", *c.OpenFarNs, int64(10_000_000))
	check("round trips", c.RTT.Samples, int64(10))
	check("least round trip", c.RTT.Min, int64(11_000_000)) // from the last of the first pair
	check("ended", c.EndedBy, "fin")
	check("flight", c.Flight.Max, float64(20*size))
	check("window", *c.Acks.WindowMax, int64(64000))
	check("scale known", c.Unscaled, false)
	check("options", fmt.Sprint(c.SYN.Options), "[mss sack-permitted timestamps nop window-scale]")
	check("ttls", fmt.Sprint(c.Data.TTLs), "[64]")
	check("bursts", c.BurstBytes.Max, float64(20*size))
	if rate := *c.GoodputBps; rate < 121e6 || rate > 123e6 { // 28960 bytes in 1.9 ms
		t.Errorf("goodput %v", rate)
	}
	check("placed", capture.Place, measure.AtSender)
}

// TestScales: a window is scaled only where both ends offer a scale.
func TestScales(t *testing.T) {
	for _, test := range []struct {
		a, z     int
		want     int64
		unscaled bool
		noOpen   bool
	}{
		{a: 7, z: 7, want: 500 << 7},
		{a: 7, z: 0, want: 500},
		{a: -1, z: 7, want: 500},
		{a: 7, z: -1, want: 500},
		{a: 7, z: 15, want: 500 << 14}, // RFC 7323, section 2.3
		{noOpen: true, unscaled: true},
	} {
		x := newTape(Options{})
		x.scaleA, x.scaleZ = test.a, test.z
		if !test.noOpen {
			x.open(1000, 1010)
		}
		x.bulk(2000, 10)
		c := x.conn()
		if c.Unscaled != test.unscaled {
			t.Errorf("%+v: unscaled %v", test, c.Unscaled)
		}
		if test.unscaled {
			if c.Window != nil || c.WindowFull != nil || c.Acks.WindowMax != nil {
				t.Errorf("%+v: a window of unknown scale is reported", test)
			}
			continue
		}
		if *c.Acks.WindowMax != test.want || c.Window.Max > max(float64(test.want), 64000) {
			t.Errorf("%+v: window %v", test, *c.Acks.WindowMax)
		}
	}
}

// TestCutOptions: options that were not captured are unknown.
func TestCutOptions(t *testing.T) {
	x := newTape(Options{})
	cut := func(p *frame.Packet) { p.Options.Cut = true }
	x.packet(0, fromA, frame.SYN, -1, 0, 0, cut)
	x.packet(10, fromZ, frame.SYN|frame.ACK, -1, 0, 0, cut)
	x.bulk(100, 10)
	c := x.conn()
	if !c.Unscaled || c.Window != nil || c.SYN.HasScale != nil || c.SYN.SACK != nil || c.SYNACK.MSS != nil {
		t.Errorf("%+v, %+v", c, c.SYN)
	}
}

// TestTwice: copies by a mirror port or another interface are counted separately.
func TestTwice(t *testing.T) {
	const size = 1448
	tests := []struct {
		name  string
		twice int64
		again int64
		play  func(x *tape)
	}{
		{"span port", 3, 0, func(x *tape) {
			x.data(2000, 0, size, id(100))
			x.data(2010, 0, size, id(100), stampOf(2))
			x.ack(2100, size, id(200))
			x.ack(2101, size, id(200))
			x.data(2200, size, size, id(101))
			x.data(2201, size, size, id(101))
		}},
		{"both sides of a router", 1, 0, func(x *tape) {
			x.data(2000, 0, size, id(100))
			x.data(2900, 0, size, id(100), ttl(63), face(1), stampOf(2))
		}},
		{"another interface, later than any copy", 2, 0, func(x *tape) {
			x.data(2000, 0, size, id(100))
			x.data(30000, 0, size, id(100), face(1))
			x.ack(31000, size)
			x.ack(52000, size, face(1))
		}},
		{"a bond", 0, 0, func(x *tape) {
			x.data(2000, 0, size)
			x.data(2100, size, size, face(1))
			x.data(2200, 2*size, size)
			x.data(2300, 3*size, size, face(1))
		}},
		{"sent again has another identification", 0, 1, func(x *tape) {
			x.data(2000, 0, size, id(100))
			x.data(4000, 0, size, id(101), stampOf(2))
		}},
		{"no identifications, sent again", 0, 1, func(x *tape) {
			x.data(2000, 0, size, id(0))
			x.data(4900, 0, size, id(0), stampOf(2))
		}},
	}
	for _, test := range tests {
		x := newTape(Options{})
		test.play(x.open(1000, 1010))
		c := x.b.Capture()
		if c.Twice.N != test.twice || c.Conns[0].Data.Again.N != test.again {
			t.Errorf("%s: %d twice, %d again", test.name, c.Twice.N, c.Conns[0].Data.Again.N)
		}
	}
}

// TestSegmentsAgain: retransmissions are counted in segments too, whether the
// handshake showed their size or not.
func TestSegmentsAgain(t *testing.T) {
	const size = 1448
	for _, opened := range []bool{true, false} {
		x := newTape(Options{})
		if opened {
			x.open(10_000, 10_020)
		}
		x.data(11_000, 0, 10*size)
		x.data(12_000, 10*size, 5*size)
		x.data(300_000, 0, 10*size)
		x.ack(310_000, 15*size)
		x.ack(311_000, 15*size, x.sack(0, 10*size))
		w := x.conn().Data
		for _, c := range []measure.Count{w.Again, w.Timeout, w.Spurious} {
			if c.N != 1 || c.Segments() != 10 || c.Bytes != 10*size {
				t.Errorf("opened %v: %+v", opened, c)
			}
		}
		want := int64(25)
		if opened {
			want += 2 // of the handshake
		}
		if w.Segments != want || w.Late.Segments() != 0 {
			t.Errorf("opened %v: %d segments", opened, w.Segments)
		}
	}
}

// TestClockGoesBack: small steps come from packets written out of order; a
// large one does not make the capture endless.
func TestClockGoesBack(t *testing.T) {
	x := newTape(Options{})
	x.open(1000, 1010)
	x.data(2000, 0, 1448)
	x.data(1990, 1448, 1448)
	x.data(-3600e6, 2896, 1448)
	x.data(-3600e6+500, 4344, 1448)
	c := x.b.Capture()
	if c.BackTime.N != 2 || fmt.Sprint(c.BackTime.Packets) != "[5 6]" {
		t.Errorf("clock: %+v", c.BackTime)
	}
	if c.SpanNs != 2_500_000 {
		t.Errorf("span %d", c.SpanNs)
	}
	if c.Conns[0].Data.New != 4*1448 || c.Conns[0].Data.Gaps.N != 0 {
		t.Errorf("data: %+v", c.Conns[0].Data)
	}
}

// TestReusedPorts: a SYN of another sequence number is a new connection, a copy
// of the SYN is not.
func TestReusedPorts(t *testing.T) {
	x := newTape(Options{})
	x.open(1000, 1010).data(2000, 0, 5000)
	x.isnA += 1 << 20
	x.isnZ += 99
	x.open(1000, 1010).data(2000, 0, 700)
	x.packet(3000, fromA, frame.SYN, -1, 0, 0)
	c := x.b.Capture()
	if c.Known != 2 || len(c.Conns) != 2 {
		t.Fatalf("%d connections", c.Known)
	}
	if c.Conns[0].Data.New != 5000 || c.Conns[1].Data.New != 700 || c.Conns[1].Index != 1 {
		t.Errorf("%d and %d bytes", c.Conns[0].Data.New, c.Conns[1].Data.New)
	}
	if c.Conns[1].SYN.Again.N != 1 {
		t.Errorf("%d copies of the SYN", c.Conns[1].SYN.Again.N)
	}
}

// TestSYNsAlone: a connection that is never answered is reported.
func TestSYNsAlone(t *testing.T) {
	x := newTape(Options{})
	for i := range int64(4) {
		x.packet(i*1e6, fromA, frame.SYN, -1, 0, 0)
	}
	c := x.conn()
	if c.SYN == nil || c.SYNACK != nil || c.SYN.Again.N != 3 || c.OpenNs != nil || !*c.FromOpened {
		t.Errorf("%+v", c)
	}
}

// TestMidFlow: a capture that begins within a connection.
func TestMidFlow(t *testing.T) {
	x := newTape(Options{})
	x.bulk(2000, 600)
	c := x.conn()
	if c.FromOpened != nil || c.SYN != nil || !c.Unscaled || c.Data.New != 600*1448 || c.Data.Again.N != 0 {
		t.Errorf("%+v", c)
	}
	if c.MSS != 1448 || c.Data.Segments != 600 || c.RTT == nil || c.Flight == nil {
		t.Errorf("mss %d, %d segments, round trip %v", c.MSS, c.Data.Segments, c.RTT)
	}
}

// TestSizesMidFlow: without the handshake, packet sizes determine the full segment.
func TestSizesMidFlow(t *testing.T) {
	for _, test := range []struct {
		name    string
		sizes   []int
		mtu     int
		mss     int
		super   int64
		segment int64
	}{
		{"Ethernet", []int{1448, 1448, 700, 1448}, 0, 1448, 0, 40},
		{"receive offload", []int{1448, 2896, 14480, 4344}, 0, 1448, 30, 160},
		{"jumbo", []int{8948, 8948, 1200, 8948}, 0, 8948, 0, 40},
		{"jumbo, told", []int{8948, 17896}, 9000, 8948, 20, 60},
		{"small", []int{100, 200}, 0, 200, 0, 40},
	} {
		x := newTape(Options{MTU: test.mtu})
		seq := 0
		for i := range 40 {
			size := test.sizes[i%len(test.sizes)]
			x.data(int64(i)*1000, seq, size)
			seq += size
		}
		c := x.conn()
		if c.MSS != test.mss || c.Data.Super.N != test.super || c.Data.Segments != test.segment {
			t.Errorf("%s: mss %d, %d super-packets, %d segments", test.name, c.MSS, c.Data.Super.N, c.Data.Segments)
		}
	}
}

// TestOneSide: only one direction was captured.
func TestOneSide(t *testing.T) {
	x := newTape(Options{})
	for i := range 3000 {
		x.data(int64(i)*100, i*1448, 1448)
	}
	c := x.conn()
	if c.RTT != nil || c.Flight != nil || c.Window != nil || c.Data.New != 3000*1448 || c.Acks.Packets != 0 {
		t.Errorf("%+v", c)
	}
}
