package mover

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/sock"
	"thru/internal/transfer"
)

// Dialer makes the connections of clients, and remembers them, so that their TCP
// can be read while they are in use. It may be used by several clients at once.
type Dialer struct {
	Buffer  int // SO_SNDBUF and SO_RCVBUF, in bytes; 0 leaves them
	Timeout time.Duration

	mu    sync.Mutex
	conns []*watched
}

// watched is a connection with its readings.
type watched struct {
	raw    syscall.RawConn
	series sock.Series
	done   bool
}

// mostWatched bounds the connections that are remembered: a passive FTP client
// makes one for each file.
const mostWatched = 4096

// Dial connects, as net.Dialer does.
func (d *Dialer) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	// Before the handshake, which carries the window's scale.
	buffers := sock.Options{SendBuffer: int64(d.Buffer), RecvBuffer: int64(d.Buffer), NoDelay: true}
	nd := net.Dialer{Timeout: d.Timeout, Control: buffers.Control}
	c, err := transfer.Dial(ctx, nd, network, addr)
	if err != nil {
		return nil, fmt.Errorf("mover: connecting to %s: %w", addr, err)
	}
	d.remember(c)
	return c, nil
}

func (d *Dialer) remember(c net.Conn) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return
	}
	w := &watched{raw: raw, series: sock.Series{Local: c.LocalAddr().String(), Peer: c.RemoteAddr().String(), Asked: int64(d.Buffer)}}
	w.sample()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.conns) < mostWatched {
		d.conns = append(d.conns, w)
	}
}

// sample reads a connection; one that was closed keeps its latest reading.
func (w *watched) sample() {
	if w.done {
		return
	}
	b := make([]byte, sock.TCPInfoSize)
	err := w.raw.Control(func(fd uintptr) {
		n := sock.ReadTCPInfo(fd, b)
		if n == 0 {
			return
		}
		unread, known := sock.Unread(fd)
		if !known {
			unread = -1
		}
		w.series.Add(sock.Connection{TCP: sock.ParseTCPInfo(b[:n]), Moment: sock.ParseMoment(b[:n]), Granted: sock.ReadGranted(fd), Unread: int64(unread), Queued: sock.SendQueued(fd)}, time.Now())
	})
	w.done = err != nil
}

// Sample reads all connections that are open.
func (d *Dialer) Sample() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.conns {
		w.sample()
	}
}

// Forget begins anew: a run is about the connections that are open, or come.
func (d *Dialer) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.conns {
		w.series.Begin(false)
		w.sample()
	}
	d.conns = slices.DeleteFunc(d.conns, func(w *watched) bool { return w.done })
}

// mostStreams bounds the connections that a result lists.
const mostStreams = 64

// Streams are the connections that carried data, those with the most first.
func (d *Dialer) Streams() []measure.Stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []measure.Stream
	for _, w := range d.conns {
		if w.series.IsRead() {
			all = append(all, w.series.Stream())
		}
	}
	return sock.Carriers(all, mostStreams)
}

// Connections are those that are open, or were since the run began; none without
// a dialer.
func (d *Dialer) Connections() []measure.Addresses {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]measure.Addresses, 0, len(d.conns))
	for _, w := range d.conns {
		all = append(all, measure.Addresses{Local: w.series.Local, Peer: w.series.Peer})
	}
	return all
}

// face is the interface that the connections use; "" where it is not known.
func (d *Dialer) face() string {
	for _, c := range d.Connections() {
		if to, err := netip.ParseAddrPort(c.Peer); err == nil {
			if r, err := host.New().Route(to.Addr()); err == nil {
				return r.Interface
			}
		}
	}
	return ""
}
