package stamp

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"thru/internal/fault"
	"thru/internal/sock"
)

// maxSessions bounds the sessions of a Reflector: an SSID has 16 bits, and some must be free to choose one at random.
const maxSessions = 1 << 14

// Accept is what a Reflector answers in one session.
type Accept struct {
	SSID uint16     // of an earlier run of the session; 0: a free one
	Key  []byte     // empty: the unauthenticated mode, which needs Peer
	Peer netip.Addr // the only address that is answered; invalid: any
	Rate float64    // packets per second that are answered; bursts of two seconds
	Once bool       // answers no sequence number twice: a recorded packet is worth nothing
}

// Reflector answers the packets of sessions (RFC 8762, 4.3). It counts each session's replies: it is stateful.
type Reflector struct {
	conns []packetConn
	port  int
	stop  chan struct{}
	wake  chan struct{} // capacity 1: there is a session
	wg    sync.WaitGroup
	close sync.Once

	mu       sync.Mutex
	sessions map[uint16]*accepted
	estimate Error     // of the clock of this host
	judged   time.Time // when that was read
}

// accepted is one session. The Reflector's lock guards it.
type accepted struct {
	Accept
	key   *Key
	limit *rate.Limiter
	sent  uint32 // replies, which are their sequence numbers
	seen  replayWindow
}

// ReflectorConfig is where a Reflector listens.
type ReflectorConfig struct {
	Listen sock.Range
	Device string // interface or VRF
	// Batch is the time between two batches of replies, where the kernel notes when packets arrive: their time here is in the reply, and not a part of the
	// delay. It saves most of the CPU time. 0: each packet is answered at once, also for senders that know nothing of that time.
	Batch time.Duration
}

// OpenReflector listens for packets, and answers none until Add. It returns an error where no port is free.
func OpenReflector(ctx context.Context, c ReflectorConfig) (*Reflector, error) {
	r := &Reflector{sessions: map[uint16]*accepted{}, stop: make(chan struct{}), wake: make(chan struct{}, 1)}
	if err := c.Listen.Try(func(port int) error { return r.listen(ctx, c, port) }); err != nil {
		return nil, err
	}
	r.start(c.Batch)
	return r, nil
}

// start answers by all connections: by those that are polled in batches, by the others as packets come.
func (r *Reflector) start(batch time.Duration) {
	var polled []packetConn
	for _, c := range r.conns {
		if c.isPolled() {
			polled = append(polled, c)
		} else {
			r.wg.Go(func() { readAll(c, r.answerBy(c)) })
		}
	}
	if len(polled) > 0 {
		r.wg.Go(func() { r.poll(polled, batch) })
	}
}

// listen opens a port on all addresses.
func (r *Reflector) listen(ctx context.Context, c ReflectorConfig, port int) error {
	for _, host := range c.Listen.Hosts() {
		s, err := openSocket(ctx, host, port, c.Device)
		if err != nil {
			r.closeAll(false)
			r.closeAll(true)
			r.conns = nil
			return err
		}
		port = int(s.local().Port())
		r.port = port
		if c.Batch > 0 {
			r.conns = append(r.conns, polledOf(s))
		} else {
			r.conns = append(r.conns, s)
		}
	}
	return nil
}

// clockAge is how old the error estimate of a clock may be: a clock without service drifts by 0.5 ms in that time at most.
const clockAge = time.Second

// flooded is the size of a batch after which the next one comes at once.
const flooded = 32

// poll answers in batches until Close, and sleeps while there are no sessions.
func (r *Reflector) poll(polled []packetConn, batch time.Duration) {
	b := make([]byte, maxPacket)
	timer := time.NewTimer(batch)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-r.wake:
		case <-r.stop:
			return
		}
		n := 0
		for _, c := range polled {
			n += drain(c, b, r.answerBy(c))
		}
		wait := batch
		if n >= flooded {
			wait = time.Millisecond
		}
		if !r.isIdle() { // else Add wakes it
			timer.Reset(wait)
		}
	}
}

func (r *Reflector) isIdle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sessions) == 0
}

// closeAll closes the connections that are polled, or those that wait.
func (r *Reflector) closeAll(polled bool) {
	for _, c := range r.conns {
		if c.isPolled() == polled {
			c.Close()
		}
	}
}

// Close ends all sessions, and waits until the sockets are closed.
func (r *Reflector) Close() {
	r.close.Do(func() {
		close(r.stop)
		r.closeAll(false) // ends their readers
		r.wg.Wait()
		r.closeAll(true)
	})
}

// Port returns the UDP port that it listens on.
func (r *Reflector) Port() int { return r.port }

// Add begins to answer a session, and returns its SSID.
func (r *Reflector) Add(a Accept) (ssid uint16, err error) {
	if len(a.Key) == 0 && !a.Peer.IsValid() {
		return 0, errors.New("stamp: adding a session: it has neither a key nor a peer")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sessions) >= maxSessions {
		return 0, fault.Failf("end other watches", "stamp: adding a session: this host answers %d of them, its limit", maxSessions)
	}
	if ssid = a.SSID; ssid != 0 && r.sessions[ssid] != nil {
		return 0, fault.Failf("", "stamp: adding a session: the identifier %d is taken", ssid)
	}
	for ssid == 0 || r.sessions[ssid] != nil {
		ssid = uint16(rand.Uint32()) // a key, and not the SSID, keeps strangers out
	}
	burst := max(int(2*a.Rate), 4)
	r.sessions[ssid] = &accepted{Accept: a, key: NewKey(a.Key), limit: rate.NewLimiter(rate.Limit(a.Rate), burst)}
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return ssid, nil
}

// Remove ends a session.
func (r *Reflector) Remove(ssid uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, ssid)
}

// find returns the session of a packet; nil for none.
func (r *Reflector) find(b []byte) (*accepted, Request) {
	for _, authenticated := range []bool{true, false} {
		m, err := ParseRequest(b, authenticated)
		if s := r.sessions[m.SSID]; err == nil && s != nil && (s.key != nil) == authenticated {
			return s, m
		}
	}
	return nil, Request{}
}

// answerBy returns the function that answers a packet by a connection.
func (r *Reflector) answerBy(c packetConn) func(b []byte, from netip.AddrPort, h sock.Header) {
	return func(b []byte, from netip.AddrPort, h sock.Header) { r.answer(c, b, from, h) }
}

// answer turns a packet into its reply, and sends that.
func (r *Reflector) answer(c packetConn, b []byte, from netip.AddrPort, h sock.Header) {
	now := time.Now()
	r.mu.Lock()
	s, m := r.find(b)
	if s == nil {
		r.mu.Unlock()
		return
	}
	isSent := s.accept(b, m, from, now)
	if isSent {
		if now.Sub(r.judged) > clockAge {
			r.judged, r.estimate = now, estimateOf(clockError())
		}
		s.reply(m, h, now, r.estimate).Put(b, s.key)
	}
	r.mu.Unlock()
	if isSent {
		_ = c.send(b, from, h.Local) // its sender counts what gets lost
	}
}

// accept reports whether a packet is answered.
func (s *accepted) accept(b []byte, m Request, from netip.AddrPort, now time.Time) bool {
	if s.Peer.IsValid() && s.Peer != from.Addr().WithZone("") || !s.key.Verify(b) || s.Once && (isReply(b, s.key != nil) || !s.seen.isNew(m.Sequence)) || !s.limit.AllowN(now, 1) {
		return false
	}
	s.seen.add(m.Sequence)
	return true
}

// reply makes the reply to a request that arrived with a header.
func (s *accepted) reply(m Request, h sock.Header, now time.Time, e Error) Reply {
	came := now
	if !h.At.IsZero() {
		came = h.At
	}
	r := Reply{Received: StampOf(came), Of: m, SenderTTL: uint8(max(h.TTL, 0))}
	r.Request = Request{Sequence: s.sent, At: StampOf(time.Now()), Error: e, SSID: m.SSID}
	s.sent++
	return r
}

// replayWindow knows which of the last 64 sequence numbers were seen.
type replayWindow struct {
	began   bool
	highest uint32
	bits    uint64 // bit n: highest - n was seen
}

// isNew reports whether a number was not seen and is not too old.
func (w *replayWindow) isNew(n uint32) bool {
	behind := int32(w.highest - n)
	return !w.began || behind < 0 || behind < 64 && w.bits&(1<<behind) == 0
}

// add marks a new number as seen.
func (w *replayWindow) add(n uint32) {
	switch ahead := int32(n - w.highest); {
	case !w.began || ahead >= 64:
		w.began, w.highest, w.bits = true, n, 1
	case ahead > 0:
		w.highest, w.bits = n, w.bits<<ahead|1
	default:
		w.bits |= 1 << -ahead
	}
}
