package frame

import "encoding/binary"

// anyIP decodes IP of the version in the first four bits.
func anyIP(f part, p *Packet) Verdict {
	if v, lacks := f.lacks(1); lacks {
		return v
	}
	if f.data[0]>>4 == 6 {
		return ipv6(f, p)
	}
	return ipv4(f, p)
}

// Bits of IPv4's flags and fragment offset (RFC 791).
const (
	dontFragment  = 0x4000
	moreFragments = 0x2000
	offsetMask    = 0x1fff
)

// ipv4 decodes an IPv4 packet (RFC 791).
func ipv4(f part, p *Packet) Verdict {
	if v, lacks := f.lacks(20); lacks {
		return v
	}
	b := f.data[:20]
	header, total := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
	if total == 0 { // segmentation offload leaves it to the NIC, or it does not fit in 16 bits
		total = f.wire
	}
	if b[0]>>4 != 4 || header < 20 || total < header {
		return IsBroken
	}
	fragment := binary.BigEndian.Uint16(b[6:])
	p.V6, p.IPBytes = false, total
	p.TOS, p.ID, p.TTL, p.Proto = b[1], binary.BigEndian.Uint16(b[4:]), b[8], b[9]
	p.DF = fragment&dontFragment != 0
	p.Fragment = fragment&(moreFragments|offsetMask) != 0
	p.Later = fragment&offsetMask != 0
	p.Source, p.Target = mapped(b[12:16]), mapped(b[16:20])
	f.wire = total
	if v, lacks := f.lacks(header); lacks {
		return v
	}
	f = upTo(f, total).after(header)
	if p.Proto == authenticated {
		return extensions(f, p)
	}
	return transport(p.Proto, f, p)
}

// mapped returns an IPv4 address as an IPv4-mapped IPv6 address.
func mapped(b []byte) (e Endpoint) {
	e.Addr[10], e.Addr[11] = 0xff, 0xff
	copy(e.Addr[12:], b)
	return e
}

// upTo returns the part without what follows the IP packet: Ethernet's
// padding, its check sequence, a trailer.
func upTo(f part, total int) part {
	if len(f.data) > total {
		f.data = f.data[:total]
	}
	return f
}

// IPv6 extension headers that are skipped (IANA: IPv6 Extension Header
// Types).
const (
	hopByHop      = 0
	routing       = 43
	fragmentation = 44
	authenticated = 51 // AH, also of IPv4
	noNext        = 59
	destination   = 60
	mobility      = 135
	hostIdentity  = 139
	shim6         = 140
)

// mostExtensions limits the extension headers of a packet: there are eight
// kinds, one of which may occur twice (RFC 8200, 4.1).
const mostExtensions = 9

// ipv6 decodes an IPv6 packet (RFC 8200).
func ipv6(f part, p *Packet) Verdict {
	if v, lacks := f.lacks(40); lacks {
		return v
	}
	b := f.data[:40]
	if b[0]>>4 != 6 {
		return IsBroken
	}
	total := 40 + int(binary.BigEndian.Uint16(b[4:]))
	if total == 40 && b[6] != noNext {
		total = f.wire
		if jumbo := jumboBytes(b[6], f.data[40:]); jumbo > 0 {
			total = 40 + jumbo
		}
	}
	p.V6, p.IPBytes = true, total
	p.TOS, p.Proto, p.TTL = b[0]<<4|b[1]>>4, b[6], b[7]
	p.DF, p.Fragment, p.Later, p.ID = false, false, false, 0
	p.Source, p.Target = Endpoint{Addr: [16]byte(b[8:24])}, Endpoint{Addr: [16]byte(b[24:40])}
	f.wire = total
	return extensions(upTo(f, total).after(40), p)
}

// jumboBytes returns the length in a jumbo payload option (RFC 2675), which
// must be the first option of the hop-by-hop header; 0: none.
func jumboBytes(next byte, b []byte) int {
	const jumbo = "\xc2\x04"
	if next != hopByHop || len(b) < 8 || string(b[2:4]) != jumbo {
		return 0
	}
	return int(min(binary.BigEndian.Uint32(b[4:]), 1<<30)) // an int has 32 bits on some systems
}

// extensions skips the extension headers of IPv6, or the authentication
// header of either version, and decodes the rest.
func extensions(f part, p *Packet) Verdict {
	for range mostExtensions {
		n := 8
		switch p.Proto {
		case hopByHop, routing, destination, mobility, hostIdentity, shim6:
			if v, lacks := f.lacks(2); lacks {
				return v
			}
			n = 8 + 8*int(f.data[1])
		case authenticated: // counted in words, minus two (RFC 4302)
			if v, lacks := f.lacks(2); lacks {
				return v
			}
			n = 8 + 4*int(f.data[1])
		case fragmentation:
			if v, lacks := f.lacks(8); lacks {
				return v
			}
			offset := binary.BigEndian.Uint16(f.data[2:])
			p.Fragment = offset&^6 != 0 // an atomic fragment is a whole packet (RFC 6946)
			p.Later = offset>>3 != 0
		default:
			return transport(p.Proto, f, p)
		}
		if v, lacks := f.lacks(n); lacks {
			return v
		}
		p.Proto = f.data[0]
		f = f.after(n)
		if p.Later {
			return transport(p.Proto, f, p)
		}
	}
	return IsBroken
}

// transport decodes the payload of an IP packet.
func transport(proto uint8, f part, p *Packet) Verdict {
	if p.Later {
		if proto == TCP {
			return IsLater
		}
		return IsOther
	}
	switch proto {
	case TCP:
		return tcp(f, p)
	case UDP:
		return udp(f, p)
	case ICMP:
		return icmp(f, p)
	case ICMPv6:
		return icmp6(f, p)
	case inIPv4, inIPv6:
		return inner(anyIP, f, p)
	case inGRE:
		return gre(f, p)
	}
	return IsOther
}
