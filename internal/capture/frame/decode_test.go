package frame

import (
	"net/netip"
	"slices"
	"testing"
)

// The segments that the frames of the tests hold: data with time stamps.
var (
	segment = tcpSegment(ACK|PSH, 100, stamps...)
	packet4 = ip4(TCP, segment)
	packet6 = ip6(TCP, segment)
)

// outer4Of is an IPv4 packet between the ends of a tunnel.
func outer4Of(proto byte, payload []byte) []byte {
	return ip4Of(outer4, outer4to, 0, proto, nil, payload)
}

// TestDirections decodes one segment of 100 bytes in every supported
// encapsulation.
func TestDirections(t *testing.T) {
	vni := "\x08\x00\x00\x00\x00\x00\x2a\x00"
	tests := []struct {
		name            string
		link            LinkType
		data            []byte
		tagged, tunnels int
	}{
		{"ethernet", Ethernet, ether(0x0800, packet4), 0, 0},
		{"ethernet, ipv6", Ethernet, ether(0x86dd, packet6), 0, 0},
		{"padding", Ethernet, join(ether(0x0800, packet4), make([]byte, 30)), 0, 0},
		{"padding, ipv6", Ethernet, join(ether(0x86dd, packet6), make([]byte, 30)), 0, 0},
		{"vlan", Ethernet, ether(0x8100, join(5, 0x0800, packet4)), 1, 0},
		{"qinq", Ethernet, ether(0x88a8, join(7, 0x8100, 5, 0x86dd, packet6)), 2, 0},
		{"qinq of before the standard", Ethernet, ether(0x9100, join(7, 0x8100, 5, 0x0800, packet4)), 2, 0},
		{"snap", Ethernet, ether(160, join("\xaa\xaa\x03\x00\x00\x00", 0x0800, packet4)), 0, 0},
		{"mpls, two labels", Ethernet, ether(0x8847, join("\x00\x01\x00\x40", "\x00\x02\x01\x40", packet6)), 0, 0},
		{"mpls, pseudowire", Ethernet, ether(0x8847, join("\x00\x01\x01\x40", "\x00\x00\x00\x00", ether(0x0800, packet4))), 0, 0},
		{"pppoe", Ethernet, ether(0x8864, join("\x11\x00\x00\x01", 2+len(packet4), 0x0021, packet4)), 0, 0},
		{"pppoe, ipv6", Ethernet, ether(0x8864, join("\x11\x00\x00\x01", 2+len(packet6), 0x0057, packet6)), 0, 0},
		{"ppp", PPP, join(0x0021, packet4), 0, 0},
		{"ppp of hdlc", PPPofHDLC, join(0xff03, 0x0021, packet4), 0, 0},
		{"mpls of ppp", PPP, join(0xff03, 0x0281, "\x00\x02\x01\x40", packet4), 0, 0},
		{"infiniband", IPoIB, join(make([]byte, 40), 0x86dd, 0, packet6), 0, 0},
		{"cooked", LinuxSLL, join(4, 1, 6, "\x02\x00\x00\x00\x00\x01\x00\x00", 0x0800, packet4), 0, 0},
		{"cooked, vlan", LinuxSLL, join(4, 1, 6, "\x02\x00\x00\x00\x00\x01\x00\x00", 0x8100, 5, 0x0800, packet4), 1, 0},
		{"cooked v2", LinuxSLL2, join(0x86dd, 0, "\x00\x00\x00\x02", 1, "\x04\x06", "\x02\x00\x00\x00\x00\x01\x00\x00", packet6), 0, 0},
		{"raw", Raw, packet4, 0, 0},
		{"raw, ipv6", Raw, packet6, 0, 0},
		{"raw of bsd", 12, packet4, 0, 0},
		{"raw of openbsd", 14, packet6, 0, 0},
		{"ipv4", IPv4, packet4, 0, 0},
		{"ipv6", IPv6, packet6, 0, 0},
		{"loopback, little-endian", Null, join("\x02\x00\x00\x00", packet4), 0, 0},
		{"loopback, big-endian", Null, join("\x00\x00\x00\x02", packet4), 0, 0},
		{"loopback of macos, ipv6", Null, join("\x1e\x00\x00\x00", packet6), 0, 0},
		{"loopback of freebsd, ipv6", Null, join("\x00\x00\x00\x1c", packet6), 0, 0},
		{"loopback of openbsd", Loop, join("\x00\x00\x00\x18", packet6), 0, 0},
		{"ipv4 options", Raw, ip4Of(source4, target4, 0, TCP, []byte{148, 4, 0, 0}, segment), 0, 0},
		{"ipv4 ah", Raw, ip4(51, join([]byte{TCP, 4}, make([]byte, 22), segment)), 0, 0},
		{"ipv6 options", Raw, ip6(0, join([]byte{60, 0, 1, 4, 0, 0, 0, 0}, []byte{TCP, 1}, make([]byte, 14), segment)), 0, 0},
		{"ipv6 routing and ah", Raw, ip6(43, join([]byte{51, 2}, make([]byte, 22), []byte{TCP, 4}, make([]byte, 22), segment)), 0, 0},
		{"ipv6 atomic fragment", Raw, ip6(44, join([]byte{TCP, 0, 0, 0, 1, 2, 3, 4}, segment)), 0, 0},
		{"vxlan", Ethernet, ether(0x0800, outer4Of(UDP, udpTo(4789, join(vni, ether(0x0800, packet4))))), 0, 1},
		{"vxlan of linux", Ethernet, ether(0x0800, outer4Of(UDP, udpTo(8472, join(vni, ether(0x8100, join(9, 0x86dd, packet6)))))), 1, 1},
		{"geneve with an option", Raw, outer4Of(UDP, udpTo(6081, join("\x02\x00\x65\x58\x00\x00\x2a\x00", make([]byte, 8), ether(0x0800, packet4)))), 0, 1},
		{"geneve, ip", Raw, outer4Of(UDP, udpTo(6081, join("\x00\x00\x86\xdd\x00\x00\x2a\x00", packet6))), 0, 1},
		{"gre", Raw, outer4Of(47, join(0, 0x0800, packet4)), 0, 1},
		{"gre, all fields", Raw, outer4Of(47, join(0xb000, 0x86dd, make([]byte, 12), packet6)), 0, 1},
		{"gre in udp", Raw, outer4Of(UDP, udpTo(4754, join(0, 0x0800, packet4))), 0, 1},
		{"gre, ethernet", Raw, outer4Of(47, join(0x2000, 0x6558, make([]byte, 4), ether(0x0800, packet4))), 0, 1},
		{"erspan I", Raw, outer4Of(47, join(0, 0x88be, ether(0x0800, packet4))), 0, 1},
		{"erspan II", Raw, outer4Of(47, join(0x1000, 0x88be, make([]byte, 4), make([]byte, 8), ether(0x0800, packet4))), 0, 1},
		{"erspan III", Raw, outer4Of(47, join(0x1000, 0x22eb, make([]byte, 4), make([]byte, 12), ether(0x0800, packet4))), 0, 1},
		{"erspan III, subheader", Raw, outer4Of(47, join(0x1000, 0x22eb, make([]byte, 4), make([]byte, 11), "\x01", make([]byte, 8), ether(0x0800, packet4))), 0, 1},
		{"ip in ip", Raw, outer4Of(4, packet4), 0, 1},
		{"6in4", Raw, outer4Of(41, packet6), 0, 1},
		{"4in6", Raw, ip6(4, packet4), 0, 1},
		{"6in6 in gre", Raw, outer4Of(47, join(0, 0x86dd, ip6(41, packet6))), 0, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Packet{Number: 3, TimeNs: 4, Interface: 5, WireBytes: len(tt.data), TooBig: true, Payload: 77}
			if v := Decode(tt.link, tt.data, &p); v != IsTCP {
				t.Fatal("verdict", v)
			}
			if p.Number != 3 || p.TimeNs != 4 || p.Interface != 5 || p.WireBytes != len(tt.data) || p.TooBig {
				t.Errorf("the caller's fields are %d %d %d %d, too big: %v", p.Number, p.TimeNs, p.Interface, p.WireBytes, p.TooBig)
			}
			from, to := source4, target4
			if p.V6 {
				from, to = source6, target6
			}
			if ends(p.Source) != netip.AddrPortFrom(netip.MustParseAddr(from), 40000) || ends(p.Target) != netip.AddrPortFrom(netip.MustParseAddr(to), 5201) {
				t.Errorf("from %v to %v", ends(p.Source), ends(p.Target))
			}
			if p.Tagged != tt.tagged || p.Tunnels != tt.tunnels {
				t.Errorf("%d tags, %d tunnels, want %d, %d", p.Tagged, p.Tunnels, tt.tagged, tt.tunnels)
			}
			if p.Payload != 100 || p.Seq != 0x1000 || p.Ack != 0x2000 || p.Flags != ACK|PSH || p.Window != 501 || p.TTL != 61 || p.TOS != 2 || p.Fragment {
				t.Errorf("fields: %+v", p)
			}
			if o := p.Options; !o.Timestamps || o.TSVal != 7 || o.TSEcr != 9 || o.Bytes != 12 || o.Cut || o.HasMSS || o.SACKOK || o.SACKs > 0 {
				t.Errorf("options: %+v", o)
			}
		})
	}
}

// ends is an end point as netip has it.
func ends(e Endpoint) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(e.Addr).Unmap(), e.Port)
}

// TestVerdicts verifies the verdicts on frames that are no whole segment.
func TestVerdicts(t *testing.T) {
	tests := []struct {
		name string
		link LinkType
		data []byte
		wire int // 0: the data's
		want Verdict
	}{
		{"nothing", Ethernet, nil, 0, IsBroken},
		{"nothing captured", Ethernet, nil, 60, IsCut},
		{"other link", 105, packet4, 0, IsUnknown},
		{"arp", Ethernet, ether(0x0806, make([]byte, 28)), 0, IsNotIP},
		{"spanning tree", Ethernet, ether(38, join("\x42\x42\x03", make([]byte, 35))), 0, IsNotIP},
		{"short 802.3", Ethernet, ether(3, []byte("\x42\x42\x03")), 0, IsNotIP},
		{"many tags", Ethernet, ether(0x8100, slices.Repeat([]byte{0, 5, 0x81, 0}, 30)), 0, IsBroken},
		{"many labels", Ethernet, ether(0x8847, slices.Repeat([]byte{0, 1, 0, 64}, 30)), 0, IsBroken},
		{"pppoe, link control", Ethernet, ether(0x8864, join("\x11\x00\x00\x01", 6, 0xc021, make([]byte, 4))), 0, IsNotIP},
		{"loopback, other family", Null, join("\x07\x00\x00\x00", packet4), 0, IsNotIP},
		{"udp", Raw, ip4(UDP, udpTo(53, make([]byte, 12))), 0, IsOther},
		{"udp to the port of vxlan", Raw, ip4(UDP, udpTo(8472, make([]byte, 12))), 0, IsOther},
		{"little to the port of vxlan", Raw, ip4(UDP, udpTo(4789, []byte{8})), 0, IsOther},
		{"little to the port of geneve", Raw, ip4(UDP, udpTo(6081, []byte{8})), 0, IsOther},
		{"ping", Raw, ip4(ICMP, make([]byte, 8)), 0, IsOther},
		{"pptp", Raw, ip4(47, join(0x3081, 0x880b, make([]byte, 12))), 0, IsOther},
		{"encrypted", Raw, ip6(50, make([]byte, 40)), 0, IsOther},
		{"no next header", Raw, ip6(59, nil), 0, IsOther},
		{"first fragment", Raw, ip4Of(source4, target4, 0x2000, TCP, nil, segment), 0, IsTCP},
		{"first fragment, which ends within the options", Raw, ip4Of(source4, target4, 0x2000, TCP, nil, segment[:24]), 0, IsTCP},
		{"later fragment", Raw, ip4Of(source4, target4, 0x0002, TCP, nil, segment), 0, IsLater},
		{"later fragment, ipv6", Raw, ip6(44, join([]byte{TCP, 0, 0, 8, 1, 2, 3, 4}, segment)), 0, IsLater},
		{"later fragment of udp", Raw, ip4Of(source4, target4, 0x0002, UDP, nil, segment), 0, IsOther},
		{"cut in the ethernet header", Ethernet, ether(0x0800)[:13], 1514, IsCut},
		{"cut in ip", Ethernet, ether(0x0800, packet4)[:30], 166, IsCut},
		{"cut in tcp", Ethernet, ether(0x0800, packet4)[:14+20+19], 166, IsCut},
		{"cut in an extension", Raw, ip6(0, join([]byte{TCP, 5}, make([]byte, 100)))[:60], 142, IsCut},
		{"cut in a tunnel", Raw, outer4Of(47, join(0, 0x0800, packet4))[:50], 200, IsCut},
		{"version of ip", Raw, with(packet4, 0, 0x55), 0, IsBroken},
		{"ipv6 named as ipv4", Ethernet, ether(0x0800, packet6), 0, IsBroken},
		{"ipv4 named as ipv6", Ethernet, ether(0x86dd, packet4), 0, IsBroken},
		{"header length of ip", Raw, with(packet4, 0, 0x44), 0, IsBroken},
		{"length of ip beyond the frame, which may be what is wrong", Raw, with(packet4, 2, 1), 0, IsTCP},
		{"length of ip below its header", Raw, with(with(packet4, 2, 0), 3, 19), 0, IsBroken},
		{"header length of tcp", Raw, with(packet4, 32, 0x40), 0, IsBroken},
		{"header of tcp longer than ip", Raw, with(ip4(TCP, tcpSegment(ACK, 0)), 32, 0x60), 0, IsBroken},
		{"ipv6 without end", Raw, ip6(0, make([]byte, 400)), 0, IsBroken},
		{"tunnels without end", Raw, nested(20), 0, IsOther},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Packet{WireBytes: tt.wire}
			if v := Decode(tt.link, tt.data, &p); v != tt.want {
				t.Errorf("verdict %d, want %d", v, tt.want)
			}
		})
	}
}

// nested is IP in IP in IP.
func nested(n int) []byte {
	b := packet4
	for range n {
		b = outer4Of(4, b)
	}
	return b
}

// TestLengths verifies the source of the payload's length.
func TestLengths(t *testing.T) {
	unfilled := with(with(packet4, 2, 0), 3, 0)
	jumbo := ip6(0, join([]byte{TCP, 0, 0xc2, 4, 0, 3, 0, 0}, segment))
	tests := []struct {
		name              string
		data              []byte
		wire              int
		ipBytes, payload  int
		fragment, dont, v bool
	}{
		{"whole", ether(0x0800, packet4), 0, 152, 100, false, true, false},
		{"snapped", ether(0x0800, packet4)[:66], 166, 152, 100, false, true, false},
		{"wire bytes not told", ether(0x0800, packet4)[:66], 0, 152, 100, false, true, false},
		{"offloaded, ip length 0", ether(0x0800, unfilled)[:80], 65000, 64986, 64934, false, true, false},
		{"offloaded in a vlan", ether(0x8100, join(5, 0x0800, unfilled)), 65000, 64982, 64930, false, true, false},
		{"big tcp, ipv6 length 0", ether(0x86dd, with(packet6, 5, 0))[:100], 200014, 200000, 199928, false, false, true},
		{"big tcp, jumbo option", ether(0x86dd, with(with(jumbo, 4, 0), 5, 0)), 0, 40 + 0x30000, 0x30000 - 8 - 32, false, false, true},
		{"in a tunnel, both lengths 0", ether(0x0800, with(with(outer4Of(4, unfilled), 2, 0), 3, 0)), 50034, 50000, 49948, false, true, false},
		{"first fragment", ether(0x0800, ip4Of(source4, target4, 0x2000, TCP, nil, segment)), 0, 152, 100, true, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Packet{WireBytes: tt.wire}
			if v := Decode(Ethernet, tt.data, &p); v != IsTCP {
				t.Fatal("verdict", v)
			}
			if p.IPBytes != tt.ipBytes || p.Payload != tt.payload || p.Fragment != tt.fragment || p.DF != tt.dont || p.V6 != tt.v {
				t.Errorf("IP %d bytes, payload %d, fragment %v, do not fragment %v, IPv6 %v", p.IPBytes, p.Payload, p.Fragment, p.DF, p.V6)
			}
		})
	}
}
