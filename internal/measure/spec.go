// Package measure is the vocabulary of thru: Spec says what to run, Evidence
// and Facts say what was seen at one end, Document says what happened.
//
// It is pure data with versioned JSON. Keys carry their unit (_bps, _bytes,
// _ns, _pct). A figure that was not measured is absent, with a reason in
// not_checked; it is never zero.
package measure

import "time"

// Engines that Spec.Engine can name: thru's own, and those that speak to
// another program at the far end.
const (
	Native = "native"
	IPerf3 = "iperf3"
	IPerf2 = "iperf2"
)

// Protocols a Spec can ask for.
const (
	TCP = "tcp"
	UDP = "udp"
)

// Kinds of traffic (Spec.Traffic). In request/response traffic the end that
// "sends" asks and the other one answers.
const (
	Bulk = ""    // data in one direction
	RR   = "rr"  // request and response, again and again on one connection
	CRR  = "crr" // connect, request, response, close, again and again
)

// IO names the data path a flow used (Spec.IO, Cell.IO).
const (
	// IOCopy is copying I/O by raw blocking system calls on locked threads (Linux).
	IOCopy = "copy"
	// IOSendfile sends a file's pages without copying them (sendfile(2)); the receiver copies.
	IOSendfile = "sendfile"
	// IOLean is IOSendfile with a receiver that lets the kernel drop the data (MSG_TRUNC, tcp(7)).
	IOLean = "lean"
	// IOGSO sends and receives UDP datagrams many at a time, as one large one that the kernel or the NIC splits (UDP_SEGMENT, UDP_GRO, udp(7)).
	IOGSO = "gso"
	// IOBatch sends and receives UDP datagrams many to a call (sendmmsg(2), recvmmsg(2)).
	IOBatch = "mmsg"
	// IOPortable is copying I/O through the language's own sockets: every system has it.
	IOPortable = "portable"
)

// Paths are the data paths that Spec.IO can name for a kind of traffic.
func Paths(protocol, traffic string) []string {
	switch {
	case traffic != Bulk:
		return []string{IOCopy, IOPortable}
	case protocol == UDP:
		return []string{IOGSO, IOBatch, IOPortable}
	default:
		return []string{IOCopy, IOSendfile, IOLean, IOPortable}
	}
}

// Pair is a size set for each direction of the data: at the end that sends
// and at the end that receives. Zero means the system's default, and is absent in JSON.
type Pair struct {
	Send int64 `json:"send_bytes,omitzero"`
	Recv int64 `json:"recv_bytes,omitzero"`
}

// Spec is one flow to measure: data goes from From to To for Duration, after
// a ramp that is not counted. Two Specs run at once are bidirectional traffic.
type Spec struct {
	From     string `json:"from"`                  // end point that sends
	To       string `json:"to"`                    // end point that receives
	DialFrom bool   `json:"dial_from"`             // the sender opens the connections; else the receiver does
	Either   bool   `json:"dial_either,omitempty"` // where that end cannot connect, the other one tries
	Engine   string `json:"engine"`                // "native", "iperf3", "iperf2"
	Protocol string `json:"protocol"`              // "tcp", "udp"
	Traffic  string `json:"traffic,omitempty"`     // "" is bulk, else "rr" or "crr"
	IO       string `json:"io,omitempty"`          // data path asked for; empty means the best that works
	IOForced bool   `json:"io_forced,omitempty"`   // that path or none
	Streams  int    `json:"streams"`               // parallel connections
	Window   Pair   `json:"window_bytes,omitzero"` // SO_SNDBUF at the sender, SO_RCVBUF at the receiver
	Length   Pair   `json:"length_bytes,omitzero"` // bytes per send and per receive call, of a datagram, or of request and response
	Duration int64  `json:"duration_ns"`           // measured time
	Ramp     int64  `json:"ramp_ns,omitempty"`     // time before it; 0 means chosen from the RTT
	NoRamp   bool   `json:"no_ramp,omitempty"`     // count from the first byte
	Interval int64  `json:"interval_ns"`           // spacing of live figures; statistics always use 1 s
	Family   int    `json:"ip_family,omitzero"`    // 4, 6, or 0 for what the address says

	Amount       int64   `json:"amount_bytes,omitzero"`       // end after so many bytes of all streams; Duration is the limit then
	Rate         int64   `json:"rate_bps,omitzero"`           // payload rate asked for, of all streams together; 0 is as fast as it goes
	PerSecond    float64 `json:"transactions_per_s,omitzero"` // rate of requests of each stream; 0 is back to back
	Verify       bool    `json:"verify,omitempty"`            // the receiver compares every byte with what was sent
	DontFragment bool    `json:"dont_fragment,omitempty"`     // UDP: never split a datagram above the path's MTU
	Search       bool    `json:"search,omitempty"`            // UDP: the rate follows the receiver's feedback (RFC 9097, type B)
	Duplex       bool    `json:"one_connection,omitempty"`    // both directions are one session: on the same connections, or as iperf3 pairs them
	LatencyProbe bool    `json:"latency_probe,omitempty"`     // these requests show the latency beside bulk data (--latency), and are no result of their own
	Unplaced     bool    `json:"unplaced,omitempty"`          // leave the choice of CPUs to the scheduler
	EachStream   bool    `json:"each_stream,omitempty"`       // live figures of each stream too
	FarOutput    bool    `json:"far_output,omitempty"`        // iperf3: ask the far end for what it printed
	Title        string  `json:"title,omitempty"`             // iperf3 -T: what the one who measures calls it
	Extra        string  `json:"extra_data,omitempty"`        // iperf3 --extra-data: kept with the result
	FirstStream  int     `json:"first_stream,omitzero"`       // number of the flow's first stream among those that run at once, for placement

	Congestion   string `json:"congestion,omitempty"` // congestion control, set before connect and listen
	MSS          int    `json:"mss_bytes,omitzero"`
	NoDelay      bool   `json:"nodelay,omitempty"`
	DSCP         int    `json:"dscp,omitzero"` // 0 to 63
	SenderCPU    *int   `json:"sender_cpu,omitempty"`
	ReceiverCPU  *int   `json:"receiver_cpu,omitempty"`
	SenderCPUs   string `json:"sender_cpus,omitempty"` // all that the sender's process may use, as "0-3,8"; empty: the system decides
	ReceiverCPUs string `json:"receiver_cpus,omitempty"`

	BindAddr string `json:"bind_addr,omitempty"`      // source address at the dialling end
	BindDev  string `json:"bind_dev,omitempty"`       // device at the dialling end (SO_BINDTODEVICE)
	BindPort int    `json:"bind_port,omitzero"`       // first source port at the dialling end; stream i uses BindPort+i
	DataAddr string `json:"data_addr,omitempty"`      // address to dial instead of those the listening end offers
	MaxRate  int64  `json:"max_rate_bps,omitzero"`    // upper bound for the whole flow, in bit/s of goodput
	Capture  int64  `json:"capture_packets,omitzero"` // packets to capture at each end, at most; 0: none
	Together bool   `json:"together,omitempty"`       // may run while other clients measure at the same end point
}

// Limits of a Spec. An agent may have lower ones.
const (
	MaxStreams  = 128
	MaxWindow   = 512 << 20 // bytes
	MaxLength   = 64 << 20  // bytes
	MaxDuration = 24 * time.Hour
	MaxRamp     = 10 * time.Minute
	MinDuration = 100 * time.Millisecond
	MinInterval = 100 * time.Millisecond
	// DefaultLength is what a stream hands to one send or receive call.
	DefaultLength = 128 << 10
	// MinDatagram is what sequence number and time of sending take of a datagram; MaxDatagram is the most that UDP over IPv4 carries.
	MinDatagram = 16
	MaxDatagram = 65507
	MaxRate     = 10_000_000_000_000 // bit/s
	// MaxMessage bounds a request and a response, in bytes.
	MaxMessage = 1 << 20
	// DefaultCapture is how many packets a capture keeps at each end, and MaxCapture
	// the most that it may: some 40 and 250 MB.
	DefaultCapture = 300_000
	MaxCapture     = 2_000_000
	// MaxPerSecond bounds the rate of requests of one stream.
	MaxPerSecond = 1_000_000
)

// Bin is the length of a statistical bin (methods.md: one second; shorter ones have twice the noise).
const Bin = time.Second
