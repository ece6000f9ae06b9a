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

// WindowScalingOff is the cause `window-scaling-off`.
func WindowScalingOff() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "window-scaling-off", TCP: true, Title: "no window scaling: windows are 64 KiB at most", Judge: judgeWindowScalingOff, Packets: packetsWindowScalingOff,
			Seen:        "the kernel negotiated no window scaling (tcp_info), and the receive window limits the sender; in captures: the SYN or the SYN-ACK lacks the option",
			Distinction: "the SYN as sent and as received (path probe, or a capture at each end) shows whether an end or a middlebox removed it",
			Fix:         "switch it on at the end that lacks it, or fix the middlebox that strips it", Effect: "65535 bytes per round trip: 26 Mb/s at 20 ms",
			Source: "RFC 7323; tcp_info.tcpi_options", Tests: []string{diagnose.Captured}, Brings: []string{"receive-window"},
		},
		Urgent: 1,
		Gates: []gate.Rule{
			{ID: "window-scaling", Words: "wscale scaling", Title: "Window scaling of the host", About: "whether the host offers TCP windows above 64 KiB",
				Fails:  "it is off and the path needs a window above 64 KiB",
				Warns:  "it is off",
				Why:    "without it a connection carries at most 65535 bytes per round trip: 26 Mb/s at 20 ms",
				Source: "RFC 7323", Fix: "switch it on", Checklist: []string{"C-16", "C-32"}, Host: gateWindowScaling},
			{ID: "window-scaling-path", Title: "Window scaling on the path", About: "the option as sent and as received",
				Fails:  "a device on the path removes or changes the option, and the path needs a window above 64 KiB",
				Warns:  "the same if it needs less, or its need is not known",
				Why:    "without it a connection carries at most 65535 bytes per round trip: 26 Mb/s at 20 ms",
				Source: "RFC 7323, section 2.2", Fix: "set the middlebox to pass TCP options unchanged", Checklist: []string{"C-16"}, Direction: gateWindowScalingPath},
		},
		Propose: []advise.Proposer{proposeWindowScalingOff},
	}
}

func judgeWindowScalingOff(f *diagnose.Flow) *diagnose.Outcome {
	on, known := Option(f, func(t *measure.TCPInfo) *bool { return t.WScaleOK })
	if !known {
		return f.Sender.Lacks("tcp_info.opt_window_scaling")
	}
	if on {
		return diagnose.No("both ends scale their windows")
	}
	pct, proof, counted := f.WindowLimited()
	o := diagnose.Likely("TCP window scaling is off: no window is larger than 64 KiB")
	where, how := f.LostOption(func(s *measure.SYN) *bool { return s.HasScale }, scene.WindowScaling())
	o.At(where)
	if how != "" {
		o.Text = fmt.Sprintf("TCP window scaling is off (%s): no window is larger than 64 KiB", how)
	}
	o.Confidence = measure.Certain // it is certainly off; its cost depends on the round trip
	behind, seen := f.UnreadShare()
	switch {
	case seen && behind > diagnose.UnreadBar:
		o.MarkNotBinding() // a larger window would be full of unread data too
	case counted && pct >= diagnose.RwndBar && !f.Lengthens(scene.PlainWindow):
		o.By(diagnose.Above(proof, diagnose.RwndBar))
	case counted:
		o.MarkNotBinding()
	default:
		o.Confidence = measure.Likely
	}
	if loaded, ok := f.LoadedRTT(); ok {
		bound := stat.WindowRate(scene.PlainWindow, int64(loaded)) * float64(max(1, f.Cell.Streams))
		o.Costs(bound, "without scaling "+unit.Rate(bound)+" at most", fmt.Sprintf("65535 bytes * 8 / %s", unit.Duration(int64(loaded))))
	}
	o.By(f.Sender.Proof("tcp_info.opt_window_scaling", 0, ""))
	return o.AddFix(f.SwitchOn(scene.WindowScaling(), where))
}

// Option returns a TCP option as the kernels negotiated it, the sender's value before the receiver's.
func Option(f *diagnose.Flow, of func(*measure.TCPInfo) *bool) (on, known bool) {
	for _, e := range f.Ends() {
		for _, s := range e.Streams() {
			for _, t := range s.Readings() {
				if of(t) != nil {
					return *of(t), true
				}
			}
		}
	}
	return false, false
}

func packetsWindowScalingOff(f *diagnose.Flow) *diagnose.Outcome {
	o, where := optionGone(f, func(s *measure.SYN) *bool { return s.HasScale }, "TCP window scaling")
	if o.State != diagnose.Holds {
		return o
	}
	o.Text += ": no window is larger than 64 KiB"
	s := f.AnyCapturePoint()
	held, known := s.WindowLimited()
	switch {
	case s.ClosedPct() >= closedBar:
		o.MarkNotBinding() // a larger window would be full of unread data too
	case known && held.Binds:
		o.By(held.Proof)
	case known || s.Data.New <= scene.PlainWindow: // too little passed to fill such a window
		o.MarkNotBinding()
	default:
		o.Confidence = measure.Likely
	}
	if loaded, _, ok := s.RTT(); ok {
		bound := stat.WindowRate(scene.PlainWindow, int64(loaded)) * float64(len(s.Connections))
		o.Costs(bound, "without scaling "+unit.Rate(bound)+" at most", fmt.Sprintf("65535 bytes * 8 / %s", unit.Duration(int64(loaded))))
	}
	return o.AddFix(f.SwitchOn(scene.WindowScaling(), where))
}

func gateWindowScaling(h *scene.Host) *gate.Finding {
	if l := h.Limits(); (h.System == "solaris" || h.System == "illumos") && l.Window > scene.PlainWindow {
		return gate.Pass("on: window scaling, set by a buffer of %s", gate.Size(l.Window))
	}
	return switched(h, scene.WindowScaling(), func() *gate.Finding {
		need, _ := h.BDP()
		return gate.FailIf(need > scene.PlainWindow, "window scaling is off").Because("%s", capped(h.Scene)).Do(h.Set(knob.WindowScaling, "", "1"))
	})
}

// capped words the rate of 64 KiB per round trip.
func capped(sc *scene.Scene) string {
	if sc.RTT() == 0 {
		return "a connection carries at most 65535 bytes per round trip: 26 Mb/s at 20 ms"
	}
	return "a connection carries at most " + gate.Rate(stat.WindowRate(scene.PlainWindow, sc.RTT())) + " at the RTT of " + gate.Span(sc.RTT())
}

func gateWindowScalingPath(w *scene.Direction) *gate.Finding {
	need, _ := w.BDP()
	f := option(w, "window scaling", func(s *measure.SYN) *bool { return s.HasScale }, func() *gate.Finding {
		return gate.FailIf(need > scene.PlainWindow, "the window scaling option of %s is removed before %s", w.From, w.To).Because("%s", capped(w.Scene)).Do(leaveAlone())
	})
	if f.Status == measure.GatePass && w.Sent.WindowScale != nil && w.Seen.WindowScale != nil && *w.Sent.WindowScale != *w.Seen.WindowScale {
		return gate.FailIf(need > scene.PlainWindow, "window scale %d sent by %s arrives as %d", *w.Sent.WindowScale, w.From, *w.Seen.WindowScale).
			Because("the ends disagree about the size of every window").Do(leaveAlone())
	}
	return f
}

// proposeWindowScalingOff lists the changes against `window-scaling-off`.
func proposeWindowScalingOff(r advise.Request) []advise.Draft {
	return switchOn(r, knob.WindowScaling, "window scaling")
}
