package trace

import (
	"slices"
	"testing"

	"thru/internal/capture/frame"
)

// TestTwoPlacesInOneFile: merged captures of both ends are followed at one of
// them, whether the handshake is in the file or not.
func TestTwoPlacesInOneFile(t *testing.T) {
	const size, segments, lost = 1448, 4000, 3000
	type sighting struct {
		us        int64
		back      bool
		flags     uint8
		seq, ack  int
		n, id, at int
	}
	for _, test := range []struct {
		oneWay int64 // us
		opened bool
	}{{1000, true}, {20_000, true}, {1000, false}, {20_000, false}} {
		var all []sighting
		pass := func(us int64, back bool, flags uint8, seq, ack, n int, arrives bool) {
			s := sighting{us, back, flags, seq, ack, n, len(all) + 1, 0}
			if back {
				s.at = 1
			}
			all = append(all, s)
			if arrives {
				s.us, s.at = us+test.oneWay, 1-s.at
				all = append(all, s)
			}
		}
		if test.opened {
			pass(0, fromA, frame.SYN, -1, 0, 0, true)
			pass(test.oneWay, fromZ, frame.SYN|frame.ACK, -1, 0, 0, true)
			pass(2*test.oneWay, fromA, frame.ACK, 0, 0, 0, true)
		}
		for i := range segments {
			us := 2*test.oneWay + 100 + int64(i)*100
			pass(us, fromA, frame.ACK, i*size, 0, size, i != lost)
			if i < lost {
				pass(us+test.oneWay, fromZ, frame.ACK, 0, (i+1)*size, 0, true)
			}
		}
		pass(900_000, fromA, frame.ACK, lost*size, 0, size, true)
		pass(900_000+test.oneWay, fromZ, frame.ACK, 0, segments*size, 0, true)
		slices.SortStableFunc(all, func(a, b sighting) int { return int(a.us - b.us) })
		x := newTape(Options{})
		for _, s := range all {
			x.packet(s.us, s.back, s.flags, s.seq, s.ack, s.n, id(uint16(s.id)), face(s.at), func(p *frame.Packet) {
				p.Options.TSVal = uint32(s.id)
				if p.Flags&frame.SYN != 0 {
					p.Options.HasMSS, p.Options.MSS, p.Options.HasScale, p.Options.Scale = true, 1460, true, 7
				}
			})
		}
		c := x.b.Capture()
		m := c.Conns[0]
		if m.Data.New != segments*size || m.Data.Again.N != 1 || m.Data.Gaps.N != 0 || m.Acks.DupAcks.N != 0 || m.RTT == nil || m.RTT.P50 != 2000*test.oneWay {
			t.Errorf("%+v: %+v; %+v; round trip %+v", test, m.Data, m.Acks, m.RTT)
		}
		if x.b.merged || len(c.Missing) != 1 || c.Missing[0].Fact != "interfaces" || c.Twice.N < segments {
			t.Errorf("%+v: %v, %d twice", test, c.Missing, c.Twice.N)
		}
	}
}

// TestGreetedTwice: a mirror port's copy of a SYN-ACK, which Linux sends
// without an IP identification, is no retransmission.
func TestGreetedTwice(t *testing.T) {
	answer := func(p *frame.Packet) { p.ID, p.Options.HasScale, p.Options.Scale = 0, true, 7 }
	for _, test := range []struct {
		laterUs      int64
		twice, again int64
	}{{5, 1, 0}, {900, 1, 0}, {1_000_000, 0, 1}} {
		x := newTape(Options{})
		x.packet(0, fromA, frame.SYN, -1, 0, 0, answer)
		x.packet(1000, fromZ, frame.SYN|frame.ACK, -1, 0, 0, answer)
		x.packet(1000+test.laterUs, fromZ, frame.SYN|frame.ACK, -1, 0, 0, answer)
		x.packet(1001+test.laterUs, fromA, frame.ACK, 0, 0, 0)
		x.bulk(2_000_000, 10)
		c := x.b.Capture()
		if m := c.Conns[0]; c.Twice.N != test.twice || m.SYNACK.Again.N != test.again || (m.OpenNs != nil) != (test.again == 0) {
			t.Errorf("%+v: %d twice, %+v, %v", test, c.Twice.N, m.SYNACK.Again, m.OpenNs)
		}
	}
}

// TestMerged: captures of two places merged into one interface are
// distinguished from the copies of a mirror port and from a SYN that the path
// duplicated.
func TestMerged(t *testing.T) {
	option := func(p *frame.Packet) { p.ID, p.Options.TSVal = uint16(p.Flags), 7 }
	for _, test := range []struct {
		syn, answer int64 // when the copy comes, us; 0: there is none
		want        bool
	}{{0, 0, false}, {10, 10, false}, {1000, 1000, true}, {80_000, 80_000, true}, {1000, 0, false}, {1_000_000, 1_000_000, false}} {
		x := newTape(Options{})
		x.packet(0, fromA, frame.SYN, -1, 0, 0, option)
		if test.syn > 0 {
			x.packet(test.syn, fromA, frame.SYN, -1, 0, 0, option)
		}
		x.packet(test.syn+5, fromZ, frame.SYN|frame.ACK, -1, 0, 0, option)
		if test.answer > 0 {
			x.packet(test.syn+5+test.answer, fromZ, frame.SYN|frame.ACK, -1, 0, 0, option)
		}
		x.bulk(3_000_000, 10)
		if x.b.Capture(); x.b.merged != test.want {
			t.Errorf("%+v: merged %v", test, x.b.merged)
		}
	}
}
