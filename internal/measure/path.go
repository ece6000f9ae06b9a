package measure

// Path describes the network path between two end points, from a probe of some hundred small packets. From dials To. Forward is the direction from From to To,
// Back the other one.
type Path struct {
	From      string         `json:"from"`                   // end point that dialled
	To        string         `json:"to"`                     // end point that answered
	FromAddr  string         `json:"from_addr,omitempty"`    // address of From as To saw it
	ToAddr    string         `json:"to_addr,omitempty"`      // address that From dialled
	SeenAs    string         `json:"seen_as,omitempty"`      // From's own address, where To saw another one (NAT)
	TakenAt   int64          `json:"taken_at_unix_ns"`       // end of the probe, by From's clock
	Quick     bool           `json:"quick,omitempty"`        // only the facts of a few round trips
	Cached    bool           `json:"cached,omitempty"`       // from an earlier probe; nothing that it depends on has changed at either end
	RTT       *PathRTT       `json:"rtt_idle,omitempty"`     // of TCP, socket to socket
	Handshake *Handshake     `json:"handshake,omitempty"`    // TCP options as seen at both ends
	Forward   DirectionFacts `json:"forward"`                // from From to To
	Back      DirectionFacts `json:"back"`                   // from To to From
	Clock     *ClockOffset   `json:"clock_offset,omitempty"` // difference of the clocks
	Ports     *SourcePorts   `json:"source_ports,omitempty"` // whether source ports take different paths
	Missing   []NotChecked   `json:"not_checked,omitempty"`  // facts that could not be read, and why
}

// AddPath adds a probed path, or the reason why there is none. Without a path and an error both ends are one host: it adds nothing.
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
	Route      *Route    `json:"route,omitempty"`              // how the sending end routes to the other
	MTU        *PathMTU  `json:"mtu,omitempty"`                // largest packet that passes unfragmented
	Hops       *int      `json:"hops,omitempty"`               // routers on the path, by the TTL at the receiver
	Marks      []Mark    `json:"dscp,omitempty"`               // DSCP and ECN marks as they were sent and as they arrived
	Congestion *string   `json:"congestion_control,omitempty"` // congestion control of a TCP connection of the sending end on this route, which may differ from the system's
	UDP        *UDPReach `json:"udp,omitempty"`                // whether datagrams arrive
}

// PathRTT is the distribution of round-trip times of a small message over an idle connection.
type PathRTT struct {
	Min     int64 `json:"min_ns"`  // the least
	P50     int64 `json:"p50_ns"`  // the median
	P90     int64 `json:"p90_ns"`  // nine of ten were no longer
	P99     int64 `json:"p99_ns"`  // 99 of 100 were no longer
	Max     int64 `json:"max_ns"`  // the longest
	Samples int   `json:"samples"` // round trips
}

// PathMTU is the result of a search with unfragmentable datagrams, in band (RFC 4821, RFC 8899): it needs no ICMP.
type PathMTU struct {
	Bytes      int    `json:"bytes"`                  // largest IP packet that arrived
	Claimed    int    `json:"claimed_bytes"`          // MTU of the sending end's interface and route
	Local      bool   `json:"limited_here,omitempty"` // the sender's own interface stopped the search: nothing larger can leave
	Router     *int   `json:"icmp_bytes,omitempty"`   // MTU that a router on the path reports (ICMP)
	RouterAddr string `json:"icmp_from,omitempty"`    // address of that router
	Silent     bool   `json:"silent,omitempty"`       // larger packets vanish without an ICMP message: a black hole
	Jumbo      *bool  `json:"jumbo,omitempty"`        // 8972 bytes of payload passed with DF (MTU 9000); absent: the interface's MTU is smaller
	Probes     int    `json:"probes"`                 // datagrams of the search
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
	Got  int `json:"got"`  // of these, received
}

// Handshake holds the TCP options as they left one end and as they arrived at the other. A difference means that a device on the path changed them.
type Handshake struct {
	SYNSent    *SYN   `json:"syn_sent,omitempty"`    // of From, as its kernel sends it
	SYNSeen    *SYN   `json:"syn_seen,omitempty"`    // the same on arrival at To
	SYNACKSent *SYN   `json:"synack_sent,omitempty"` // of To
	SYNACKSeen *SYN   `json:"synack_seen,omitempty"` // the same on arrival at From
	RTTNs      *int64 `json:"rtt_ns,omitempty"`      // round trip of the handshake alone, as From's kernel measures it
}

// SYN holds the options of one segment of a handshake.
type SYN struct {
	MSS         *int  `json:"mss_bytes,omitempty"`        // maximum segment size
	WindowScale *int  `json:"window_scale,omitempty"`     // shift count; absent with has_window_scale false: there is no such option
	HasScale    *bool `json:"has_window_scale,omitempty"` // the option is there
	SACK        *bool `json:"sack,omitempty"`             // selective acknowledgements permitted
	Timestamps  *bool `json:"timestamps,omitempty"`       // the option is there
	ECN         *bool `json:"ecn,omitempty"`              // explicit congestion notification requested or granted
}

// ClockOffset is To's clock minus From's, from the exchange with the shortest round trip (RFC 5905). The true offset is within the bound.
type ClockOffset struct {
	OffsetNs int64 `json:"offset_ns"` // positive: To is ahead
	BoundNs  int64 `json:"bound_ns"`  // half of that round trip
}

// SourcePorts is a hint whether flows of different source ports take different paths (ECMP, link aggregation).
type SourcePorts struct {
	Ports      int         `json:"ports"`            // source ports that were tried
	Directions int         `json:"ways"`             // groups that clearly differ in hops or in delay; 1: no difference seen
	By         string      `json:"by,omitempty"`     // "hops" or "delay"
	Groups     []PortGroup `json:"groups,omitempty"` // where there are several
}

// PortGroup holds source ports that seem to take the same path.
type PortGroup struct {
	Ports []int `json:"ports"`          // source ports
	Hops  *int  `json:"hops,omitempty"` // hops of the forward direction
	RTTNs int64 `json:"rtt_min_ns"`     // shortest round trip
}
