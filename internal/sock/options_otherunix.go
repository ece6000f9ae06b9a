//go:build unix && !linux

package sock

import "golang.org/x/sys/unix"

func setDevice(uintptr, string) error { return unsupported("a device") }

func setCongestion(uintptr, string) error { return unsupported("congestion control") }

func setDSCP(fd uintptr, dscp int, ipv6 bool) error {
	if ipv6 {
		return unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_TCLASS, dscp<<2)
	}
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, dscp<<2)
}

// ReadGranted reads the options of fd; unreadable ones stay zero.
func ReadGranted(fd uintptr) Granted {
	var g Granted
	g.SendBuffer, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
	g.RecvBuffer, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	g.MSS, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG)
	return g
}
