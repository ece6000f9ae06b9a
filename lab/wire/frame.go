package wire

import "encoding/binary"

// Sizes of the headers before the payload, in bytes.
const (
	vnetSize     = 10 // struct virtio_net_hdr of linux/virtio_net.h
	ethernetSize = 14
	ipv4Size     = 20
	ipv6Size     = 40
	tcpSize      = 20
	udpSize      = 8
	// headMax has room for all of them with the options of IPv4 and TCP.
	headMax = vnetSize + ethernetSize + 60 + 60
)

// Fields of a virtio-net header, by offset, and their values.
const (
	vnetFlags      = 0
	vnetType       = 1
	vnetHeaders    = 2
	vnetSegment    = 4
	vnetCsumStart  = 6
	vnetCsumOffset = 8

	flagNeedsCsum = 1
	gsoNone       = 0
	gsoECN        = 0x80
)

// Protocol numbers.
const (
	etherIPv4, etherIPv6     = 0x0800, 0x86dd
	protoICMP                = 1
	protoTCP, protoUDP       = 6, 17
	protoICMPv6              = 58
	flagFIN, flagSYN, flagPS = 0x01, 0x02, 0x08
	flagCWR                  = 0x80
)

// frame is one read from a TAP device: a virtio-net header and an Ethernet frame, with the offsets of its
// parts.
type frame struct {
	raw       []byte
	ip        int // offset of the IP header; 0: not IP, or truncated
	transport int // offset of the TCP or UDP header; 0: neither, or a later fragment
	payload   int // offset of the payload; 0 without a transport
	v6        bool
	proto     byte
	segment   int // payload of each segment but the last; 0: a single packet
}

// parse finds the parts of a frame. Unknown or truncated frames have no parts and are one packet.
func parse(raw []byte) frame {
	f := frame{raw: raw}
	if len(raw) < vnetSize+ethernetSize+ipv4Size {
		return f
	}
	ip := vnetSize + ethernetSize
	end := 0
	fragment := false
	switch binary.BigEndian.Uint16(raw[ip-2:]) {
	case etherIPv4:
		f.proto, end = raw[ip+9], ip+int(raw[ip]&15)*4
		fragment = binary.BigEndian.Uint16(raw[ip+6:])&0x1fff != 0
		if end < ip+ipv4Size || end > len(raw) {
			return f
		}
	case etherIPv6:
		if end = ip + ipv6Size; end > len(raw) {
			return f
		}
		f.proto, f.v6 = raw[ip+6], true
	default:
		return f
	}
	f.ip = ip
	if !fragment {
		f.parseTransport(end)
	}
	return f
}

// parseTransport finds the parts above IP.
func (f *frame) parseTransport(at int) {
	end := 0
	switch {
	case f.proto == protoTCP && at+tcpSize <= len(f.raw):
		if end = at + int(f.raw[at+12]>>4)*4; end < at+tcpSize {
			return
		}
	case f.proto == protoUDP && at+udpSize <= len(f.raw):
		end = at + udpSize
	default:
		return
	}
	if end > len(f.raw) {
		return
	}
	f.transport, f.payload = at, end
	size := int(binary.NativeEndian.Uint16(f.raw[vnetSegment:]))
	if f.raw[vnetType]&^gsoECN != gsoNone && size > 0 && len(f.raw)-end > size {
		f.segment = size
	}
}

// segments returns how many packets the frame is on a wire.
func (f *frame) segments() int {
	if f.segment == 0 {
		return 1
	}
	return (len(f.raw) - f.payload + f.segment - 1) / f.segment
}

// size returns the size of segment i on a wire, in bytes of its Ethernet frame.
func (f *frame) size(i int) int {
	if f.segment == 0 {
		return len(f.raw) - vnetSize
	}
	from := f.payload + i*f.segment
	return f.payload - vnetSize + min(f.segment, len(f.raw)-from)
}

// flow returns a hash of addresses and ports, or only of addresses without ports: packets of one connection
// share it, in every run.
func (f *frame) flow() uint64 {
	if f.ip == 0 {
		return 0
	}
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	for _, b := range f.addresses() {
		h = (h ^ uint64(b)) * prime
	}
	if f.transport > 0 {
		for _, b := range f.raw[f.transport : f.transport+4] {
			h = (h ^ uint64(b)) * prime
		}
	}
	return h ^ h>>32 // the low bits of FNV alone mix poorly
}

// addresses returns the addresses of the IP header, source first.
func (f *frame) addresses() []byte {
	if f.v6 {
		return f.raw[f.ip+8 : f.ip+ipv6Size]
	}
	return f.raw[f.ip+12 : f.ip+ipv4Size]
}

// cut writes the headers for segments from to to-1 as a separate frame to head, and returns their length and
// the payload. The result is a super-packet if it has more than one segment.
func (f *frame) cut(head []byte, from, to int) (int, []byte) {
	begin := f.payload + from*f.segment
	end := min(f.payload+to*f.segment, len(f.raw))
	body := f.raw[begin:end]
	n := copy(head, f.raw[:f.payload])
	head = head[:n]
	head[vnetFlags] |= flagNeedsCsum // the kernel at the other end completes it, as a NIC would
	binary.NativeEndian.PutUint16(head[vnetHeaders:], uint16(n-vnetSize))
	binary.NativeEndian.PutUint16(head[vnetCsumStart:], uint16(f.transport-vnetSize))
	if to-from == 1 {
		head[vnetType] = gsoNone
		binary.NativeEndian.PutUint16(head[vnetSegment:], 0)
	}
	f.cutIP(head, from, n-f.transport+len(body))
	f.cutTransport(head, from, end == len(f.raw), n-f.transport+len(body))
	return n, body
}

// cutIP writes the length, and for IPv4 the identification and the checksum,
// of a packet whose IP payload is length bytes.
func (f *frame) cutIP(head []byte, from, length int) {
	if f.v6 {
		binary.BigEndian.PutUint16(head[f.ip+4:], uint16(length))
		return
	}
	ip := head[f.ip:f.transport]
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+length))
	binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+uint16(from))
	binary.BigEndian.PutUint16(ip[10:], 0)
	binary.BigEndian.PutUint16(ip[10:], ^fold(sum(0, ip)))
}

// cutTransport writes the fields that differ between the segments of TCP and UDP, and the checksum of the
// pseudo header, to which the payload is added later.
func (f *frame) cutTransport(head []byte, from int, last bool, length int) {
	h, offset := head[f.transport:], 6
	if f.proto == protoTCP {
		offset = 16
		binary.BigEndian.PutUint32(h[4:], binary.BigEndian.Uint32(h[4:])+uint32(from*f.segment))
		if !last {
			h[13] &^= flagFIN | flagPS
		}
		if from > 0 {
			h[13] &^= flagCWR
		}
	} else {
		binary.BigEndian.PutUint16(h[4:], uint16(length))
	}
	binary.NativeEndian.PutUint16(head[vnetCsumOffset:], uint16(offset))
	binary.BigEndian.PutUint16(h[offset:], fold(f.pseudo(length)))
}

// pseudo returns the sum of the pseudo header of TCP, UDP and ICMPv6.
func (f *frame) pseudo(length int) uint32 {
	return sum(uint32(f.proto)+uint32(length), f.addresses())
}

// sum adds the 16-bit words of b (RFC 1071).
func sum(to uint32, b []byte) uint32 {
	for ; len(b) >= 2; b = b[2:] {
		to += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		to += uint32(b[0]) << 8
	}
	return to
}

// fold reduces a sum to 16 bits.
func fold(s uint32) uint16 {
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s)
}
