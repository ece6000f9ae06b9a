package bus

import (
	"net"
	"net/netip"
	"sync"
)

// porch is where connections wait that have not shown a secret yet. They are
// bounded apart from those that have, and by the address that they come from.
type porch struct {
	mu   sync.Mutex
	most int
	all  int
	from map[netip.Addr]int
}

func newPorch(most int) *porch { return &porch{most: most, from: map[netip.Addr]int{}} }

// enter takes a place if one is free; leave gives it back, once.
func (p *porch) enter(at net.Addr) (leave func(), ok bool) {
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
