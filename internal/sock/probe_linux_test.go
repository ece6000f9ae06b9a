package sock

import (
	"encoding/binary"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHeaders sends a datagram with a TOS mark over loopback, in each family.
func TestHeaders(t *testing.T) {
	for network, addr := range map[string]string{"udp4": "127.0.0.1:0", "udp6": "[::1]:0"} {
		pc, err := net.ListenPacket(network, addr)
		if err != nil {
			t.Skip(err)
		}
		defer pc.Close()
		c, six := pc.(*net.UDPConn), network == "udp6"
		raw, _ := c.SyscallConn()
		raw.Control(func(fd uintptr) { err = SetProbe(fd, six) })
		if err != nil {
			t.Fatal(err)
		}
		const tos = 46<<2 | 1
		if _, _, err := c.WriteMsgUDP([]byte("x"), MarkControl(six, tos), c.LocalAddr().(*net.UDPAddr)); err != nil {
			t.Fatal(err)
		}
		oob := make([]byte, HeaderRoom)
		_, n, _, _, err := c.ReadMsgUDP(make([]byte, 9), oob)
		if h := ParseHeader(oob[:n]); err != nil || h.TOS != tos || h.TTL != ProbeTTL || h.Fragment != 0 {
			t.Errorf("%s: %+v, %v", network, h, err)
		}
		raw.Control(func(fd uintptr) {
			if said := TooBig(fd); len(said) != 0 {
				t.Errorf("%s: routers say %v", network, said)
			}
		})
	}
}

// TestTooBig reads the ICMP errors that the kernel queues (ip(7), IP_RECVERR).
func TestTooBig(t *testing.T) {
	message := func(level, kind int32, errno uint32, origin byte, mtu uint32) []byte {
		b := make([]byte, unix.CmsgSpace(16))
		putHeader(b, level, kind, 16)
		data := b[unix.CmsgLen(0):]
		binary.NativeEndian.PutUint32(data, errno)
		data[4] = origin
		binary.NativeEndian.PutUint32(data[8:], mtu)
		return b
	}
	const tooBig = uint32(unix.EMSGSIZE)
	for _, tt := range []struct {
		name string
		in   []byte
		mtu  int
		ok   bool
	}{
		{"a router", message(unix.IPPROTO_IP, unix.IP_RECVERR, tooBig, unix.SO_EE_ORIGIN_ICMP, 1400), 1400, true},
		{"a router of IPv6", message(unix.IPPROTO_IPV6, unix.IPV6_RECVERR, tooBig, unix.SO_EE_ORIGIN_ICMP6, 1280), 1280, true},
		{"this host", message(unix.IPPROTO_IP, unix.IP_RECVERR, tooBig, unix.SO_EE_ORIGIN_LOCAL, 1500), 0, false},
		{"port unreachable", message(unix.IPPROTO_IP, unix.IP_RECVERR, uint32(unix.ECONNREFUSED), unix.SO_EE_ORIGIN_ICMP, 0), 0, false},
		{"cut", message(unix.IPPROTO_IP, unix.IP_RECVERR, tooBig, unix.SO_EE_ORIGIN_ICMP, 1400)[:20], 0, false},
		{"nothing", nil, 0, false},
	} {
		if mtu, ok := parseTooBig(tt.in); mtu != tt.mtu || ok != tt.ok {
			t.Errorf("%s: %d, %v", tt.name, mtu, ok)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add(MarkControl(false, 184))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h := ParseHeader(b); h.Fragment < 0 {
			t.Errorf("%x: %+v", b, h)
		}
		parseTooBig(b)
	})
}
