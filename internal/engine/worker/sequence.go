package worker

import (
	"encoding/binary"
	"syscall"
	"time"

	"thru/internal/sock"
	"thru/internal/stat"
)

// sequence counts the datagrams of one stream by their numbers. One thread uses it, and it does not allocate after newSequence.
type sequence struct {
	next    uint64   // lowest number not passed yet
	missing []uint64 // ring of skipped numbers, each plus one at its index modulo the size; older ones are overwritten

	packets     int64
	lost        int64
	duplicates  int64
	reordered   int64
	reorderMost int64
	foreign     int64

	started      bool
	lastSent     int64   // time of sending of the last call's datagrams
	lastTransit  int64   // arrival minus sending, on two clocks
	leastTransit int64   // smallest transit: the delay of an empty path plus the clock difference
	jitter       float64 // ns (RFC 3550, section 6.4.1)
	delaySum     int64   // us over leastTransit
	delayCount   int64
	delayMost    int64
	delays       *stat.Delays // source of the delay figures of the measured time
}

// memory is how many numbers back a late datagram can be distinguished from a duplicate.
const memory = 1 << 16

// foreignNumber is above every number that a test can reach, and below the number that a stray greeting seems to have.
const foreignNumber = 1 << 56

// begin sets the first number, and counts the datagrams that an engine has received before.
func (q *sequence) begin(first uint64, early Early) {
	q.next = early.after(first)
	if early.Packets > 0 {
		q.packets = early.Packets
		q.lost = max(int64(q.next-first)-early.Packets, 0)
	}
	if early.Last != 0 {
		q.end(early.Last)
	}
}

// end processes the final datagram of a numbering that has one, whose number follows that of the last datagram: everything missing before it is lost. An old
// iperf2 sets the sign bit of the number instead of negating it.
func (q *sequence) end(last uint64) {
	n := -last
	for _, signless := range [...]uint64{last &^ (1 << 63), last & (1<<31 - 1)} {
		if distance(signless, q.next) < distance(n, q.next) {
			n = signless
		}
	}
	if n > q.next && n < foreignNumber {
		q.lost += int64(n - q.next)
		q.next = n
	}
}

func distance(a, b uint64) uint64 { return max(a, b) - min(a, b) }

func newSequence() *sequence {
	return &sequence{missing: make([]uint64, memory), delays: stat.NewDelays()}
}

// take counts one datagram; it returns false for a duplicate or foreign one.
func (q *sequence) take(n uint64) bool {
	if n == q.next {
		q.next++
		q.packets++
		return true
	}
	if n > q.next {
		return q.skip(n)
	}
	return q.late(n)
}

// skip counts the numbers before n as lost until they arrive.
func (q *sequence) skip(n uint64) bool {
	if n >= foreignNumber {
		q.foreign++
		return false
	}
	from := q.next
	if n-from > memory {
		from = n - memory
	}
	for i := from; i < n; i++ {
		q.missing[i%memory] = i + 1
	}
	q.lost += int64(n - q.next)
	q.next = n + 1
	q.packets++
	return true
}

// late processes a number that has been passed: a missing one is reordered (RFC 4737, section 3), any other one a duplicate. A number too old to decide counts
// as reordered while there is a loss that it could be.
func (q *sequence) late(n uint64) bool {
	at := n % memory
	known := q.next-n <= memory
	if known && q.missing[at] != n+1 || !known && q.lost == 0 {
		q.duplicates++
		return false
	}
	if known {
		q.missing[at] = 0
	}
	q.lost--
	q.packets++
	q.reordered++
	q.reorderMost = max(q.reorderMost, int64(q.next-1-n))
	return true
}

// stray counts a datagram too short to have a number. It ignores a late message of the handshake.
func (q *sequence) stray(size int) {
	if size != numberBytes {
		q.foreign++
	}
}

// arrived processes the times of one call's datagrams. Datagrams of one send call share their time and count once, because the call determines their spacing,
// not the path.
func (q *sequence) arrived(sent, now int64, measuring bool) {
	if q.started && sent == q.lastSent {
		return
	}
	transit := now - sent
	q.delays.Take(now, transit, measuring)
	if !q.started {
		q.started, q.leastTransit, q.lastTransit = true, transit, transit
	}
	q.lastSent = sent
	d := transit - q.lastTransit
	q.lastTransit = transit
	q.jitter += (float64(max(d, -d)) - q.jitter) / 16
	q.leastTransit = min(q.leastTransit, transit)
	over := transit - q.leastTransit
	q.delaySum += over / 1000
	q.delayCount++
	q.delayMost = max(q.delayMost, over)
}

// publish makes the counts visible to the sampler.
func (q *sequence) publish(s *stream) {
	for at, v := range [...]int64{
		cPackets: q.packets, cLost: q.lost, cDuplicates: q.duplicates, cReordered: q.reordered, cReorderMost: q.reorderMost,
		cJitterNs: int64(q.jitter), cDelaySumUs: q.delaySum, cDelayCount: q.delayCount,
	} {
		s.more[at].Store(v)
	}
	s.more[cForeign].Store(q.foreign)
	if q.delayMost > s.more[cDelayMaxNs].Load() {
		s.more[cDelayMaxNs].Store(q.delayMost)
	}
	q.delayMost = 0
}

// Numbering is how a datagram carries its number and its time of sending.
type Numbering int

// Numberings. All are big-endian; a stamp is seconds and microseconds, 32 bits each.
const (
	OfThru          Numbering = iota // number of 64 bits, nanoseconds of 64 bits
	StampNumber32                    // stamp, number of 32 bits
	StampNumber64                    // stamp, number of 64 bits
	NumberStamp                      // signed number of 32 bits, stamp; a negative number is the last
	NumberStampHigh                  // low 32 bits of a signed number, stamp, high 32 bits; a negative number is the last
)

// reopenTime is how long the port of an iperf2 server may be closed at most, on a busy host.
const reopenTime = time.Second

// reopening is the port of an iperf2 server, which is closed for a moment when a stream of the same client has begun: datagrams to it are then lost.
type reopening struct{ refused time.Time }

// explains reports whether such a moment may be why a datagram was refused.
func (r *reopening) explains(n Numbering, err error) bool {
	if !sock.Is(err, syscall.ECONNREFUSED) || n != NumberStamp && n != NumberStampHigh {
		return false
	}
	if r.refused.IsZero() {
		r.refused = time.Now()
	}
	return time.Since(r.refused) < reopenTime
}

// size returns its size in a datagram, in bytes.
func (n Numbering) size() int {
	if n == StampNumber32 || n == NumberStamp {
		return 12
	}
	return datagramHeader
}

// put writes number and time of sending, in nanoseconds, into a datagram.
func (n Numbering) put(b []byte, number uint64, now int64) {
	if n == OfThru {
		binary.BigEndian.PutUint64(b, number)
		binary.BigEndian.PutUint64(b[8:], uint64(now))
		return
	}
	n.putStamped(b, number, now)
}

func (n Numbering) putStamped(b []byte, number uint64, now int64) {
	at := 0
	if n == NumberStamp || n == NumberStampHigh {
		binary.BigEndian.PutUint32(b, uint32(number))
		at = 4
	}
	binary.BigEndian.PutUint32(b[at:], uint32(now/int64(time.Second)))
	binary.BigEndian.PutUint32(b[at+4:], uint32(now%int64(time.Second)/int64(time.Microsecond)))
	switch n {
	case StampNumber32:
		binary.BigEndian.PutUint32(b[8:], uint32(number))
	case StampNumber64:
		binary.BigEndian.PutUint64(b[8:], number)
	case NumberStampHigh:
		binary.BigEndian.PutUint32(b[12:], uint32(number>>32))
	}
}

// get reads a datagram's number and time of sending. It extends 32-bit numbers to the value nearest to next. last is set for the final datagram.
func (n Numbering) get(b []byte, next uint64) (number uint64, sent int64, last bool) {
	if n == OfThru {
		return binary.BigEndian.Uint64(b), int64(binary.BigEndian.Uint64(b[8:])), false
	}
	return n.getStamped(b, next)
}

func (n Numbering) getStamped(b []byte, next uint64) (number uint64, sent int64, last bool) {
	at := 0
	if n == NumberStamp || n == NumberStampHigh {
		at = 4
	}
	sent = int64(binary.BigEndian.Uint32(b[at:]))*int64(time.Second) + int64(binary.BigEndian.Uint32(b[at+4:]))*int64(time.Microsecond)
	switch n {
	case StampNumber32:
		return near(binary.BigEndian.Uint32(b[8:]), next), sent, false
	case StampNumber64:
		return binary.BigEndian.Uint64(b[8:]), sent, false
	}
	id := int64(int32(binary.BigEndian.Uint32(b)))
	if n == NumberStampHigh {
		id = int64(binary.BigEndian.Uint32(b[12:]))<<32 | int64(binary.BigEndian.Uint32(b))
	} else if id >= 0 {
		return near(uint32(id), next), sent, false
	}
	return uint64(id), sent, id < 0
}

// near returns the number closest to next with these low 32 bits; before the first wrap there is no lower one.
func near(low uint32, next uint64) uint64 {
	d := int64(int32(low - uint32(next)))
	if d < 0 && uint64(-d) > next {
		return uint64(low)
	}
	return next + uint64(d)
}

// stamp returns the time to write into a datagram: in thru's own numbering since the flow began, in others since 1970, because the peer may compare it with
// its clock.
func (f *flow) stamp() int64 {
	if f.numbering == OfThru {
		return int64(time.Since(f.begin))
	}
	return f.begin.UnixNano() + int64(time.Since(f.begin))
}
