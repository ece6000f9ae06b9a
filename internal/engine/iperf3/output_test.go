package iperf3

import (
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
)

// TestServerOutputRows: the columns match iperf3's.
func TestServerOutputRows(t *testing.T) {
	second := measure.Evidence{MeasuredNs: int64(time.Second)}
	sender := second
	sender.Sends = true
	tcp, udp := measure.Spec{Protocol: measure.TCP}, measure.Spec{Protocol: measure.UDP}
	for _, tt := range []struct {
		w    direction
		s    streamResult
		want string
	}{
		{direction{ours: second, spec: tcp}, streamResult{Bytes: 2_190_433_321, Retransmits: -1}, "[  5]   0.00-1.00   sec  2.04 GBytes  17.5 Gbits/sec                  receiver"},
		{direction{ours: sender, spec: tcp}, streamResult{Bytes: 1_048_576, Retransmits: 7}, "[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec    7            sender"},
		{direction{ours: second, spec: udp}, streamResult{Bytes: 655_360, Packets: 20, Jitter: 7e-6}, "[  5]   0.00-1.00   sec   640 KBytes  5.24 Mbits/sec  0.007 ms  0/20 (0%)  receiver"},
	} {
		var b strings.Builder
		tt.w.printRow(&b, "  5", tt.s)
		if got := strings.TrimSuffix(b.String(), "\n"); got != tt.want {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
	}
}
