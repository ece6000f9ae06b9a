package bus

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// preAuthLimiter bounds the connections that have not shown a secret yet. They are
// bounded apart from those that have, and by the address that they come from.
type preAuthLimiter struct {
	mu   sync.Mutex
	most int
	all  int
	from map[netip.Addr]int
}

func newPreAuthLimiter(most int) *preAuthLimiter {
	return &preAuthLimiter{most: most, from: map[netip.Addr]int{}}
}

// enter takes a place if one is free; leave gives it back, once.
func (p *preAuthLimiter) enter(at net.Addr) (leave func(), ok bool) {
	var addr netip.Addr // of what is no TCP connection: none
	if tcp, isTCP := at.(*net.TCPAddr); isTCP {
		addr = tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= p.most || p.from[addr] >= (p.most+1)/2 {
		return nil, false
	}
	p.all++
	p.from[addr]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		if p.from[addr]--; p.from[addr] == 0 {
			delete(p.from, addr)
		}
	}), true
}

// pace bounds how much comes in: a bucket of tokens, one for each byte of a
// connection, or for each message. Its zero value bounds no bytes.
type pace struct {
	mu     sync.Mutex
	rate   float64 // tokens a second; 0: no bound
	burst  float64 // tokens that the bucket holds
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

// allow takes a token where there is one, and says no where there is none.
func (p *pace) allow(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tokens = min(p.tokens+p.rate*now.Sub(p.at).Seconds(), p.burst)
	p.at = now
	if p.tokens < 1 {
		return false
	}
	p.tokens--
	return true
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
