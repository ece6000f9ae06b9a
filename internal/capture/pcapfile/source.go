package pcapfile

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// source is a file as a stream, of which the next bytes can be looked at
// without a copy.
type source struct {
	buf    *bufio.Reader
	at     int64  // offset of the next byte, in what was unpacked
	late   int64  // bytes before it that are to be passed over
	packed string // says of an offset that it is one of the unpacked file
}

// bufferBytes holds a whole packet of mostData with its headers. It is no
// larger, to stay in a core's cache.
const bufferBytes = 256 << 10

// unpacked opens a file, compressed or not.
func unpacked(in io.Reader) (*source, error) {
	const gzipMagic, zstdMagic = "\x1f\x8b", "\x28\xb5\x2f\xfd"
	plain := &source{buf: bufio.NewReaderSize(in, bufferBytes)}
	magic, err := plain.peek(len(zstdMagic))
	if err != nil && len(magic) < len(gzipMagic) {
		return plain, nil // the caller finds out what is wrong with it
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

// mostWindow is the most that a compressed file makes us remember: zstd's
// window without --long is 8 MiB at most.
const mostWindow = 32 << 20

// peek returns the next n bytes without passing them. They are valid until the
// next peek. With fewer left it returns those, and io.EOF where there are none,
// else io.ErrUnexpectedEOF.
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

// skip passes over n bytes. Those that were looked at stay valid until the next peek.
func (s *source) skip(n int64) { s.at, s.late = s.at+n, s.late+n }

// pass does what skip put off.
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
