package diagnose

import (
	"fmt"
	"math"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Thresholds of the window rules, in percent.
const (
	RwndBar   = 50 // of the busy time: above it the sender mostly waits for the peer's window
	RwndClear = 15 // below it the window does not bind
	FitBar    = 30 // by how much window / round-trip time may differ from the goodput
	UnreadBar = 40 // of the advertised and filled window: above it the reader is behind
)

// WindowFit returns the rate in bit/s that the advertised windows of all streams allow over the round-trip time,
// and by how many percent it differs from the goodput.
func (f *Flow) WindowFit() (bound, offPct float64, ok bool) {
	w, ok1 := f.SendWindow()
	loaded, ok2 := f.LoadedRTT()
	bps, ok3 := f.Goodput()
	if !ok1 || !ok2 || !ok3 || bps <= 0 || loaded <= 0 {
		return 0, 0, false
	}
	bound = stat.WindowRate(w, int64(loaded)) * float64(max(1, len(f.Sender.Streams())))
	return bound, 100 * math.Abs(bound-bps) / bps, true
}

// UnreadShare returns the percentage of the receiver's buffer that holds data that the program has not read yet.
func (f *Flow) UnreadShare() (float64, bool) {
	waits, ok := f.unread()
	w, okToo := f.SendWindow()
	if !ok || !okToo || waits+w <= 0 {
		return 0, false
	}
	return 100 * waits / (waits + w), true
}

// WindowLimited returns the percentage of the time in which the receiver's window limited the sender, with the
// evidence: by the kernel's timer or, for a pacing congestion control, which hardly ever reaches the window, by
// how often the window was used up.
func (f *Flow) WindowLimited() (float64, measure.Proof, bool) {
	pct, ok := f.RwndPct()
	p := f.Sender.Proof("tcp_info.rwnd_limited_us of busy_time_us", pct, "pct")
	if full, known := f.Sender.windowFull(); known && full > pct {
		if _, off, fits := f.WindowFit(); fits && off <= FitBar && full > 90 {
			return full, f.Sender.Proof("readings with a full receiver's window", full, "pct"), true
		}
	}
	if !ok {
		return f.windowOver()
	}
	return pct, p, ok
}

// windowOver judges the same if no kernel counted the time: the congestion window is larger than the receiver's,
// which fits the goodput.
func (f *Flow) windowOver() (float64, measure.Proof, bool) {
	w, ok1 := f.SendWindow()
	cwnd, ok2 := f.Cwnd()
	_, off, ok3 := f.WindowFit()
	if !ok1 || !ok2 || !ok3 || w <= 0 {
		return 0, measure.Proof{}, false
	}
	if cwnd < w || off > FitBar {
		return 0, measure.Proof{}, true
	}
	return 100, f.Sender.Proof("congestion window relative to the receiver's window", 100*cwnd/w, "pct"), true
}

// windowFull returns the percentage of readings with data to send in which the peer's window was used up.
func (e *End) windowFull() (float64, bool) {
	var all []float64
	for _, s := range e.Streams() {
		if s.Timeline != nil && s.Timeline.WndFull != nil {
			sends := 100.0
			if s.Timeline.Idle != nil {
				sends -= *s.Timeline.Idle
			}
			all = append(all, min(100*(*s.Timeline.WndFull)/max(sends, 1), 100))
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return stat.Mean(all), true
}

// LateNs is the longest time that data waits for a reader that keeps up, in ns.
const LateNs = 5e6

// WaitsNs returns the mean time in ns that data waits to be read: unread bytes over the rate (Little's law); 0 if
// it is not known.
func (e *End) WaitsNs() float64 {
	waits, ok := e.Flow.unread()
	if bps := e.Flow.Rate(); ok && bps > 0 {
		return waits * float64(max(1, len(e.Streams()))) * 8e9 / bps
	}
	return 0
}

// IsBehind reports whether the reader's delay is a large part of the round-trip time, for more than the packets
// that a kernel hands over at once: while the program does not read, its kernel delays acknowledgements.
func (e *End) IsBehind() bool {
	base, ok := e.Flow.BaseRTT()
	unread, _ := e.Flow.unread()
	return ok && e.WaitsNs() > max(LateNs, base/4) && unread > ShortRow*e.Flow.MSS()
}

// BlockedBar is the percentage of time blocked in send() above which a sender waits for buffer space.
const BlockedBar = 50

// sendSide describes the sender's socket, in bytes per stream.
type sendSide struct {
	blocked                     float64 // percent of the time in send()
	buffer, flight, waits, cwnd float64
	few                         bool // the buffer holds very few segments
}

// sendSide returns it for the flow; false if a part of it is not known.
func (f *Flow) sendSide(t Threads) (s sendSide, ok bool) {
	s = sendSide{blocked: t.Blocked, buffer: f.SendBuffer()}
	var ok1, ok2, ok3 bool
	s.flight, ok1 = f.InFlight()
	s.waits, ok2 = f.NotSent()
	s.cwnd, ok3 = f.Cwnd()
	s.few = s.buffer < fewSegments*f.MSS()
	return s, s.buffer > 0 && ok1 && ok2 && ok3
}

// SendBuffer judges the size of the send buffer.
func SendBuffer(f *Flow) *Outcome {
	t, ok := f.Sender.Threads()
	if !ok {
		return f.Sender.Lacks("time blocked in send()")
	}
	s, ok := f.sendSide(t)
	if !ok {
		return f.Sender.Lacks("tcp_info.notsent_bytes, unacked_segments or SO_SNDBUF")
	}
	if o := f.otherThanBuffer(s); o != nil {
		return o
	}
	loaded, base, _ := f.RTT()
	o := Likely("the sender's socket buffer (SO_SNDBUF %s) is too small for a round trip of %s", unit.Size(int64(s.buffer)), unit.Duration(int64(loaded)))
	again, known := f.AgainPct()
	bar, carried := float64(BlockedBar), s.flight
	switch more := f.Against(f.Experiment(MoreBuffer)); {
	case more.Times > GainBar:
		o.Gains(f.Sender.Proof("goodput with twice the buffer relative to this run", 0, ""), more)
	case s.blocked < BlockedBar || f.FitOf(s.flight) > SendFitBar: // readings of so short a time mean little
		o.Confidence, bar, carried = measure.Possible, fewBlocked, s.buffer
	case known && again < 0.01 && base > 0 && loaded < FitsBar*base && s.blocked > 80:
		o.Confidence = measure.Certain
	}
	bound := f.BoundOf(carried)
	return o.At(f.Sender.Where()).By(Above(f.Sender.Proof("thread blocked in send()", s.blocked, "pct"), bar),
		f.Sender.Proof("tcp_info.notsent_bytes, mean", s.waits, "bytes"), f.Sender.Proof("in flight, mean", s.flight, "bytes"),
		f.Sender.Proof("SO_SNDBUF as granted", s.buffer, "bytes"), f.Sender.Proof("congestion window, mean", s.cwnd, "bytes")).
		Costs(bound, "this much data in flight carries "+unit.Rate(bound), fmt.Sprintf("%s in flight * 8 / %s", unit.Size(int64(carried)), unit.Duration(int64(loaded)))).
		AddFix(f.RaiseWindow(f.Sender, base))
}

// otherThanBuffer returns the outcome that excludes the sender's buffer; nil if nothing does.
func (f *Flow) otherThanBuffer(s sendSide) *Outcome {
	rwnd, _, _ := f.WindowLimited()
	switch {
	case s.blocked < BlockedBar && !s.few || s.blocked < fewBlocked:
		return No("the sender was blocked in send() only %s of the time", unit.Percent(s.blocked))
	case s.waits > s.flight/4 && s.waits > 2*f.MSS():
		return No("%s of unsent data waited in the sender's socket", unit.Size(int64(s.waits)))
	case s.flight > 0.85*s.cwnd:
		return No("the congestion window was full")
	case rwnd > RwndBar:
		return No("the receiver's window limited the sender %s of the time", unit.Percent(rwnd))
	case f.Receiver.IsFull() || f.Receiver.IsBehind():
		return No("the receiver does not keep up")
	case f.Lengthens(s.flight) && !f.empties() && f.Against(f.Experiment(MoreBuffer)).Times <= GainBar:
		return No("a queue is full: a larger buffer would only make it longer")
	case f.FitOf(s.flight) > SendFitBar && !(s.few && f.BoundOf(s.flight) < f.Rate() && f.BoundOf(s.buffer) > f.Rate()):
		return No("%s in flight would carry %s, which is not the measured rate", unit.Size(int64(s.flight)), unit.Rate(f.BoundOf(s.flight)))
	case s.flight < s.buffer/4 && (!s.few || f.mostInFlight() < s.buffer/4):
		return No("only %s were in flight, the sender's buffer has room for %s", unit.Size(int64(s.flight)), unit.Size(int64(s.buffer)))
	}
	return nil
}

// A buffer of so few segments (including their bookkeeping) wakes the thread for each of them: these wake-ups take
// a good part of the time that it would be blocked, and a reading finds just-acknowledged data as often as data in
// flight.
const (
	fewSegments = 16
	fewBlocked  = 20 // percent of the time in send()
)

// mostInFlight returns the highest reading of a stream's bytes in flight.
func (f *Flow) mostInFlight() float64 {
	most := 0.0
	for _, s := range f.Sender.Streams() {
		if s.Timeline != nil && s.Timeline.InFlight != nil {
			most = max(most, s.Timeline.InFlight.Max)
		}
	}
	return most * f.MSS()
}

// SendFitBar is by how many percent the bytes in flight over the round-trip time may differ from the goodput if
// the buffer is to be the limit.
const SendFitBar = 40

// BoundOf returns the rate of all streams with so many bytes each in flight.
func (f *Flow) BoundOf(flight float64) float64 {
	loaded, ok := f.LoadedRTT()
	if !ok {
		return 0
	}
	return stat.WindowRate(flight, int64(loaded)) * float64(max(1, len(f.Sender.Streams())))
}

// FitOf returns by how many percent that rate differs from the goodput.
func (f *Flow) FitOf(flight float64) float64 {
	bps := f.Rate()
	if bps <= 0 {
		return 100
	}
	return 100 * math.Abs(f.BoundOf(flight)-bps) / bps
}

// SendBuffer returns SO_SNDBUF of the sender's streams as the kernel has it, including its bookkeeping, in bytes;
// 0 if it is not known.
func (f *Flow) SendBuffer() float64 {
	for _, s := range f.Sender.Streams() {
		if s.Window.Granted > 0 {
			return float64(s.Window.Granted)
		}
	}
	return 0
}
