package sock

import (
	"encoding/binary"
	"net"
	"net/netip"
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
	at4 := append(binary.NativeEndian.AppendUint16(nil, unix.AF_INET), 0, 0, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0)
	at6 := append(append(binary.NativeEndian.AppendUint16(nil, unix.AF_INET6), make([]byte, 6)...), netip.MustParseAddr("2001:db8::1").AsSlice()...)
	at6 = append(at6, 0, 0, 0, 0)
	message := func(level, kind int32, errno uint32, origin byte, mtu uint32, offender ...byte) []byte {
		b := make([]byte, unix.CmsgSpace(16+len(offender)))
		putHeader(b, level, kind, 16+len(offender))
		data := b[unix.CmsgLen(0):]
		copy(data[16:], offender)
		binary.NativeEndian.PutUint32(data, errno)
		data[4] = origin
		binary.NativeEndian.PutUint32(data[8:], mtu)
		return b
	}
	const tooBig = uint32(unix.EMSGSIZE)
	for _, tt := range []struct {
		name string
		in   []byte
		want PacketTooBig
		ok   bool
	}{
		{"a router", message(unix.IPPROTO_IP, unix.IP_RECVERR, tooBig, unix.SO_EE_ORIGIN_ICMP, 1400, at4...), PacketTooBig{1400, netip.MustParseAddr("192.0.2.1")}, true},
		{"a router of IPv6", message(unix.IPPROTO_IPV6, unix.IPV6_RECVERR, tooBig, unix.SO_EE_ORIGIN_ICMP6, 1280, at6...), PacketTooBig{1280, netip.MustParseAddr("2001:db8::1")}, true},
		{"a router without an address", message(unix.IPPROTO_IP, unix.IP_RECVERR, tooBig, unix.SO_EE_ORIGIN_ICMP, 1400, at4[:4]...), PacketTooBig{MTU: 1400}, true},
		{"this host", message(unix.IPPROTO_IP, unix.IP_RECVERR, tooBig, unix.SO_EE_ORIGIN_LOCAL, 1500), PacketTooBig{}, false},
		{"port unreachable", message(unix.IPPROTO_IP, unix.IP_RECVERR, uint32(unix.ECONNREFUSED), unix.SO_EE_ORIGIN_ICMP, 0), PacketTooBig{}, false},
		{"cut", message(unix.IPPROTO_IP, unix.IP_RECVERR, tooBig, unix.SO_EE_ORIGIN_ICMP, 1400)[:20], PacketTooBig{}, false},
		{"nothing", nil, PacketTooBig{}, false},
	} {
		if r, ok := parseTooBig(tt.in); r != tt.want || ok != tt.ok {
			t.Errorf("%s: %+v, %v", tt.name, r, ok)
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
