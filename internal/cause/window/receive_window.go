package window

import (
	"fmt"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// ReceiveWindow is the cause `receive-window`.
//
// A receiver advertises a part of its buffer as the window. Linux keeps a share for bookkeeping: half of it by
// default (ip-sysctl.rst, tcp_adv_win_scale; since 6.6 the share follows the packets, TCP_DEFAULT_SCALING_RATIO).
// FreeBSD advertises all of recvbuf_max, but a buffer holds only 2048 of 2304 bytes of maxsockbuf (sb_max_adj). A
// sender keeps unacknowledged data in its buffer, of which nearly all is payload: measured on Linux, a buffer of
// 128 KiB keeps 126 KB in flight.
func ReceiveWindow() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "receive-window", Binds: true, TCP: true, Title: "the receiver's window is too small for the round trip", Judge: judgeReceiveWindow, Packets: packetsReceiveWindow,
			Seen:        "rwnd_limited is a large share of the busy time, goodput is window / round trip, and the receiver's socket queue is empty; in a capture at the sender: the data in flight fills the window most of the time, the round trip does not grow, and goodput is window / round trip",
			Distinction: "a slow reader leaves its socket queue full; a larger window helps only here; if a queue on the path is full, a larger window only makes it longer",
			Fix:         "raise tcp_rmem at the receiver to three times the bandwidth-delay product", Effect: "3.74 to 18.3 Gb/s by buffers alone (S-09)",
			Source: "tcp_info.tcpi_rwnd_limited, tcpi_snd_wnd (include/uapi/linux/tcp.h); methods.md, formula 3", Tests: []string{diagnose.MoreWindow, diagnose.EightStreams, diagnose.Captured},
		},
		Urgent: 2,
		Gates: []gate.Rule{
			{ID: "receive-window", Words: "bdp rmem tcp_rmem window recvbuf", Receives: true, Title: "Largest receive window", About: "the window that the host's receive buffer can grow to, against the bandwidth-delay product of the path",
				Warns:  "the product exceeds the window (of all planned connections together); without a known rate, it is less than half of the Linux default",
				Why:    "a connection carries one window per round trip: 3 MiB at 20 ms are 1.26 Gb/s on any link",
				Source: "RFC 6349, 3.3.1; half of tcp_rmem[2] on Linux (ip-sysctl.rst; 6 MiB or a 128th of the memory: net/ipv4/tcp.c, tcp_init), maxsockbuf x 2048/2304 on FreeBSD", Fix: "set a buffer of three times the window (the bandwidth-delay product, rounded up to an even number of segments)",
				Checklist: []string{"C-14", "C-15", "C-32", "S-09", "B-19"}, Host: gateReceiveWindow},
		},
		Propose: []advise.Proposer{proposeReceiveWindow},
		Tight:   func(r advise.Request) bool { return r.IsTight(r.Direction.Receiver()) },
	}
}

func judgeReceiveWindow(f *diagnose.Flow) *diagnose.Outcome {
	pct, proof, ok := f.WindowLimited()
	if !ok {
		return f.Sender.Lacks("tcp_info.rwnd_limited_us")
	}
	if f.Rate() <= 0 {
		return diagnose.No("no data passes")
	}
	if isJiffy(f) {
		return diagnose.Missing("a measured time of half a second", "the kernel counts window-limited time in jiffies")
	}
	if pct < diagnose.RwndClear {
		return diagnose.No("the receiver's window limited the sender %s of the time", unit.Percent(pct))
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
		return diagnose.No("a standing queue takes %s of the round trip of %s: a larger window would only make it longer", unit.Duration(int64(loaded-base)), unit.Duration(int64(loaded)))
	}
	o := diagnose.Possible("the receiver's window of %s is too small for a round trip of %s", unit.Size(int64(w)), unit.Duration(int64(loaded)))
	switch {
	case pct >= diagnose.RwndBar && seen && (fits && off <= diagnose.FitBar && f.Room(w) < diagnose.FitsBar && f.Cell.Spec.MaxRate == 0 || twice.Sure):
		o.Confidence = measure.Certain
	case pct >= diagnose.RwndBar:
		o.Confidence = measure.Likely
	}
	return windowProofs(f, o, diagnose.Above(proof, diagnose.RwndBar), twice).AddFix(f.RaiseWindow(f.Receiver, base))
}

// isJiffy reports whether the measured time is too short for the kernel's time counters, whose resolution is a
// jiffy (methods.md, Traps).
func isJiffy(f *diagnose.Flow) bool { return f.Sender.Span() < 500e6 }

// windowProofs adds the evidence of a window that is too small, and what it costs.
func windowProofs(f *diagnose.Flow, o *diagnose.Outcome, held measure.Proof, twice stat.Turns) *diagnose.Outcome {
	w, _ := f.SendWindow()
	loaded, _ := f.LoadedRTT()
	o.At(f.Receiver.Where()).By(held, f.Sender.Proof("tcp_info.snd_wnd_bytes, mean", w, "bytes"), f.Sender.Proof("tcp_info.rtt_ns, mean", loaded, "ns"))
	if behind, seen := f.UnreadShare(); seen {
		o.By(diagnose.UnderBar(f.Receiver.Proof("unread data, of the socket buffer", behind, "pct"), diagnose.UnreadBar))
	}
	if twice.Times > diagnose.GainBar {
		o.By(diagnose.InTurns(f.Receiver.Proof("goodput with twice the window over the base", 0, ""), twice, diagnose.GainBar))
	}
	if bound, _, fits := f.WindowFit(); fits {
		o.Costs(bound, "windows of "+unit.Size(int64(w))+" carry "+unit.Rate(bound), fmt.Sprintf("%s * 8 / %s", unit.Size(int64(w)), unit.Duration(int64(loaded))))
	}
	return o
}

func packetsReceiveWindow(f *diagnose.Flow) *diagnose.Outcome {
	s := f.AnyCapturePoint()
	switch {
	case s == nil:
		return diagnose.Missing("a connection of the flow", "the capture has none")
	case s.Main().Unscaled:
		return diagnose.NoHandshake("the scale of the receiver's window")
	case s.ClosedPct() >= diagnose.ClosedFew:
		return diagnose.No("the receiver's window is closed %s of the time: the program there has not read the data", unit.Percent(s.ClosedPct()))
	}
	h, ok := s.WindowLimited()
	if !ok {
		return diagnose.Missing("the receiver's window against the round trip", "the captured packets do not show it")
	}
	queue, _ := s.Stands()
	switch {
	case h.Clear && s.At == measure.AtSender:
		return diagnose.No("the receiver's window was full %s of the time", unit.Percent(h.Pct))
	case h.Bound > 3*s.Rate():
		return diagnose.No("windows of %s would let %s pass", unit.Size(int64(h.Window)), unit.Rate(h.Bound))
	case !h.Binds && s.At != measure.AtSender:
		return diagnose.CaptureAt(measure.AtSender, "the share of the window in flight")
	case h.Binds && queue:
		return diagnose.No("a queue fills: a larger window would only make it longer")
	case fallen(s) >= fallenBar:
		return diagnose.Missing("the unread data at the receiver", fmt.Sprintf("its window is below half of its maximum %s of the time, as with a program that reads too slowly: a larger window would fill as well", unit.Percent(fallen(s))))
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
		AddFix(f.RaiseWindow(f.Receiver, h.RTT))
}

func gateReceiveWindow(h *scene.Host) *gate.Finding {
	l := h.Limits()
	return holds(h, buffer{l.Window, "receive window", l.WindowOf, l.Keys[0], false})
}

func proposeReceiveWindow(r advise.Request) []advise.Draft {
	return buffers(r, r.Direction.Receiver(), r.Direction.Sender())
}
