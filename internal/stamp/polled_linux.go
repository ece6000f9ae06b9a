package stamp

import (
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"thru/internal/sock"
)

// polled is a socket that the runtime does not watch: no packet wakes this process.
type polled struct {
	*socket
	fd     int
	isBoth bool // of both families
	closed bool
}

// polledOf returns the socket in its polled form, which replaces it; or the socket where the kernel does not note arrivals.
func polledOf(s *socket) packetConn {
	if s.plain != nil {
		return s
	}
	p := &polled{socket: s, fd: -1, isBoth: s.local().Addr().Is6()}
	err := sock.Reach(s.conn, func(fd uintptr) (err error) {
		p.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) // like the original, it does not block
		return err
	})
	if err != nil {
		return s
	}
	s.conn.Close()
	return p
}

func (p *polled) isPolled() bool { return true }

// Close implements packetConn.
func (p *polled) Close() error {
	p.closed = true
	return unix.Close(p.fd)
}

func (p *polled) send(b []byte, to netip.AddrPort, from netip.Addr) error {
	if p.closed {
		return net.ErrClosed
	}
	for {
		err := unix.Sendmsg(p.fd, b, p.control(from), p.sockaddr(to), 0)
		if err != unix.EINTR {
			return err
		}
	}
}

func (p *polled) receive(b []byte) (int, netip.AddrPort, sock.Header, error) {
	var none netip.AddrPort
	for !p.closed {
		n, control, _, from, err := unix.Recvmsg(p.fd, b, p.in, 0)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, none, sock.Header{}, err
		default:
			return n, addrPortOf(from), sock.ParseHeader(p.in[:control]), nil
		}
	}
	return 0, none, sock.Header{}, net.ErrClosed
}

// sockaddr returns an address in the kernel's form for this socket.
func (p *polled) sockaddr(a netip.AddrPort) unix.Sockaddr {
	if !p.isBoth {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().Unmap().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: zoneID(a.Addr().Zone())}
}

// zoneID returns the index of the interface of a link-local address.
func zoneID(zone string) uint32 {
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n)
	}
	if i, err := net.InterfaceByName(zone); zone != "" && err == nil {
		return uint32(i.Index)
	}
	return 0
}

func addrPortOf(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		addr := netip.AddrFrom16(a.Addr).Unmap()
		if a.ZoneId != 0 {
			addr = addr.WithZone(strconv.Itoa(int(a.ZoneId)))
		}
		return netip.AddrPortFrom(addr, uint16(a.Port))
	}
	return netip.AddrPort{}
}
