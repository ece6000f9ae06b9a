package trace

import (
	"cmp"
	"slices"

	"thru/internal/capture/frame"
	"thru/internal/measure"
)

const (
	mostDelays  = 4096    // samples kept of a distribution
	firstStepNs = 100_000 // first length of a time line's step; it doubles when there are too many steps
	fewSteps    = 64      // for a connection with little payload
)

// thinned keeps a limited, even sample of a series: when it is full, it drops
// every second value and from then on takes only every second one.
type thinned[T any] struct {
	kept  []T
	every int // one in so many is taken
	skip  int // values before the next that is taken
}

func (t *thinned[T]) add(x T, most int) {
	if t.skip > 0 {
		t.skip--
		return
	}
	if len(t.kept) >= most {
		for i := range most / 2 {
			t.kept[i] = t.kept[2*i]
		}
		t.kept = t.kept[:most/2]
		t.every = 2 * max(t.every, 1)
	}
	t.kept = append(t.kept, x)
	t.skip = max(t.every, 1) - 1
}

// delays collects a distribution of delays.
type delays struct {
	n, min, max int64
	sample      thinned[int64]
}

func (d *delays) add(ns int64) {
	if d.n == 0 {
		d.min = ns
	}
	d.n++
	d.min, d.max = min(d.min, ns), max(d.max, ns)
	d.sample.add(ns, mostDelays)
}

func (d *delays) delay() *measure.Delay {
	if d.n == 0 {
		return nil
	}
	s := slices.Clone(d.sample.kept)
	slices.Sort(s)
	at := func(q int) int64 { return s[min(len(s)*q/100, len(s)-1)] }
	return &measure.Delay{Min: d.min, P50: at(50), P90: at(90), P99: at(99), Max: d.max, Samples: d.n}
}

// overTime averages over time a value that holds until it is set again.
type overTime struct {
	has        bool
	at         int64
	value      int64
	sum        float64
	span       int64
	least, top int64
}

func (o *overTime) set(at, value int64) {
	if !o.has {
		o.has, o.least, o.top = true, value, value
	} else {
		o.sum += float64(o.value) * float64(at-o.at)
		o.span += at - o.at
	}
	o.at, o.value = at, value
	o.least, o.top = min(o.least, value), max(o.top, value)
}

func (o *overTime) mean() float64 {
	if o.span == 0 {
		return float64(o.value)
	}
	return o.sum / float64(o.span)
}

func (o *overTime) spread() *measure.Spread {
	if !o.has {
		return nil
	}
	return &measure.Spread{Mean: o.mean(), Min: float64(o.least), Max: float64(o.top)}
}

// bursts adds up the payload that was sent back to back.
type bursts struct {
	now, n, sum, least, top int64
}

func (b *bursts) add(bytes int, goesOn bool) {
	if !goesOn {
		b.close()
	}
	b.now += int64(bytes)
}

func (b *bursts) close() {
	if b.now == 0 {
		return
	}
	if b.n == 0 {
		b.least = b.now
	}
	b.n++
	b.sum += b.now
	b.least, b.top = min(b.least, b.now), max(b.top, b.now)
	b.now = 0
}

func (b *bursts) spread() *measure.Spread {
	b.close()
	if b.n == 0 {
		return nil
	}
	return &measure.Spread{Mean: float64(b.sum) / float64(b.n), Min: float64(b.least), Max: float64(b.top)}
}

// timeline collects a measure.Trace: steps of one length, which doubles when
// there are too many of them.
type timeline struct {
	stepNs int64
	steps  []step
	again  thinned[measure.PacketMark]
	late   thinned[measure.PacketMark]
}

// step has -1 for unknown values.
type step struct {
	sent, acked, edge, flight, window int64
	rtts                              int64
	rttSum                            float64
}

var noStep = step{sent: -1, acked: -1, edge: -1, flight: -1, window: -1}

// at returns the step of a time since the connection's first packet.
func (c *timeline) at(ns int64, large bool) *step {
	most := fewSteps
	if large {
		most = measure.TraceSteps
	}
	c.stepNs = cmp.Or(c.stepNs, firstStepNs)
	i := ns / c.stepNs
	for len(c.steps) > most || i >= int64(most) {
		c.halve()
		i = ns / c.stepNs
	}
	for int64(len(c.steps)) <= i {
		c.steps = append(c.steps, noStep)
	}
	return &c.steps[i]
}

// halve merges each two steps.
func (c *timeline) halve() {
	n := (len(c.steps) + 1) / 2
	for i := range n {
		s := c.steps[2*i]
		if 2*i+1 < len(c.steps) {
			s = s.join(c.steps[2*i+1])
		}
		c.steps[i] = s
	}
	c.steps = c.steps[:n]
	c.stepNs *= 2
}

func (s step) join(x step) step {
	s.sent, s.acked = max(s.sent, x.sent), max(s.acked, x.acked)
	s.edge, s.flight = max(s.edge, x.edge), max(s.flight, x.flight)
	if s.window < 0 || x.window >= 0 && x.window < s.window {
		s.window = x.window
	}
	s.rtts += x.rtts
	s.rttSum += x.rttSum
	return s
}

// trace converts the steps to lists. Sent bytes, acknowledged bytes and the
// window hold until they change.
func (c *timeline) trace() *measure.Trace {
	if len(c.steps) == 0 {
		return nil
	}
	t := &measure.Trace{StepNs: c.stepNs, Again: c.again.kept, Late: c.late.kept}
	held := noStep
	for _, s := range c.steps {
		held.sent, held.acked, held.edge = max(held.sent, s.sent), max(held.acked, s.acked), max(held.edge, s.edge)
		rtt := int64(-1)
		if s.rtts > 0 {
			rtt = int64(s.rttSum / float64(s.rtts))
		}
		t.Sent = append(t.Sent, held.sent)
		t.Acked = append(t.Acked, held.acked)
		t.Edge = append(t.Edge, held.edge)
		t.Flight = append(t.Flight, s.flight)
		t.Window = append(t.Window, s.window)
		t.RTT = append(t.RTT, rtt)
	}
	return t
}

// mark returns a packet for a Trace.
func (c *conn) mark(p *frame.Packet, start, at int64) measure.PacketMark {
	return measure.PacketMark{AtNs: at - c.first, Seq: start, Packet: p.Number}
}

// drawSent records the data of h in flight after its own packet.
func (h *half) drawSent(c *conn, o *half, p *frame.Packet, at int64) {
	if h.dataPackets == 0 {
		return
	}
	if p.Payload > 0 && o.scale >= 0 && o.hasAck && p.Flags&(frame.SYN|frame.FIN|frame.RST) == 0 &&
		h.position(p.Seq)+int64(p.Payload) == o.lastAck+o.window {
		h.direction.Filled.Seen(p.Number, p.Payload)
	}
	s := h.timeline.at(at-c.first, c.isLarge)
	s.sent = h.next
	h.draw(s, o, at)
}

// drawAcked records the data in flight after an acknowledgement.
func (h *half) drawAcked(c *conn, r *half, at, rtt int64) {
	if h.dataPackets == 0 {
		return
	}
	s := h.timeline.at(at-c.first, c.isLarge)
	s.acked = max(s.acked, h.acked)
	if rtt >= 0 {
		s.rtts++
		s.rttSum += float64(rtt)
	}
	h.draw(s, r, at)
}

// draw adds the data of h in flight and the window of r to a step. Idle time
// counts only when data follows.
func (h *half) draw(s *step, r *half, at int64) {
	flight := max(0, h.next-h.acked)
	if !r.hasAck || flight == 0 && h.flight.value == 0 {
		return
	}
	h.flight.set(at, flight)
	s.flight = max(s.flight, flight)
	if r.scale < 0 {
		return
	}
	h.windows.set(at, r.window)
	s.edge = max(s.edge, r.lastAck+r.window)
	if s.window < 0 || r.window < s.window {
		s.window = r.window
	}
	full := int64(0)
	if flight > 0 && r.window-flight < int64(max(h.segment, h.largest)) {
		full = 1
	}
	h.filled.set(at, full)
}
