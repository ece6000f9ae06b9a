package sock

import "net"

// UDPHeaders returns the size of the IP and UDP headers of a datagram to an address, in bytes, without IP options.
func UDPHeaders(a net.Addr) int {
	var ip net.IP
	switch a := a.(type) {
	case *net.UDPAddr:
		ip = a.IP
	case *net.TCPAddr:
		ip = a.IP
	}
	if len(ip) == net.IPv6len && ip.To4() == nil {
		return 40 + 8
	}
	return 20 + 8
}

// DatagramRoom returns the largest payload of a datagram to a connection's peer that needs no fragmentation; 0 where the path MTU is unknown or unusual, such
// as loopback's.
func DatagramRoom(c net.Conn) int64 {
	const jumbo = 9216
	mtu, headers := Read(c, PathMTU), UDPHeaders(c.RemoteAddr())
	if mtu > jumbo || mtu <= headers {
		return 0
	}
	return int64(mtu - headers)
}
