package why

import (
	"math"
	"testing"

	"thru/internal/measure"
)

func TestProofNamesItsPackets(t *testing.T) {
	for want, p := range map[string]measure.Proof{
		"zero_windows 3, packets 4012, 4912, 5812 of a.pcap: of 8 s": {Counter: "zero_windows", Value: 3, Packets: []int64{4012, 4912, 5812}, Capture: "/var/tmp/a.pcap", Note: "of 8 s"},
		"rst 1, packet 7":                         {Counter: "rst", Value: 1, Packets: []int64{7}},
		"lost 9, packets 1, 2, 3, 4, 5, ... of b": {Counter: "lost", Value: 9, Packets: []int64{1, 2, 3, 4, 5, 6}, Capture: "b"},
		"lost 0": {Counter: "lost", Capture: "b"},
	} {
		if got := proofIn(&p, barWords(nil)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestProofText(t *testing.T) {
	for want, p := range map[string]measure.Proof{
		"rwnd_limited 98.7% of busy_time (threshold 60%)": {Counter: "tcp_info.rwnd_limited_us of busy_time_us", Value: 98.7, Unit: "pct", Threshold: new(60.0), Above: true},
		"unread 0 B (threshold < 6554 B): it is empty":    {Counter: "course.unread_bytes", Value: 0, Unit: "bytes", Threshold: new(6554.0), Note: "it is empty"},
		"rx_packets 338 120/s in 10 s":                    {Counter: "interface.rx_packets", Value: 338120, Unit: "per_s", SpanNs: 10e9},
		"TCPTimeouts 3":                                   {Counter: "TcpExt.TCPTimeouts", Value: 3},
		"rtt 20.6 ms":                                     {Counter: "rtt_us", Value: 20.6e6, Unit: "ns"},
		"goodput 4.10 Gb/s":                               {Counter: "goodput_bps", Value: 4.1e9, Unit: "bps"},
		"in_flight 44.1 segments":                         {Counter: "course.in_flight_segments", Value: 44.1, Unit: "segments"},
		"unread data 3.2% of the socket buffer":           {Counter: "unread data, of the socket buffer", Value: 3.2, Unit: "pct"},
		"UDP at 0.9 of the rate, lost on the path 1.2%":   {Counter: "UDP at 0.9 of the rate, lost on the path", Value: 1.2, Unit: "pct"},
		"rtt under load, mean 20.6 ms":                    {Counter: "tcp_info.rtt_us under load, mean", Value: 20.6e6, Unit: "ns"},
		"snd_wnd, mean 64 KiB":                            {Counter: "tcp_info.snd_wnd_bytes, mean", Value: 65536, Unit: "bytes"},
		"x ?":                                             {Counter: "x", Value: math.NaN(), Unit: "bytes"},
	} {
		if got := proofIn(&p, barWords(nil)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
