package loopback

import (
	"io"
	"strconv"
	"strings"
	"sync"
)

// shelf holds the files of a server in this process: for uploaded files only
// their sizes. A name that is a number is a file of so many bytes.
type shelf struct {
	fill func(b []byte, offset int64)

	mu    sync.Mutex
	sizes map[string]int64
}

func newShelf(o Options) *shelf { return &shelf{fill: o.Fill, sizes: map[string]int64{}} }

// Size returns the size of a file; false where there is none.
func (s *shelf) Size(name string) (int64, bool) {
	name = strings.TrimPrefix(name, "/")
	if n, err := strconv.ParseUint(name, 10, 48); err == nil {
		return int64(n), true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	size, ok := s.sizes[name]
	return size, ok
}

// mostFiles limits the files that are remembered.
const mostFiles = 10_000

// Grow makes a file at least so long, creating it if needed.
func (s *shelf) Grow(name string, size int64) {
	name = strings.TrimPrefix(name, "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.sizes[name]; ok || len(s.sizes) < mostFiles {
		s.sizes[name] = max(size, before)
	}
}

// Rename renames a file; false where there is none.
func (s *shelf) Rename(from, to string) bool {
	from, to = strings.TrimPrefix(from, "/"), strings.TrimPrefix(to, "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	size, ok := s.sizes[from]
	if ok {
		delete(s.sizes, from)
		s.sizes[to] = size
	}
	return ok
}

// Remove removes a file; false where there is none.
func (s *shelf) Remove(name string) bool {
	name = strings.TrimPrefix(name, "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.sizes[name]
	delete(s.sizes, name)
	return ok
}

// Fill returns the contents of a file from an offset.
func (s *shelf) Fill(b []byte, offset int64) {
	if s.fill != nil {
		s.fill(b, offset)
	}
}

// block is the size of reads and writes where the protocol has none.
const block = 256 << 10

// pour writes a file of so many bytes.
func (s *shelf) pour(w io.Writer, size int64) error {
	b := make([]byte, min(block, size))
	for offset := int64(0); offset < size; {
		part := b[:min(int64(len(b)), size-offset)]
		s.Fill(part, offset)
		n, err := w.Write(part)
		if err != nil {
			return err
		}
		offset += int64(n)
	}
	return nil
}

// drain reads to the end, and returns the number of bytes.
func drain(r io.Reader) (size int64, err error) {
	for b := make([]byte, block); ; {
		n, err := r.Read(b)
		size += int64(n)
		if err == io.EOF {
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
}
