package bus

import (
	"io"
	"sync"
	"time"
)

// pace bounds what a connection sends: a bucket of tokens, a byte each. Its zero
// value bounds nothing.
type pace struct {
	mu     sync.Mutex
	rate   float64 // bytes a second; 0: no bound
	burst  float64 // bytes
	tokens float64
	at     time.Time
}

// limit sets the bound.
func (p *pace) limit(rate, burst float64, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate, p.burst, p.tokens, p.at = rate, burst, burst, now
}

// take uses up bytes, and returns how long to wait before the next.
func (p *pace) take(bytes int, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rate == 0 {
		return 0
	}
	p.tokens = min(p.tokens+p.rate*now.Sub(p.at).Seconds(), p.burst) - float64(bytes)
	p.at = now
	if p.tokens >= 0 {
		return 0
	}
	return time.Duration(-p.tokens / p.rate * float64(time.Second))
}

// pacedReader reads no faster than a pace: the sender's own TCP then waits, and
// nobody else does.
type pacedReader struct {
	from io.Reader
	pace *pace
	done <-chan struct{} // ends a wait
}

// Read implements io.Reader.
func (r pacedReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if wait := r.pace.take(n, time.Now()); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.done:
		}
	}
	return n, err
}
