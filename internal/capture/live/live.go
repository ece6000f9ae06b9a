// Package live captures the packets of a running test: in a ring that the
// kernel fills and this process reads (packet(7), TPACKET_V3). A filter in
// the kernel takes only the headers of the test's own packets; nothing is
// analysed before the traffic ends. It works on Linux only and needs
// CAP_NET_RAW.
package live

import (
	"net/netip"
	"time"
)

// DefaultPackets is the packet limit of a capture without one. With headers
// and all it takes 45 MB in this process.
const DefaultPackets = 300_000

// MostPeers limits Config.Peers, since the kernel limits the filter.
const MostPeers = 64

// Bytes kept of a frame: Ethernet with a VLAN tag (18), IP without options
// but with IPv6's jumbo option (8), and TCP with the most options that are
// possible (60).
const (
	Snap4 = 100
	Snap6 = 128
)

// Config selects the packets to capture: TCP packets that match Ports or
// Peers, and ICMP messages that a packet was too large. It leaves out packets
// in which a filter would have to search for the TCP header: IPv4 fragments
// other than the first, IPv6 with extension headers other than a jumbo's, and
// frames of more than one VLAN tag.
type Config struct {
	Ports   [2]int           // first and last port that this end listens on; zero: none
	Peers   []netip.AddrPort // peers that this end dials, at most MostPeers; port 0: every port
	Packets int64            // limit over all interfaces; 0: DefaultPackets
}

// Recording is a finished capture.
type Recording struct {
	Pcapng    []byte // the packets, as a pcapng file
	Interface string
	MTU       int       // of the interface, bytes
	Packets   int64     // in the file
	Elsewhere int64     // packets of other interfaces, left out
	Dropped   int64     // at all interfaces, since the ring was full
	Full      bool      // the capture ended at its limit
	Began     time.Time // when it was ready
	Ended     time.Time // when it stopped

	// CPUNs is the CPU time of the thread that read the ring. It excludes the
	// kernel's time to filter and copy each packet: the thread or the
	// interrupt that moves the packet spends it, and no counter separates it.
	CPUNs int64
}
