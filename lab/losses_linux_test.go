package lab

import (
	"net/netip"
	"strings"
	"testing"

	"thru/internal/host"
	"thru/internal/measure"
)

// udpPort is the port that helpers receive at; nobody listens at the next one.
const udpPort = 9000

// ends are the differences of the counters of two hosts.
type ends struct{ sender, receiver measure.HostSpan }

// between reads the counters of both hosts before and after do.
func between(t *testing.T, a, b *Host, devA, devB string, do func()) ends {
	t.Helper()
	beforeA, beforeB := snapshot(t, a, devA), snapshot(t, b, devB)
	do()
	Eventually(t, programTimeout, "the queue of the sender is empty", func() bool {
		s := snapshot(t, a, devA)
		if s.Qdisc == nil {
			t.Fatalf("no qdisc: %v", s.Missing)
		}
		return s.Qdisc.Backlog == 0
	})
	e := ends{
		host.Span(beforeA, snapshot(t, a, devA), beforeA.Taken),
		host.Span(beforeB, snapshot(t, b, devB), beforeB.Taken),
	}
	for name, s := range map[string]measure.HostSpan{"sender": e.sender, "receiver": e.receiver} {
		if s.Qdisc == nil || s.NIC == nil || s.NIC.RxRing == nil || s.Proto == nil {
			t.Fatalf("the %s lacks counters: %+v", name, s)
		}
	}
	return e
}

// warm sends a datagram to a port without a socket, and waits until it arrives: before the neighbours are
// resolved, the kernel may drop queued packets.
func warm(t *testing.T, from, to *Host, addr netip.Addr) {
	t.Helper()
	send(t, from, netip.AddrPortFrom(addr, udpPort+1).String(), 1, 1)
	Eventually(t, programTimeout, "a datagram crosses the path", func() bool {
		proto := snapshot(t, to, "lo").Proto
		return proto["Udp.NoPorts"]+proto["Udp6.NoPorts"] > 0
	})
}

// quiet fails the test where a loss counter has risen.
func quiet(t *testing.T, name string, s measure.HostSpan) {
	t.Helper()
	if s.Qdisc.Drops != 0 || *s.NIC.RxRing != 0 || s.NIC.RxDropped != 0 || s.NIC.TxDropped != 0 || s.NIC.RxErrors != 0 || s.NIC.TxErrors != 0 {
		t.Errorf("%s: qdisc %+v, interface %+v, ring %d", name, s.Qdisc, s.NIC, *s.NIC.RxRing)
	}
	for counter, n := range s.Proto {
		for _, of := range []string{"RcvbufErrors", "SndbufErrors", "InErrors", "MemErrors", "InCsumErrors", "ReasmFails", "Discards"} {
			if strings.HasSuffix(counter, of) {
				t.Errorf("%s: %s rose by %d", name, counter, n)
			}
		}
	}
}

// TestQdiscDropsAreTheLoss sends faster than the link. However queueing disciplines are stacked, their drops
// are the loss, with each buffer counted once.
func TestQdiscDropsAreTheLoss(t *testing.T) {
	t.Parallel()
	const calls = 1500
	tbf := func(where string) string {
		return "qdisc add dev data0 " + where + " tbf rate 20mbit burst 24kb limit 60kb"
	}
	for _, c := range []struct {
		name, kind string
		each       int // datagrams in a buffer
		tc         []string
	}{
		{"tbf", "tbf", 1, []string{tbf("root")}},
		{"tbf over pfifo", "tbf", 1, []string{tbf("root handle 1:"), "qdisc add dev data0 parent 1:1 pfifo limit 20"}},
		{"htb over tbf over bfifo", "htb", 1, []string{"qdisc add dev data0 root handle 1: htb default 10 r2q 1000",
			"class add dev data0 parent 1: classid 1:10 htb rate 1gbit", tbf("parent 1:10 handle 10:"), "qdisc add dev data0 parent 10:1 bfifo limit 40kb"}},
		{"buffers of many datagrams", "tbf", 10, []string{tbf("root")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := NewPair(t, Options{})
			for _, command := range c.tc {
				p.A.Must("tc", strings.Fields(command)...)
			}
			warm(t, p.A, p.B, p.Data.B4)
			to := netip.AddrPortFrom(p.Data.B4, udpPort).String()
			r := receive(t, p.B, to, true)
			refused := 0
			e := between(t, p.A, p.B, DataDev, DataDev, func() {
				refused = send(t, p.A, to, calls, c.each)
			})
			lost := uint64(calls*c.each - r.stop())
			q := e.sender.Qdisc
			// Neighbour discovery may lose a packet too.
			if drops := q.Drops * uint64(c.each); q.Kind != c.kind || lost == 0 || drops < lost || drops > lost+10*uint64(c.each) {
				t.Errorf("%d of %d lost, qdisc %+v", lost, calls*c.each, q)
			}
			if q.Overlimits == 0 || refused != 0 {
				t.Errorf("qdisc %+v, %d calls refused: the kernel says so of no datagram that its queue drops", q, refused)
			}
			if c.each == 1 && e.sender.Proto["Udp.SndbufErrors"] != lost {
				t.Errorf("Udp.SndbufErrors rose by %d, %d lost: the kernel counts a refusing queue there too", e.sender.Proto["Udp.SndbufErrors"], lost)
			}
			quiet(t, "receiver", e.receiver)
		})
	}
}

// TestSocketThatIsNotRead fills the buffer of a socket. RcvbufErrors must count all datagrams that did not
// fit, and nothing may be lost before.
func TestSocketThatIsNotRead(t *testing.T) {
	t.Parallel()
	const sent = 800 // below netdev_max_backlog, above what the socket holds
	for _, c := range []struct {
		group string
		addr  func(Link) netip.Addr
	}{
		{"Udp", func(l Link) netip.Addr { return l.B4 }},
		{"Udp6", func(l Link) netip.Addr { return l.B6 }},
	} {
		t.Run(c.group, func(t *testing.T) {
			t.Parallel()
			p := NewPair(t, Options{})
			warm(t, p.A, p.B, c.addr(p.Data))
			to := netip.AddrPortFrom(c.addr(p.Data), udpPort).String()
			r := receive(t, p.B, to, false)
			e := between(t, p.A, p.B, DataDev, DataDev, func() { send(t, p.A, to, sent, 1) })
			held := uint64(r.stop())
			errors := e.receiver.Proto[c.group+".RcvbufErrors"]
			if errors == 0 || held == 0 || held+errors != sent {
				t.Errorf("%d sent, %d held, %d in %s.RcvbufErrors", sent, held, errors, c.group)
			}
			if in := e.receiver.Proto[c.group+".InErrors"]; in != errors {
				t.Errorf("%s.InErrors rose by %d, RcvbufErrors by %d: one holds the other", c.group, in, errors)
			}
			quiet(t, "sender", e.sender)
			if nic := e.receiver.NIC; nic.RxDropped != 0 || *nic.RxRing != 0 || nic.RxPackets < sent {
				t.Errorf("receiver: interface %+v", nic)
			}
		})
	}
}

// TestLossInThePath drops one datagram in four at a router between the hosts, which no counter of either end
// can show.
func TestLossInThePath(t *testing.T) {
	t.Parallel()
	Require(t, Program("nft"))
	const sent = 400
	l := New(t)
	a, router, b := l.Host("a"), l.Host("router"), l.Host("b")
	left := l.join(a, router, "left", 77, 1500, "cubic")
	right := l.join(router, b, "right", 78, 1500, "cubic")
	router.Sysctl("net.ipv4.ip_forward", "1")
	// The rate is slow enough for the receiver, and the queue holds all.
	a.Must("tc", strings.Fields("qdisc add dev left root tbf rate 50mbit burst 24kb limit 1mb")...)
	a.IP("route", "add", "10.78.0.0/24", "via", left.B4.String())
	b.IP("route", "add", "10.77.0.0/24", "via", right.A4.String())
	router.Nft(`table inet path {
	chain forward {
		type filter hook forward priority 0
		udp dport 9000 numgen inc mod 4 0 drop
	}
}
`)
	warm(t, a, b, right.B4)
	to := netip.AddrPortFrom(right.B4, udpPort).String()
	r := receive(t, b, to, true)
	e := between(t, a, b, left.Dev, right.Dev, func() {
		if refused := send(t, a, to, sent, 1); refused != 0 {
			t.Errorf("%d calls refused", refused)
		}
	})
	if got := r.stop(); got != sent*3/4 {
		t.Errorf("%d of %d came, want three in four", got, sent)
	}
	quiet(t, "sender", e.sender)
	quiet(t, "receiver", e.receiver)
}
