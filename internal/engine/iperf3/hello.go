package iperf3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
)

// The opening of UDP streams at the server. The first datagram of a stream does not name its test, so only one test per address opens its streams at a time.
// The server sends traffic only to the address of a control connection.

// greeting is the first datagram of a UDP stream.
type greeting struct {
	from   netip.AddrPort
	local  *net.UDPConn // socket that received it
	device string
	answer []byte
}

// siftTime is how long a new socket is searched for datagrams of other tests.
const siftTime = time.Millisecond

// hellos reads the first datagrams of UDP streams until the socket closes.
func (d *Server) hellos(u *net.UDPConn, device string) {
	var b [64]byte
	for {
		n, from, err := u.ReadFromUDPAddrPort(b[:])
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err == nil && n == helloSize:
			d.hello(greeting{from, u, device, answerTo(b[:n])})
		}
	}
}

// hello hands a first datagram to the test that waits for it; without such a test it drops it.
func (d *Server) hello(g greeting) {
	d.mu.Lock()
	c := d.opening[g.from.Addr().Unmap().WithZone("")]
	d.mu.Unlock()
	if c == nil {
		return
	}
	select {
	case c.greeted <- g:
	default: // more than a test can have
	}
}

// beginOpening waits until no other test of the same address opens its streams.
func (d *Server) beginOpening(ctx context.Context, c *call) error {
	late := time.NewTimer(d.wait.begin)
	defer late.Stop()
	for {
		d.mu.Lock()
		busy, freed := d.opening[c.addr()] != nil, d.freed
		if !busy {
			d.opening[c.addr()] = c
		}
		d.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-freed:
		case <-c.gone:
			return c.why
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late.C:
			return fault.Failf("", "iperf3: waiting for another test of %s: it did not open its UDP streams", c.addr())
		}
	}
}

func (d *Server) endOpening(c *call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opening[c.addr()] == c {
		delete(d.opening, c.addr())
		close(d.freed)
		d.freed = make(chan struct{})
	}
}

// collectUDP answers the first datagrams of n streams, in order of arrival, and gives each its own socket.
func (c *call) collectUDP(ctx context.Context, n int, s measure.Spec, sends func(i int) bool) (conns []net.Conn, err error) {
	known := map[netip.AddrPort]bool{}
	var again sync.WaitGroup
	defer func() {
		for _, x := range conns {
			x.SetReadDeadline(time.Unix(1, 0))
		}
		again.Wait()
		for _, x := range conns {
			x.SetReadDeadline(time.Time{})
			if err != nil {
				x.Close()
			}
		}
	}()
	for len(conns) < n {
		g, err := c.nextGreeting(ctx, len(conns), n)
		if err != nil {
			return conns, err
		}
		if known[g.from] {
			continue
		}
		u, err := c.connect(g, s, sends(len(conns)))
		if err != nil {
			return conns, err
		}
		known[g.from] = true
		conns = append(conns, u)
		again.Go(func() { c.answer(u, g) })
		if _, err := u.Write(g.answer); err != nil {
			return conns, fmt.Errorf("iperf3: answering by UDP: %w", err)
		}
	}
	return conns, nil
}

// nextGreeting waits for a first datagram.
func (c *call) nextGreeting(ctx context.Context, have, want int) (g greeting, err error) {
	late := time.NewTimer(c.server.wait.stream)
	defer late.Stop()
	select {
	case g = <-c.greeted:
	case <-c.gone:
		err = c.why
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-late.C:
		err = &refusal{codeAccept, fault.Failf("allow UDP of the same port of this host in the firewall: TCP connections arrived, datagrams did not",
			"iperf3: waiting for UDP streams: %d of %d arrived in time", have, want)}
	}
	return g, err
}

// connect opens a socket on the same port for one peer: the kernel delivers the peer's datagrams to the connected socket.
func (c *call) connect(g greeting, s measure.Spec, sends bool) (*net.UDPConn, error) {
	o := engine.SocketOptions(s, measure.UDP, sends)
	o.ReuseAddr, o.Device = true, g.device
	local := &net.UDPAddr{Port: g.local.LocalAddr().(*net.UDPAddr).Port}
	if a, ok := c.talk.conn.LocalAddr().(*net.TCPAddr); ok {
		local.IP, local.Zone = a.IP, a.Zone
	}
	d := net.Dialer{Control: o.Control, LocalAddr: local}
	conn, err := d.Dial("udp", g.from.String())
	if err != nil {
		return nil, fmt.Errorf("iperf3: opening a socket for %s: %w", g.from, err)
	}
	u := conn.(*net.UDPConn)
	c.sift(u, g)
	return u, nil
}

// sift forwards datagrams that arrived at a new socket between its bind and its connect: first datagrams of other tests.
func (c *call) sift(u *net.UDPConn, g greeting) {
	defer u.SetReadDeadline(time.Time{})
	var b [64]byte
	for {
		u.SetReadDeadline(time.Now().Add(siftTime))
		n, from, err := u.ReadFromUDPAddrPort(b[:])
		if err != nil {
			return
		}
		if n == helloSize && from != g.from {
			c.server.hello(greeting{from, g.local, g.device, answerTo(b[:n])})
		}
	}
}

// answer repeats the answer to a peer that has not received it.
func (c *call) answer(u *net.UDPConn, g greeting) {
	var b [64]byte
	for {
		n, err := u.Read(b[:])
		if err != nil {
			return
		}
		if n == helloSize {
			u.Write(g.answer)
		}
	}
}
