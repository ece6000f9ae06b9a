//go:build unix

package iperf2

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"thru/internal/engine"
	"thru/internal/engine/enginetest"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
)

// peer is a TCP listener on loopback that is no iperf2.
func peer(t *testing.T, do func(net.Conn)) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan bool)
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			do(c)
		}
	}()
	t.Cleanup(func() { l.Close(); <-over })
	return l.Addr().(*net.TCPAddr).Port
}

// fails opens and runs a test that must fail, and returns the error.
func fails(t *testing.T, x measure.Spec, port int) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s, err := Engine{Program: program(t)}.Open(ctx, engine.End{Name: "local", Spec: x, Sends: x.From == "local", Dials: true, Targets: []string{fmt.Sprintf("127.0.0.1:%d", port)}})
	if err != nil {
		return err
	}
	defer closeGone(t, s)
	if err := s.Start(ctx, 0, host.PlacementFacts{}); err != nil {
		return err
	}
	us := enginetest.Finish(t, s)
	if len(us) == 0 || us[len(us)-1].Kind != engine.Failed {
		t.Fatalf("the last update is %+v", us[max(0, len(us)-1):])
	}
	return us[len(us)-1].Err
}

// TestBadPeers: a peer with another protocol, without an answer, or that disconnects gives a clear error in limited time, with a hint.
func TestBadPeers(t *testing.T) {
	t.Parallel()
	hold := func(c net.Conn) { t.Cleanup(func() { c.Close() }) }
	both := spec(measure.TCP, 1)
	both.Duplex = true
	long := reversed(spec(measure.TCP, 1)) // else a busy machine sees the end of the data after that of the test
	long.Duration = int64(limit)
	nobody := 0
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		nobody = l.Addr().(*net.TCPAddr).Port
		l.Close()
	}
	reply := func(version version, more int) func(net.Conn) {
		return func(c net.Conn) {
			b := make([]byte, headerSize)
			c.Read(b)
			c.Write(append(ack{version: version}.append(nil), make([]byte, more)...))
			if more > 0 {
				c.Close()
				return
			}
			hold(c)
		}
	}
	for _, tt := range []struct {
		name string
		spec measure.Spec
		port int
		want string
	}{
		{"nobody", spec(measure.TCP, 2), nobody, "refused"},
		{"nobody, udp", spec(measure.UDP, 2), nobody, "no program receives datagrams"},
		{"nobody, udp reverse", reversed(spec(measure.UDP, 2)), nobody, "no program receives datagrams"},
		{"another program", spec(measure.TCP, 2), peer(t, func(c net.Conn) { c.Write([]byte("220 mail.example.org ESMTP ready, say hello\r\n")); hold(c) }), "not an iperf2 server"},
		{"closes", spec(measure.TCP, 1), peer(t, func(c net.Conn) { c.Close() }), "(closed|reset) the connection"}, // reset where data was under way
		{"silent, reverse", reversed(spec(measure.TCP, 1)), peer(t, hold), "cannot send"},
		{"old, reverse", reversed(spec(measure.TCP, 1)), peer(t, reply(0x00020000000d0003, 0)), "2.0.13 cannot send"},
		{"old, both ways", both, peer(t, reply(0x00020000000d0003, 0)), "2.0.13 cannot send"},
		{"reads nothing and sends nothing", reversed(spec(measure.TCP, 1)), peer(t, reply(spoken, 0)), "no data arrived"},
		{"sends too little", long, peer(t, reply(spoken, 100_000)), "ended the test after"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := fails(t, tt.spec, tt.port)
			if err == nil || !regexp.MustCompile(tt.want).MatchString(err.Error()) || fault.Hint(err) == "" {
				t.Errorf("%v; hint %q", err, fault.Hint(err))
			}
		})
	}
}

// TestNoReport: without a server's report it is not known what has arrived.
func TestNoReport(t *testing.T) {
	t.Parallel()
	u, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close() // it reads nothing
	x := spec(measure.UDP, 2)
	x.Rate = 1e6
	if err := fails(t, x, u.LocalAddr().(*net.UDPAddr).Port); !strings.Contains(err.Error(), "no report") || fault.Hint(err) == "" {
		t.Errorf("%v; hint %q", err, fault.Hint(err))
	}
}

// TestPortReopens: a server whose port is closed for a moment after the first datagram, as that of a busy one for the next stream, ends no test.
func TestPortReopens(t *testing.T) {
	t.Parallel()
	u, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	at := u.LocalAddr().(*net.UDPAddr)
	reopened := make(chan error, 1)
	go func() {
		u.ReadFrom(make([]byte, 1))
		u.Close()
		time.Sleep(100 * time.Millisecond) // closed, while datagrams come
		again, err := net.ListenUDP("udp", at)
		if err == nil {
			t.Cleanup(func() { again.Close() })
		}
		reopened <- err
	}()
	x := spec(measure.UDP, 1)
	x.Rate = 1e6
	if err := fails(t, x, at.Port); !strings.Contains(err.Error(), "no report") {
		t.Error(err)
	}
	if err := <-reopened; err != nil {
		t.Error(err)
	}
}

// TestClientVanishes: a client that stops in the middle has a little more than the announced time, because it may pause; then its test ends, and keeps the
// received data.
func TestClientVanishes(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{measure.TCP, measure.UDP} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			s := serve(t, ServerConfig{})
			c, err := net.Dial(protocol, fmt.Sprintf("127.0.0.1:%d", s.port))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			h := header{flags: flagExtended | flagLength | headerSize<<1, streams: 1, amount: -10, version: spoken}
			if protocol == measure.TCP {
				c.Write(append(h.append(nil), make([]byte, 10_000)...))
			} else {
				h.flags |= flagNumber64
				for i := range 10 {
					c.Write(append(h.append(appendNumber(nil, int64(i+1), 0)), make([]byte, 1000)...))
				}
			}
			a := s.next(t)
			us := enginetest.Finish(t, a.session)
			if u := us[len(us)-1]; u.Kind != engine.Failed || !strings.Contains(u.Err.Error(), "the end of its time") {
				t.Errorf("the last update is %+v", u)
			}
			if e := a.session.Evidence(); e.TotalBytes < 10_000 || e.Error == "" {
				t.Errorf("%d bytes, error %q", e.TotalBytes, e.Error)
			}
			a.session.Close()
			s.empty(t)
		})
	}
}

// TestClosesAtAnyTime: Close leaves nothing behind, at any stage.
func TestClosesAtAnyTime(t *testing.T) {
	s := serve(t, ServerConfig{})
	for _, x := range []measure.Spec{spec(measure.TCP, 2), reversed(spec(measure.TCP, 2)), spec(measure.UDP, 2)} {
		x.Duration = int64(time.Minute)
		end := engine.End{Name: "local", Spec: x, Sends: x.From == "local", Dials: true, Targets: []string{fmt.Sprintf("127.0.0.1:%d", s.port)}}
		c, err := s.engine.Open(t.Context(), end)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.Close(), c.Close()); err != nil || !gone(c.Process()) {
			t.Error(err)
		}
		if err := c.Start(t.Context(), 0, host.PlacementFacts{}); err == nil {
			t.Error("a closed session starts")
		}
		c = dial(t, s.engine.Program, x, s.port, 0)
		a := s.next(t)
		<-c.Updates()
		closeGone(t, c)
		closeGone(t, a.session)
		s.empty(t)
	}
}

// TestLimits: the limits of an end apply, whatever the client requests.
func TestLimits(t *testing.T) {
	s := serve(t, ServerConfig{Limits: Limits{Streams: 2, Duration: 500 * time.Millisecond, RateBps: 50e6}})
	x := reversed(spec(measure.TCP, 2))
	x.Duration = int64(3 * time.Second)
	fails(t, x, s.port) // the server ends early
	a := s.next(t)
	e := finished(t, a.session)
	if e.MeasuredNs > int64(900*time.Millisecond) || a.call.Specs[0].MaxRate != 50e6 || a.call.Specs[0].Duration != int64(500*time.Millisecond) {
		t.Errorf("%v of %+v", time.Duration(e.MeasuredNs), a.call.Specs[0])
	}
}

// TestManyStreams: the maximum number of streams.
func TestManyStreams(t *testing.T) {
	s := serve(t, ServerConfig{})
	for _, protocol := range []string{measure.TCP, measure.UDP} {
		x := spec(protocol, measure.MaxStreams)
		if protocol == measure.UDP {
			x.Duration *= 5 // so that each stream sends several datagrams on a busy machine too
		}
		c := dial(t, s.engine.Program, x, s.port, 0)
		a := s.next(t)
		sent, got := finished(t, c), finished(t, a.session)
		if sent.TotalBytes != got.TotalBytes+missing(t, sent, got) || len(got.Streams) != measure.MaxStreams {
			t.Errorf("%s: sent %d bytes, received %d in %d streams", protocol, sent.TotalBytes, got.TotalBytes, len(got.Streams))
		}
	}
}

// TestSettle: all datagrams that wait in the queue of the port are counted before a test begins, on a busy host too.
func TestSettle(t *testing.T) {
	t.Parallel()
	const sent = 100
	tcp, udp, err := Listen(t.Context(), []string{"127.0.0.1"}, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	closeListeners(tcp, nil)
	c, err := net.DialUDP("udp", nil, udp[0].LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for n := range int64(sent) {
		if _, err := c.Write(append(appendNumber(nil, n+1, 0), make([]byte, 100)...)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	d, over := NewServer(ServerConfig{}), make(chan error, 1)
	d.took, d.ports = func(engine.Call) {}, udp
	go func() { over <- d.listen(ctx, udp[0]) }()
	d.settle()
	d.mu.Lock()
	s := d.sources[c.LocalAddr().(*net.UDPAddr).AddrPort()]
	d.mu.Unlock()
	if s == nil {
		t.Fatal("no datagram was read")
	}
	if early := s.handOver().Early; early.Packets != sent {
		t.Errorf("%d of %d datagrams were counted before the test began", early.Packets, sent)
	}
	cancel()
	closeListeners(nil, udp)
	if err := <-over; err != nil {
		t.Error(err)
	}
	d.close()
	s.close()
}
