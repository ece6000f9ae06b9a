package iperf2

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
)

// Timeouts for the first bytes of a server, which it sends at once.
const (
	ackWait    = 2500 * time.Millisecond // where the test depends on it
	ackPolite  = 30 * time.Millisecond   // where an older server sends nothing, and its clock runs already; plus the round trips
	askEvery   = 50 * time.Millisecond   // a request for datagrams may be lost
	askWait    = 3 * time.Second
	largestUDP = 1 << 16

	announceWait  = 2 * time.Millisecond
	mostAnnounced = 10 // tries
)

// introduce sends the header on every stream, reads the answer where there is one, and lists the connections for the worker.
func (s *session) introduce(ctx context.Context, conns []net.Conn, ramp time.Duration) ([]worker.Conn, error) {
	h, err := headerOf(s.end.Spec, s.end.Sends, ramp)
	if err != nil {
		return nil, err
	}
	begin := s.greet
	udp := s.end.Spec.Protocol == measure.UDP
	switch {
	case udp && s.end.Sends:
		begin = s.announce
	case udp:
		begin = s.ask
	}
	given, errs := make([]worker.Conn, len(conns)), make([]error, len(conns))
	var wg sync.WaitGroup
	for i, c := range conns {
		stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		wg.Go(func() {
			given[i].Conn = c
			given[i].Early, errs[i] = begin(c, h)
		})
		if udp { // one after the other: a server drops the next while it opens a socket for one
			wg.Wait()
		}
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err // the other errors are the same
		}
	}
	for _, c := range conns {
		c.SetDeadline(time.Time{})
	}
	if !s.end.Spec.Duplex {
		return given, nil
	}
	return bothDirections(given)
}

// bothDirections adds every connection once more, for the other direction. On error it closes those that it has added, but not the caller's.
func bothDirections(given []worker.Conn) ([]worker.Conn, error) {
	own := len(given)
	for _, g := range given[:own:own] {
		twin, err := sock.Twin(g.Conn)
		if err != nil {
			for _, g := range given[own:] {
				g.Conn.Close()
			}
			return nil, err
		}
		given = append(given, worker.Conn{Conn: twin, Early: worker.Early{Since: g.Early.Since}})
	}
	return given, nil
}

// greet sends the header of a TCP stream, which counts as traffic, and reads the ack.
func (s *session) greet(c net.Conn, h header) (worker.Early, error) {
	backward := h.reverse() || h.fullDuplex()
	wait := ackPolite
	if r := s.ready.RTTIdle; r != nil {
		wait += 4 * time.Duration(r.Median)
	}
	if backward {
		wait = ackWait
	}
	b := h.append(nil)
	c.SetWriteDeadline(time.Now().Add(ackWait))
	if _, err := c.Write(b); err != nil {
		return worker.Early{}, closedError(c, err)
	}
	c.SetReadDeadline(time.Now().Add(wait)) // not before: a busy host may write late
	early := worker.Early{Bytes: int64(len(b))}
	if !s.end.Sends {
		early = worker.Early{} // it went in the other direction
	}
	var answer [ackSize]byte
	n, err := io.ReadFull(c, answer[:])
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) && n == 0 && !backward:
		return early, nil // a server before 2.0.10
	case errors.Is(err, os.ErrDeadlineExceeded) && n == 0:
		return early, tooOld(c, 0)
	case err != nil:
		return early, closedError(c, err)
	}
	a, err := parseAck(answer[:])
	if err != nil {
		return early, fault.Failf("check which program listens on that port there", "iperf2: calling %s: not an iperf2 server", c.RemoteAddr())
	}
	if backward && a.version < firstReverse {
		return early, tooOld(c, a.version)
	}
	s.mu.Lock()
	s.peer = a.version
	s.mu.Unlock()
	if backward { // the server sends from now on
		early.Since = time.Now().UnixNano()
	}
	return early, nil
}

// tooOld returns the error for a server that does not support reverse and bidirectional tests.
func tooOld(c net.Conn, v version) error {
	who := v.program()
	if v == 0 {
		who = "the iperf there"
	}
	return fault.Failf("measure towards it with --one-way; for the other direction run iperf -c there, towards thru serve --iperf here",
		"iperf2: calling %s: %s cannot send to its client (2.1 and newer can)", c.RemoteAddr(), who)
}

func closedError(c net.Conn, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || sock.Is(err, syscall.ECONNRESET) || sock.Is(err, syscall.EPIPE) {
		return fault.Failf("check the server: it may require a key (--permit-key), accept no more clients (-1, -P), or not be iperf2", "iperf2: calling %s: it closed the connection", c.RemoteAddr())
	}
	return fault.Failf("", "iperf2: calling %s: %w", c.RemoteAddr(), err)
}

// announce sends the first datagram of a stream, repeatedly where the server drops it, so that a socket is ready there for the others.
func (s *session) announce(c net.Conn, h header) (worker.Early, error) {
	b := make([]byte, max(int(h.length), datagramSize))
	var err error
	for range mostAnnounced {
		copy(b, h.append(appendNumber(nil, 1, sinceEpoch())))
		_, err = c.Write(b)
		if err == nil {
			c.SetReadDeadline(time.Now().Add(announceWait))
			_, err = c.Read(make([]byte, largestUDP)) // an ack of 2.0.13, or nothing
		}
		switch {
		case sock.Is(err, syscall.ECONNREFUSED):
			time.Sleep(askEvery)
		case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
			return worker.Early{Packets: 1, Bytes: int64(len(b)), Highest: 1}, nil
		default:
			return worker.Early{}, fault.Failf("", "iperf2: calling %s: %w", c.RemoteAddr(), err)
		}
	}
	return worker.Early{}, notListening(c)
}

func notListening(c net.Conn) error {
	return fault.Failf("start `iperf -s -u` there: a TCP server receives no datagrams", "iperf2: calling %s: no program receives datagrams there", c.RemoteAddr())
}

// ask makes a server send datagrams: it repeats the request until the first one arrives.
func (s *session) ask(c net.Conn, h header) (worker.Early, error) {
	b := make([]byte, largestUDP)
	refused := 0
	for give := time.Now().Add(askWait); time.Now().Before(give) && refused < mostAnnounced; {
		request := h.append(appendNumber(b[:0], 1, sinceEpoch()))
		request = request[:max(len(request), int(h.length))]
		if _, err := c.Write(request); err != nil && !sock.Is(err, syscall.ECONNREFUSED) {
			return worker.Early{}, fault.Failf("", "iperf2: calling %s: %w", c.RemoteAddr(), err)
		}
		c.SetReadDeadline(time.Now().Add(askEvery))
		n, err := c.Read(b)
		if sock.Is(err, syscall.ECONNREFUSED) {
			refused++
			time.Sleep(askEvery)
		}
		first, ok := parseNumber(b[:n])
		if err != nil || !ok || n < datagramSize || first <= 0 {
			continue
		}
		now := time.Now().UnixNano()
		return worker.Early{Packets: 1, Bytes: int64(n), Highest: uint64(first), Since: now, Until: now}, nil
	}
	if refused == mostAnnounced {
		return worker.Early{}, notListening(c)
	}
	return worker.Early{}, fault.Failf("use iperf 2.1 or newer with -s -u, and allow UDP in both directions in the firewalls; or measure towards it with --one-way",
		"iperf2: calling %s: no datagrams arrived", c.RemoteAddr())
}

func sinceEpoch() time.Duration { return time.Duration(time.Now().UnixNano()) }
