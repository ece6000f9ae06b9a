package window

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/mtu"
	"thru/internal/measure"
	"thru/internal/unit"
)

// OptionCauses are the causes of options of TCP that are off.
func OptionCauses() []diagnose.Rule {
	return []diagnose.Rule{
		{
			Cause: "sack-off", TCP: true, Title: "no selective acknowledgements", Judge: sackOff, Packets: packetsSACK,
			Seen:  "the kernel negotiated no SACK (tcp_info), and lost segments were repaired by timeouts or one at a time (Reno); in captures: the SYN or the SYN-ACK lacks the option",
			Apart: "without loss it costs nothing; the SYN as it left and as it arrived tells whether an end or a box between took it out",
			Mends: "switch it on at the end that lacks it, or mend the box that strips it", Effect: "a round trip for each loss in a window, or a timeout of 200 ms",
			Source: "RFC 2018; tcp_info.tcpi_options; TcpExt.TCPRenoRecovery, TCPTimeouts", Tests: []string{diagnose.Captured},
		},
		{
			Cause: "timestamps-off", TCP: true, Title: "no TCP timestamps", Judge: timestampsOff, Packets: packetsTimestamps,
			Seen: "the kernel negotiated no timestamps (tcp_info); in captures: the SYN or the SYN-ACK lacks the option", Apart: "the SYN as it left and as it arrived",
			Mends: "switch them on; Windows has them off by itself", Effect: "one sample of the round trip a window; 12 bytes a segment are saved",
			Source: "RFC 7323, sections 4 and 5; tcp_info.tcpi_options", Tests: []string{diagnose.Captured},
		},
	}
}

func sackOff(f *diagnose.Flow) *diagnose.Outcome {
	o, where := optionOff(f, func(t *measure.TCPInfo) *bool { return t.SACK }, func(s *measure.SYN) *bool { return s.SACK },
		"net.ipv4.tcp_sack", "selective acknowledgements (SACK)", "opt_sack")
	if o.State != diagnose.Holds {
		return o
	}
	again, counted := f.AgainPct()
	timeouts, told := f.Sender.Counter("TcpExt.TCPTimeouts")
	reno, _ := f.Sender.Counter("TcpExt.TCPRenoRecovery")
	flat, steady := f.Flatness()
	bound, known := f.Allowed()
	switch {
	case !counted || !told:
		o.Confidence = measure.Likely
	case again < diagnose.AgainBar || timeouts+reno == 0 || offloadLoses(f, again) || f.LinkIsFull() || steady && flat < diagnose.FlatBar && f.HasQueue() || f.IsRare(diagnose.RareBar):
		o.Beside()
	default:
		o.By(diagnose.Above(f.Sender.Proof("tcp_info.total_retrans of data_segs_out", again, "pct"), diagnose.AgainBar),
			f.Sender.Proof("TcpExt.TCPRenoRecovery", reno, ""), f.Sender.Proof("TcpExt.TCPTimeouts", timeouts, ""))
		o.Text += fmt.Sprintf(", and %s of the segments had to be sent again", unit.Percent(again))
		if timeouts == 0 && known && f.Rate() >= bound/2 { // it is off; that the rate hangs on it is not shown
			o.Confidence = measure.Likely
		}
	}
	return o.Costs(0, "each loss in a window costs a round trip of its own, or a timeout of 200 ms", "RFC 2018").
		Mend(f.SwitchOn("net.ipv4.tcp_sack", where))
}

// offloadBar is how many percent of the segments have to be sent again for SACK to be
// beside it where a broken offload loses them: what is sent again is lost again.
const offloadBar = 30

// offloadLoses tells that the packets that are lost are those of a broken offload.
func offloadLoses(f *diagnose.Flow, again float64) bool {
	o := mtu.BrokenTSO(f)
	return again >= offloadBar && o.State == diagnose.Holds && o.Confidence != measure.Possible
}

func timestampsOff(f *diagnose.Flow) *diagnose.Outcome {
	o, where := optionOff(f, func(t *measure.TCPInfo) *bool { return t.Timestamps }, func(s *measure.SYN) *bool { return s.Timestamps },
		"net.ipv4.tcp_timestamps", "TCP timestamps", "opt_timestamps")
	if o.State != diagnose.Holds {
		return o
	}
	return o.Beside().Costs(0, "the round trip is sampled once a window; above 4 GiB a window old segments pass for new ones", "RFC 7323, sections 4 and 5").
		Mend(f.SwitchOn("net.ipv4.tcp_timestamps", where))
}

// optionOff judges an option of TCP as the kernel negotiated it: certain where
// it is off, at the end or on the way where it went missing.
func optionOff(f *diagnose.Flow, of func(*measure.TCPInfo) *bool, syn func(*measure.SYN) *bool, setting, what, key string) (*diagnose.Outcome, measure.Where) {
	on, known := Option(f, of)
	switch {
	case !known:
		return f.Sender.Lacks("tcp_info." + key), measure.Where{}
	case on:
		return diagnose.No("both ends use %s", what), measure.Where{}
	}
	where, how := f.LostOption(syn, setting)
	o := diagnose.Certain("%s: off", what)
	if how != "" {
		o.Text = fmt.Sprintf("%s: off (%s)", what, how)
	}
	return o.At(where).By(f.Sender.Proof("tcp_info."+key, 0, "")), where
}
