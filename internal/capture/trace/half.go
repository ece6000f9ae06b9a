package trace

import (
	"thru/internal/capture/frame"
	"thru/internal/measure"
)

// Limits of one direction.
const (
	mostGaps = 1024
	mostTTLs = 8
)

// half is the data that one end of a connection sends, with its state.
// Sequence numbers become positions: bytes from the first one of the data, 64
// bits wide, so that they never wrap.
type half struct {
	index     int // in conn.ends
	addr      frame.Endpoint
	direction measure.Direction
	syn       greeting
	fin       bool

	base  uint32 // sequence number of position 0
	known bool   // base is
	seen  bool   // it sent a packet
	face  int    // interface of its first packet
	next  int64  // position after the highest byte seen
	gaps  []gap  // missing data before next, in order

	acked     int64 // the other end acknowledged all before this position
	sacked    int64 // the highest position that the other end holds out of order
	fastEnd   int64 // a fast recovery lasts until this position
	timeoutAt int64 // the data that a timeout declared lost ends here
	waiting   waiting
	resent    resent
	ids       idCount

	firstNew    int64 // time of the first new payload; -1: none
	triedAt     int64 // when payload was last sent, new or retransmitted, or a zero window probed
	ackedAt     int64 // when more of it was last acknowledged
	dataAt      int64 // time of the latest payload; -1: none
	sentAt      int64 // time of the latest packet; -1: none
	busyMs      int64 // the latest millisecond with payload
	dataPackets int64
	largest     int // largest payload of a packet that is no super-packet
	segment     int // payload of a full segment, where super-packets show it

	// As the receiver of the other end's data:
	scale     int8  // of its windows; -1: not known
	window    int64 // latest, scaled where the scale is known
	hasWindow bool
	rawWindow uint16 // latest
	rawAck    uint32 // latest
	lastAck   int64  // latest acknowledgement, a position of the other end
	hasAck    bool
	dupRun    int   // duplicate acknowledgements in a row
	zeroAt    int64 // since when its window is closed; -1: it is open
	answers   bool  // its next packet answers a probe
	windowMin int64 // scaled, after the handshake
	windowMax int64
	hasScaled bool // it advertised a window of known scale after the handshake

	rtt, back delays
	stamps    stamps
	flight    overTime
	windows   overTime
	filled    overTime
	burst     bursts
	timeline  timeline
	ttls      [mostTTLs]ttlCount
	probed    bool   // its latest packet was a one-byte probe
	stamp     uint32 // TSval of its latest packet
	hasStamp  bool
}

type ttlCount struct {
	ttl uint8
	n   int64
}

// gap is data that is missing in the capture so far.
type gap struct {
	start, end    int64
	at            int64 // when it showed
	packets       int64 // of data before the packet that showed it
	before, after uint16
	hasIDs        bool
	stamp         uint32 // TSval of the packet that showed it
	hasStamp      bool
}

// position returns the position of a sequence number, near those seen.
func (h *half) position(seq uint32) int64 {
	return h.next + int64(int32(seq-(h.base+uint32(h.next))))
}

// isTwin reports whether another interface of the file showed a packet
// before: it has nothing new.
func (h *half) isTwin(p *frame.Packet) bool {
	if !h.seen {
		h.face = p.Interface
		return false
	}
	if p.Interface == h.face || !h.known || p.Flags&frame.RST != 0 {
		return false
	}
	if p.Flags&frame.SYN != 0 {
		return h.syn.has
	}
	start := h.position(p.Seq)
	if start+int64(p.Payload) > h.next || len(h.gaps) > 0 && start < h.gaps[len(h.gaps)-1].end {
		return false
	}
	return p.Payload > 0 || h.hasAck && p.Flags&frame.ACK != 0 && int32(p.Ack-h.rawAck) <= 0
}

// count counts a packet by its own properties.
func (h *half) count(c *conn, p *frame.Packet, at int64) {
	w := &h.direction
	w.Packets++
	w.MaxPacket = max(w.MaxPacket, p.IPBytes)
	w.Payload += int64(p.Payload)
	h.countTTL(p.TTL)
	if p.DF {
		w.DontFrag++
	}
	if p.TOS&3 != 0 {
		w.ECT++
		if p.TOS&3 == 3 {
			w.CE.Seen(p.Number, p.Payload)
		}
	}
	if p.Fragment {
		w.Fragments.Seen(p.Number, p.Payload)
	}
	if p.Options.Cut {
		w.Cut++
	}
	if p.Flags&(frame.RST|frame.ECE|frame.CWR) != 0 && p.Flags&frame.SYN == 0 {
		h.countFlags(p)
	}
	h.stamp, h.hasStamp = p.Options.TSVal, p.Options.Timestamps
	if p.Payload > 0 {
		h.countData(c, p, at)
	} else {
		w.Segments++
	}
	h.sentAt = at
}

func (h *half) countFlags(p *frame.Packet) {
	if p.Flags&frame.RST != 0 {
		h.direction.RST.Seen(p.Number, p.Payload)
	}
	if p.Flags&frame.ECE != 0 {
		h.direction.ECE.Seen(p.Number, p.Payload)
	}
	if p.Flags&frame.CWR != 0 {
		h.direction.CWR.Seen(p.Number, p.Payload)
	}
}

// countData counts a packet with payload.
func (h *half) countData(c *conn, p *frame.Packet, at int64) {
	c.full.take(c, h, p)
	h.dataPackets++
	if ms := at/1e6 + 1; ms != h.busyMs {
		h.busyMs = ms
		h.direction.BusyMs++
	}
	h.burst.add(p.Payload, h.dataAt >= 0 && at-h.dataAt <= measure.BurstGapNs)
	h.dataAt = at
}

func (h *half) countTTL(ttl uint8) {
	for i := range h.ttls {
		t := &h.ttls[i]
		if t.n == 0 || t.ttl == ttl {
			t.ttl = ttl
			t.n++
			return
		}
	}
}
