package trace

import (
	"cmp"
	"slices"

	"thru/internal/capture/frame"
	"thru/internal/measure"
)

// Limits of a Recorder, whatever a file holds.
const (
	MostRecords  = 384 << 10 // packets kept of one capture
	mostRecorded = 512       // connections
)

// Recorder keeps more than a connection's summary: its bytes over time and,
// to compare two captures, a record of each packet. Its memory is limited:
// with too many connections it drops those with the least payload, with too
// many packets the later ones.
type Recorder struct {
	most  int // limit of records
	kept  int // records, of all connections
	full  bool
	first int64 // time of the first packet
	last  int64 // time of the latest packet
	until int64 // time of the latest record, where it is full
	seen  bool
	tick  int64              // resolution of the times, in ns: the largest power of ten that divides all, a millisecond at most; 0: no times yet
	conns map[pair]*recorded // the newest connection of these addresses
	all   []*recorded        // in order of appearance
	hot   *recorded          // connection of the packet before: most packets are of few connections
}

// recorded is one connection. Direction 0 is from key.low to key.high.
type recorded struct {
	key        pair
	number     int64 // of its first packet
	last       int64 // time of its latest packet
	directions [2]volumes
	chunks     [][]record
}

// volumes are the bytes of one direction over time.
type volumes struct {
	sent, acked meter
	high        uint32 // after the last byte sent
	ack         uint32 // acknowledged up to here
	isn         uint32 // sequence number of the SYN or SYN-ACK
	opened      bool   // isn is valid
	begun       bool   // high is valid
	isAcked     bool   // ack is valid
}

// record is a packet for the comparison of two captures: 48 bytes.
type record struct {
	at      int64 // since 1970
	number  int64
	seq     uint32
	ack     uint32
	tsval   uint32
	payload int32
	size    int32 // of the IP packet
	id      uint16
	window  uint16
	flags   uint8
	ttl     uint8
	tos     uint8
	bits    uint8
}

// Bits of a record.
const (
	isBack     = 1 << iota // of direction 1
	hasStamp               // has the time stamps option
	isFragment             // of a fragmented IP packet
)

// NewRecorder returns a Recorder without packets, for Options.Record.
func NewRecorder() *Recorder {
	return &Recorder{most: MostRecords, conns: map[pair]*recorded{}}
}

// passes stores the time of a packet, whatever it holds, and the time that
// the clock showed.
func (r *Recorder) passes(at, shown int64) {
	if !r.seen {
		r.first, r.last, r.seen = at, at, true
	}
	r.last = max(r.last, at)
	r.tick = cmp.Or(r.tick, 1_000_000)
	for shown%r.tick != 0 {
		r.tick /= 10
	}
}

// add processes the next packet of a connection.
func (r *Recorder) add(key pair, p *frame.Packet) {
	c, direction := r.connection(key, p)
	c.last = max(c.last, p.TimeNs)
	c.directions[direction].send(p)
	if p.Flags&frame.ACK != 0 {
		c.directions[1-direction].acknowledge(p)
	}
	r.keep(c, p, direction)
}

// connection returns the connection and the direction of a packet. A SYN with
// another first sequence number begins a new connection of the same
// addresses.
func (r *Recorder) connection(key pair, p *frame.Packet) (c *recorded, direction int) {
	if key.low != p.Source {
		direction = 1
	}
	if c = r.hot; c == nil || c.key != key {
		c = r.conns[key]
	}
	if c == nil || c.directions[direction].restarts(p) {
		c = &recorded{key: key, number: p.Number}
		r.conns[key] = c
		r.all = append(r.all, c)
		if len(r.all) > mostRecorded {
			r.thin(c)
		}
	}
	r.hot = c
	return c, direction
}

// restarts distinguishes a SYN of a new connection from a copy of this one's.
func (w *volumes) restarts(p *frame.Packet) bool {
	return p.Flags&(frame.SYN|frame.ACK) == frame.SYN && w.begun && !(w.opened && w.isn == p.Seq)
}

// thin drops half of the connections: those with the least payload, of equal
// ones the oldest. inHand stays.
func (r *Recorder) thin(inHand *recorded) {
	order := slices.Clone(r.all)
	slices.SortStableFunc(order, func(x, y *recorded) int {
		return cmp.Or(cmp.Compare(x.payload(), y.payload()), cmp.Compare(x.last, y.last))
	})
	drop := map[*recorded]bool{}
	for _, c := range order[:len(order)/2] {
		if c != inHand {
			drop[c] = true
		}
	}
	r.drop(drop)
}

// drop removes connections with their records.
func (r *Recorder) drop(these map[*recorded]bool) {
	r.all = slices.DeleteFunc(r.all, func(c *recorded) bool {
		if !these[c] {
			return false
		}
		for _, chunk := range c.chunks {
			r.kept -= len(chunk)
		}
		if r.conns[c.key] == c {
			delete(r.conns, c.key)
		}
		return true
	})
	r.hot = nil
}

// payload returns the payload sent in both directions.
func (c *recorded) payload() int64 { return c.directions[0].sent.total + c.directions[1].sent.total }

// keep adds a record. At the limit it first drops connections with little
// payload.
func (r *Recorder) keep(c *recorded, p *frame.Packet, direction int) {
	if r.full {
		return
	}
	if r.kept >= r.most {
		r.makeRoom(c)
		if r.full = r.kept > r.most-r.most/8; r.full {
			r.until = p.TimeNs
			return
		}
	}
	const least, most = 16, 4096 // records in a chunk: a small connection must not cost much
	n := len(c.chunks)
	switch {
	case n == 0:
		c.chunks = append(c.chunks, make([]record, 0, least))
		n = 1
	case len(c.chunks[n-1]) == cap(c.chunks[n-1]):
		c.chunks = append(c.chunks, make([]record, 0, min(most, 4*cap(c.chunks[n-1]))))
		n++
	}
	c.chunks[n-1] = append(c.chunks[n-1], recordOf(p, direction))
	r.kept++
}

// makeRoom drops connections with less than a sixteenth of the payload of the
// largest.
func (r *Recorder) makeRoom(inHand *recorded) {
	var largest int64
	for _, c := range r.all {
		largest = max(largest, c.payload())
	}
	drop := map[*recorded]bool{}
	for _, c := range r.all {
		if c != inHand && c.payload() < largest/16 {
			drop[c] = true
		}
	}
	r.drop(drop)
}

func recordOf(p *frame.Packet, direction int) record {
	x := record{
		at: p.TimeNs, number: p.Number, seq: p.Seq, ack: p.Ack, payload: int32(p.Payload), size: int32(p.IPBytes),
		id: p.ID, window: p.Window, flags: p.Flags, ttl: p.TTL, tos: p.TOS,
	}
	if direction == 1 {
		x.bits |= isBack
	}
	if p.Options.Timestamps {
		x.bits, x.tsval = x.bits|hasStamp, p.Options.TSVal
	}
	if p.Fragment {
		x.bits |= isFragment
	}
	return x
}

// farJump is an advance of sequence numbers that no window allows: the
// numbers belong to another connection, or are invented.
const farJump = 1 << 30

// send counts the payload of a packet beyond all before.
func (w *volumes) send(p *frame.Packet) {
	end := p.Seq + uint32(p.Payload)
	if p.Flags&frame.SYN != 0 {
		end++
		w.isn, w.opened = p.Seq, true
	}
	ahead := int64(int32(end - w.high))
	switch {
	case !w.begun || ahead > farJump || ahead < -farJump:
		w.begun, w.high = true, end
		w.sent.add(p.TimeNs, int64(p.Payload))
	case ahead > 0:
		w.high = end
		w.sent.add(p.TimeNs, ahead)
	}
}

// acknowledge counts the payload that an acknowledgement covers first.
func (w *volumes) acknowledge(p *frame.Packet) {
	ack := p.Ack
	if w.begun && ack-w.high == 1 {
		ack = w.high // the byte beyond is a FIN
	}
	ahead := int64(int32(ack - w.ack))
	switch {
	case !w.isAcked || ahead > farJump || ahead < -farJump:
		w.isAcked, w.ack = true, ack
	case ahead > 0:
		w.ack = ack
		w.acked.add(p.TimeNs, ahead)
	}
}

// find returns the record of a connection of the capture, and the direction
// of its data.
func (r *Recorder) find(c *measure.Connection) (found *recorded, direction int) {
	for _, x := range r.all {
		a, b := textOf(x.key.low), textOf(x.key.high)
		if a == c.From && b == c.To || a == c.To && b == c.From {
			if found == nil || x.number <= c.FirstPacket {
				found = x
			}
		}
	}
	if found != nil && textOf(found.key.low) != c.From {
		direction = 1
	}
	return found, direction
}
