package trace

import "thru/internal/capture/frame"

// A mirror port for both directions, or two interfaces of one file, show a
// packet twice. A copy has all of the packet's fields, and the same TTL or,
// behind a router, one less.
const (
	twiceSlots = 1 << 13
	twiceNs    = 5_000_000 // a copy comes within this time
	twinNs     = 100_000   // or this, where no IP identification distinguishes packets
)

// twice remembers the latest packets, by a hash of what copies share.
type twice struct {
	slots []glimpse
}

type glimpse struct {
	hash uint64
	at   int64
	face int32
	ttl  uint8
}

// seen reports whether a packet is the copy of an earlier one, and the
// interface of the earlier one.
func (w *twice) seen(p *frame.Packet, at int64) (face int, ok bool) {
	if w.slots == nil {
		w.slots = make([]glimpse, twiceSlots)
	}
	h := hashOf(p)
	g := &w.slots[h%twiceSlots]
	before := *g
	*g = glimpse{hash: h, at: at, face: int32(p.Interface), ttl: p.TTL}
	if before.hash != h || at-before.at > twiceNs {
		return 0, false
	}
	return int(before.face), before.isCopiedBy(p, at)
}

// isCopiedBy reports whether a packet with the same hash, soon after, is a copy.
func (before *glimpse) isCopiedBy(p *frame.Packet, at int64) bool {
	switch {
	case p.TTL+1 == before.ttl || p.TTL == before.ttl+1: // both sides of a router
		return true
	case p.TTL != before.ttl:
		return false
	case int32(p.Interface) != before.face:
		return true
	case !p.V6 && p.ID != 0:
		return true
	case p.Flags&frame.SYN != 0: // retransmitted only after 200 ms at least, mostly 1 s (RFC 6298)
		return true
	}
	// A host without IP identifications may really repeat an acknowledgement.
	return p.Payload > 0 && at-before.at < twinNs
}

// hashOf hashes what a packet and its copy share. It is never 0.
func hashOf(p *frame.Packet) uint64 {
	h := mix(uint64(p.Seq)<<32 | uint64(p.Ack))
	h = mix(h ^ uint64(p.ID)<<48 ^ uint64(p.Window)<<32 ^ uint64(p.Flags)<<24 ^ uint64(p.Payload))
	h = mix(h ^ uint64(p.Options.TSVal)<<32 ^ uint64(p.Options.TSEcr))
	h = mix(h ^ uint64(p.Source.Port)<<16 ^ uint64(p.Target.Port) ^ word(&p.Source, 8) ^ word(&p.Source, 0)<<1)
	h = mix(h ^ word(&p.Target, 8) ^ word(&p.Target, 0)<<1)
	if p.Options.SACKs > 0 {
		h = mix(h ^ uint64(p.Options.SACK[0][0])<<32 ^ uint64(p.Options.SACK[0][1]))
	}
	return h | 1
}

// word returns eight bytes of an address.
func word(e *frame.Endpoint, from int) uint64 {
	a := e.Addr[from : from+8]
	return uint64(a[0]) | uint64(a[1])<<8 | uint64(a[2])<<16 | uint64(a[3])<<24 |
		uint64(a[4])<<32 | uint64(a[5])<<40 | uint64(a[6])<<48 | uint64(a[7])<<56
}

// mix spreads the bits of x: the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// leastTwins is how many packets another interface must have repeated before
// a connection without a handshake in the file is followed at one interface
// only.
const leastTwins = 16

// A copy of a SYN by a mirror port comes within the first time, a
// retransmitted SYN after the second (1 s, RFC 6298).
const (
	spanNs     = 300_000
	repeatedNs = 900_000_000
)

// greeted notes a copy of a SYN or SYN-ACK that comes later than that of a
// mirror port: it was captured at another place.
func (c *conn) greeted(p *frame.Packet, at int64) {
	g := &c.ends[c.side(p)].syn
	if p.Flags&frame.SYN == 0 || !g.has || p.ID != g.id || p.Options.TSVal != g.options.TSVal {
		return
	}
	if leastRTT := at - g.at; leastRTT > spanNs && leastRTT < repeatedNs {
		g.elsewhere = true
	}
}

// isMerged reports whether two captures are mixed as if they were of one
// interface: both packets of the handshake were captured at two places.
func (c *conn) isMerged() bool { return c.ends[0].syn.elsewhere && c.ends[1].syn.elsewhere }

// isElsewhere reports whether a packet passed another interface than the one
// at which the connection is followed.
func (c *conn) isElsewhere(p *frame.Packet) bool {
	return c.isAtOne && p.Interface != c.face
}

// twin notes that a packet of interface face came again at another one: a
// file may hold captures from two places. The connection is then followed at
// the first of them only, since mixed times and losses mean nothing. This
// takes a copy of a SYN, which no bond of interfaces makes, or copies of a
// large part of the packets: retransmissions by another interface of a bond
// are a small part.
func (c *conn) twin(p *frame.Packet, face int, at int64) {
	c.twins++
	h := &c.ends[c.side(p)]
	ofSYN := p.Flags&frame.SYN != 0 && h.syn.has && at-h.syn.at < repeatedNs && h.syn.options.TSVal == p.Options.TSVal
	often := p.Payload > 0 && c.twins >= leastTwins && 3*c.twins >= c.ends[0].direction.Packets+c.ends[1].direction.Packets
	if !c.isAtOne && (ofSYN || often) {
		c.isAtOne, c.face = true, face
	}
}
