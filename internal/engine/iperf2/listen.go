package iperf2

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/measure"
	"thru/internal/sock"
)

// listen reads the datagrams of sources that have no own socket yet.
func (d *Server) listen(ctx context.Context, u *net.UDPConn) error {
	sock.WantDestination(u) // else the route to the client decides which of our addresses answers
	local := u.LocalAddr().(*net.UDPAddr).AddrPort()
	b, oob := make([]byte, largestUDP), make([]byte, sock.HeaderRoom)
	for {
		n, more, _, from, err := u.ReadMsgUDPAddrPort(b, oob)
		switch {
		case ctx.Err() != nil, errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			continue // ICMP error of an earlier answer that found no receiver
		}
		to := local
		if a := sock.ParseHeader(oob[:more]).Local; a.IsValid() {
			to = netip.AddrPortFrom(a.WithZone(from.Addr().Zone()), local.Port())
		}
		d.datagram(from, to, b[:n])
	}
}

// settleWait is how long settle waits at most, where the port drops its datagram.
const settleWait = 200 * time.Millisecond

// settle waits until all datagrams are counted that came before their source got a socket of its own. On a busy host they wait in the
// queue of the port, before a datagram that is sent to it now.
func (d *Server) settle() {
	d.mu.Lock()
	ports := d.ports
	d.mu.Unlock()
	for _, u := range ports {
		c, err := net.DialUDP("udp", nil, u.LocalAddr().(*net.UDPAddr))
		if err != nil {
			continue
		}
		own, read := c.LocalAddr().(*net.UDPAddr).AddrPort(), make(chan struct{})
		own = netip.AddrPortFrom(own.Addr().Unmap(), own.Port())
		d.mu.Lock()
		d.marks[own] = read
		d.mu.Unlock()
		if _, err := c.Write(make([]byte, datagramSize)); err == nil {
			select {
			case <-read:
			case <-time.After(settleWait):
			}
		}
		c.Close()
		d.mu.Lock()
		delete(d.marks, own)
		d.mu.Unlock()
	}
}

// datagram counts a datagram of a known source, and opens a socket for a new source.
func (d *Server) datagram(from, to netip.AddrPort, b []byte) {
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	number, ok := parseNumber(b)
	if !ok {
		return
	}
	d.mu.Lock()
	if read := d.marks[from]; read != nil {
		delete(d.marks, from)
		close(read)
		d.mu.Unlock()
		return
	}
	s := d.sources[from]
	fresh := s == nil && number >= 0 && len(d.sources) < d.conf.MaxCalls*d.conf.Limits.streams()
	if fresh {
		s = &source{server: d, from: from, over: make(chan struct{})}
		d.sources[from] = s
	}
	d.mu.Unlock()
	if s == nil {
		return // a final datagram of a finished test, or a flood
	}
	s.stillSends()
	s.count(b)
	if fresh {
		time.AfterFunc(proofTime, s.forgetUnproven)
		if err := s.testOf(b).refusal(d.conf.Limits); err != nil {
			s.forgetUnproven()
			d.report(from, err)
			return
		}
	}
	if !s.isProven() {
		return
	}
	if err := s.open(to, b); err != nil {
		s.close()
		d.report(from, err)
	}
}

// proofTime is how long a source may take for its second datagram. Without it the source gets no test: a single datagram may be junk.
const proofTime = 15 * time.Second

// isProven returns true once, when a source has sent a second number.
func (s *source) isProven() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proven || s.early.Packets == 0 || s.early.Highest == s.lowest && s.early.Last == 0 {
		return false
	}
	s.proven = true
	return true
}

// isAnybodys reports whether a source has a socket, or is about to get one.
func (s *source) isAnybodys() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proven
}

func (s *source) forgetUnproven() {
	s.mu.Lock()
	proven := s.proven
	s.proven = true // what arrives now is too late, and belongs to a forgotten source
	s.mu.Unlock()
	if !proven {
		s.forget()
	}
}

// source is a UDP client's stream from its first datagram on. This package reads it until a worker takes it over, because a socket's buffer holds little.
type source struct {
	server *Server
	from   netip.AddrPort
	conn   *net.UDPConn
	over   chan struct{} // closed when this package no longer reads it

	mu     sync.Mutex
	early  worker.Early
	lowest uint64      // number of the first datagram
	proven bool        // it has sent a second one
	frozen bool        // handed over
	quiet  *time.Timer // where it is ignored: forgets it
}

// open makes the socket that receives this source's further datagrams: the kernel prefers a connected one.
func (s *source) open(to netip.AddrPort, b []byte) error {
	t := s.testOf(b)
	if err := t.refusal(s.server.conf.Limits); err != nil {
		return err
	}
	local := net.UDPAddrFromAddrPort(to)
	if to.Addr().IsUnspecified() {
		local.IP = nil
	}
	dialer := net.Dialer{Control: sock.Options{ReuseAddr: true, RecvBuffer: engine.DatagramBuffer}.Control, LocalAddr: local}
	c, err := dialer.Dial("udp", s.from.String())
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.conn = c.(*net.UDPConn)
	s.mu.Unlock()
	go s.read()
	return s.server.join(s.from, t, s)
}

// testOf returns the test that a datagram of this source requests: each has the whole header.
func (s *source) testOf(b []byte) test {
	t := test{protocol: measure.UDP, length: len(b), numbering: numbering(b), firstNumber: 1}
	if s.lowest == 0 { // before 2.0.14 they begin with 0
		t.firstNumber = 0
	}
	if len(b) > datagramSize {
		if h, err := parseHeader(b[datagramSize:]); err == nil {
			t.header = h
		}
	}
	return t
}

// read counts datagrams until the stream is handed over. Datagrams of other sources may arrive between the bind and the connect of the socket.
func (s *source) read() {
	defer close(s.over)
	b := make([]byte, largestUDP)
	local := s.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(b)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			continue
		case netip.AddrPortFrom(from.Addr().Unmap(), from.Port()) != s.from:
			s.server.datagram(from, local, b[:n])
		default:
			s.count(b[:n])
		}
	}
}

// count counts one datagram.
func (s *source) count(b []byte) {
	number, ok := parseNumber(b)
	now := time.Now().UnixNano()
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &s.early
	switch {
	case !ok || s.frozen || e.Last != 0:
		return
	case number < 0:
		e.Last = uint64(number)
		return
	case e.Packets == 0:
		e.Since, s.lowest = now, uint64(number)
	}
	e.Packets++
	e.Bytes += int64(len(b))
	e.Highest = max(e.Highest, uint64(number))
	e.Until = now
}

// handOver implements stream.
func (s *source) handOver() worker.Conn {
	s.conn.SetReadDeadline(time.Unix(1, 0))
	<-s.over
	s.conn.SetReadDeadline(time.Time{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = true
	return worker.Conn{Conn: s.conn, Early: s.early}
}

func (s *source) connection() net.Conn { return s.conn }

// close forgets the source; its next datagram counts as a new client.
func (s *source) close() {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c != nil {
		c.Close()
		<-s.over
	}
	s.mu.Lock()
	ignored := s.quiet != nil
	s.mu.Unlock()
	if !ignored {
		s.forget()
	}
}

// ignore makes the server ignore this source until it is silent for a while, so that the rest of an ended test starts no new one.
func (s *source) ignore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quiet == nil {
		s.quiet = time.AfterFunc(ignoreTime, s.forget)
	}
}

// stillSends postpones the end of the time for which a source is ignored.
func (s *source) stillSends() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quiet != nil {
		s.quiet.Reset(ignoreTime)
	}
}

func (s *source) forget() {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.sources[s.from] == s {
		delete(s.server.sources, s.from)
	}
}

// numbering returns how a client numbers its datagrams, from its first one.
func numbering(first []byte) worker.Numbering {
	if len(first) >= datagramSize+flagsSize && binary.BigEndian.Uint32(first[datagramSize:])&flagNumber64 != 0 {
		return worker.NumberStampHigh
	}
	return worker.NumberStamp
}
