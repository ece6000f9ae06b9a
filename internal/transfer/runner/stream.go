package runner

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"io"
)

// Stream is data that a key makes: any part of it can be made again anywhere, so
// that what arrives can be compared without keeping what was sent. It does not
// compress, and no two keys have a block in common.
//
// It is two tables of noise, one over the other. To make each byte by a cipher took
// half as long as to send it by a quick protocol.
type Stream struct{ long, short []byte }

// Lengths of the tables, which have no factor in common: one over the other repeat
// after 64 GiB, further than any compression looks back. Both fit into a CPU's cache.
const (
	longTable  = 256 << 10
	shortTable = longTable - 1
)

// NewStream is the stream of a key (AES-128 in counter mode makes its tables).
func NewStream(key uint64) (Stream, error) {
	secret := binary.BigEndian.AppendUint64(make([]byte, 8, 16), key)
	block, err := aes.NewCipher(secret)
	if err != nil {
		return Stream{}, fmt.Errorf("runner: making data: %w", err)
	}
	noise := make([]byte, longTable+shortTable)
	cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(noise, noise)
	return Stream{noise[:longTable], noise[longTable:]}, nil
}

// Fill makes what the stream holds from an offset on.
func (s Stream) Fill(p []byte, offset int64) {
	for len(p) > 0 {
		a, b := s.long[offset%longTable:], s.short[offset%shortTable:]
		n := min(len(p), len(a), len(b))
		subtle.XORBytes(p[:n], a[:n], b[:n])
		p, offset = p[n:], offset+int64(n)
	}
}

// Reader reads size bytes of the stream from an offset on.
func (s Stream) Reader(offset, size int64) io.Reader {
	return &streamReader{s, offset, offset + size}
}

type streamReader struct {
	stream  Stream
	at, end int64
}

// Read is of the keyed stream, up to its end.
func (r *streamReader) Read(p []byte) (int, error) {
	if r.at >= r.end {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.end-r.at)]
	r.stream.Fill(p, r.at)
	r.at += int64(len(p))
	return len(p), nil
}

// checker compares what is written to it with the stream.
type checker struct {
	stream Stream
	want   []byte
	bytes  int64
	wrong  int64 // the offset of the first byte that differs, -1: none does
}

func (s Stream) checker() *checker {
	return &checker{stream: s, want: make([]byte, 128<<10), wrong: -1}
}

// Write compares, and notes the first byte that differs.
func (c *checker) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		part := c.want[:min(len(p), len(c.want))]
		c.stream.Fill(part, c.bytes)
		if c.wrong < 0 && !bytes.Equal(part, p[:len(part)]) {
			for i := range part {
				if part[i] != p[i] {
					c.wrong = c.bytes + int64(i)
					break
				}
			}
		}
		c.bytes += int64(len(part))
		p = p[len(part):]
	}
	return n, nil
}

// holds reports whether size bytes came, each as the stream has it.
func (c *checker) holds(size int64) bool { return c.wrong < 0 && c.bytes == size }
