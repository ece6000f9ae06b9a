package window

import (
	"fmt"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/knob"
	"thru/internal/cause/mtu"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// SACKOff is the cause `sack-off`.
func SACKOff() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "sack-off", TCP: true, Title: "no selective acknowledgements", Judge: judgeSACKOff, Packets: packetsSACKOff,
			Seen:        "the kernel negotiated no SACK (tcp_info), and lost segments were retransmitted by timeouts or one at a time (Reno); in captures: the SYN or the SYN-ACK lacks the option",
			Distinction: "without loss it costs nothing; the SYN as sent and as received shows whether an end or a middlebox removed it",
			Fix:         "switch it on at the end that lacks it, or fix the middlebox that strips it", Effect: "one round trip for each loss in a window, or a timeout of 200 ms",
			Source: "RFC 2018; tcp_info.tcpi_options; TcpExt.TCPRenoRecovery, TCPTimeouts", Tests: []string{diagnose.Captured},
		},
		Urgent: 6,
		Gates: []gate.Rule{
			{ID: "sack", Title: "SACK of the host", About: "whether the host offers selective acknowledgement",
				Warns:  "it is off",
				Why:    "without it each loss in a window costs a round trip, or a timeout of 200 ms",
				Source: "RFC 2018", Fix: "switch it on", Checklist: []string{"C-16"}, Host: gateSACK},
			{ID: "sack-path", Title: "SACK on the path", About: "the option as sent and as received", Warns: "a device on the path removes it",
				Why:    "without it each loss in a window costs a round trip, or a timeout of 200 ms",
				Source: "RFC 2018", Fix: "set the middlebox to pass TCP options unchanged", Checklist: []string{"C-16"}, Direction: gateSACKPath},
		},
		Propose: []advise.Proposer{proposeSACKOff},
	}
}

func judgeSACKOff(f *diagnose.Flow) *diagnose.Outcome {
	o, where := optionOff(f, func(t *measure.TCPInfo) *bool { return t.SACK }, func(s *measure.SYN) *bool { return s.SACK },
		scene.SackSetting(), "selective acknowledgements (SACK)", "opt_sack")
	if o.State != diagnose.Holds {
		return o
	}
	again, counted := f.AgainPct()
	timeouts, reported := f.Sender.Counter("TcpExt.TCPTimeouts")
	reno, _ := f.Sender.Counter("TcpExt.TCPRenoRecovery")
	flat, steady := f.Flatness()
	bound, known := f.Allowed()
	switch {
	case !counted || !reported:
		o.Confidence = measure.Likely
	case again < diagnose.AgainBar || timeouts+reno == 0 || offloadLoses(f, again) || f.LinkIsFull() || steady && flat < diagnose.FlatBar && f.HasQueue() || f.IsRare(diagnose.RareBar):
		o.MarkNotBinding()
	default:
		o.By(diagnose.Above(f.Sender.Proof("tcp_info.total_retrans of data_segs_out", again, "pct"), diagnose.AgainBar),
			f.Sender.Proof("TcpExt.TCPRenoRecovery", reno, ""), f.Sender.Proof("TcpExt.TCPTimeouts", timeouts, ""))
		o.Text += fmt.Sprintf(", and %s of the segments were retransmitted", unit.Percent(again))
		if timeouts == 0 && known && f.Rate() >= bound/2 { // it is off, but not shown to limit the rate
			o.Confidence = measure.Likely
		}
	}
	return o.Costs(0, "each loss in a window costs a round trip, or a timeout of 200 ms", "RFC 2018").
		AddFix(f.SwitchOn(scene.SackSetting(), where))
}

// offloadLoses reports whether the lost packets are those of a broken offload.
func offloadLoses(f *diagnose.Flow, again float64) bool {
	o := mtu.JudgeBrokenTSO(f)
	return again >= offloadBar && o.State == diagnose.Holds && o.Confidence != measure.Possible
}

// offloadBar is the percentage of retransmitted segments from which, with a broken offload, SACK makes no
// difference: the retransmissions are lost again.
const offloadBar = 30

func packetsSACKOff(f *diagnose.Flow) *diagnose.Outcome {
	o, where := optionGone(f, func(s *measure.SYN) *bool { return s.SACK }, "selective acknowledgements (SACK)")
	if o.State != diagnose.Holds {
		return o
	}
	s := f.AnyCapturePoint()
	again, counted := s.AgainPct()
	queue, reported := s.Stands()
	switch {
	case !counted && s.Data.Again.N > 0:
		o.Confidence = measure.Likely
	case !counted || again < diagnose.AgainBar || f.LinkIsFull() || reported && queue && again < 0.05:
		o.MarkNotBinding()
	default:
		o.By(diagnose.Above(s.Proof("retransmitted, of the payload", again, "pct", s.Data.Again.Packets...), diagnose.AgainBar), s.Count("retransmissions after a timeout", s.Data.Timeout))
		o.Text += fmt.Sprintf(", and %s of the data were retransmitted", unit.Percent(again))
		if loaded, _, ok := s.RTT(); s.Data.Timeout.N == 0 && (!ok || s.Rate() > s.Mathis(loaded, again)/2) {
			o.Confidence = measure.Likely // it is off, but not shown to limit the rate
		}
	}
	return o.Costs(0, "each loss in a window costs a round trip, or a timeout of 200 ms", "RFC 2018").
		AddFix(f.SwitchOn(scene.SackSetting(), where))
}

func gateSACK(h *scene.Host) *gate.Finding {
	return switched(h, scene.SackSetting(), func() *gate.Finding { return gate.Warn("SACK is off").Do(h.Set(knob.SACK, "", "1")) })
}

func gateSACKPath(w *scene.Direction) *gate.Finding {
	return option(w, "SACK", func(s *measure.SYN) *bool { return s.SACK }, func() *gate.Finding {
		return gate.Warn("the SACK option of %s is removed before %s", w.From, w.To).Do(leaveAlone())
	})
}

// proposeSACKOff lists the changes against `sack-off`.
func proposeSACKOff(r advise.Request) []advise.Draft {
	return switchOn(r, knob.SACK, "selective acknowledgements (SACK)")
}
