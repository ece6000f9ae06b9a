package diagnose

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/unit"
)

// optionRules are the causes of options of TCP that are off.
func optionRules() []Rule {
	return []Rule{
		{
			Cause: "sack-off", TCP: true, Title: "no selective acknowledgements", judge: sackOff, packets: packetsSACK,
			Seen:  "the kernel negotiated no SACK (tcp_info), and lost segments were repaired by timeouts or one at a time (Reno); in captures: the SYN or the SYN-ACK lacks the option",
			Apart: "without loss it costs nothing; the SYN as it left and as it arrived tells whether an end or a box between took it out",
			Mends: "switch it on at the end that lacks it, or mend the box that strips it", Effect: "a round trip for each loss in a window, or a timeout of 200 ms",
			Source: "RFC 2018; tcp_info.tcpi_options; TcpExt.TCPRenoRecovery, TCPTimeouts", Tests: []string{captured},
		},
		{
			Cause: "timestamps-off", TCP: true, Title: "no TCP timestamps", judge: timestampsOff, packets: packetsTimestamps,
			Seen: "the kernel negotiated no timestamps (tcp_info); in captures: the SYN or the SYN-ACK lacks the option", Apart: "the SYN as it left and as it arrived",
			Mends: "switch them on; Windows has them off by itself", Effect: "one sample of the round trip a window; 12 bytes a segment are saved",
			Source: "RFC 7323, sections 4 and 5; tcp_info.tcpi_options", Tests: []string{captured},
		},
	}
}

func sackOff(f *flow) *outcome {
	o, where := f.optionOff(func(t *measure.TCPInfo) *bool { return t.SACK }, func(s *measure.SYN) *bool { return s.SACK },
		"net.ipv4.tcp_sack", "selective acknowledgements (SACK)", "opt_sack")
	if o.state != holds {
		return o
	}
	again, counted := f.againPct()
	timeouts, told := f.sender.counter("TcpExt.TCPTimeouts")
	reno, _ := f.sender.counter("TcpExt.TCPRenoRecovery")
	flat, steady := f.flatness()
	bound, known := f.allowed()
	switch {
	case !counted || !told:
		o.confidence = measure.Likely
	case again < againBar || timeouts+reno == 0 || f.offloadLoses(again) || f.linkIsFull() || steady && flat < flatBar && f.hasQueue() || f.isRare(rareBar):
		o.beside()
	default:
		o.by(above(f.sender.proof("tcp_info.total_retrans of data_segs_out", again, "pct"), againBar),
			f.sender.proof("TcpExt.TCPRenoRecovery", reno, ""), f.sender.proof("TcpExt.TCPTimeouts", timeouts, ""))
		o.text += fmt.Sprintf(", and %s of the segments had to be sent again", unit.Percent(again))
		if timeouts == 0 && known && f.rate() >= bound/2 { // it is off; that the rate hangs on it is not shown
			o.confidence = measure.Likely
		}
	}
	return o.costs(0, "each loss in a window costs a round trip of its own, or a timeout of 200 ms", "RFC 2018").
		mend(f.switchOn("net.ipv4.tcp_sack", where))
}

// offloadBar is how many percent of the segments have to be sent again for SACK to be
// beside it where a broken offload loses them: what is sent again is lost again.
const offloadBar = 30

// offloadLoses tells that the packets that are lost are those of a broken offload.
func (f *flow) offloadLoses(again float64) bool {
	o := brokenTSO(f)
	return again >= offloadBar && o.state == holds && o.confidence != measure.Possible
}

func timestampsOff(f *flow) *outcome {
	o, where := f.optionOff(func(t *measure.TCPInfo) *bool { return t.Timestamps }, func(s *measure.SYN) *bool { return s.Timestamps },
		"net.ipv4.tcp_timestamps", "TCP timestamps", "opt_timestamps")
	if o.state != holds {
		return o
	}
	return o.beside().costs(0, "the round trip is sampled once a window; above 4 GiB a window old segments pass for new ones", "RFC 7323, sections 4 and 5").
		mend(f.switchOn("net.ipv4.tcp_timestamps", where))
}

// optionOff judges an option of TCP as the kernel negotiated it: certain where
// it is off, at the end or on the way where it went missing.
func (f *flow) optionOff(of func(*measure.TCPInfo) *bool, syn func(*measure.SYN) *bool, setting, what, key string) (*outcome, measure.Where) {
	on, known := f.option(of)
	switch {
	case !known:
		return f.sender.lacks("tcp_info." + key), measure.Where{}
	case on:
		return no("both ends use %s", what), measure.Where{}
	}
	where, how := f.lostOption(syn, setting)
	o := certain("%s: off", what)
	if how != "" {
		o.text = fmt.Sprintf("%s: off (%s)", what, how)
	}
	return o.at(where).by(f.sender.proof("tcp_info."+key, 0, "")), where
}
