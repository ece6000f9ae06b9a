package vsphere

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// bounds limits the time and size of a server's answers: a server that hangs,
// or sends without end, costs only the facts that it did not send, not the
// caller's time or memory.
type bounds struct {
	connect time.Duration // to connect TCP and TLS, each
	open    time.Duration // to identify the server, and again to log in
	answer  time.Duration // from a request to the last byte of its answer
	bytes   int64         // of one answer
}

// usualBounds returns limits that leave a busy vCenter some minutes for its
// usual answers: a page of 100 machines or 10 hosts has a few megabytes.
func usualBounds() bounds {
	return bounds{connect: 10 * time.Second, open: 30 * time.Second, answer: 2 * time.Minute, bytes: 64 << 20}
}

// mostObjects limits the objects in the answers to one query: some times what
// a vCenter can have.
const mostObjects = 500_000

// errTooMuch ends an answer that is too long.
var errTooMuch = errors.New("its answer is larger than any valid one")

// bounded applies the limits to each request.
type bounded struct {
	next http.RoundTripper
	bounds
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), b.answer)
	res, err := b.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	res.Body = &answer{ReadCloser: res.Body, left: b.bytes, done: cancel}
	return res, nil
}

// answer is a response body that ends with an error where it is too long.
type answer struct {
	io.ReadCloser
	left int64
	done context.CancelFunc
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, errTooMuch
	}
	n, err := a.ReadCloser.Read(p[:min(int64(len(p)), a.left)])
	a.left -= int64(n)
	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error {
	defer a.done()
	return a.ReadCloser.Close()
}
