// Package frame decodes captured packets: from the link layer through tags and
// tunnels to TCP, as far as the captured bytes go. It is pure and allocates
// nothing.
package frame

// LinkType says how a captured packet begins (LINKTYPE_ of the tcpdump group's
// registry).
type LinkType uint16

// Link types that are decoded.
const (
	Null      LinkType = 0   // BSD loopback: address family in the order of the host that captured
	Ethernet  LinkType = 1   //
	Raw       LinkType = 101 // IPv4 or IPv6
	Loop      LinkType = 108 // OpenBSD loopback: address family in network order
	LinuxSLL  LinkType = 113 // Linux cooked v1
	LinuxSLL2 LinkType = 276 // Linux cooked v2
	IPv4      LinkType = 228 //
	IPv6      LinkType = 229 //
	IPoIB     LinkType = 242 // IP over InfiniBand
	PPP       LinkType = 9   // with or without its HDLC address
	PPPofHDLC LinkType = 50  //
	rawOfBSD  LinkType = 12  // DLT_RAW, as old files have it
	rawOfOpen LinkType = 14  // the same of OpenBSD
)

// Endpoint is an address and a port. IPv4 addresses are mapped into IPv6
// (RFC 4291, section 2.5.5.2).
type Endpoint struct {
	Addr [16]byte
	Port uint16
}

// Protocols of Packet.Proto.
const (
	ICMP   = 1
	TCP    = 6
	UDP    = 17
	ICMPv6 = 58
)

// Flags of TCP (RFC 9293, RFC 3168).
const (
	FIN = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
)

// Packet is one captured packet. Of tunnels it is the innermost IP packet.
type Packet struct {
	Number    int64 // in the capture, from 1
	TimeNs    int64 // since 1970
	Interface int   // in the file, from 0
	WireBytes int   // of the frame, as it passed

	V6       bool
	Proto    uint8
	TTL      uint8 // or hop limit
	TOS      uint8 // or traffic class: DSCP and ECN
	DF       bool
	ID       uint16 // of IPv4
	Fragment bool   // a part of a packet; TCP's header is in the first only
	Later    bool   // a fragment that is not the first
	IPBytes  int    // length of the IP packet; where its header says 0 (larger than 65535 bytes, or not filled in yet) it is what the frame holds
	Tagged   int    // VLAN tags around it
	Tunnels  int    // IP packets around it (VXLAN, GRE, IP in IP)

	Source, Target Endpoint

	// TCP
	Flags   uint8
	Seq     uint32
	Ack     uint32
	Window  uint16
	Payload int // bytes that the IP packet holds, captured or not
	Options Options

	// ICMP that a packet was too large: who sent that, and what fits.
	TooBig       bool
	MTU          int
	QuotedSource Endpoint
	QuotedTarget Endpoint
}

// Options are those of the TCP header.
type Options struct {
	MSS        uint16
	Scale      uint8
	TSVal      uint32
	TSEcr      uint32
	SACK       [4][2]uint32
	SACKs      uint8 // blocks of SACK
	HasMSS     bool
	HasScale   bool
	SACKOK     bool
	Timestamps bool
	FastOpen   bool
	Multipath  bool
	Cut        bool      // the capture ends before the options do
	Bytes      uint8     // of all options
	Kinds      [12]uint8 // of the options, in order; 0 ends it. Padding by no-ops is in it (1).
}

// Verdict says how far a frame was decoded.
type Verdict uint8

// Verdicts.
const (
	IsTCP     Verdict = iota // TCP with its fixed header: to be analysed
	IsTooBig                 // ICMP that a packet was too large
	IsOther                  // IP of another protocol
	IsLater                  // fragment of a packet that is not its first: the TCP header is elsewhere
	IsNotIP                  // ARP and the like
	IsCut                    // the captured bytes end before the TCP header does
	IsBroken                 // lengths that cannot be
	IsUnknown                // link type that is not decoded
)
