package host

import (
	"encoding/binary"
	"errors"
	"iter"
)

// attrs iterates over the attributes of a netlink message (netlink(7),
// rtnetlink(7)): a length and a type of 16 bits each, then the value, padded
// to 4 bytes. It stops where the bytes are no attributes.
func attrs(b []byte) iter.Seq2[uint16, []byte] {
	const head = 4
	const flags = 1<<15 | 1<<14 // nested, network byte order
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= head {
			n := int(binary.NativeEndian.Uint16(b))
			if n < head || n > len(b) {
				return
			}
			if !yield(binary.NativeEndian.Uint16(b[2:])&^flags, b[head:n]) {
				return
			}
			b = b[min((n+3)&^3, len(b)):]
		}
	}
}

// attr returns the first attribute of a type, or nil.
func attr(b []byte, want uint16) []byte {
	for kind, value := range attrs(b) {
		if kind == want {
			return value
		}
	}
	return nil
}

// errShort means that a message ends too early.
var errShort = errors.New("the kernel's answer is too short")
