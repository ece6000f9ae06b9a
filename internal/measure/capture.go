package measure

import "time"

// NotInCapture is the NotChecked.Code of a counter of an end that no capture shows.
const NotInCapture = "not_in_capture"

// ByCapture is the value of Evidence.Reported where an end is known only by its packets.
const ByCapture = "a capture"

// Capture is what the packets at one capture point show of a flow's connections. Every count lists the numbers of the first packets that it counts, so that a
// reader can look them up in the file. Packets are numbered from 1, as in Wireshark and tcpdump -#.
type Capture struct {
	EndPoint  string       `json:"end_point,omitempty"`       // end point that captured; empty for a file
	File      string       `json:"file,omitempty"`            // file that was read
	Interface string       `json:"interface,omitempty"`       // interface that the packets passed
	Place     string       `json:"place,omitempty"`           // AtSender, AtReceiver, AtPath (between them); empty: not known
	PlacedBy  string       `json:"placed_by,omitempty"`       // how the place is known
	Number    int          `json:"interface_number,omitzero"` // number in the file, where it holds several interfaces
	StartedAt time.Time    `json:"started_at"`                // time of the first packet
	SpanNs    int64        `json:"length_ns"`                 // from the first packet to the last
	Packets   int64        `json:"packets"`                   // captured packets of all kinds
	TCP       int64        `json:"tcp_packets"`               // TCP packets among them
	Snap      int          `json:"snap_bytes,omitzero"`       // bytes kept of a packet, where not all were
	MTU       int          `json:"mtu_bytes,omitzero"`        // MTU of the interface, where it is known
	Dropped   *int64       `json:"dropped_packets,omitempty"` // packets that the kernel dropped because the capture buffer was full
	Full      bool         `json:"full,omitempty"`            // the capture reached its limit: later packets are not in it
	CPUNs     *int64       `json:"cpu_ns,omitempty"`          // CPU time of the capture
	Damage    string       `json:"damage,omitempty"`          // where the file is damaged, and what was left out
	Twice     Count        `json:"captured_twice,omitzero"`   // packets captured a second time: by a span port, or on two interfaces
	BackTime  Count        `json:"clock_went_back,omitzero"`  // packets with an earlier time than the packet before
	Stepped   Count        `json:"clock_stepped,omitzero"`    // packets before which the clock jumps ahead by more than 10 minutes; all times leave these jumps out
	Others    []Tally      `json:"other_packets,omitempty"`   // packets left out, by kind
	TooBig    []TooBig     `json:"icmp_too_big,omitempty"`    // ICMP messages of routers that packets were too large
	Known     int          `json:"connections_in_file"`       // TCP connections
	Conns     []Connection `json:"connections"`               // connections of the flow, those with the most data first
	Missing   []NotChecked `json:"not_checked,omitempty"`
}

// Tally counts packets of a kind.
type Tally struct {
	What    string `json:"what"` // "ARP", "IPv4 fragments without their first"
	Packets int64  `json:"packets"`
}

// TooBig is an ICMP message that a packet was larger than the next link takes
// (RFC 792 type 3 code 4, RFC 4443 type 2).
type TooBig struct {
	Packet int64  `json:"packet"`
	From   string `json:"from"`      // router that sent the message
	MTU    int    `json:"mtu_bytes"` // next-hop MTU in the message; 0: none
	Of     string `json:"of"`        // sender of the packet that was too large, HOST:PORT
	To     string `json:"to"`
	Count  int64  `json:"count"` // equal messages
}

// Count is how often something occurs, with the numbers of the first packets that show it.
type Count struct {
	N       int64   `json:"count"`
	Bytes   int64   `json:"bytes,omitzero"`    // payload
	OnLink  int64   `json:"segments,omitzero"` // retransmissions and late data in segments as they cross a link (Direction.Segments)
	Packets []int64 `json:"packets,omitempty"` // numbers of the first MostNumbers of them
}

// MostNumbers bounds the packet numbers of a Count.
const MostNumbers = 10

// Segments returns the count in segments as they cross a link, to compare with Direction.Segments. It returns N where these were not counted.
func (c *Count) Segments() int64 { return max(c.N, c.OnLink) }

// Seen counts one more occurrence.
func (c *Count) Seen(packet int64, bytes int) {
	c.N++
	c.Bytes += int64(bytes)
	if len(c.Packets) < MostNumbers {
		c.Packets = append(c.Packets, packet)
	}
}

// Connection is one TCP connection as its packets show it. From is the end that sends the most data.
type Connection struct {
	From        string    `json:"from"`                              // HOST:PORT
	To          string    `json:"to"`                                // HOST:PORT
	Index       int       `json:"index"`                             // index among the connections of the capture, from 0, in order of appearance (Wireshark: tcp.stream)
	FirstPacket int64     `json:"first_packet"`                      // number of its first packet
	StartNs     int64     `json:"start_ns"`                          // since the capture's first packet
	SpanNs      int64     `json:"length_ns"`                         // from its first packet to its last
	FromOpened  *bool     `json:"from_opened,omitempty"`             // From sent the SYN; absent: the handshake is not in the capture
	SYN         *Opening  `json:"syn,omitempty"`                     //
	SYNACK      *Opening  `json:"synack,omitempty"`                  //
	OpenNs      *int64    `json:"handshake_rtt_ns,omitempty"`        // from the SYN to the ACK of the SYN-ACK
	OpenFarNs   *int64    `json:"synack_delay_ns,omitempty"`         // from the SYN to the SYN-ACK: its share on the responder's side of the capture
	MSS         int       `json:"mss_bytes,omitzero"`                // largest payload of a data packet that is no super-packet
	MaxPacket   int       `json:"max_segment_packet_bytes,omitzero"` // IP packet of a full segment, by the MSS of both ends with headers and options
	Data        Direction `json:"data"`                              // from From to To
	Acks        Direction `json:"acks"`                              // from To to From
	RTT         *Delay    `json:"rtt,omitempty"`                     // from data to its acknowledgement, at the capture point (Karn's rule)
	RTTBack     *Delay    `json:"rtt_back,omitempty"`                // from an acknowledgement to the data that it releases, by time stamps: the sender's side of the capture
	Flight      *Spread   `json:"in_flight_bytes,omitempty"`         // bytes sent and not acknowledged, over time
	Window      *Spread   `json:"window_bytes,omitempty"`            // window that To advertises, scaled, over time
	WindowFull  *float64  `json:"window_full_pct,omitempty"`         // share of the time in which the flight fills the window but for a segment
	Unscaled    bool      `json:"scale_unknown,omitempty"`           // the handshake is not in the capture, and nothing shows the scale of To's windows
	BurstBytes  *Spread   `json:"bursts_bytes,omitempty"`            // payload sent back to back, at most BurstGapNs apart
	GoodputBps  *float64  `json:"goodput_bps,omitempty"`             // payload delivered, over the time in which it was sent (Direction.SendNs)
	EndedBy     string    `json:"ended_by,omitempty"`                // "fin", "rst from HOST:PORT"; empty: the connection stays open
	Timeline    *Trace    `json:"course,omitempty"`                  // for the connections with the most data
}

// BurstGapNs is the longest time between two packets of one burst.
const BurstGapNs = 200_000

// Opening is a SYN or SYN-ACK.
type Opening struct {
	SYN
	Packet  int64    `json:"packet"`
	Window  int      `json:"window_bytes"`        // never scaled
	TTL     int      `json:"ttl"`                 //
	Options []string `json:"options,omitempty"`   // in order, by name: "mss", "sack-permitted", "timestamps", "nop", "window-scale"
	Again   Count    `json:"sent_again,omitzero"` // retransmissions of it
	FastTFO bool     `json:"fast_open,omitempty"` // it asks for or carries fast open (RFC 7413)
	MPTCP   bool     `json:"multipath,omitempty"` // MPTCP (RFC 8684)
}

// Direction holds the packets of one direction of a connection.
type Direction struct {
	Packets   int64  `json:"packets"`                              // as captured: one that segmentation or receive offload made counts once
	Segments  int64  `json:"segments"`                             // as they cross a link: such a packet counts as often as it holds an MSS
	Payload   int64  `json:"payload_bytes"`                        // with retransmissions
	New       int64  `json:"new_bytes"`                            // without retransmissions
	SendNs    int64  `json:"sending_ns,omitzero"`                  // from the first new payload to the last payload, new or retransmitted
	MaxPacket int    `json:"largest_packet_bytes,omitzero"`        // IP packet
	Super     Count  `json:"super_packets,omitzero"`               // packets larger than a full segment of this connection, from segmentation or receive offload
	Again     Count  `json:"sent_again,omitzero"`                  // retransmissions of all kinds
	Fast      Count  `json:"sent_again_fast,omitzero"`             // fast retransmissions, after duplicate acknowledgements or SACK showed the gap
	Timeout   Count  `json:"sent_again_timeout,omitzero"`          // retransmissions after at least 200 ms of silence, without a sign of a gap
	Tail      Count  `json:"sent_again_probe,omitzero"`            // last segment retransmitted after about two round trips: a tail loss probe (RFC 8985)
	Wake      Count  `json:"sent_again_after_timeout,omitzero"`    // further retransmissions of data that a timeout gave up for lost, as acknowledgements arrive again
	Spurious  Count  `json:"sent_again_spurious,omitzero"`         // spurious retransmissions: the data was acknowledged already, or a D-SACK says that it arrived twice
	Late      Count  `json:"out_of_order,omitzero"`                // arrived after later data without a retransmission
	LateMost  int    `json:"out_of_order_extent_packets,omitzero"` // how many packets the latest of them is behind
	SACKLate  Count  `json:"sacked_late,omitzero"`                 // acknowledgements of data that SACK had left out and that was not retransmitted: it arrived after later data
	SACKMost  int64  `json:"sacked_late_extent_bytes,omitzero"`    // most bytes of later data that arrived before it
	Gaps      Count  `json:"gaps,omitzero"`                        // first packets after a gap in the sequence: lost before the capture, late, or not captured
	Unseen    Count  `json:"acknowledged_unseen,omitzero"`         // acknowledged data that is not in the capture: the capture misses packets
	DupAcks   Count  `json:"duplicate_acks,omitzero"`              //
	DSACK     Count  `json:"dsack,omitzero"`                       // reports that data had arrived already (RFC 2883)
	SACKed    Count  `json:"sack_blocks,omitzero"`                 // acknowledgements with SACK blocks
	Zero      Count  `json:"zero_windows,omitzero"`                // of this side's receive window
	ZeroNs    int64  `json:"zero_window_ns,omitzero"`              // time for which this window was closed
	Probes    Count  `json:"zero_window_probes,omitzero"`          // probes sent while the other side's window is closed
	KeepAlive Count  `json:"keep_alives,omitzero"`                 //
	Filled    Count  `json:"window_filled,omitzero"`               // packets that fill the other side's window
	ECT       int64  `json:"ecn_capable_packets,omitzero"`         // ECT(0), ECT(1) or CE in the IP header
	CE        Count  `json:"ce_marked,omitzero"`                   // congestion experienced
	ECE       Count  `json:"ecn_echo,omitzero"`                    // TCP flag: CE arrived
	CWR       Count  `json:"cwr,omitzero"`                         //
	RST       Count  `json:"rst,omitzero"`                         //
	TTLs      []int  `json:"ttls,omitempty"`                       // TTLs seen, the most frequent first, four at most
	DontFrag  int64  `json:"dont_fragment_packets,omitzero"`       //
	Fragments Count  `json:"ip_fragments,omitzero"`                //
	Cut       int64  `json:"cut_headers,omitzero"`                 // packets whose TCP options the snap length cut
	WindowMin *int64 `json:"window_min_bytes,omitempty"`           // smallest window that this side advertises after the handshake, scaled
	WindowMax *int64 `json:"window_max_bytes,omitempty"`           // largest such window
	BusyMs    int64  `json:"busy_ms,omitzero"`                     // milliseconds in which payload passed
}

// Ignored returns how many bytes of From's payload reached the capture point again although nothing had acknowledged them. At the receiver's interface these
// are bytes that the receiver's own host dropped after the capture. It returns 0 where the receiver cannot report data beyond a gap (SACK): then the sender
// repeats that data too.
func (c *Connection) Ignored() int64 {
	if c.Data.Gaps.N > 0 && c.Acks.SACKed.N == 0 {
		return 0
	}
	return max(0, c.Data.Payload-c.Data.New-c.Data.Spurious.Bytes)
}

// Delay is a distribution of delays. With very many delays, the quantiles are those of a sample.
type Delay struct {
	Min     int64 `json:"min_ns"`
	P50     int64 `json:"p50_ns"`
	P90     int64 `json:"p90_ns"`
	P99     int64 `json:"p99_ns"`
	Max     int64 `json:"max_ns"`
	Samples int64 `json:"samples"`
}

// Trace is the time line of a connection, for a chart. It cuts the time into steps of equal length. Sequence numbers count from the first byte of the data. A
// step without a value holds -1. All lists but Again and Late have the same length.
type Trace struct {
	StepNs int64        `json:"step_ns"`
	Sent   []int64      `json:"sent_bytes"`             // highest sequence number sent until the end of the step
	Acked  []int64      `json:"acknowledged_bytes"`     // highest acknowledged
	Edge   []int64      `json:"window_edge_bytes"`      // acknowledged bytes plus the window
	Flight []int64      `json:"in_flight_bytes"`        // largest in the step
	Window []int64      `json:"window_bytes"`           // smallest in the step
	RTT    []int64      `json:"rtt_ns"`                 // mean in the step
	Again  []PacketMark `json:"sent_again,omitempty"`   // at most MostMarks
	Late   []PacketMark `json:"out_of_order,omitempty"` // at most MostMarks
}

// Bounds of a Trace.
const (
	TraceSteps = 600
	MostMarks  = 400
)

// PacketMark is one packet in a Trace.
type PacketMark struct {
	AtNs   int64 `json:"at_ns"` // since the connection's first packet
	Seq    int64 `json:"seq_bytes"`
	Packet int64 `json:"packet"`
}

// Crossing compares two captures of one flow: what left one place and arrived at the other. Left is the capture nearer to the sender.
type Crossing struct {
	Left     int           `json:"left_capture"`    // index in Flow.Captures
	Right    int           `json:"right_capture"`   // index
	OffsetNs int64         `json:"clock_offset_ns"` // right clock minus left clock, at the first packet in both
	BoundNs  int64         `json:"clock_bound_ns"`  // at least one tick of the time stamps
	Conns    []CrossedConn `json:"connections"`
	Missing  []NotChecked  `json:"not_checked,omitempty"`
}

// CrossedConn is one connection that both captures hold.
type CrossedConn struct {
	LeftIndex  int      `json:"left_index"`  // Connection.Index in the left capture
	RightIndex int      `json:"right_index"` //
	Data       Crossed  `json:"data"`
	Acks       Crossed  `json:"acks"`
	Changed    []Change `json:"changed,omitempty"` // what a device between them rewrote
}

// Crossed compares one direction: data leaves at the left, its acknowledgements at the right. Bytes count each transmission; those of a lost packet are the
// bytes that did not arrive. Packet numbers are those of the capture that the packets pass first, for Late and Doubled those of the other one. In the size
// classes a packet is lost where nothing of that transmission arrived; for Lost a missing part is enough.
type Crossed struct {
	Sent       int64  `json:"sent_bytes"`                  // left the first place, in the time of both captures
	Arrived    int64  `json:"arrived_bytes"`               //
	Lost       Count  `json:"lost,omitzero"`               // packets of which a part did not arrive, by their number in the first capture
	SuperSent  Count  `json:"super_packets,omitzero"`      // packets larger than a full segment, as they left
	SuperLost  Count  `json:"super_packets_lost,omitzero"` // of these, transmissions that did not arrive
	SingleSent Count  `json:"single_segments,omitzero"`
	SingleLost Count  `json:"single_segments_lost,omitzero"`
	FullSent   Count  `json:"full_segments,omitzero"`      // single segments as large as the MSS allows
	FullLost   Count  `json:"full_segments_lost,omitzero"` //
	SmallSent  Count  `json:"small_segments,omitzero"`     // single segments of at most half that size, with payload or without
	SmallLost  Count  `json:"small_segments_lost,omitzero"`
	MaxArrived int    `json:"largest_segment_arrived_bytes,omitzero"` // IP packet
	Late       Count  `json:"overtaken,omitzero"`                     // arrived out of order, by their number where they arrived
	Doubled    Count  `json:"doubled,omitzero"`                       // sent once and arrived twice, likewise
	Delay      *Delay `json:"delay,omitempty"`                        // one-way delay, by the clock offset
}

// Change is a field that left as one value and arrived as another.
type Change struct {
	What    string  `json:"what"` // "syn mss", "syn window-scale", "synack sack-permitted", "data ttl", "sequence numbers", "ports", "dscp"
	Left    string  `json:"left"`
	Arrived string  `json:"arrived"`
	Packets []int64 `json:"packets,omitempty"` // numbers: in the left capture, in the right one
}
