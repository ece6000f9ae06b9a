package trace

import (
	"cmp"
	"slices"

	"thru/internal/capture/frame"
	"thru/internal/measure"
)

// couple is one connection in both captures. Pairs hold values of side 0 and
// of side 1. The data goes from From to To of the connections.
type couple struct {
	conns     [2]*measure.Connection
	records   [2]*recorded
	direction [2]int    // of the data, in the records
	shift     [2]uint32 // by how much the sequence numbers of side 1 are ahead: for the data, and for the other direction
	matched   []meeting
	against   bool // its data flows against that of the first couple
	stamps    bool // time stamps are unchanged on the path
	opaque    bool // a proxy between the capture points ends the connection: nothing to compare
}

// meeting is a packet that is certainly in both captures.
type meeting struct {
	back   bool // in the opposite direction of the data
	at     [2]int64
	seq    [2]uint32
	of     [2]int64 // packet numbers
	stamp  uint32   // by how much the time stamp of side 1 is ahead
	window bool     // the window is equal
}

// coupled finds the connections in both captures: by their addresses, behind
// NAT by their sequence numbers, and with a proxy by the amount of data.
func coupled(sides [2]Side) []couple {
	var out []couple
	var found [2][]place
	for k, side := range sides {
		for i := range side.Capture.Conns {
			rec, direction := side.Records.find(&side.Capture.Conns[i])
			found[k] = append(found[k], place{&side.Capture.Conns[i], rec, direction})
		}
	}
	taken := map[*measure.Connection]bool{}
	for _, alike := range []func(*couple) bool{(*couple).sameStart, (*couple).sameAddresses, (*couple).sameMiddle, (*couple).sameAmount} {
		for _, a := range found[0] {
			for _, b := range found[1] {
				if taken[a.conn] || taken[b.conn] || a.records == nil || b.records == nil {
					continue
				}
				if c := newCouple(a, b); alike(&c) {
					c.along([2]int{a.direction, b.direction})
					taken[a.conn], taken[b.conn] = true, true
					out = append(out, c)
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b couple) int { return cmp.Compare(b.sent(0), a.sent(0)) })
	for i := range out {
		c := &out[i]
		c.against = c.runsAgainst(&out[0])
		if out[0].opaque && c.shift != [2]uint32{} { // the proxy ends the others too
			c.opaque, c.matched = true, nil
		}
	}
	return out
}

// sent returns the payload of a direction at the side that saw more: a side
// after a fault sees no data.
func (c *couple) sent(back int) int64 {
	var most int64
	for side := range 2 {
		direction := c.conns[side].Data
		if (c.end(side, 0) == c.conns[side].From) != (back == 0) {
			direction = c.conns[side].Acks
		}
		most = max(most, direction.New)
	}
	return most
}

// along sets the data direction to the one with the most data sent, arrived
// or not, and turns the connection of a side that chose the other one. own is
// the data direction of each side.
func (c *couple) along(own [2]int) {
	if c.sent(1) > c.sent(0) {
		c.direction[0], c.direction[1] = 1-c.direction[0], 1-c.direction[1]
		c.shift[0], c.shift[1] = c.shift[1], c.shift[0]
		for i := range c.matched {
			c.matched[i].back = !c.matched[i].back
		}
	}
	for side := range 2 {
		if c.direction[side] != own[side] {
			turnConnection(c.conns[side])
		}
	}
}

// turnConnection makes the other end From. Facts that a capture has about the
// data only are then not known.
func turnConnection(c *measure.Connection) {
	t := measure.Connection{From: c.To, To: c.From, Index: c.Index, FirstPacket: c.FirstPacket, StartNs: c.StartNs, SpanNs: c.SpanNs,
		SYN: c.SYN, SYNACK: c.SYNACK, OpenNs: c.OpenNs, OpenFarNs: c.OpenFarNs, MaxPacket: c.MaxPacket, Data: c.Acks, Acks: c.Data, EndedBy: c.EndedBy}
	if c.FromOpened != nil {
		t.FromOpened = new(!*c.FromOpened)
	}
	*c = t
}

// runsAgainst reports by the hosts whether the data flows against that of
// another couple: by the packet times where both ends have the same address.
func (c *couple) runsAgainst(other *couple) bool {
	for side := range 2 {
		from, to := other.host(side, 0), other.host(side, 1)
		switch {
		case from == to:
		case c.host(side, 0) == from || c.host(side, 1) == to:
			return false
		case c.host(side, 0) == to || c.host(side, 1) == from:
			return true
		}
	}
	a, b := nearer(c.points(false)), nearer(other.points(false))
	return a >= 0 && b >= 0 && a != b
}

// host returns the host of the data's sender (0) or receiver (1) at a side.
func (c *couple) host(side, which int) [16]byte {
	if c.direction[side]^which == 0 {
		return c.records[side].key.low.Addr
	}
	return c.records[side].key.high.Addr
}

// place is a connection at one side.
type place struct {
	conn      *measure.Connection
	records   *recorded
	direction int // of the data
}

func newCouple(a, b place) couple {
	c := couple{conns: [2]*measure.Connection{a.conn, b.conn}, records: [2]*recorded{a.records, b.records}, direction: [2]int{a.direction, b.direction}}
	if b.conn.From == a.conn.To && b.conn.To == a.conn.From {
		c.direction[1] = 1 - c.direction[1] // the sides disagree on the direction with more data
	}
	return c
}

// end returns HOST:PORT of the data's sender (0) or receiver (1) at a side.
func (c *couple) end(side, which int) string {
	key := c.records[side].key
	if c.direction[side]^which == 0 {
		return textOf(key.low)
	}
	return textOf(key.high)
}

// opening returns the first sequence number of the data, or of the other
// direction.
func (c *couple) opening(side, back int) (isn uint32, known bool) {
	w := &c.records[side].directions[c.direction[side]^back]
	return w.isn, w.opened
}

// sameStart compares the first sequence numbers: equal ones in both
// directions are no accident, even where the addresses changed.
func (c *couple) sameStart() bool {
	if c.startsEqual() {
		return true
	}
	c.direction[1] = 1 - c.direction[1]
	if c.startsEqual() {
		return true
	}
	c.direction[1] = 1 - c.direction[1]
	return false
}

func (c *couple) startsEqual() bool {
	equal := 0
	for back := range 2 {
		a, okA := c.opening(0, back)
		b, okB := c.opening(1, back)
		if okA && okB && a != b {
			return false
		}
		if okA && okB {
			equal++
		}
	}
	return equal == 2 || equal == 1 && c.end(0, 0) == c.end(1, 0) && c.end(0, 1) == c.end(1, 1)
}

// sameAddresses matches connections with the same addresses. Where they were
// opened with different sequence numbers, a firewall rewrites these, or a
// proxy answers for the server.
func (c *couple) sameAddresses() bool {
	if c.end(0, 0) != c.end(1, 0) || c.end(0, 1) != c.end(1, 1) {
		return false
	}
	for back := range 2 {
		a, okA := c.opening(0, back)
		b, okB := c.opening(1, back)
		if okA && okB {
			c.shift[back] = b - a
		}
	}
	if c.shift == [2]uint32{} {
		return c.samePackets()
	}
	c.opaque = !c.isRewritten()
	return true
}

// isRewritten distinguishes a device that adds a constant to sequence numbers
// from a proxy, whose own stack has other windows, options and time stamps.
func (c *couple) isRewritten() bool {
	for _, of := range []func(*measure.Connection) *measure.Opening{
		func(x *measure.Connection) *measure.Opening { return x.SYN },
		func(x *measure.Connection) *measure.Opening { return x.SYNACK },
	} {
		a, b := of(c.conns[0]), of(c.conns[1])
		if a == nil || b == nil {
			continue
		}
		if a.Window != b.Window || !slices.Equal(a.Options, b.Options) {
			return false
		}
	}
	return c.samePackets() && c.isPassed()
}

// isPassed distinguishes packets that passed a device from those of a proxy,
// which has its own windows and clock. A device at most adds a constant to
// time stamps.
func (c *couple) isPassed() bool {
	var ahead [2]*uint32
	var met, kept [2]int
	for i := range c.matched {
		m, back := &c.matched[i], 0
		if m.back {
			back = 1
		}
		if ahead[back] == nil {
			ahead[back] = &m.stamp
		}
		if !c.stamps && m.stamp != *ahead[back] {
			return false
		}
		met[back]++
		if m.window {
			kept[back]++
		}
	}
	return 2*kept[0] >= met[0] && 2*kept[1] >= met[1]
}

// leastMatched is how many packets two captures must share to belong to one
// connection.
const leastMatched = 3

// samePackets matches by packets with equal numbers in both.
func (c *couple) samePackets() bool {
	c.match()
	return len(c.matched) >= leastMatched
}

// sameMiddle matches where a handshake is not in the captures.
func (c *couple) sameMiddle() bool {
	for back := range 2 {
		_, okA := c.opening(0, back)
		_, okB := c.opening(1, back)
		if okA && okB {
			return false // sameStart has compared these
		}
	}
	return c.samePackets()
}

// sameAmount matches connections in which nothing else is equal: a proxy
// between the capture points opens its own connection, for the same data in
// the same time. The proxy's address, or that of an end, is in both.
func (c *couple) sameAmount() bool {
	const much = 1 << 20
	a, b := c.conns[0].Data.New, c.conns[1].Data.New
	c.opaque = true
	if !c.sharesHost() {
		return false
	}
	return min(a, b) > much && max(a, b)-min(a, b) < max(a, b)/50
}

func (c *couple) sharesHost() bool {
	a, b := c.records[0].key, c.records[1].key
	return a.low.Addr == b.low.Addr || a.low.Addr == b.high.Addr || a.high.Addr == b.low.Addr || a.high.Addr == b.high.Addr
}

// sight is the key that identifies a packet within a connection.
type sight struct {
	seq, ack, stamp uint32
	kind            uint8 // flags, direction, with payload or without
}

// seen holds the packets of one sight in both captures.
type seen struct {
	records [2]*record
	count   [2]int
}

// match finds packets that occur once in each capture. Segmentation offload
// cuts packets anew, but the first piece begins where the whole did.
func (c *couple) match() {
	if c.opaque || len(c.matched) > 0 {
		return
	}
	c.matched, c.stamps = c.meetings(true), true
	if len(c.matched) < leastMatched { // a device removes or rewrites time stamps
		if met := c.meetings(false); len(met) > len(c.matched) {
			c.matched, c.stamps = met, false
		}
	}
}

func (c *couple) meetings(stamps bool) []meeting {
	const enough = 1 << 16 // of each capture: more do not add certainty
	total := max(c.records[0].count(), c.records[1].count())
	every := uint32(total/enough + 1)
	all := map[sight]*seen{}
	for side, rec := range c.records {
		for _, chunk := range rec.chunks {
			for i := range chunk {
				s := c.sight(side, &chunk[i], stamps)
				if every > 1 && (s.seq*2654435761^s.ack*2246822519)>>8%every != 0 {
					continue
				}
				e := all[s]
				if e == nil {
					if side == 1 {
						continue
					}
					e = &seen{}
					all[s] = e
				}
				e.records[side] = &chunk[i]
				e.count[side]++
			}
		}
	}
	var met []meeting
	for s, e := range all {
		if a, b := e.records[0], e.records[1]; e.count == [2]int{1, 1} {
			met = append(met, meeting{s.kind&1 != 0, [2]int64{a.at, b.at}, [2]uint32{a.seq, b.seq}, [2]int64{a.number, b.number}, b.tsval - a.tsval, a.window == b.window})
		}
	}
	slices.SortFunc(met, func(a, b meeting) int { return int(a.of[0] - b.of[0]) })
	return met
}

// count returns the number of records.
func (r *recorded) count() int {
	n := 0
	for _, chunk := range r.chunks {
		n += len(chunk)
	}
	return n
}

// back returns 0 for a record of the data direction, 1 for the other.
func (c *couple) back(side int, r *record) int {
	return int(r.bits&isBack) ^ c.direction[side]
}

// sight returns the sight of a record, in the sequence numbers of side 0.
func (c *couple) sight(side int, r *record, stamps bool) sight {
	back := c.back(side, r)
	s := sight{seq: r.seq, ack: r.ack, kind: uint8(back) | r.flags&(frame.SYN|frame.RST)<<1}
	if side == 1 {
		s.seq -= c.shift[back]
		s.ack -= c.shift[1-back]
	}
	if r.flags&frame.ACK == 0 {
		s.ack = 0
	}
	if r.payload > 0 {
		s.kind |= 1 << 6
	}
	if stamps && r.bits&hasStamp != 0 {
		s.stamp = r.tsval
	}
	return s
}
