package trace

import (
	"sort"

	"thru/internal/capture/frame"
)

// Limits of the segments that wait for their acknowledgement.
const (
	mostWaiting     = 1 << 20 // of all connections
	mostWaitingEach = 1 << 19 // of one direction
	firstWaiting    = 16
	fewSlots        = 64
	manySlots       = 512
)

// segment is data that was sent and is not acknowledged yet. It begins where
// the previous one ends.
type segment struct {
	end   int64
	at    int64 // when it was last sent
	again bool  // it was sent more than once, so an acknowledgement may be for any copy
}

// waiting is a ring of segments in the order of their sequence numbers. When
// it is full the oldest go.
type waiting struct {
	ring []segment // its length is a power of two
	head int       // index of the oldest
	n    int
}

func (w *waiting) size() int { return len(w.ring) }

func (w *waiting) at(i int) *segment { return &w.ring[(w.head+i)&(len(w.ring)-1)] }

// push adds the next segment.
func (w *waiting) push(s segment, room *int) {
	if w.n == len(w.ring) && !w.grow(room) {
		w.head = (w.head + 1) & (len(w.ring) - 1)
		w.n--
	}
	w.n++
	*w.at(w.n - 1) = s
}

// grow doubles the ring, if the limit allows. A ring of the minimum size is
// always allowed.
func (w *waiting) grow(room *int) bool {
	more := max(len(w.ring), firstWaiting)
	if len(w.ring) > 0 && (*room < more || len(w.ring)+more > mostWaitingEach) {
		return false
	}
	*room -= more
	bigger := make([]segment, len(w.ring)+more)
	for i := range w.n {
		bigger[i] = *w.at(i)
	}
	w.ring, w.head = bigger, 0
	return true
}

// acknowledge removes segments that end at ack or before. It returns when the
// last of them was sent, unless one of them was sent more than once (Karn's
// rule, RFC 6298, section 3).
func (w *waiting) acknowledge(ack int64) (sent int64, ok bool) {
	ok = true
	taken := false
	for w.n > 0 && w.at(0).end <= ack {
		s := w.at(0)
		sent, taken = s.at, true
		ok = ok && !s.again
		w.head = (w.head + 1) & (len(w.ring) - 1)
		w.n--
	}
	return sent, ok && taken
}

// find returns the index of the segment that holds a position.
func (w *waiting) find(position int64) int {
	return sort.Search(w.n, func(i int) bool { return w.at(i).end > position })
}

// doubt marks what overlaps a range as sent more than once.
func (w *waiting) doubt(start, end int64) {
	for i := w.find(start); i < w.n; i++ {
		s := w.at(i)
		s.again = true
		if s.end >= end {
			return
		}
	}
}

// last returns the segment that holds a position.
func (w *waiting) last(position int64) (s segment, ok bool) {
	if i := w.find(position); i < w.n {
		return *w.at(i), true
	}
	return segment{}, false
}

// sentAt notes a retransmission of the segment that holds a position.
func (w *waiting) sentAt(position, at int64) {
	if i := w.find(position); i < w.n {
		w.at(i).at = at
	}
}

// stamps finds round-trip times by time stamps (RFC 7323): from the first
// packet of one end with a TSval to the first of the other end that echoes
// it.
type stamps struct {
	slots []stamp // their number is a power of two
}

type stamp struct {
	value uint32
	open  bool // not echoed yet
	at    int64
}

// note stores a packet's own time stamp.
func (s *stamps) note(p *frame.Packet, at int64, large bool) {
	if !p.Options.Timestamps || p.Flags&frame.SYN != 0 {
		return
	}
	if s.slots == nil || large && len(s.slots) < manySlots {
		n := fewSlots
		if large {
			n = manySlots
		}
		s.slots = make([]stamp, n)
	}
	x := &s.slots[p.Options.TSVal&uint32(len(s.slots)-1)]
	if x.value != p.Options.TSVal || x.at == 0 {
		*x = stamp{p.Options.TSVal, true, at}
	}
}

// answer processes the time stamp that a packet of the other end echoes.
func (s *stamps) answer(p *frame.Packet, at int64, to *delays) {
	if !p.Options.Timestamps || s.slots == nil {
		return
	}
	x := &s.slots[p.Options.TSEcr&uint32(len(s.slots)-1)]
	if x.open && x.value == p.Options.TSEcr {
		x.open = false
		to.add(at - x.at)
	}
}
