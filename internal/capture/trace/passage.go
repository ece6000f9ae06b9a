package trace

import (
	"cmp"
	"slices"

	"thru/internal/capture/frame"
	"thru/internal/measure"
)

// passage is one direction of a connection between two capture points.
type passage struct {
	x          *crossing
	c          *couple
	from, to   int       // sides: where packets leave, and where they arrive
	sent, came []transit // in the order of the captures
	fates      []fate    // of sent
	origins    []int32   // for each of came the index in sent; -1: not certain
	until      int64     // when the first capture ends
	twice      map[int32]bool
	acked      int64 // position up to which the data was acknowledged
	full       int   // IP packet of a full segment, in bytes
	result     measure.Crossed
	fields     [4]field
}

// transit is a packet of the passage. Sequence numbers count from the first
// one sent; time is that of the left clock.
type transit struct {
	*record
	begin, end int64
	time       int64
}

// fate is the outcome of a packet that left.
type fate struct {
	arrived int32 // bytes
	missed  int32 // bytes that were acknowledged but are not in the arriving capture
	as      int32 // index in came, of the first packet with its bytes; -1: none
	isSole  bool  // certain: no other packet is possible
}

// passage compares the data (back 0), or the other direction (back 1). The
// data of the first couple leaves at the left.
func (x *crossing) passage(c *couple, back int) *passage {
	p := &passage{x: x, c: c, from: x.left, to: 1 - x.left, twice: map[int32]bool{}}
	if (back == 1) != c.against {
		p.from, p.to = p.to, p.from
	}
	p.full = fullPacket(c.conns[p.from])
	p.read(back)
	p.fates = make([]fate, len(p.sent))
	for i := range p.fates {
		p.fates[i].as = -1
	}
	p.origins = make([]int32, len(p.came))
	for i := range p.origins {
		p.origins[i] = -1
	}
	p.until = p.ends(p.from)
	p.sweep()
	p.bare()
	p.count()
	p.order()
	return p
}

// fullPacket returns the size of a full segment's IP packet.
func fullPacket(c *measure.Connection) int {
	const ethernet = 1500 // while nothing shows it
	const headers = 40
	switch {
	case c.MaxPacket > 0:
		return c.MaxPacket
	case c.MSS > 0:
		return c.MSS + headers
	}
	return ethernet
}

// read unwraps the sequence numbers of both captures.
func (p *passage) read(back int) {
	origin, seed, ok := p.origin(back)
	if !ok {
		return
	}
	p.acked = -1
	for _, side := range []int{p.from, p.to} {
		high := int64(0) // greatest sequence number so far, of the data
		if side == p.to {
			high = seed
		}
		acked := high
		base := origin
		if side == 1 {
			base += p.c.shift[back]
		}
		for _, chunk := range p.c.records[side].chunks {
			for i := range chunk {
				r := &chunk[i]
				if p.c.back(side, r) != back {
					if ahead := int64(int32(r.ack - base - uint32(acked))); r.flags&(frame.ACK|frame.RST) == frame.ACK && ahead < farJump {
						acked = max(acked, acked+ahead)
						p.acked = max(p.acked, acked)
					}
					continue
				}
				s := transit{record: r, time: r.at}
				s.begin = high + int64(int32(r.seq-base-uint32(high)))
				s.end = s.begin + int64(r.payload)
				if r.payload > 0 {
					high = max(high, s.end)
				}
				if side != p.x.left {
					s.time = p.x.clock.atLeft(r.at)
				}
				if side == p.from {
					p.sent = append(p.sent, s)
				} else {
					p.came = append(p.came, s)
				}
			}
		}
	}
}

// origin returns the sequence number that counts as zero, by side 0, and
// where the arriving capture begins.
func (p *passage) origin(back int) (origin uint32, seed int64, ok bool) {
	first := func(side int) (uint32, bool) {
		for _, chunk := range p.c.records[side].chunks {
			for i := range chunk {
				if p.c.back(side, &chunk[i]) == back {
					seq := chunk[i].seq
					if side == 1 {
						seq -= p.c.shift[back]
					}
					return seq, true
				}
			}
		}
		return 0, false
	}
	origin, ok = first(p.from)
	if !ok {
		return 0, 0, false
	}
	start, ok := first(p.to)
	if !ok {
		return origin, 0, true
	}
	return origin, p.distance(back, origin, start), true
}

// distance returns how far the numbers of the arriving side begin after the
// origin, which may be more than 4 GiB: by the first packet in both.
func (p *passage) distance(back int, origin, start uint32) int64 {
	near := int64(int32(start - origin))
	if p.c.records[p.from].count() == 0 || len(p.c.matched) == 0 {
		return near
	}
	var meets *meeting
	for i := range p.c.matched {
		if m := &p.c.matched[i]; m.back == (back == 1) {
			meets = m
			break
		}
	}
	if meets == nil {
		return near
	}
	high := int64(0)
	for _, chunk := range p.c.records[p.from].chunks {
		for i := range chunk {
			r := &chunk[i]
			if p.c.back(p.from, r) != back {
				continue
			}
			seq := r.seq
			if p.from == 1 {
				seq -= p.c.shift[back]
			}
			at := high + int64(int32(seq-origin-uint32(high)))
			if r.number == meets.of[p.from] {
				other := meets.seq[p.to]
				if p.to == 1 {
					other -= p.c.shift[back]
				}
				return at + int64(int32(start-other))
			}
			high = max(high, at+int64(r.payload))
		}
	}
	return near
}

// mostCopies limits the packets that are compared over one byte.
const mostCopies = 64

// sweep passes over the sequence numbers once. Between two packet boundaries,
// of either side, each byte was sent by the same packets and arrived in the
// same ones: so the boundaries of both sides need not agree.
func (p *passage) sweep() {
	toSend, toCome := byBegin(p.sent), byBegin(p.came)
	var sent, came []int32 // packets that hold the position
	var pos int64
	for len(toSend) > 0 || len(sent) > 0 {
		if len(sent) == 0 && len(came) == 0 {
			pos = next(p.sent, toSend)
			if len(toCome) > 0 {
				pos = min(pos, p.came[toCome[0]].begin)
			}
		}
		toSend, sent = p.admit(p.sent, toSend, sent, pos)
		toCome, came = p.admit(p.came, toCome, came, pos)
		end := min(nextBound(p.sent, toSend, sent), nextBound(p.came, toCome, came))
		p.settle(sent, came, pos, end)
		pos = end
		sent = slices.DeleteFunc(sent, func(i int32) bool { return p.sent[i].end <= pos })
		came = slices.DeleteFunc(came, func(i int32) bool { return p.came[i].end <= pos })
	}
}

func next(all []transit, rest []int32) int64 {
	if len(rest) == 0 {
		return 1<<63 - 1
	}
	return all[rest[0]].begin
}

// byBegin returns the packets with payload, in the order of their sequence
// numbers.
func byBegin(all []transit) []int32 {
	var order []int32
	for i := range all {
		if all[i].payload > 0 {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(all[a].begin, all[b].begin) })
	return order
}

// admit moves the packets that begin at a position to those that hold it,
// which are in the order of the capture.
func (p *passage) admit(all []transit, rest, holds []int32, pos int64) (left, now []int32) {
	for len(rest) > 0 && all[rest[0]].begin <= pos {
		if len(holds) < mostCopies {
			at, _ := slices.BinarySearch(holds, rest[0])
			holds = slices.Insert(holds, at, rest[0])
		} else {
			p.x.crowded++
		}
		rest = rest[1:]
	}
	return rest, holds
}

// nextBound returns the next position at which a packet begins or ends.
func nextBound(all []transit, rest, holds []int32) int64 {
	bound := next(all, rest)
	for _, i := range holds {
		bound = min(bound, all[i].end)
	}
	return bound
}
