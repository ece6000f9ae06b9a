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
	Format  byte          // -f: one of k m g t K M G T; 0 is adaptive
	Verbose bool          // -V
	Stamp   func() string // --timestamps: what each line begins with, such as StampLayout of now and a space
}

// StampLayout is how iperf3 prints the time of --timestamps, in Go's terms.
const StampLayout = "Mon Jan _2 15:04:05 2006"

// Layout prints a test in the lines of plain iperf3, client or server. Each
// line is one Write, so that nothing is held back (--forceflush has no more to
// do). It is not for several goroutines.
type Layout struct {
	w      io.Writer
	o      LayoutOptions
	test   Test
	headed bool // the heads of the columns are printed
	err    error
}

// NewLayout returns a printer to w.
func NewLayout(w io.Writer, o LayoutOptions) *Layout {
	o.Format = cmp.Or(o.Format, 'a')
	return &Layout{w: w, o: o}
}

// line prints one line, behind title and time where those were asked for. The
// first error stays.
func (l *Layout) line(format string, args ...any) {
	prefix := ""
	if l.o.Stamp != nil {
		prefix = l.o.Stamp()
	}
	if l.test.Title != "" && !l.test.Server { // a server keeps that of its client for JSON
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

// Connecting prints what a client says once the control connection stands (a
// refused one leaves only the error). Of t it needs Version, System, Time, Host, Port and Reverse.
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

// Start prints the connections; on a server, before them, who has called.
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

// length says how long a test lasts.
func (t Test) length() string {
	switch {
	case t.Bytes > 0:
		return fmt.Sprintf("%d bytes to send", t.Bytes)
	case t.Blocks > 0:
		return fmt.Sprintf("%d blocks to send", t.Blocks)
	}
	return fmt.Sprintf("%.0f second test", t.Duration.Seconds())
}

// Interval prints the lines of one interval, and before the first the heads.
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

// columns are the heads of the last columns of the intervals.
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

// row is what every line of figures begins with.
func (l *Layout) row(id string, sends bool, start, end time.Duration, bytes int64) string {
	return fmt.Sprintf("%s%s %6.2f-%-6.2f sec  %s  %s", id, l.role(sends), start.Seconds(), end.Seconds(),
		amount(float64(bytes)), rateIn(rate(bytes, end-start), l.o.Format))
}

// role tells the directions of two-way traffic apart, as the client (C) or the server (S) sees them.
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

// The widths of what stands behind the rate, where a kind of test has less to say.
const (
	noRetransmits = "                  "
	noCwnd        = "             "
)

// figures are the last columns of a stream in an interval, or of the sum.
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

// End prints the figures of the whole, and farewell where the test came to its end. A
// client knows both ends, a server its own.
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

// totals prints what sender and receiver counted. gap is the blank between
// the retransmits and the word behind, which in iperf3 a sum has wider.
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

// late says that datagrams came out of order, on the end that received them.
func (l *Layout) late(id string, w EndDirection, received Total) {
	if received.OutOfOrder > 0 && !w.Sends && id != "[SUM]" { // iperf3 calls each stream SUM here
		l.line("[SUM]%s %4.1f-%4.1f sec  %d datagrams received out-of-order", l.role(w.Sends), 0.0, w.Received.Seconds(), received.OutOfOrder)
	}
}

// machines prints, at a verbose client, what follows the table of each direction: CPU of both
// ends, once and where this one sends, and congestion control.
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

// after prints the far end's own words, and farewell.
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
