package trace

import (
	"encoding/binary"
	"testing"

	"thru/internal/capture/frame"
)

// fuzzPacket is how many bytes of the input make one packet.
const fuzzPacket = 24

// packetOf makes a packet of bytes: mostly of one connection, near the
// numbers seen before, to pass the first checks.
func packetOf(b []byte, n int64) (frame.Packet, frame.Verdict) {
	u16 := func(i int) uint16 { return binary.LittleEndian.Uint16(b[i:]) }
	p := frame.Packet{
		Number: n, TimeNs: int64(u16(0)) << (b[2] % 48), Interface: int(b[3] >> 7), V6: b[3]&1 != 0,
		Proto: frame.TCP, TTL: b[4], TOS: b[5], DF: b[3]&2 != 0, ID: u16(6), Fragment: b[3]&4 != 0,
		Flags: b[8], Window: u16(9), Payload: int(u16(11)),
		Seq: uint32(int16(u16(13))), Ack: uint32(int16(u16(15))),
	}
	p.IPBytes = p.Payload + int(b[3]>>3&7)*10
	p.Source.Port, p.Target.Port = uint16(b[17]&3), uint16(b[17]>>2&3)
	if b[17]&16 != 0 {
		p.Source.Port, p.Target.Port = 1, 2
	}
	if b[17]&32 != 0 {
		p.Source.Port, p.Target.Port = 2, 1
	}
	x := &p.Options
	x.Timestamps, x.TSVal, x.TSEcr = b[18]&1 != 0, uint32(b[19]), uint32(b[20])
	x.HasMSS, x.MSS, x.HasScale, x.Scale = b[18]&2 != 0, u16(19), b[18]&4 != 0, b[21]
	x.SACKs = b[18] >> 4
	for i := range x.SACK {
		x.SACK[i] = [2]uint32{uint32(int16(u16(20))) + uint32(i), uint32(int16(u16(22)))}
	}
	if b[18]&8 != 0 {
		p.Seq, p.Ack = p.Seq<<16, p.Ack<<16
	}
	v := frame.IsTCP
	if b[17]&0xc0 == 0xc0 {
		v = frame.Verdict(b[18] % 12)
	}
	return p, v
}

// FuzzTrace: whatever the packets are, there is no panic, the memory is
// limited, and the counts are consistent.
func FuzzTrace(f *testing.F) {
	f.Add([]byte("123456789012345678901234abcdefghijklmnopqrstuvwxyz0123456789"))
	f.Add(make([]byte, 20*fuzzPacket))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := New(Options{})
		n := int64(0)
		for ; len(data) >= fuzzPacket; data = data[fuzzPacket:] {
			n++
			p, v := packetOf(data, n)
			b.Add(&p, v)
			for _, c := range b.conns {
				for i := range c.ends {
					h := &c.ends[i]
					if len(h.gaps) > mostGaps+1 || h.waiting.n > len(h.waiting.ring) || len(h.timeline.steps) > 600 {
						t.Fatalf("%d gaps, %d segments, %d steps", len(h.gaps), h.waiting.n, len(h.timeline.steps))
					}
					for j := range h.gaps {
						if g := h.gaps[j]; g.start >= g.end || j > 0 && h.gaps[j-1].end > g.start || g.end > h.next {
							t.Fatalf("gaps out of order: %+v", h.gaps)
						}
					}
				}
			}
		}
		c := b.Capture()
		if c.Packets != n {
			t.Fatalf("%d packets of %d", c.Packets, n)
		}
		for i := range c.Conns {
			for _, w := range [](*struct{ again, kinds, new, payload int64 }){
				{c.Conns[i].Data.Again.N, c.Conns[i].Data.Fast.N + c.Conns[i].Data.Timeout.N + c.Conns[i].Data.Wake.N + c.Conns[i].Data.Tail.N, c.Conns[i].Data.New, c.Conns[i].Data.Payload},
				{c.Conns[i].Acks.Again.N, c.Conns[i].Acks.Fast.N + c.Conns[i].Acks.Timeout.N + c.Conns[i].Acks.Wake.N + c.Conns[i].Acks.Tail.N, c.Conns[i].Acks.New, c.Conns[i].Acks.Payload},
			} {
				if w.kinds > w.again || w.new > w.payload {
					t.Fatalf("counts: %+v", *w)
				}
			}
		}
	})
}
