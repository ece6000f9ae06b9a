package path

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"thru/internal/measure"
	"thru/internal/unit"
)

// The round of source ports: datagrams of several sockets, interleaved, which the other end returns with the TTL that they had on arrival.
const (
	sourcePorts = 16
	portRounds  = 10
	portGap     = 400 * time.Microsecond
)

// portProbe is one source port.
type portProbe struct {
	s    *socket
	conn *net.UDPConn

	mu    sync.Mutex
	began map[uint16]time.Time // by round
	took  map[uint16]int64     // ns
	ttls  []int
}

// probePorts tests source ports; it returns nil with too few echoes for a result. A difference in delay counts only where a second pass confirms it.
func probePorts(ctx context.Context, s *socket, local netip.Addr, device string, settle time.Duration) (*measure.SourcePorts, error) {
	probes := make([]*portProbe, sourcePorts)
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range probes {
		conn, _, err := bindUDP(ctx, netip.AddrPortFrom(local, 0), device)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		probes[i] = &portProbe{s: s, conn: conn}
		wg.Go(probes[i].receive)
	}
	first := group(askPorts(ctx, probes, 0, settle))
	if first == nil || first.By != "delay" {
		return first, ctx.Err()
	}
	return agreed(first, group(askPorts(ctx, probes, portRounds, settle))), ctx.Err()
}

// askPorts sends one pass of rounds, and waits for the missing echoes.
func askPorts(ctx context.Context, probes []*portProbe, from int, settle time.Duration) []portTrips {
	for _, p := range probes {
		p.reset()
	}
	next := time.Now()
	for round := from; round < from+portRounds && ctx.Err() == nil; round++ {
		for _, i := range rand.Perm(len(probes)) { // random order, so that no port is always the first after a pause
			next = pause(next, portGap)
			probes[i].send(uint16(round))
		}
	}
	awaitEchoes(ctx, probes, settle)
	return unit.Mapped(probes, (*portProbe).trips)
}

// reset discards the previous pass.
func (p *portProbe) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began, p.took, p.ttls = map[uint16]time.Time{}, map[uint16]int64{}, nil
}

// send sends the datagram of one round; one that the kernel refuses counts as lost.
func (p *portProbe) send(round uint16) {
	b := appendDatagram(nil, p.s.cookie, datagram{kind: kindAsk, round: round})
	p.mu.Lock()
	p.began[round] = time.Now()
	p.mu.Unlock()
	p.conn.WriteToUDPAddrPort(b, p.s.target())
}

// receive reads echoes until the socket is closed.
func (p *portProbe) receive() {
	b := make([]byte, 2*datagramSize)
	for failed := 0; failed < 1000; {
		n, from, err := p.conn.ReadFromUDPAddrPort(b)
		now := time.Now()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			failed++
			continue
		}
		d, ok := parseDatagram(b[:n], p.s.cookie)
		if !ok || d.kind != kindEcho || plain(from) != p.s.target() {
			continue
		}
		p.mu.Lock()
		if start, ours := p.began[d.round]; ours && p.took[d.round] == 0 {
			p.took[d.round] = max(int64(now.Sub(start)), 1)
			p.ttls = append(p.ttls, int(d.ttl))
		}
		p.mu.Unlock()
	}
}

// complete reports whether every round has its echo.
func (p *portProbe) complete() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ttls) == portRounds
}

// awaitEchoes waits for the missing echoes.
func awaitEchoes(ctx context.Context, probes []*portProbe, settle time.Duration) {
	for end := time.Now().Add(settle); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		if !slices.ContainsFunc(probes, func(p *portProbe) bool { return !p.complete() }) {
			return
		}
	}
}

// trips returns the echoes of the port.
func (p *portProbe) trips() portTrips {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := portTrips{port: p.conn.LocalAddr().(*net.UDPAddr).Port, ttls: slices.Clone(p.ttls)}
	for round, took := range p.took {
		if round%2 == 1 {
			t.odd = append(t.odd, took)
		} else {
			t.even = append(t.even, took)
		}
	}
	return t
}
