package sock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"
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
const HeaderRoom = 256

// option is an option of a socket with a number as its value.
type option struct{ level, name, value int }

// setAll sets options of a socket.
func setAll(fd uintptr, options []option) error {
	for _, o := range options {
		if err := unix.SetsockoptInt(int(fd), o.level, o.name, o.value); err != nil {
			return fmt.Errorf("sock: preparing a socket for probes (option %d of level %d): %w", o.name, o.level, err)
		}
	}
	return nil
}

// ofHeaders returns the options of a socket for probes of the IP header: its datagrams are sent unfragmented or not at all, whatever path MTU the kernel
// assumes (IP_PMTUDISC_PROBE), with that TTL, and received ones come with their header. See ip(7), ipv6(7).
func ofHeaders(ipv6 bool, ttl int) []option {
	if ipv6 {
		return []option{
			{unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE}, {unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, ttl},
			{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1}, {unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1},
		}
	}
	return []option{
		{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE}, {unix.IPPROTO_IP, unix.IP_TTL, ttl},
		{unix.IPPROTO_IP, unix.IP_RECVTTL, 1}, {unix.IPPROTO_IP, unix.IP_RECVTOS, 1},
	}
}

// SetProbe prepares a UDP socket of one family for probes of the IP header. Its datagrams are sent unfragmented or not at all, with ProbeTTL. Received
// datagrams come with their header, and the kernel keeps routers' ICMP messages for TooBig (IP_RECVERR).
func SetProbe(fd uintptr, ipv6 bool) error {
	icmp, fragments := option{unix.IPPROTO_IP, unix.IP_RECVERR, 1}, option{unix.IPPROTO_IP, unix.IP_RECVFRAGSIZE, 1}
	if ipv6 {
		icmp, fragments = option{unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1}, option{unix.IPPROTO_IPV6, unix.IPV6_RECVFRAGSIZE, 1}
	}
	// Kernels before 4.11 do not have it; there a router that clears DF stays undetected.
	_ = setAll(fd, []option{fragments})
	return setAll(fd, append(ofHeaders(ipv6, ProbeTTL), icmp))
}

// SetHeaders prepares a UDP socket of IPv4, or of both families: its datagrams are sent unfragmented or not at all, with that TTL. Received datagrams come
// with their whole Header.
func SetHeaders(fd uintptr, both bool, ttl int) error {
	options := append(ofHeaders(false, ttl), option{unix.IPPROTO_IP, unix.IP_PKTINFO, 1}, option{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1})
	if both {
		options = append(options, ofHeaders(true, ttl)...)
		options = append(options, option{unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1})
	}
	return setAll(fd, options)
}

// ParseHeader reads the control messages of a datagram. It does not allocate.
func ParseHeader(oob []byte) Header {
	h := Header{TOS: -1, TTL: -1}
	for len(oob) >= unix.CmsgLen(0) {
		kind, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			break
		}
		h.add(kind.Level, kind.Type, data)
		oob = rest
	}
	return h
}

// add reads one control message.
func (h *Header) add(level, kind int32, data []byte) {
	switch [2]int32{level, kind} {
	case [2]int32{unix.IPPROTO_IP, unix.IP_TOS}, [2]int32{unix.IPPROTO_IPV6, unix.IPV6_TCLASS}:
		h.TOS = number(data)
	case [2]int32{unix.IPPROTO_IP, unix.IP_TTL}, [2]int32{unix.IPPROTO_IPV6, unix.IPV6_HOPLIMIT}:
		h.TTL = number(data)
	case [2]int32{unix.IPPROTO_IP, unix.IP_RECVFRAGSIZE}, [2]int32{unix.IPPROTO_IPV6, unix.IPV6_RECVFRAGSIZE}:
		h.Fragment = max(number(data), 0)
	case [2]int32{unix.IPPROTO_IP, unix.IP_PKTINFO}:
		if len(data) >= unix.SizeofInet4Pktinfo {
			h.Local = netip.AddrFrom4([4]byte(data[4:8]))
		}
	case [2]int32{unix.IPPROTO_IPV6, unix.IPV6_PKTINFO}:
		if len(data) >= unix.SizeofInet6Pktinfo {
			h.Local = netip.AddrFrom16([16]byte(data[:16])).Unmap()
		}
	case [2]int32{unix.SOL_SOCKET, unix.SCM_TIMESTAMPNS}:
		if len(data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			h.At = time.Unix(0, unix.TimespecToNsec(*(*unix.Timespec)(unsafe.Pointer(&data[0]))))
		}
	}
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
	level, kind := int32(unix.IPPROTO_IP), int32(unix.IP_TOS)
	if ipv6 {
		level, kind = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	return appendControl(make([]byte, 0, unix.CmsgSpace(4)), level, kind, binary.NativeEndian.AppendUint32(nil, uint32(tos)))
}

// AppendSource adds the control message that sends a datagram from an address of this host (IP_PKTINFO, ip(7)), and returns the extended buffer. It does not
// allocate where the buffer has HeaderRoom.
func AppendSource(b []byte, from netip.Addr) []byte {
	if from.Is4() {
		var info [unix.SizeofInet4Pktinfo]byte
		*(*[4]byte)(info[4:]) = from.As4()
		return appendControl(b, unix.IPPROTO_IP, unix.IP_PKTINFO, info[:])
	}
	var info [unix.SizeofInet6Pktinfo]byte
	*(*[16]byte)(info[:]) = from.As16()
	return appendControl(b, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, info[:])
}

// appendControl adds a control message (cmsg(3)).
func appendControl(b []byte, level, kind int32, data []byte) []byte {
	at := len(b)
	b = append(b, make([]byte, unix.CmsgSpace(len(data)))...)
	putHeader(b[at:], level, kind, len(data))
	copy(b[at+unix.CmsgLen(0):], data)
	return b
}

// putHeader writes the header of a control message with n bytes of data.
func putHeader(b []byte, level, kind int32, n int) {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(n))
}

// TooBig empties the error queue of a socket. It returns what routers have reported since the last call.
func TooBig(fd uintptr) []PacketTooBig {
	var all []PacketTooBig
	p, oob := make([]byte, 1), make([]byte, 512)
	for range 1000 { // a limit; the kernel's queue holds less
		_, n, _, _, err := unix.Recvmsg(int(fd), p, oob, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			break
		}
		if r, ok := parseTooBig(oob[:n]); ok {
			all = append(all, r)
		}
	}
	return all
}

// parseTooBig reads struct sock_extended_err (include/uapi/linux/errqueue.h), and the address of the router that follows it.
func parseTooBig(oob []byte) (r PacketTooBig, ok bool) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return r, false
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
			return PacketTooBig{int(info), offender(m.Data[unsafe.Sizeof(unix.SockExtendedErr{}):])}, true
		}
	}
	return r, false
}

// offender reads the address of a struct sockaddr_in or sockaddr_in6.
func offender(b []byte) (a netip.Addr) {
	switch {
	case len(b) >= unix.SizeofSockaddrInet4 && binary.NativeEndian.Uint16(b) == unix.AF_INET:
		a = netip.AddrFrom4([4]byte(b[4:8]))
	case len(b) >= unix.SizeofSockaddrInet6 && binary.NativeEndian.Uint16(b) == unix.AF_INET6:
		a = netip.AddrFrom16([16]byte(b[8:24])).Unmap()
	}
	return a
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
