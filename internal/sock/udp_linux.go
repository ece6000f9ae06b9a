package sock

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SetUDPSegment makes the kernel split the data of one call into datagrams of n bytes (UDP_SEGMENT, udp(7), since Linux 4.18); 0 switches it off.
func SetUDPSegment(fd uintptr, n int) error {
	if err := unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, n); err != nil {
		return fmt.Errorf("sock: setting UDP_SEGMENT: %w", err)
	}
	return nil
}

// SetUDPGRO lets one call receive several consecutive datagrams of one size (UDP_GRO, udp(7), since Linux 5.0).
func SetUDPGRO(fd uintptr, on bool) error {
	v := 0
	if on {
		v = 1
	}
	if err := unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, v); err != nil {
		return fmt.Errorf("sock: setting UDP_GRO: %w", err)
	}
	return nil
}

// SetPacing limits the kernel's sending rate on a socket, in bit/s of payload (SO_MAX_PACING_RATE, socket(7)). TCP spaces its segments by itself; UDP needs
// the queueing discipline fq.
func SetPacing(fd uintptr, bps int64) error {
	rate := uint64(max(bps/8, 1))
	_, _, e := unix.Syscall6(unix.SYS_SETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE,
		uintptr(unsafe.Pointer(&rate)), unsafe.Sizeof(rate), 0)
	if e != 0 {
		return fmt.Errorf("sock: setting SO_MAX_PACING_RATE: %w", e)
	}
	// Limit the unsent data in the socket (tcp(7)).
	const ahead = 50 // fraction of a second
	unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, max(int(rate/ahead), 16<<10))
	return nil
}

// PathMTU returns the path MTU that the kernel assumes for a connected socket (IP_MTU, ip(7)); 0: unknown.
func PathMTU(fd uintptr) int {
	if family, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil && family == unix.AF_INET6 {
		if n, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU); err == nil {
			return n
		}
	}
	n, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU)
	if err != nil {
		return 0
	}
	return n
}

// Drops returns how many datagrams a full socket buffer has dropped (SO_MEMINFO, since Linux 4.12); false where the kernel does not report it. It does not
// allocate.
func Drops(fd uintptr) (int64, bool) {
	v, n := memInfo(fd)
	return int64(v[memInfoDrops]), n > memInfoDrops
}

// SendQueued returns the use of a socket's send buffer, including the kernel's overhead, in bytes (SO_MEMINFO); negative where the kernel does not report it.
func SendQueued(fd uintptr) int64 {
	v, n := memInfo(fd)
	if n <= memQueued {
		return -1
	}
	return int64(v[memQueued])
}

// memInfo reads the memory figures of a socket; n of them are known.
func memInfo(fd uintptr) (v [memInfoVars + 3]uint32, n int) {
	size := uint32(unsafe.Sizeof(v))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&v)), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return v, 0
	}
	return v, int(size) / 4
}

// Queued returns how many bytes of a socket the peer's kernel has not acknowledged, or of UDP have not been sent (SIOCOUTQ, tcp(7), udp(7)).
func Queued(fd uintptr) int {
	n, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return n
}

// Unread returns how many received bytes of a TCP socket the program has not read yet (SIOCINQ, tcp(7)); false where the kernel does not report it. It does
// not allocate.
func Unread(fd uintptr) (int, bool) {
	n, err := unix.IoctlGetInt(int(fd), unix.SIOCINQ)
	return n, err == nil
}

// IncomingCPU returns the CPU on which the kernel last received a packet of the socket (SO_INCOMING_CPU, socket(7)); nil where it is not known.
func IncomingCPU(fd uintptr) *int {
	n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_INCOMING_CPU)
	if err != nil || n < 0 {
		return nil
	}
	return &n
}

// setDontFragment sets DF and makes the kernel refuse datagrams above the path MTU (IP_MTU_DISCOVER, ip(7)), on both families of an IPv6 socket.
func setDontFragment(fd uintptr, ipv6 bool) error {
	err := unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
	if ipv6 {
		return unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO)
	}
	return err
}
