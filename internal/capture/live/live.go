// Package live captures the packets of a test while it runs: in a ring that the
// kernel fills and this process reads (packet(7), TPACKET_V3). A filter in the
// kernel takes the test's own packets only, and of these the headers; nothing
// is looked into before the traffic is over. It is Linux's alone, and needs
// CAP_NET_RAW.
package live

import (
	"net/netip"
	"time"
)

// DefaultPackets is the bound of a capture that names none. With headers and
// all it comes to 45 MB in this process.
const DefaultPackets = 300_000

// MostPeers bounds Config.Peers: the kernel bounds the filter.
const MostPeers = 64

// Bytes that are kept of a frame: Ethernet with a VLAN tag (18), IP without
// options but IPv6's word that a packet is a jumbo (8), and TCP with all the
// options that it can have (60).
const (
	Snap4 = 100
	Snap6 = 128
)

// Config says which packets are captured: those of TCP that match Ports or
// Peers, and ICMP's word that a packet was too large. Left out are, since a
// filter would have to search for their TCP header, IPv4 fragments but the
// first, IPv6 with other extension headers than a jumbo's, and frames of more
// than one VLAN tag.
type Config struct {
	Ports   [2]int           // first and last of the ports that this end listens at; zero: none
	Peers   []netip.AddrPort // that this end dials, at most MostPeers; port 0: every port
	Packets int64            // most that are kept, of all interfaces; 0: DefaultPackets
}

// Recording is a capture that is over.
type Recording struct {
	Pcapng    []byte // the packets, as a file
	Interface string
	MTU       int       // of the interface, bytes
	Packets   int64     // in the file
	Elsewhere int64     // that passed other interfaces and were left out
	Dropped   int64     // at all interfaces, for want of room in the ring
	Full      bool      // the bound was reached, and the capture ended there
	Began     time.Time // when it was ready
	Ended     time.Time // when it took no more

	// CPUNs is CPU time of the thread that read the ring. What the kernel spends
	// to filter and copy each packet is not in it: that is time of the thread or
	// the interrupt that moves the packet, and no counter tells it apart.
	CPUNs int64
}
