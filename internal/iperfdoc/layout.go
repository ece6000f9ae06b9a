package iperfdoc

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"thru/internal/measure"
)

// LayoutOptions are the flags of iperf3 that change its lines.
type LayoutOptions struct {
	Format  byte          // -f: one of k m g t K M G T; 0: adaptive
	Verbose bool          // -V
	Stamp   func() string // --timestamps: prefix of each line, such as StampLayout of the current time and a space
}

// StampLayout is iperf3's time format of --timestamps, in Go's terms.
const StampLayout = "Mon Jan _2 15:04:05 2006"

// Layout prints a test in the lines of plain iperf3, client or server. Each line is one Write, so that no output is delayed (--forceflush has no further
// effect). It is not for concurrent use.
type Layout struct {
	w      io.Writer
	o      LayoutOptions
	test   Test
	headed bool // the column heads are printed
	err    error
}

// NewLayout returns a printer to w.
func NewLayout(w io.Writer, o LayoutOptions) *Layout {
	o.Format = cmp.Or(o.Format, 'a')
	return &Layout{w: w, o: o}
}

// line prints one line, after title and time where requested. It keeps the first error.
func (l *Layout) line(format string, args ...any) {
	prefix := ""
	if l.o.Stamp != nil {
		prefix = l.o.Stamp()
	}
	if l.test.Title != "" && !l.test.Server { // a server uses its client's title only in JSON
		prefix += l.test.Title + ":  "
	}
	l.raw(prefix + fmt.Sprintf(format, args...) + "\n")
}

func (l *Layout) raw(text string) {
	if l.err != nil {
		return
	}
	if _, err := io.WriteString(l.w, text); err != nil {
		l.err = fmt.Errorf("iperfdoc: writing a line: %w", err)
	}
}

const (
	rule      = "-----------------------------------------------------------"
	separator = "- - - - - - - - - - - - - - - - - - - - - - - - -"
)

// Listening prints that a server waits for its n-th test (from 1).
func (l *Layout) Listening(port, n int) error {
	l.line(rule)
	l.line("Server listening on %d (test #%d)", port, n)
	l.line(rule)
	return l.err
}

// Connecting prints a client's lines after the control connection is made (a refused one prints only the error). It uses Version, System, Time, Host, Port and
// Reverse of t.
func (l *Layout) Connecting(t Test) error {
	l.test = t
	if l.o.Verbose {
		l.line("%s", t.Version)
		l.line("%s", t.System)
		if t.MSS > 0 && t.Protocol == protocolTCP {
			l.line("Control connection MSS %d", t.MSS)
		}
		l.line("Time: %s", t.Time.UTC().Format(timeLayout))
	}
	l.line("Connecting to host %s, port %d", t.Host, t.Port)
	if t.Reverse {
		l.line("Reverse mode, remote host %s is sending", t.Host)
	}
	return l.err
}

// Start prints the connections; on a server, first the address of the client.
func (l *Layout) Start(t Test) error {
	l.test, l.headed = t, false
	if t.Server {
		l.line("Accepted connection from %s, port %d", t.Host, t.Port)
	}
	if l.o.Verbose {
		l.line("      Cookie: %s", t.Cookie)
		switch {
		case t.Protocol == protocolTCP && t.AskedMSS > 0:
			l.line("      TCP MSS: %d", t.AskedMSS)
		case t.Protocol == protocolTCP:
			l.line("      TCP MSS: %d (default)", t.MSS)
		}
		if t.Rate > 0 {
			l.line("      Target Bitrate: %d", t.Rate)
		}
	}
	for _, c := range t.Conns {
		l.line("[%3d] local %s port %d connected to %s port %d", c.Socket, c.LocalHost, c.LocalPort, c.RemoteHost, c.RemotePort)
	}
	if l.o.Verbose {
		l.line("Starting Test: protocol: %s, %d streams, %d byte blocks, omitting %.0f seconds, %s, tos %d",
			t.Protocol, t.Streams, t.BlockSize, t.Omit.Seconds(), t.length(), t.TOS)
	}
	return l.err
}

// length returns how long a test lasts, in words.
func (t Test) length() string {
	switch {
	case t.Bytes > 0:
		return fmt.Sprintf("%d bytes to send", t.Bytes)
	case t.Blocks > 0:
		return fmt.Sprintf("%d blocks to send", t.Blocks)
	}
	return fmt.Sprintf("%.0f second test", t.Duration.Seconds())
}

// Interval prints the lines of one interval, and the column heads before the first.
func (l *Layout) Interval(i Interval) error {
	udp := l.test.Protocol == protocolUDP
	if several := l.test.Streams > 1; several && l.headed {
		l.line(separator)
	}
	if !l.headed {
		l.headed = true
		l.head(l.columns(udp))
	}
	tail := ""
	if i.Omitted {
		tail = "(omitted)"
	}
	for _, w := range i.Directions {
		for _, p := range w.Streams {
			l.line("%s%s", l.row(fmt.Sprintf("[%3d]", p.Socket), w.Sends, i.Start, i.End, p.Bytes), l.figures(p, w.Sends, udp)+tail)
		}
		if len(w.Streams) > 1 {
			p := w.Sum
			p.Cwnd = nil
			l.line("%s%s", l.row("[SUM]", w.Sends, i.Start, i.End, p.Bytes), l.figures(p, w.Sends, udp)+tail)
		}
	}
	return l.err
}

// columns returns the heads of the last columns of the intervals.
func (l *Layout) columns(udp bool) string {
	sends := l.test.sends() || l.test.Bidir
	switch {
	case udp && sends && !l.test.Bidir:
		return "         Total Datagrams"
	case udp:
		return lossColumns
	case sends:
		return "         Retr  Cwnd"
	}
	return ""
}

const lossColumns = "         Jitter    Lost/Total Datagrams"

func (l *Layout) head(columns string) {
	role := ""
	if l.test.Bidir {
		role = "[Role]"
	}
	l.line("[ ID]%s Interval           Transfer     Bitrate%s", role, columns)
}

// row returns the beginning of every line of figures.
func (l *Layout) row(id string, sends bool, start, end time.Duration, bytes int64) string {
	return fmt.Sprintf("%s%s %6.2f-%-6.2f sec  %s  %s", id, l.role(sends), start.Seconds(), end.Seconds(),
		amount(float64(bytes)), rateIn(rate(bytes, end-start), l.o.Format))
}

// role returns the direction of two-way traffic, as seen by the client (C) or the server (S).
func (l *Layout) role(sends bool) string {
	if !l.test.Bidir {
		return ""
	}
	direction, end := "RX", "C"
	if sends {
		direction = "TX"
	}
	if l.test.Server {
		end = "S"
	}
	return "[" + direction + "-" + end + "]"
}

// Blanks in place of columns after the rate that a kind of test does not have.
const (
	noRetransmits = "                  "
	noCwnd        = "             "
)

// figures returns the last columns of a stream in an interval, or of the sum.
func (l *Layout) figures(p Part, sends, udp bool) string {
	switch {
	case udp && sends && l.test.Bidir: // in the column of the losses
		return fmt.Sprintf("            %d  ", p.Packets)
	case udp && sends:
		return fmt.Sprintf("  %d  ", p.Packets)
	case udp:
		return lossFigures(measure.Value(p.JitterNs), measure.Value(p.Lost), p.Packets+measure.Value(p.Lost))
	case !sends || p.Retransmits == nil:
		return noRetransmits
	case p.Cwnd == nil:
		return fmt.Sprintf("  %3d", *p.Retransmits) + noCwnd
	}
	return fmt.Sprintf("  %3d   %s       ", *p.Retransmits, amount(float64(*p.Cwnd)))
}

func lossFigures(jitterNs, lost, packets int64) string {
	return fmt.Sprintf("  %5.3f ms  %d/%d (%.2g%%)  ", milliseconds(jitterNs), lost, packets, percent(lost, packets))
}

// End prints the totals, and the final line where the test is complete. A client knows both ends, a server its own.
func (l *Layout) End(e End, whole bool) error {
	l.line(separator)
	if l.o.Verbose {
		l.line("Test Complete. Summary Results:")
	}
	udp := l.test.Protocol == protocolUDP
	switch sends := l.test.sends() || l.test.Bidir; {
	case udp:
		l.head(lossColumns)
	case sends || !l.test.Server:
		l.head("         Retr")
	default:
		l.head("")
	}
	for _, w := range e.Directions {
		for _, s := range w.Streams {
			l.totals(fmt.Sprintf("[%3d]", s.Socket), w, s.Sent, s.Received, "%12s")
		}
		if len(w.Streams) > 1 {
			sent, received := w.sums()
			l.totals("[SUM]", w, sent, received, "%13s")
		}
		l.machines(w, e)
	}
	l.after(e, whole)
	return l.err
}

// totals prints the counts of sender and receiver. gap is the blank between the retransmissions and the next word, which is wider for a sum in iperf3.
func (l *Layout) totals(id string, w EndDirection, sent, received Total, gap string) {
	udp := l.test.Protocol == protocolUDP
	if !l.test.Server || w.Sends {
		figures := noRetransmits
		switch {
		case udp:
			figures = lossFigures(0, 0, sent.Packets)
		case sent.Retransmits != nil:
			figures = fmt.Sprintf("  %3d"+gap, *sent.Retransmits, "")
		}
		if w.HasSent {
			l.line("%s%ssender", l.row(id, w.Sends, 0, w.Sent, sent.Bytes), figures)
		} else {
			l.line("%s (sender statistics not available)", id)
		}
	}
	if !l.test.Server || !w.Sends {
		figures := noRetransmits
		if udp {
			figures = lossFigures(received.JitterNs, received.Lost, received.Packets+received.Lost)
			l.late(id, w, received)
		}
		if w.HasReceived {
			l.line("%s%sreceiver", l.row(id, w.Sends, 0, w.Received, received.Bytes), figures)
		} else {
			l.line("%s (receiver statistics not available)", id)
		}
	}
}

// late prints how many datagrams arrived out of order, at the end that received them.
func (l *Layout) late(id string, w EndDirection, received Total) {
	if received.OutOfOrder > 0 && !w.Sends && id != "[SUM]" { // iperf3 calls each stream SUM here
		l.line("[SUM]%s %4.1f-%4.1f sec  %d datagrams received out-of-order", l.role(w.Sends), 0.0, w.Received.Seconds(), received.OutOfOrder)
	}
}

// machines prints, at a verbose client, the lines after the table of each direction: CPU of both ends, once and where this one sends, and congestion control.
func (l *Layout) machines(w EndDirection, e End) {
	if !l.o.Verbose || l.test.Server {
		return
	}
	roles := [][2]string{{"sender", "receiver"}, {"receiver", "sender"}}
	if !l.test.Bidir {
		roles = roles[:1]
	}
	for _, r := range roles {
		if w.Sends {
			l.line("CPU Utilization: local/%s %.1f%% (%.1f%%u/%.1f%%s), remote/%s %.1f%% (%.1f%%u/%.1f%%s)",
				r[0], e.Local.total(), e.Local.User, e.Local.System, r[1], e.Remote.total(), e.Remote.User, e.Remote.System)
		}
	}
	if w.SenderCongestion != "" {
		l.line("snd_tcp_congestion %s", w.SenderCongestion)
	}
	if w.ReceiverCongestion != "" {
		l.line("rcv_tcp_congestion %s", w.ReceiverCongestion)
	}
}

// after prints the far end's output, and the final line.
func (l *Layout) after(e End, whole bool) {
	if text := strings.TrimRight(e.ServerText, "\n"); text != "" {
		l.line("")
		l.raw("Server output:\n" + text + "\n\n") // without title and time, as in iperf3
	}
	if whole && !l.test.Server {
		l.line("")
		l.line("iperf Done.")
	}
}

// Fail prints why a test ended. It is for standard error, as in iperf3:
// "iperf3: error - unable to connect to server: Connection refused".
func (l *Layout) Fail(message string) error {
	l.line("iperf3: error - %s", message)
	return l.err
}
