package measure

import "time"

// Reasons why what an end itself counts is not checked of captures.
const (
	NotInCapture     = "a capture does not show it"
	ReadNotInCapture = "a capture shows what was acknowledged, not what the program read"
)

// ByCapture is who reports the evidence of an end that is known by its packets
// only (Evidence.Reported).
const ByCapture = "a capture"

// Capture is what the packets at one place tell of a flow's connections. Every
// count comes with the numbers of the first packets that it was taken from, so
// that it can be looked up in the file (packets are counted from 1, as Wireshark
// and tcpdump -# do).
type Capture struct {
	EndPoint  string       `json:"end_point,omitempty"`       // end point that captured; none of a file
	File      string       `json:"file,omitempty"`            // that was read
	Interface string       `json:"interface,omitempty"`       // that the packets passed
	Place     string       `json:"place,omitempty"`           // AtSender, AtReceiver, AtPath (between them); empty: not known
	PlacedBy  string       `json:"placed_by,omitempty"`       // what tells the place
	Number    int          `json:"interface_number,omitzero"` // in the file, where it holds several
	StartedAt time.Time    `json:"started_at"`                // of the first packet
	SpanNs    int64        `json:"length_ns"`                 // from the first packet to the last
	Packets   int64        `json:"packets"`                   // captured, of all kinds
	TCP       int64        `json:"tcp_packets"`               // of these, of TCP
	Snap      int          `json:"snap_bytes,omitzero"`       // bytes kept of a packet, where not all were
	MTU       int          `json:"mtu_bytes,omitzero"`        // of the interface, where it is known
	Dropped   *int64       `json:"dropped_packets,omitempty"` // that the kernel could not keep for want of room
	Full      bool         `json:"full,omitempty"`            // its bound was reached: later packets are not in it
	CPUNs     *int64       `json:"cpu_ns,omitempty"`          // what capturing cost
	Damage    string       `json:"damage,omitempty"`          // where the file broke, and what was left out
	Twice     Count        `json:"captured_twice,omitzero"`   // packets that were captured a second time: span port, or two interfaces
	BackTime  Count        `json:"clock_went_back,omitzero"`  // packets with a time before that of the packet before
	Stepped   Count        `json:"clock_stepped,omitzero"`    // packets before which the clock was set ahead by more than 10 minutes, which are left out of all times
	Others    []Tally      `json:"other_packets,omitempty"`   // what was left out, by kind
	TooBig    []TooBig     `json:"icmp_too_big,omitempty"`    // routers' word that packets were too large
	Known     int          `json:"connections_in_file"`       // of TCP
	Conns     []Connection `json:"connections"`               // of the flow, those with the most data first
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
	From   string `json:"from"`      // router
	MTU    int    `json:"mtu_bytes"` // that it names; 0: none
	Of     string `json:"of"`        // sender of the packet that was too large, HOST:PORT
	To     string `json:"to"`
	Count  int64  `json:"count"` // equal messages
}

// Count is how often something was seen, and in which packets first.
type Count struct {
	N       int64   `json:"count"`
	Bytes   int64   `json:"bytes,omitzero"`    // payload
	OnLink  int64   `json:"segments,omitzero"` // as they cross a link (Way.Segments), of data that was sent again or came late
	Packets []int64 `json:"packets,omitempty"` // numbers of the first MostNumbers of them
}

// MostNumbers bounds the packet numbers of a Count.
const MostNumbers = 10

// Segments is how often it was seen in segments as they cross a link: what is
// to be compared with Way.Segments. Where they were not counted it is N.
func (c *Count) Segments() int64 { return max(c.N, c.OnLink) }

// Seen counts one more.
func (c *Count) Seen(packet int64, bytes int) {
	c.N++
	c.Bytes += int64(bytes)
	if len(c.Packets) < MostNumbers {
		c.Packets = append(c.Packets, packet)
	}
}

// Connection is one connection of TCP as its packets show it. From is the end
// that sends the most data.
type Connection struct {
	From        string    `json:"from"`                              // HOST:PORT
	To          string    `json:"to"`                                // HOST:PORT
	Index       int       `json:"index"`                             // among those of the capture, from 0, in order of appearance (Wireshark: tcp.stream)
	FirstPacket int64     `json:"first_packet"`                      // its number
	StartNs     int64     `json:"start_ns"`                          // since the capture's first packet
	SpanNs      int64     `json:"length_ns"`                         // from its first packet to its last
	FromOpened  *bool     `json:"from_opened,omitempty"`             // From sent the SYN; absent: the handshake is not in the capture
	SYN         *Opening  `json:"syn,omitempty"`                     //
	SYNACK      *Opening  `json:"synack,omitempty"`                  //
	OpenNs      *int64    `json:"handshake_rtt_ns,omitempty"`        // from the SYN to the ACK of the SYN-ACK
	OpenFarNs   *int64    `json:"synack_delay_ns,omitempty"`         // from the SYN to the SYN-ACK: the part of it on the answerer's side of the capture
	MSS         int       `json:"mss_bytes,omitzero"`                // largest payload of a packet that is no super-packet, of the data
	MaxPacket   int       `json:"max_segment_packet_bytes,omitzero"` // IP packet of a full segment: what the MSS of both ends comes to with headers and options
	Data        Direction `json:"data"`                              // from From to To
	Acks        Direction `json:"acks"`                              // from To to From
	RTT         *Delay    `json:"rtt,omitempty"`                     // from data to its acknowledgement, at the place of the capture (Karn's rule)
	RTTBack     *Delay    `json:"rtt_back,omitempty"`                // from an acknowledgement to the data that it let go, by time stamps: the sender's side of the capture
	Flight      *Spread   `json:"in_flight_bytes,omitempty"`         // sent and not acknowledged, over time
	Window      *Spread   `json:"window_bytes,omitempty"`            // that To advertised, scaled, over time
	WindowFull  *float64  `json:"window_full_pct,omitempty"`         // share of the time in which the flight filled the window but for a segment
	Unscaled    bool      `json:"scale_unknown,omitempty"`           // the handshake is not in the capture, and nothing tells the scale of To's windows
	BurstBytes  *Spread   `json:"bursts_bytes,omitempty"`            // payload sent back to back: less than BurstGapNs apart
	GoodputBps  *float64  `json:"goodput_bps,omitempty"`             // payload that was delivered, over the time in which it was sent (Way.SendNs)
	EndedBy     string    `json:"ended_by,omitempty"`                // "fin", "rst from HOST:PORT"; empty: it went on
	Timeline    *Trace    `json:"course,omitempty"`                  // of the connections with the most data
}

// BurstGapNs is the time between two packets of one burst, at most.
const BurstGapNs = 200_000

// Opening is a SYN or SYN-ACK.
type Opening struct {
	SYN
	Packet  int64    `json:"packet"`
	Window  int      `json:"window_bytes"`        // never scaled
	TTL     int      `json:"ttl"`                 //
	Options []string `json:"options,omitempty"`   // in order, by name: "mss", "sack-permitted", "timestamps", "nop", "window-scale"
	Again   Count    `json:"sent_again,omitzero"` // copies of it
	FastTFO bool     `json:"fast_open,omitempty"` // it asks for or carries fast open (RFC 7413)
	MPTCP   bool     `json:"multipath,omitempty"` // MPTCP (RFC 8684)
}

// Direction are the packets of one direction of a connection.
type Direction struct {
	Packets   int64  `json:"packets"`                              // as captured: one that segmentation or receive offload made counts once
	Segments  int64  `json:"segments"`                             // as they cross a link: such a packet counts as often as it holds an MSS
	Payload   int64  `json:"payload_bytes"`                        // with what was sent again
	New       int64  `json:"new_bytes"`                            // without
	SendNs    int64  `json:"sending_ns,omitzero"`                  // from the first new payload to the last that was sent, new or again
	MaxPacket int    `json:"largest_packet_bytes,omitzero"`        // IP packet
	Super     Count  `json:"super_packets,omitzero"`               // larger than a full segment of this connection: of segmentation or receive offload
	Again     Count  `json:"sent_again,omitzero"`                  // all kinds
	Fast      Count  `json:"sent_again_fast,omitzero"`             // after duplicate acknowledgements or SACK told of the gap
	Timeout   Count  `json:"sent_again_timeout,omitzero"`          // after at least 200 ms of silence, nothing having told of a gap
	Tail      Count  `json:"sent_again_probe,omitzero"`            // the last segment again, after about two round trips: a tail loss probe (RFC 8985)
	Wake      Count  `json:"sent_again_after_timeout,omitzero"`    // more of what a timeout gave up for lost, as acknowledgements came again
	Spurious  Count  `json:"sent_again_spurious,omitzero"`         // it had been acknowledged already, or a D-SACK says that it arrived twice
	Late      Count  `json:"out_of_order,omitzero"`                // came after later data without having been sent again
	LateMost  int    `json:"out_of_order_extent_packets,omitzero"` // how many packets the latest of them was behind
	SACKLate  Count  `json:"sacked_late,omitzero"`                 // acknowledgements of data that SACK had left out, and that was not sent again: it came after later data
	SACKMost  int64  `json:"sacked_late_extent_bytes,omitzero"`    // how much later data the latest of it came after
	Gaps      Count  `json:"gaps,omitzero"`                        // first packets after missing data: lost before the capture, late, or not captured
	Unseen    Count  `json:"acknowledged_unseen,omitzero"`         // data was acknowledged that the capture does not have: it misses packets
	DupAcks   Count  `json:"duplicate_acks,omitzero"`              //
	DSACK     Count  `json:"dsack,omitzero"`                       // words that data had arrived already (RFC 2883)
	SACKed    Count  `json:"sack_blocks,omitzero"`                 // acknowledgements with SACK blocks
	Zero      Count  `json:"zero_windows,omitzero"`                // of this side's receive window
	ZeroNs    int64  `json:"zero_window_ns,omitzero"`              // time that it was closed
	Probes    Count  `json:"zero_window_probes,omitzero"`          // sent against the other side's closed window
	KeepAlive Count  `json:"keep_alives,omitzero"`                 //
	Filled    Count  `json:"window_filled,omitzero"`               // packets that used up the other side's window
	ECT       int64  `json:"ecn_capable_packets,omitzero"`         // ECT(0), ECT(1) or CE in the IP header
	CE        Count  `json:"ce_marked,omitzero"`                   // congestion experienced
	ECE       Count  `json:"ecn_echo,omitzero"`                    // the header's word that CE arrived
	CWR       Count  `json:"cwr,omitzero"`                         //
	RST       Count  `json:"rst,omitzero"`                         //
	TTLs      []int  `json:"ttls,omitempty"`                       // that were seen, the most frequent first, four at most
	DontFrag  int64  `json:"dont_fragment_packets,omitzero"`       //
	Fragments Count  `json:"ip_fragments,omitzero"`                //
	Cut       int64  `json:"cut_headers,omitzero"`                 // the snap length cut options of the TCP header
	WindowMin *int64 `json:"window_min_bytes,omitempty"`           // least that this side advertised after the handshake, scaled
	WindowMax *int64 `json:"window_max_bytes,omitempty"`           // greatest
	BusyMs    int64  `json:"busy_ms,omitzero"`                     // milliseconds in which payload passed
}

// Ignored is how much of From's payload came to the place of the capture once more
// though no word of it had gone back, in bytes. At the receiver's interface that is
// what the receiver's own host dropped behind it. It is 0 where the receiver cannot
// tell of what lies behind a gap (SACK), which the sender then repeats, too.
func (c *Connection) Ignored() int64 {
	if c.Data.Gaps.N > 0 && c.Acks.SACKed.N == 0 {
		return 0
	}
	return max(0, c.Data.Payload-c.Data.New-c.Data.Spurious.Bytes)
}

// Delay is a distribution of delays. The quantiles are those of a sample where
// there are very many.
type Delay struct {
	Min     int64 `json:"min_ns"`
	P50     int64 `json:"p50_ns"`
	P90     int64 `json:"p90_ns"`
	P99     int64 `json:"p99_ns"`
	Max     int64 `json:"max_ns"`
	Samples int64 `json:"samples"`
}

// Trace is the course of a connection, to be drawn: its time is cut into steps
// of equal length. Sequence numbers count from the first byte of the data.
// Where a step has no value it is -1. All lists but Again and Late have
// the same length.
type Trace struct {
	StepNs int64        `json:"step_ns"`
	Sent   []int64      `json:"sent_bytes"`             // highest sequence number sent until the end of the step
	Acked  []int64      `json:"acknowledged_bytes"`     // highest acknowledged
	Edge   []int64      `json:"window_edge_bytes"`      // acknowledged and the window on top
	Flight []int64      `json:"in_flight_bytes"`        // the most in the step
	Window []int64      `json:"window_bytes"`           // the least in the step
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

// Crossing is what two captures of one flow tell together: what left one place
// and came to the other. Left is the capture nearer to the sender.
type Crossing struct {
	Left     int           `json:"left_capture"`    // index in Flow.Captures
	Right    int           `json:"right_capture"`   // index
	OffsetNs int64         `json:"clock_offset_ns"` // the right clock less the left one, at the first packet that both have
	BoundNs  int64         `json:"clock_bound_ns"`  // a tick of the time stamps at least
	Conns    []CrossedConn `json:"connections"`
	Missing  []NotChecked  `json:"not_checked,omitempty"`
}

// CrossedConn is one connection of both captures.
type CrossedConn struct {
	LeftIndex  int      `json:"left_index"`  // Connection.Index in the left capture
	RightIndex int      `json:"right_index"` //
	Data       Crossed  `json:"data"`
	Acks       Crossed  `json:"acks"`
	Changed    []Change `json:"changed,omitempty"` // what a device between them rewrote
}

// Crossed compares one direction: the data leaves at the left, its
// acknowledgements at the right. Bytes count each time they were sent; those of
// what was lost are the bytes that did not arrive. Packets are numbered as in the
// capture that they passed first, those of Late and Doubled as in the other one.
// One of a class is lost where nothing of it arrived the time that it left; for
// Lost a part is enough.
type Crossed struct {
	Sent       int64  `json:"sent_bytes"`                  // that left the first place, in the time of both captures
	Arrived    int64  `json:"arrived_bytes"`               //
	Lost       Count  `json:"lost,omitzero"`               // packets of which a part left and did not arrive, by their number in the first capture
	SuperSent  Count  `json:"super_packets,omitzero"`      // larger than a full segment, as they left
	SuperLost  Count  `json:"super_packets_lost,omitzero"` // of these, those that did not arrive the time that they left
	SingleSent Count  `json:"single_segments,omitzero"`
	SingleLost Count  `json:"single_segments_lost,omitzero"`
	FullSent   Count  `json:"full_segments,omitzero"`      // single segments as large as the MSS allows
	FullLost   Count  `json:"full_segments_lost,omitzero"` //
	SmallSent  Count  `json:"small_segments,omitzero"`     // single segments of at most half of that, with payload or without
	SmallLost  Count  `json:"small_segments_lost,omitzero"`
	MaxArrived int    `json:"largest_segment_arrived_bytes,omitzero"` // IP packet
	Late       Count  `json:"overtaken,omitzero"`                     // arrived in another order than they left, by their number where they arrived
	Doubled    Count  `json:"doubled,omitzero"`                       // left once and arrived twice, likewise
	Delay      *Delay `json:"delay,omitempty"`                        // one way, by the clock offset
}

// Change is a field that left as one value and arrived as another.
type Change struct {
	What    string  `json:"what"` // "syn mss", "syn window-scale", "synack sack-permitted", "data ttl", "sequence numbers", "ports", "dscp"
	Left    string  `json:"left"`
	Arrived string  `json:"arrived"`
	Packets []int64 `json:"packets,omitempty"` // numbers: in the left capture, in the right one
}
