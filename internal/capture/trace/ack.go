package trace

import (
	"slices"

	"thru/internal/capture/frame"
)

// acknowledged processes the acknowledgement in packet p of r: for the data
// of h.
func (h *half) acknowledged(c *conn, r *half, p *frame.Packet, at int64) {
	if !h.known {
		h.base, h.known = p.Ack, true
	}
	ack := h.position(p.Ack)
	if p.Flags&frame.RST != 0 {
		return
	}
	duplicate := r.isDuplicate(p, ack)
	switch {
	case !h.seen:
		h.next = max(h.next, ack)
	case ack > h.next:
		h.unseen(p, ack)
	}
	isNew := !r.hasAck || ack > h.acked
	rtt := int64(-1)
	if isNew {
		rtt = h.advance(p, ack, at, h.isHole(r))
	}
	h.selective(c, r, p, ack)
	if duplicate {
		r.direction.DupAcks.Seen(p.Number, 0)
		r.dupRun++
	} else if ack != r.lastAck {
		r.dupRun = 0
	}
	r.lastAck, r.rawAck, r.hasAck = ack, p.Ack, true
	if isNew || ack == h.acked { // an older one was overtaken, together with its window
		r.advertise(p, at)
	}
	h.drawAcked(c, r, at, rtt)
}

// isDuplicate reports whether a packet repeats the previous acknowledgement
// (RFC 5681, section 2).
func (r *half) isDuplicate(p *frame.Packet, ack int64) bool {
	return r.hasAck && p.Payload == 0 && p.Flags&(frame.SYN|frame.FIN|frame.RST) == 0 && !r.answers &&
		p.Window != 0 && p.Window == r.rawWindow && ack == r.lastAck && r.position(p.Seq) == r.next
}

// unseen notes the acknowledgement of data that is not in the capture.
func (h *half) unseen(p *frame.Packet, ack int64) {
	if !(h.probed && ack == h.next+1) { // the byte of a probe, which was accepted
		h.direction.Unseen.Seen(p.Number, int(min(ack-h.next, 1<<31-1)))
	}
	h.next = ack
}

// isHole reports whether the receiver r holds data after the first byte that
// it has not acknowledged. Data that fills the hole without a retransmission
// comes out of order.
func (h *half) isHole(r *half) bool { return h.sacked > h.acked || r.dupRun > 0 }

// advance processes an acknowledgement of more data, and returns its
// round-trip time; -1: none. An acknowledgement that waited for a hole shows
// when the hole was filled, not the time of the path.
func (h *half) advance(p *frame.Packet, ack, at int64, waited bool) (rtt int64) {
	rtt = -1
	if first, ok := h.waiting.last(h.acked); ok && !first.again && h.sacked > h.acked {
		h.direction.SACKLate.Seen(p.Number, 0)
		h.direction.SACKMost = max(h.direction.SACKMost, h.sacked-h.acked)
	}
	if sent, ok := h.waiting.acknowledge(ack); ok && !waited {
		rtt = at - sent
		h.rtt.add(rtt)
	}
	h.acked, h.ackedAt = ack, at
	past := 0 // gaps whose data arrived but is not in the capture
	for past < len(h.gaps) && h.gaps[past].end <= ack {
		past++
	}
	if past > 0 {
		h.direction.Unseen.Seen(p.Number, 0)
		h.gaps = slices.Delete(h.gaps, 0, past)
	}
	return rtt
}

// selective processes the SACK blocks of an acknowledgement (RFC 2018), and a
// D-SACK among them (RFC 2883): a first block of data that was acknowledged
// already, or that is within the second block.
func (h *half) selective(c *conn, r *half, p *frame.Packet, ack int64) {
	x := &p.Options
	n := min(int(x.SACKs), len(x.SACK))
	if n == 0 {
		return
	}
	told := false
	for i := range n {
		start, end := h.position(x.SACK[i][0]), h.position(x.SACK[i][1])
		if i == 0 && h.isDSACK(x, n, start, end, ack) {
			h.doubled(c, r, p, start, end)
			continue
		}
		told = true
		if end <= h.next {
			h.sacked = max(h.sacked, end)
		}
	}
	if told {
		r.direction.SACKed.Seen(p.Number, 0)
	}
}

func (h *half) isDSACK(x *frame.Options, n int, start, end, ack int64) bool {
	if end <= ack {
		return true
	}
	return n > 1 && start >= h.position(x.SACK[1][0]) && end <= h.position(x.SACK[1][1])
}

// doubled processes a report that data arrived twice.
func (h *half) doubled(c *conn, r *half, p *frame.Packet, start, end int64) {
	r.direction.DSACK.Seen(p.Number, int(min(max(end-start, 0), 1<<31-1)))
	if x := h.resent.arrivedTwice(start, end); x != nil {
		x.needless(c, &h.direction)
	}
}

// advertise stores the window in a packet of r.
func (r *half) advertise(p *frame.Packet, at int64) {
	r.rawWindow = p.Window
	if p.Flags&(frame.FIN|frame.RST|frame.SYN) != 0 {
		if p.Flags&frame.SYN != 0 { // a SYN's window is never scaled
			r.window, r.hasWindow = int64(p.Window), true
		}
		return
	}
	r.window, r.hasWindow = int64(p.Window), true
	if r.scale > 0 {
		r.window <<= r.scale
	}
	if r.scale >= 0 {
		r.windowMax = max(r.windowMax, r.window)
		if !r.hasScaled || r.window < r.windowMin {
			r.windowMin = r.window
		}
		r.hasScaled = true
	}
	switch {
	case p.Window == 0:
		r.direction.Zero.Seen(p.Number, 0)
		if r.zeroAt < 0 {
			r.zeroAt = at
		}
	case r.zeroAt >= 0:
		r.direction.ZeroNs += at - r.zeroAt
		r.zeroAt = -1
	}
}
