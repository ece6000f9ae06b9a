// Package wire is a network path in user space: it joins two TAP devices, each
// in a network namespace of its own, and does to the packets between them what
// a bad path does. Each direction has a Way of its own.
//
// The devices speak virtio-net headers (Documentation/networking/tuntap.rst,
// linux/virtio_net.h), so a kernel with offloads hands over super-packets of up
// to 64 KB. Every segment of one is judged by itself, as if it had crossed
// alone; those that leave together stay one super-packet, which is what makes
// the path fast.
//
// It runs on Linux, as root. Elsewhere New returns an error.
package wire

import (
	"net/netip"
	"time"
)

// Impairment is what happens to the packets of one direction. The zero value passes
// them all at once. Sizes and rates are of Ethernet frames without preamble,
// check sum and gap, as tc-tbf(8) counts them. A packet meets the parts in the
// order of the fields.
type Impairment struct {
	// DropAbove drops every super-packet whose frame is longer than so many
	// bytes, though its segments would fit: segmentation offload that is broken.
	// Packets that left their host as one segment pass. 0 drops none.
	DropAbove int

	StripWScale     bool // take the window scale option from SYN and SYN-ACK
	StripSACK       bool // take the SACK-permitted option from SYN and SYN-ACK
	StripTimestamps bool // take the timestamps option from SYN and SYN-ACK
	ClampMSS        int  // lower the MSS in SYN and SYN-ACK to this, bytes; 0 leaves it

	MTU  int  // drop IP packets that are larger, bytes; 0 drops none
	ICMP bool // tell the sender, as a router does ("fragmentation needed", "packet too big"), if it forbade fragments

	PoliceRate  int64 // drop what is above so many bit/s, delaying nothing; 0 drops none
	PoliceBurst int64 // bytes that pass the policer at once; 0 means those of 10 ms, 64 KB at least

	Loss      float64 // share of the packets that is lost, 0 to 1
	LossBurst float64 // mean length of a loss in packets (Gilbert's model); up to 1 each is lost by itself

	// PeakRate caps the packets before they come to the limits below, bit/s. It
	// is the rate that a bucket of Burst bytes lets through while it lasts.
	PeakRate int64
	Rate     int64 // of the direction, bit/s; what is above waits, and what finds the queue full is lost; 0 means no cap
	Burst    int64 // bytes that pass before Rate holds; refilled at Rate
	// Members are links that share the traffic by a hash of addresses and ports,
	// as a LAG or ECMP does; each has a MemberRate and a queue of its own. 0
	// means one link.
	Members     int
	MemberRate  int64 // bit/s
	PerFlowRate int64 // bit/s of each flow by itself, as clouds cap it; each has a queue of its own; 0 means no cap
	// Queue is what may wait before each of these rates, bytes. 0 means what 20
	// ms of the rate hold, 64 KB at least.
	Queue int64

	Duplicate    float64       // share of the packets that arrive twice, 0 to 1
	Reorder      float64       // share of the packets that is held back, 0 to 1
	ReorderDelay time.Duration // for so long
	Delay        time.Duration // of every packet, one way

	Seed uint64 // of chance: two runs with one seed lose the same packets of a sequence
}

// Direction tells the two ways of a Wire apart.
type Direction int

// The directions of a Wire.
const (
	AtoB Direction = iota
	BtoA
)

// End is a TAP device that New makes and Close removes.
type End struct {
	Netns string // path of its namespace, such as /var/run/netns/NAME; empty means the caller's own
	Dev   string // name of the device
}

// Options of a Wire.
type Options struct {
	A, B       End
	AtoB, BtoA Impairment
	// NoOffloads makes the kernel at both ends segment packets and compute
	// checksums itself, as a NIC without offloads does. Each packet then costs the
	// path two system calls: without a Rate, the queues of the devices overflow.
	NoOffloads bool
	// Router4 and Router6 are the addresses that ICMP errors come from.
	Router4, Router6 netip.Addr
}

// Count is a number of packets and their bytes: those of segments, also where
// they crossed as one super-packet.
type Count struct {
	Packets, Bytes int64
}

// Counters are what happened to the packets of one direction so far.
type Counters struct {
	In, Out Count // taken from one end, and given to the other; Out holds duplicates twice

	Oversize Count // dropped by DropAbove
	MTU      Count // dropped by MTU
	Police   Count // dropped by PoliceRate
	Lost     Count // dropped by Loss
	Queue    Count // dropped since the queue of a rate was full
	Refused  Count // dropped by the other end: its device is down

	Duplicated Count // sent once more
	Reordered  Count // held back
	ICMP       Count // errors sent back for MTU
	Rewritten  Count // SYN and SYN-ACK that were changed
}

// Dropped is the sum of what did not arrive, for whatever reason. What still
// waits in the path is neither there nor in Out.
func (c Counters) Dropped() Count {
	var all Count
	for _, d := range []Count{c.Oversize, c.MTU, c.Police, c.Lost, c.Queue, c.Refused} {
		all.Packets += d.Packets
		all.Bytes += d.Bytes
	}
	return all
}
