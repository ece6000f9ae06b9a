package measure

// Path is what lies between two end points, as a probe of some hundred small
// packets saw it: From dials To. Forward is what From sends, Back what To sends.
type Path struct {
	From      string         `json:"from"`                   // end point that dialled
	To        string         `json:"to"`                     // end point that answered
	FromAddr  string         `json:"from_addr,omitempty"`    // address of From as To saw it
	ToAddr    string         `json:"to_addr,omitempty"`      // address that From dialled
	SeenAs    string         `json:"seen_as,omitempty"`      // address that From has given itself, where To saw another (NAT)
	TakenAt   int64          `json:"taken_at_unix_ns"`       // when the probe ended, by From's clock
	Quick     bool           `json:"quick,omitempty"`        // only what a few round trips tell
	Cached    bool           `json:"cached,omitempty"`       // of an earlier probe; nothing that it depends on has changed at either end
	RTT       *PathRTT       `json:"rtt_idle,omitempty"`     // socket to socket, of TCP
	Handshake *Handshake     `json:"handshake,omitempty"`    // TCP options as seen at both ends
	Forward   DirectionFacts `json:"forward"`                // from From to To
	Back      DirectionFacts `json:"back"`                   // from To to From
	Clock     *ClockOffset   `json:"clock_offset,omitempty"` // how far the clocks are apart
	Ports     *SourcePorts   `json:"source_ports,omitempty"` // whether source ports take different ways
	Missing   []NotChecked   `json:"not_checked,omitempty"`  // facts that could not be had, and why
}

// AddPath adds a path that was probed, or why there is none. A nil path
// without an error is no path at all: both ends are one host.
func (d *Document) AddPath(p *Path, err error) {
	if p != nil {
		d.Paths = append(d.Paths, *p)
	}
	if err != nil {
		d.Missing = append(d.Missing, NotChecked{Fact: "paths", Why: err.Error()})
	}
}

// DirectionFacts are the facts of one direction.
type DirectionFacts struct {
	Route      *Route    `json:"route,omitempty"`              // how the sending end reaches the other
	MTU        *PathMTU  `json:"mtu,omitempty"`                // what passes unfragmented
	Hops       *int      `json:"hops,omitempty"`               // routers on the way, by the TTL at the receiver
	Marks      []Mark    `json:"dscp,omitempty"`               // DSCP and ECN marks as they were sent and as they arrived
	Congestion *string   `json:"congestion_control,omitempty"` // what a TCP connection of the sending end gets here; a route may name another than the system
	UDP        *UDPReach `json:"udp,omitempty"`                // whether datagrams arrive
}

// PathRTT is the distribution of round trips of a small message over an idle connection.
type PathRTT struct {
	Min     int64 `json:"min_ns"`  // the least
	P50     int64 `json:"p50_ns"`  // the median
	P90     int64 `json:"p90_ns"`  // nine of ten were no longer
	P99     int64 `json:"p99_ns"`  // 99 of 100 were no longer
	Max     int64 `json:"max_ns"`  // the longest
	Samples int   `json:"samples"` // round trips
}

// PathMTU is the outcome of a search with datagrams that must not be
// fragmented, in band (RFC 4821, RFC 8899): it needs no ICMP.
type PathMTU struct {
	Bytes   int   `json:"bytes"`                  // largest IP packet that arrived
	Claimed int   `json:"claimed_bytes"`          // what the sending end believes of its interface and route
	Local   bool  `json:"limited_here,omitempty"` // nothing larger can leave: the search ended at what the sender's own interface takes
	Router  *int  `json:"icmp_bytes,omitempty"`   // what a router on the way has said (ICMP), where one did
	Silent  bool  `json:"silent,omitempty"`       // larger packets vanish and no router says so: a black hole
	Jumbo   *bool `json:"jumbo,omitempty"`        // 8972 bytes of payload passed with DF (MTU 9000); absent: the interface takes no such
	Probes  int   `json:"probes"`                 // datagrams of the search
}

// Mark is one mark of the IP header.
type Mark struct {
	Sent    int `json:"sent"`     // DSCP as it was sent, 0 to 63
	Seen    int `json:"seen"`     // DSCP as it arrived
	ECNSent int `json:"ecn_sent"` // ECN bits as they were sent, 0 to 3
	ECNSeen int `json:"ecn_seen"` // ECN bits as they arrived
}

// UDPReach counts datagrams of the probe.
type UDPReach struct {
	Sent int `json:"sent"` // small datagrams, spread over the time of the probe
	Got  int `json:"got"`  // of these, arrived
}

// Handshake holds the options of TCP as they left one end and as they came to
// the other: what differs was changed on the way.
type Handshake struct {
	SYNSent    *SYN   `json:"syn_sent,omitempty"`    // of From, as its stack makes it
	SYNSeen    *SYN   `json:"syn_seen,omitempty"`    // the same at To
	SYNACKSent *SYN   `json:"synack_sent,omitempty"` // of To
	SYNACKSeen *SYN   `json:"synack_seen,omitempty"` // the same at From
	RTTNs      *int64 `json:"rtt_ns,omitempty"`      // round trip of the handshake alone, as From's kernel measured it
}

// SYN are the options of one segment of a handshake.
type SYN struct {
	MSS         *int  `json:"mss_bytes,omitempty"`        // maximum segment size
	WindowScale *int  `json:"window_scale,omitempty"`     // shift count; absent with has_window_scale false: no such option
	HasScale    *bool `json:"has_window_scale,omitempty"` // the option is there
	SACK        *bool `json:"sack,omitempty"`             // selective acknowledgements are permitted
	Timestamps  *bool `json:"timestamps,omitempty"`       // the option is there
	ECN         *bool `json:"ecn,omitempty"`              // explicit congestion notification is asked for or granted
}

// ClockOffset is To's clock less From's, from the exchange with the shortest
// round trip (RFC 5905): the truth is within the bound.
type ClockOffset struct {
	OffsetNs int64 `json:"offset_ns"` // positive: To is ahead
	BoundNs  int64 `json:"bound_ns"`  // half of that round trip
}

// SourcePorts is a hint whether flows of different source ports take
// different ways (ECMP, link aggregation).
type SourcePorts struct {
	Ports      int         `json:"ports"`            // source ports that were tried
	Directions int         `json:"ways"`             // groups that differ in hops or in delay beyond doubt; 1: no difference was seen
	By         string      `json:"by,omitempty"`     // "hops" or "delay"
	Groups     []PortGroup `json:"groups,omitempty"` // where there are several
}

// PortGroup are source ports that seem to go the same way.
type PortGroup struct {
	Ports []int `json:"ports"`          // source ports
	Hops  *int  `json:"hops,omitempty"` // of the way there
	RTTNs int64 `json:"rtt_min_ns"`     // least round trip
}
