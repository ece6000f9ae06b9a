package iperf2

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/measure"
)

// mute is a stream on which nothing moves.
type mute struct{}

func (mute) handOver() worker.Conn { return worker.Conn{} }
func (mute) connection() net.Conn  { return nil }
func (mute) close()                {}

// openServer returns a server whose callers arrive by join, and the calls that it makes of them.
func openServer(t *testing.T, c ServerConfig) (*Server, chan engine.Call) {
	d, calls := NewServer(c), make(chan engine.Call, 1000)
	d.took = func(c engine.Call) { calls <- c }
	t.Cleanup(func() {
		d.close()
		if n := len(d.callers); n != 0 {
			t.Errorf("%d callers are left", n)
		}
	})
	return d, calls
}

// joins adds a caller of a host that announces a number of streams, and sends one.
func joins(d *Server, from netip.AddrPort, streams uint32) error {
	h := header{flags: flagExtended | flagLength | headerSize<<1, streams: streams, port: uint32(from.Port()), amount: -100}
	return d.join(from, test{protocol: measure.TCP, header: h}, mute{})
}

// hostNo returns an address of some host.
func hostNo(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), uint16(1000+i))
}

// TestManyJoinAtOnce: no more callers wait than allowed, even while a caller is complete but not yet a call.
func TestManyJoinAtOnce(t *testing.T) {
	d, calls := openServer(t, ServerConfig{MaxCalls: 2})
	var wg sync.WaitGroup
	var in atomic.Int64
	for i := range 200 {
		wg.Go(func() {
			switch err := joins(d, hostNo(i), 1); {
			case err == nil:
				in.Add(1)
			case !errors.Is(err, errBusy):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	d.mu.Lock()
	n := len(d.callers)
	d.mu.Unlock()
	if in.Load() != 2 || n != 2 {
		t.Errorf("%d have joined, %d wait", in.Load(), n)
	}
	for range 2 {
		c := <-calls
		c.Refuse(nil)
	}
	if err := joins(d, hostNo(1), 1); err != nil {
		t.Errorf("when the others have gone: %v", err)
	}
}

// TestOneHost: one host leaves room for others, whatever it announces.
func TestOneHost(t *testing.T) {
	for _, tt := range []struct {
		name string
		addr func(i int) netip.Addr // of the same host
	}{
		{"IPv4", func(int) netip.Addr { return netip.MustParseAddr("198.51.100.1") }},
		{"IPv6", func(i int) netip.Addr { return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(i)}) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, calls := openServer(t, ServerConfig{MaxCalls: 4})
			next := 0
			again := func(streams uint32) error {
				next++
				return joins(d, netip.AddrPortFrom(tt.addr(next), uint16(next)), streams)
			}
			if err := errors.Join(again(100), again(100)); err != nil {
				t.Fatal(err)
			}
			if err := again(1); !errors.Is(err, errOften) {
				t.Errorf("more than half waits: %v", err)
			}
			if err := errors.Join(joins(d, hostNo(1), 1), joins(d, hostNo(2), 1)); err != nil {
				t.Errorf("another host finds no room: %v", err)
			}
			if err := joins(d, hostNo(3), 1); !errors.Is(err, errBusy) {
				t.Errorf("more wait than may: %v", err)
			}
			for range 4 { // callers with fewer streams than announced also run
				if d.claim((<-calls).Token) == nil {
					t.Error("a call is gone")
				}
			}
			if err := errors.Join(again(1), again(1)); err != nil {
				t.Errorf("two run, two more: %v", err)
			}
			d.claim((<-calls).Token)
			d.claim((<-calls).Token)
			if err := again(1); !errors.Is(err, errOften) {
				t.Errorf("it runs as many as may wait, and has one more: %v", err)
			}
			d.mu.Lock()
			var running []*caller
			for c, waits := range d.callers {
				if !waits {
					running = append(running, c)
				}
			}
			d.mu.Unlock()
			for _, c := range running {
				c.close()
			}
		})
	}
}

// TestWelcome: a host that connects without a request leaves room for others.
func TestWelcome(t *testing.T) {
	d := NewServer(ServerConfig{})
	fill := func(host netip.Prefix) (n int) {
		for d.silent.Enter(host, mostGreeted, mostGreeted/2) {
			n++
		}
		return n
	}
	a, b, c := hostOf(hostNo(1).Addr()), hostOf(hostNo(2).Addr()), hostOf(hostNo(3).Addr())
	if x, y, z := fill(a), fill(b), fill(c); x != mostGreeted/2 || y != mostGreeted/2 || z != 0 {
		t.Errorf("%d, %d and %d of %d have been let in", x, y, z, mostGreeted)
	}
	for range mostGreeted / 2 {
		d.silent.Leave(a)
	}
	if n := fill(c); n != mostGreeted/2 || d.silent.Size() != 2 {
		t.Errorf("%d have been let in when others had gone, of %d hosts", n, d.silent.Size())
	}
}

// TestServeEnds: the server stops listening when the context ends, at any stage.
func TestServeEnds(t *testing.T) {
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		tcp, udp, err := Listen(ctx, []string{"127.0.0.1"}, 0, "")
		if err != nil {
			t.Fatal(err)
		}
		go cancel()
		if err := NewServer(ServerConfig{}).Serve(ctx, tcp, udp, nil); err != nil {
			t.Fatal(err)
		}
	}
}
