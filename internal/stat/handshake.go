package stat

import "thru/internal/measure"

// offeredMTU returns the smaller of the two ends' MTUs, by the handshakes in captures; 0 is unknown. A device that
// lowers an MSS does not make the link smaller, so each end counts with the highest MSS in any capture. An MSS
// excludes the headers without options (RFC 9293, section 3.7.1).
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

// offered returns the MSS of a SYN or SYN-ACK; 0: it is missing.
func offered(o *measure.Opening) int {
	if o == nil || o.MSS == nil {
		return 0
	}
	return *o.MSS
}
