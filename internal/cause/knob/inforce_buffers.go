package knob

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Buffers show in the bytes that fill them.
func recvWindowShown() shown { return shown{"window that the receiver advertises", check.recvWindow} }
func sendBufferShown() shown {
	return shown{"data in the sender's socket buffer", check.sendBuffer}
}

// recvWindow reports whether the receiver advertised a window that the value before did not allow. Windows that
// the kernel tunes differ from run to run; only one beyond the old bound shows that it was raised.
func (c check) recvWindow() (*bool, string) {
	if c.EndPoint != c.with.cell.To {
		return c.otherEnd("receiver")
	}
	window := func(s sight) float64 {
		return max(peak(s.receiver, func(x *measure.Timeline) *measure.Spread { return x.RecvWnd }),
			peak(s.sender, func(x *measure.Timeline) *measure.Spread { return x.SendWnd }))
	}
	was, now := window(c.before), window(c.with)
	fact := fmt.Sprintf("up to %s, %s before", unit.Size(int64(now)), unit.Size(int64(was)))
	old, value := c.bound(c.was), c.bound(c.Value)
	switch {
	case was <= 0 || now <= 0:
		return nil, "this kernel does not report the window"
	case !c.bounds(c.with.cell.Spec.Window.Recv):
		return nil, fact + ", which this setting does not limit in this test"
	case old > 0 && value > 0 && value < old && now > value:
		return new(false), fact
	case old > 0 && value > 0 && value < old && was > value, old > 0 && value > old && was <= old && now > old:
		return new(true), fact
	case value > old && windowFull(c.with.sender) >= fullPct && now < was*1.01:
		return new(false), fact + ", and the sender still waits for the window"
	}
	return nil, fact + ": no more was needed"
}

// bounds reports whether the knob limits buffers of the test: tcp_rmem and tcp_wmem those that the kernel tunes,
// the others those that were requested (-w).
func (c check) bounds(asked int64) bool {
	return (asked > 0) == (c.Knob == RmemMax || c.Knob == WmemMax)
}

// bound returns the most that a buffer can hold under a value, in bytes; 0 is not known. The kernel grants twice
// the requested size (socket(7), SO_RCVBUF).
func (c check) bound(value string) float64 {
	n := float64(Greatest(value))
	if c.Knob == RmemMax || c.Knob == WmemMax {
		n *= 2
	}
	return n
}

// peak returns the highest reading of a figure in the time line of any stream; 0 if there is none.
func peak(e *measure.Evidence, of func(*measure.Timeline) *measure.Spread) (greatest float64) {
	for _, s := range streams(e) {
		if s.Timeline == nil {
			continue
		}
		if x := of(s.Timeline); x != nil {
			greatest = max(greatest, x.Max)
		}
	}
	return greatest
}

// windowFull returns how often the peer's window was used up, in percent of the readings, for the stream with the
// highest share.
func windowFull(e *measure.Evidence) (pct float64) {
	for _, s := range streams(e) {
		if s.Timeline != nil && s.Timeline.WndFull != nil {
			pct = max(pct, *s.Timeline.WndFull)
		}
	}
	return pct
}

// sendBuffer reports whether the sender's socket held more than the value before allowed.
func (c check) sendBuffer() (*bool, string) {
	if c.EndPoint != c.with.cell.From {
		return c.otherEnd("sender")
	}
	was, now := heldBytes(c.before.sender), heldBytes(c.with.sender)
	fact := fmt.Sprintf("up to %s, %s before", unit.Size(int64(now)), unit.Size(int64(was)))
	old := c.bound(c.was)
	switch {
	case was <= 0 || now <= 0:
		return nil, "this kernel does not report the data in the socket"
	case !c.bounds(c.with.cell.Spec.Window.Send):
		return nil, fact + ", which this setting does not limit in this test"
	case old > 0 && was <= old && now > old:
		return new(true), fact
	}
	return nil, fact + ": no more was needed"
}

// heldBytes returns the most bytes that a socket of an end held: either sent and not acknowledged, or not yet
// sent. The two are not added, since their maxima are at different times.
func heldBytes(e *measure.Evidence) (bytes float64) {
	for _, s := range streams(e) {
		if s.Timeline == nil || s.Timeline.InFlight == nil {
			continue
		}
		bytes = max(bytes, s.Timeline.InFlight.Max*float64(max(s.MSS, 1)))
		if s.Timeline.NotSent != nil {
			bytes = max(bytes, s.Timeline.NotSent.Max)
		}
	}
	return bytes
}
