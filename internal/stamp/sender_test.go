package stamp

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"thru/internal/sock"
)

// fakePath connects a Sender to a Reflector in a bubble of fake time.
type fakePath struct {
	reflector *Reflector
	in        chan datagram
	closed    chan struct{}
	mtu       int
	delay     time.Duration // each way
	drop      func(n int) (there bool, back bool)

	polls bool // replies wait for the next turn

	mu   sync.Mutex
	n    int
	sent []time.Duration // since the begin, of ordinary packets
	zero time.Time
}

type datagram struct {
	b    []byte
	from netip.AddrPort
	at   time.Time
}

func newFakePath() *fakePath {
	return &fakePath{
		reflector: &Reflector{sessions: map[uint16]*accepted{}}, in: make(chan datagram, 1000), closed: make(chan struct{}),
		mtu: 1500, delay: 5 * ms, drop: func(int) (bool, bool) { return false, false }, zero: time.Now(),
	}
}

func (f *fakePath) send(b []byte, to netip.AddrPort, _ netip.Addr) error {
	f.mu.Lock()
	n := f.n
	f.n++
	if len(b) < 200 {
		f.sent = append(f.sent, time.Since(f.zero))
	}
	drop, delay := f.drop, f.delay
	f.mu.Unlock()
	there, back := drop(n)
	if there || len(b)+28 > f.mtu {
		return nil
	}
	b = slices.Clone(b)
	time.AfterFunc(delay, func() {
		f.reflector.answer(returnPath{f, to, back}, b, netip.MustParseAddrPort("192.0.2.9:999"), sock.Header{TTL: 252, TOS: -1})
	})
	return nil
}

// set changes the path while packets are under way.
func (f *fakePath) set(change func(*fakePath)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakePath) isPolled() bool { return f.polls }

func (f *fakePath) receive(b []byte) (int, netip.AddrPort, sock.Header, error) {
	if f.polls {
		select {
		case d := <-f.in:
			return copy(b, d.b), d.from, sock.Header{TTL: 253, At: d.at}, nil
		default:
			return 0, netip.AddrPort{}, sock.Header{}, syscall.EAGAIN
		}
	}
	select {
	case d := <-f.in:
		return copy(b, d.b), d.from, sock.Header{TTL: 253}, nil
	case <-f.closed:
		return 0, netip.AddrPort{}, sock.Header{}, net.ErrClosed
	}
}

func (f *fakePath) Close() error {
	close(f.closed)
	return nil
}

// returnPath sends replies to the Sender.
type returnPath struct {
	*fakePath
	from netip.AddrPort
	drop bool
}

func (p returnPath) send(b []byte, _ netip.AddrPort, _ netip.Addr) error {
	if b = slices.Clone(b); !p.drop {
		p.mu.Lock()
		delay := p.delay
		p.mu.Unlock()
		time.AfterFunc(delay, func() { p.in <- datagram{b, p.from, time.Now().Round(0)} })
	}
	return nil
}

// bubble has a Sender with sessions on a fake path, and its clocks.
type bubble struct {
	*Sender
	path       *fakePath
	mu         sync.Mutex
	got        map[string][]Summary
	hold       time.Duration // how long the first report takes
	set, slept time.Duration // wall clock set forward, and time in which the host was suspended
}

func newBubble(t *testing.T, ids ...string) *bubble { return bubbleOf(t, newFakePath(), ids...) }

func bubbleOf(t *testing.T, path *fakePath, ids ...string) *bubble {
	b := &bubble{path: path, got: map[string][]Summary{}}
	host := hostClock()
	b.Sender = newSender(Config{
		Seed: 3,
		Report: func(id string, s Summary) {
			b.mu.Lock()
			hold := b.hold
			b.hold = 0
			b.mu.Unlock()
			time.Sleep(hold)
			b.mu.Lock()
			defer b.mu.Unlock()
			b.got[id] = append(b.got[id], s)
		},
		clock: clock{
			now: func() moment {
				b.mu.Lock()
				defer b.mu.Unlock()
				m := host.now()
				return moment{m.mono, m.wall.Add(b.set)}
			},
			off: func() time.Duration { return 0 },
			slept: func() time.Duration {
				b.mu.Lock()
				defer b.mu.Unlock()
				return b.slept
			},
		},
	}, b.path, nil)
	for _, id := range ids {
		b.add(t, id)
	}
	return b
}

func (b *bubble) add(t *testing.T, id string) {
	key := []byte("the key of " + id)
	ssid, err := b.path.reflector.Add(Accept{Key: key, Rate: 10, Once: true})
	if err == nil {
		err = b.Add(id, Target{To: netip.MustParseAddrPort("192.0.2.1:862"), SSID: ssid, Key: key, MTU: 1500, Bound: ms})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// of returns the summaries of a session until now.
func (b *bubble) of(id string) []Summary {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got[id]
}

// TestMinutes: a healthy path for an hour has a complete summary for each minute, whether replies wake the Sender or wait for its next turn.
func TestMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { hour(t, false) })
	synctest.Test(t, func(t *testing.T) { hour(t, true) })
}

func hour(t *testing.T, polls bool) {
	path := newFakePath()
	path.polls = polls
	b := bubbleOf(t, path, "a", "b")
	time.Sleep(time.Hour)
	b.Close()
	for _, id := range []string{"a", "b"} {
		all := b.of(id)
		sent := 0
		for i, s := range all {
			if s.Lost > 0 || s.RTT.N != s.Sent || s.There.N != s.Sent || s.RTT.Median != 10*ms || s.There.Median.Round(ms) != 5*ms || s.TTLThere != 252 || s.Sent+s.Void != 60 || s.MTU != 1500 {
				t.Errorf("%s: minute %d: %+v", id, i, s)
			}
			sent += s.Sent + s.Void
		}
		if len(all) != 60 || sent != 3600 {
			t.Errorf("%s: %d packets in %d summaries", id, sent, len(all))
		}
	}
}

// TestSpread: many sessions do not send at once, and always at the same moments.
func TestSpread(t *testing.T) {
	course := func() (sent []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t)
			for i := range 100 {
				b.add(t, "session "+string(rune('A'+i)))
			}
			time.Sleep(10 * time.Second)
			b.Close()
			sent = b.path.sent
		})
		return sent
	}
	first := course()
	if !slices.Equal(first, course()) {
		t.Error("the same seed sends at other times")
	}
	slots := map[time.Duration]int{}
	for _, at := range first {
		slots[at.Truncate(100*ms)]++
	}
	for slot, n := range slots {
		if n > 40 {
			t.Errorf("%d of 100 sessions send within 100 ms from %v on", n, slot)
		}
	}
	if len(first) < 980 || len(first) > 1000 {
		t.Errorf("%d packets in 10 s", len(first))
	}
}

// TestClocks: a suspended host, a stalled process and a wall clock that is set are no losses, and nothing is caught up.
func TestClocks(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(b *bubble)
		want func(s Summary) bool
	}{
		{"suspended", func(b *bubble) { b.slept += time.Hour; b.set += time.Hour }, func(s Summary) bool { return s.Slept == time.Hour && s.Jumped == 0 && s.Void > 0 }},
		{"set forward", func(b *bubble) { b.set += 5 * time.Second }, func(s Summary) bool {
			return s.Jumped == 5*time.Second && s.Slept == 0 && s.There.N == 0 && s.RTT.Median == 10*ms
		}},
		{"set back", func(b *bubble) { b.set -= time.Hour }, func(s Summary) bool { return s.Jumped == time.Hour && s.RTT.P99 == 10*ms }},
		{"slewed", func(b *bubble) { b.set += ms }, func(s Summary) bool { return s.Jumped == 0 && s.There.N == s.RTT.N }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, "a")
				time.Sleep(90 * time.Second)
				if tt.name == "suspended" { // while a packet is under way
					b.path.set(func(f *fakePath) { f.delay = 900 * ms })
					time.Sleep(2 * time.Second)
				}
				b.mu.Lock()
				tt.do(b)
				b.mu.Unlock()
				time.Sleep(2 * time.Second)
				b.path.set(func(f *fakePath) { f.delay = 5 * ms })
				time.Sleep(90 * time.Second)
				b.Close()
				all := b.of("a")
				lost := 0
				for _, s := range all {
					lost += s.Lost
				}
				if !slices.ContainsFunc(all, tt.want) && tt.name != "slewed" || lost > 0 || tt.name == "slewed" && !tt.want(all[1]) {
					t.Errorf("%d lost: %+v", lost, all)
				}
			})
		})
	}
}

// TestStall: a process that did not run for 20 s sends one packet then, and says why others are missing.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "a")
		b.mu.Lock()
		b.hold = 20 * time.Second
		b.mu.Unlock()
		time.Sleep(3 * time.Minute)
		b.Close()
		s := b.of("a")[1]
		if s.Lost > 0 || s.Stalled < 18*time.Second || s.Sent+s.Void > 42 || s.Sent+s.Void < 38 {
			t.Errorf("%+v", s)
		}
	})
}

// TestOutage: an outage has its exact times.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "a")
		b.Sender.mu.Lock()
		b.sessions[0].mtu = mtuProbe{}
		b.Sender.mu.Unlock()
		zero := time.Now()
		b.path.set(func(f *fakePath) {
			f.drop = func(int) (bool, bool) {
				at := time.Since(zero)
				return false, at > 30*time.Second && at < 50*time.Second
			}
		})
		time.Sleep(2 * time.Minute)
		b.Close()
		s := b.of("a")[0]
		if s.Lost != 20 || len(s.Runs) != 1 || s.Runs[0].Packets != 20 {
			t.Fatalf("%+v", s)
		}
		begin, end := s.Runs[0].First.Sub(zero), s.Runs[0].Next.Sub(zero)
		if begin < 30*time.Second || begin > 31*time.Second || end < 50*time.Second || end > 51*time.Second {
			t.Errorf("from %v to %v", begin, end)
		}
	})
}

// TestRemove: a session that ends early reports what it has, and others go on.
func TestRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "a", "b")
		time.Sleep(20*time.Second + 500*ms)
		if !b.Remove("a") || b.Remove("a") {
			t.Error("a session cannot be removed, or twice")
		}
		if all := b.of("a"); len(all) != 1 || all[0].Sent+all[0].Void < 20 || all[0].Span.Round(time.Second) > 21*time.Second {
			t.Errorf("%+v", all)
		}
		time.Sleep(time.Minute)
		b.Close()
		if all := b.of("b"); len(all) != 2 || all[0].Sent != 60 {
			t.Errorf("%+v", all)
		}
	})
}

// TestUnproved: an address that never answers gets a few packets, then one each 16 s; one that has answered gets all of them through an outage.
func TestUnproved(t *testing.T) {
	for proved, want := range map[bool]int{false: mostUnproved + 290/16 + 1, true: 300} {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t, "a")
			b.path.set(func(f *fakePath) { f.drop = func(n int) (bool, bool) { return n > 0 || !proved, false } })
			time.Sleep(300 * time.Second)
			b.Close()
			if n := len(b.path.sent); n < want-1 || n > want+1 {
				t.Errorf("proved %v: %d packets, want about %d", proved, n, want)
			}
		})
	}
}

// TestAgain: a session that begins again, with higher numbers, is answered by a reflector that answers each number once.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		key := []byte("key")
		ssid, err := b.path.reflector.Add(Accept{Key: key, Rate: 10, Once: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, first := range []uint32{0, 1000, 5} {
			if err := b.Add("a", Target{To: netip.MustParseAddrPort("192.0.2.1:862"), SSID: ssid, Key: key, First: first}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			b.Remove("a")
			if s := b.of("a")[i]; (s.RTT.N > 8) != (i < 2) {
				t.Errorf("from number %d on: %+v", first, s)
			}
		}
		b.Close()
	})
}

// asked counts how often a connection is asked for packets.
type asked struct {
	*fakePath
	n atomic.Int64
}

func (a *asked) receive(b []byte) (int, netip.AddrPort, sock.Header, error) {
	a.n.Add(1)
	return a.fakePath.receive(b)
}

// TestNoPoll: a reflector that waits for each packet does nothing until one comes, and one that polls does nothing without a session.
func TestNoPoll(t *testing.T) {
	for _, polls := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := &asked{fakePath: newFakePath()}
			c.polls = polls
			r := &Reflector{conns: []packetConn{c}, sessions: map[uint16]*accepted{}, stop: make(chan struct{}), wake: make(chan struct{}, 1)}
			r.start(50 * ms)
			time.Sleep(10 * time.Second)
			if n := c.n.Load(); n != 1 {
				t.Errorf("polls %v: asked %d times without a session", polls, n)
			}
			if _, err := r.Add(Accept{Key: []byte("key"), Rate: 1}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			if n, taken := c.n.Load(), len(r.wake) == 0; polls != (n > 100) || polls != taken {
				t.Errorf("polls %v: asked %d times, woken: %v", polls, n, taken)
			}
			r.Close()
		})
	}
}

// TestBadTargets: a Sender sends only to one host.
func TestBadTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "a")
		defer b.Close()
		for _, to := range []string{"224.0.0.1:862", "[ff02::1]:862", "0.0.0.0:862", "192.0.2.1:0", "[::]:1"} {
			if b.Add("x", Target{To: netip.MustParseAddrPort(to)}) == nil {
				t.Errorf("%s is accepted", to)
			}
		}
		if b.Add("a", Target{To: netip.MustParseAddrPort("192.0.2.1:9")}) == nil {
			t.Error("two sessions of one name")
		}
	})
}
