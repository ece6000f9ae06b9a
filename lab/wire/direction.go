package wire

import (
	"net/netip"
	"time"
)

// together is the largest time in ns between segments of a super-packet that still arrive as one: a NIC that
// coalesces waits as long.
const together = int64(250 * time.Microsecond)

// direction takes the frames of one end and decides which of them reach the other, when, and in which pieces.
// It does no I/O.
type direction struct {
	impairment       *treatment
	held             store
	counters         Counters
	router4, router6 netip.Addr
	reply            [vnetSize + ethernetSize + 1280]byte // an ICMP error
}

// take processes a frame of n bytes in a buffer, and adds a user to the buffer. It may return an ICMP error
// for the sending end.
func (d *direction) take(now int64, b *buffer, n int) []byte {
	f := parse(b.data[:n])
	count := f.segments()
	for i := range count {
		d.counters.In.add(f.size(i))
	}
	if d.impairment.DropAbove > 0 && count > 1 && n-vnetSize > d.impairment.DropAbove {
		for i := range count {
			d.counters.Oversize.add(f.size(i))
		}
		return nil
	}
	if (d.impairment.StripWScale || d.impairment.StripSACK || d.impairment.StripTimestamps || d.impairment.ClampMSS > 0) && d.impairment.rewrite(&f) {
		d.counters.Rewritten.add(f.size(0))
	}
	if d.judgeAll(now, b, &f, count) && d.impairment.ICMP && !f.mayFragment() {
		return d.answer(&f)
	}
	return nil
}

// judgeAll sends the segments of a frame, in as few pieces as possible, and reports whether one was too
// large.
func (d *direction) judgeAll(now int64, b *buffer, f *frame, count int) (large bool) {
	flow := f.flow()
	var p piece
	for i := range count {
		size := f.size(i)
		what, leaves := d.impairment.judge(now, size, f.ip > 0, flow)
		if what != passes {
			d.flush(b, f, &p)
			d.drop(what, size)
			large = large || what == tooLarge
			continue
		}
		twice, late := d.impairment.draw(d.impairment.Duplicate), d.impairment.draw(d.impairment.Reorder)
		if twice || late || p.count > 0 && leaves-p.first > together {
			d.flush(b, f, &p)
		}
		if late {
			d.counters.Reordered.add(size)
			leaves += int64(d.impairment.ReorderDelay)
		}
		p.add(i, leaves)
		if twice {
			d.counters.Duplicated.add(size)
			d.send(b, f, &p)
		}
		if twice || late {
			d.flush(b, f, &p)
		}
	}
	d.flush(b, f, &p)
	return large
}

// piece is a number of consecutive segments that leave together.
type piece struct {
	from, count int
	first, last int64 // when the first and the last segment leave
}

func (p *piece) add(i int, leaves int64) {
	if p.count == 0 {
		p.from, p.first = i, leaves
	}
	p.count++
	p.last = leaves
}

// flush sends a piece, unless it is empty, and empties it.
func (d *direction) flush(b *buffer, f *frame, p *piece) {
	if p.count > 0 {
		d.send(b, f, p)
	}
	p.count = 0
}

// send queues a piece to leave with its last segment.
func (d *direction) send(b *buffer, f *frame, p *piece) {
	out := d.held.parcel(b)
	out.leaves, out.count = p.last, Count{}
	for i := range p.count {
		out.count.add(f.size(p.from + i))
	}
	if p.count == f.segments() {
		out.body = f.raw
	} else {
		out.headed, out.body = f.cut(out.head[:], p.from, p.from+p.count)
	}
	d.held.send(out)
}

// drop counts a packet that does not arrive.
func (d *direction) drop(what fate, size int) {
	switch what {
	case tooLarge:
		d.counters.MTU.add(size)
	case policed:
		d.counters.Police.add(size)
	case lost:
		d.counters.Lost.add(size)
	case queueFull:
		d.counters.Queue.add(size)
	}
}

// answer returns the ICMP error for a frame that exceeds the MTU.
func (d *direction) answer(f *frame) []byte {
	router := d.router4
	if f.v6 {
		router = d.router6
	}
	reply := f.tooBig(d.reply[:], d.impairment.MTU, router)
	if reply != nil {
		d.counters.ICMP.add(len(reply) - vnetSize)
	}
	return reply
}

// add counts a packet.
func (c *Count) add(size int) {
	c.Packets++
	c.Bytes += int64(size)
}
