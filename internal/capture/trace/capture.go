package trace

import (
	"cmp"
	"fmt"
	"slices"

	"thru/internal/capture/frame"
	"thru/internal/measure"
)

// mostTimelines limits the connections with a time line.
const mostTimelines = 8

// Capture returns what the packets show, and sets the capture point where the
// packets determine it (Place). No packet may be added after it.
func (b *Builder) Capture() *measure.Capture {
	x := b.capture
	x.MTU = b.o.MTU
	x.SpanNs = b.lastNs - b.startNs
	x.Others = b.tallies()
	flow := b.flow()
	b.merged = slices.ContainsFunc(flow, (*conn).isMerged)
	if len(flow) > mostConns {
		x.Missing = append(x.Missing, measure.NotChecked{
			Fact: "connections",
			Why:  fmt.Sprintf("the flow has %d connections: only the %d with the most data are listed", len(flow), mostConns),
		})
		flow = flow[:mostConns]
	}
	if b.lost > 0 {
		x.Missing = append(x.Missing, measure.NotChecked{
			Fact: "connections",
			Why:  fmt.Sprintf("more than %d connections have much data: those with the least data were not fully analyzed", mostLarge),
		})
	}
	if i := slices.IndexFunc(flow, func(c *conn) bool { return c.isAtOne }); i >= 0 {
		b.face = flow[i].face
		x.Number = b.face
		x.Missing = append(x.Missing, measure.NotChecked{
			Fact: "interfaces",
			Why: fmt.Sprintf("the flow passes several interfaces of the file; thru analyzed only number %d, the first one: "+
				"to compare two capture points, give a separate file for each", b.face),
		})
	}
	for i, c := range flow {
		m := c.connection()
		if i < mostTimelines {
			m.Timeline = c.ends[c.from()].timeline.trace()
		}
		x.Conns = append(x.Conns, m)
	}
	Place(&x)
	return &x
}

// flow returns the connections of the main flow, those with the most data
// first: the hosts and the listening port with the most payload.
func (b *Builder) flow() []*conn {
	var all []*conn
	sums := map[service]int64{}
	var most service
	for _, l := range []*list{&b.large, &b.small} {
		for c := l.oldest; c != nil; c = c.newer {
			c.full.settle(c)
			all = append(all, c)
			sums[c.service()] += c.payload()
		}
	}
	slices.SortFunc(all, func(x, y *conn) int { return cmp.Compare(x.index, y.index) })
	first := true
	for _, c := range all { // in their order, so that the first of equal ones counts
		if s := c.service(); first || sums[s] > sums[most] {
			most, first = s, false
		}
	}
	if b.only == nil {
		all = slices.DeleteFunc(all, func(c *conn) bool { return c.service() != most })
	}
	slices.SortStableFunc(all, func(x, y *conn) int { return cmp.Compare(y.payload(), x.payload()) })
	return all
}

// service is what the connections of one flow share.
type service struct {
	client [16]byte
	server frame.Endpoint
}

// service returns the service of a connection: the end that did not open it
// listens; where that is not known, the one with the lower port.
func (c *conn) service() service {
	client, server := c.ends[0].addr, c.ends[1].addr
	switch {
	case c.opener == 1, c.opener < 0 && client.Port < server.Port:
		client, server = server, client
	}
	return service{client.Addr, server}
}

// from returns the end that sends the most data.
func (c *conn) from() int {
	switch x, y := c.ends[0].direction.New, c.ends[1].direction.New; {
	case x > y:
		return 0
	case y > x:
		return 1
	}
	return max(c.opener, 0)
}

// connection returns the facts about one connection.
func (c *conn) connection() measure.Connection {
	h, r := &c.ends[c.from()], &c.ends[1-c.from()]
	m := measure.Connection{
		From: textOf(h.addr), To: textOf(r.addr), Index: c.index,
		FirstPacket: c.number, StartNs: c.first, SpanNs: c.last - c.first,
		MSS:  h.mss(),
		Data: h.closed(c), Acks: r.closed(c),
		RTT: h.rtt.delay(), RTTBack: h.back.delay(),
		BurstBytes: h.burst.spread(), EndedBy: c.endedBy,
	}
	if c.full.byMSS {
		m.MaxPacket = c.full.ip
	}
	c.handshake(&m)
	m.Flight = h.flight.spread()
	if r.scale < 0 {
		m.Unscaled = r.direction.Packets > 0
	} else if m.Window = h.windows.spread(); m.Window != nil {
		m.WindowFull = new(100 * h.filled.mean())
	}
	if m.Data.SendNs > 0 {
		m.GoodputBps = new(float64(h.delivered(r)) * 8e9 / float64(m.Data.SendNs))
	}
	return m
}

// stallNs is how long a sender must have retransmitted without success before
// unacknowledged data counts as lost. Before that the acknowledgement may be
// in flight.
const stallNs = 1_000_000_000

// delivered returns the payload that reached the other end, r.
func (h *half) delivered(r *half) int64 {
	acked := h.acked
	if h.fin && acked == h.next { // the FIN is no payload
		acked--
	}
	if r.hasAck && (acked <= 0 || h.triedAt-h.ackedAt > stallNs) {
		return min(max(acked, 0), h.direction.New)
	}
	return h.direction.New
}

// handshake sets how the connection was opened.
func (c *conn) handshake(m *measure.Connection) {
	if c.opener < 0 {
		return
	}
	m.FromOpened = new(c.opener == c.from())
	m.SYN, m.SYNACK = c.ends[c.opener].syn.opening(), c.ends[1-c.opener].syn.opening()
	if c.openFar >= 0 {
		m.OpenFarNs = new(c.openFar)
	}
	if c.openNs >= 0 {
		m.OpenNs = new(c.openNs)
	}
}

// mss returns the largest payload of a segment.
func (h *half) mss() int {
	if h.segment > 0 { // super-packets hold full segments; others may be small
		return max(h.segment, h.largest)
	}
	return h.largest
}

// closed completes the counts of one direction.
func (h *half) closed(c *conn) measure.Direction {
	w := h.direction
	if h.firstNew >= 0 {
		w.SendNs = h.triedAt - h.firstNew
	}
	if h.zeroAt >= 0 { // closed until the end
		w.ZeroNs += c.last - h.zeroAt
	}
	if h.hasScaled {
		w.WindowMin, w.WindowMax = new(h.windowMin), new(h.windowMax)
	}
	ttls := slices.Clone(h.ttls[:])
	slices.SortStableFunc(ttls, func(x, y ttlCount) int { return cmp.Compare(y.n, x.n) })
	for _, t := range ttls[:4] {
		if t.n > 0 {
			w.TTLs = append(w.TTLs, int(t.ttl))
		}
	}
	return w
}
