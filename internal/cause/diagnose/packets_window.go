package diagnose

import (
	"math"

	"thru/internal/measure"
	"thru/internal/stat"
)

// ClosedFew is the percentage of the time below which a closed window costs next to nothing.
const ClosedFew = 2

// windowUse describes, from packets, how the receiver's window limits the sender.
type windowUse struct {
	Pct    float64 // of the time in which it was used up
	Binds  bool
	Clear  bool // the window does not limit
	Window float64
	Bound  float64 // rate that the windows of all connections allow, in bit/s
	Off    float64 // by how many percent that differs from the goodput
	RTT    float64 // ns
	Proof  measure.Proof
}

// WindowLimited judges the receiver's window at a capture point; false if its packets do not show it. Only a
// capture at the sender sees all data in flight; elsewhere the window is compared with the goodput.
func (s *CapturePoint) WindowLimited() (windowUse, bool) {
	c := s.Main()
	loaded, _, ok := s.RTT()
	bps := s.Rate()
	if c.Window == nil || c.Unscaled || !ok || bps <= 0 || c.Window.Mean <= 0 {
		return windowUse{}, false
	}
	h := windowUse{Window: c.Window.Mean, RTT: loaded}
	for _, c := range s.Connections {
		if c.Window != nil {
			h.Bound += stat.WindowRate(c.Window.Mean, int64(loaded))
		}
	}
	h.Off = 100 * math.Abs(h.Bound-bps) / bps
	switch {
	case !IsNumber(h.Bound):
		return windowUse{}, false
	case s.At == measure.AtSender && c.WindowFull != nil:
		h.Pct = *c.WindowFull
		h.Binds, h.Clear = h.Pct >= RwndBar, h.Pct < RwndClear
		h.Proof = Above(s.Proof("time with a full receiver's window", h.Pct, "pct", c.Data.Filled.Packets...), RwndBar)
	default:
		h.Binds, h.Clear = h.Off <= FitBar, h.Bound > 3*bps
		h.Proof = s.Proof("goodput relative to what the window allows at this round trip", 100*bps/h.Bound, "pct")
	}
	return h, true
}

// weighs is the least percentage of the data that a connection must carry for its closed window to count for the
// flow.
const weighs = 5

// ClosedPct returns the percentage of the time in which the receiver's window was closed, over all connections
// with a relevant amount of data. An amount too small to fill a window means nothing: some programs close their
// window at the end.
func (s *CapturePoint) ClosedPct() float64 {
	var zero, span float64
	for _, c := range s.Connections {
		if stat.Pct(float64(c.Data.New), float64(s.Data.New)) >= weighs || len(s.Connections) == 1 {
			zero, span = zero+float64(c.Acks.ZeroNs), span+float64(c.SpanNs)
		}
	}
	if s.Data.New < LeastFill {
		return 0
	}
	return stat.Pct(zero, span)
}

// LeastFill is less than the window of any program that moves data, in bytes.
const LeastFill = 10_000

// IdleBar is the percentage of the time above which a sender without data to send limits the rate.
const IdleBar = 50

// IdlePct returns the percentage of the time in which the main connection had nothing in flight and sent nothing.
// A capture at the sender sees it; elsewhere only gaps longer than a round trip count, minus the round trip.
func (s *CapturePoint) IdlePct() (float64, bool) {
	c := s.Main()
	x := c.Timeline
	if x == nil || x.StepNs <= 0 || len(x.Sent) < 10 || len(x.Acked) != len(x.Sent) || c.Unscaled && c.Acks.Zero.N > 0 {
		return 0, false
	}
	margin := 0.0
	if s.At != measure.AtSender {
		_, least, ok := s.RTT()
		if !ok {
			return 0, false
		}
		margin = least
	}
	idle, run, sent, acked := 0.0, 0.0, x.Sent[0], x.Acked[0]
	for i, next := range x.Sent[1:] {
		if max(sent, next) == sent && acked >= sent { // everything sent before the step is acknowledged, and nothing more is sent in it
			run += float64(x.StepNs)
		} else {
			idle, run = idle+max(0, run-margin), 0
		}
		sent, acked = max(sent, next), max(acked, x.Acked[i+1])
	}
	idle += max(0, run-margin)
	return stat.Pct(idle, float64(x.StepNs)*float64(len(x.Sent))), true
}
