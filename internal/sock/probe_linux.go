package sock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SaveSYN makes the kernel keep the SYN of each connection that a socket accepts (TCP_SAVE_SYN, since Linux 4.2).
func SaveSYN(fd uintptr) error {
	if err := unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_SAVE_SYN, 1); err != nil {
		return fmt.Errorf("sock: setting TCP_SAVE_SYN: %w", err)
	}
	return nil
}

// SavedSYN returns the headers of the SYN that opened a connection, starting with IP; the kernel returns them once. They are empty where the kernel has
// answered with a SYN cookie.
func SavedSYN(fd uintptr) ([]byte, error) {
	b := make([]byte, 512) // IP and TCP headers with all options are 120 at most
	n := uint32(len(b))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_SAVED_SYN,
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&n)), 0)
	if e != 0 {
		return nil, fmt.Errorf("sock: reading TCP_SAVED_SYN: %w", e)
	}
	return b[:min(int(n), len(b))], nil
}

// HeaderRoom is the buffer size for control messages that ReadMsgUDP needs for ParseHeader.
const HeaderRoom = 128

// SetProbe prepares a UDP socket for probes of the IP header. Its datagrams are sent unfragmented or not at all, whatever path MTU the kernel assumes
// (IP_PMTUDISC_PROBE), with ProbeTTL. Received datagrams come with their header, and the kernel keeps routers' ICMP messages for TooBig (IP_RECVERR). See
// ip(7), ipv6(7).
func SetProbe(fd uintptr, ipv6 bool) error {
	type option struct{ level, name, value int }
	options := []option{
		{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE}, {unix.IPPROTO_IP, unix.IP_TTL, ProbeTTL},
		{unix.IPPROTO_IP, unix.IP_RECVTTL, 1}, {unix.IPPROTO_IP, unix.IP_RECVTOS, 1}, {unix.IPPROTO_IP, unix.IP_RECVERR, 1},
	}
	fragments := option{unix.IPPROTO_IP, unix.IP_RECVFRAGSIZE, 1}
	if ipv6 {
		options = []option{
			{unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE}, {unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, ProbeTTL},
			{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1}, {unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1}, {unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1},
		}
		fragments = option{unix.IPPROTO_IPV6, unix.IPV6_RECVFRAGSIZE, 1}
	}
	// Kernels before 4.11 do not have it; there a router that clears DF stays undetected.
	_ = unix.SetsockoptInt(int(fd), fragments.level, fragments.name, fragments.value)
	for _, o := range options {
		if err := unix.SetsockoptInt(int(fd), o.level, o.name, o.value); err != nil {
			return fmt.Errorf("sock: preparing a socket for probes (option %d of level %d): %w", o.name, o.level, err)
		}
	}
	return nil
}

// ParseHeader reads the control messages of a datagram.
func ParseHeader(oob []byte) Header {
	h := Header{TOS: -1, TTL: -1, Fragment: 0}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return h
	}
	for _, m := range messages {
		v := number(m.Data)
		switch [2]int32{m.Header.Level, m.Header.Type} {
		case [2]int32{unix.IPPROTO_IP, unix.IP_TOS}, [2]int32{unix.IPPROTO_IPV6, unix.IPV6_TCLASS}:
			h.TOS = v
		case [2]int32{unix.IPPROTO_IP, unix.IP_TTL}, [2]int32{unix.IPPROTO_IPV6, unix.IPV6_HOPLIMIT}:
			h.TTL = v
		case [2]int32{unix.IPPROTO_IP, unix.IP_RECVFRAGSIZE}, [2]int32{unix.IPPROTO_IPV6, unix.IPV6_RECVFRAGSIZE}:
			h.Fragment = max(v, 0)
		}
	}
	return h
}

// number reads a C int, or a byte (IP_TOS comes as one); -1 for other sizes.
func number(b []byte) int {
	switch {
	case len(b) >= 4:
		return int(int32(binary.NativeEndian.Uint32(b)))
	case len(b) >= 1:
		return int(b[0])
	}
	return -1
}

// MarkControl returns the control message that sends a datagram with its own TOS byte, or traffic class.
func MarkControl(ipv6 bool, tos int) []byte {
	b := make([]byte, unix.CmsgSpace(4))
	if ipv6 {
		putHeader(b, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, 4)
	} else {
		putHeader(b, unix.IPPROTO_IP, unix.IP_TOS, 4)
	}
	binary.NativeEndian.PutUint32(b[unix.CmsgLen(0):], uint32(tos))
	return b
}

// putHeader writes the header of a control message with n bytes of data (cmsg(3)).
func putHeader(b []byte, level, kind int32, n int) {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(n))
}

// TooBig empties the error queue of a socket. It returns the MTUs that routers have reported since the last call (RFC 1191, RFC 8201); 0 stands for a router
// that reported none.
func TooBig(fd uintptr) []int {
	var all []int
	p, oob := make([]byte, 1), make([]byte, 512)
	for range 1000 { // a limit; the kernel's queue holds less
		_, n, _, _, err := unix.Recvmsg(int(fd), p, oob, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			break
		}
		if mtu, ok := parseTooBig(oob[:n]); ok {
			all = append(all, mtu)
		}
	}
	return all
}

// parseTooBig reads struct sock_extended_err (include/uapi/linux/errqueue.h).
func parseTooBig(oob []byte) (mtu int, ok bool) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		isErr := m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_RECVERR ||
			m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_RECVERR
		if !isErr || len(m.Data) < int(unsafe.Sizeof(unix.SockExtendedErr{})) {
			continue
		}
		errno, origin, info := binary.NativeEndian.Uint32(m.Data), m.Data[4], binary.NativeEndian.Uint32(m.Data[8:])
		router := origin == unix.SO_EE_ORIGIN_ICMP || origin == unix.SO_EE_ORIGIN_ICMP6
		if router && unix.Errno(errno) == unix.EMSGSIZE {
			return int(info), true
		}
	}
	return 0, false
}

// ReadStack reads the settings of the network namespace
// (Documentation/networking/ip-sysctl.rst).
func ReadStack() Stack {
	var s Stack
	is := func(file, values string) *bool {
		b, err := os.ReadFile("/proc/sys/net/ipv4/" + file)
		v := strings.TrimSpace(string(b))
		if err != nil || len(v) != 1 {
			return nil
		}
		return new(strings.Contains(values, v))
	}
	s.WindowScaling, s.SACK, s.Timestamps = is("tcp_window_scaling", "1"), is("tcp_sack", "1"), is("tcp_timestamps", "12")
	s.ECN = is("tcp_ecn", "134") // with other values it only answers
	s.MTUProbing = is("tcp_mtu_probing", "2")
	return s
}
