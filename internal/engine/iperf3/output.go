package iperf3

import (
	"fmt"
	"strings"

	"thru/internal/measure"
)

// serverOutput is what a server says of a test in iperf3's manner, for a client that
// wants it (--get-server-output): one line a stream, and one for all.
func serverOutput(c *call, ways []way) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Accepted connection from %s\n", c.addr())
	for _, w := range ways {
		role := "receiver"
		if w.ours.Sends {
			role = "sender"
		}
		b.WriteString("[ ID] Interval           Transfer     Bitrate\n")
		for i, x := range w.ours.Streams {
			if i < len(w.ids) {
				printLine(&b, fmt.Sprintf("%3d", w.ids[i]), w.ours.MeasuredNs, x.Bytes, x.Datagrams, role)
			}
		}
		if len(w.ours.Streams) > 1 {
			printLine(&b, "SUM", w.ours.MeasuredNs, w.ours.Bytes, nil, role)
		}
	}
	return b.String()
}

// printLine is one row. d is of a UDP stream; nil else.
func printLine(b *strings.Builder, id string, span, bytes int64, d *measure.Datagrams, role string) {
	seconds := float64(span) / 1e9
	rate := 0.0
	if seconds > 0 {
		rate = float64(bytes) * 8 / seconds
	}
	fmt.Fprintf(b, "[%s]   0.00-%-5.2f  sec  %sBytes  %sbits/sec", id, seconds, scaled(float64(bytes), 1024), scaled(rate, 1000))
	if d != nil && role == "receiver" {
		jitter, all := 0.0, d.Packets+d.Lost
		if d.JitterNs != nil {
			jitter = float64(*d.JitterNs) / 1e6
		}
		fmt.Fprintf(b, "  %.3f ms  %d/%d (%.2g%%)", jitter, d.Lost, all, 100*float64(d.Lost)/float64(max(all, 1)))
	}
	fmt.Fprintf(b, "  %s\n", role)
}

// scaled is a number with the prefix that suits it.
func scaled(x, step float64) string {
	prefixes := []string{"", "K", "M", "G"}
	i := 0
	for ; x >= step && i < len(prefixes)-1; i++ {
		x /= step
	}
	return fmt.Sprintf("%5.3g %s", x, prefixes[i])
}
