package vsphere

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// bounds are what a server may take at most: one that hangs, or sends without
// an end, costs what it did not tell and neither the time nor the memory of who asks.
type bounds struct {
	connect time.Duration // until TCP and TLS are there, each
	open    time.Duration // until it has told who it is, and again until it has let us in
	answer  time.Duration // from a request to the last byte of its answer
	bytes   int64         // of one answer
}

// usualBounds leave a busy vCenter some minutes' worth of its usual answers: 100
// machines or 10 hosts a page are a few megabytes.
func usualBounds() bounds {
	return bounds{connect: 10 * time.Second, open: 30 * time.Second, answer: 2 * time.Minute, bytes: 64 << 20}
}

// mostObjects is of how many one question may be answered: some times what a
// vCenter can have.
const mostObjects = 500_000

// errTooMuch is the end of an answer without one.
var errTooMuch = errors.New("it sends more than any vCenter has to tell")

// bounded holds each request to the bounds.
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

// answer is the body of one, which ends with an error where it is too long.
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
