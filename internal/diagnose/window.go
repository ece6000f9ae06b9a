package diagnose

import (
	"fmt"
	"math"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// windowRules are the causes of windows and buffers that are too small.
func windowRules() []Rule {
	return []Rule{
		{
			Cause: "window-scaling-off", TCP: true, Title: "no window scaling: a window is 64 KiB at most", judge: windowScalingOff, packets: packetsScaling,
			Seen:  "the kernel negotiated no window scaling (tcp_info), and the receive window holds the sender up; in captures: the SYN or the SYN-ACK lacks the option",
			Apart: "the SYN as it left and as it arrived (the path's probe) tells whether an end or a box between them took it out; so does a capture at each end",
			Mends: "switch it on at the end that lacks it, or mend the box that strips it", Effect: "65535 bytes a round trip: 26 Mb/s at 20 ms",
			Source: "RFC 7323; tcp_info.tcpi_options", Tests: []string{captured}, Brings: []string{"receive-window"},
		},
		{
			Cause: "fixed-window", TCP: true, Title: "a buffer that was set by hand", judge: fixedWindow, packets: packetsFixedWindow,
			Seen:  "the socket buffer was set (-w), which ends autotuning, and that window holds the sender up; in a capture alone: the receiver's window holds the sender up and never changes (possible)",
			Apart: "the same without -w",
			Mends: "leave -w out", Effect: "W * 8 / RTT", Source: "tcp(7), SO_RCVBUF; methods.md, formula 3",
			Tests: []string{noWindow}, Brings: []string{"receive-window", "send-buffer"},
		},
		{
			Cause: "receive-window", TCP: true, Title: "the receiver's window is too small for the round trip", judge: receiveWindow, packets: packetsReceiveWindow,
			Seen:  "rwnd_limited is a large share of the busy time, goodput is the window over the round trip, and the receiver's queue is empty; in a capture at the sender: what is under way fills the window most of the time, the round trip does not grow, and goodput is the window over it",
			Apart: "a slow reader leaves its queue full; a larger window helps only here; before a full queue a larger one only makes that longer",
			Mends: "raise tcp_rmem at the receiver to twice the bandwidth-delay product", Effect: "3.74 to 18.3 Gb/s by buffers alone (S-09)",
			Source: "tcp_info.tcpi_rwnd_limited, tcpi_snd_wnd (include/uapi/linux/tcp.h); methods.md, formula 3", Tests: []string{moreWindow, eightStreams, captured},
		},
		{
			Cause: "slow-reader", TCP: true, UDP: true, Unseen: hostTime, Title: "the program at the receiver reads too slowly", judge: slowReader, packets: packetsSlowReader,
			Seen:  "the receive window holds the sender up while data waits unread in the receiver's socket; in captures: the receiver's window is closed for a tenth of the time or more, or it holds the sender up and is below half of what it was (possible)",
			Apart: "a larger buffer only fills later",
			Mends: "a faster reader", Effect: "51 of 189 Mb/s", Source: "SIOCINQ (tcp(7)), TcpExt.TCPToZeroWindowAdv", Tests: []string{largeMessages, leanPath, captured},
		},
		{
			Cause: "send-buffer", TCP: true, Title: "the sender's buffer is too small for the round trip", judge: sendBuffer, packets: packetsSendBuffer,
			Seen:  "the sender is blocked in send() with nothing left to send, and what is under way is the socket's buffer; in a capture at the sender: what is under way is always about the same, though nothing holds it (possible)",
			Apart: "neither window is full, nothing is lost; before a full queue a larger one only makes that longer",
			Mends: "raise tcp_wmem at the sender to twice the bandwidth-delay product, drop -w", Effect: "44 of 189 Mb/s by 64 KiB at 20 ms",
			Source: "methods.md, Traps: tcp_info.tcpi_sndbuf_limited reads 0 for a blocking sender; so the time blocked in send() counts", Tests: []string{moreBuffer, eightStreams},
		},
	}
}

// Bars of the window rules, in percent.
const (
	rwndBar   = 50 // of the busy time: above it the peer's window is what the sender mostly waits for
	rwndClear = 15 // below it the window is not what binds
	fitBar    = 30 // by how much window over round trip may miss the goodput
	unreadBar = 40 // of the advertised and filled window: above it the reader is behind
)

// windowFit is the rate that the advertised windows of all streams allow over
// the round trip, and by how many percent that misses the goodput.
func (f *flow) windowFit() (bound, offPct float64, ok bool) {
	w, ok1 := f.sendWindow()
	loaded, ok2 := f.loadedRTT()
	bps, ok3 := f.goodput()
	if !ok1 || !ok2 || !ok3 || bps <= 0 || loaded <= 0 {
		return 0, 0, false
	}
	bound = stat.WindowRate(w, int64(loaded)) * float64(max(1, len(f.sender.streams())))
	return bound, 100 * math.Abs(bound-bps) / bps, true
}

// unreadShare is how much of the receiver's room is taken by data that the
// program has not read yet, in percent.
func (f *flow) unreadShare() (float64, bool) {
	waits, ok := f.unread()
	w, okToo := f.sendWindow()
	if !ok || !okToo || waits+w <= 0 {
		return 0, false
	}
	return 100 * waits / (waits + w), true
}

// isJiffy tells that the measured time is too short for the kernel's counters
// of time, whose resolution is a jiffy (methods.md, Traps).
func (f *flow) isJiffy() bool { return f.sender.span() < 500e6 }

// windowHeld is how much of the time the receiver's window held the sender up,
// in percent, with the proof: by the kernel's own clock, or where the control
// paces and so hardly ever meets the window, by how often that was used up.
func (f *flow) windowHeld() (float64, measure.Proof, bool) {
	pct, ok := f.rwndPct()
	p := f.sender.proof("tcp_info.rwnd_limited_us of busy_time_us", pct, "pct")
	if full, known := f.sender.windowFull(); known && full > pct {
		if _, off, fits := f.windowFit(); fits && off <= fitBar && full > 90 {
			return full, f.sender.proof("readings in which the peer's window was used up", full, "pct"), true
		}
	}
	if !ok {
		return f.windowOver()
	}
	return pct, p, ok
}

// windowOver judges the same where no kernel counted the time: the congestion
// window is larger than the receiver's, and that fits the goodput.
func (f *flow) windowOver() (float64, measure.Proof, bool) {
	w, ok1 := f.sendWindow()
	cwnd, ok2 := f.cwnd()
	_, off, ok3 := f.windowFit()
	if !ok1 || !ok2 || !ok3 || w <= 0 {
		return 0, measure.Proof{}, false
	}
	if cwnd < w || off > fitBar {
		return 0, measure.Proof{}, true
	}
	return 100, f.sender.proof("congestion window over the receiver's", 100*cwnd/w, "pct"), true
}

// windowFull is the share of readings in which the peer's window was used up, of
// those in which there was anything to send.
func (e *end) windowFull() (float64, bool) {
	var all []float64
	for _, s := range e.streams() {
		if s.Course != nil && s.Course.WndFull != nil {
			sends := 100.0
			if s.Course.Idle != nil {
				sends -= *s.Course.Idle
			}
			all = append(all, min(100*(*s.Course.WndFull)/max(sends, 1), 100))
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return mean(all), true
}

func receiveWindow(f *flow) *outcome {
	pct, proof, ok := f.windowHeld()
	if !ok {
		return f.sender.lacks("tcp_info.rwnd_limited_us")
	}
	if f.rate() <= 0 {
		return no("nothing passes at all")
	}
	if f.isJiffy() {
		return missing("a measured time of half a second", "the kernel counts what a window costs in jiffies")
	}
	if pct < rwndClear {
		return no("the receiver's window held the sender up %s of the time", unit.Percent(pct))
	}
	behind, seen := f.unreadShare()
	if seen && behind > unreadBar {
		return no("data waits unread at the receiver: %s of its buffer", unit.Percent(behind))
	}
	w, _ := f.sendWindow()
	bound, off, fits := f.windowFit()
	if fits && bound > 3*f.rate() {
		return no("windows of %s would let %s pass", unit.Size(int64(w)), unit.Rate(bound))
	}
	loaded, _ := f.loadedRTT()
	base, _ := f.baseRTT()
	twice := f.against(f.experiment(moreWindow))
	if twice.Times <= gainBar && f.lengthens(w) {
		return no("a queue stands, %s of the round trip of %s: a larger window would only make it longer", unit.Duration(int64(loaded-base)), unit.Duration(int64(loaded)))
	}
	o := possible("the receiver's window of %s is too small for a round trip of %s", unit.Size(int64(w)), unit.Duration(int64(loaded)))
	switch {
	case pct >= rwndBar && seen && (fits && off <= fitBar && f.room(w) < fitsBar && f.cell.Spec.MaxRate == 0 || twice.Sure):
		o.confidence = measure.Certain
	case pct >= rwndBar:
		o.confidence = measure.Likely
	}
	return f.windowProofs(o, above(proof, rwndBar), twice).mend(f.raiseWindow(f.receiver, base))
}

// windowProofs adds to a window that is too small by what it was seen, and what
// it costs.
func (f *flow) windowProofs(o *outcome, held measure.Proof, twice stat.Turns) *outcome {
	w, _ := f.sendWindow()
	loaded, _ := f.loadedRTT()
	o.at(f.receiver.where()).by(held, f.sender.proof("tcp_info.snd_wnd_bytes, mean", w, "bytes"), f.sender.proof("tcp_info.rtt_ns, mean", loaded, "ns"))
	if behind, seen := f.unreadShare(); seen {
		o.by(below(f.receiver.proof("unread in the socket, of its room", behind, "pct"), unreadBar))
	}
	if twice.Times > gainBar {
		o.by(inTurns(f.receiver.proof("goodput with twice the window over this", 0, ""), twice, gainBar))
	}
	if bound, _, fits := f.windowFit(); fits {
		o.costs(bound, "windows of "+unit.Size(int64(w))+" carry "+unit.Rate(bound), fmt.Sprintf("%s * 8 / %s", unit.Size(int64(w)), unit.Duration(int64(loaded))))
	}
	return o
}

// lateNs is how long data may wait for a reader that is not late, in ns.
const lateNs = 5e6

// waitsNs is how long data waits on average to be read, by what is unread over
// the rate (Little's law); 0 where it is not known.
func (e *end) waitsNs() float64 {
	waits, ok := e.flow.unread()
	if bps := e.flow.rate(); ok && bps > 0 {
		return waits * float64(max(1, len(e.streams()))) * 8e9 / bps
	}
	return 0
}

// isBehind tells of a reader whose delay is a good part of the round trip, for more
// than the packets that a kernel hands over at once: as
// long as the program does not read, its kernel holds acknowledgements back.
func (e *end) isBehind() bool {
	base, ok := e.flow.baseRTT()
	unread, _ := e.flow.unread()
	return ok && e.waitsNs() > max(lateNs, base/4) && unread > shortRow*e.flow.mss()
}

func slowReader(f *flow) *outcome {
	if f.isUDP() {
		return unreadDatagrams(f)
	}
	pct, proof, ok := f.windowHeld()
	if !ok {
		return f.sender.lacks("tcp_info.rwnd_limited_us")
	}
	behind, seen := f.unreadShare()
	late := f.receiver.isBehind()
	if pct < rwndClear && !late {
		return no("the receiver's window held the sender up %s of the time", unit.Percent(pct))
	}
	if !seen {
		return f.receiver.lacks("unread bytes of the socket")
	}
	if behind <= unreadBar && !late {
		return no("the receiver's queue is all but empty: %s of its room", unit.Percent(behind))
	}
	o := likely("the program at the receiver reads too slowly: %s of its buffer waits unread", unit.Percent(behind))
	if late {
		o.text = fmt.Sprintf("the program at the receiver reads too slowly: data waits %s for it", unit.Duration(int64(f.receiver.waitsNs())))
		o.by(above(f.receiver.proof("time that data waits unread", f.receiver.waitsNs(), "ns"), lateNs))
	}
	t, known := f.receiver.threads()
	switch {
	case known && t.run+t.wait > threadBar:
		o.then("what keeps the reader's CPU busy")
	case f.receiver.load().isFull() || f.receiver.load().least > mostBar:
		o.then("whether the reader waits for a CPU: the host's are busy")
	case known && (pct >= rwndBar || late):
		o.confidence = measure.Certain // its thread has a CPU to run on, and does not read
		o.by(below(f.receiver.proof("reader's thread on a CPU or waiting for one", t.run+t.wait, "pct"), threadBar))
	}
	o.at(f.receiver.where()).by(above(f.receiver.proof("unread in the socket, of its room", behind, "pct"), unreadBar), above(proof, rwndBar))
	if n, ok := f.receiver.counter("TcpExt.TCPToZeroWindowAdv"); ok && n > 0 {
		o.by(f.receiver.proof("TcpExt.TCPToZeroWindowAdv", n, ""))
	}
	return o.mend(advise(f.receiver, "make the program at the receiver read faster, or find what it waits for: a disk, a lock, a CPU"))
}

func windowScalingOff(f *flow) *outcome {
	on, known := f.option(func(t *measure.TCPInfo) *bool { return t.WScaleOK })
	if !known {
		return f.sender.lacks("tcp_info.opt_window_scaling")
	}
	if on {
		return no("both ends scale their windows")
	}
	pct, proof, counted := f.windowHeld()
	o := likely("TCP window scaling is off: no window is larger than 64 KiB")
	where, how := f.lostOption(func(s *measure.SYN) *bool { return s.HasScale }, "net.ipv4.tcp_window_scaling")
	o.at(where)
	if how != "" {
		o.text = fmt.Sprintf("TCP window scaling is off (%s): no window is larger than 64 KiB", how)
	}
	o.confidence = measure.Certain // that it is off; what it costs hangs on the round trip
	behind, seen := f.unreadShare()
	switch {
	case seen && behind > unreadBar:
		o.beside() // a larger window would be full of unread data too
	case counted && pct >= rwndBar && !f.lengthens(plainWindow):
		o.by(above(proof, rwndBar))
	case counted:
		o.beside()
	default:
		o.confidence = measure.Likely
	}
	if loaded, ok := f.loadedRTT(); ok {
		bound := stat.WindowRate(plainWindow, int64(loaded)) * float64(max(1, f.cell.Streams))
		o.costs(bound, "without it "+unit.Rate(bound)+" at most", fmt.Sprintf("65535 bytes * 8 / %s", unit.Duration(int64(loaded))))
	}
	o.by(f.sender.proof("tcp_info.opt_window_scaling", 0, ""))
	return o.mend(f.switchOn("net.ipv4.tcp_window_scaling", where))
}

// plainWindow is the most without scaling (RFC 9293).
const plainWindow = 65535

func fixedWindow(f *flow) *outcome {
	send, recv := f.cell.Spec.Window.Send, f.cell.Spec.Window.Recv
	if f.packetsOnly() {
		return missing("the windows that were asked for", "packets do not tell")
	}
	if send == 0 && recv == 0 {
		return no("no window was set: the kernels tune them")
	}
	r, s := receiveWindow(f), sendBuffer(f)
	cause, size, by := r, recv, f.receiver
	if recv == 0 || send > 0 && sureness(s) > sureness(r) {
		cause, size, by = s, send, f.sender
	}
	free := f.experiment(noWindow)
	if g := f.against(free); g.Times > gainBar {
		return likely("the window of %s that was set by hand is too small: without it %s pass", unit.Size(size), unit.Rate(rateOf(free))).
			at(measure.Where{Place: measure.AtTool, EndPoint: by.name}).by(by.proof("window asked for", float64(size), "bytes")).
			gains(f.receiver.proof("goodput without it over this", 0, ""), g).
			costs(0, "without it "+unit.Rate(rateOf(free))+" pass", "the same traffic with windows that the kernels tune").
			mend(advise(by, "leave -w out, so that the kernel tunes the window"))
	}
	if tuned := f.tuned(); tuned != nil && f.against(tuned).Times <= 1 {
		return no("windows that the kernels tune carry %s, no more", unit.Rate(rateOf(tuned)))
	}
	if cause.state != holds || cause.confidence == measure.Possible {
		return no("a window of %s was set, and is not what holds the sender up", unit.Size(size))
	}
	o := held(cause.confidence, "the window of %s that was set by hand is too small for the round trip", unit.Size(size))
	o.effect, o.evidence = cause.effect, append([]measure.Proof{by.proof("window asked for", float64(size), "bytes")}, cause.evidence...)
	return o.at(measure.Where{Place: measure.AtTool, EndPoint: by.name}).mend(advise(by, "leave -w out, so that the kernel tunes the window"))
}

// tuned is the fastest other cell of the same traffic without a window of its own; nil where there is none.
func (f *flow) tuned() *measure.Cell {
	var best *measure.Cell
	for _, c := range f.tried(func(s *measure.Spec) { s.Window = measure.Pair{} }) {
		if c.Spec.Window == (measure.Pair{}) && (best == nil || rateOf(c) > rateOf(best)) {
			best = c
		}
	}
	return best
}

// blockedBar is the share of time blocked in send() above which a sender waits for room.
const blockedBar = 50

// sendSide is what was seen of the sender's socket, in bytes of a stream.
type sendSide struct {
	blocked                     float64 // percent of the time in send()
	buffer, flight, waits, cwnd float64
	few                         bool // the buffer holds next to nothing
}

// sendSide of the flow; false where a part of it is not known.
func (f *flow) sendSide(t threads) (s sendSide, ok bool) {
	s = sendSide{blocked: t.blocked, buffer: f.sendBuffer()}
	var ok1, ok2, ok3 bool
	s.flight, ok1 = f.inFlight()
	s.waits, ok2 = f.notSent()
	s.cwnd, ok3 = f.cwnd()
	s.few = s.buffer < fewSegments*f.mss()
	return s, s.buffer > 0 && ok1 && ok2 && ok3
}

func sendBuffer(f *flow) *outcome {
	t, ok := f.sender.threads()
	if !ok {
		return f.sender.lacks("time blocked in send()")
	}
	s, ok := f.sendSide(t)
	if !ok {
		return f.sender.lacks("tcp_info.notsent_bytes, unacked_segments or SO_SNDBUF")
	}
	if o := f.otherThanBuffer(s); o != nil {
		return o
	}
	loaded, base, _ := f.rtt()
	o := likely("the sender's socket buffer (SO_SNDBUF %s) is too small for a round trip of %s", unit.Size(int64(s.buffer)), unit.Duration(int64(loaded)))
	again, known := f.againPct()
	bar, carried := float64(blockedBar), s.flight
	switch more := f.against(f.experiment(moreBuffer)); {
	case more.Times > gainBar:
		o.gains(f.sender.proof("goodput with twice the buffer over this", 0, ""), more)
	case s.blocked < blockedBar || f.fitOf(s.flight) > sendFitBar: // readings say little of what is so short
		o.confidence, bar, carried = measure.Possible, fewBlocked, s.buffer
	case known && again < 0.01 && base > 0 && loaded < fitsBar*base && s.blocked > 80:
		o.confidence = measure.Certain
	}
	bound := f.boundOf(carried)
	return o.at(f.sender.where()).by(above(f.sender.proof("thread blocked in send()", s.blocked, "pct"), bar),
		f.sender.proof("tcp_info.notsent_bytes, mean", s.waits, "bytes"), f.sender.proof("in flight, mean", s.flight, "bytes"),
		f.sender.proof("SO_SNDBUF as granted", s.buffer, "bytes"), f.sender.proof("congestion window, mean", s.cwnd, "bytes")).
		costs(bound, "what fits in it carries "+unit.Rate(bound), fmt.Sprintf("%s under way * 8 / %s", unit.Size(int64(carried)), unit.Duration(int64(loaded)))).
		mend(f.raiseWindow(f.sender, base))
}

// otherThanBuffer is what speaks against the sender's buffer; nil where nothing does.
func (f *flow) otherThanBuffer(s sendSide) *outcome {
	rwnd, _, _ := f.windowHeld()
	switch {
	case s.blocked < blockedBar && !s.few || s.blocked < fewBlocked:
		return no("the sender waited in send() %s of the time", unit.Percent(s.blocked))
	case s.waits > s.flight/4 && s.waits > 2*f.mss():
		return no("%s waited in the sender's socket to be sent", unit.Size(int64(s.waits)))
	case s.flight > 0.85*s.cwnd:
		return no("the congestion window was full")
	case rwnd > rwndBar:
		return no("the receiver's window held the sender up %s of the time", unit.Percent(rwnd))
	case f.receiver.isFull() || f.receiver.isBehind():
		return no("the receiver does not keep up")
	case f.lengthens(s.flight) && !f.empties() && f.against(f.experiment(moreBuffer)).Times <= gainBar:
		return no("a queue stands: a larger buffer would only make it longer")
	case f.fitOf(s.flight) > sendFitBar && !(s.few && f.boundOf(s.flight) < f.rate() && f.boundOf(s.buffer) > f.rate()):
		return no("%s under way would make %s, not what passes", unit.Size(int64(s.flight)), unit.Rate(f.boundOf(s.flight)))
	case s.flight < s.buffer/4 && (!s.few || f.mostInFlight() < s.buffer/4):
		return no("%s were under way, the sender's buffer has %s", unit.Size(int64(s.flight)), unit.Size(int64(s.buffer)))
	}
	return nil
}

// A buffer of so few segments (their bookkeeping counts) makes a wake-up of the thread of each
// of them: it is busy with that for a good part of the time that it would be blocked, and a
// reading finds what has just been acknowledged as often as what is under way.
const (
	fewSegments = 16
	fewBlocked  = 20 // percent of the time in send()
)

// mostInFlight is the most that a reading found under way in a stream, in bytes.
func (f *flow) mostInFlight() float64 {
	most := 0.0
	for _, s := range f.sender.streams() {
		if s.Course != nil && s.Course.InFlight != nil {
			most = max(most, s.Course.InFlight.Max)
		}
	}
	return most * f.mss()
}

// sendFitBar is by how many percent what is under way over the round trip may
// miss the goodput, where the buffer is to be what binds.
const sendFitBar = 40

// boundOf is the rate of all streams that have so many bytes each under way.
func (f *flow) boundOf(flight float64) float64 {
	loaded, ok := f.loadedRTT()
	if !ok {
		return 0
	}
	return stat.WindowRate(flight, int64(loaded)) * float64(max(1, len(f.sender.streams())))
}

// fitOf is by how many percent that misses the goodput.
func (f *flow) fitOf(flight float64) float64 {
	bps := f.rate()
	if bps <= 0 {
		return 100
	}
	return 100 * math.Abs(f.boundOf(flight)-bps) / bps
}

// sendBuffer is SO_SNDBUF of the sender's streams as the kernel has it, which
// is with its bookkeeping, in bytes; 0 where it is not known.
func (f *flow) sendBuffer() float64 {
	for _, s := range f.sender.streams() {
		if s.Window.Granted > 0 {
			return float64(s.Window.Granted)
		}
	}
	return 0
}

// option of TCP as the kernels negotiated it, the sender's before the receiver's.
func (f *flow) option(of func(*measure.TCPInfo) *bool) (on, known bool) {
	for _, e := range f.ends() {
		for _, s := range e.streams() {
			for _, t := range []*measure.TCPInfo{s.TCP, s.TCPStart, s.TCPEnd} {
				if t != nil && of(t) != nil {
					return *of(t), true
				}
			}
		}
	}
	return false, false
}
