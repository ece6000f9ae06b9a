package sock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"thru/internal/measure"
)

// ErrNoConnection means that this kernel has no such TCP connection in this network namespace.
var ErrNoConnection = errors.New("there is no such connection here")

// Connection is the kernel's state of a TCP connection of any process (sock_diag(7)).
type Connection struct {
	State   int             // TCP_ESTABLISHED 1, SYN_SENT 2 ... (include/net/tcp_states.h)
	TCP     measure.TCPInfo // from struct tcp_info
	Moment  Moment
	Granted Granted // without MSS
	Unread  int64   // bytes received and not read by its program yet; negative: not known
	Queued  int64   // use of its send buffer, including the kernel's overhead, in bytes; negative: not known
	Inode   uint32  // of its socket, as in /proc/PID/fd; 0: no program has it open
	IsKnown bool    // the kernel still has its tcp_info: not in TIME_WAIT
}

// Sizes and numbers of sock_diag(7), linux/inet_diag.h and netlink(7).
const (
	netlinkHead  = 16
	diagHead     = 72 // struct inet_diag_msg
	diagRequest  = 56 // struct inet_diag_req_v2
	diagByFamily = 20 // SOCK_DIAG_BY_FAMILY
	netlinkError = 2  // NLMSG_ERROR

	attrInfo       = 2 // INET_DIAG_INFO
	attrCongestion = 4 // INET_DIAG_CONG
	attrMemory     = 7 // INET_DIAG_SKMEMINFO

	familyIPv4 = 2  // AF_INET of Linux
	familyIPv6 = 10 // AF_INET6 of Linux
	protoTCP   = 6
	anyCookie  = ^uint32(0) // INET_DIAG_NOCOOKIE
)

// Indices in the array of INET_DIAG_SKMEMINFO and SO_MEMINFO (include/uapi/linux/sock_diag.h, SK_MEMINFO_VARS).
const (
	memRecvBuffer = 1
	memSendBuffer = 3
	memQueued     = 5
	memInfoDrops  = 8
	memInfoVars   = 9
)

// States of a found socket (include/net/tcp_states.h).
const (
	stateTimeWait = 6  // only its addresses exist
	stateListen   = 10 // no connection, but a server at this address
)

// askDiag returns the request for one connection, by the addresses of its own end. An IPv6 socket that carries IPv4 is found by its IPv4 addresses.
func askDiag(local, peer netip.AddrPort, seq uint32) []byte {
	b := make([]byte, netlinkHead+diagRequest)
	le := binary.NativeEndian
	le.PutUint32(b, uint32(len(b)))
	le.PutUint16(b[4:], diagByFamily)
	le.PutUint16(b[6:], 1) // NLM_F_REQUEST
	le.PutUint32(b[8:], seq)
	q := b[netlinkHead:]
	from, to := local.Addr().Unmap(), peer.Addr().Unmap()
	q[0], q[1] = familyIPv4, protoTCP
	if from.Is6() {
		q[0] = familyIPv6
	}
	q[2] = 1<<(attrInfo-1) | 1<<(attrCongestion-1) | 1<<(attrMemory-1)
	le.PutUint32(q[4:], ^uint32(0)) // any state
	binary.BigEndian.PutUint16(q[8:], local.Port())
	binary.BigEndian.PutUint16(q[10:], peer.Port())
	copy(q[12:28], from.AsSlice())
	copy(q[28:44], to.AsSlice())
	le.PutUint32(q[48:], anyCookie)
	le.PutUint32(q[52:], anyCookie)
	return b
}

// errDiag is an unreadable answer of the kernel.
var errDiag = errors.New("sock: reading a connection: the kernel's answer is too short")

// parseDiag reads the answer to the request with that sequence number. done is false for the answer to another request.
func parseDiag(b []byte, seq uint32) (c Connection, done bool, err error) {
	if len(b) < netlinkHead {
		return c, true, errDiag
	}
	le := binary.NativeEndian
	n := int(le.Uint32(b))
	if n < netlinkHead || n > len(b) {
		return c, true, errDiag
	}
	if le.Uint32(b[8:]) != seq {
		return c, false, nil
	}
	body := b[netlinkHead:n]
	switch kind := le.Uint16(b[4:]); {
	case kind == netlinkError && len(body) >= 4:
		errno := syscall.Errno(-int32(le.Uint32(body)))
		if errno == syscall.ENOENT || errno == syscall.ESTALE {
			return c, true, ErrNoConnection
		}
		return c, true, fmt.Errorf("sock: reading a connection from the kernel: %w", errno)
	case kind != diagByFamily || len(body) < diagHead:
		return c, true, errDiag
	}
	if c = parseConnection(body); c.State == stateListen {
		return Connection{}, true, ErrNoConnection
	}
	return c, true, nil
}

// parseConnection reads a complete struct inet_diag_msg and its attributes.
func parseConnection(b []byte) Connection {
	le := binary.NativeEndian
	c := Connection{State: int(b[1]), Queued: -1, Unread: int64(le.Uint32(b[56:])), Inode: le.Uint32(b[68:])}
	for b = b[diagHead:]; len(b) >= 4; {
		n, kind := int(le.Uint16(b)), le.Uint16(b[2:])
		if n < 4 || n > len(b) {
			return c
		}
		value := b[4:n]
		switch kind {
		case attrInfo:
			c.TCP, c.Moment, c.IsKnown = ParseTCPInfo(value), ParseMoment(value), c.State != stateTimeWait && len(value) > 0
		case attrCongestion:
			c.Granted.Congestion = cString(value)
		case attrMemory:
			if len(value) >= 4*(memQueued+1) {
				at := func(i int) uint32 { return le.Uint32(value[4*i:]) }
				c.Granted.RecvBuffer, c.Granted.SendBuffer, c.Queued = int(at(memRecvBuffer)), int(at(memSendBuffer)), int64(at(memQueued))
			}
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return c
}

// cString returns text up to the first zero byte; empty where it has unprintable characters.
func cString(b []byte) string {
	for i, x := range b {
		if x <= ' ' || x > '~' {
			return string(b[:i])
		}
	}
	return string(b)
}
