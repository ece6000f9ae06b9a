// Package window holds the causes of TCP windows, buffers and options that are too
// small or missing.
package window

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/loss"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// WindowCauses are the causes of windows and buffers that are too small.
func WindowCauses() []diagnose.Rule {
	return []diagnose.Rule{
		{
			Cause: "window-scaling-off", TCP: true, Title: "no window scaling: a window is 64 KiB at most", Judge: windowScalingOff, Packets: packetsScaling,
			Seen:  "the kernel negotiated no window scaling (tcp_info), and the receive window holds the sender up; in captures: the SYN or the SYN-ACK lacks the option",
			Apart: "the SYN as it left and as it arrived (the path's probe) tells whether an end or a box between them took it out; so does a capture at each end",
			Mends: "switch it on at the end that lacks it, or mend the box that strips it", Effect: "65535 bytes a round trip: 26 Mb/s at 20 ms",
			Source: "RFC 7323; tcp_info.tcpi_options", Tests: []string{diagnose.Captured}, Brings: []string{"receive-window"},
		},
		{
			Cause: "fixed-window", TCP: true, Title: "a buffer that was set by hand", Judge: fixedWindow, Packets: packetsFixedWindow,
			Seen:  "the socket buffer was set (-w), which ends autotuning, and that window holds the sender up; in a capture alone: the receiver's window holds the sender up and never changes (possible)",
			Apart: "the same without -w",
			Mends: "leave -w out", Effect: "W * 8 / RTT", Source: "tcp(7), SO_RCVBUF; methods.md, formula 3",
			Tests: []string{diagnose.NoWindow}, Brings: []string{"receive-window", "send-buffer"},
		},
		{
			Cause: "receive-window", TCP: true, Title: "the receiver's window is too small for the round trip", Judge: receiveWindowCause, Packets: packetsReceiveWindow,
			Seen:  "rwnd_limited is a large share of the busy time, goodput is the window over the round trip, and the receiver's queue is empty; in a capture at the sender: what is under way fills the window most of the time, the round trip does not grow, and goodput is the window over it",
			Apart: "a slow reader leaves its queue full; a larger window helps only here; before a full queue a larger one only makes that longer",
			Mends: "raise tcp_rmem at the receiver to twice the bandwidth-delay product", Effect: "3.74 to 18.3 Gb/s by buffers alone (S-09)",
			Source: "tcp_info.tcpi_rwnd_limited, tcpi_snd_wnd (include/uapi/linux/tcp.h); methods.md, formula 3", Tests: []string{diagnose.MoreWindow, diagnose.EightStreams, diagnose.Captured},
		},
		{
			Cause: "slow-reader", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "the program at the receiver reads too slowly", Judge: slowReader, Packets: packetsSlowReader,
			Seen:  "the receive window holds the sender up while data waits unread in the receiver's socket; in captures: the receiver's window is closed for a tenth of the time or more, or it holds the sender up and is below half of what it was (possible)",
			Apart: "a larger buffer only fills later",
			Mends: "a faster reader", Effect: "51 of 189 Mb/s", Source: "SIOCINQ (tcp(7)), TcpExt.TCPToZeroWindowAdv", Tests: []string{diagnose.LargeMessages, diagnose.LeanPath, diagnose.Captured},
		},
		{
			Cause: "send-buffer", TCP: true, Title: "the sender's buffer is too small for the round trip", Judge: diagnose.SendBuffer, Packets: packetsSendBuffer,
			Seen:  "the sender is blocked in send() with nothing left to send, and what is under way is the socket's buffer; in a capture at the sender: what is under way is always about the same, though nothing holds it (possible)",
			Apart: "neither window is full, nothing is lost; before a full queue a larger one only makes that longer",
			Mends: "raise tcp_wmem at the sender to twice the bandwidth-delay product, drop -w", Effect: "44 of 189 Mb/s by 64 KiB at 20 ms",
			Source: "methods.md, Traps: tcp_info.tcpi_sndbuf_limited reads 0 for a blocking sender; so the time blocked in send() counts", Tests: []string{diagnose.MoreBuffer, diagnose.EightStreams},
		},
	}
}

// isJiffy tells that the measured time is too short for the kernel's counters
// of time, whose resolution is a jiffy (methods.md, Traps).
func isJiffy(f *diagnose.Flow) bool { return f.Sender.Span() < 500e6 }

func receiveWindowCause(f *diagnose.Flow) *diagnose.Outcome {
	pct, proof, ok := f.WindowHeld()
	if !ok {
		return f.Sender.Lacks("tcp_info.rwnd_limited_us")
	}
	if f.Rate() <= 0 {
		return diagnose.No("nothing passes at all")
	}
	if isJiffy(f) {
		return diagnose.Missing("a measured time of half a second", "the kernel counts what a window costs in jiffies")
	}
	if pct < diagnose.RwndClear {
		return diagnose.No("the receiver's window held the sender up %s of the time", unit.Percent(pct))
	}
	behind, seen := f.UnreadShare()
	if seen && behind > diagnose.UnreadBar {
		return diagnose.No("data waits unread at the receiver: %s of its buffer", unit.Percent(behind))
	}
	w, _ := f.SendWindow()
	bound, off, fits := f.WindowFit()
	if fits && bound > 3*f.Rate() {
		return diagnose.No("windows of %s would let %s pass", unit.Size(int64(w)), unit.Rate(bound))
	}
	loaded, _ := f.LoadedRTT()
	base, _ := f.BaseRTT()
	twice := f.Against(f.Experiment(diagnose.MoreWindow))
	if twice.Times <= diagnose.GainBar && f.Lengthens(w) {
		return diagnose.No("a queue stands, %s of the round trip of %s: a larger window would only make it longer", unit.Duration(int64(loaded-base)), unit.Duration(int64(loaded)))
	}
	o := diagnose.Possible("the receiver's window of %s is too small for a round trip of %s", unit.Size(int64(w)), unit.Duration(int64(loaded)))
	switch {
	case pct >= diagnose.RwndBar && seen && (fits && off <= diagnose.FitBar && f.Room(w) < diagnose.FitsBar && f.Cell.Spec.MaxRate == 0 || twice.Sure):
		o.Confidence = measure.Certain
	case pct >= diagnose.RwndBar:
		o.Confidence = measure.Likely
	}
	return windowProofs(f, o, diagnose.Above(proof, diagnose.RwndBar), twice).Mend(f.RaiseWindow(f.Receiver, base))
}

// windowProofs adds to a window that is too small by what it was seen, and what
// it costs.
func windowProofs(f *diagnose.Flow, o *diagnose.Outcome, held measure.Proof, twice stat.Turns) *diagnose.Outcome {
	w, _ := f.SendWindow()
	loaded, _ := f.LoadedRTT()
	o.At(f.Receiver.Where()).By(held, f.Sender.Proof("tcp_info.snd_wnd_bytes, mean", w, "bytes"), f.Sender.Proof("tcp_info.rtt_ns, mean", loaded, "ns"))
	if behind, seen := f.UnreadShare(); seen {
		o.By(diagnose.Below(f.Receiver.Proof("unread in the socket, of its room", behind, "pct"), diagnose.UnreadBar))
	}
	if twice.Times > diagnose.GainBar {
		o.By(diagnose.InTurns(f.Receiver.Proof("goodput with twice the window over this", 0, ""), twice, diagnose.GainBar))
	}
	if bound, _, fits := f.WindowFit(); fits {
		o.Costs(bound, "windows of "+unit.Size(int64(w))+" carry "+unit.Rate(bound), fmt.Sprintf("%s * 8 / %s", unit.Size(int64(w)), unit.Duration(int64(loaded))))
	}
	return o
}

func slowReader(f *diagnose.Flow) *diagnose.Outcome {
	if f.IsUDP() {
		return loss.UnreadDatagrams(f)
	}
	pct, proof, ok := f.WindowHeld()
	if !ok {
		return f.Sender.Lacks("tcp_info.rwnd_limited_us")
	}
	behind, seen := f.UnreadShare()
	late := f.Receiver.IsBehind()
	if pct < diagnose.RwndClear && !late {
		return diagnose.No("the receiver's window held the sender up %s of the time", unit.Percent(pct))
	}
	if !seen {
		return f.Receiver.Lacks("unread bytes of the socket")
	}
	if behind <= diagnose.UnreadBar && !late {
		return diagnose.No("the receiver's queue is all but empty: %s of its room", unit.Percent(behind))
	}
	o := diagnose.Likely("the program at the receiver reads too slowly: %s of its buffer waits unread", unit.Percent(behind))
	if late {
		o.Text = fmt.Sprintf("the program at the receiver reads too slowly: data waits %s for it", unit.Duration(int64(f.Receiver.WaitsNs())))
		o.By(diagnose.Above(f.Receiver.Proof("time that data waits unread", f.Receiver.WaitsNs(), "ns"), diagnose.LateNs))
	}
	t, known := f.Receiver.Threads()
	switch {
	case known && t.Run+t.Wait > diagnose.ThreadBar:
		o.Then("what keeps the reader's CPU busy")
	case f.Receiver.Load().IsFull() || f.Receiver.Load().Least > diagnose.MostBar:
		o.Then("whether the reader waits for a CPU: the host's are busy")
	case known && (pct >= diagnose.RwndBar || late):
		o.Confidence = measure.Certain // its thread has a CPU to run on, and does not read
		o.By(diagnose.Below(f.Receiver.Proof("reader's thread on a CPU or waiting for one", t.Run+t.Wait, "pct"), diagnose.ThreadBar))
	}
	o.At(f.Receiver.Where()).By(diagnose.Above(f.Receiver.Proof("unread in the socket, of its room", behind, "pct"), diagnose.UnreadBar), diagnose.Above(proof, diagnose.RwndBar))
	if n, ok := f.Receiver.Counter("TcpExt.TCPToZeroWindowAdv"); ok && n > 0 {
		o.By(f.Receiver.Proof("TcpExt.TCPToZeroWindowAdv", n, ""))
	}
	return o.Mend(diagnose.Advise(f.Receiver, "make the program at the receiver read faster, or find what it waits for: a disk, a lock, a CPU"))
}

func windowScalingOff(f *diagnose.Flow) *diagnose.Outcome {
	on, known := Option(f, func(t *measure.TCPInfo) *bool { return t.WScaleOK })
	if !known {
		return f.Sender.Lacks("tcp_info.opt_window_scaling")
	}
	if on {
		return diagnose.No("both ends scale their windows")
	}
	pct, proof, counted := f.WindowHeld()
	o := diagnose.Likely("TCP window scaling is off: no window is larger than 64 KiB")
	where, how := f.LostOption(func(s *measure.SYN) *bool { return s.HasScale }, "net.ipv4.tcp_window_scaling")
	o.At(where)
	if how != "" {
		o.Text = fmt.Sprintf("TCP window scaling is off (%s): no window is larger than 64 KiB", how)
	}
	o.Confidence = measure.Certain // that it is off; what it costs hangs on the round trip
	behind, seen := f.UnreadShare()
	switch {
	case seen && behind > diagnose.UnreadBar:
		o.Beside() // a larger window would be full of unread data too
	case counted && pct >= diagnose.RwndBar && !f.Lengthens(plainWindow):
		o.By(diagnose.Above(proof, diagnose.RwndBar))
	case counted:
		o.Beside()
	default:
		o.Confidence = measure.Likely
	}
	if loaded, ok := f.LoadedRTT(); ok {
		bound := stat.WindowRate(plainWindow, int64(loaded)) * float64(max(1, f.Cell.Streams))
		o.Costs(bound, "without it "+unit.Rate(bound)+" at most", fmt.Sprintf("65535 bytes * 8 / %s", unit.Duration(int64(loaded))))
	}
	o.By(f.Sender.Proof("tcp_info.opt_window_scaling", 0, ""))
	return o.Mend(f.SwitchOn("net.ipv4.tcp_window_scaling", where))
}

// plainWindow is the most without scaling (RFC 9293).
const plainWindow = 65535

func fixedWindow(f *diagnose.Flow) *diagnose.Outcome {
	send, recv := f.Cell.Spec.Window.Send, f.Cell.Spec.Window.Recv
	if f.PacketsOnly() {
		return diagnose.Missing("the windows that were asked for", "packets do not tell")
	}
	if send == 0 && recv == 0 {
		return diagnose.No("no window was set: the kernels tune them")
	}
	r, s := receiveWindowCause(f), diagnose.SendBuffer(f)
	cause, size, by := r, recv, f.Receiver
	if recv == 0 || send > 0 && diagnose.Sureness(s) > diagnose.Sureness(r) {
		cause, size, by = s, send, f.Sender
	}
	free := f.Experiment(diagnose.NoWindow)
	if g := f.Against(free); g.Times > diagnose.GainBar {
		return diagnose.Likely("the window of %s that was set by hand is too small: without it %s pass", unit.Size(size), unit.Rate(diagnose.RateOf(free))).
			At(measure.Where{Place: measure.AtTool, EndPoint: by.Name}).By(by.Proof("window asked for", float64(size), "bytes")).
			Gains(f.Receiver.Proof("goodput without it over this", 0, ""), g).
			Costs(0, "without it "+unit.Rate(diagnose.RateOf(free))+" pass", "the same traffic with windows that the kernels tune").
			Mend(diagnose.Advise(by, "leave -w out, so that the kernel tunes the window"))
	}
	if tuned := tuned(f); tuned != nil && f.Against(tuned).Times <= 1 {
		return diagnose.No("windows that the kernels tune carry %s, no more", unit.Rate(diagnose.RateOf(tuned)))
	}
	if cause.State != diagnose.Holds || cause.Confidence == measure.Possible {
		return diagnose.No("a window of %s was set, and is not what holds the sender up", unit.Size(size))
	}
	o := diagnose.Held(cause.Confidence, "the window of %s that was set by hand is too small for the round trip", unit.Size(size))
	o.Effect, o.Evidence = cause.Effect, append([]measure.Proof{by.Proof("window asked for", float64(size), "bytes")}, cause.Evidence...)
	return o.At(measure.Where{Place: measure.AtTool, EndPoint: by.Name}).Mend(diagnose.Advise(by, "leave -w out, so that the kernel tunes the window"))
}

// tuned is the fastest other cell of the same traffic without a window of its own; nil where there is none.
func tuned(f *diagnose.Flow) *measure.Cell {
	var best *measure.Cell
	for _, c := range f.Tried(func(s *measure.Spec) { s.Window = measure.Pair{} }) {
		if c.Spec.Window == (measure.Pair{}) && (best == nil || diagnose.RateOf(c) > diagnose.RateOf(best)) {
			best = c
		}
	}
	return best
}

// Option of TCP as the kernels negotiated it, the sender's before the receiver's.
func Option(f *diagnose.Flow, of func(*measure.TCPInfo) *bool) (on, known bool) {
	for _, e := range f.Ends() {
		for _, s := range e.Streams() {
			for _, t := range []*measure.TCPInfo{s.TCP, s.TCPStart, s.TCPEnd} {
				if t != nil && of(t) != nil {
					return *of(t), true
				}
			}
		}
	}
	return false, false
}
