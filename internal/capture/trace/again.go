package trace

import (
	"thru/internal/capture/frame"
	"thru/internal/measure"
)

const (
	// leastTimeoutNs is the minimum retransmission timeout: 200 ms (Linux,
	// TCP_RTO_MIN; Windows and the BSDs wait longer), minus the error of
	// clocks and timers.
	leastTimeoutNs = 190_000_000
	// soonNs is the largest delay of a reordered packet, where the round-trip
	// time is not known.
	soonNs = 3_000_000
	// tickNs is the slowest common tick of time stamps: 10 ms (FreeBSD and
	// older Windows; Linux has 1 ms).
	tickNs = 10_000_000
)

// isLate reports whether a packet was only reordered, not retransmitted, when
// it or a copy of it fills a gap. Its IP identification decides, else its
// time stamp, else the time: no retransmission comes within less than a
// round-trip time.
func (h *half) isLate(c *conn, p *frame.Packet, g gap, at int64) bool {
	if g.hasIDs && p.ID != 0 {
		return p.ID-g.before < g.after-g.before && p.ID != g.before
	}
	trip := c.roundTrip(h)
	if g.hasStamp && p.Options.Timestamps {
		if d := int32(p.Options.TSVal - g.stamp); d != 0 || trip > tickNs {
			return d <= 0
		}
	}
	if trip == 0 {
		return at-g.at < soonNs
	}
	return at-g.at < trip*9/10
}

// sentAgain counts retransmitted data by its cause.
func (h *half) sentAgain(c *conn, o *half, p *frame.Packet, start, end, at, quiet int64) *repeated {
	w := &h.direction
	sees := func(to *measure.Count) { c.full.sees(to, p.Number, p.Payload, p.IPBytes) }
	h.triedAt = at
	sees(&w.Again)
	before, known := h.waiting.last(start)
	r := h.resent.add(repeated{start: start, end: end, number: p.Number, payload: p.Payload, ip: p.IPBytes})
	if end <= h.acked {
		r.needless(c, w)
	}
	trip := c.roundTrip(h)
	gapReported := h.sacked > start || o.dupRun >= 2 && o.lastAck == start
	tail := end == h.next && start > h.acked && !(known && before.again)
	silence := int64(leastTimeoutNs)
	if gapReported { // the report has to reach the sender, and the packet has to follow
		silence += trip
	}
	switch {
	case tail && !gapReported && (quiet >= trip || quiet >= leastTimeoutNs):
		sees(&w.Tail)
	case quiet >= silence,
		known && before.again && at-before.at >= leastTimeoutNs && quiet >= leastTimeoutNs/2:
		sees(&w.Timeout)
		h.timeoutAt = h.next
	case start < h.timeoutAt:
		sees(&w.Wake)
	case gapReported, start < h.fastEnd: // a partial acknowledgement, or later data that arrived, revealed the rest (RFC 6582, RFC 8985)
		sees(&w.Fast)
		h.fastEnd = max(h.fastEnd, h.next)
	case end == h.next && !(known && before.again) && quiet >= trip && trip > 0:
		sees(&w.Tail)
	}
	h.waiting.sentAt(start, at)
	return r
}

// idCount determines whether one end counts its packets in the IP
// identification, as Linux and Windows do. A super-packet counts as its
// segments.
type idCount struct {
	last       uint16
	has        bool
	good, seen int32
}

const (
	mostIDStep  = 128
	leastIDSeen = 8
)

// inOrder processes a packet with the next data.
func (i *idCount) inOrder(p *frame.Packet) {
	if p.V6 {
		return
	}
	if i.has && i.seen < 1<<20 {
		i.seen++
		if d := p.ID - i.last; d > 0 && d <= mostIDStep {
			i.good++
		}
	}
	i.last, i.has = p.ID, true
}

// rise reports whether the identifications rise, including from the latest
// packet in order to p.
func (i *idCount) rise(p *frame.Packet) bool {
	d := p.ID - i.last
	return !p.V6 && i.seen >= leastIDSeen && i.good >= i.seen-i.seen/8 && d > 1 && d < 1<<14
}

// resent holds the latest retransmissions, until a D-SACK reports that one
// was unnecessary.
type resent struct {
	ring []repeated
	next int
}

type repeated struct {
	start, end int64
	number     int64
	payload    int
	ip         int // length of its IP packet
	spurious   bool
	filled     bool // it filled data that was not seen before
	gap        gap  // the gap that it filled, with this packet as its end: for the first copy, which was sent before this one
}

const mostResent = 256

func (r *resent) add(x repeated) *repeated {
	if len(r.ring) < mostResent {
		r.ring = append(r.ring, x)
		return &r.ring[len(r.ring)-1]
	}
	at := r.next
	r.ring[at] = x
	r.next = (at + 1) % mostResent
	return &r.ring[at]
}

// fills notes that packet p filled a gap.
func (x *repeated) fills(p *frame.Packet, g gap, at int64) {
	g.at, g.after, g.stamp, g.hasStamp = at, p.ID, p.Options.TSVal, p.Options.Timestamps
	x.filled, x.gap = true, g
}

// needless counts it, once, as an unnecessary retransmission.
func (x *repeated) needless(c *conn, w *measure.Direction) {
	if !x.spurious {
		x.spurious = true
		c.full.sees(&w.Spurious, x.number, x.payload, x.ip)
	}
}

// inPlaceOf returns the retransmission that filled in data; nil where there
// is none.
func (r *resent) inPlaceOf(start, end int64) *repeated {
	for i := range r.ring {
		if x := &r.ring[i]; x.filled && x.start < end && start < x.end {
			return x
		}
	}
	return nil
}

// arrivedTwice returns the retransmission that a D-SACK reports, if it is
// known here. It returns each one once.
func (r *resent) arrivedTwice(start, end int64) *repeated {
	for i := range r.ring {
		if x := &r.ring[i]; !x.spurious && x.start < end && start < x.end {
			return x
		}
	}
	return nil
}
