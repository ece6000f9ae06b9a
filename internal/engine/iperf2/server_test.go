//go:build unix

package iperf2

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
)

// tcpDial connects to a server of this test.
func tcpDial(t testing.TB, port int) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(limit))
	return c
}

// refusal returns the next reason for which the server turned a caller away.
func (s *stubServer) refusal(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.refused:
		return err
	case a := <-s.answers:
		t.Fatalf("%+v was answered: %v", a.call, a.err)
	case <-time.After(limit):
		t.Fatal("nobody was turned away")
	}
	return nil
}

// TestRefusals: the server reports a test that it does not support, and closes the connection.
func TestRefusals(t *testing.T) {
	t.Parallel()
	key := header{flags: flagExtended | flagKey | flagLength | headerSize<<1}
	many := header{flags: flagExtended | flagLength | headerSize<<1, streams: 9}
	none := header{flags: flagExtended | flagVersion2 | flagLength | headerSize<<1, streams: 1, upper: upperReverse}
	udp := func(upper uint16) []byte {
		h := header{flags: flagExtended | flagVersion2 | flagUDPTests | flagNumber64 | flagLength | (headerSize+datagramSize)<<1, streams: 1, amount: -100, upper: upper}
		return append(appendNumber(nil, 1, 0), h.append(nil)...)
	}
	for name, tt := range map[string]struct {
		sent []byte
		udp  bool
		want string
	}{
		"key":              {key.append(nil), false, "a key"},
		"requests":         {[]byte{0, 0x80, 0, 0, 0, 0, 0, 0}, false, "--bounceback"},
		"streams":          {many.append(nil), false, "9 streams"},
		"no amount":        {none.append(nil), false, "zero or negative"},
		"cut":              {raw(t, realForward)[:30], false, "truncated"},
		"nothing":          {nil, false, "sent nothing"},
		"udp reverse":      {udp(upperReverse), true, "does not prove"},
		"udp both":         {udp(upperFullDuplex), true, "does not prove"},
		"udp connect back": {append(appendNumber(nil, 1, 0), raw(t, realDual)...), true, "does not prove"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, ServerConfig{Limits: Limits{Streams: 8}})
			if tt.udp {
				u, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", s.port))
				if err != nil {
					t.Fatal(err)
				}
				defer u.Close()
				u.Write(tt.sent)
				u.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
				if n, err := u.Read(make([]byte, 2000)); err == nil {
					t.Errorf("%d bytes went to an address that has proven nothing", n)
				}
			} else {
				c := tcpDial(t, s.port)
				c.Write(tt.sent) // and stalls
				if n, err := io.Copy(io.Discard, c); n != 0 {
					t.Errorf("%d bytes were answered: %v", n, err)
				}
			}
			if err := s.refusal(t); !strings.Contains(err.Error(), tt.want) {
				t.Errorf("turned away: %v", err)
			}
			s.empty(t)
		})
	}
}

// empty: nothing is left of any caller.
func (s *stubServer) empty(t testing.TB) {
	t.Helper()
	d := s.engine.Server
	for give := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		d.mu.Lock()
		left := len(d.callers) + len(d.groups) + len(d.calls) + len(d.sources)
		d.mu.Unlock()
		if left == 0 {
			return
		}
		if time.Now().After(give) {
			t.Errorf("%d are left", left)
			return
		}
	}
}

// TestPlainTraffic: a client without a header only sends, and each byte counts.
func TestPlainTraffic(t *testing.T) {
	s := serve(t, ServerConfig{})
	const each = 1 << 20
	var clients sync.WaitGroup
	for range 3 {
		c := tcpDial(t, s.port)
		clients.Go(func() {
			c.Write(bytes.Repeat([]byte("0123456789abcdef"), each/16))
			c.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, c)
		})
	}
	a := s.next(t)
	e := finished(t, a.session)
	clients.Wait()
	if e.TotalBytes != 3*each || len(e.Streams) != 3 || a.call.Program != "" {
		t.Errorf("%d bytes in %d streams of %+v", e.TotalBytes, len(e.Streams), a.call)
	}
	if far, _ := a.session.Far(); far == nil || far.Reported != "iperf2" || !far.Sends || !far.Dialled || far.EndPoint != a.call.Name || len(far.Missing) == 0 {
		t.Errorf("far: %+v", far)
	}
}

// TestManyClients: many clients do not affect each other.
func TestManyClients(t *testing.T) {
	s := serve(t, ServerConfig{})
	stalls := tcpDial(t, s.port)
	stalls.Write(raw(t, realForward)[:10])
	var sent []engine.Session
	for i := range 4 {
		x := spec([]string{measure.TCP, measure.UDP}[i%2], 2)
		x.Rate = 10e6 * int64(i+1) // else they would count as one client
		sent = append(sent, dial(t, s.engine.Program, x, s.port, 0))
	}
	var total, got int64
	for _, x := range sent {
		total += finished(t, x).TotalBytes
	}
	for range sent {
		got += finished(t, s.next(t).session).TotalBytes
	}
	if total != got || total == 0 {
		t.Errorf("sent %d bytes, received %d", total, got)
	}
}

// TestFlood: the server turns callers above the limit away, and drops waiting ones.
func TestFlood(t *testing.T) {
	d := NewServer(ServerConfig{MaxCalls: 2, Limits: Limits{Streams: 2}})
	calls := make(chan engine.Call, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	tcp, udp, err := Listen(ctx, []string{"127.0.0.1"}, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- d.Serve(ctx, tcp, udp, func(c engine.Call) { calls <- c }) }()
	one := header{flags: flagExtended | flagLength | headerSize<<1, streams: 1, amount: -100}
	var cs []net.Conn
	for range 50 { // each would become a call
		c := tcpDial(t, tcp[0].Addr().(*net.TCPAddr).Port)
		c.Write(one.append(nil))
		cs = append(cs, c)
	}
	u, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for i := range 1000 { // more sources than possible streams
		d.datagram(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(20000+i)), udp[0].LocalAddr().(*net.UDPAddr).AddrPort(), appendNumber(nil, 1, 0))
	}
	closed := make(chan bool, len(cs))
	for _, c := range cs {
		go func() { io.Copy(io.Discard, c); closed <- true }()
	}
	for range len(cs) - 1 { // all but the waiting one of this host
		select {
		case <-closed:
		case <-time.After(limit):
			t.Fatal("too many callers wait")
		}
	}
	d.mu.Lock()
	if len(d.callers) > 1 || len(d.sources) > 4 {
		t.Errorf("%d wait, %d sources", len(d.callers), len(d.sources))
	}
	d.mu.Unlock()
	c := <-calls
	c.Refuse(fault.Failf("", "test: no"))
	c.Refuse(fault.Failf("", "test: no, again"))
	if _, err := (Engine{Program: program(t), Server: d}).Open(t.Context(), engine.End{Spec: c.Specs[0], Token: c.Token}); err == nil {
		t.Error("a call that was refused is opened")
	}
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
	(&stubServer{engine: Engine{Server: d}}).empty(t)
}

// FuzzServerTalk: whatever a client sends, over TCP or as datagrams, ends in limited time and leaves nothing behind.
func FuzzServerTalk(f *testing.F) {
	for _, s := range []string{realForward, realReverse, realDual, realTripTimes} {
		f.Add(raw(f, s), appendNumber(nil, 1, 0))
	}
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), append(appendNumber(nil, 1, 0), raw(f, realUDP)...))
	f.Add([]byte{}, append(appendNumber(nil, -9, 0), raw(f, realUDP)...))
	f.Fuzz(func(t *testing.T, stream, datagram []byte) {
		d := NewServer(ServerConfig{Limits: Limits{Streams: 4}})
		var called sync.WaitGroup
		d.took = func(c engine.Call) {
			called.Go(func() { c.Refuse(fault.Failf("", "test: no")) })
		}
		ours, theirs := net.Pipe()
		var talk sync.WaitGroup
		talk.Go(func() { theirs.Write(stream) })
		talk.Go(func() { io.Copy(io.Discard, theirs) })
		stall := time.AfterFunc(2*time.Millisecond, func() { theirs.Close() })
		if err := d.greet(ours); err != nil {
			ours.Close()
		}
		stall.Stop()
		theirs.Close()
		for range 3 {
			d.datagram(netip.MustParseAddrPort("127.0.0.1:9"), netip.MustParseAddrPort("127.0.0.1:36799"), datagram)
		}
		talk.Wait()
		d.close()
		called.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.callers)+len(d.groups)+len(d.calls)+len(d.sources) != 0 {
			t.Errorf("%d wait, %d, %d and %d are left", len(d.callers), len(d.groups), len(d.calls), len(d.sources))
		}
	})
}
