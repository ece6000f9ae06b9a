package sock

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"syscall"
	"testing"
)

// answer returns a netlink message in the kernel's format.
func answer(kind uint16, seq uint32, body []byte) []byte {
	b := make([]byte, netlinkHead, netlinkHead+len(body))
	binary.NativeEndian.PutUint32(b, uint32(netlinkHead+len(body)))
	binary.NativeEndian.PutUint16(b[4:], kind)
	binary.NativeEndian.PutUint32(b[8:], seq)
	return append(b, body...)
}

// told returns the body of an answer about a connection, with its attributes.
func told(state uint8, unread, inode uint32, attrs ...[]byte) []byte {
	b := make([]byte, diagHead)
	b[0], b[1] = familyIPv4, state
	binary.NativeEndian.PutUint32(b[56:], unread)
	binary.NativeEndian.PutUint32(b[68:], inode)
	for _, a := range attrs {
		b = append(b, a...)
	}
	return b
}

// attribute returns one attribute, padded to 4 bytes.
func attribute(kind uint16, value []byte) []byte {
	b := make([]byte, 4, 8+len(value))
	binary.NativeEndian.PutUint16(b, uint16(4+len(value)))
	binary.NativeEndian.PutUint16(b[2:], kind)
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// info returns a struct tcp_info with an RTT and a congestion window.
func info(rttUs, cwnd uint32) []byte {
	b := make([]byte, 248)
	binary.NativeEndian.PutUint32(b[68:], rttUs)
	binary.NativeEndian.PutUint32(b[80:], cwnd)
	return b
}

func refusal(errno syscall.Errno) []byte {
	b := make([]byte, 20)
	binary.NativeEndian.PutUint32(b, uint32(-int32(errno)))
	return b
}

func memory(recv, send, queued uint32) []byte {
	b := make([]byte, 36)
	binary.NativeEndian.PutUint32(b[4:], recv)
	binary.NativeEndian.PutUint32(b[12:], send)
	binary.NativeEndian.PutUint32(b[20:], queued)
	return b
}

// TestParseDiag reads the kernel's answers about one connection.
func TestParseDiag(t *testing.T) {
	const seq = 7
	whole := told(1, 4096, 99, attribute(attrMemory, memory(131072, 87040, 60000)), attribute(attrCongestion, []byte("cubic\x00")), attribute(attrInfo, info(20500, 40)))
	for _, tt := range []struct {
		name  string
		in    []byte
		done  bool
		fails error // nil: none; errDiag, ErrNoConnection ...
		check func(Connection) bool
	}{
		{"a connection", answer(diagByFamily, seq, whole), true, nil, func(c Connection) bool {
			return c.IsKnown && *c.TCP.RTT == 20_500_000 && c.Moment.Cwnd == 40 && c.Unread == 4096 && c.Queued == 60000 && c.Inode == 99 && c.State == 1 &&
				c.Granted == Granted{SendBuffer: 87040, RecvBuffer: 131072, Congestion: "cubic"}
		}},
		{"one in TIME_WAIT has no figures", answer(diagByFamily, seq, told(stateTimeWait, 0, 0)), true, nil, func(c Connection) bool { return !c.IsKnown && c.TCP.RTT == nil }},
		{"an old kernel's is shorter", answer(diagByFamily, seq, told(1, 0, 9, attribute(attrInfo, info(5, 6)[:104]))), true, nil, func(c Connection) bool { return c.IsKnown && c.Queued < 0 && c.TCP.SendWnd == nil && *c.TCP.Cwnd == 6 }},
		{"an attribute that ends too early", answer(diagByFamily, seq, append(told(1, 0, 9), 200, 0, attrInfo, 0, 1)), true, nil, func(c Connection) bool { return !c.IsKnown && c.Inode == 9 }},
		{"only a server that listens", answer(diagByFamily, seq, told(stateListen, 0, 9, attribute(attrInfo, info(0, 10)))), true, ErrNoConnection, func(c Connection) bool { return !c.IsKnown }},
		{"none", answer(netlinkError, seq, refusal(syscall.ENOENT)), true, ErrNoConnection, nil},
		{"refused", answer(netlinkError, seq, refusal(syscall.EPERM)), true, syscall.EPERM, nil},
		{"to another question", answer(diagByFamily, seq-1, whole), false, nil, nil},
		{"cut", answer(diagByFamily, seq, whole)[:50], true, errDiag, nil},
		{"without a body", answer(diagByFamily, seq, nil), true, errDiag, nil},
		{"nothing", nil, true, errDiag, nil},
	} {
		c, done, err := parseDiag(tt.in, seq)
		if done != tt.done || !errors.Is(err, tt.fails) || tt.check != nil && !tt.check(c) {
			t.Errorf("%s: %+v, %v, %v", tt.name, c, done, err)
		}
	}
}

// TestAskDiag: a mapped IPv4 address is requested as IPv4.
func TestAskDiag(t *testing.T) {
	for _, tt := range []struct {
		local, peer string
		family      byte
		first       byte // of the local address
	}{
		{"10.0.0.1:80", "10.0.0.2:5", familyIPv4, 10},
		{"[::ffff:10.0.0.1]:80", "10.0.0.2:5", familyIPv4, 10},
		{"[fd00::1]:80", "[fd00::2]:5", familyIPv6, 0xfd},
	} {
		b := askDiag(netip.MustParseAddrPort(tt.local), netip.MustParseAddrPort(tt.peer), 1)
		q := b[netlinkHead:]
		if len(b) != 72 || q[0] != tt.family || q[12] != tt.first || binary.BigEndian.Uint16(q[8:]) != 80 || binary.BigEndian.Uint16(q[10:]) != 5 {
			t.Errorf("%s: %x", tt.local, b)
		}
	}
}

func FuzzParseDiag(f *testing.F) {
	f.Add(answer(diagByFamily, 1, told(1, 2, 3, attribute(attrInfo, info(1, 2)), attribute(attrMemory, memory(1, 2, 3)), attribute(attrCongestion, []byte("bbr\x00")))))
	f.Add(answer(netlinkError, 1, refusal(syscall.ENOENT)))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, done, err := parseDiag(b, 1)
		if err != nil && c.IsKnown || !done && err != nil {
			t.Errorf("%x: %+v, %v, %v", b, c, done, err)
		}
		for _, r := range c.Granted.Congestion {
			if r < ' ' || r > '~' {
				t.Errorf("%x: control %q", b, c.Granted.Congestion)
			}
		}
	})
}
