package engine

import (
	"net/netip"
	"sync"
	"time"

	"thru/internal/measure"
)

// Crowd counts connections that have not said what they want, by whose they
// are: a bound against floods.
type Crowd[K comparable] struct {
	mu     sync.Mutex
	counts map[K]int
}

// Enter counts one more of who; false where there are so many of all already,
// or of this one.
func (c *Crowd[K]) Enter(who K, most, mostOfOne int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := 0
	for _, n := range c.counts {
		all += n
	}
	if all >= most || c.counts[who] >= mostOfOne {
		return false
	}
	if c.counts == nil {
		c.counts = map[K]int{}
	}
	c.counts[who]++
	return true
}

// Leave counts one less.
func (c *Crowd[K]) Leave(who K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts[who]--; c.counts[who] <= 0 {
		delete(c.counts, who)
	}
}

// Size is how many of them have any.
func (c *Crowd[K]) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.counts)
}

// Refusals passes on why clients are turned away: within a second once of an
// address, and of so many addresses at most.
type Refusals struct {
	Report func(addr string, reason error) // nil: nobody hears of them

	mu       sync.Mutex
	reported map[netip.Addr]time.Time
}

// mostRefused bounds the addresses of whose refusal is told within refusedEvery.
const (
	mostRefused  = 32
	refusedEvery = time.Second
)

// Note takes one more, at a time.
func (r *Refusals) Note(from netip.AddrPort, now time.Time, reason error) {
	if r.Report != nil && r.isNew(from.Addr().Unmap().WithZone(""), now) {
		r.Report(from.String(), reason)
	}
}

func (r *Refusals) isNew(from netip.Addr, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for a, at := range r.reported {
		if now.Sub(at) > refusedEvery {
			delete(r.reported, a)
		}
	}
	if _, again := r.reported[from]; again || len(r.reported) >= mostRefused {
		return false
	}
	measure.Put(&r.reported, from, now)
	return true
}
