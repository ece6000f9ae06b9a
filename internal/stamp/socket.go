package stamp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"thru/internal/sock"
)

// sentTTL is the TTL, or hop limit, of all packets (RFC 5357, 4.1.2): a packet that arrives with less has passed routers.
const sentTTL = 255

// Hops returns how many routers a packet has passed that arrived with a TTL; false where that is not known.
func Hops(ttl uint8) (int, bool) { return sentTTL - int(ttl), ttl > 0 }

// packetConn sends and receives packets. Each method is used by one goroutine at a time.
//
// To be woken for each packet costs far more than the packet itself. So where the kernel notes when packets arrive, they are read in batches (isPolled).
type packetConn interface {
	// send sends a packet from an address of this host, unless that is invalid.
	send(b []byte, to netip.AddrPort, from netip.Addr) error
	// receive returns the next packet. Without one it waits, or if the connection isPolled returns an error. After Close its error is net.ErrClosed.
	receive(b []byte) (n int, from netip.AddrPort, h sock.Header, err error)
	isPolled() bool
	Close() error
}

// receiveRoom is the buffer for packets that were not read yet; the kernel may give less.
const receiveRoom = 1 << 20

// socket is a UDP socket of both families, where the host has both.
type socket struct {
	conn    *net.UDPConn
	in, out []byte // control messages
	plain   error  // why it neither sets nor reads the IP header; nil: it does
}

func (s *socket) isPolled() bool { return false }

// openSocket opens a socket at an address ("" means all of them) and a port (0 means any).
func openSocket(ctx context.Context, host string, port int, device string) (*socket, error) {
	lc := net.ListenConfig{Control: sock.Options{Device: device, RecvBuffer: receiveRoom}.Control}
	c, err := lc.ListenPacket(ctx, "udp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	s := &socket{conn: c.(*net.UDPConn), in: make([]byte, sock.HeaderRoom), out: make([]byte, 0, sock.HeaderRoom)}
	both := s.local().Addr().Is6()
	s.plain = sock.Reach(s.conn, func(fd uintptr) error { return sock.SetHeaders(fd, both, sentTTL) })
	return s, nil
}

func (s *socket) local() netip.AddrPort { return s.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// Close implements packetConn.
func (s *socket) Close() error { return s.conn.Close() }

func (s *socket) send(b []byte, to netip.AddrPort, from netip.Addr) error {
	_, _, err := s.conn.WriteMsgUDPAddrPort(b, s.control(from), to)
	return err
}

// control returns the control messages of a packet. They are valid until the next call.
func (s *socket) control(from netip.Addr) []byte {
	if s.plain != nil || !from.IsValid() {
		return nil
	}
	return sock.AppendSource(s.out[:0], from)
}

func (s *socket) receive(b []byte) (n int, from netip.AddrPort, h sock.Header, err error) {
	n, control, _, from, err := s.conn.ReadMsgUDPAddrPort(b, s.in) // a packet that is cut is shorter than its TLV says, and has no valid reply
	if err != nil {
		return 0, from, h, err
	}
	return n, netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), sock.ParseHeader(s.in[:control]), nil
}

// readAll passes on all packets until the connection is closed.
func readAll(c packetConn, take func(b []byte, from netip.AddrPort, h sock.Header)) {
	b := make([]byte, maxPacket)
	for {
		n, from, h, err := c.receive(b)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // ICMP error of an earlier packet
			time.Sleep(time.Millisecond)
		default:
			take(b[:n], from, h)
		}
	}
}

// mostDrained bounds the packets of one batch: a flood must not keep its reader from all else.
const mostDrained = 4096

// drain passes on the packets that have arrived at a polled connection, and returns their number.
func drain(c packetConn, b []byte, take func(b []byte, from netip.AddrPort, h sock.Header)) int {
	for i := range mostDrained {
		n, from, h, err := c.receive(b)
		if err != nil {
			return i
		}
		take(b[:n], from, h)
	}
	return mostDrained
}

// missing words why TTL, kernel time stamps and the MTU are not measured here.
func (s *socket) missing() error {
	if s.plain == nil {
		return nil
	}
	return fmt.Errorf("stamp: reading the IP header of packets: %w", s.plain)
}
