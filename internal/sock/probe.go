package sock

import (
	"net/netip"
	"time"
)

// Header is the IP header of a received datagram, and what the kernel adds to it; -1: not known.
type Header struct {
	TOS      int        // DSCP and ECN
	TTL      int        // or hop limit
	Fragment int        // size of the largest fragment in bytes, where it was fragmented; else 0
	Local    netip.Addr // the address of this host at which it arrived; invalid: not known
	At       time.Time  // when the kernel received it, by the wall clock; zero: not known
}

// ProbeTTL is the TTL, or hop limit, of a probe's datagrams when they are sent.
const ProbeTTL = 64

// Stack is which options this host's TCP puts into its SYNs; nil: not known.
type Stack struct {
	WindowScaling, SACK, Timestamps, ECN *bool // a SYN requests it
	MTUProbing                           *bool // a connection starts with a small MSS, whatever the peer allows
}

// PacketTooBig is a router's report that a datagram was too big (RFC 1191, RFC 8201).
type PacketTooBig struct {
	MTU  int        // of the next link; 0: it named none
	From netip.Addr // the router; invalid: not known
}
