package mover

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"io"
)

// Stream is data that a key makes: any part of it can be made again anywhere, so
// that what arrives can be compared without keeping what was sent. It does not
// compress, and no two keys have a block in common.
type Stream struct{ block cipher.Block }

// NewStream is the stream of a key (AES-128 in counter mode).
func NewStream(key uint64) (Stream, error) {
	secret := binary.BigEndian.AppendUint64(make([]byte, 8, 16), key)
	block, err := aes.NewCipher(secret)
	if err != nil {
		return Stream{}, fmt.Errorf("mover: making data: %w", err)
	}
	return Stream{block}, nil
}

// at is the key stream from an offset on.
func (s Stream) at(offset int64) cipher.Stream {
	iv := binary.BigEndian.AppendUint64(make([]byte, 8, 16), uint64(offset/aes.BlockSize))
	c := cipher.NewCTR(s.block, iv)
	skip := make([]byte, offset%aes.BlockSize)
	c.XORKeyStream(skip, skip)
	return c
}

// Fill makes what the stream holds from an offset on.
func (s Stream) Fill(b []byte, offset int64) {
	clear(b)
	s.at(offset).XORKeyStream(b, b)
}

// Reader reads size bytes of the stream from an offset on.
func (s Stream) Reader(offset, size int64) io.Reader {
	return &streamReader{s.at(offset), size}
}

type streamReader struct {
	from cipher.Stream
	left int64
}

func (r *streamReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.left)]
	clear(p)
	r.from.XORKeyStream(p, p)
	r.left -= int64(len(p))
	return len(p), nil
}

// checker compares what is written to it with the stream.
type checker struct {
	from  cipher.Stream
	want  []byte
	bytes int64
	wrong int64 // the offset of the first byte that differs, -1: none does
}

func (s Stream) checker() *checker {
	return &checker{from: s.at(0), want: make([]byte, 128<<10), wrong: -1}
}

func (c *checker) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		part := c.want[:min(len(p), len(c.want))]
		clear(part)
		c.from.XORKeyStream(part, part)
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

// holds tells whether size bytes came, each as the stream has it.
func (c *checker) holds(size int64) bool { return c.wrong < 0 && c.bytes == size }
