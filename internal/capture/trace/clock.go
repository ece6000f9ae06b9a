package trace

import (
	"time"

	"thru/internal/capture/frame"
)

const (
	stepBackNs  = 1e9   // a larger step back means that the clock was set
	stepAheadNs = 600e9 // a larger step ahead means that the clock was set, where a connection goes on as if no time had passed
	latestNs    = 4e18  // a later time, after 2096, is impossible: the sum of two fits in 63 bits
	slowestNs   = 1e9   // slowest tick of TCP time stamps (RFC 7323, section 5.4)
)

// clock returns a packet's time since the first one. It never goes back:
// small steps back come from packets that several queues recorded, and stay
// in p.TimeNs; a large one means that the clock was set, and time goes on
// from there, as it does where the clock was set ahead.
func (b *Builder) clock(key pair, p *frame.Packet, v frame.Verdict) int64 {
	p.TimeNs = min(max(p.TimeNs, 0), latestNs)
	if b.capture.Packets == 0 {
		b.startNs, b.lastNs = p.TimeNs, p.TimeNs
		b.capture.StartedAt = time.Unix(0, p.TimeNs).UTC()
	}
	now := p.TimeNs + b.shiftNs
	ahead := now - b.lastNs
	switch {
	case ahead < 0:
		b.capture.BackTime.Seen(p.Number, 0)
		if ahead < -stepBackNs {
			b.shiftNs -= ahead
			now = b.lastNs
		}
	case ahead > stepAheadNs && v != frame.IsTCP:
		now = b.lastNs // the next packet of a connection shows whether the clock was set
	case ahead > stepAheadNs && b.goesOn(key, p, ahead):
		b.capture.Stepped.Seen(p.Number, 0)
		b.shiftNs -= ahead
		now = b.lastNs
	}
	p.TimeNs = min(now, latestNs)
	b.lastNs = max(b.lastNs, p.TimeNs)
	return b.lastNs - b.startNs
}

// goesOn reports whether a packet immediately follows its connection's
// earlier packets although the clock shows minutes in between: it
// acknowledges data in flight, or is the next segment while data is in
// flight. Data that waited so long for its acknowledgement would have been
// retransmitted every 2 minutes at most (RFC 6298).
func (b *Builder) goesOn(key pair, p *frame.Packet, ahead int64) bool {
	c := b.conns[key]
	if c == nil || p.Flags&frame.RST != 0 {
		return false
	}
	h, o := &c.ends[c.side(p)], &c.ends[1-c.side(p)]
	if p.Flags&frame.SYN != 0 {
		return p.Flags&frame.ACK != 0 && c.synAt >= 0 && !h.syn.has
	}
	if p.Options.Timestamps && h.hasStamp && int64(int32(p.Options.TSVal-h.stamp)) >= ahead/slowestNs {
		return false // by the sender's own clock the pause was that long
	}
	if c.synAcked && c.openNs < 0 && c.synAt >= 0 && c.side(p) == c.opener && p.Seq == h.base && p.Ack == o.base {
		return true // end of the handshake
	}
	if o.inFlight(h) && p.Flags&frame.ACK != 0 {
		if ack := o.position(p.Ack); ack > o.acked && ack <= o.next {
			return true
		}
	}
	return h.inFlight(o) && p.Payload > 0 && h.position(p.Seq) == h.next
}

// inFlight reports whether r has not yet acknowledged all data that h sent.
func (h *half) inFlight(r *half) bool { return h.seen && r.hasAck && h.next > h.acked }
