package host

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"

	"thru/internal/measure"
)

// tunnelLayout describes the attributes of one kind of tunnel: their numbers
// (0: it has none), and the bytes that it adds.
type tunnelLayout struct {
	link, id, local, remote uint16
	local6, remote6         uint16 // for kinds with other attributes for IPv6
	bigEndianID             bool
	ipv6                    bool // the outer packet is always IPv6
	headers                 int  // bytes that it adds, without the outer IP header
	flags, encap            uint16
	outFlags                uint16
}

// Bytes of headers: RFC 768, 791, 8200, 894, 2784.
const (
	ethernetHeader = 14
	udpHeader      = 8
	greHeader      = 4
	ipv4Header     = 20
	ipv6Header     = 40
)

// layoutOf returns the layout of a kind of tunnel
// (include/uapi/linux/if_link.h, if_tunnel.h). VXLAN (RFC 7348) and GENEVE
// (RFC 8926, without options) have 8 bytes after UDP, and carry Ethernet.
func layoutOf(kind string) (tunnelLayout, bool) {
	gre := tunnelLayout{link: 1, outFlags: 3, id: 5, local: 6, remote: 7, bigEndianID: true, headers: greHeader, flags: 13, encap: 14}
	ip := tunnelLayout{link: 1, local: 2, remote: 3, flags: 8, encap: 15}
	vti := tunnelLayout{link: 1, id: 3, local: 4, remote: 5, bigEndianID: true}
	switch kind {
	case "vxlan":
		return tunnelLayout{id: 1, remote: 2, link: 3, local: 4, remote6: 16, local6: 17, headers: udpHeader + 8 + ethernetHeader}, true
	case "geneve":
		return tunnelLayout{id: 1, remote: 2, remote6: 7, headers: udpHeader + 8 + ethernetHeader}, true
	case "ip6gre", "ip6gretap":
		gre.ipv6 = true
		fallthrough
	case "gre", "gretap":
		if kind == "gretap" || kind == "ip6gretap" {
			gre.headers += ethernetHeader
		}
		return gre, true
	case "ip6tnl":
		ip.ipv6 = true
		fallthrough
	case "ipip", "sit":
		return ip, true
	case "vti", "vti6":
		vti.ipv6 = kind == "vti6"
		return vti, true
	case "xfrm":
		return tunnelLayout{link: 1, id: 2}, true
	case "wireguard", "erspan", "ip6erspan":
		return tunnelLayout{}, true
	}
	return tunnelLayout{}, false
}

// parseTunnel reads the encapsulation of a tunnel interface (IFLA_INFO_DATA),
// and the number of the interface that it is bound to; 0 where its packets
// follow the routes. It returns nil where kind is no tunnel.
func parseTunnel(kind string, data []byte) (*measure.Tunnel, int) {
	l, ok := layoutOf(kind)
	if !ok {
		return nil, 0
	}
	t := &measure.Tunnel{Kind: kind, Local: address(l.get(data, l.local)), Remote: address(l.get(data, l.remote))}
	ipv6 := l.ipv6
	if v := address(l.get(data, l.local6)); v != "" {
		t.Local, ipv6 = v, true
	}
	if v := address(l.get(data, l.remote6)); v != "" {
		t.Remote, ipv6 = v, true
	}
	if v := l.get(data, l.id); len(v) >= 4 && (l.outFlags == 0 || l.greFlags(data)&greKey != 0) {
		id := binary.NativeEndian.Uint32(v)
		if l.bigEndianID {
			id = binary.BigEndian.Uint32(v)
		}
		t.ID = new(int64(id))
	}
	if metadata(kind, data) {
		t.ID = nil // each packet has its own
	} else {
		t.Overhead = l.overhead(kind, data, ipv6)
	}
	return t, number32(l.get(data, l.link))
}

// get returns an attribute; nil for number 0.
func (l tunnelLayout) get(data []byte, number uint16) []byte {
	if number == 0 {
		return nil
	}
	return attr(data, number)
}

// Flags of GRE, each with a field of 4 bytes in the header (RFC 2784, 2890).
const greChecksum, greKey, greSequence = 0x8000, 0x2000, 0x1000

// greFlags returns the flags of sent packets.
func (l tunnelLayout) greFlags(data []byte) uint16 {
	v := l.get(data, l.outFlags)
	if len(v) < 2 {
		return 0
	}
	return binary.BigEndian.Uint16(v)
}

// metadata reports whether each packet carries its own tunnel destination, as
// with Open vSwitch and containers.
func metadata(kind string, data []byte) bool {
	const vxlan, geneve, gre, ip = 25, 6, 18, 19 // the first is a byte, the others have no value
	switch kind {
	case "vxlan":
		return number8(attr(data, vxlan)) != 0
	case "geneve":
		return attr(data, geneve) != nil
	case "gre", "gretap", "ip6gre", "ip6gretap":
		return attr(data, gre) != nil
	case "ipip", "sit", "ip6tnl":
		return attr(data, ip) != nil
	}
	return false
}

// overhead returns the bytes that encapsulation adds to a packet; 0 where the
// link does not determine them: WireGuard may use either version of IP, IPsec
// any cipher.
func (l tunnelLayout) overhead(kind string, data []byte, ipv6 bool) int {
	switch kind {
	case "wireguard", "xfrm", "vti", "vti6", "erspan", "ip6erspan":
		return 0
	}
	sum := ipv4Header + l.headers
	if ipv6 {
		sum += ipv6Header - ipv4Header
	}
	for _, f := range []uint16{greChecksum, greKey, greSequence} {
		if l.greFlags(data)&f != 0 {
			sum += 4
		}
	}
	const ignoresLimit = 1 // IP6_TNL_F_IGN_ENCAP_LIMIT (ip6_tunnel.h)
	if l.ipv6 && number32(l.get(data, l.flags))&ignoresLimit == 0 {
		sum += 8 // tunnel encapsulation limit option (RFC 2473)
	}
	if v := l.get(data, l.encap); len(v) >= 2 {
		switch binary.NativeEndian.Uint16(v) { // enum tunnel_encap_types
		case 1: // foo over UDP
			sum += udpHeader
		case 2: // generic UDP encapsulation
			sum += udpHeader + 4
		}
	}
	return sum
}

// overheadUnknown is the reason why the overhead of a kind of tunnel is not
// known.
func overheadUnknown(kind string) error {
	switch kind {
	case "wireguard":
		return errors.New("60 bytes over IPv4, 80 over IPv6: only root may read which one the peer uses")
	case "xfrm", "vti", "vti6":
		return errors.New("it depends on the IPsec cipher")
	case "erspan", "ip6erspan":
		return errors.New("it depends on the version of ERSPAN")
	}
	return errors.New("it depends on the destination of each packet")
}

// pppoeHeaders is the length of the PPPoE and PPP headers (RFC 2516, section
// 7).
const pppoeHeaders = 8

// parsePPPoE reads the kernel's PPPoE sessions (/proc/net/pppoe: identifier,
// peer, interface). The file does not say which session belongs to which PPP
// interface, so the lower interface is known only where all sessions share
// it; nil without sessions.
func parsePPPoE(b []byte) *measure.Tunnel {
	var t *measure.Tunnel
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch {
		case len(f) != 3 || f[0] == "Id":
		case t == nil:
			t = &measure.Tunnel{Kind: "pppoe", Overhead: pppoeHeaders, Lower: f[2]}
		case t.Lower != f[2]:
			t.Lower = ""
		}
	}
	return t
}

// address returns an IP address as text; empty where the bytes are none, or
// 0.0.0.0 or ::.
func address(b []byte) string {
	a, ok := netip.AddrFromSlice(b)
	if !ok || a.IsUnspecified() {
		return ""
	}
	return a.String()
}
