package diagnose

import (
	"fmt"
	"math"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Bars of windows in packets, in percent of the time.
const (
	closedBar = 10 // above it the receiver's closed window is what binds
	closedFew = 2  // below it a closed window costs nothing to speak of
)

// windowUse is how the receiver's window holds the sender up, by packets.
type windowUse struct {
	pct    float64 // of the time in which it was used up
	binds  bool
	clear  bool // it does not
	window float64
	bound  float64 // rate that the windows of all connections allow, in bit/s
	off    float64 // by how many percent that misses the goodput
	rtt    float64 // ns
	proof  measure.Proof
}

// windowHeld judges the receiver's window at a spot; false where its packets do
// not tell. Only at the sender all that is under way is seen: elsewhere the
// window is held against the goodput.
func (s *spot) windowHeld() (windowUse, bool) {
	c := s.main()
	loaded, _, ok := s.rtt()
	bps := s.rate()
	if c.Window == nil || c.Unscaled || !ok || bps <= 0 || c.Window.Mean <= 0 {
		return windowUse{}, false
	}
	h := windowUse{window: c.Window.Mean, rtt: loaded}
	for _, c := range s.conns {
		if c.Window != nil {
			h.bound += stat.WindowRate(c.Window.Mean, int64(loaded))
		}
	}
	h.off = 100 * math.Abs(h.bound-bps) / bps
	switch {
	case !isNumber(h.bound):
		return windowUse{}, false
	case s.place == measure.AtSender && c.WindowFull != nil:
		h.pct = *c.WindowFull
		h.binds, h.clear = h.pct >= rwndBar, h.pct < rwndClear
		h.proof = above(s.proof("time in which the receiver's window was used up", h.pct, "pct", c.Data.Filled.Packets...), rwndBar)
	default:
		h.binds, h.clear = h.off <= fitBar, h.bound > 3*bps
		h.proof = s.proof("goodput of what the window allows over the round trip", 100*bps/h.bound, "pct")
	}
	return h, true
}

// weighs is the share of the data, in percent, that a connection carries at least
// for its closed window to be the flow's.
const weighs = 5

// closedPct is the share of the time in which the receiver's window was closed,
// in percent, of all connections that carry data to speak of. What is too little
// to fill a window says nothing: some programs close theirs as they end.
func (s *spot) closedPct() float64 {
	var zero, span float64
	for _, c := range s.conns {
		if share(float64(c.Data.New), float64(s.data.New)) >= weighs || len(s.conns) == 1 {
			zero, span = zero+float64(c.Acks.ZeroNs), span+float64(c.SpanNs)
		}
	}
	if s.data.New < leastFill {
		return 0
	}
	return share(zero, span)
}

// leastFill is less than any window holds of a program that moves data, in bytes.
const leastFill = 10_000

// fallen is the share of the time, in percent, in which the main connection's
// window was below half of what it had been before. A kernel takes back no room
// that it has offered: its window falls only as data waits to be read.
func (s *spot) fallen() float64 {
	c := s.main()
	if c.Course == nil || c.Unscaled {
		return 0
	}
	most, below, all := int64(0), 0, 0
	for _, w := range c.Course.Window {
		switch {
		case w < 0:
			continue
		case 2*w < most:
			below++
		}
		all++
		most = max(most, w)
	}
	return share(float64(below), float64(all))
}

// fallenBar is that share from where on the reader is what fills the window.
const fallenBar = 10

func packetsReceiveWindow(f *flow) *outcome {
	s := f.anySpot()
	switch {
	case s == nil:
		return missing("a connection of the flow", "none is in the capture")
	case s.main().Unscaled:
		return missing("the scale of the receiver's window", "the handshake is not in the capture")
	case s.closedPct() >= closedFew:
		return no("the receiver's window is closed %s of the time: what came waits to be read", unit.Percent(s.closedPct()))
	}
	h, ok := s.windowHeld()
	if !ok {
		return missing("the receiver's window over the round trip", "the packets that were captured do not tell")
	}
	queue, _ := s.stands()
	switch {
	case h.clear && s.place == measure.AtSender:
		return no("the receiver's window was used up %s of the time", unit.Percent(h.pct))
	case h.bound > 3*s.rate():
		return no("windows of %s would let %s pass", unit.Size(int64(h.window)), unit.Rate(h.bound))
	case !h.binds && s.place != measure.AtSender:
		return captureAt(measure.AtSender, "what is under way of the window")
	case h.binds && queue:
		return no("a queue fills: a larger window would only make it longer")
	case s.fallen() >= fallenBar:
		return missing("how much waits unread at the receiver", fmt.Sprintf("its window is below half of what it was for %s of the time, as one of a program that reads too slowly: a larger one would fill as well", unit.Percent(s.fallen())))
	}
	o := possible("the receiver's window of %s is too small for a round trip of %s", unit.Size(int64(h.window)), unit.Duration(int64(h.rtt)))
	switch {
	case h.binds && s.place == measure.AtSender && h.off <= fitBar && !s.misses():
		o.confidence = measure.Certain
	case h.binds:
		o.confidence = measure.Likely
	}
	return o.at(f.receiver.where()).by(h.proof, s.proof("window that the receiver advertised, mean", h.window, "bytes"), s.proof("round trip, median", h.rtt, "ns")).
		costs(h.bound, "windows of "+unit.Size(int64(h.window))+" carry "+unit.Rate(h.bound), fmt.Sprintf("%s * 8 / %s", unit.Size(int64(h.window)), unit.Duration(int64(h.rtt)))).
		mend(f.raiseWindow(f.receiver, h.rtt))
}

func packetsSlowReader(f *flow) *outcome {
	s := f.spot(measure.AtReceiver, measure.AtPath, "", measure.AtSender)
	if s == nil {
		return missing("a connection of the flow", "none is in the capture")
	}
	pct, zero := s.closedPct(), s.acks.Zero
	c := s.main()
	switch {
	case s.data.New < leastFill:
		return missing("a transfer of data", "too little passed to fill a window")
	case zero.N > 0 && pct >= closedFew:
		o := likely("the program at the receiver reads too slowly: its window was closed %s of the time", unit.Percent(pct))
		if pct >= closedBar && s.data.Segments >= leastSegments {
			o.confidence = measure.Certain
		}
		o.at(f.receiver.where()).by(above(s.proof("time in which the receiver's window was closed", pct, "pct", zero.Packets...), closedFew), s.count("zero windows of the receiver", zero))
		if s.data.Probes.N > 0 {
			o.by(s.count("probes of the closed window", s.data.Probes))
		}
		return o.mend(advise(f.receiver, "make the program at the receiver read faster, or find what it waits for: a disk, a lock, a CPU"))
	case zero.N > 0:
		return no("the receiver's window was closed %s of the time", unit.Percent(pct))
	case f.receiver.isBehind():
		return nil // data may wait for long without a full buffer
	case s.fallen() >= fallenBar && f.waitsForWindow():
		return f.readsInBits(s)
	case c.Window != nil && !c.Unscaled && c.Window.Min > c.Window.Max/2:
		return no("the receiver's window never closed, nor fell to half")
	}
	return missing("how much waits unread at the receiver", "its window never closed; packets show no more")
}

// waitsForWindow tells whether the receiver's window holds the sender up some of
// the time at least.
func (f *flow) waitsForWindow() bool {
	s := f.anySpot()
	h, known := s.windowHeld()
	return known && !h.clear
}

// readsInBits words a receiver's window that falls and never closes: its program
// takes some out now and then, and the rate is what it takes.
func (f *flow) readsInBits(s *spot) *outcome {
	o := possible("the program at the receiver may read too slowly: its window is below half of what it was for %s of the time", unit.Percent(s.fallen()))
	if h, _ := f.anySpot().windowHeld(); h.binds {
		o.confidence = measure.Likely
	}
	return o.at(f.receiver.where()).by(above(s.proof("time in which the receiver's window was below half of its greatest", s.fallen(), "pct"), fallenBar),
		s.proof("window that the receiver advertised, least", s.main().Window.Min, "bytes"), s.proof("window that the receiver advertised, most", s.main().Window.Max, "bytes")).
		mend(advise(f.receiver, "make the program at the receiver read faster, or find what it waits for: a disk, a lock, a CPU"))
}

func packetsFixedWindow(f *flow) *outcome {
	if !f.packetsOnly() {
		return nil // the windows that were asked for are known
	}
	o := packetsReceiveWindow(f)
	s := f.anySpot()
	if o.state == excluded {
		return no("%s", o.text)
	}
	if o.state == unknown || s.main().Window.Max-s.main().Window.Min > 2*s.mss() {
		return missing("the windows that were asked for", "packets do not tell")
	}
	return possible("the receiver's window stays at %s: it was set by hand, or its bound is that low", unit.Size(int64(s.main().Window.Mean))).at(f.receiver.where()).
		by(s.proof("window that the receiver advertised, most", s.main().Window.Max, "bytes"), s.proof("window that the receiver advertised, least", s.main().Window.Min, "bytes")).
		then("the same without a window that is set").mend(advise(f.receiver, "have the kernel tune the window: leave -w or SO_RCVBUF out, and raise its bounds"))
}

// evenly tells of a sender that always has about the same under way, though no
// window is used up, nothing is lost and no queue fills; why not otherwise.
func (f *flow) evenly() (s *spot, why *outcome) {
	s = f.spot(measure.AtSender)
	if s == nil {
		return nil, captureAt(measure.AtSender, "what is under way")
	}
	c := s.main()
	h, ok := s.windowHeld()
	again, counted := s.againPct()
	queue, _ := s.stands()
	idle, known := s.idlePct()
	switch {
	case !ok || !counted || c.Flight == nil || c.Flight.Mean <= 0 || !known:
		return nil, missing("what is under way, of the window", "the packets that were captured do not tell")
	case !h.clear:
		return nil, no("the receiver's window was used up %s of the time", unit.Percent(h.pct))
	case again >= againBar:
		return nil, no("%s of the data had to be sent again", unit.Percent(again))
	case queue:
		return nil, no("a queue fills: the round trip grows under load")
	case idle > idleBar/2:
		return nil, no("the sender had nothing to send %s of the time", unit.Percent(idle))
	}
	return s, nil
}

// evenBar is by how much the most that was under way may exceed the mean, where a
// buffer is to be what bounds it.
const evenBar = 1.25

func packetsSendBuffer(f *flow) *outcome {
	s, why := f.evenly()
	if why != nil {
		return why
	}
	flight := s.main().Flight
	loaded, least, _ := s.rtt()
	bound := stat.WindowRate(flight.Max, int64(loaded)) * float64(len(s.conns))
	switch {
	case least < nearNs:
		return missing("time blocked in send()", "packets do not tell, and the other end is near")
	case flight.Max > evenBar*flight.Mean:
		return no("what is under way varies: %s on average, %s at most", unit.Size(int64(flight.Mean)), unit.Size(int64(flight.Max)))
	case bound > (1+sendFitBar/100.0)*s.rate():
		return no("%s under way would make %s, not what passes", unit.Size(int64(flight.Max)), unit.Rate(bound))
	}
	return possible("no more than %s are ever under way, though the window has room and nothing is lost: the sender's buffer may be too small", unit.Size(int64(flight.Max))).
		at(f.sender.where()).by(s.proof("in flight, most", flight.Max, "bytes"), s.proof("in flight, mean", flight.Mean, "bytes"), s.proof("window that the receiver advertised, mean", s.main().Window.Mean, "bytes")).
		costs(bound, "what is under way carries "+unit.Rate(bound), fmt.Sprintf("%s * 8 / %s", unit.Size(int64(flight.Max)), unit.Duration(int64(loaded)))).
		then("`thru test` from there: whether the sender is blocked in send()").mend(f.raiseWindow(f.sender, loaded))
}

// waits is how long the sender waits after an acknowledgement until it sends, in
// ns (median), and whether that is longer than a kernel takes which has data.
func (s *spot) waits() (float64, bool) {
	d := s.main().RTTBack
	if s.place != measure.AtSender || d == nil || d.Samples < leastSegments {
		return 0, false
	}
	return float64(d.P50), d.P50 > measure.BurstGapNs
}

// longWait is a wait in ns that no pacing of a kernel makes: it lets a
// millisecond's worth go at once (sk_pacing_shift, net/core/sock.c).
const longWait = 2e6

// pacedBar is how many segments leave back to back, on average, of a sender that
// spaces them.
const pacedBar = 2.5

func packetsPaced(f *flow) *outcome {
	s, why := f.evenly()
	if why != nil {
		return why
	}
	b := s.main().BurstBytes
	bps := s.rate()
	alone := s.mss()*8e9/bps > measure.BurstGapNs/4 // at such a rate segments lie apart anyway
	_, waits := s.waits()
	switch {
	case b == nil || alone && !waits:
		return missing("the congestion control", "packets do not tell it at this rate")
	case b.Mean > pacedBar*s.mss():
		return no("segments leave %.3g at a time", b.Mean/s.mss())
	}
	return possible("the sender spaces its segments, though the window has room and nothing is lost").at(f.sender.where()).
		by(below(s.proof("sent back to back, mean", b.Mean, "bytes"), pacedBar*s.mss())).then("the same under cubic").mend(f.useControl("cubic"))
}

// idleBar is the share of the time, in percent, above which a sender that has
// nothing to send is what the rate hangs on.
const idleBar = 50

func packetsAppLimited(f *flow) *outcome {
	if f.cell.Spec.Rate > 0 {
		return nil // the counters say it
	}
	s := f.anySpot()
	if s == nil {
		return missing("a connection of the flow", "none is in the capture")
	}
	idle, ok := s.idlePct()
	switch {
	case !ok:
		return missing("when the sender had nothing under way", "the capture has no course of the connection, or its steps are longer than they tell of")
	case s.data.Segments < leastSegments:
		return missing("a transfer of data", "too little passed to tell")
	case s.closedPct() >= closedFew:
		return no("the receiver's window was closed %s of the time", unit.Percent(s.closedPct()))
	case idle < idleBar && f.hesitates(s) != nil:
		return f.hesitates(s)
	case idle < idleBar && s.place == measure.AtSender:
		return f.keepsBusy(idle)
	case idle < idleBar:
		return captureAt(measure.AtSender, "when the sender had nothing under way")
	}
	o := likely("the sender had nothing to send %s of the time: all was acknowledged, and the window was open", unit.Percent(idle)).at(f.sender.where()).
		by(above(s.proof("time in which nothing was under way", idle, "pct"), idleBar)).mend(advise(f.sender, "see what the program at the sender waits for"))
	if again, counted := s.againPct(); s.place == measure.AtSender && counted && again < 1 && !s.misses() {
		o.confidence = measure.Certain
	}
	return o
}

// keepsBusy judges a sender that mostly has something under way. A program that
// writes a little every few milliseconds does, too: only what else holds the rate
// speaks against it.
func (f *flow) keepsBusy(idle float64) *outcome {
	_, why := f.evenly()
	switch l, _ := f.lossAt(); {
	case f.linkIsFull():
		return no("the link itself is full")
	case idle < idleBar/2 && why != nil && why.state == excluded && (l.pct < againBar || l.pct >= 0.05):
		return no("data was under way %s of the time, and %s", unit.Percent(100-idle), why.text)
	}
	return missing("whether the program always had data to send", fmt.Sprintf("data was under way %s of the time, and nothing else in the packets holds the rate", unit.Percent(100-idle)))
}

// hesitates judges a sender that nothing holds, and that lets data go long after
// the acknowledgements that make room for it; nil where it does not.
func (f *flow) hesitates(s *spot) *outcome {
	even, why := f.evenly()
	wait, long := s.waits()
	b := s.main().BurstBytes
	if why != nil || even != s || !long || b == nil || b.Mean <= pacedBar*s.mss() {
		return nil
	}
	o := possible("the sender holds data back: it waits %s after an acknowledgement, though the window has room, nothing is lost and no queue fills", unit.Duration(int64(wait))).
		at(f.sender.where()).by(above(s.proof("from an acknowledgement to the data after it, median", wait, "ns"), measure.BurstGapNs)).
		mend(advise(f.sender, "see what the program at the sender waits for, or at what rate it is set to send"))
	if wait > longWait {
		o.confidence = measure.Likely
	}
	return o
}

// idlePct is the share of the time, in percent, in which the main connection had
// nothing under way and nothing was sent. A capture at the sender sees it;
// elsewhere only what is longer than a round trip tells, less that.
func (s *spot) idlePct() (float64, bool) {
	c := s.main()
	x := c.Course
	if x == nil || x.StepNs <= 0 || len(x.Sent) < 10 || len(x.Acked) != len(x.Sent) || c.Unscaled && c.Acks.Zero.N > 0 {
		return 0, false
	}
	margin := 0.0
	if s.place != measure.AtSender {
		_, least, ok := s.rtt()
		if !ok {
			return 0, false
		}
		margin = least
	}
	idle, run, sent, acked := 0.0, 0.0, x.Sent[0], x.Acked[0]
	for i, next := range x.Sent[1:] {
		if max(sent, next) == sent && acked >= sent { // all that was sent before the step is acknowledged, and no more is sent in it
			run += float64(x.StepNs)
		} else {
			idle, run = idle+max(0, run-margin), 0
		}
		sent, acked = max(sent, next), max(acked, x.Acked[i+1])
	}
	idle += max(0, run-margin)
	return share(idle, float64(x.StepNs)*float64(len(x.Sent))), true
}
