package path

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"thru/internal/sock"
)

// A datagram of the probe begins with the cookie, its kind, a data byte, and the numbers of volley and shot, or of round and port; the rest is zero.
const (
	cookieSize   = 8
	datagramSize = cookieSize + 1 + 1 + 2 + 2

	kindForward = 'F' // from the dialling end
	kindBack    = 'B' // from the answering end
	kindAsk     = 'E' // to be returned, with its received TTL as the data byte
	kindEcho    = 'e'
)

// datagram is the header of a datagram.
type datagram struct {
	kind, ttl   byte
	round, shot uint16
}

// appendDatagram appends the header of a datagram.
func appendDatagram(b, cookie []byte, d datagram) []byte {
	b = append(append(b, cookie...), d.kind, d.ttl)
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, d.round), d.shot)
}

// parseDatagram reads it; false where it does not belong to the probe.
func parseDatagram(b, cookie []byte) (datagram, bool) {
	if len(b) < datagramSize || !bytes.Equal(b[:cookieSize], cookie) {
		return datagram{}, false
	}
	r := b[cookieSize:]
	return datagram{r[0], r[1], binary.BigEndian.Uint16(r[2:]), binary.BigEndian.Uint16(r[4:])}, true
}

// headers returns the size of the IP and UDP headers of a datagram, in bytes.
func headers(a netip.Addr) int {
	return sock.UDPHeaders(net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0)))
}

// maxEchoes limits how many datagrams an answering end returns in one probe.
const maxEchoes = 2000

// socket is the UDP socket of one end. A goroutine reads the datagrams from the one host that has presented the token over TCP.
type socket struct {
	conn    *net.UDPConn
	cookie  []byte
	theirs  byte       // kind of the received volleys
	host    netip.Addr // address of the other end
	headers string     // why this socket cannot set and read IP headers; empty: it can

	mu      sync.Mutex
	peer    netip.AddrPort // destination; an answering end learns it from the first datagram
	got     map[uint16]map[arrivalKey]arrival
	echoes  int
	said    routers
	news    chan struct{}
	stopped sync.WaitGroup
}

// arrivalKey distinguishes the copies of a shot.
type arrivalKey struct{ shot, copy int }

// openSocket binds a socket to this end's address of the TCP connection with a host, and reads the datagrams of that host that begin with the cookie. peer is
// the destination, if known.
func openSocket(ctx context.Context, local netip.AddrPort, host netip.Addr, peer netip.AddrPort, device string, cookie []byte, theirs byte) (*socket, error) {
	conn, headers, err := bindUDP(ctx, local, device)
	if err != nil {
		return nil, err
	}
	s := &socket{
		conn: conn, cookie: cookie, theirs: theirs, host: host, peer: peer, headers: headers,
		got: map[uint16]map[arrivalKey]arrival{}, news: make(chan struct{}, 1),
	}
	s.stopped.Go(s.receive)
	return s, nil
}

// bindUDP opens a UDP socket for probes, as far as this system supports it; headers says why it cannot set and read IP headers.
func bindUDP(ctx context.Context, local netip.AddrPort, device string) (conn *net.UDPConn, headers string, err error) {
	network, ipv6 := "udp4", local.Addr().Is6()
	if ipv6 {
		network = "udp6"
	}
	// Some probes are as large as an interface allows (loopback: 64 KB).
	lc := net.ListenConfig{Control: sock.Options{Device: device, RecvBuffer: 1 << 20, SendBuffer: 1 << 20}.Control}
	pc, err := lc.ListenPacket(ctx, network, net.JoinHostPort(local.Addr().String(), strconv.Itoa(int(local.Port()))))
	if err != nil {
		return nil, "", fmt.Errorf("path: opening a UDP socket: %w", err)
	}
	conn = pc.(*net.UDPConn)
	if err := sock.Reach(conn, func(fd uintptr) error { return sock.SetProbe(fd, ipv6) }); err != nil {
		headers = err.Error()
	}
	return conn, headers, nil
}

// close also ends the goroutine.
func (s *socket) close() {
	if s != nil {
		s.conn.Close()
		s.stopped.Wait()
	}
}

// receive reads datagrams until the socket is closed. Errors come from ICMP messages about sent datagrams; a long series of errors has another cause and ends
// it.
func (s *socket) receive() {
	b, oob := make([]byte, maxPacket), make([]byte, sock.HeaderRoom)
	for failed := 0; failed < 10_000; {
		n, oobn, _, from, err := s.conn.ReadMsgUDPAddrPort(b, oob)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			failed++
			s.listenToRouters()
			continue
		}
		failed = 0
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		d, ok := parseDatagram(b[:n], s.cookie)
		if !ok || from.Addr() != s.host {
			continue
		}
		h := sock.ParseHeader(oob[:oobn])
		switch {
		case d.kind == s.theirs:
			s.note(d, h, from)
		case d.kind == kindAsk && s.theirs == kindForward:
			s.echo(d, h, from)
		}
	}
}

// note stores an arrival, and the source address of the first one.
func (s *socket) note(d datagram, h sock.Header, from netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.peer.IsValid() {
		s.peer = from
	}
	if from != s.peer || d.round >= maxVolleys {
		return
	}
	seen := s.got[d.round]
	if seen == nil {
		seen = map[arrivalKey]arrival{}
		s.got[d.round] = seen
	}
	if len(seen) < maxShots {
		seen[arrivalKey{int(d.shot), int(d.ttl)}] = arrival{Shot: int(d.shot), TOS: h.TOS, TTL: h.TTL, Frag: h.Fragment}
	}
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// echo returns a datagram to its source, with the TTL that it had on arrival.
func (s *socket) echo(d datagram, h sock.Header, from netip.AddrPort) {
	if s.echoes++; s.echoes > maxEchoes {
		return
	}
	d.kind, d.ttl = kindEcho, byte(max(h.TTL, 0))
	s.conn.WriteToUDPAddrPort(appendDatagram(nil, s.cookie, d), from)
}

// listenToRouters stores the routers' reports about datagrams that were too big.
func (s *socket) listenToRouters() {
	all := sock.Read(s.conn, sock.TooBig)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range all {
		s.said.add(routers{TooBig: true, Router: r.MTU, At: r.From})
	}
}

// routersSaid returns what routers have reported so far.
func (s *socket) routersSaid() routers {
	s.listenToRouters()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said
}

// target returns the destination; an answering end has none before the first datagram.
func (s *socket) target() netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peer
}

// await waits until that many datagrams of a volley have arrived, or the time is over. It returns the arrivals.
func (s *socket) await(ctx context.Context, round uint16, want int, settle time.Duration) []arrival {
	end := time.NewTimer(settle)
	defer end.Stop()
	for {
		if all := s.arrivals(round); len(all) >= want {
			return all
		}
		select {
		case <-s.news:
		case <-end.C:
			return s.arrivals(round)
		case <-ctx.Done():
			return s.arrivals(round)
		}
	}
}

// arrivals returns the arrivals of a volley so far.
func (s *socket) arrivals(round uint16) []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.got[round]))
}

// awaitPeer waits for the first datagram.
func (s *socket) awaitPeer(ctx context.Context, settle time.Duration) bool {
	end := time.NewTimer(settle)
	defer end.Stop()
	for !s.target().IsValid() {
		select {
		case <-s.news:
		case <-end.C:
			return s.target().IsValid()
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// fire sends the shots of a volley: first one copy of each, then the next, so that a short outage does not drop all copies of one. The returned report lacks
// the other end's arrivals.
func (s *socket) fire(ctx context.Context, round uint16, shots []shot, gap time.Duration) report {
	var r report
	to, kind := s.target(), byte(kindForward)
	if s.theirs == kindForward {
		kind = kindBack
	}
	refused := map[int]bool{}
	next := time.Now()
	for pass, left := 0, true; left && ctx.Err() == nil; pass++ {
		left = false
		for i, sh := range shots {
			if pass >= sh.Copies || refused[i] {
				continue
			}
			left = true
			next = pause(next, max(gap, bigGap(sh.Size)))
			b := make([]byte, max(sh.Size-headers(to.Addr()), datagramSize))
			appendDatagram(b[:0], s.cookie, datagram{kind, byte(pass), round, uint16(i)})
			err := s.send(b, sh.TOS, to)
			switch {
			case sock.Is(err, syscall.EMSGSIZE):
				refused[i] = true
				r.Refused = append(r.Refused, i)
				continue
			case err != nil:
				r.Error = err.Error()
			}
			r.Sent++
		}
	}
	return r
}

// bigGap spaces large datagrams at 200 Mb/s.
func bigGap(size int) time.Duration { return time.Duration(size) * 8 * time.Second / 200e6 }

// pause waits until the time of the next datagram; later datagrams make up for a late timer.
func pause(next time.Time, gap time.Duration) time.Time {
	if now := time.Now(); next.Before(now.Add(-5 * time.Millisecond)) {
		next = now // far behind: avoid a burst
	}
	// A timer is not more precise than this.
	if wait := time.Until(next); wait > 200*time.Microsecond {
		time.Sleep(wait)
	}
	return next.Add(gap)
}

// send sends one datagram. The kernel may instead return an ICMP error of an earlier one; then send tries again.
func (s *socket) send(b []byte, tos int, to netip.AddrPort) error {
	var oob []byte
	if tos != 0 {
		oob = sock.MarkControl(to.Addr().Is6(), tos)
	}
	var err error
	for range 8 {
		if _, _, err = s.conn.WriteMsgUDPAddrPort(b, oob, to); err == nil || errors.Is(err, net.ErrClosed) {
			break
		}
		s.listenToRouters()
		if sock.Is(err, syscall.ENOBUFS) {
			time.Sleep(time.Millisecond)
		}
	}
	return err
}
