package frame

import "encoding/binary"

// IP protocols that carry packets.
const (
	inIPv4 = 4 // RFC 2003
	inIPv6 = 41
	inGRE  = 47
)

// UDP ports that carry frames.
const (
	portVXLAN      = 4789 // RFC 7348
	portVXLANLinux = 8472 // Linux's before the standard
	portGeneve     = 6081 // RFC 8926
	portGRE        = 4754 // RFC 8086
)

// mostTunnels limits nested tunnels.
const mostTunnels = 6

// inner decodes the packet or frame that a tunnel carries.
func inner(decode func(part, *Packet) Verdict, f part, p *Packet) Verdict {
	if p.Tunnels == mostTunnels {
		return IsOther
	}
	p.Tunnels++
	return decode(f, p)
}

// udp decodes UDP (RFC 768), and the tunnels by port.
func udp(f part, p *Packet) Verdict {
	if v, lacks := f.lacks(8); lacks {
		return v
	}
	p.Source.Port, p.Target.Port = binary.BigEndian.Uint16(f.data), binary.BigEndian.Uint16(f.data[2:])
	switch p.Target.Port {
	case portVXLAN, portVXLANLinux:
		return vxlan(f.after(8), p)
	case portGeneve:
		return geneve(f.after(8), p)
	case portGRE:
		return gre(f.after(8), p)
	}
	return IsOther
}

// vxlan decodes the frame of a VXLAN packet (RFC 7348). Other protocols may
// use the port, so the header must be plausible.
func vxlan(f part, p *Packet) Verdict {
	const hasNetwork = 0x08
	if f.wire < 8 {
		return IsOther
	}
	if v, lacks := f.lacks(8); lacks {
		return v
	}
	if f.data[0]&hasNetwork == 0 || f.data[7] != 0 {
		return IsOther
	}
	return inner(ethernet, f.after(8), p)
}

// geneve decodes the payload of a Geneve packet, after its options (RFC
// 8926).
func geneve(f part, p *Packet) Verdict {
	if f.wire < 8 {
		return IsOther
	}
	if v, lacks := f.lacks(8); lacks {
		return v
	}
	if f.data[0]>>6 != 0 { // an unknown version
		return IsOther
	}
	n := 8 + 4*int(f.data[0]&63)
	if v, lacks := f.lacks(n); lacks {
		return v
	}
	return carried(binary.BigEndian.Uint16(f.data[2:]), f.after(n), p)
}

// Bits of GRE's first two bytes (RFC 2784, RFC 2890).
const (
	greChecksum = 0x8000
	greKey      = 0x2000
	greSequence = 0x1000
	greOthers   = 0x4fff // routing of RFC 1701, and versions with other payloads
)

// Mirrored frames in GRE (draft-foschiano-erspan).
const (
	typeERSPAN  = 0x88be // types I and II
	typeERSPAN3 = 0x22eb
)

// gre decodes the payload of a GRE packet.
func gre(f part, p *Packet) Verdict {
	if v, lacks := f.lacks(4); lacks {
		return v
	}
	flags, kind := binary.BigEndian.Uint16(f.data), binary.BigEndian.Uint16(f.data[2:])
	if flags&greOthers != 0 {
		return IsOther
	}
	n := 4
	for _, bit := range []uint16{greChecksum, greKey, greSequence} {
		if flags&bit != 0 {
			n += 4
		}
	}
	switch {
	case kind == typeERSPAN && flags&greSequence != 0: // type II; type I has no header
		n += 8
	case kind == typeERSPAN3:
		n += 12
		if v, lacks := f.lacks(n); lacks {
			return v
		}
		if f.data[n-1]&1 != 0 { // it has a platform-specific subheader
			n += 8
		}
	}
	if v, lacks := f.lacks(n); lacks {
		return v
	}
	if kind == typeERSPAN || kind == typeERSPAN3 {
		kind = typeEthernet
	}
	return carried(kind, f.after(n), p)
}

// carried decodes a tunnel's payload by its Ethernet type.
func carried(kind uint16, f part, p *Packet) Verdict {
	if kind == typeEthernet {
		return inner(ethernet, f, p)
	}
	return inner(func(f part, p *Packet) Verdict { return network(kind, f, p) }, f, p)
}
