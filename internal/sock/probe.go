package sock

// Header is the IP header of a received datagram; -1: not known.
type Header struct {
	TOS      int // DSCP and ECN
	TTL      int // or hop limit
	Fragment int // size of the largest fragment in bytes, where it was fragmented; else 0
}

// ProbeTTL is the TTL, or hop limit, of a probe's datagrams when they are sent.
const ProbeTTL = 64

// Stack is which options this host's TCP puts into its SYNs; nil: not known.
type Stack struct {
	WindowScaling, SACK, Timestamps, ECN *bool // a SYN requests it
	MTUProbing                           *bool // a connection starts with a small MSS, whatever the peer allows
}
