package stamp

import (
	"cmp"
	"net/netip"
	"time"
)

// Target is a session with a reflector that has agreed to it.
type Target struct {
	To       netip.AddrPort
	SSID     uint16
	Key      []byte        // empty: the unauthenticated mode
	First    uint32        // sequence number of the first packet: 0 (RFC 8762, 4.2), or above all of earlier runs for a reflector that answers each number once
	Interval time.Duration // between packets; 0: a second
	MTU      int           // of this host's interface: the search for the path's MTU ends there; 0: no search
	Bound    time.Duration // how far the two clocks may be apart; 0: as both ends say of themselves, and if they say nothing, one-way delays are not known
}

// fate is what became of a packet.
type fate uint8

const (
	unused fate = iota
	waiting
	answered
	lost
	void // no verdict: the host did not run while it was under way
)

// packet is one packet of a session.
type packet struct {
	sequence  uint32
	fate      fate
	size      int
	mtu       int           // size of the IP packet of a search for the MTU; 0: an ordinary packet
	sent      time.Duration // by the monotonic clock
	wall      time.Time
	stamp     Timestamp // as sent, which no reply can guess
	hasFailed bool      // to be sent at all

	rtt, there, back time.Duration
	bound            time.Duration // how far the clocks may be apart, by both; 0: not known
	isOdd            bool          // the reflector's times are impossible
	ttlThere         uint8
}

// moment is a time by both clocks.
type moment struct {
	mono time.Duration
	wall time.Time
}

// before returns an earlier moment.
func (m moment) before(d time.Duration) moment { return moment{m.mono - d, m.wall.Add(-d)} }

// session is one Target of a Sender. It does no I/O and has no clock.
type session struct {
	id string
	Target
	key           *Key
	timeout, span time.Duration
	length        time.Duration // of the summary under way
	next          time.Duration // when the next packet is due
	ring          []packet      // the last packets, by sequence number; their number is a power of two
	isProved      bool          // a reply has come: the other end wants the packets
	sent, settled uint32        // packets sent, and of these those that the tally has
	tally         tally
	off           time.Duration // of the clock of this host at most; 0: not known
	mtu           mtuProbe
	done          []Summary
}

func newSession(id string, t Target, c Config, first moment) *session {
	s := &session{
		id: id, Target: t, key: NewKey(t.Key), timeout: c.Timeout, span: c.Span, length: cmp.Or(c.FirstSpan, c.Span), next: first.mono,
		sent: t.First, settled: t.First,
	}
	n := 64 // late replies are told from unknown ones for as long as the ring has their packets
	for time.Duration(n)*s.Interval < 4*c.Timeout {
		n *= 2
	}
	s.ring = make([]packet, 2*n) // each turn may have two packets
	s.tally.Begin, s.tally.end = first.wall, first.mono+s.length
	s.mtu = newMTUProbe(t.MTU, first.mono+2*s.Interval)
	return s
}

func (s *session) at(sequence uint32) *packet { return &s.ring[sequence&uint32(len(s.ring)-1)] }

// packet makes the next packet in b, of the size of an IP packet, or an ordinary one if that is 0.
func (s *session) packet(b []byte, now moment, mtu int) (*packet, []byte) {
	n := SizeOf(s.key)
	if mtu > 0 {
		n = mtu - headers(s.To.Addr())
	}
	p := s.at(s.sent)
	*p = packet{sequence: s.sent, fate: waiting, size: n, mtu: mtu, sent: now.mono, wall: now.wall, stamp: StampOf(now.wall)}
	s.sent++
	s.tally.Bytes += int64(n + headers(s.To.Addr()))
	Request{Sequence: p.sequence, At: p.stamp, Error: estimateOf(max(s.Bound, s.off)), SSID: s.SSID}.Put(b[:n], s.key)
	return p, b[:n]
}

// headers returns the size of the IP and UDP headers.
func headers(a netip.Addr) int {
	if a.Is4() {
		return 20 + 8
	}
	return 40 + 8
}

// An end that never replied may be somebody who does not want the packets. It gets few, and far between.
const (
	mostUnproved  = 10
	unprovedPause = 16 * time.Second
)

// pause returns the time to the next packet.
func (s *session) pause() time.Duration {
	if !s.isProved && s.sent-s.First >= mostUnproved {
		return max(s.Interval, unprovedPause)
	}
	return s.Interval
}

// unsent notes that this host could not send a packet.
func (s *session) unsent(p *packet, err error) {
	p.fate, p.hasFailed = lost, true
	if p.mtu == 0 {
		s.tally.Err = err
	}
}

// isOf reports whether a reply answers a packet of this session. The HMAC comes last: a flood of forged packets must be cheap.
func (s *session) isOf(b []byte, r *Reply) bool {
	p := s.at(r.Of.Sequence)
	return p.fate != unused && p.sequence == r.Of.Sequence && p.stamp == r.Of.At && (p.mtu == 0 || len(b) == p.size) && s.key.Verify(b)
}

// receive counts a reply that isOf this session.
func (s *session) receive(r *Reply, at moment) {
	s.isProved = true
	p := s.at(r.Of.Sequence)
	s.tally.Bytes += int64(p.size + headers(s.To.Addr()))
	if p.fate == waiting && at.mono-p.sent > s.timeout {
		p.fate = lost
	}
	if p.fate != waiting { // another reply to it, or a late one
		return
	}
	p.answer(r, at)
	if p.bound = s.Bound; p.bound == 0 {
		p.bound = apart(s.off, r.Error)
	}
}

// answer notes a reply.
func (p *packet) answer(r *Reply, at moment) {
	came, went := r.Received.Time(r.Error), r.At.Time(r.Error)
	all, inside := max(at.mono-p.sent, 0), went.Sub(came)
	if p.isOdd = inside < 0 || inside > all; p.isOdd {
		inside = 0
	}
	p.fate, p.ttlThere = answered, r.SenderTTL
	p.rtt, p.there, p.back = all-inside, came.Sub(p.wall), at.wall.Sub(went)
}

// settle gives the tally all packets whose fate is known, in their order, and finishes summaries.
func (s *session) settle(now time.Duration) {
	for ; s.settled != s.sent; s.settled++ {
		p := s.at(s.settled)
		if p.fate == waiting {
			if now-p.sent <= s.timeout {
				return
			}
			p.fate = lost
		}
		if p.sent >= s.tally.end {
			s.finish(p)
		}
		s.tell(p, now)
	}
}

// finish ends the summary, and begins the one of a packet: spans without packets have none.
func (s *session) finish(p *packet) {
	end := s.tally.end
	s.summarise(s.length)
	s.length, s.tally.end = s.span, end+s.span
	if behind := p.sent - s.tally.end; behind >= 0 {
		s.tally.end += (behind/s.span + 1) * s.span
	}
	s.tally.Begin = p.wall
}

// summarise ends the summary of a span of that length.
func (s *session) summarise(length time.Duration) {
	s.tally.MTU = s.mtu.found()
	s.done = append(s.done, s.tally.finish(length))
}

// tell tells the tally the fate of a packet.
func (s *session) tell(p *packet, now time.Duration) {
	switch {
	case p.mtu > 0:
		s.tellMTU(p, now)
	case p.fate == answered:
		s.tally.answer(p, p.bound)
		s.mtu.ordinary(true, now)
	case p.fate == lost:
		s.tally.lose(p)
		s.mtu.ordinary(false, now)
	default:
		s.tally.Void++
	}
}

// tellMTU is tell for a packet of the search for the MTU, which counts neither as sent nor as lost.
func (s *session) tellMTU(p *packet, now time.Duration) {
	switch {
	case p.fate == answered:
		s.mtu.passed(p.mtu, now)
	case p.fate == lost && !p.hasFailed:
		s.mtu.failed(p.mtu)
	}
}

// abandon leaves all packets under way without a verdict.
func (s *session) abandon() {
	for n := s.settled; n != s.sent; n++ {
		if p := s.at(n); p.fate == waiting {
			p.fate = void
		}
	}
}

// end returns the last summaries, the last of which is shorter than a span.
func (s *session) end(now time.Duration) []Summary {
	s.abandon()
	s.settle(now)
	if t := &s.tally; t.Sent+t.Void > 0 {
		s.summarise(s.length - max(t.end-now, 0))
	}
	return s.take()
}

// take returns the finished summaries.
func (s *session) take() []Summary {
	done := s.done
	s.done = nil
	return done
}
