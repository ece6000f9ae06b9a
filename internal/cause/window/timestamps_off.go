package window

import (
	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/knob"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// TimestampsOff is the cause `timestamps-off`.
func TimestampsOff() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "timestamps-off", TCP: true, Title: "no TCP timestamps", Judge: judgeTimestampsOff, Packets: packetsTimestampsOff,
			Seen: "the kernel negotiated no timestamps (tcp_info); in captures: the SYN or the SYN-ACK lacks the option", Distinction: "the SYN as sent and as received",
			Fix: "switch them on; Windows has them off by default", Effect: "one RTT sample per window; saves 12 bytes per segment",
			Source: "RFC 7323, sections 4 and 5; tcp_info.tcpi_options", Tests: []string{diagnose.Captured},
		},
		Gates: []gate.Rule{
			{ID: "timestamps", Title: "Timestamps of the host", About: "whether the host offers TCP timestamps (Windows does not by default)",
				Warns:  "they are off on Linux or FreeBSD",
				Why:    "without them the RTT is sampled once per window; with windows above 4 GiB an old segment can pass as new",
				Source: "RFC 7323, sections 4 and 5", Fix: "switch them on", Checklist: []string{"C-16"}, Host: gateTimestamps},
			{ID: "timestamps-path", Title: "Timestamps on the path", About: "the option as sent and as received", Warns: "a device on the path removes it",
				Why:    "without them the RTT is sampled once per window: TCP detects queues and losses later",
				Source: "RFC 7323", Fix: "set the middlebox to pass TCP options unchanged", Checklist: []string{"C-16"}, Direction: gateTimestampsPath},
		},
		Propose: []advise.Proposer{proposeTimestampsOff},
	}
}

func judgeTimestampsOff(f *diagnose.Flow) *diagnose.Outcome {
	o, where := optionOff(f, func(t *measure.TCPInfo) *bool { return t.Timestamps }, func(s *measure.SYN) *bool { return s.Timestamps },
		scene.TimestampsSetting(), "TCP timestamps", "opt_timestamps")
	if o.State != diagnose.Holds {
		return o
	}
	return o.MarkNotBinding().Costs(0, "the RTT is sampled once per window; with windows above 4 GiB old segments can pass as new", "RFC 7323, sections 4 and 5").
		AddFix(f.SwitchOn(scene.TimestampsSetting(), where))
}

func packetsTimestampsOff(f *diagnose.Flow) *diagnose.Outcome {
	o, where := optionGone(f, func(s *measure.SYN) *bool { return s.Timestamps }, "TCP timestamps")
	if o.State != diagnose.Holds {
		return o
	}
	return o.MarkNotBinding().Costs(0, "the RTT is sampled once per window; with windows above 4 GiB old segments can pass as new", "RFC 7323, sections 4 and 5").
		AddFix(f.SwitchOn(scene.TimestampsSetting(), where))
}

func gateTimestamps(h *scene.Host) *gate.Finding {
	return switched(h, scene.TimestampsSetting(), func() *gate.Finding {
		return gate.Warn("TCP timestamps are off").Do(h.Set(knob.Timestamps, "", "1"))
	})
}

func gateTimestampsPath(w *scene.Direction) *gate.Finding {
	return option(w, "timestamps", func(s *measure.SYN) *bool { return s.Timestamps }, func() *gate.Finding {
		return gate.Warn("the TCP timestamps of %s are removed before %s", w.From, w.To).Do(leaveAlone())
	})
}

// proposeTimestampsOff lists the changes against `timestamps-off`.
func proposeTimestampsOff(r advise.Request) []advise.Draft {
	return switchOn(r, knob.Timestamps, "TCP timestamps")
}
