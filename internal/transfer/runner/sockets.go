package runner

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/sock"
	"thru/internal/transfer"
)

// Dialer makes the connections of clients, and remembers them, so that their
// TCP statistics can be read while they are in use. It may be used by several
// clients at once.
type Dialer struct {
	Buffer  int // SO_SNDBUF and SO_RCVBUF, in bytes; 0 leaves the defaults
	Timeout time.Duration

	mu    sync.Mutex
	conns []*watched
	known map[uint32]bool // inodes of programs' connections
}

// watched is a connection with its readings.
type watched struct {
	raw    syscall.RawConn // nil: a program's connection
	series sock.Series
	done   bool
}

// mostWatched limits the remembered connections: a passive FTP client makes
// one for each file.
const mostWatched = 4096

// Dial connects like net.Dialer.
func (d *Dialer) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	// Before the handshake, which carries the window scale.
	buffers := sock.Options{SendBuffer: int64(d.Buffer), RecvBuffer: int64(d.Buffer), NoDelay: true}
	nd := net.Dialer{Timeout: d.Timeout, Control: buffers.Control}
	c, err := transfer.Dial(ctx, nd, network, addr)
	if err != nil {
		return nil, fmt.Errorf("runner: connecting to %s: %w", addr, sock.Cause(err))
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

// sample reads a connection; a closed one keeps its last reading.
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

// Sample reads all open connections.
func (d *Dialer) Sample() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.conns {
		if w.raw != nil {
			w.sample()
		}
	}
	d.sampleAdopted()
}

// Adopt adds the connections of programs that this process has started, which
// dial by themselves.
func (d *Dialer) Adopt() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[uint32]bool{}
	}
	all, err := host.New().ChildConnections(os.Getpid(), d.known)
	if err != nil {
		return // not known on this system
	}
	for _, c := range all {
		if len(d.conns) < mostWatched {
			w := &watched{series: sock.Series{Local: c.Local, Peer: c.Peer}}
			w.series.Begin(true)
			d.conns = append(d.conns, w)
		}
	}
}

// adopted reports whether any connection is a program's.
func (d *Dialer) adopted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.conns, func(w *watched) bool { return w.raw == nil && w.series.IsRead() })
}

// sampleAdopted reads the connections of programs from the kernel.
func (d *Dialer) sampleAdopted() {
	if !slices.ContainsFunc(d.conns, func(w *watched) bool { return w.raw == nil && !w.done }) {
		return
	}
	diag, err := sock.OpenDiag()
	if err != nil {
		return
	}
	defer diag.Close()
	for _, w := range d.conns {
		if w.raw != nil || w.done {
			continue
		}
		local, err := netip.ParseAddrPort(w.series.Local)
		peer, perr := netip.ParseAddrPort(w.series.Peer)
		if err != nil || perr != nil {
			w.done = true
			continue
		}
		c, err := diag.Find(local, peer)
		if w.done = err != nil || !c.IsKnown; !w.done {
			w.series.Add(c, time.Now())
		}
	}
}

// Forget removes closed connections: a run counts those that are open, or
// will be.
func (d *Dialer) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.conns {
		if w.raw == nil { // the program has ended
			w.done = true
			continue
		}
		w.series.Begin(false)
		w.sample()
	}
	d.conns = slices.DeleteFunc(d.conns, func(w *watched) bool { return w.done })
}

// mostStreams limits the connections in a result.
const mostStreams = 64

// Streams returns the connections that carried data, those with the most
// first.
func (d *Dialer) Streams() []measure.Stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []measure.Stream
	for _, w := range d.conns {
		if w.series.IsRead() {
			all = append(all, w.series.Stream())
		}
	}
	return sock.DataStreams(all, mostStreams)
}

// Connections returns those that are open, or were since the run began; none
// without a dialer.
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

// face returns the interface of the connections; "" where it is not known.
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
