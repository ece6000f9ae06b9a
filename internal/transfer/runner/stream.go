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

// Stream is data generated from a key: any part of it can be generated again
// anywhere, so that received data can be compared without a copy of the sent
// data. It does not compress, and no two keys have a block in common.
//
// It combines two tables of random bytes, one over the other. A cipher for
// each byte took half as long as a fast protocol takes to send it.
type Stream struct{ long, short []byte }

// Lengths of the tables, without a common factor: one over the other repeat
// after 64 GiB, more than any compression looks back. Both fit in a CPU's
// cache.
const (
	longTable  = 256 << 10
	shortTable = longTable - 1
)

// NewStream returns the stream of a key (AES-128 in counter mode generates
// its tables).
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

// Fill writes the stream's bytes from an offset to p.
func (s Stream) Fill(p []byte, offset int64) {
	for len(p) > 0 {
		a, b := s.long[offset%longTable:], s.short[offset%shortTable:]
		n := min(len(p), len(a), len(b))
		subtle.XORBytes(p[:n], a[:n], b[:n])
		p, offset = p[n:], offset+int64(n)
	}
}

// Reader returns a reader of size bytes of the stream from an offset.
func (s Stream) Reader(offset, size int64) io.Reader {
	return &streamReader{s, offset, offset + size}
}

type streamReader struct {
	stream  Stream
	at, end int64
}

// Read reads the stream up to its end.
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
	wrong  int64 // the offset of the first wrong byte; -1: none
}

func (s Stream) checker() *checker {
	return &checker{stream: s, want: make([]byte, 128<<10), wrong: -1}
}

// Write compares, and notes the first wrong byte.
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

// holds reports whether exactly size bytes came, all of them right.
func (c *checker) holds(size int64) bool { return c.wrong < 0 && c.bytes == size }
