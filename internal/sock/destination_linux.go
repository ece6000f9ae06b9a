package sock

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// WantDestination makes the kernel report with each datagram at which of this host's addresses it arrived: Header.Local (IP_PKTINFO, ip(7); IPV6_RECVPKTINFO,
// ipv6(7)).
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
