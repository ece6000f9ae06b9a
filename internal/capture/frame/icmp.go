package frame

import "encoding/binary"

// icmp decodes a router's message that a packet was too large (RFC 792, RFC
// 1191).
func icmp(f part, p *Packet) Verdict {
	const unreachable, fragmentationNeeded = 3, 4
	if v, lacks := f.lacks(8); lacks {
		return v
	}
	if f.data[0] != unreachable || f.data[1] != fragmentationNeeded {
		return IsOther
	}
	p.TooBig, p.MTU = true, int(binary.BigEndian.Uint16(f.data[6:]))
	quote(f.data[8:], p)
	return IsTooBig
}

// icmp6 decodes the same message of IPv6 (RFC 4443, 3.2).
func icmp6(f part, p *Packet) Verdict {
	const tooBig = 2
	if v, lacks := f.lacks(8); lacks {
		return v
	}
	if f.data[0] != tooBig {
		return IsOther
	}
	p.TooBig, p.MTU = true, int(min(binary.BigEndian.Uint32(f.data[4:]), 1<<30))
	quote(f.data[8:], p)
	return IsTooBig
}

// quote fills in the end points of the packet that an ICMP message quotes, as
// far as the quote goes. It may end after the ports.
func quote(b []byte, p *Packet) {
	var q Packet
	if len(b) == 0 {
		return
	}
	var ports []byte
	switch {
	case b[0]>>4 == 4 && len(b) >= 20:
		q.Source, q.Target, q.Proto = mapped(b[12:16]), mapped(b[16:20]), b[9]
		ports = b[min(int(b[0]&15)*4, len(b)):]
	case b[0]>>4 == 6 && len(b) >= 40:
		q.Source, q.Target, q.Proto = Endpoint{Addr: [16]byte(b[8:24])}, Endpoint{Addr: [16]byte(b[24:40])}, b[6]
		ports = b[40:]
	default:
		return
	}
	if (q.Proto == TCP || q.Proto == UDP) && len(ports) >= 4 {
		q.Source.Port, q.Target.Port = binary.BigEndian.Uint16(ports), binary.BigEndian.Uint16(ports[2:])
	}
	p.QuotedSource, p.QuotedTarget = q.Source, q.Target
}
