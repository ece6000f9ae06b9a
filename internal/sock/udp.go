package sock

import "net"

// UDPHeaders is what IP and UDP add to a datagram towards an address, in
// bytes, without IP options.
func UDPHeaders(a net.Addr) int {
	if u, ok := a.(*net.UDPAddr); ok && u.IP.To4() == nil {
		return 40 + 8
	}
	return 20 + 8
}
