// Package control holds the causes of the sender itself: what its program offers, and how its congestion control
// paces.
package control

import (
	"fmt"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/knob"
	"thru/internal/cause/loss"
	"thru/internal/cause/rule"
	"thru/internal/cause/window"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// AppLimited is the cause `app-limited`.
func AppLimited() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "app-limited", TCP: true, UDP: true, Title: "the sending program offers no more data", Judge: judgeAppLimited, Packets: PacketsAppLimited,
			Seen:        "small messages keep the sender's CPU in system calls, or the socket has no data to send while neither window is full; in captures: no data is in flight and the window is open, half of the time or more",
			Distinction: "messages of 1 MiB", Fix: "send in blocks of 64 KiB or more", Effect: "0.74 to 13.8 Gb/s by larger messages",
			Source: "methods.md, Traps; checklist C-19", Tests: []string{diagnose.LargeMessages, diagnose.Captured}, Brings: []string{"sender-cpu", "slow-reader"},
		},
		Propose: []advise.Proposer{ProposeAppLimited},
	}
}

func judgeAppLimited(f *diagnose.Flow) *diagnose.Outcome {
	if f.IsUDP() {
		return AskedDatagrams(f)
	}
	if f.Cell.Spec.Rate > 0 {
		return f.AsIsAsked()
	}
	if large := f.Experiment(diagnose.LargeMessages); large != nil && smallBlocks(f) {
		return tooSmall(f, large)
	}
	t, known := f.Sender.Threads()
	if message(f) > 0 && message(f) < smallMessage && known && t.Run+t.Wait > diagnose.ThreadBar {
		return diagnose.Likely("messages of %s keep the sender in system calls", unit.Size(message(f))).
			At(measure.Where{Place: measure.AtTool, EndPoint: f.Sender.Name}).
			By(diagnose.UnderBar(f.Sender.Proof("bytes per call", float64(message(f)), "bytes"), smallMessage), diagnose.Above(f.Sender.Proof("time of the sender's thread on a CPU or waiting for one", t.Run+t.Wait, "pct"), diagnose.ThreadBar)).
			AddFix(diagnose.Advise(f.Sender, "send in blocks of 64 KiB or more (-l)"))
	}
	return starved(f)
}

// AskedDatagrams judges a UDP test by its requested rate.
func AskedDatagrams(f *diagnose.Flow) *diagnose.Outcome {
	x, ok := loss.FateOfDatagrams(f)
	switch {
	case !ok:
		return f.Receiver.Lacks("the count of datagrams")
	case f.Cell.Spec.Rate <= 0 || f.Cell.Spec.Search:
		return diagnose.No("no rate was requested")
	case x.LossPct >= diagnose.LostBar:
		return diagnose.No("%s of the datagrams were lost", unit.Percent(x.LossPct))
	}
	return f.AsIsAsked()
}

// smallBlocks reports whether either end moves less per call than is known to suffice.
func smallBlocks(f *diagnose.Flow) bool {
	return message(f) < diagnose.UsualMessage || diagnose.IsSmall(f.Cell.Length.Recv)
}

// message returns how many bytes the sender hands to one call.
func message(f *diagnose.Flow) int64 {
	for _, s := range f.Sender.Streams() {
		if s.Length > 0 {
			return s.Length
		}
	}
	return f.Cell.Length.Send
}

// tooSmall judges messages by the rate of larger ones, at the end with the smaller ones.
func tooSmall(f *diagnose.Flow, large *measure.Cell) *diagnose.Outcome {
	g := f.Against(large)
	if g.Times < diagnose.GainBar {
		return diagnose.No("messages of 1 MiB carry only %s", unit.Rate(diagnose.RateOf(large)))
	}
	end, bytes, do := f.Sender, message(f), "send"
	if recv := f.Cell.Length.Recv; recv > 0 && recv < bytes {
		end, bytes, do = f.Receiver, recv, "read"
	}
	return diagnose.Likely("the messages of %s are too small: with 1 MiB %s pass", unit.Size(bytes), unit.Rate(diagnose.RateOf(large))).
		At(measure.Where{Place: measure.AtTool, EndPoint: end.Name}).By(end.Proof("bytes per call", float64(bytes), "bytes")).
		Gains(f.Receiver.Proof("goodput of messages of 1 MiB relative to this run", 0, ""), g).
		Costs(0, "with messages of 1 MiB "+unit.Rate(diagnose.RateOf(large))+" pass", "the same traffic with -l 1M").AddFix(diagnose.Advise(end, do+" in blocks of 64 KiB or more (-l)"))
}

// smallMessage is the least that a call should move (C-19: at least 8 KB blocks, best 64 KB).
const smallMessage = 16 << 10

// starved judges a sender without data to send by all of its counters: the app_limited bit alone misleads
// (methods.md, Traps).
func starved(f *diagnose.Flow) *diagnose.Outcome {
	idle, ok := IdlePct(f.Sender)
	if !ok {
		return f.Sender.Lacks("how often it had nothing to send")
	}
	t, known := f.Sender.Threads()
	again, _ := f.AgainPct()
	rwnd, _, _ := f.WindowLimited()
	switch {
	case idle < 50:
		return diagnose.No("data waited in the sender's socket, or a window was full, %s of the time", unit.Percent(100-idle))
	case known && t.Blocked > diagnose.BlockedBar:
		return diagnose.No("the sender was blocked in send(): it had more data")
	case rwnd > diagnose.RwndBar || again > 0.1:
		return diagnose.No("the receiver's window or packet loss limited the sender")
	case f.Sender.IsFull():
		return diagnose.No("the sender's CPU is full: its thread ran or waited to run %s of the time", unit.Percent(t.Run+t.Wait))
	case f.Receiver.IsFull():
		return diagnose.No("the receiver's CPU is full")
	}
	return diagnose.Likely("the sender had nothing to send %s of the time", unit.Percent(idle)).At(f.Sender.Where()).
		By(diagnose.Above(f.Sender.Proof("time without data to send and without a full window", idle, "pct"), 50)).
		AddFix(diagnose.Advise(f.Sender, "find what the program at the sender waits for"))
}

// IdlePct returns the percentage of readings in which the sender had nothing to send while both windows had room.
func IdlePct(e *diagnose.End) (float64, bool) {
	var all []float64
	for _, s := range e.Streams() {
		if s.Timeline != nil && s.Timeline.Idle != nil {
			all = append(all, *s.Timeline.Idle)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return stat.Mean(all), true
}

// PacketsAppLimited judges by captures alone.
func PacketsAppLimited(f *diagnose.Flow) *diagnose.Outcome {
	if f.Cell.Spec.Rate > 0 {
		return nil // the counters show it
	}
	s := f.AnyCapturePoint()
	if s == nil {
		return diagnose.Missing("a connection of the flow", "the capture has none")
	}
	idle, ok := s.IdlePct()
	switch {
	case !ok:
		return diagnose.Missing("when the sender had no data in flight", "the capture has no time line of the connection, or its steps are too long")
	case s.Data.Segments < diagnose.LeastSegments:
		return diagnose.Missing("a transfer of data", "the capture has too little data")
	case s.ClosedPct() >= diagnose.ClosedFew:
		return diagnose.No("the receiver's window was closed %s of the time", unit.Percent(s.ClosedPct()))
	case idle < diagnose.IdleBar && hesitates(f, s) != nil:
		return hesitates(f, s)
	case idle < diagnose.IdleBar && s.At == measure.AtSender:
		return keepsBusy(f, idle)
	case idle < diagnose.IdleBar:
		return diagnose.CaptureAt(measure.AtSender, "when the sender had no data in flight")
	}
	o := diagnose.Likely("the sender had nothing to send %s of the time: all data was acknowledged, and the window was open", unit.Percent(idle)).At(f.Sender.Where()).
		By(diagnose.Above(s.Proof("time without data in flight", idle, "pct"), diagnose.IdleBar)).AddFix(diagnose.Advise(f.Sender, "find what the program at the sender waits for"))
	if again, counted := s.AgainPct(); s.At == measure.AtSender && counted && again < 1 && !s.Misses() {
		o.Confidence = measure.Certain
	}
	return o
}

// hesitates judges a sender that nothing limits, but that sends long after the acknowledgements that make room;
// nil if it does not.
func hesitates(f *diagnose.Flow, s *diagnose.CapturePoint) *diagnose.Outcome {
	even, why := window.Evenly(f)
	wait, long := waits(s)
	b := s.Main().BurstBytes
	if why != nil || even != s || !long || b == nil || b.Mean <= pacedBar*s.MSS() {
		return nil
	}
	o := diagnose.Possible("the sender waits %s after an acknowledgement before it sends, though the window has room, no packet is lost and no queue fills", unit.Duration(int64(wait))).
		At(f.Sender.Where()).By(diagnose.Above(s.Proof("time from an acknowledgement to the next data, median", wait, "ns"), measure.BurstGapNs)).
		AddFix(diagnose.Advise(f.Sender, "find what the program at the sender waits for, or which send rate it is set to"))
	if wait > longWait {
		o.Confidence = measure.Likely
	}
	return o
}

// longWait is a wait in ns that no kernel pacing causes: it releases a millisecond's worth at once
// (sk_pacing_shift, net/core/sock.c).
const longWait = 2e6

// keepsBusy judges a sender that mostly has data in flight. A program that writes a little every few milliseconds
// looks the same; only another limit excludes it.
func keepsBusy(f *diagnose.Flow, idle float64) *diagnose.Outcome {
	_, why := window.Evenly(f)
	switch l, _ := loss.LossAt(f); {
	case f.LinkIsFull():
		return diagnose.No("the link itself is full")
	case idle < diagnose.IdleBar/2 && why != nil && why.State == diagnose.Excluded && (l.Pct < diagnose.AgainBar || l.Pct >= 0.05):
		return diagnose.No("data was in flight %s of the time, and %s", unit.Percent(100-idle), why.Text)
	}
	return diagnose.Missing("whether the program always had data to send", fmt.Sprintf("data was in flight %s of the time, and the packets show no other limit", unit.Percent(100-idle)))
}

// ProposeAppLimited proposes longer messages for a program that hands over little at a time.
func ProposeAppLimited(r advise.Request) []advise.Draft {
	c := r.Direction.Cell
	const want = 1 << 20
	if c == nil || c.Protocol != measure.TCP || c.Spec.Rate > 0 || c.Spec.Length == (measure.Pair{}) || min(c.Spec.Length.Send, c.Spec.Length.Recv) >= 64<<10 {
		return nil
	}
	d := advise.Draft{Id: knob.Length + "=1M", Title: "messages of 1 MiB", Test: &measure.TestOptions{Length: &measure.Pair{Send: want, Recv: want}, Flags: "-l 1M"}}.ForDirection(r.Direction).
		Bring(0, "docs/causes.md, app-limited", "fewer calls for the same data: 0.74 to 13.8 Gb/s where this was the cause")
	if x := r.Direction.Best(func(x *measure.Cell) bool { return x.Spec.Length.Send == want && x.Streams == c.Streams }); x != nil {
		d = r.Direction.Shown(d, x)
	}
	return []advise.Draft{d}
}
