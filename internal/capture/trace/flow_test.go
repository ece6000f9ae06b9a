package trace

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"thru/internal/capture/frame"
	"thru/internal/measure"
)

// TestFlow: the hosts and the port with the most data are the flow.
func TestFlow(t *testing.T) {
	x := newTape(Options{})
	for i := range uint16(3) {
		x.a.Port = 41000 + i
		x.open(1000, 1010).data(2000, 0, 1000*(1+int(i)))
	}
	x.a.Port, x.z.Port = 41003, 22
	x.open(1000, 1010).data(2000, 0, 5000)
	x.z = endpoint("10.0.0.9:5201")
	x.open(1000, 1010).data(2000, 0, 5999)
	c := x.b.Capture()
	if c.Known != 5 || len(c.Conns) != 3 || c.Conns[0].From != "10.0.0.1:41002" || c.Conns[2].To != "10.0.0.2:5201" {
		t.Errorf("%d known, %d of the flow: %+v", c.Known, len(c.Conns), c.Conns)
	}

	x = newTape(Options{Only: [][2]netip.AddrPort{{netip.MustParseAddrPort("10.0.0.2:22"), netip.MustParseAddrPort("10.0.0.1:40000")}}})
	x.open(1000, 1010).data(2000, 0, 9000)
	x.z.Port = 22
	x.open(1000, 1010).data(2000, 0, 10)
	c = x.b.Capture()
	if c.Known != 1 || len(c.Conns) != 1 || c.Conns[0].To != "10.0.0.2:22" || c.TCP != 8 {
		t.Errorf("wanted alone: %+v", c)
	}
}

// TestManyConnections: a port scan does not displace connections with data,
// and the memory stays limited.
func TestManyConnections(t *testing.T) {
	x := newTape(Options{})
	x.open(1000, 1010)
	const size = 1 << 15
	for i := range largeBytes/size + 1 {
		x.data(2000+int64(i), i*size, size)
	}
	for i := range 3 * mostSmall {
		x.z.Port = uint16(i)
		x.z.Addr[14] = 1
		x.packet(10_000+int64(i), fromA, frame.SYN, -1, 0, 0)
	}
	if n := x.b.small.n + x.b.large.n; n > mostSmall+mostLarge || len(x.b.conns) > n {
		t.Errorf("%d connections are kept, %d are known by their ends", n, len(x.b.conns))
	}
	c := x.b.Capture()
	if c.Known != 3*mostSmall+1 || len(c.Conns) != 1 || c.Conns[0].To != "10.0.0.2:5201" {
		t.Errorf("%d known, %d of the flow", c.Known, len(c.Conns))
	}

	x = newTape(Options{})
	for i := range mostLarge + 50 {
		x.a.Port = 1000 + uint16(i)
		x.open(1000, 1010)
		for j := range largeBytes/size + i%7 {
			x.data(2000, j*size, size)
		}
	}
	c = x.b.Capture()
	if x.b.large.n > mostLarge || len(c.Conns) != mostConns || len(c.Missing) != 2 {
		t.Errorf("%d large ones, %d reported, %v", x.b.large.n, len(c.Conns), c.Missing)
	}
}

// TestOthers: packets other than TCP are counted by kind, ICMP messages of
// routers are kept.
func TestOthers(t *testing.T) {
	b := New(Options{})
	p := frame.Packet{Number: 1, Proto: frame.UDP}
	b.Add(&p, frame.IsOther)
	b.Add(&p, frame.IsOther)
	b.Add(&p, frame.IsNotIP)
	for i := range int64(3) {
		big := frame.Packet{Number: 4 + i, TooBig: true, MTU: 1400, Source: endpoint("10.0.0.254:0"), QuotedSource: endpoint("10.0.0.1:40000"), QuotedTarget: endpoint("10.0.0.2:5201")}
		b.Add(&big, frame.IsTooBig)
	}
	c := b.Capture()
	if got := fmt.Sprint(c.Others); got != "[{UDP 2} {ICMP, packet too big 3} {not IP 1}]" {
		t.Error(got)
	}
	if got := fmt.Sprint(c.TooBig); got != "[{4 10.0.0.254 1400 10.0.0.1:40000 10.0.0.2:5201 3}]" {
		t.Error(got)
	}
}

// TestPlace: the capture point needs both parts of the round-trip time.
func TestPlace(t *testing.T) {
	for _, test := range []struct {
		name      string
		far, rtt  int64
		ttl, back uint8
		want      string
	}{
		{"sender", 20000, 20040, 64, 57, measure.AtSender},
		{"receiver", 30, 20040, 57, 64, measure.AtReceiver},
		{"between", 8000, 20000, 61, 60, measure.AtPath},
		{"sender's container", 20000, 20040, 63, 57, measure.AtSender},
		{"one hop from the sender", 20000, 20900, 63, 57, ""},
		{"a mirror in the same LAN", 100, 190, 64, 64, ""},
		{"loopback", 20, 25, 64, 64, ""},
		{"sender, begun late", 20000, 20040, 64, 57, measure.AtSender},
		{"begun late, with a sender that thinks", 300, 5300, 64, 64, ""},
		{"begun late, a sender far off that thinks", 8000, 20000, 61, 60, ""},
		{"receiver, begun late", 30, 20040, 57, 64, measure.AtReceiver},
	} {
		x := newTape(Options{})
		if !strings.Contains(test.name, "begun late") {
			x.open(test.far, test.rtt)
		}
		for i := range 10 {
			us := test.rtt * int64(1+i)
			x.data(us, i*1448, 1448, ttl(test.ttl), func(p *frame.Packet) { p.Options.TSEcr = uint32(i) })
			x.ack(us+test.far, (i+1)*1448, ttl(test.back), stampOf(uint32(i+1)))
		}
		c := x.b.Capture()
		if c.Place != test.want || (c.PlacedBy == "") != (test.want == "") {
			t.Errorf("%s: %q, %s", test.name, c.Place, c.PlacedBy)
		}
	}
}
