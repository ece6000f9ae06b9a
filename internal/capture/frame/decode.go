package frame

import "encoding/binary"

// part is the rest of a frame from some header on: its captured bytes, and
// its length on the wire, which is larger where a snap length cut the frame.
type part struct {
	data []byte
	wire int
}

// after returns the part after the next n bytes, which must have been
// captured.
func (f part) after(n int) part { return part{f.data[n:], f.wire - n} }

// lacks reports whether fewer than n bytes were captured, and why.
func (f part) lacks(n int) (Verdict, bool) {
	if len(f.data) >= n {
		return 0, false
	}
	if f.wire >= n {
		return IsCut, true
	}
	return IsBroken, true
}

// Decode fills p from one captured frame, except for Number, TimeNs,
// Interface and WireBytes, which the caller sets. WireBytes gives the lengths
// that the IP header does not have. Fields of headers that the frame lacks
// are zero.
func Decode(link LinkType, data []byte, p *Packet) Verdict {
	number, timeNs, nic, wire := p.Number, p.TimeNs, p.Interface, p.WireBytes
	*p = Packet{}
	p.Number, p.TimeNs, p.Interface, p.WireBytes = number, timeNs, nic, wire

	f := part{data, max(wire, len(data))}
	switch link {
	case Ethernet:
		return ethernet(f, p)
	case Raw, IPv4, IPv6, rawOfBSD, rawOfOpen:
		return anyIP(f, p)
	case LinuxSLL:
		return typeAt(14, 16, f, p)
	case LinuxSLL2:
		return typeAt(0, 20, f, p)
	case IPoIB: // a global route header, then the type and two reserved bytes (RFC 4391)
		return typeAt(40, 44, f, p)
	case Null, Loop:
		return loopback(f, p)
	case PPP, PPPofHDLC:
		return ppp(f, p)
	}
	return IsUnknown
}

// ethernet decodes an IEEE 802.3 frame that begins with its addresses.
func ethernet(f part, p *Packet) Verdict { return typeAt(12, 14, f, p) }

// typeAt decodes the payload after a header of n bytes with the Ethernet type
// at an offset.
func typeAt(offset, n int, f part, p *Packet) Verdict {
	if v, lacks := f.lacks(n); lacks {
		return v
	}
	return network(binary.BigEndian.Uint16(f.data[offset:]), f.after(n), p)
}

// Ethernet types (IEEE 802 numbers, IANA).
const (
	typeIPv4      = 0x0800
	typeIPv6      = 0x86dd
	typeVLAN      = 0x8100 // 802.1Q
	typeService   = 0x88a8 // 802.1ad, the outer tag of QinQ
	typeQinQ      = 0x9100 // the same before the standard
	typeQinQToo   = 0x9200
	typeMPLS      = 0x8847
	typeMPLSMulti = 0x8848
	typePPPoE     = 0x8864
	typeEthernet  = 0x6558 // transparent Ethernet bridging, in GRE and Geneve
	leastType     = 0x0600 // a smaller value is a length (IEEE 802.3, 3.2.6)
)

// mostTags limits the VLAN tags and MPLS labels of a frame, since a hostile
// frame could be full of them.
const mostTags = 8

// network decodes the payload of an Ethernet type, after VLAN tags.
func network(kind uint16, f part, p *Packet) Verdict {
	for {
		switch kind {
		case typeIPv4:
			return ipv4(f, p)
		case typeIPv6:
			return ipv6(f, p)
		case typeVLAN, typeService, typeQinQ, typeQinQToo:
			if p.Tagged == mostTags {
				return IsBroken
			}
			if v, lacks := f.lacks(4); lacks {
				return v
			}
			p.Tagged++
			kind, f = binary.BigEndian.Uint16(f.data[2:]), f.after(4)
		case typeMPLS, typeMPLSMulti:
			return mpls(f, p)
		case typePPPoE: // six bytes of session and length, then PPP (RFC 2516)
			if v, lacks := f.lacks(6); lacks {
				return v
			}
			return ppp(f.after(6), p)
		default:
			if kind < leastType {
				return snap(f, p)
			}
			return IsNotIP
		}
	}
}

// snap decodes an 802.3 frame with LLC and SNAP headers (RFC 1042).
func snap(f part, p *Packet) Verdict {
	const header = "\xaa\xaa\x03\x00\x00\x00" // SNAP, unnumbered information, Ethernet types
	if f.wire < len(header)+2 {
		return IsNotIP
	}
	if v, lacks := f.lacks(len(header) + 2); lacks {
		return v
	}
	if string(f.data[:len(header)]) != header {
		return IsNotIP
	}
	kind := binary.BigEndian.Uint16(f.data[len(header):])
	if kind < leastType {
		return IsNotIP
	}
	return network(kind, f.after(len(header)+2), p)
}

// mpls removes labels (RFC 3032). No field names the payload, so its first
// four bits decide: those of a pseudowire's control word are 0 (RFC 4385).
func mpls(f part, p *Packet) Verdict {
	const last = 1 // bit in a label's third byte
	for range mostTags {
		if v, lacks := f.lacks(5); lacks {
			return v
		}
		bottom := f.data[2]&last != 0
		f = f.after(4)
		if !bottom {
			continue
		}
		if f.data[0]>>4 != 0 {
			return anyIP(f, p)
		}
		if v, lacks := f.lacks(4); lacks {
			return v
		}
		return ethernet(f.after(4), p)
	}
	return IsBroken
}

// ppp decodes PPP with or without its HDLC address (RFC 1661, RFC 1662).
func ppp(f part, p *Packet) Verdict {
	if len(f.data) >= 2 && f.data[0] == 0xff && f.data[1] == 0x03 {
		f = f.after(2)
	}
	if v, lacks := f.lacks(2); lacks {
		return v
	}
	switch binary.BigEndian.Uint16(f.data) { // IANA: PPP DLL Protocol Numbers
	case 0x0021:
		return ipv4(f.after(2), p)
	case 0x0057:
		return ipv6(f.after(2), p)
	case 0x0281, 0x0283:
		return mpls(f.after(2), p)
	}
	return IsNotIP
}

// loopback decodes a four-byte address family, in the byte order of the
// capturing host: families are small numbers, which reveals the order.
func loopback(f part, p *Packet) Verdict {
	if v, lacks := f.lacks(4); lacks {
		return v
	}
	family := binary.BigEndian.Uint32(f.data)
	if family > 0xffff {
		family = binary.LittleEndian.Uint32(f.data)
	}
	switch family {
	case 2: // everywhere
		return ipv4(f.after(4), p)
	case 10, 23, 24, 28, 30: // Linux, Windows, NetBSD and OpenBSD, FreeBSD, macOS
		return ipv6(f.after(4), p)
	}
	return IsNotIP
}
