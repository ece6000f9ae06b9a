package stat

import "thru/internal/measure"

// offeredMTU is the smaller of the two ends' MTUs, as the handshakes in captures
// tell it; 0 is unknown. What lowers an MSS on the way does not make the link
// smaller, so of each end the greatest counts that any capture saw. An MSS
// leaves out the headers without options (RFC 9293, section 3.7.1).
func (s *summary) offeredMTU() int {
	headers := ipv4Header + tcpHeader
	if s.isIPv6() {
		headers = ipv6Header + tcpHeader
	}
	for _, p := range s.runs {
		f := flowOf(s.cell, p.run)
		if f == nil {
			continue
		}
		var syn, synack int
		for _, c := range f.Captures {
			for _, conn := range c.Conns {
				syn, synack = max(syn, offered(conn.SYN)), max(synack, offered(conn.SYNACK))
			}
		}
		if syn > 0 && synack > 0 {
			return min(syn, synack) + headers
		}
	}
	return 0
}

// offered is the MSS of a SYN or SYN-ACK; 0: it is missing.
func offered(o *measure.Opening) int {
	if o == nil || o.MSS == nil {
		return 0
	}
	return *o.MSS
}
