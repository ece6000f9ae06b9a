package window

import (
	"fmt"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/knob"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// FixedWindow is the cause `fixed-window`.
func FixedWindow() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "fixed-window", TCP: true, Title: "a socket buffer with a fixed size", Judge: judgeFixedWindow, Packets: packetsFixedWindow,
			Seen:        "the socket buffer was set (-w), which ends autotuning, and that window limits the sender; in a capture alone: the receiver's window limits the sender and never changes (possible)",
			Distinction: "the same test without -w",
			Fix:         "leave -w out", Effect: "W * 8 / RTT", Source: "tcp(7), SO_RCVBUF; methods.md, formula 3",
			Tests: []string{diagnose.NoWindow}, Brings: []string{"receive-window", "send-buffer"},
		},
		Gates: []gate.Rule{
			{ID: "explicit-window", Words: "rmem_max wmem_max maxsockbuf -w", Title: "Limit of -w", About: "the largest buffer that a program may request (rmem_max, wmem_max, maxsockbuf) against the bandwidth-delay product, and the rate that it allows; information only",
				Why:    "an explicit window switches autotuning off, and the kernel silently reduces it to its limit",
				Source: "socket(7), SO_RCVBUF", Fix: "leave -w out, or raise the limit", Checklist: []string{"C-18", "C-39", "B-19"}, Host: gateExplicitWindow},
		},
		Propose: []advise.Proposer{proposeFixedWindow},
	}
}

func judgeFixedWindow(f *diagnose.Flow) *diagnose.Outcome {
	send, recv := f.Cell.Spec.Window.Send, f.Cell.Spec.Window.Recv
	if f.PacketsOnly() {
		return diagnose.Missing("the requested windows", "a capture does not show them")
	}
	if send == 0 && recv == 0 {
		return diagnose.No("no window was set: autotuning is on")
	}
	r, s := judgeReceiveWindow(f), diagnose.SendBuffer(f)
	cause, size, by := r, recv, f.Receiver
	if recv == 0 || send > 0 && diagnose.Sureness(s) > diagnose.Sureness(r) {
		cause, size, by = s, send, f.Sender
	}
	free := f.Experiment(diagnose.NoWindow)
	if g := f.Against(free); g.Times > diagnose.GainBar {
		return diagnose.Likely("the window of %s set with -w is too small: without -w %s pass", unit.Size(size), unit.Rate(diagnose.RateOf(free))).
			At(measure.Where{Place: measure.AtTool, EndPoint: by.Name}).By(by.Proof("requested window", float64(size), "bytes")).
			Gains(f.Receiver.Proof("goodput without -w over the base", 0, ""), g).
			Costs(0, "without -w "+unit.Rate(diagnose.RateOf(free))+" pass", "the same traffic with autotuned windows").
			AddFix(diagnose.Advise(by, "leave -w out, so that the kernel tunes the window"))
	}
	if tuned := tuned(f); tuned != nil && f.Against(tuned).Times <= 1 {
		return diagnose.No("autotuned windows carry no more: %s", unit.Rate(diagnose.RateOf(tuned)))
	}
	if cause.State != diagnose.Holds || cause.Confidence == measure.Possible {
		return diagnose.No("a window of %s was set, and does not limit the sender", unit.Size(size))
	}
	o := diagnose.HoldsWith(cause.Confidence, "the window of %s set with -w is too small for the round trip", unit.Size(size))
	o.Effect, o.Evidence = cause.Effect, append([]measure.Proof{by.Proof("requested window", float64(size), "bytes")}, cause.Evidence...)
	return o.At(measure.Where{Place: measure.AtTool, EndPoint: by.Name}).AddFix(diagnose.Advise(by, "leave -w out, so that the kernel tunes the window"))
}

// tuned returns the fastest other cell of the same traffic without a fixed window; nil if there is none.
func tuned(f *diagnose.Flow) *measure.Cell {
	var best *measure.Cell
	for _, c := range f.Tried(func(s *measure.Spec) { s.Window = measure.Pair{} }) {
		if c.Spec.Window == (measure.Pair{}) && (best == nil || diagnose.RateOf(c) > diagnose.RateOf(best)) {
			best = c
		}
	}
	return best
}

func packetsFixedWindow(f *diagnose.Flow) *diagnose.Outcome {
	if !f.PacketsOnly() {
		return nil // the requested windows are known
	}
	o := packetsReceiveWindow(f)
	s := f.AnyCapturePoint()
	if o.State == diagnose.Excluded {
		return diagnose.No("%s", o.Text)
	}
	if o.State == diagnose.Unknown || s.Main().Window.Max-s.Main().Window.Min > 2*s.MSS() {
		return diagnose.Missing("the requested windows", "a capture does not show them")
	}
	return diagnose.Possible("the receiver's window stays at %s: a program set it, or the kernel's maximum is that low", unit.Size(int64(s.Main().Window.Mean))).At(f.Receiver.Where()).
		By(s.Proof("window that the receiver advertised, maximum", s.Main().Window.Max, "bytes"), s.Proof("window that the receiver advertised, minimum", s.Main().Window.Min, "bytes")).
		Then("the same transfer without a fixed window").AddFix(diagnose.Advise(f.Receiver, "let the kernel tune the window: leave -w or SO_RCVBUF out, and raise the kernel's maximum"))
}

// gateExplicitWindow only informs: without -w the limit does not matter.
func gateExplicitWindow(h *scene.Host) *gate.Finding {
	limit, of := int64(0), ""
	switch h.System {
	case "linux":
		// SO_RCVBUF of n gets 2n, of which about n is the window (socket(7)).
		r, okR := h.Number("net.core.rmem_max")
		w, okW := h.Number("net.core.wmem_max")
		if !okR || !okW {
			return nil // a network namespace does not show them
		}
		limit, of = min(r, w), "rmem_max, wmem_max"
	case "freebsd":
		n, _ := h.Number("kern.ipc.maxsockbuf")
		limit, of = knob.UsableSockBuf(n), "kern.ipc.maxsockbuf"
	case "solaris", "illumos":
		limit, _ = h.Number("tcp.max_buf")
		of = "max_buf"
	}
	product, _ := h.BDP()
	if limit <= 0 || product == 0 {
		return nil
	}
	window := h.NeededWindow()
	if window <= limit {
		return gate.Pass("-w up to %s (%s) is granted; bandwidth-delay product %s", gate.Size(limit), of, gate.Size(product))
	}
	without := ""
	if l := h.Limits(); l.Window > 0 {
		without = "; without -w up to " + gate.Size(l.Window) + " (" + l.WindowOf + ")"
	}
	return gate.Pass("-w gets at most %s (%s): %s per connection%s", gate.Size(limit), of, gate.Rate(stat.WindowRate(float64(limit), h.RTT())), without).
		Because("a connection needs %s; the kernel silently reduces a larger -w to its limit", gate.Size(window)).
		Do(raiseLimit(h, window).WithAdvice("leave -w out; only a test with -w needs a higher limit"))
}

// raiseLimit lets programs request the window, as far as thru takes one with -w.
func raiseLimit(h *scene.Host, window int64) (r scene.Fix) {
	window = min(window, measure.MaxWindow)
	for _, id := range []string{knob.RmemMax, knob.WmemMax} {
		if has, _ := h.Number(knob.Sysctl(id)); has < window {
			r = r.And(h.Set(id, "", fmt.Sprint(window)))
		}
	}
	return r
}

// proposeFixedWindow leaves -w out; if the kernel has reduced what -w requests, raising its limit is the
// alternative.
func proposeFixedWindow(r advise.Request) []advise.Draft {
	w := r.Direction
	c := w.Cell
	if c == nil || c.Spec.Window == (measure.Pair{}) {
		return nil
	}
	free := advise.Draft{Id: knob.Window + "=default", Title: "let the kernels tune the windows (leave -w out)", Test: &measure.TestOptions{Window: &measure.Pair{}, Flags: "leave -w out"}}.ForDirection(w)
	if x := w.Best(func(x *measure.Cell) bool { return x.Spec.Window == (measure.Pair{}) && x.Streams == c.Streams }); x != nil {
		free = free.Bring(x.Goodput.Value, "measured in this result", "%s passed without it", unit.Rate(x.Goodput.Value))
	} else if holds := min(w.Receiver().Holds(), w.Sender().Holds()); w.Carries(holds) > w.Goodput() {
		free = free.Bring(w.Carries(holds), "RFC 6349, section 3.3.1", "up to %s: windows grow up to %s, which is enough for that at %s RTT", unit.Rate(w.Carries(holds)), unit.Size(holds), unit.Duration(w.RTT()))
	} else {
		free = free.Bring(0, "socket(7)", "the window grows to what the path needs, up to the hosts' maximum")
	}
	list := []advise.Draft{free}
	for _, x := range []struct {
		id   string
		h    *scene.Host
		want int64
	}{{knob.RmemMax, w.To, c.Spec.Window.Recv}, {knob.WmemMax, w.From, c.Spec.Window.Send}} {
		if now := x.h.State(x.id, ""); now.Known && now.Number() > 0 && now.Number() < x.want {
			list = append(list, advise.Change(x.h, x.id, "", fmt.Sprint(x.want), "grant the %s that -w requests at %s", unit.Size(x.want), x.h.Name).ForDirection(w))
		}
	}
	return list
}
