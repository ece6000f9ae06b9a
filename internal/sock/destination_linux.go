package sock

import (
	"errors"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// DestinationRoom is the buffer size for control messages that ReadMsgUDP needs for Destination.
const DestinationRoom = 128

// WantDestination makes the kernel report with each datagram at which of this host's addresses it arrived (IP_PKTINFO, ip(7); IPV6_RECVPKTINFO, ipv6(7)).
func WantDestination(c *net.UDPConn) error {
	return Reach(c, func(fd uintptr) error {
		four := unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		six := unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		if four != nil && six != nil {
			return errors.Join(four, six)
		}
		return nil
	})
}

// Destination reads that address from the control messages of a datagram.
func Destination(oob []byte) (netip.Addr, bool) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return netip.Addr{}, false
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			return netip.AddrFrom4([4]byte(m.Data[4:8])), true
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo:
			return netip.AddrFrom16([16]byte(m.Data[:16])).Unmap(), true
		}
	}
	return netip.Addr{}, false
}
