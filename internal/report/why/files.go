package why

import (
	"cmp"
	"strings"

	"thru/internal/measure"
	"thru/internal/report/capture"
	"thru/internal/report/result"
)

// worded returns a proof in the words for capture files, without the span that the reader sees with the file.
// f is nil if nothing was captured.
func worded(p measure.Proof, f *measure.Flow) measure.Proof {
	if f == nil || f.Captures[0].File == "" {
		return p
	}
	p.SpanNs, p.Counter = 0, cmp.Or(counterWords()[p.Counter], p.Counter)
	if strings.HasSuffix(p.Counter, ":") {
		p.Unit = result.YesOrNo
	}
	near, far := capture.PlacesOf(f)
	for _, c := range []*measure.Capture{near, far} {
		if c == nil || p.Capture == "" || result.BaseName(p.Capture) != result.BaseName(c.File) {
			continue
		}
		if p.Capture = capture.SideName(f, c); far == nil {
			p.Capture = ""
		}
		break
	}
	return p
}

// counterWords maps kernel counters that stand for packet counts to common words. A colon ends the name of an
// option that is on or off.
func counterWords() map[string]string {
	return map[string]string{
		"tcp_info.total_retrans of data_segs_out": "retransmitted segments, of all",
		"tcp_info.rtt_ns under load, mean":        "RTT under load, mean",
		"tcp_info.opt_sack":                       "SACK at both ends:",
		"tcp_info.opt_timestamps":                 "timestamps at both ends:",
		"tcp_info.opt_window_scaling":             "window scaling at both ends:",
		"the option in the handshake":             "present in the handshake:",
	}
}
