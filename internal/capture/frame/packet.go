// Package frame decodes captured packets: from the link layer through tags
// and tunnels to TCP, as far as bytes were captured. It is pure and allocates
// nothing.
package frame

// LinkType is the kind of the first header of a captured packet (LINKTYPE_ of
// the tcpdump group's registry).
type LinkType uint16

// Link types that are decoded.
const (
	Null      LinkType = 0   // BSD loopback: address family in the byte order of the capturing host
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
	rawOfBSD  LinkType = 12  // DLT_RAW in old files
	rawOfOpen LinkType = 14  // the same on OpenBSD
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

// Packet is one captured packet. For a tunnel it is the innermost IP packet.
type Packet struct {
	Number    int64 // in the capture, from 1
	TimeNs    int64 // since 1970
	Interface int   // in the file, from 0
	WireBytes int   // of the frame on the wire

	V6       bool
	Proto    uint8
	TTL      uint8 // or hop limit
	TOS      uint8 // or traffic class: DSCP and ECN
	DF       bool
	ID       uint16 // of IPv4
	Fragment bool   // a fragment; only the first has TCP's header
	Later    bool   // a fragment that is not the first
	IPBytes  int    // length of the IP packet; where its header has 0 (larger than 65535 bytes, or not filled in yet) the length that the frame holds
	Tagged   int    // VLAN tags
	Tunnels  int    // outer IP packets (VXLAN, GRE, IP in IP)

	Source, Target Endpoint

	// TCP
	Flags   uint8
	Seq     uint32
	Ack     uint32
	Window  uint16
	Payload int // bytes of payload in the IP packet, captured or not
	Options Options

	// The ICMP message that a packet was too large: its sender, and the MTU.
	TooBig       bool
	MTU          int
	QuotedSource Endpoint
	QuotedTarget Endpoint
}

// Options are the options of the TCP header.
type Options struct {
	MSS        uint16
	Scale      uint8
	TSVal      uint32
	TSEcr      uint32
	SACK       [4][2]uint32
	SACKs      uint8 // number of SACK blocks
	HasMSS     bool
	HasScale   bool
	SACKOK     bool
	Timestamps bool
	FastOpen   bool
	Multipath  bool
	Cut        bool      // the captured bytes end within the options
	Bytes      uint8     // of all options
	Kinds      [12]uint8 // of the options in order, ended by 0. No-op padding is included (1).
}

// Verdict is how far a frame was decoded.
type Verdict uint8

const (
	IsTCP     Verdict = iota // TCP with its fixed header: to analyse
	IsTooBig                 // ICMP message that a packet was too large
	IsOther                  // IP of another protocol
	IsLater                  // fragment other than the first: the TCP header is in another one
	IsNotIP                  // ARP and the like
	IsCut                    // the captured bytes end before the TCP header does
	IsBroken                 // impossible lengths
	IsUnknown                // unsupported link type
)
