package trace

import (
	"slices"

	"thru/internal/capture/frame"
	"thru/internal/measure"
)

// follow processes a packet's sequence space: payload, SYN and FIN. quiet is
// the time since the connection's packet before.
func (h *half) follow(c *conn, o *half, p *frame.Packet, at, quiet int64) {
	if !h.known {
		h.base, h.known = p.Seq, true
	}
	start := h.position(p.Seq)
	end := start + int64(p.Payload)
	if p.Flags&frame.SYN != 0 {
		end++
	}
	if p.Flags&frame.FIN != 0 {
		end++
	}
	switch {
	case !h.seen:
		h.seen = true
		h.next = start
		h.append(c, p, start, end, at)
	case p.Flags&frame.RST != 0: // its sequence number need not be the next one
	case h.isProbe(o, p, start, at): // nothing new
	case start >= h.next:
		if start > h.next {
			h.miss(p, start, at)
		}
		h.append(c, p, start, end, at)
	case start == h.next-1 && p.Payload > 1: // a probe's byte, and more data
		h.append(c, p, h.next, end, at)
	case end > start && p.Flags&frame.SYN == 0:
		h.repeat(c, o, p, start, end, at, quiet)
	}
	h.drawSent(c, o, p, at)
}

// isProbe reports whether a packet only requests an answer: a keep-alive, or
// a probe of a zero window (RFC 9293, sections 3.8.4 and 3.8.6.1). Both have
// at most one byte, mostly one that was sent before.
func (h *half) isProbe(o *half, p *frame.Packet, start, at int64) bool {
	h.probed = false
	if p.Payload > 1 || p.Flags&(frame.SYN|frame.FIN|frame.RST) != 0 {
		return false
	}
	closed := o.hasWindow && o.window == 0
	switch {
	case start == h.next && p.Payload == 1 && closed:
		h.probed = true
		h.direction.Probes.Seen(p.Number, p.Payload)
	case start == h.next-1 && closed:
		h.direction.Probes.Seen(p.Number, p.Payload)
	case start == h.next-1:
		h.direction.KeepAlive.Seen(p.Number, p.Payload)
	default:
		return false
	}
	if closed {
		h.triedAt = at
	}
	o.answers = true
	return true
}

// append processes data after all seen so far, from position start.
func (h *half) append(c *conn, p *frame.Packet, start, end, at int64) {
	if end <= start {
		return
	}
	h.next = end
	h.ids.inOrder(p)
	if fresh := min(end-start, int64(p.Payload)); fresh > 0 {
		h.gain(fresh, at)
		h.waiting.push(segment{end: end, at: at}, &c.b.room)
	}
}

// gain counts new payload.
func (h *half) gain(bytes, at int64) {
	h.direction.New += bytes
	h.triedAt = at
	if h.firstNew < 0 {
		h.firstNew = at
	}
}

// miss notes a gap before a packet.
func (h *half) miss(p *frame.Packet, start, at int64) {
	h.direction.Gaps.Seen(p.Number, int(min(start-h.next, 1<<31-1)))
	g := gap{
		start: h.next, end: start, at: at, packets: h.dataPackets,
		before: h.ids.last, after: p.ID, hasIDs: h.ids.rise(p),
		stamp: p.Options.TSVal, hasStamp: p.Options.Timestamps,
	}
	if p.Payload > 0 {
		g.packets--
	}
	if len(h.gaps) >= mostGaps {
		h.gaps = slices.Delete(h.gaps, 0, mostGaps/2)
	}
	h.gaps = append(h.gaps, g)
	h.next = start
}

// repeat processes data that is not after all seen so far: a retransmission,
// or data that fills a gap.
func (h *half) repeat(c *conn, o *half, p *frame.Packet, start, end, at, quiet int64) {
	filled, g := h.fill(start, min(end, h.next))
	switch copied := h.resent.inPlaceOf(start, end); {
	case filled > 0 && h.isLate(c, p, g, at):
		h.comesLate(c, p, g, start, at)
	case filled == 0 && copied != nil && h.isLate(c, p, copied.gap, at):
		h.comesLate(c, p, copied.gap, start, at)
		copied.needless(c, &h.direction)
	default:
		r := h.sentAgain(c, o, p, start, end, at, quiet)
		if filled > 0 {
			r.fills(p, g, at)
		}
		h.timeline.again.add(c.mark(p, start, at), measure.MostMarks)
	}
	if fresh := min(filled+max(0, end-h.next), int64(p.Payload)); fresh > 0 {
		h.gain(fresh, at)
	}
	// It is not known which copy an acknowledgement is for (Karn).
	h.waiting.doubt(start, end)
	if filled > 0 {
		h.waiting.doubt(end, end+1)
	}
	if end > h.next {
		h.next = end
		h.waiting.push(segment{end: end, at: at, again: true}, &c.b.room)
	}
}

// comesLate counts reordered data, and by how many packets it is late since
// the gap showed.
func (h *half) comesLate(c *conn, p *frame.Packet, g gap, start, at int64) {
	c.full.sees(&h.direction.Late, p.Number, p.Payload, p.IPBytes)
	h.direction.LateMost = max(h.direction.LateMost, int(h.dataPackets-1-g.packets))
	h.timeline.late.add(c.mark(p, start, at), measure.MostMarks)
}

// fill removes a range from the gaps, and returns how many bytes of it were
// missing and the first gap that it touched.
func (h *half) fill(start, end int64) (filled int64, first gap) {
	i, _ := slices.BinarySearchFunc(h.gaps, start, func(g gap, at int64) int {
		if g.end <= at {
			return -1
		}
		return 1
	})
	for i < len(h.gaps) && h.gaps[i].start < end {
		g := h.gaps[i]
		if filled == 0 {
			first = g
		}
		from, to := max(start, g.start), min(end, g.end)
		filled += to - from
		switch {
		case from > g.start && to < g.end: // the middle of it
			rest := g
			rest.start = to
			h.gaps[i].end = from
			h.gaps = slices.Insert(h.gaps, i+1, rest)
			return filled, first
		case from > g.start:
			h.gaps[i].end = from
			i++
		case to < g.end:
			h.gaps[i].start = to
			return filled, first
		default:
			h.gaps = slices.Delete(h.gaps, i, i+1)
		}
	}
	return filled, first
}
