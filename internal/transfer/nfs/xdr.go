package nfs

import (
	"encoding/binary"
	"slices"
)

// XDR (RFC 4506): all is big-endian, and padded to four bytes.

func appendUint32(b []byte, values ...uint32) []byte {
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func appendUint64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

// appendOpaque adds bytes with their length before them: handles, names.
func appendOpaque[T []byte | string](b []byte, v T) []byte {
	b = appendUint32(b, uint32(len(v)))
	b = append(b, v...)
	return append(b, make([]byte, padding(len(v)))...)
}

func padding(n int) int { return -n & 3 }

// reader reads values from a reply. A reply that is too short makes it bad,
// and every later value zero.
type reader struct {
	b    []byte
	tail []byte // what follows b: a file's data in its buffer
	pad  []byte // what follows that: its padding
	bad  bool
}

// bytes returns the next n bytes; nil where they are missing.
func (r *reader) bytes(n int) []byte {
	if n > len(r.b) && r.tail != nil { // less data than was asked for
		r.b, r.tail = slices.Concat(r.b, r.tail, r.pad), nil
	}
	if n < 0 || n > len(r.b) {
		r.b, r.bad = nil, true
		return nil
	}
	taken := r.b[:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) uint32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// opaque returns bytes with a length of at most limit.
func (r *reader) opaque(limit int) []byte {
	n := int64(r.uint32())
	if n > int64(limit) {
		r.b, r.bad = nil, true
		return nil
	}
	if len(r.b) == 0 && int(n) == len(r.tail) {
		taken := r.tail
		r.tail = nil
		return taken
	}
	taken := r.bytes(int(n))
	r.bytes(padding(int(n)))
	return taken
}
