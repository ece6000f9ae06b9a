package wire

import (
	"encoding/binary"
	"net/netip"
)

const (
	icmpSize   = 8
	icmpQuote4 = 548  // bytes of the packet that an error quotes, so that it fits 576 (RFC 1812)
	icmpQuote6 = 1232 // and 1280 (RFC 4443)
	routerTTL  = 64
)

// mayFragment reports whether IPv4 allows a router to fragment the packet. Then the sender gets no error.
func (f *frame) mayFragment() bool {
	return !f.v6 && f.raw[f.ip+6]&0x40 == 0
}

// tooBig writes the error for a packet larger than mtu, from router to its sender, and returns it with a
// virtio-net header: ICMP "fragmentation needed" (RFC 1191) or ICMPv6 "packet too big" (RFC 4443). It returns
// nil if there is no router of that family.
func (f *frame) tooBig(to []byte, mtu int, router netip.Addr) []byte {
	if router.Is6() != f.v6 || !router.IsValid() {
		return nil
	}
	clear(to[:vnetSize])
	n := vnetSize
	n += copy(to[n:], f.raw[vnetSize+6:vnetSize+12]) // back to the sender
	n += copy(to[n:], f.raw[vnetSize:vnetSize+6])
	n += copy(to[n:], f.raw[vnetSize+12:f.ip])
	if f.v6 {
		return f.tooBig6(to, n, mtu, router.As16())
	}
	return f.tooBig4(to, n, mtu, router.As4())
}

func (f *frame) tooBig4(to []byte, at, mtu int, router [4]byte) []byte {
	ip, icmp := to[at:at+ipv4Size], to[at+ipv4Size:]
	n := icmpSize + copy(icmp[icmpSize:icmpSize+icmpQuote4], f.raw[f.ip:])
	clear(ip)
	ip[0], ip[8], ip[9] = 0x45, routerTTL, protoICMP
	binary.BigEndian.PutUint16(ip[2:], uint16(ipv4Size+n))
	copy(ip[12:], router[:])
	copy(ip[16:], f.raw[f.ip+12:f.ip+16])
	binary.BigEndian.PutUint16(ip[10:], ^fold(sum(0, ip)))

	clear(icmp[:icmpSize])
	icmp[0], icmp[1] = 3, 4
	binary.BigEndian.PutUint16(icmp[6:], uint16(mtu))
	binary.BigEndian.PutUint16(icmp[2:], ^fold(sum(0, icmp[:n])))
	return to[:at+ipv4Size+n]
}

func (f *frame) tooBig6(to []byte, at, mtu int, router [16]byte) []byte {
	ip, icmp := to[at:at+ipv6Size], to[at+ipv6Size:]
	n := icmpSize + copy(icmp[icmpSize:icmpSize+icmpQuote6-ipv6Size-icmpSize], f.raw[f.ip:])
	clear(ip)
	ip[0], ip[6], ip[7] = 0x60, protoICMPv6, routerTTL
	binary.BigEndian.PutUint16(ip[4:], uint16(n))
	copy(ip[8:], router[:])
	copy(ip[24:], f.raw[f.ip+8:f.ip+24])

	clear(icmp[:icmpSize])
	icmp[0] = 2
	binary.BigEndian.PutUint32(icmp[4:], uint32(mtu))
	s := sum(protoICMPv6+uint32(n), ip[8:])
	binary.BigEndian.PutUint16(icmp[2:], ^fold(sum(s, icmp[:n])))
	return to[:at+ipv6Size+n]
}
