package stamp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"thru/internal/sock"
)

// openReflector opens a reflector on an address of this host.
func openReflector(t testing.TB, host string, batch time.Duration) *Reflector {
	r, err := OpenReflector(t.Context(), ReflectorConfig{Listen: sock.Range{Addrs: []string{host}}, Batch: batch})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(r.Close)
	return r
}

// collector sums up the reports of a Sender.
type collector struct {
	mu  sync.Mutex
	all []Summary
}

func (c *collector) report(_ string, s Summary) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, s)
}

// openTestSender opens a Sender whose only summaries are those at its end: no time-out passes on a busy machine.
func openTestSender(t testing.TB) (*Sender, *collector) {
	c := &collector{}
	s, err := OpenSender(context.Background(), Config{Span: time.Hour, Timeout: time.Minute, Report: c.report})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, c
}

// TestLoopback: real sockets of both families and both modes.
func TestLoopback(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1", ""} {
		for batch, key := range map[time.Duration][]byte{0: nil, ms: nil, 2 * ms: []byte("a key of some length")} {
			t.Run(fmt.Sprintf("%q,key=%v,batch=%v", host, key != nil, batch), func(t *testing.T) {
				r := openReflector(t, host, batch)
				s, c := openTestSender(t)
				to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(r.Port()))
				if host == "::1" {
					to = netip.AddrPortFrom(netip.MustParseAddr(host), to.Port())
				}
				ssid, err := r.Add(Accept{Key: key, Peer: to.Addr(), Rate: 1000, Once: true})
				if err == nil {
					err = s.Add("a", Target{To: to, SSID: ssid, Key: key, Interval: shortest, MTU: 9000, Bound: time.Second})
				}
				if err != nil {
					t.Fatal(err)
				}
				awaitAnswers(t, r, ssid, 30)
				s.Close()
				got := c.all[0]
				if got.Lost > 0 || got.Sent < 20 || got.RTT.N != got.Sent || got.There.N != got.Sent {
					t.Errorf("%+v", got)
				}
				if runtime.GOOS == "linux" && (got.TTLThere != sentTTL || got.MTU != 9000 || s.Missing() != nil) {
					t.Errorf("TTL and MTU: %+v, %v", got, s.Missing())
				}
			})
		}
	}
}

// awaitAnswers waits until a session has so many.
func awaitAnswers(t testing.TB, r *Reflector, ssid uint16, n uint32) {
	for range 60000 {
		r.mu.Lock()
		got := r.sessions[ssid].sent
		r.mu.Unlock()
		if got >= n {
			return
		}
		time.Sleep(ms)
	}
	t.Fatal("no answers")
}

// exchange sends a packet to a reflector, and then one that it answers for certain: so the reply to the first has come if there is one.
func exchange(t *testing.T, c *net.UDPConn, packet, certain []byte) (answered bool, reply []byte, h sock.Header) {
	c.Write(packet)
	c.Write(certain)
	b, oob := make([]byte, maxPacket), make([]byte, sock.HeaderRoom)
	c.SetDeadline(time.Now().Add(30 * time.Second))
	n, control, _, _, err := c.ReadMsgUDP(b, oob)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := ParseReply(b[:n], n >= AuthenticatedSize)
	if last, _ := ParseRequest(certain, true); first.Of.At == last.At {
		return false, nil, h
	}
	return true, b[:n], sock.ParseHeader(oob[:control])
}

// TestReflects: what a reflector answers, and what it does not.
func TestReflects(t *testing.T) {
	r := openReflector(t, "127.0.0.1", 0)
	c, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: r.Port()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	add := func(a Accept) uint16 {
		ssid, err := r.Add(a)
		if err != nil {
			t.Fatal(err)
		}
		return ssid
	}
	own, stranger := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("192.0.2.7")
	key, last := []byte("key"), []byte("last")
	signed, once, plain, elsewhere := add(Accept{Key: key, Rate: 1e6}), add(Accept{Key: key, Rate: 1e6, Once: true}),
		add(Accept{Peer: own, Rate: 1e6}), add(Accept{Peer: stranger, Rate: 1e6})
	slow, certain := add(Accept{Key: key, Rate: 0}), add(Accept{Key: last, Rate: 1e6})
	unused := uint16(1)
	for r.sessions[unused] != nil {
		unused++
	}
	packet := func(ssid uint16, sequence uint32, size int, key []byte) []byte {
		k := NewKey(key)
		b := make([]byte, max(size, SizeOf(k)))
		Request{Sequence: sequence, At: StampOf(time.Now()), Error: Unsynced, SSID: ssid}.Put(b, k)
		return b
	}
	reply := packet(once, 9, 0, key)
	Reply{Request: Request{Sequence: 9, At: 5, SSID: once}, Received: 6}.Put(reply, NewKey(key))
	for _, tt := range []struct {
		name   string
		packet []byte
		want   bool
	}{
		{"authenticated", packet(signed, 1, 0, key), true},
		{"padded", packet(signed, 2, 1400, key), true},
		{"again", packet(signed, 2, 0, key), true},
		{"wrong key", packet(signed, 3, 0, []byte("guess")), false},
		{"no key", packet(signed, 4, 0, nil), false},
		{"cut", packet(signed, 5, 0, key)[:AuthenticatedSize-1], false},
		{"once", packet(once, 1, 0, key), true},
		{"once, again", packet(once, 1, 0, key), false},
		{"a reply as a request", reply, false},
		{"plain", packet(plain, 1, 0, nil), true},
		{"plain, padded", packet(plain, 2, 500, nil), true},
		{"another peer", packet(elsewhere, 1, 0, nil), false},
		{"unknown", packet(unused, 1, 0, key), false},
		{"no identifier", packet(0, 1, 0, nil), false},
		{"short", []byte{1, 2, 3}, false},
		{"empty", nil, false},
		{"limit, 1", packet(slow, 1, 0, key), true},
		{"limit, 2", packet(slow, 2, 0, key), true},
		{"limit, 3", packet(slow, 3, 0, key), true},
		{"limit, 4", packet(slow, 4, 0, key), true},
		{"limit, 5", packet(slow, 5, 0, key), false},
	} {
		answered, got, _ := exchange(t, c, tt.packet, packet(certain, 1, 0, last))
		if answered != tt.want || answered && len(got) != len(tt.packet) {
			t.Errorf("%s: answered %v with %d bytes", tt.name, answered, len(got))
		}
		if answered { // the certain one comes next
			c.Read(got)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for ssid, want := range map[uint16]uint32{signed: 3, once: 1, plain: 2, elsewhere: 0, slow: 4} {
		if n := r.sessions[ssid].sent; n != want {
			t.Errorf("session %d has %d answers, want %d", ssid, n, want)
		}
	}
}

// TestSessionLimit: a reflector has a limit, and no session without a key or a peer.
func TestSessionLimit(t *testing.T) {
	r := openReflector(t, "127.0.0.1", 0)
	if _, err := r.Add(Accept{Rate: 1}); err == nil {
		t.Error("a session for everybody")
	}
	a := Accept{Key: []byte("key"), Rate: 1}
	ssid, _ := r.Add(a)
	for range maxSessions - 1 {
		r.Add(a)
	}
	if _, err := r.Add(a); err == nil {
		t.Error("more sessions than the most")
	}
	r.Remove(ssid)
	if _, err := r.Add(a); err != nil {
		t.Error(err)
	}
}

// TestHostile: a reflector that lies, floods or is no reflector does not count as answers, and ends nothing.
func TestHostile(t *testing.T) {
	key := []byte("key")
	honest := func(n uint32, m Request) Reply {
		now := StampOf(time.Now())
		return Reply{Request: Request{Sequence: n, At: now, Error: Unsynced, SSID: m.SSID}, Received: now, Of: m, SenderTTL: 255}
	}
	one := func(r Reply, b []byte, key []byte) [][]byte {
		r.Put(b, NewKey(key))
		return [][]byte{b}
	}
	var first []byte
	for _, tt := range []struct {
		name   string
		answer func(n uint32, m Request, b []byte) [][]byte
		want   func(s Summary) bool
	}{
		{"honest", func(n uint32, m Request, b []byte) [][]byte { return one(honest(n, m), b, key) }, func(s Summary) bool { return s.Sent > 5 && s.There.N == s.Sent }},
		{"wrong HMAC", func(n uint32, m Request, b []byte) [][]byte { return one(honest(n, m), b, []byte("guess")) }, func(s Summary) bool { return s.Sent == 0 && s.Void > 5 }},
		{"echo", func(_ uint32, _ Request, b []byte) [][]byte { return [][]byte{b} }, func(s Summary) bool { return s.Sent == 0 && s.Void > 5 }},
		{"cut", func(n uint32, m Request, b []byte) [][]byte { return [][]byte{one(honest(n, m), b, key)[0][:100]} }, func(s Summary) bool { return s.Sent == 0 }},
		{"longer", func(n uint32, m Request, b []byte) [][]byte {
			return [][]byte{append(one(honest(n, m), b, key)[0], make([]byte, 1000)...)}
		}, func(s Summary) bool { return s.Sent > 5 }},
		{"three times", func(n uint32, m Request, b []byte) [][]byte {
			b = one(honest(n, m), b, key)[0]
			return [][]byte{b, b, b}
		}, func(s Summary) bool { return s.Sent > 5 && s.RTT.N == s.Sent }},
		{"always the first", func(n uint32, m Request, b []byte) [][]byte {
			if n == 0 {
				first = one(honest(n, m), b, key)[0]
			}
			return [][]byte{first}
		}, func(s Summary) bool { return s.Sent == 1 && s.Void > 5 }},
		{"numbers that were not sent", func(n uint32, m Request, b []byte) [][]byte {
			m.Sequence += 1000
			return one(honest(n, m), b, key)
		}, func(s Summary) bool { return s.Sent == 0 && s.Void > 5 }},
		{"flood", func(n uint32, m Request, b []byte) (all [][]byte) {
			for i := range uint32(20) {
				forged := m
				forged.At += Timestamp(1 + i)
				all = append(all, one(honest(n, forged), make([]byte, len(b)), key)[0])
			}
			return append(all, one(honest(n, m), b, key)[0])
		}, func(s Summary) bool { return s.Sent > 5 && s.RTT.N == s.Sent }},
		{"impossible times", func(n uint32, m Request, b []byte) [][]byte {
			r := honest(n, m)
			r.Received = 1 << 63
			return one(r, b, key)
		}, func(s Summary) bool { return s.Sent > 5 && s.There.N == 0 && s.RTT.Min >= 0 }},
		{"its own numbers go back", func(n uint32, m Request, b []byte) [][]byte { return one(honest(-n, m), b, key) }, func(s Summary) bool { return s.Sent > 5 }},
		{"noise", func(uint32, Request, []byte) [][]byte { return [][]byte{{}, {1}, make([]byte, 44), make([]byte, 9000)} }, func(s Summary) bool { return s.Sent == 0 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			far, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				t.Fatal(err)
			}
			s, c := openTestSender(t)
			if err := s.Add("a", Target{To: far.LocalAddr().(*net.UDPAddr).AddrPort(), SSID: 7, Key: key, Interval: shortest, Bound: time.Hour}); err != nil {
				t.Fatal(err)
			}
			serveHostile(t, far, tt.answer)
			s.Close()
			if got := c.all[0]; !tt.want(got) || got.Lost > 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// serveHostile answers the packets that an unproved reflector gets.
func serveHostile(t *testing.T, c *net.UDPConn, answer func(n uint32, m Request, b []byte) [][]byte) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	b := make([]byte, maxPacket)
	for n := range uint32(mostUnproved) {
		size, from, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			t.Fatal(err)
		}
		m, err := ParseRequest(b[:size], true)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range answer(n, m, append([]byte(nil), b[:size]...)) {
			c.WriteToUDPAddrPort(x, from)
		}
	}
}
