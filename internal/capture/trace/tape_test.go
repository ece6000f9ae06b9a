package trace

import (
	"net/netip"

	"thru/internal/capture/frame"
	"thru/internal/measure"
)

// tape builds the packets of a connection. Times are in microseconds,
// sequence numbers count from the first byte of each end's data. a opens the
// connection and sends, b answers.
type tape struct {
	b        *Builder
	to       func(*frame.Packet) // in place of b
	n        int64
	a, z     frame.Endpoint
	isnA     uint32
	isnZ     uint32
	ids      [2]uint16
	noStamps bool
	noIDs    bool
	scaleA   int // -1: no option
	scaleZ   int
	mss      int
}

const (
	fromA = false
	fromZ = true
)

func newTape(o Options) *tape {
	return &tape{
		b: New(o), a: endpoint("10.0.0.1:40000"), z: endpoint("10.0.0.2:5201"),
		isnA: 4294960000, isnZ: 77, scaleA: 7, scaleZ: 7, mss: 1460,
	}
}

func endpoint(s string) frame.Endpoint { return endpointOf(netip.MustParseAddrPort(s)) }

// packet makes a packet; changes are made to it before it is added.
func (x *tape) packet(us int64, back bool, flags uint8, seq, ack, payload int, change ...func(*frame.Packet)) {
	x.n++
	side, source, target, isn, other := 0, x.a, x.z, x.isnA, x.isnZ
	if back {
		side, source, target, isn, other = 1, x.z, x.a, x.isnZ, x.isnA
	}
	x.ids[side]++
	p := frame.Packet{
		Number: x.n, TimeNs: 1_700_000_000e9 + us*1000, Proto: frame.TCP, TTL: 64, DF: true, ID: x.ids[side],
		Source: source, Target: target, Flags: flags, Window: 500, Payload: payload,
		Seq: isn + 1 + uint32(seq), IPBytes: 40 + payload,
	}
	if flags&frame.ACK != 0 {
		p.Ack = other + 1 + uint32(ack)
	}
	if x.noIDs {
		p.ID = 0
	}
	if !x.noStamps {
		p.Options.Timestamps, p.Options.Bytes = true, 12
		p.Options.TSVal = uint32(us / 1000)
		p.IPBytes += 12
	}
	for _, c := range change {
		c(&p)
	}
	if x.to != nil {
		x.to(&p)
		return
	}
	x.b.Add(&p, frame.IsTCP)
}

// open shakes hands from time 0 on: the whole takes rtt, of which far is beyond
// the capture.
func (x *tape) open(far, rtt int64) *tape {
	option := func(scale int) func(*frame.Packet) {
		return func(p *frame.Packet) {
			p.Window, p.Options.HasMSS, p.Options.MSS, p.Options.SACKOK = 64000, true, uint16(x.mss), true
			if scale >= 0 {
				p.Options.HasScale, p.Options.Scale = true, uint8(scale)
			}
			p.Options.Kinds = [12]uint8{2, 4, 8, 1, 3}
		}
	}
	x.packet(0, fromA, frame.SYN, -1, 0, 0, option(x.scaleA))
	x.packet(far, fromZ, frame.SYN|frame.ACK, -1, 0, 0, option(x.scaleZ))
	x.packet(rtt, fromA, frame.ACK, 0, 0, 0)
	return x
}

func (x *tape) data(us int64, seq, payload int, change ...func(*frame.Packet)) {
	x.packet(us, fromA, frame.ACK|frame.PSH, seq, 0, payload, change...)
}

func (x *tape) ack(us int64, ack int, change ...func(*frame.Packet)) {
	x.packet(us, fromZ, frame.ACK, 0, ack, 0, change...)
}

// sack makes an acknowledgement name blocks.
func (x *tape) sack(blocks ...int) func(*frame.Packet) {
	return func(p *frame.Packet) {
		for i := 0; i < len(blocks); i += 2 {
			p.Options.SACK[i/2] = [2]uint32{x.isnA + 1 + uint32(blocks[i]), x.isnA + 1 + uint32(blocks[i+1])}
			p.Options.SACKs++
		}
	}
}

func id(n uint16) func(*frame.Packet)      { return func(p *frame.Packet) { p.ID = n } }
func window(n uint16) func(*frame.Packet)  { return func(p *frame.Packet) { p.Window = n } }
func stampOf(n uint32) func(*frame.Packet) { return func(p *frame.Packet) { p.Options.TSVal = n } }
func ttl(n uint8) func(*frame.Packet)      { return func(p *frame.Packet) { p.TTL = n } }
func face(n int) func(*frame.Packet)       { return func(p *frame.Packet) { p.Interface = n } }

// bulk sends n full segments, 100 us apart, and acknowledges each pair 10 ms
// later. It returns the time and the position after them.
func (x *tape) bulk(us int64, n int) (int64, int) {
	const size = 1448
	for i := range n {
		x.data(us, i*size, size)
		us += 100
	}
	us += 10_000
	for i := 2; i <= n; i += 2 {
		x.ack(us, i*size)
		us += 100
	}
	return us, n * size
}

func (x *tape) conn() measure.Connection { return x.b.Capture().Conns[0] }
