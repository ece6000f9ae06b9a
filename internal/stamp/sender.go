package stamp

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"thru/internal/fault"
	"thru/internal/sock"
)

// Limits and defaults of a Sender.
const (
	mostTargets     = 4096
	defaultInterval = time.Second
	defaultTimeout  = 3 * time.Second // as long as TWAMP's servers wait, at most, on any path that is of use
	defaultSpan     = time.Minute
	shortest        = 10 * time.Millisecond  // interval
	mostGrid        = 200 * time.Millisecond // of the timer, which also is a fifth of the interval at most: each turn costs more than its packets
)

// Bars above which a clock has not just drifted.
const (
	sleptBar   = 100 * time.Millisecond
	jumpBar    = 50 * time.Millisecond // NTP slews by at most 0.5 ms a second
	stalledBar = time.Second
)

// Config describes a Sender.
type Config struct {
	Device    string        // interface or VRF
	Seed      uint64        // spreads the sessions over their interval, the same way each time
	Span      time.Duration // of a Summary; 0: defaultSpan
	FirstSpan time.Duration // of the first of a session; 0: Span
	Timeout   time.Duration // after which a packet is lost; 0: defaultTimeout
	// Report receives each Summary of a session. It is called by one goroutine at a time.
	Report func(id string, s Summary)

	clock clock // of a test; empty: the host's
}

// clock is what a Sender knows of time.
type clock struct {
	now   func() moment
	slept func() time.Duration // how long the host has been suspended, in total
	off   func() time.Duration // how far the wall clock may be off; 0: not known
}

// Sender sends the packets of many sessions by one socket and one timer.
type Sender struct {
	conf  Config
	conn  packetConn
	why   error // what this system does not report
	stop  chan struct{}
	wake  chan struct{} // capacity 1: the sessions have changed
	wg    sync.WaitGroup
	close sync.Once

	mu       sync.Mutex
	sessions []*session // in the order of Add
	bySSID   map[uint16][]*session
	ended    []report // summaries of removed sessions
	buffer   [maxPacket]byte
	last     moment // of the last turn
	slept    time.Duration
	off      time.Duration // of the wall clock at most; 0: not known
	judged   time.Duration // when that was read
	planned  time.Duration // when the next turn is due
	drained  time.Duration // when the last batch of replies was read
}

type report struct {
	id      string
	summary Summary
}

// OpenSender opens the socket, and sends nothing until Add.
func OpenSender(ctx context.Context, c Config) (*Sender, error) {
	s, err := openSocket(ctx, "", 0, c.Device)
	if err != nil {
		return nil, fault.Failf("", "stamp: opening a socket: %w", err)
	}
	return newSender(c, polledOf(s), s.missing()), nil
}

func newSender(c Config, conn packetConn, why error) *Sender {
	if c.Span <= 0 {
		c.Span = defaultSpan
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.clock.now == nil {
		c.clock = hostClock()
	}
	s := &Sender{conf: c, conn: conn, why: why, stop: make(chan struct{}), wake: make(chan struct{}, 1), bySSID: map[uint16][]*session{}}
	s.last, s.slept = c.clock.now(), c.clock.slept()
	s.planned = s.last.mono
	if !conn.isPolled() {
		s.wg.Go(func() {
			readAll(conn, func(b []byte, from netip.AddrPort, h sock.Header) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.take(b, from, h)
			})
		})
	}
	s.wg.Go(s.run)
	return s
}

// hostClock returns the clock of this host.
func hostClock() clock {
	began := time.Now()
	return clock{
		now:   func() moment { now := time.Now(); return moment{now.Sub(began), now.Round(0)} },
		slept: suspended,
		off:   clockError,
	}
}

// Missing returns why this system reports neither TTL nor MTU nor kernel time stamps; nil: it does.
func (s *Sender) Missing() error { return s.why }

// Add begins a session. Its first packet is sent within its interval.
func (s *Sender) Add(id string, t Target) error {
	t.To = netip.AddrPortFrom(t.To.Addr().Unmap(), t.To.Port())
	if a := t.To.Addr(); !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || t.To.Port() == 0 {
		return fault.Failf("", "stamp: adding a session: %v is no address of a host", t.To)
	}
	if t.Interval == 0 {
		t.Interval = defaultInterval
	}
	t.Interval = max(t.Interval, shortest)
	if s.why != nil {
		t.MTU = 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.sessions) >= mostTargets:
		return fault.Failf("end other watches", "stamp: adding a session: this host sends to %d reflectors, its limit", mostTargets)
	case slices.ContainsFunc(s.sessions, func(x *session) bool { return x.id == id }):
		return fault.Failf("", "stamp: adding a session: %.60q runs already", id)
	}
	first := s.conf.clock.now()
	x := newSession(id, t, s.conf, first)
	x.next += time.Duration(phase(s.conf.Seed, id) * float64(t.Interval))
	s.sessions = append(s.sessions, x)
	s.bySSID[t.SSID] = append(s.bySSID[t.SSID], x)
	s.hurry()
	return nil
}

// SetBound changes how far the clocks of both ends of a session may be apart.
func (s *Sender) SetBound(id string, bound time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		if x.id == id {
			x.Bound = bound
		}
	}
}

// phase places a session within its interval: from 0 to below 1.
func phase(seed uint64, id string) float64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	return rand.New(rand.NewPCG(seed, h.Sum64())).Float64()
}

// hurry makes run look at the sessions again.
func (s *Sender) hurry() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Remove ends a session. Its last Summary, which is shorter, is reported soon. It returns false where there is no such session.
func (s *Sender) Remove(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.sessions, func(x *session) bool { return x.id == id })
	if i < 0 {
		return false
	}
	s.drain()
	x := s.sessions[i]
	s.sessions = slices.Delete(s.sessions, i, i+1)
	same := slices.DeleteFunc(s.bySSID[x.SSID], func(y *session) bool { return x == y })
	if s.bySSID[x.SSID] = same; len(same) == 0 {
		delete(s.bySSID, x.SSID)
	}
	s.end(x)
	s.hurry()
	return true
}

func (s *Sender) end(x *session) {
	for _, y := range x.end(s.conf.clock.now().mono) {
		s.ended = append(s.ended, report{x.id, y})
	}
}

// Close ends all sessions, and reports their last summaries.
func (s *Sender) Close() {
	s.close.Do(func() {
		close(s.stop)
		if !s.conn.isPolled() {
			s.conn.Close() // ends the reader
		}
		s.wg.Wait()
		s.mu.Lock()
		s.drain()
		for _, x := range s.sessions {
			s.end(x)
		}
		s.sessions, s.bySSID = nil, map[uint16][]*session{}
		s.mu.Unlock()
		if s.conn.isPolled() {
			s.conn.Close()
		}
		s.deliver()
	})
}

// run sends what is due until Close.
func (s *Sender) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.wake:
		case <-s.stop:
			return
		}
		timer.Reset(s.turn())
		s.deliver()
	}
}

// deliver reports the summaries that are complete.
func (s *Sender) deliver() {
	s.mu.Lock()
	all := s.ended
	s.ended = nil
	for _, x := range s.sessions {
		for _, y := range x.take() {
			all = append(all, report{x.id, y})
		}
	}
	s.mu.Unlock()
	for _, r := range all {
		s.conf.Report(r.id, r.summary)
	}
}

// turn sends what is due, and returns the time to the next turn.
func (s *Sender) turn() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.conf.clock.now()
	s.drain()
	s.watchClocks(now)
	if now.mono-s.judged > clockAge {
		s.judged, s.off = now.mono, s.conf.clock.off()
	}
	next, grid := now.mono+time.Minute, mostGrid
	for _, x := range s.sessions {
		x.off = s.off
		if x.next <= now.mono {
			x.settle(now.mono)
			s.send(x, 0)
			if x.isProved {
				s.sendMTU(x, now.mono)
			}
			// What is missed is not caught up: it would be a burst.
			x.next += x.pause() * (1 + (now.mono-x.next)/x.pause())
		}
		next, grid = min(next, x.next), min(grid, max(x.Interval/5, shortest))
	}
	s.planned = (next/grid + 1) * grid
	return s.planned - now.mono
}

// sendMTU sends a packet of the search for the MTU, if one is due.
func (s *Sender) sendMTU(x *session, now time.Duration) {
	if mtu := x.mtu.due(now); mtu > 0 {
		s.send(x, mtu)
	}
}

// send sends one packet of a session: an ordinary one, or one of the search for the MTU.
func (s *Sender) send(x *session, mtu int) {
	now := s.conf.clock.now()
	p, b := x.packet(s.buffer[:], now, mtu)
	err := s.conn.send(b, x.To, netip.Addr{})
	if err == nil {
		return
	}
	x.unsent(p, err)
	if mtu > 0 && errors.Is(err, syscall.EMSGSIZE) {
		x.mtu.reject(mtu, now.mono)
	}
}

// watchClocks finds out whether the host was suspended, the process stalled, or the wall clock set since the last turn.
func (s *Sender) watchClocks(now moment) {
	total := s.conf.clock.slept()
	slept := total - s.slept
	passed := now.mono - s.last.mono
	jumped := now.wall.Sub(s.last.wall) - passed - max(slept, 0)
	stalled := now.mono - s.planned
	s.last, s.slept = now, total
	for _, x := range s.sessions {
		if slept > sleptBar {
			x.tally.Slept += slept
		}
		if jumped.Abs() > jumpBar+passed/1000 {
			x.tally.Jumped += jumped.Abs()
		}
		if stalled > stalledBar {
			x.tally.Stalled += stalled
		}
		if slept > sleptBar || stalled > stalledBar {
			x.abandon()
		}
	}
}

// drain takes the replies that have arrived. The caller holds mu.
func (s *Sender) drain() {
	if s.conn.isPolled() {
		drain(s.conn, s.buffer[:], s.take)
		s.drained = s.conf.clock.now().mono
	}
}

// take passes a packet to its session. The caller holds mu.
func (s *Sender) take(b []byte, from netip.AddrPort, h sock.Header) {
	now := s.conf.clock.now()
	at := now
	if !h.At.IsZero() { // when the kernel received it: not before the last batch, whatever the wall clock says
		at = now.before(min(max(now.wall.Sub(h.At), 0), now.mono-s.drained))
	}
	for _, authenticated := range []bool{true, false} {
		r, err := ParseReply(b, authenticated)
		if err != nil {
			continue
		}
		for _, x := range s.bySSID[r.SSID] {
			if (x.key != nil) == authenticated && (authenticated || x.To == from) && x.isOf(b, &r) {
				x.receive(&r, at)
				return
			}
		}
	}
}
