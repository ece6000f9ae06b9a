package window

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/loss"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Bars of windows in packets, in percent of the time.
const (
	closedBar = 10 // above it the receiver's closed window is what binds
)

// fallen is the share of the time, in percent, in which the main connection's
// window was below half of what it had been before. A kernel takes back no room
// that it has offered: its window falls only as data waits to be read.
func fallen(s *diagnose.Spot) float64 {
	c := s.Main()
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
	return diagnose.Share(float64(below), float64(all))
}

// fallenBar is that share from where on the reader is what fills the window.
const fallenBar = 10

func packetsReceiveWindow(f *diagnose.Flow) *diagnose.Outcome {
	s := f.AnySpot()
	switch {
	case s == nil:
		return diagnose.Missing("a connection of the flow", "none is in the capture")
	case s.Main().Unscaled:
		return diagnose.Missing("the scale of the receiver's window", "the handshake is not in the capture")
	case s.ClosedPct() >= diagnose.ClosedFew:
		return diagnose.No("the receiver's window is closed %s of the time: what came waits to be read", unit.Percent(s.ClosedPct()))
	}
	h, ok := s.WindowHeld()
	if !ok {
		return diagnose.Missing("the receiver's window over the round trip", "the packets that were captured do not tell")
	}
	queue, _ := s.Stands()
	switch {
	case h.Clear && s.At == measure.AtSender:
		return diagnose.No("the receiver's window was used up %s of the time", unit.Percent(h.Pct))
	case h.Bound > 3*s.Rate():
		return diagnose.No("windows of %s would let %s pass", unit.Size(int64(h.Window)), unit.Rate(h.Bound))
	case !h.Binds && s.At != measure.AtSender:
		return diagnose.CaptureAt(measure.AtSender, "what is under way of the window")
	case h.Binds && queue:
		return diagnose.No("a queue fills: a larger window would only make it longer")
	case fallen(s) >= fallenBar:
		return diagnose.Missing("how much waits unread at the receiver", fmt.Sprintf("its window is below half of what it was for %s of the time, as one of a program that reads too slowly: a larger one would fill as well", unit.Percent(fallen(s))))
	}
	o := diagnose.Possible("the receiver's window of %s is too small for a round trip of %s", unit.Size(int64(h.Window)), unit.Duration(int64(h.RTT)))
	switch {
	case h.Binds && s.At == measure.AtSender && h.Off <= diagnose.FitBar && !s.Misses():
		o.Confidence = measure.Certain
	case h.Binds:
		o.Confidence = measure.Likely
	}
	return o.At(f.Receiver.Where()).By(h.Proof, s.Proof("window that the receiver advertised, mean", h.Window, "bytes"), s.Proof("round trip, median", h.RTT, "ns")).
		Costs(h.Bound, "windows of "+unit.Size(int64(h.Window))+" carry "+unit.Rate(h.Bound), fmt.Sprintf("%s * 8 / %s", unit.Size(int64(h.Window)), unit.Duration(int64(h.RTT)))).
		Mend(f.RaiseWindow(f.Receiver, h.RTT))
}

func packetsSlowReader(f *diagnose.Flow) *diagnose.Outcome {
	s := f.Spot(measure.AtReceiver, measure.AtPath, "", measure.AtSender)
	if s == nil {
		return diagnose.Missing("a connection of the flow", "none is in the capture")
	}
	pct, zero := s.ClosedPct(), s.Acks.Zero
	c := s.Main()
	switch {
	case s.Data.New < diagnose.LeastFill:
		return diagnose.Missing("a transfer of data", "too little passed to fill a window")
	case zero.N > 0 && pct >= diagnose.ClosedFew:
		o := diagnose.Likely("the program at the receiver reads too slowly: its window was closed %s of the time", unit.Percent(pct))
		if pct >= closedBar && s.Data.Segments >= diagnose.LeastSegments {
			o.Confidence = measure.Certain
		}
		o.At(f.Receiver.Where()).By(diagnose.Above(s.Proof("time in which the receiver's window was closed", pct, "pct", zero.Packets...), diagnose.ClosedFew), s.Count("zero windows of the receiver", zero))
		if s.Data.Probes.N > 0 {
			o.By(s.Count("probes of the closed window", s.Data.Probes))
		}
		return o.Mend(diagnose.Advise(f.Receiver, "make the program at the receiver read faster, or find what it waits for: a disk, a lock, a CPU"))
	case zero.N > 0:
		return diagnose.No("the receiver's window was closed %s of the time", unit.Percent(pct))
	case f.Receiver.IsBehind():
		return nil // data may wait for long without a full buffer
	case fallen(s) >= fallenBar && waitsForWindow(f):
		return readsInBits(f, s)
	case c.Window != nil && !c.Unscaled && c.Window.Min > c.Window.Max/2:
		return diagnose.No("the receiver's window never closed, nor fell to half")
	}
	return diagnose.Missing("how much waits unread at the receiver", "its window never closed; packets show no more")
}

// waitsForWindow tells whether the receiver's window holds the sender up some of
// the time at least.
func waitsForWindow(f *diagnose.Flow) bool {
	s := f.AnySpot()
	h, known := s.WindowHeld()
	return known && !h.Clear
}

// readsInBits words a receiver's window that falls and never closes: its program
// takes some out now and then, and the rate is what it takes.
func readsInBits(f *diagnose.Flow, s *diagnose.Spot) *diagnose.Outcome {
	o := diagnose.Possible("the program at the receiver may read too slowly: its window is below half of what it was for %s of the time", unit.Percent(fallen(s)))
	if h, _ := f.AnySpot().WindowHeld(); h.Binds {
		o.Confidence = measure.Likely
	}
	return o.At(f.Receiver.Where()).By(diagnose.Above(s.Proof("time in which the receiver's window was below half of its greatest", fallen(s), "pct"), fallenBar),
		s.Proof("window that the receiver advertised, least", s.Main().Window.Min, "bytes"), s.Proof("window that the receiver advertised, most", s.Main().Window.Max, "bytes")).
		Mend(diagnose.Advise(f.Receiver, "make the program at the receiver read faster, or find what it waits for: a disk, a lock, a CPU"))
}

func packetsFixedWindow(f *diagnose.Flow) *diagnose.Outcome {
	if !f.PacketsOnly() {
		return nil // the windows that were asked for are known
	}
	o := packetsReceiveWindow(f)
	s := f.AnySpot()
	if o.State == diagnose.Excluded {
		return diagnose.No("%s", o.Text)
	}
	if o.State == diagnose.Unknown || s.Main().Window.Max-s.Main().Window.Min > 2*s.MSS() {
		return diagnose.Missing("the windows that were asked for", "packets do not tell")
	}
	return diagnose.Possible("the receiver's window stays at %s: it was set by hand, or its bound is that low", unit.Size(int64(s.Main().Window.Mean))).At(f.Receiver.Where()).
		By(s.Proof("window that the receiver advertised, most", s.Main().Window.Max, "bytes"), s.Proof("window that the receiver advertised, least", s.Main().Window.Min, "bytes")).
		Then("the same without a window that is set").Mend(diagnose.Advise(f.Receiver, "have the kernel tune the window: leave -w or SO_RCVBUF out, and raise its bounds"))
}

// evenly tells of a sender that always has about the same under way, though no
// window is used up, nothing is lost and no queue fills; why not otherwise.
func evenly(f *diagnose.Flow) (s *diagnose.Spot, why *diagnose.Outcome) {
	s = f.Spot(measure.AtSender)
	if s == nil {
		return nil, diagnose.CaptureAt(measure.AtSender, "what is under way")
	}
	c := s.Main()
	h, ok := s.WindowHeld()
	again, counted := s.AgainPct()
	queue, _ := s.Stands()
	idle, known := s.IdlePct()
	switch {
	case !ok || !counted || c.Flight == nil || c.Flight.Mean <= 0 || !known:
		return nil, diagnose.Missing("what is under way, of the window", "the packets that were captured do not tell")
	case !h.Clear:
		return nil, diagnose.No("the receiver's window was used up %s of the time", unit.Percent(h.Pct))
	case again >= diagnose.AgainBar:
		return nil, diagnose.No("%s of the data had to be sent again", unit.Percent(again))
	case queue:
		return nil, diagnose.No("a queue fills: the round trip grows under load")
	case idle > diagnose.IdleBar/2:
		return nil, diagnose.No("the sender had nothing to send %s of the time", unit.Percent(idle))
	}
	return s, nil
}

// evenBar is by how much the most that was under way may exceed the mean, where a
// buffer is to be what bounds it.
const evenBar = 1.25

func packetsSendBuffer(f *diagnose.Flow) *diagnose.Outcome {
	s, why := evenly(f)
	if why != nil {
		return why
	}
	flight := s.Main().Flight
	loaded, least, _ := s.RTT()
	bound := stat.WindowRate(flight.Max, int64(loaded)) * float64(len(s.Connections))
	switch {
	case least < diagnose.NearNs:
		return diagnose.Missing("time blocked in send()", "packets do not tell, and the other end is near")
	case flight.Max > evenBar*flight.Mean:
		return diagnose.No("what is under way varies: %s on average, %s at most", unit.Size(int64(flight.Mean)), unit.Size(int64(flight.Max)))
	case bound > (1+diagnose.SendFitBar/100.0)*s.Rate():
		return diagnose.No("%s under way would make %s, not what passes", unit.Size(int64(flight.Max)), unit.Rate(bound))
	}
	return diagnose.Possible("no more than %s are ever under way, though the window has room and nothing is lost: the sender's buffer may be too small", unit.Size(int64(flight.Max))).
		At(f.Sender.Where()).By(s.Proof("in flight, most", flight.Max, "bytes"), s.Proof("in flight, mean", flight.Mean, "bytes"), s.Proof("window that the receiver advertised, mean", s.Main().Window.Mean, "bytes")).
		Costs(bound, "what is under way carries "+unit.Rate(bound), fmt.Sprintf("%s * 8 / %s", unit.Size(int64(flight.Max)), unit.Duration(int64(loaded)))).
		Then("`thru test` from there: whether the sender is blocked in send()").Mend(f.RaiseWindow(f.Sender, loaded))
}

// waits is how long the sender waits after an acknowledgement until it sends, in
// ns (median), and whether that is longer than a kernel takes which has data.
func waits(s *diagnose.Spot) (float64, bool) {
	d := s.Main().RTTBack
	if s.At != measure.AtSender || d == nil || d.Samples < diagnose.LeastSegments {
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

func PacketsPaced(f *diagnose.Flow) *diagnose.Outcome {
	s, why := evenly(f)
	if why != nil {
		return why
	}
	b := s.Main().BurstBytes
	bps := s.Rate()
	alone := s.MSS()*8e9/bps > measure.BurstGapNs/4 // at such a rate segments lie apart anyway
	_, waits := waits(s)
	switch {
	case b == nil || alone && !waits:
		return diagnose.Missing("the congestion control", "packets do not tell it at this rate")
	case b.Mean > pacedBar*s.MSS():
		return diagnose.No("segments leave %.3g at a time", b.Mean/s.MSS())
	}
	return diagnose.Possible("the sender spaces its segments, though the window has room and nothing is lost").At(f.Sender.Where()).
		By(diagnose.Below(s.Proof("sent back to back, mean", b.Mean, "bytes"), pacedBar*s.MSS())).Then("the same under cubic").Mend(f.UseControl("cubic"))
}

func PacketsAppLimited(f *diagnose.Flow) *diagnose.Outcome {
	if f.Cell.Spec.Rate > 0 {
		return nil // the counters say it
	}
	s := f.AnySpot()
	if s == nil {
		return diagnose.Missing("a connection of the flow", "none is in the capture")
	}
	idle, ok := s.IdlePct()
	switch {
	case !ok:
		return diagnose.Missing("when the sender had nothing under way", "the capture has no course of the connection, or its steps are longer than they tell of")
	case s.Data.Segments < diagnose.LeastSegments:
		return diagnose.Missing("a transfer of data", "too little passed to tell")
	case s.ClosedPct() >= diagnose.ClosedFew:
		return diagnose.No("the receiver's window was closed %s of the time", unit.Percent(s.ClosedPct()))
	case idle < diagnose.IdleBar && hesitates(f, s) != nil:
		return hesitates(f, s)
	case idle < diagnose.IdleBar && s.At == measure.AtSender:
		return keepsBusy(f, idle)
	case idle < diagnose.IdleBar:
		return diagnose.CaptureAt(measure.AtSender, "when the sender had nothing under way")
	}
	o := diagnose.Likely("the sender had nothing to send %s of the time: all was acknowledged, and the window was open", unit.Percent(idle)).At(f.Sender.Where()).
		By(diagnose.Above(s.Proof("time in which nothing was under way", idle, "pct"), diagnose.IdleBar)).Mend(diagnose.Advise(f.Sender, "see what the program at the sender waits for"))
	if again, counted := s.AgainPct(); s.At == measure.AtSender && counted && again < 1 && !s.Misses() {
		o.Confidence = measure.Certain
	}
	return o
}

// keepsBusy judges a sender that mostly has something under way. A program that
// writes a little every few milliseconds does, too: only what else holds the rate
// speaks against it.
func keepsBusy(f *diagnose.Flow, idle float64) *diagnose.Outcome {
	_, why := evenly(f)
	switch l, _ := loss.LossAt(f); {
	case f.LinkIsFull():
		return diagnose.No("the link itself is full")
	case idle < diagnose.IdleBar/2 && why != nil && why.State == diagnose.Excluded && (l.Pct < diagnose.AgainBar || l.Pct >= 0.05):
		return diagnose.No("data was under way %s of the time, and %s", unit.Percent(100-idle), why.Text)
	}
	return diagnose.Missing("whether the program always had data to send", fmt.Sprintf("data was under way %s of the time, and nothing else in the packets holds the rate", unit.Percent(100-idle)))
}

// hesitates judges a sender that nothing holds, and that lets data go long after
// the acknowledgements that make room for it; nil where it does not.
func hesitates(f *diagnose.Flow, s *diagnose.Spot) *diagnose.Outcome {
	even, why := evenly(f)
	wait, long := waits(s)
	b := s.Main().BurstBytes
	if why != nil || even != s || !long || b == nil || b.Mean <= pacedBar*s.MSS() {
		return nil
	}
	o := diagnose.Possible("the sender holds data back: it waits %s after an acknowledgement, though the window has room, nothing is lost and no queue fills", unit.Duration(int64(wait))).
		At(f.Sender.Where()).By(diagnose.Above(s.Proof("from an acknowledgement to the data after it, median", wait, "ns"), measure.BurstGapNs)).
		Mend(diagnose.Advise(f.Sender, "see what the program at the sender waits for, or at what rate it is set to send"))
	if wait > longWait {
		o.Confidence = measure.Likely
	}
	return o
}
