// Package measure holds the data types of thru: Spec describes a measurement, Evidence and Facts what one end saw, Document the result.
//
// It is pure data with versioned JSON. Keys carry their unit (_bps, _bytes, _ns, _pct). A figure that was not measured is absent, with a reason in
// not_checked; it is never zero.
package measure

import "time"

// Engines that Spec.Engine can name: thru's own, and those for another program at the far end.
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

// Kinds of traffic (Spec.Traffic). In request/response traffic the end that "sends" requests and the other one responds.
const (
	Bulk = ""    // data in one direction
	RR   = "rr"  // request and response, repeated on one connection
	CRR  = "crr" // connect, request, response, close, repeated
)

// Data paths of a flow (Spec.IO, Cell.IO).
const (
	// IOCopy copies with raw blocking system calls on locked threads (Linux).
	IOCopy = "copy"
	// IOSendfile sends the same pages again and again without a copy, as sendfile(2) does; the receiver copies.
	IOSendfile = "sendfile"
	// IOLean is IOSendfile with a receiver that makes the kernel discard the data (MSG_TRUNC, tcp(7)).
	IOLean = "lean"
	// IOGSO sends and receives several UDP datagrams as one large one that the kernel or the NIC splits (UDP_SEGMENT, UDP_GRO, udp(7)).
	IOGSO = "gso"
	// IOBatch sends and receives several UDP datagrams per call (sendmmsg(2), recvmmsg(2)).
	IOBatch = "mmsg"
	// IOPortable copies through the language's own sockets, on every system.
	IOPortable = "portable"
)

// Paths returns the data paths that Spec.IO can name for a kind of traffic.
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

// Pair is a size for each end of the data: the sender and the receiver. Zero means the system's default, and is absent in JSON.
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
	IO       string `json:"io,omitempty"`          // requested data path; empty: the best that works
	IOForced bool   `json:"io_forced,omitempty"`   // fail where that path does not work
	Streams  int    `json:"streams"`               // parallel connections
	Window   Pair   `json:"window_bytes,omitzero"` // SO_SNDBUF at the sender, SO_RCVBUF at the receiver
	Length   Pair   `json:"length_bytes,omitzero"` // bytes per send and per receive call, of a datagram, or of request and response
	Duration int64  `json:"duration_ns"`           // measured time
	Ramp     int64  `json:"ramp_ns,omitempty"`     // time before it; 0: chosen from the RTT
	NoRamp   bool   `json:"no_ramp,omitempty"`     // count from the first byte
	Interval int64  `json:"interval_ns"`           // spacing of live figures; statistics always use 1 s
	Family   int    `json:"ip_family,omitzero"`    // 4, 6, or 0: by the address

	Amount       int64   `json:"amount_bytes,omitzero"`       // end after this many bytes of all streams; Duration is then the limit
	Rate         int64   `json:"rate_bps,omitzero"`           // requested payload rate, of all streams together; 0: unlimited
	PerSecond    float64 `json:"transactions_per_s,omitzero"` // requests per second of each stream; 0: back to back
	Verify       bool    `json:"verify,omitempty"`            // the receiver compares every byte with the data sent
	DontFragment bool    `json:"dont_fragment,omitempty"`     // UDP: never fragment a datagram above the path MTU
	Search       bool    `json:"search,omitempty"`            // UDP: the rate follows the receiver's feedback (RFC 9097, type B)
	Duplex       bool    `json:"one_connection,omitempty"`    // both directions are one session: on the same connections, or as iperf3 pairs them
	LatencyProbe bool    `json:"latency_probe,omitempty"`     // these requests measure the latency during bulk data (--latency); they are no result of their own
	Unplaced     bool    `json:"unplaced,omitempty"`          // leave the CPU placement to the scheduler
	EachStream   bool    `json:"each_stream,omitempty"`       // also live figures of each stream
	FarOutput    bool    `json:"far_output,omitempty"`        // iperf3: fetch the output of the far end
	Title        string  `json:"title,omitempty"`             // iperf3 -T: title of the output
	Extra        string  `json:"extra_data,omitempty"`        // iperf3 --extra-data: stored with the result
	FirstStream  int     `json:"first_stream,omitzero"`       // number of the flow's first stream among all simultaneous ones, for placement

	Congestion   string `json:"congestion,omitempty"` // congestion control, set before connect and listen
	MSS          int    `json:"mss_bytes,omitzero"`
	NoDelay      bool   `json:"nodelay,omitempty"`
	DSCP         int    `json:"dscp,omitzero"` // 0 to 63
	SenderCPU    *int   `json:"sender_cpu,omitempty"`
	ReceiverCPU  *int   `json:"receiver_cpu,omitempty"`
	SenderCPUs   string `json:"sender_cpus,omitempty"` // CPUs that the sender's process may use, as "0-3,8"; empty: the system decides
	ReceiverCPUs string `json:"receiver_cpus,omitempty"`

	BindAddr string `json:"bind_addr,omitempty"`      // source address at the dialling end
	BindDev  string `json:"bind_dev,omitempty"`       // device at the dialling end (SO_BINDTODEVICE)
	BindPort int    `json:"bind_port,omitzero"`       // first source port at the dialling end; stream i uses BindPort+i
	DataAddr string `json:"data_addr,omitempty"`      // address to dial instead of those that the listening end offers
	MaxRate  int64  `json:"max_rate_bps,omitzero"`    // upper limit for the whole flow, in bit/s of goodput
	Capture  int64  `json:"capture_packets,omitzero"` // most packets to capture at each end; 0: no capture
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
	// DefaultLength is the size of one send or receive call.
	DefaultLength = 128 << 10
	// MinDatagram holds the sequence number and the time of sending; MaxDatagram is the most that UDP over IPv4 carries.
	MinDatagram = 16
	MaxDatagram = 65507
	MaxRate     = 10_000_000_000_000 // bit/s
	// MaxMessage is the largest request and response, in bytes.
	MaxMessage = 1 << 20
	// DefaultCapture is how many packets a capture keeps at each end, and MaxCapture its upper limit: some 40 and 250 MB.
	DefaultCapture = 300_000
	MaxCapture     = 2_000_000
	// MaxPerSecond is the highest request rate of one stream.
	MaxPerSecond = 1_000_000
)

// Bin is the length of a statistical bin (methods.md: one second; shorter ones have twice the noise).
const Bin = time.Second
