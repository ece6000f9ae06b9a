// Package iperfdoc is iperf3's JSON document and its text: written from a
// measure.Document or from live figures for the scripts and the eyes that are
// used to them, and read into a measure.Document.
//
// Three printers take the same input (Test, Interval, End): Write prints one
// document as `iperf3 -J`, Stream a JSON object a line as `--json-stream`, and
// Layout the lines of plain iperf3. Keys, types, columns and units are those of
// iperf3 3.21, which has all that older ones have. docs/iperf3.md says what
// each key means where thru filled it.
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

// Version is what a document calls the program that wrote it. Scripts look for
// "iperf 3." or take the second word as a number to compare; both still work,
// and a person reads in the brackets who measured.
func Version(thru string) string { return "iperf " + FormatVersion + " (thru " + thru + ")" }

// Test is what is known of a test when it begins: `start` of a document and
// the head of the text. Zero is what iperf3 prints for what is not known.
type Test struct {
	Version string // see the function Version
	System  string // as `uname -a`
	Time    time.Time
	Host    string // that the client connects to, or on a server that has called
	Port    int
	Server  bool // this is the end that was called
	Cookie  string
	Conns   []Conn // of what the client sends first

	Protocol  string // "TCP", "UDP"
	Streams   int    // of one direction
	BlockSize int64  // bytes a call, or of a datagram
	Omit      time.Duration
	Duration  time.Duration
	Bytes     int64 // -n
	Blocks    int64 // -k
	Reverse   bool
	Bidir     bool
	TOS       int
	Rate      int64 // bit/s that was asked for, of each stream
	FQRate    int64
	Interval  time.Duration

	MSS        int64 // of a connection
	AskedMSS   int64 // -M
	Window     int64 // asked for
	SendBuffer int64 // granted
	RecvBuffer int64

	Title string
	Extra string
}

// sends tells whether this end sends in the main direction.
func (t Test) sends() bool { return t.Reverse == t.Server }

// Conn is a connection. Socket is its number in all that follows: iperf3's
// are file descriptors, Socket gives such as those look like.
type Conn struct {
	Socket     int    `json:"socket"`
	LocalHost  string `json:"local_host"`
	LocalPort  int    `json:"local_port"`
	RemoteHost string `json:"remote_host"`
	RemotePort int    `json:"remote_port"`
}

// Socket is the number that the i-th connection gets (from 0), of
// two-way traffic what the client sends first.
func Socket(i int) int { return 5 + 2*i }

// Interval is one report on the way.
type Interval struct {
	Start, End time.Duration // since the measured time began, or of an omitted one since the traffic did
	Omitted    bool
	Directions []Direction // one, or two for two-way traffic: what the client sends first
}

// Direction is one direction in an interval.
type Direction struct {
	Sends   bool // this end sends
	Sum     Part
	Streams []Part
}

// Part is one stream, or the sum of several, in an interval. Nil is not known.
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

// End is what is known when a test is over.
type End struct {
	Directions []EndDirection // as in Interval
	Local      CPU
	Remote     CPU
	// What the far end printed, where that was asked for: text, or its JSON document.
	ServerText string
	ServerJSON string
}

// CPU of the process that moved the data, in percent of one core.
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

// EndStream is one stream with what both ends counted.
type EndStream struct {
	Socket         int
	Sent, Received Total
}

// Total is what one end counted of a stream, or of all.
type Total struct {
	Bytes       int64
	Retransmits *int64
	Packets     int64 // UDP: sent, or received
	Lost        int64
	OutOfOrder  int64
	JitterNs    int64
	Timeline    Timeline
}

// Timeline is what a sender's TCP went through: of what the intervals showed.
type Timeline struct {
	Known      bool  `json:"-"`
	Reordering int64 `json:"reorder"`
	MaxCwnd    int64 `json:"max_snd_cwnd"` // bytes
	MaxWindow  int64 `json:"max_snd_wnd"`  // bytes
	MaxRTT     int64 `json:"max_rtt"`      // us, as the rest
	MinRTT     int64 `json:"min_rtt"`
	MeanRTTUs  int64 `json:"mean_rtt"`
}

// sums adds up what both ends counted of all streams.
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

// plus adds what is known.
func plus(a, b *int64) *int64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(*a + *b)
}

// percent is a share of a whole; 0 of nothing, as iperf3 has it.
func percent(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// rate is bytes over a time in bit/s; 0 where no time passed.
func rate(bytes int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(bytes) * 8 / d.Seconds()
}

// finite keeps what JSON cannot hold out of a document.
func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}
