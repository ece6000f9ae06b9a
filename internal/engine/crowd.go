package engine

import (
	"net/netip"
	"sync"
	"time"

	"thru/internal/measure"
)

// Crowd counts the connections of each owner that have not sent their request yet: a limit against floods.
type Crowd[K comparable] struct {
	mu     sync.Mutex
	counts map[K]int
}

// Enter counts one more connection of who. It returns false where the limit of all connections, or of who's own, is reached.
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

// Leave counts one connection less.
func (c *Crowd[K]) Leave(who K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts[who]--; c.counts[who] <= 0 {
		delete(c.counts, who)
	}
}

// Size returns how many owners have a connection.
func (c *Crowd[K]) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.counts)
}

// Refusals reports why the server turns clients away: at most once a second per address, and for a limited number of addresses.
type Refusals struct {
	Report func(addr string, reason error) // nil: no reports

	mu       sync.Mutex
	reported map[netip.Addr]time.Time
}

// mostRefused limits the addresses reported within refusedEvery.
const (
	mostRefused  = 32
	refusedEvery = time.Second
)

// Note reports a refusal, within the limits.
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
