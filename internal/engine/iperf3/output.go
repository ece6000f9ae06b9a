package iperf3

import (
	"fmt"
	"net"
	"strings"
	"time"
)

// serverOutput returns the server's text report of a test in iperf3's format, for a client that requests it (--get-server-output): the connections, then a
// line for each stream and one for all.
func serverOutput(c *call, directions []direction) string {
	var head, rows strings.Builder
	fmt.Fprintf(&head, "Accepted connection from %s\n", hostPort(c.talk.conn.RemoteAddr().String(), ", port "))
	socket := 5 // first socket number in iperf3's server output
	for _, w := range directions {
		rows.WriteString("- - - - - - - - - - - - - - - - - - - - - - - - -\n[ ID] Interval           Transfer     Bitrate")
		switch {
		case w.isUDP():
			rows.WriteString("         Jitter    Lost/Total Datagrams")
		case w.ours.Sends:
			rows.WriteString("         Retr")
		}
		rows.WriteByte('\n')
		sum := streamResult{Retransmits: -1}
		for _, x := range w.ours.Streams {
			fmt.Fprintf(&head, "[%3d] local %s connected to %s\n", socket, hostPort(x.Local, " port "), hostPort(x.Peer, " port "))
			s := streamResult{Retransmits: -1}
			w.fillStream(&s, x)
			w.printRow(&rows, fmt.Sprintf("%3d", socket), s)
			sum.add(s)
			socket += 2
		}
		if len(w.ours.Streams) > 1 {
			w.printRow(&rows, "SUM", sum)
		}
	}
	return head.String() + rows.String()
}

// add adds the figures of a stream; the jitter is the greatest.
func (r *streamResult) add(s streamResult) {
	r.Bytes, r.Packets, r.Errors, r.Jitter = r.Bytes+s.Bytes, r.Packets+s.Packets, r.Errors+s.Errors, max(r.Jitter, s.Jitter)
	if s.Retransmits >= 0 {
		r.Retransmits = max(r.Retransmits, 0) + s.Retransmits
	}
}

func (w direction) printRow(b *strings.Builder, id string, s streamResult) {
	seconds, rate := time.Duration(w.ours.MeasuredNs).Seconds(), 0.0
	if seconds > 0 {
		rate = float64(s.Bytes) * 8 / seconds
	}
	figures, role := "                  ", "receiver"
	if w.ours.Sends {
		role = "sender"
	}
	switch {
	case w.isUDP():
		figures = fmt.Sprintf("  %.3f ms  %d/%d (%.2g%%)  ", s.Jitter*1e3, s.Errors, s.Packets, 100*float64(s.Errors)/float64(max(s.Packets, 1)))
	case s.Retransmits >= 0:
		figures = fmt.Sprintf("  %3d            ", s.Retransmits)
	}
	fmt.Fprintf(b, "[%s] %6.2f-%-6.2f sec  %sBytes  %sbits/sec%s%s\n", id, 0.0, seconds, scaled(float64(s.Bytes), 1024), scaled(rate, 1000), figures, role)
}

// scaled formats a number to three digits with a unit prefix.
func scaled(x, step float64) string {
	prefixes := []string{"", "K", "M", "G", "T"}
	i := 0
	for ; x >= step && i < len(prefixes)-1; i++ {
		x /= step
	}
	digits := 0
	for limit := 99.95; digits < 2 && x < limit; limit /= 10 {
		digits++
	}
	return fmt.Sprintf("%4.*f %s", digits, x, prefixes[i])
}

// hostPort formats HOST:PORT with another separator.
func hostPort(s, between string) string {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return s
	}
	return host + between + port
}
