package pcapfile

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// source is a file as a stream with access to the next bytes without a copy.
type source struct {
	buf    *bufio.Reader
	at     int64  // offset of the next byte in the uncompressed file
	late   int64  // bytes before it still to skip
	packed string // text for offsets in the uncompressed file
}

// bufferBytes holds a whole packet of mostData with its headers, and fits in
// a core's cache.
const bufferBytes = 256 << 10

// unpacked opens a file, compressed or not.
func unpacked(in io.Reader) (*source, error) {
	const gzipMagic, zstdMagic = "\x1f\x8b", "\x28\xb5\x2f\xfd"
	plain := &source{buf: bufio.NewReaderSize(in, bufferBytes)}
	magic, err := plain.peek(len(zstdMagic))
	if err != nil && len(magic) < len(gzipMagic) {
		return plain, nil // the caller gets the error again
	}
	var unpack io.Reader
	switch {
	case string(magic[:2]) == gzipMagic:
		unpack, err = gzip.NewReader(plain.buf)
	case string(magic) == zstdMagic:
		unpack, err = zstd.NewReader(plain.buf, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostWindow), zstd.WithDecoderLowmem(true))
	default:
		return plain, nil
	}
	if err != nil {
		return nil, fmt.Errorf("pcapfile: unpacking: %w", err)
	}
	return &source{buf: bufio.NewReaderSize(unpack, bufferBytes), packed: " of the unpacked file"}, nil
}

// mostWindow limits the memory for decompression: zstd's window without
// --long is 8 MiB at most.
const mostWindow = 32 << 20

// peek returns the next n bytes without skipping them. They are valid until
// the next peek. With fewer bytes left it returns those and
// io.ErrUnexpectedEOF, or io.EOF where there are none.
func (s *source) peek(n int) ([]byte, error) {
	if s.late > 0 {
		if err := s.pass(); err != nil {
			return nil, err
		}
	}
	b, err := s.buf.Peek(n)
	if err == io.EOF && len(b) > 0 {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// skip skips n bytes. Bytes that peek returned stay valid until the next
// peek.
func (s *source) skip(n int64) { s.at, s.late = s.at+n, s.late+n }

// pass does the skipping that skip deferred.
func (s *source) pass() error {
	for s.late > 0 {
		n, err := s.buf.Discard(int(min(s.late, 1<<30)))
		s.late -= int64(n)
		if err == io.EOF {
			s.at -= s.late
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
	return nil
}
