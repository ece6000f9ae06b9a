package trace

import (
	"cmp"

	"thru/internal/capture/frame"
)

// conn is one connection that is followed.
type conn struct {
	key          pair
	older, newer *conn // in its list
	isLarge      bool

	b      *Builder
	index  int
	number int64 // of its first packet
	first  int64 // time of the first packet
	last   int64 // time of the latest packet
	ends   [2]half
	full   fullSize

	opener   int   // index of the end that sent the SYN; -1: not known
	synAt    int64 // time of the SYN; -1: there is none, or there are several copies
	openNs   int64 // -1: not known
	openFar  int64 // from the SYN to the SYN-ACK; -1: not known
	synAcked bool  // the SYN-ACK is in the capture
	endedBy  string

	twins   int64 // packets that another interface showed again
	isAtOne bool  // it passes several interfaces and is followed at one: face
	face    int
}

// begin starts following the connection whose first packet is p.
func (c *conn) begin(b *Builder, key pair, index int, p *frame.Packet, at int64) {
	c.key, c.b, c.index, c.number, c.first, c.last = key, b, index, p.Number, at, at
	c.opener, c.synAt, c.openNs, c.openFar = -1, -1, -1, -1
	for i := range c.ends {
		h := &c.ends[i]
		h.index, h.scale, h.zeroAt, h.firstNew, h.dataAt, h.sentAt = i, -1, -1, -1, -1, -1
	}
	c.ends[0].addr, c.ends[1].addr = p.Source, p.Target
	c.full.ip = b.o.MTU
}

func (c *conn) payload() int64 { return c.ends[0].direction.New + c.ends[1].direction.New }

// isReopenedBy reports whether a packet opens a new connection on the same
// ports: a SYN with another sequence number.
func (c *conn) isReopenedBy(p *frame.Packet) bool {
	if p.Flags&(frame.SYN|frame.ACK|frame.RST) != frame.SYN {
		return false
	}
	h := &c.ends[c.side(p)]
	if h.syn.has {
		return p.Seq+1 != h.base
	}
	// For a SYN after other packets: those belonged to an earlier connection,
	// unless the SYN-ACK was captured before the SYN.
	return c.opener != c.side(p)
}

func (c *conn) side(p *frame.Packet) int {
	if p.Source == c.ends[0].addr {
		return 0
	}
	return 1
}

// add processes the next packet of the connection. It returns false for a
// copy of a packet that was captured at another interface.
func (c *conn) add(p *frame.Packet, at int64) bool {
	i := c.side(p)
	h, o := &c.ends[i], &c.ends[1-i]
	if h.isTwin(p) {
		c.twin(p, h.face, at)
		return false
	}
	quiet := at - c.last
	h.count(c, p, at)
	if p.Flags&frame.SYN != 0 {
		c.opens(i, p, at)
	}
	h.follow(c, o, p, at, quiet)
	if p.Flags&frame.ACK != 0 {
		c.opened(i, p, at)
		o.acknowledged(c, h, p, at)
	}
	h.stamps.note(p, at, c.isLarge)
	if p.Payload > 0 {
		o.stamps.answer(p, at, &h.back)
	}
	h.answers = false
	c.closes(i, p)
	c.last = at
	return true
}

// opens processes a SYN or SYN-ACK.
func (c *conn) opens(i int, p *frame.Packet, at int64) {
	h := &c.ends[i]
	if h.syn.has {
		c.greeted(p, at)
		h.syn.again.Seen(p.Number, 0)
		if p.Flags&frame.ACK == 0 {
			c.synAt = -1 // it is not known which copy is answered
		}
		return
	}
	h.syn = greetingOf(p, at)
	if !h.seen {
		h.base, h.known = p.Seq+1, true
		h.next, h.acked, h.sacked = -1, 0, 0
	}
	if p.Flags&frame.ACK == 0 {
		c.opener, c.synAt = i, at
	} else {
		c.opener, c.synAcked = 1-i, true
		if c.synAt >= 0 {
			c.openFar = at - c.synAt
		}
	}
	c.scales()
	c.full.opened(c)
}

// opened notes the acknowledgement of the SYN-ACK, only without data in
// either direction: a later packet does not show the round-trip time.
func (c *conn) opened(i int, p *frame.Packet, at int64) {
	first := p.Seq == c.ends[i].base && p.Ack == c.ends[1-i].base
	if first && c.openNs < 0 && c.synAcked && i == c.opener && c.synAt >= 0 && c.openFar >= 0 && c.ends[1-i].syn.again.N == 0 {
		c.openNs = at - c.synAt
	}
}

// scales sets the window scales: they apply only where both ends offer one
// (RFC 7323, section 2.2).
func (c *conn) scales() {
	if !c.synAcked {
		return
	}
	for i := range c.ends {
		y := &c.ends[i].syn
		if y.has && y.options.Cut && !y.options.HasScale {
			return // it may be in the part that was not captured
		}
		if y.has && !y.options.HasScale {
			c.ends[0].scale, c.ends[1].scale = 0, 0
			return
		}
	}
	for i := range c.ends {
		if y := &c.ends[i].syn; y.has {
			c.ends[i].scale = int8(min(y.options.Scale, mostScale))
		}
	}
}

// closes notes how the connection ended.
func (c *conn) closes(i int, p *frame.Packet) {
	switch {
	case p.Flags&frame.RST != 0:
		if !c.ends[0].fin || !c.ends[1].fin {
			c.endedBy = "rst from " + textOf(p.Source)
		}
	case p.Flags&frame.FIN != 0:
		c.ends[i].fin = true
		c.endedBy = cmp.Or(c.endedBy, "fin")
	}
}

// roundTrip returns the minimum time from a packet here to the reaction of
// the far end and then of the sender: a retransmission cannot fill a gap
// faster. 0: not known.
func (c *conn) roundTrip(h *half) int64 {
	if c.openNs > 0 {
		return c.openNs
	}
	if h.rtt.n == 0 || h.back.n == 0 {
		return 0
	}
	return h.rtt.min + h.back.min
}
