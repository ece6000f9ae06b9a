package bus

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// preAuthLimiter bounds the connections that have not shown a secret yet, in total
// and by address. It does not count those that have.
type preAuthLimiter struct {
	mu   sync.Mutex
	most int
	all  int
	from map[netip.Addr]int
}

func newPreAuthLimiter(most int) *preAuthLimiter {
	return &preAuthLimiter{most: most, from: map[netip.Addr]int{}}
}

// enter takes a slot if one is free; leave frees it, once.
func (p *preAuthLimiter) enter(at net.Addr) (leave func(), ok bool) {
	addr := addrOf(at)
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

// pacedReader limits the rate of reading: the sender's own TCP then waits, and no
// other connection does.
type pacedReader struct {
	from io.Reader
	pace *rate.Limiter   // of bytes
	done <-chan struct{} // ends a wait
}

// Read implements io.Reader.
func (r pacedReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	now := time.Now()
	if wait := r.pace.ReserveN(now, n).DelayFrom(now); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.done:
		}
	}
	return n, err
}
