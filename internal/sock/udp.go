package sock

import "net"

// UDPHeaders is what IP and UDP add to a datagram towards an address, in
// bytes, without IP options.
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

// DatagramRoom is what a datagram to the peer of a connection may carry without being
// split; 0 where the MTU of the path is unknown or no usual one, such as loopback's.
func DatagramRoom(c net.Conn) int64 {
	const jumbo = 9216
	mtu, headers := Read(c, PathMTU), UDPHeaders(c.RemoteAddr())
	if mtu > jumbo || mtu <= headers {
		return 0
	}
	return int64(mtu - headers)
}
