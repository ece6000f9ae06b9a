// Package trace follows the TCP connections of a capture, packet by packet,
// and reports on the main flow: how its connections were opened,
// retransmissions and their causes, windows, round-trip times and their time
// lines. Memory is limited whatever the file holds.
//
// docs/capture.md says how and why the counts differ from those of Wireshark.
package trace

import (
	"net/netip"
	"strconv"

	"thru/internal/capture/frame"
	"thru/internal/measure"
)

// Options of a Builder. The zero value follows every connection.
type Options struct {
	// Only names the wanted connections, by both ends in either order.
	// Packets of all others are only counted. Empty: the flow with the most
	// payload is found.
	Only [][2]netip.AddrPort
	// MTU of the interface, bytes; 0: not known. It identifies super-packets
	// of connections whose handshake is not in the capture.
	MTU int
	// Record also gets the packets, where it is not nil: those of the wanted
	// connections, without copies.
	Record *Recorder
}

// Limits of what is kept in memory.
const (
	mostSmall  = 2048    // connections of little payload; the one that is idle longest goes first
	mostLarge  = 256     // connections of much payload
	largeBytes = 1 << 20 // payload from which on a connection is large
	mostConns  = 128     // of Capture.Conns
	mostTooBig = 64      // of Capture.TooBig
)

// Builder makes a measure.Capture of packets.
type Builder struct {
	o        Options
	only     map[pair]bool
	conns    map[pair]*conn
	last     *conn // connection of the packet before: most packets belong to the same
	small    list
	large    list
	free     *conn // dropped connections, to be used again
	twice    twice
	room     int // segments that may still wait for acknowledgement, of all connections
	shiftNs  int64
	lastNs   int64
	startNs  int64
	capture  measure.Capture
	others   [frame.IsUnknown + 1]int64
	protos   [256]int64
	unwanted int64
	lost     int  // large connections that were dropped
	face     int  // interface at which the flow was followed, where it passes several; -1: there is only one
	merged   bool // two captures are mixed as if they were of one interface
	snap     int  // most bytes kept of a packet that was cut; 0: none was
}

// New returns a Builder without packets.
func New(o Options) *Builder {
	b := &Builder{o: o, conns: map[pair]*conn{}, room: mostWaiting, face: -1}
	if len(o.Only) > 0 {
		b.only = map[pair]bool{}
		for _, p := range o.Only {
			b.only[pairOf(endpointOf(p[0]), endpointOf(p[1]))] = true
		}
	}
	return b
}

// Add processes the next packet of the capture, in the order of the file. It
// keeps nothing of p, but sets p.TimeNs to what a clock that was never set
// would show.
func (b *Builder) Add(p *frame.Packet, v frame.Verdict) {
	shown := p.TimeNs
	key := pairOf(p.Source, p.Target)
	at := b.clock(key, p, v)
	b.capture.Packets++
	if b.o.Record != nil {
		b.o.Record.passes(p.TimeNs, shown)
	}
	if v != frame.IsTCP {
		b.other(p, v)
		return
	}
	b.capture.TCP++
	if b.only != nil && !b.only[key] {
		b.unwanted++
		return
	}
	c := b.find(key, p, at)
	if b.isCopy(c, p, at) || !c.add(p, at) {
		b.capture.Twice.Seen(p.Number, p.Payload)
	} else if b.o.Record != nil {
		b.o.Record.add(key, p)
	}
	if !c.isLarge && c.payload() >= largeBytes {
		b.enlarge(c)
	}
}

// isCopy reports whether a packet was captured before, or at an interface
// where its connection is not followed.
func (b *Builder) isCopy(c *conn, p *frame.Packet, at int64) bool {
	if c.isElsewhere(p) {
		return true
	}
	face, ok := b.twice.seen(p, at)
	if ok && face != p.Interface {
		c.twin(p, face, at)
	} else if ok {
		c.greeted(p, at)
	}
	return ok
}

// find returns the connection of a packet. A SYN with another sequence number
// on the same ports opens a new one.
func (b *Builder) find(key pair, p *frame.Packet, at int64) *conn {
	c := b.last
	if c == nil || c.key != key {
		c = b.conns[key]
	}
	if c != nil && c.isReopenedBy(p) {
		b.retire(c)
		c = nil
	}
	if c == nil {
		c = b.open(key, p, at)
	}
	if b.last != c {
		b.last = c
		if !c.isLarge { // of the large ones the one with the least payload goes, not the idlest
			b.small.touch(c)
		}
	}
	return c
}

// open starts following a connection.
func (b *Builder) open(key pair, p *frame.Packet, at int64) *conn {
	c := b.free
	if c == nil {
		c = &conn{}
	} else {
		b.free = c.newer
		c.newer = nil
	}
	c.begin(b, key, b.capture.Known, p, at)
	b.capture.Known++
	b.conns[key] = c
	b.small.push(c)
	if b.small.n > mostSmall {
		b.forget(&b.small, b.small.oldest)
	}
	return c
}

// retire keeps a connection whose ports a new one uses.
func (b *Builder) retire(c *conn) {
	delete(b.conns, c.key)
	if b.last == c {
		b.last = nil
	}
}

// enlarge moves a connection to the large ones.
func (b *Builder) enlarge(c *conn) {
	b.small.remove(c)
	c.isLarge = true
	b.large.push(c)
	if b.large.n <= mostLarge {
		return
	}
	least := b.large.oldest
	for x := least; x != nil; x = x.newer {
		if x.payload() < least.payload() {
			least = x
		}
	}
	b.lost++
	b.forget(&b.large, least)
}

// forget drops a connection, which stays counted.
func (b *Builder) forget(l *list, c *conn) {
	l.remove(c)
	if b.conns[c.key] == c {
		delete(b.conns, c.key)
	}
	if b.last == c {
		b.last = nil
	}
	b.room += c.ends[0].waiting.size() + c.ends[1].waiting.size()
	*c = conn{newer: b.free}
	b.free = c
}

// other counts a packet that is not TCP.
func (b *Builder) other(p *frame.Packet, v frame.Verdict) {
	switch {
	case v == frame.IsTooBig:
		b.tooBig(p)
		b.others[v]++
	case v == frame.IsOther:
		b.protos[p.Proto]++
	case int(v) < len(b.others):
		b.others[v]++
	}
}

// tooBig records an ICMP message that a packet was too large; equal ones
// count together.
func (b *Builder) tooBig(p *frame.Packet) {
	t := measure.TooBig{
		Packet: p.Number, From: hostOf(p.Source), MTU: p.MTU,
		Of: textOf(p.QuotedSource), To: textOf(p.QuotedTarget), Count: 1,
	}
	for i := range b.capture.TooBig {
		x := &b.capture.TooBig[i]
		if x.From == t.From && x.MTU == t.MTU && x.Of == t.Of && x.To == t.To {
			x.Count++
			return
		}
	}
	if len(b.capture.TooBig) < mostTooBig {
		b.capture.TooBig = append(b.capture.TooBig, t)
	}
}

// tallies names what was left out.
func (b *Builder) tallies() []measure.Tally {
	var ts []measure.Tally
	add := func(what string, n int64) {
		if n > 0 {
			ts = append(ts, measure.Tally{What: what, Packets: n})
		}
	}
	names := map[int]string{frame.ICMP: "ICMP", frame.UDP: "UDP", frame.ICMPv6: "ICMPv6"}
	for proto, n := range b.protos {
		name, ok := names[proto]
		if !ok {
			name = "IP protocol " + strconv.Itoa(proto)
		}
		add(name, n)
	}
	add("ICMP, packet too big", b.others[frame.IsTooBig])
	add("IP fragments after the first", b.others[frame.IsLater])
	add("not IP", b.others[frame.IsNotIP])
	add("truncated before the end of the TCP header", b.others[frame.IsCut])
	add("broken headers", b.others[frame.IsBroken])
	add("unknown link type", b.others[frame.IsUnknown])
	add("TCP of other connections", b.unwanted)
	return ts
}

// pair identifies a connection by its ends, whichever sent the packet.
type pair struct{ low, high frame.Endpoint }

func pairOf(a, b frame.Endpoint) pair {
	if isBefore(&b, &a) {
		a, b = b, a
	}
	return pair{a, b}
}

// isBefore orders end points in a fixed order.
func isBefore(a, b *frame.Endpoint) bool {
	if a.Port != b.Port {
		return a.Port < b.Port
	}
	return string(a.Addr[:]) < string(b.Addr[:])
}

func endpointOf(a netip.AddrPort) frame.Endpoint {
	return frame.Endpoint{Addr: a.Addr().As16(), Port: a.Port()}
}

func textOf(e frame.Endpoint) string {
	return netip.AddrPortFrom(netip.AddrFrom16(e.Addr).Unmap(), e.Port).String()
}

func hostOf(e frame.Endpoint) string { return netip.AddrFrom16(e.Addr).Unmap().String() }

// list holds connections in the order of their last packet.
type list struct {
	oldest, newest *conn
	n              int
}

func (l *list) push(c *conn) {
	c.older, c.newer = l.newest, nil
	if l.newest != nil {
		l.newest.newer = c
	} else {
		l.oldest = c
	}
	l.newest = c
	l.n++
}

func (l *list) remove(c *conn) {
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		l.oldest = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		l.newest = c.older
	}
	c.older, c.newer = nil, nil
	l.n--
}

func (l *list) touch(c *conn) {
	if l.newest == c {
		return
	}
	l.remove(c)
	l.push(c)
}
