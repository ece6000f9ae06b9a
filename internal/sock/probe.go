package sock

// Header is what the IP header of a received datagram said; -1 is not known.
type Header struct {
	TOS      int // DSCP and ECN
	TTL      int // or hop limit
	Fragment int // size of the largest fragment in bytes, where it came in several; 0: it came whole
}

// ProbeTTL is the TTL, or hop limit, that datagrams of a probe leave with.
const ProbeTTL = 64

// Stack is how the TCP of this host makes its SYNs; nil is not known.
type Stack struct {
	WindowScaling, SACK, Timestamps, ECN *bool // a SYN asks for it
	MTUProbing                           *bool // a connection begins with a small MSS, whatever the peer allows
}
