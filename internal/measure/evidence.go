package measure

// Evidence is what one end of one flow saw. Both ends of every flow are kept
// with the result, so that a diagnosis can be replayed from a file.
type Evidence struct {
	EndPoint  string `json:"end_point"`             // name of the end point
	Reported  string `json:"reported_by,omitempty"` // program that reported these figures, such as "iperf3 3.12"; empty: thru measured them
	Sends     bool   `json:"sends"`                 // this end sent the data
	Dialled   bool   `json:"dialled"`               // this end opened the connections
	IO        string `json:"io"`                    // data path used
	LocalAddr string `json:"local_addr,omitempty"`  // of the first stream
	PeerAddr  string `json:"peer_addr,omitempty"`
	Route     *Route `json:"route,omitempty"` // how this end reaches the peer

	CPUs    string `json:"cpus,omitempty"`     // CPUs that its process is confined to (Spec.SenderCPUs), as "0-3"
	RTTIdle *RTT   `json:"rtt_idle,omitempty"` // socket to socket, before the traffic; at the dialling end

	RampNs     int64  `json:"ramp_ns"`              // from the first byte to the start of the measured time
	RampBytes  *int64 `json:"ramp_bytes,omitempty"` // of all streams in that time; absent: not counted separately
	MeasuredNs int64  `json:"measured_ns"`          // length of the measured time on this end's monotonic clock
	BeganNs    *int64 `json:"began_ns,omitempty"`   // start of the measured time on the clock that the end point's agent reports
	Bytes      int64  `json:"bytes"`                // payload in the measured time
	TotalBytes int64  `json:"total_bytes"`          // payload over the whole life of the connections

	Latency *Latency `json:"latency,omitempty"` // of the requests in the measured time, at the requesting end
	// DelayHistogram is the distribution of a sample of the datagrams' delay variation (PDV) in the measured time, of all streams, encoded like
	// Latency.Histogram; at the receiver.
	DelayHistogram string       `json:"delay_variation_histogram,omitempty"`
	Worker         *Process     `json:"worker,omitempty"` // the process that moved the data, in the measured time
	Streams        []Stream     `json:"streams"`
	Bins           []StreamBin  `json:"bins"` // one per second of the measured time
	Host           *HostSpan    `json:"host,omitempty"`
	PerSec         []HostSpan   `json:"host_per_second,omitempty"`
	Base           *HostSpan    `json:"host_idle_baseline,omitempty"` // without a test, read after the traffic
	Output         string       `json:"output,omitempty"`             // output of a program at this end, where requested
	Error          string       `json:"error,omitempty"`              // why this end stopped early
	Missing        []NotChecked `json:"not_checked,omitempty"`
}

// Route is the interface and next hop towards an address, as the kernel selects it.
type Route struct {
	Interface string `json:"interface"`
	Gateway   string `json:"gateway,omitempty"`
	Source    string `json:"source,omitempty"`
	MTU       int    `json:"mtu_bytes,omitzero"`
	// NextHops are all next hops of a multipath route. Interface and Gateway are the one that a flow without ports takes; Hash selects among them.
	NextHops []NextHop `json:"next_hops,omitempty"`
	Hash     string    `json:"hash_policy,omitempty"` // HashLayer3, HashLayer4 and others; empty: not known
}

// NextHop is one of several next hops of a route (ECMP).
type NextHop struct {
	Interface string `json:"interface"`
	Gateway   string `json:"gateway,omitempty"`
	Weight    int    `json:"weight"` // its share among all weights
}

// String returns "10.0.0.1 by eth0".
func (n NextHop) String() string {
	if n.Gateway == "" {
		return n.Interface
	}
	return n.Gateway + " by " + n.Interface
}

// Hash policies that select a next hop (Linux Documentation/networking/ip-sysctl.rst, fib_multipath_hash_policy).
const (
	HashLayer3 = "layer3"       // addresses alone: all flows between two hosts take one next hop
	HashLayer4 = "layer3+4"     // addresses and ports
	HashInner  = "inner layer3" // addresses inside a tunnel
	HashCustom = "custom"       // fields that the operator has configured
)

// RTT is a distribution of round-trip times of a small message over an idle connection.
type RTT struct {
	Min     int64 `json:"min_ns"`
	Median  int64 `json:"median_ns"`
	Max     int64 `json:"max_ns"`
	Samples int   `json:"samples"`
}

// Stream is one connection: its requested, set and granted options, and its final counters.
type Stream struct {
	Index      int       `json:"index"`
	Local      string    `json:"local"`
	Peer       string    `json:"peer"`
	Bytes      int64     `json:"bytes"`       // in the measured time
	TotalBytes int64     `json:"total_bytes"` // over its life
	Calls      int64     `json:"calls"`       // send or receive calls in the measured time
	Window     Buffer    `json:"window"`
	Length     int64     `json:"length_bytes"` // bytes per call
	Congestion string    `json:"congestion,omitempty"`
	MSS        int       `json:"mss_bytes,omitzero"`
	CPU        *int      `json:"cpu,omitempty"`      // CPU the thread is bound to
	Placed     string    `json:"placed,omitempty"`   // why this CPU, where the user chose none
	PacedBy    string    `json:"paced_by,omitempty"` // "kernel" or "thru", where there is a rate limit
	BlockedNs  *int64    `json:"blocked_ns,omitempty"`
	RunNs      *int64    `json:"cpu_ns,omitempty"`
	WaitNs     *int64    `json:"runqueue_ns,omitempty"`
	TCP        *TCPInfo  `json:"tcp,omitempty"` // at the end of the measured time
	TCPStart   *TCPInfo  `json:"tcp_at_start,omitempty"`
	TCPEnd     *TCPInfo  `json:"tcp_at_close,omitempty"`
	Timeline   *Timeline `json:"course,omitempty"` // of the measured time, from readings far more frequent than once a second
	Error      string    `json:"error,omitempty"`

	Datagrams    *Datagrams `json:"datagrams,omitempty"`     // UDP: in the measured time
	DatagramsAll *Datagrams `json:"datagrams_all,omitempty"` // UDP: over its life
	Requests     int64      `json:"requests,omitzero"`       // request/response: transactions in the measured time
	Checked      *Checked   `json:"verified,omitempty"`      // where the data was verified
}

// Addresses are the ends of a connection, HOST:PORT.
type Addresses struct {
	Local string `json:"local"`
	Peer  string `json:"peer"`
	MSS   int    `json:"mss_bytes,omitzero"` // MSS of TCP, where the kernel reports it
}

// Tick is one stream in one interval of the live figures (Spec.EachStream). Figures that an end or a kernel does not report are absent.
type Tick struct {
	Bytes       int64  `json:"bytes"`
	Sends       bool   `json:"sends,omitempty"`
	Retransmits *int64 `json:"retransmits,omitempty"` // segments, at the sender
	Cwnd        *int64 `json:"cwnd_bytes,omitempty"`
	SendWindow  *int64 `json:"send_window_bytes,omitempty"` // the receive window of the peer
	ReordSeen   *int64 `json:"reord_seen,omitempty"`
	RTT         *int64 `json:"rtt_ns,omitempty"`
	RTTVar      *int64 `json:"rtt_variation_ns,omitempty"`
	PathMTU     *int64 `json:"path_mtu_bytes,omitempty"`
	Packets     int64  `json:"packets,omitzero"` // datagrams
	Lost        int64  `json:"lost,omitzero"`
	Reordered   int64  `json:"reordered,omitzero"`
	JitterNs    *int64 `json:"jitter_ns,omitempty"`
}

// Datagrams are the counts of one end of a UDP stream. The sender knows only Packets and SendErrors. A gap in the sequence numbers counts as loss until the
// datagram arrives.
type Datagrams struct {
	Packets     int64    `json:"packets"`                           // sent, or received without duplicates
	Lost        int64    `json:"lost"`                              // numbers skipped and not received since
	Duplicates  int64    `json:"duplicates"`                        // numbers received again
	Reordered   int64    `json:"reordered"`                         // arrived after a higher number (RFC 4737)
	ReorderMost int64    `json:"reorder_extent_packets,omitzero"`   // how many numbers the latest of them is behind
	JitterNs    *int64   `json:"jitter_ns,omitempty"`               // RFC 3550, section 6.4.1, at the end of the span
	IPDVMeanNs  *int64   `json:"ipdv_mean_ns,omitempty"`            // delay difference between a datagram and the one before it, without sign (RFC 5481, IPDV; D of RFC 3550)
	DelayMeanNs *int64   `json:"delay_variation_mean_ns,omitempty"` // one-way delay minus the least one of the test (RFC 5481, PDV); corrected for clock skew for a stream, not for a second
	DelayMaxNs  *int64   `json:"delay_variation_max_ns,omitempty"`  // the same
	SkewPPM     *float64 `json:"clock_skew_ppm,omitempty"`          // skew removed: how much faster the receiver's clock runs than the sender's; absent where the least delays do not fit a line
	SocketDrops *int64   `json:"socket_drops,omitempty"`            // datagrams dropped because the receiver's socket buffer was full (SO_MEMINFO)
	SendErrors  int64    `json:"send_errors,omitzero"`              // datagrams that the kernel refused to send for lack of buffers
	Foreign     int64    `json:"foreign_packets,omitzero"`          // datagrams that do not belong to this test
}

// Checked is how much of the data was compared with what was sent.
type Checked struct {
	Bytes      int64  `json:"bytes"`                      // compared, over the life of the stream
	WrongBytes int64  `json:"wrong_bytes"`                // of these, different
	FirstWrong *int64 `json:"first_wrong_byte,omitempty"` // offset in the stream, or number of the datagram
}

// Latency is a distribution of the time from request to response. With a requested rate, the time counts from when the request was due, so that a stall shows
// in all requests that it delays.
type Latency struct {
	Count  int64 `json:"count"`
	Min    int64 `json:"min_ns"`
	Mean   int64 `json:"mean_ns"`
	P50    int64 `json:"p50_ns"`
	P90    int64 `json:"p90_ns"`
	P99    int64 `json:"p99_ns"`
	P999   int64 `json:"p99_9_ns"`
	P9999  int64 `json:"p99_99_ns"`
	Max    int64 `json:"max_ns"`
	Errors int64 `json:"errors,omitzero"` // requests without a response in time
	// Histogram is the whole distribution in HdrHistogram's V2 encoding, compressed, base64.
	Histogram string `json:"histogram,omitempty"`
}

// Buffer is a socket buffer in bytes: the size that the user requested, the size passed to the kernel, and the size that the kernel reports afterwards. Linux
// reports twice the usable size (socket(7), SO_SNDBUF), so Usable is half of it.
type Buffer struct {
	Asked   int64 `json:"asked_bytes,omitzero"` // 0: the default
	Set     int64 `json:"set_bytes,omitzero"`
	Granted int64 `json:"granted_bytes,omitzero"`
	Usable  int64 `json:"usable_bytes,omitzero"`
	Cut     bool  `json:"cut,omitempty"` // the kernel granted less than requested
}

// Timeline summarizes many readings of a connection in the measured time (struct tcp_info, SIOCINQ), which show what one reading a second misses. A figure
// that the kernel does not report is absent.
type Timeline struct {
	Samples    int      `json:"samples"`                           // readings
	Every      int64    `json:"spacing_ns"`                        // mean time between readings
	InFlight   *Spread  `json:"in_flight_segments,omitempty"`      // sent and not acknowledged, without those known to be lost or received (unacked - sacked - lost + retrans)
	Cwnd       *Spread  `json:"snd_cwnd_segments,omitempty"`       // congestion window
	NotSent    *Spread  `json:"notsent_bytes,omitempty"`           // in the socket, not sent yet
	SendWnd    *Spread  `json:"snd_wnd_bytes,omitempty"`           // window that the peer advertises
	RecvWnd    *Spread  `json:"rcv_wnd_bytes,omitempty"`           // window that this end advertises
	Unread     *Spread  `json:"unread_bytes,omitempty"`            // received and not read by the program yet (SIOCINQ)
	RTT        *Spread  `json:"rtt_ns,omitempty"`                  // smoothed round trip
	Pacing     *Spread  `json:"pacing_rate_bytes_per_s,omitempty"` // pacing rate of the kernel
	CwndFull   *float64 `json:"cwnd_full_pct,omitempty"`           // readings in which the congestion window is full
	WndFull    *float64 `json:"snd_wnd_full_pct,omitempty"`        // readings in which the peer's window is full, but for a segment
	Recovery   *float64 `json:"recovery_pct,omitempty"`            // readings during loss recovery (ca_state recovery or loss)
	BufferFull *float64 `json:"snd_buf_full_pct,omitempty"`        // readings in which the send buffer is full; for the connections of a transfer
	Idle       *float64 `json:"nothing_to_send_pct,omitempty"`     // readings in which less than a segment waits in the socket and neither window is full
}

// Spread is the mean, the smallest and the greatest of several readings.
type Spread struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

// StreamBin is one second of a flow at one end.
type StreamBin struct {
	At      int64     `json:"at_ns"`     // since the measured time began
	Span    int64     `json:"length_ns"` // real length of the bin
	Bytes   int64     `json:"bytes"`
	Streams []int64   `json:"stream_bytes,omitempty"`
	TCP     []TCPInfo `json:"tcp,omitempty"` // one per stream, at the end of the bin

	Datagrams *Datagrams `json:"datagrams,omitempty"` // of all streams
	Requests  int64      `json:"requests,omitzero"`   // transactions of all streams
	// Latency of the responses in the second, at the requesting end.
	LatencyMean int64 `json:"latency_mean_ns,omitzero"`
	LatencyMax  int64 `json:"latency_max_ns,omitzero"`
	RateBps     int64 `json:"rate_bps,omitzero"` // sending rate of a search, at the end of the bin
}

// TCPInfo is the part of the kernel's struct tcp_info (include/uapi/linux/tcp.h) that thru reads. A field is nil where the structure that the kernel returns
// is too short to hold it, so that an old kernel shows "not checked", not zero.
type TCPInfo struct {
	State         *uint8  `json:"state,omitempty"`
	CAState       *uint8  `json:"ca_state,omitempty"`
	Backoff       *uint8  `json:"backoff,omitempty"`
	Timestamps    *bool   `json:"opt_timestamps,omitempty"`
	SACK          *bool   `json:"opt_sack,omitempty"`
	ECN           *bool   `json:"opt_ecn,omitempty"`
	WScaleOK      *bool   `json:"opt_window_scaling,omitempty"`
	SendWScale    *uint8  `json:"send_wscale,omitempty"` // the peer's shift
	RecvWScale    *uint8  `json:"recv_wscale,omitempty"` // ours
	AppLimited    *bool   `json:"delivery_rate_app_limited,omitempty"`
	SendMSS       *uint32 `json:"snd_mss_bytes,omitempty"`
	RecvMSS       *uint32 `json:"rcv_mss_bytes,omitempty"`
	AdvMSS        *uint32 `json:"advmss_bytes,omitempty"`
	PMTU          *uint32 `json:"pmtu_bytes,omitempty"`
	Unacked       *uint32 `json:"unacked_segments,omitempty"`
	Lost          *uint32 `json:"lost_segments,omitempty"`
	Retrans       *uint32 `json:"total_retrans_segments,omitempty"`
	RTT           *int64  `json:"rtt_ns,omitempty"`
	RTTVar        *int64  `json:"rttvar_ns,omitempty"`
	RecvRTT       *int64  `json:"rcv_rtt_ns,omitempty"`
	RTO           *int64  `json:"rto_ns,omitempty"`
	SSThresh      *uint32 `json:"snd_ssthresh_segments,omitempty"`
	Cwnd          *uint32 `json:"snd_cwnd_segments,omitempty"`
	Reordering    *uint32 `json:"reordering_segments,omitempty"`
	RecvSpace     *uint32 `json:"rcv_space_bytes,omitempty"`
	PacingRate    *uint64 `json:"pacing_rate_bytes_per_s,omitempty"`
	MaxPacingRate *uint64 `json:"max_pacing_rate_bytes_per_s,omitempty"`
	BytesAcked    *uint64 `json:"bytes_acked,omitempty"`
	BytesReceived *uint64 `json:"bytes_received,omitempty"`
	SegsOut       *uint32 `json:"segs_out,omitempty"`
	SegsIn        *uint32 `json:"segs_in,omitempty"`
	NotSent       *uint32 `json:"notsent_bytes,omitempty"`
	MinRTT        *int64  `json:"min_rtt_ns,omitempty"`
	DataSegsIn    *uint32 `json:"data_segs_in,omitempty"`
	DataSegsOut   *uint32 `json:"data_segs_out,omitempty"`
	DeliveryRate  *uint64 `json:"delivery_rate_bytes_per_s,omitempty"`
	BusyUs        *uint64 `json:"busy_time_us,omitempty"`
	RwndLimitedUs *uint64 `json:"rwnd_limited_us,omitempty"`
	SndbufLimUs   *uint64 `json:"sndbuf_limited_us,omitempty"`
	Delivered     *uint32 `json:"delivered_segments,omitempty"`
	DeliveredCE   *uint32 `json:"delivered_ce_segments,omitempty"`
	BytesSent     *uint64 `json:"bytes_sent,omitempty"`
	BytesRetrans  *uint64 `json:"bytes_retrans,omitempty"`
	DSACKDups     *uint32 `json:"dsack_dups,omitempty"`
	ReordSeen     *uint32 `json:"reord_seen,omitempty"`
	RecvOOO       *uint32 `json:"rcv_ooopack,omitempty"`
	SendWnd       *uint32 `json:"snd_wnd_bytes,omitempty"`
	RecvWnd       *uint32 `json:"rcv_wnd_bytes,omitempty"`
	TotalRTO      *uint16 `json:"total_rto,omitempty"`
}

// HostSpan is the change of a host's counters between two readings.
type HostSpan struct {
	At   int64 `json:"at_ns"`     // start, since the measured time began
	Span int64 `json:"length_ns"` // time between the readings

	CPUs    []CPU             `json:"cpus,omitempty"`   // one per core
	Memory  *Memory           `json:"memory,omitempty"` // at the end of the span
	Worker  *Process          `json:"worker,omitempty"` // the process that moved the data
	NIC     *NICSpan          `json:"interface,omitempty"`
	Qdisc   *Qdisc            `json:"qdisc,omitempty"`       // queueing disciplines of that interface, summed
	Softnet []Softnet         `json:"softnet,omitempty"`     // one per core
	Proto   map[string]uint64 `json:"protocol,omitempty"`    // TcpExt and IP counters that moved, by "TcpExt.Name"
	Quota   *QuotaSpan        `json:"cpu_quota,omitempty"`   // of the control groups around thru, where one has a quota
	IRQs    []IRQSpan         `json:"interrupts,omitempty"`  // of that interface, one per core that took any
	Swap    *SwapSpan         `json:"swap,omitempty"`        // pages swapped in and out
	Missing []NotChecked      `json:"not_checked,omitempty"` // counters that were reset in the span
}

// QuotaSpan is the use of a control group's CPU quota in a span (cpu.stat).
type QuotaSpan struct {
	CPUs        float64 `json:"quota_cpus"`        // CPU time per time that it allows, in CPUs
	Periods     int64   `json:"periods"`           // periods that passed
	Throttled   int64   `json:"throttled_periods"` // of these, periods in which it was used up
	ThrottledNs int64   `json:"throttled_ns"`      // time for which threads waited, summed over all CPUs
}

// IRQSpan is how often an interface interrupted one core in a span.
type IRQSpan struct {
	Core  int    `json:"core"`
	Count uint64 `json:"count"`
}

// SwapSpan is how much was swapped in a span (/proc/vmstat, pswpin and pswpout).
type SwapSpan struct {
	InPages  uint64 `json:"in_pages"`
	OutPages uint64 `json:"out_pages"`
}

// CPU is how one core spent a span, in percent of its time.
type CPU struct {
	Core    int     `json:"core"`
	User    float64 `json:"user_pct"`
	System  float64 `json:"system_pct"`
	IRQ     float64 `json:"irq_pct"`
	SoftIRQ float64 `json:"softirq_pct"`
	Steal   float64 `json:"steal_pct"`
	Idle    float64 `json:"idle_pct"` // idle and waiting for I/O
}

// Busy returns the share of time in which the core was not idle, in percent.
func (c CPU) Busy() float64 { return c.User + c.System + c.IRQ + c.SoftIRQ + c.Steal }

// Memory of a host in bytes.
type Memory struct {
	Total     int64 `json:"total_bytes"`
	Available int64 `json:"available_bytes"`
}

// Process is the resource use of the worker process in a span.
type Process struct {
	UserNs      int64  `json:"user_ns"`
	SystemNs    int64  `json:"system_ns"`
	ResidentB   int64  `json:"resident_bytes,omitzero"` // in Evidence.Worker: its peak
	Voluntary   *int64 `json:"voluntary_switches,omitempty"`
	Involuntary *int64 `json:"involuntary_switches,omitempty"`
}

// NICSpan is what an interface counted in a span.
type NICSpan struct {
	Name      string `json:"name"`
	RxBytes   uint64 `json:"rx_bytes"`
	TxBytes   uint64 `json:"tx_bytes"`
	RxPackets uint64 `json:"rx_packets"`
	TxPackets uint64 `json:"tx_packets"`
	RxDropped uint64 `json:"rx_dropped"`
	TxDropped uint64 `json:"tx_dropped"`
	RxErrors  uint64 `json:"rx_errors"`
	TxErrors  uint64 `json:"tx_errors"`
	// RxRing counts received packets that the NIC dropped because its ring was full (rx_missed_errors, rx_fifo_errors, rx_over_errors).
	RxRing *uint64           `json:"rx_ring_drops,omitempty"`
	Driver map[string]uint64 `json:"driver,omitempty"` // ethtool -S counters that moved, including per-queue ones
}

// Qdisc is what the queueing disciplines of an interface counted in a span (tc-stats(8)).
type Qdisc struct {
	Kind       string `json:"kind"` // of the root: "tbf", "fq", "noqueue"
	Drops      uint64 `json:"drops_packets"`
	Overlimits uint64 `json:"overlimits"`
	Requeues   uint64 `json:"requeues"`
	Backlog    uint64 `json:"backlog_bytes"` // at the end of the span
}

// Softnet is one core's line of /proc/net/softnet_stat in a span.
type Softnet struct {
	Core        int    `json:"core"`
	Processed   uint64 `json:"processed"`
	Dropped     uint64 `json:"dropped"`
	TimeSqueeze uint64 `json:"time_squeeze"`
}
