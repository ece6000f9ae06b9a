// Package iperfdoc converts between measure.Document and iperf3's JSON document and text output. It writes them from a document or from live figures, for
// scripts and people that use iperf3's formats, and reads the JSON.
//
// Three printers take the same input (Test, Interval, End): Write prints one document like `iperf3 -J`, Stream one JSON object per line like `--json-stream`,
// and Layout the lines of plain iperf3. Keys, types, columns and units are those of iperf3 3.21, which includes those of older versions. docs/iperf3.md says
// what each key means where thru sets it.
//
// The package is pure: data in, an io.Writer out.
package iperfdoc

import (
	"cmp"
	"math"
	"time"
)

// FormatVersion is the release of iperf3 whose keys and lines are printed.
const FormatVersion = "3.21"

// Version returns the program version in a document. Scripts look for "iperf 3." or compare the second word as a number; both still work, and people see in
// parentheses which program measured.
func Version(thru string) string { return "iperf " + FormatVersion + " (thru " + thru + ")" }

// Test is what is known at the start of a test: `start` of a document and the head of the text. As in iperf3, zero stands for an unknown value.
type Test struct {
	Version string // see the function Version
	System  string // as `uname -a`
	Time    time.Time
	Host    string // that the client connects to, or that has connected to a server
	Port    int
	Server  bool // this end is the server
	Cookie  string
	Conns   []Conn // first those on which the client sends

	Protocol  string // "TCP", "UDP"
	Streams   int    // of one direction
	BlockSize int64  // bytes of a call, or of a datagram
	Omit      time.Duration
	Duration  time.Duration
	Bytes     int64 // -n
	Blocks    int64 // -k
	Reverse   bool
	Bidir     bool
	TOS       int
	Rate      int64 // requested bit/s of each stream
	FQRate    int64
	Interval  time.Duration

	MSS        int64 // of a connection
	AskedMSS   int64 // -M
	Window     int64 // requested
	SendBuffer int64 // granted
	RecvBuffer int64

	Title string
	Extra string
}

// sends reports whether this end sends in the main direction.
func (t Test) sends() bool { return t.Reverse == t.Server }

// Conn is a connection. Socket is its number in all later output: iperf3 prints file descriptors, and Socket returns similar numbers.
type Conn struct {
	Socket     int    `json:"socket"`
	LocalHost  string `json:"local_host"`
	LocalPort  int    `json:"local_port"`
	RemoteHost string `json:"remote_host"`
	RemotePort int    `json:"remote_port"`
}

// Socket returns the number of the i-th connection (from 0); in two-way traffic those on which the client sends come first.
func Socket(i int) int { return 5 + 2*i }

// Interval is one report during the test.
type Interval struct {
	Start, End time.Duration // since the start of the measured time; for an omitted one since the start of the traffic
	Omitted    bool
	Directions []Direction // one, or two for two-way traffic: first the one that the client sends
}

// Direction is one direction in an interval.
type Direction struct {
	Sends   bool // this end sends
	Sum     Part
	Streams []Part
}

// Part is one stream, or the sum of several, in an interval. Nil: not known.
type Part struct {
	Socket int
	Bytes  int64

	// TCP, at the sender.
	Retransmits *int64 // segments
	Cwnd        *int64 // bytes
	SendWindow  *int64 // bytes
	RTTUs       *int64
	RTTVarUs    *int64
	PathMTU     *int64
	Reordering  *int64

	// UDP.
	Packets  int64  // sent, or received
	Lost     *int64 // at the receiver
	JitterNs *int64
}

// Sum adds up the streams of a direction; jitter is their mean.
func Sum(streams []Part) Part {
	var all Part
	var jitter, known int64
	for _, p := range streams {
		all.Bytes += p.Bytes
		all.Packets += p.Packets
		all.Retransmits = plus(all.Retransmits, p.Retransmits)
		all.Lost = plus(all.Lost, p.Lost)
		if p.JitterNs != nil {
			jitter, known = jitter+*p.JitterNs, known+1
		}
	}
	if known > 0 {
		all.JitterNs = new(jitter / known)
	}
	return all
}

// End is what is known after a test.
type End struct {
	Directions []EndDirection // as in Interval
	Local      CPU
	Remote     CPU
	// Output of the far end, where requested: text, or its JSON document.
	ServerText string
	ServerJSON string
}

// CPU is the use of the process that moved the data, in percent of one core.
type CPU struct{ User, System float64 }

func (c CPU) total() float64 { return c.User + c.System }

// EndDirection is one direction of the whole measured time.
type EndDirection struct {
	Sends              bool          // this end sends
	Sent, Received     time.Duration // measured time of the sender and of the receiver
	HasSent            bool          // the sender's figures are known
	HasReceived        bool
	Streams            []EndStream
	SenderCongestion   string
	ReceiverCongestion string
}

// EndStream is one stream with the counts of both ends.
type EndStream struct {
	Socket         int
	Sent, Received Total
}

// Total is one end's counts of a stream, or of all.
type Total struct {
	Bytes       int64
	Retransmits *int64
	Packets     int64 // UDP: sent, or received
	Lost        int64
	OutOfOrder  int64
	JitterNs    int64
	Timeline    Timeline
}

// Timeline summarizes a sender's TCP over the intervals.
type Timeline struct {
	Known      bool  `json:"-"`
	Reordering int64 `json:"reorder"`
	MaxCwnd    int64 `json:"max_snd_cwnd"` // bytes
	MaxWindow  int64 `json:"max_snd_wnd"`  // bytes
	MaxRTT     int64 `json:"max_rtt"`      // us, like RTT
	MinRTT     int64 `json:"min_rtt"`
	MeanRTTUs  int64 `json:"mean_rtt"`
}

// sums sums both ends' counts over all streams.
func (w EndDirection) sums() (sent, received Total) {
	jitter := int64(0)
	for _, s := range w.Streams {
		sent.Bytes += s.Sent.Bytes
		sent.Packets += s.Sent.Packets
		sent.Retransmits = plus(sent.Retransmits, s.Sent.Retransmits)
		received.Bytes += s.Received.Bytes
		received.Packets += s.Received.Packets
		received.Lost += s.Received.Lost
		received.OutOfOrder += s.Received.OutOfOrder
		jitter += s.Received.JitterNs
	}
	if n := int64(len(w.Streams)); n > 0 {
		received.JitterNs = jitter / n
	}
	return sent, received
}

// plus adds two values; nil counts as nothing.
func plus(a, b *int64) *int64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(*a + *b)
}

// percent returns a share of a whole; 0 for an empty whole, as in iperf3.
func percent(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// rate returns bytes over a time in bit/s; 0 for no time.
func rate(bytes int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(bytes) * 8 / d.Seconds()
}

// finite replaces numbers that JSON cannot hold with 0.
func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}
