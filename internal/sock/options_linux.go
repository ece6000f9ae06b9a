package sock

import (
	"errors"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func setUserTimeout(fd uintptr, d time.Duration) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
}

// setLongestRetry sets the older option too: the two shorten different retransmission times.
func setLongestRetry(fd uintptr, d time.Duration) error {
	err := unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_THIN_LINEAR_TIMEOUTS, 1)
	return errors.Join(err, unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS, int(d.Milliseconds())))
}

// AskPeer makes the kernel probe the peer of an idle connection once a second (SO_KEEPALIVE, tcp(7)), for two minutes; a repeated call probes at once.
func AskPeer(fd uintptr) error {
	return errors.Join(
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 1),
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 1),
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 120),
		unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1),
	)
}

func setDevice(fd uintptr, dev string) error { return unix.BindToDevice(int(fd), dev) }

func setCongestion(fd uintptr, name string) error {
	return unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
}

// setDSCP sets both families on an IPv6 socket, because it may carry mapped IPv4.
func setDSCP(fd uintptr, dscp int, ipv6 bool) error {
	err := unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, dscp<<2)
	if ipv6 {
		return unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_TCLASS, dscp<<2)
	}
	return err
}

// ReadGranted reads the options of fd; unreadable ones stay zero.
func ReadGranted(fd uintptr) Granted {
	var g Granted
	g.SendBuffer, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
	g.RecvBuffer, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	g.MSS, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG)
	cc, _ := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	g.Congestion = strings.TrimRight(cc, "\x00")
	return g
}

// BufferOverhead is the reported size of a socket buffer divided by its usable size: Linux doubles it for its overhead (socket(7)).
const BufferOverhead = 2

// ReadTCPInfo fills b with struct tcp_info and returns the length that the
// kernel wrote, 0 on failure. It does not allocate.
func ReadTCPInfo(fd uintptr, b []byte) int {
	n := uint32(len(b))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&n)), 0)
	if e != 0 {
		return 0
	}
	return int(n)
}

// AvailableCongestion lists the congestion controls of this kernel.
func AvailableCongestion() []string {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}
