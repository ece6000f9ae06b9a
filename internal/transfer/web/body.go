package web

import (
	"bytes"
	"io"
	"net/http"
	"sync"
)

// body is the contents of a request; nil is empty.
type body struct {
	io.Reader
	size int64
}

// into makes b the body of a request. Where the server may ask for a password
// first, the request asks whether it accepts the body (unknown), and body
// keeps what is sent all the same. stop ends the sending, restores b, and
// returns how many bytes cannot be restored.
func (b *body) into(req *http.Request, unknown bool) (stop func() (lost int64)) {
	if b == nil {
		return func() int64 { return 0 }
	}
	if req.ContentLength = b.size; b.size == 0 {
		req.Body = http.NoBody
		return func() int64 { return 0 }
	}
	if unknown || b.size > muchToSend {
		req.Header.Set("Expect", "100-continue")
	}
	s := &sending{from: b.Reader}
	if unknown {
		s.keep = muchToSend
	}
	req.Body = io.NopCloser(s)
	return func() int64 {
		sent := s.end()
		if int64(len(s.kept)) < sent {
			return sent
		}
		b.Reader = io.MultiReader(bytes.NewReader(s.kept), b.Reader)
		return 0
	}
}

// sending is a body in transmission. net/http may still be reading it when
// the response is there.
type sending struct {
	mu   sync.Mutex
	from io.Reader
	sent int64
	kept []byte // its beginning
	keep int    // most bytes to keep
	over bool
}

// Read counts and keeps the bytes.
func (s *sending) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return 0, io.ErrClosedPipe
	}
	n, err := s.from.Read(b)
	s.sent += int64(n)
	s.kept = append(s.kept, b[:min(n, s.keep-len(s.kept))]...)
	return n, err
}

// end makes later reads fail, and returns how many bytes have been read.
func (s *sending) end() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.sent
}
