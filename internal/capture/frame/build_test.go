package frame

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// The addresses of the packets that the tests build.
const (
	source4, target4 = "192.0.2.1", "198.51.100.2"
	source6, target6 = "2001:db8::1", "2001:db8::2"
	outer4, outer4to = "203.0.113.7", "203.0.113.8"
)

// stamps are the options that Linux sends with every segment.
var stamps = []byte{1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9}

// join concatenates bytes, strings and 16-bit numbers.
func join(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case []byte:
			b = append(b, p...)
		case string:
			b = append(b, p...)
		case int:
			b = binary.BigEndian.AppendUint16(b, uint16(p))
		}
	}
	return b
}

// ether is an Ethernet frame.
func ether(kind int, payload ...[]byte) []byte {
	return join("\x02\x00\x00\x00\x00\x02", "\x02\x00\x00\x00\x00\x01", kind, slices.Concat(payload...))
}

// ip4 is an IPv4 packet between the tests' hosts.
func ip4(proto byte, payload []byte) []byte {
	return ip4Of(source4, target4, 0x4000, proto, nil, payload)
}

// ip4Of is an IPv4 packet with a fragment field and options.
func ip4Of(from, to string, fragment int, proto byte, options, payload []byte) []byte {
	header := 20 + len(options)
	return join([]byte{0x40 | byte(header/4), 0x02}, header+len(payload), 0x1234, fragment, []byte{61, proto}, 0,
		netip.MustParseAddr(from).AsSlice(), netip.MustParseAddr(to).AsSlice(), options, payload)
}

// ip6 is an IPv6 packet between the tests' hosts.
func ip6(next byte, payload []byte) []byte {
	return join("\x60\x20\x00\x00", len(payload), []byte{next, 61},
		netip.MustParseAddr(source6).AsSlice(), netip.MustParseAddr(target6).AsSlice(), payload)
}

// tcpSegment is a segment from port 40000 to port 5201.
func tcpSegment(flags byte, payload int, options ...byte) []byte {
	return join(40000, 5201, "\x00\x00\x10\x00", "\x00\x00\x20\x00", []byte{byte(5+len(options)/4) << 4, flags}, 501, 0, 0,
		options, make([]byte, payload))
}

// udpTo is a datagram.
func udpTo(port int, payload []byte) []byte { return join(50000, port, 8+len(payload), 0, payload) }

// with changes one byte.
func with(b []byte, at int, value byte) []byte {
	b = slices.Clone(b)
	b[at] = value
	return b
}
