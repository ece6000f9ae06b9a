package trace

import (
	"fmt"
	"testing"

	"thru/internal/capture/frame"
)

// TestClockSteps: a clock that was set ahead is distinguished from a time
// without packets, and from a damaged time stamp.
func TestClockSteps(t *testing.T) {
	const day, size = 86400e6, 1448 // us
	later := func(by int64) func(*frame.Packet) { return func(p *frame.Packet) { p.TimeNs += by * 1000 } }
	slow := func(p *frame.Packet) { p.Options.TSVal = 7 } // the sender's own clock stood still
	for name, test := range map[string]struct {
		tell     func(*tape)
		stepped  string // numbers of the packets
		back     int64
		ms       int64 // of the whole
		noStamps bool
	}{
		"more data": {tell: func(x *tape) {
			x.data(2000, 0, size, slow)
			x.data(3000, size, size, slow, later(day))
			x.ack(4000, 2*size, slow, later(day))
		}, stepped: "[5]", ms: 3},
		"without time stamps": {tell: func(x *tape) {
			x.data(2000, 0, size)
			x.ack(3000, size, later(day))
			x.data(4000, size, size, later(day))
		}, stepped: "[5]", ms: 3, noStamps: true},
		"ahead and back, of one packet": {tell: func(x *tape) {
			x.data(2000, 0, size, slow)
			x.data(3000, size, size, slow, later(day))
			x.ack(4000, 2*size, slow)
		}, stepped: "[5]", back: 1, ms: 2},
		"another packet is the first of the new time": {tell: func(x *tape) {
			x.data(2000, 0, size)
			arp := frame.Packet{Number: 99, TimeNs: 1_700_000_000e9 + day*1000}
			x.b.Add(&arp, frame.IsNotIP)
			x.ack(3000, size, later(day))
		}, stepped: "[5]", ms: 2, noStamps: true},
		"all was acknowledged: nothing was sent for a day": {tell: func(x *tape) {
			x.data(2000, 0, size)
			x.ack(3000, size)
			x.data(4000, size, size, later(day))
		}, ms: day/1000 + 4, noStamps: true},
		"the time stamps say that it was a day": {tell: func(x *tape) {
			x.data(2000, 0, size)
			x.data(4000+day, size, size)
		}, ms: day/1000 + 4},
		"it was sent again after a day": {tell: func(x *tape) {
			x.data(2000, 0, size)
			x.data(4000, 0, size, later(day))
		}, ms: day/1000 + 4, noStamps: true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTape(Options{Record: NewRecorder()})
			x.noStamps = test.noStamps
			x.open(1000, 1010)
			test.tell(x)
			c := x.b.Capture()
			got := ""
			if c.Stepped.N > 0 {
				got = fmt.Sprint(c.Stepped.Packets)
			}
			if got != test.stepped || c.BackTime.N != test.back || c.SpanNs/1e6 < test.ms-1 || c.SpanNs/1e6 > test.ms {
				t.Errorf("set ahead before %s, back %d times, %d ns", got, c.BackTime.N, c.SpanNs)
			}
			if sent, _ := x.b.o.Record.Volumes(&c.Conns[0], false); sent.LastNs-sent.FirstNs > c.SpanNs {
				t.Errorf("data in %d ns of %d", sent.LastNs-sent.FirstNs, c.SpanNs)
			}
		})
	}

	x := newTape(Options{})
	x.packet(0, fromA, frame.SYN, -1, 0, 0)
	x.packet(500, fromZ, frame.SYN|frame.ACK, -1, 0, 0, later(day))
	x.packet(600, fromA, frame.ACK, 0, 0, 0, later(2*day))
	if c := x.b.Capture(); c.Stepped.N != 2 || *c.Conns[0].OpenNs > 1e6 {
		t.Errorf("the handshake: %+v, %d ns", c.Stepped, *c.Conns[0].OpenNs)
	}
}
