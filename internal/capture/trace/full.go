package trace

import (
	"thru/internal/capture/frame"
	"thru/internal/measure"
)

// Sizes used where there is no better source.
const (
	mostSizes   = 256  // packets to examine before a size counts as that of a full segment
	ethernetMTU = 1500 // RFC 894
	jumboMTU    = 9216 // more than any link in use
)

// fullSize determines the size of a full segment's IP packet. Without the
// handshake it needs the sizes of some packets.
type fullSize struct {
	ip      int // bytes; 0: not known yet
	byMSS   bool
	pending []sizedPacket
	counted []countedPacket // packets whose segment count waits for it
}

type sizedPacket struct {
	end         int // index in conn.ends
	number      int64
	payload, ip int
}

// countedPacket is a packet in a Count. There are few for each pending one.
type countedPacket struct {
	to          *measure.Count
	payload, ip int
}

// sees counts a packet with data, and its segments.
func (f *fullSize) sees(to *measure.Count, number int64, payload, ip int) {
	to.Seen(number, payload)
	if f.ip == 0 && payload > 0 {
		f.counted = append(f.counted, countedPacket{to, payload, ip})
		return
	}
	to.OnLink += segmentsOf(f.ip, payload, ip)
}

// opened uses the MSS of a SYN or SYN-ACK: the smaller one limits segments
// (RFC 9293, section 3.7.1).
func (f *fullSize) opened(c *conn) {
	mss, v6 := 0, isV6(c.ends[0].addr)
	for i := range c.ends {
		y := &c.ends[i].syn
		if !y.has || y.options.Cut && y.options.MSS == 0 {
			continue
		}
		m := 536
		if v6 {
			m = 1220
		}
		if y.options.MSS > 0 {
			m = int(y.options.MSS)
		}
		if mss == 0 || m < mss {
			mss = m
		}
	}
	if mss == 0 {
		return
	}
	f.ip, f.byMSS = mss+40, true
	if v6 {
		f.ip += 20
	}
}

func isV6(e frame.Endpoint) bool {
	return string(e.Addr[:12]) != "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff"
}

// take counts the segments of a packet with payload.
func (f *fullSize) take(c *conn, h *half, p *frame.Packet) {
	if f.ip > 0 {
		h.countSize(f.ip, p.Number, p.Payload, p.IPBytes)
		return
	}
	f.pending = append(f.pending, sizedPacket{h.index, p.Number, p.Payload, p.IPBytes})
	if len(f.pending) >= mostSizes {
		f.settle(c)
	}
}

// settle decides on the size of a full segment, and counts the waiting
// packets.
func (f *fullSize) settle(c *conn) {
	if f.ip == 0 {
		f.ip = f.guess()
	}
	for _, p := range f.pending {
		c.ends[p.end].countSize(f.ip, p.number, p.payload, p.ip)
	}
	for _, p := range f.counted {
		p.to.OnLink += segmentsOf(f.ip, p.payload, p.ip)
	}
	f.pending, f.counted = nil, nil
}

// guess assumes the MTU of Ethernet, unless packets of one larger size are
// too many to come from receive offload.
func (f *fullSize) guess() int {
	most, n, large := 0, 0, 0
	for _, p := range f.pending {
		if p.ip > ethernetMTU {
			large++
		}
		switch {
		case p.ip > most:
			most, n = p.ip, 1
		case p.ip == most:
			n++
		}
	}
	if large > 0 && most <= jumboMTU && 2*n > large && !f.isMultiple(most) {
		return most
	}
	return ethernetMTU
}

// isMultiple reports whether packets of a size are several segments in one.
func (f *fullSize) isMultiple(ip int) bool {
	sizes := map[int]int{}
	for _, p := range f.pending {
		sizes[p.payload]++
	}
	for _, p := range f.pending {
		if p.ip != ip {
			continue
		}
		for s, n := range sizes {
			if s >= 500 && s < p.payload && p.payload%s == 0 && n > 1 {
				return true
			}
		}
		return false
	}
	return false
}

// countSize counts the segments of a packet, for a full size in bytes.
func (h *half) countSize(full int, number int64, payload, ip int) {
	n := segmentsOf(full, payload, ip)
	h.direction.Segments += n
	if each := full - (ip - payload); each <= 0 || ip <= full {
		h.largest = max(h.largest, payload)
	} else {
		h.direction.Super.Seen(number, payload)
		h.segment = each
	}
}

// segmentsOf returns how many segments of a full size hold a packet's
// payload.
func segmentsOf(full, payload, ip int) int64 {
	each := full - (ip - payload) // payload of a full segment with the same headers
	if each <= 0 || ip <= full {
		return 1
	}
	return int64((payload + each - 1) / each)
}
