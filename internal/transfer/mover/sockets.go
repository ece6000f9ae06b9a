package mover

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

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

// watched is a connection with its first and latest reading.
type watched struct {
	raw           syscall.RawConn
	local, peer   string
	granted       sock.Granted
	first, latest measure.TCPInfo
	read, done    bool
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
	w := &watched{raw: raw, local: c.LocalAddr().String(), peer: c.RemoteAddr().String()}
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
		w.latest = sock.ParseTCPInfo(b[:n])
		if !w.read {
			w.first, w.granted, w.read = w.latest, sock.ReadGranted(fd), true
		}
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
	d.conns = slices.DeleteFunc(d.conns, func(w *watched) bool { return w.done })
	for _, w := range d.conns {
		w.read = false
		w.sample()
	}
}

// mostStreams bounds the connections that a result lists.
const mostStreams = 64

// Streams are the connections that carried data, those with the most first. One
// that carried less than a hundredth of the most was for commands.
func (d *Dialer) Streams() []measure.Stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []measure.Stream
	for _, w := range d.conns {
		if w.read {
			all = append(all, w.stream(d.Buffer))
		}
	}
	slices.SortStableFunc(all, func(a, b measure.Stream) int { return int(min(max(b.Bytes-a.Bytes, -1), 1)) })
	for i := range all {
		all[i].Index = i
		if i == mostStreams || all[i].Bytes*100 < all[0].Bytes {
			return all[:i]
		}
	}
	return all
}

func (w *watched) stream(asked int) measure.Stream {
	moved := func(a, b *uint64) int64 {
		if a == nil || b == nil {
			return 0
		}
		return int64(*b - *a)
	}
	in, out := moved(w.first.BytesReceived, w.latest.BytesReceived), moved(w.first.BytesAcked, w.latest.BytesAcked)
	window := measure.Buffer{Asked: int64(asked), Granted: int64(w.granted.SendBuffer)}
	if in > out {
		window.Granted = int64(w.granted.RecvBuffer)
	}
	if asked > 0 {
		window.Usable = window.Granted / sock.BufferOverhead
		window.Cut = window.Usable < int64(asked)
	}
	return measure.Stream{
		Local: w.local, Peer: w.peer, Bytes: max(in, out), TotalBytes: max(in, out), Window: window,
		Congestion: w.granted.Congestion, MSS: w.granted.MSS, TCPStart: new(w.first), TCP: new(w.latest),
	}
}
