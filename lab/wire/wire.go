// Package wire is a network path in user space: it joins two TAP devices in separate network namespaces, and
// impairs the packets between them. Each direction has its own Impairment.
//
// The devices use virtio-net headers (Documentation/networking/tuntap.rst, linux/virtio_net.h), so a kernel
// with offloads passes super-packets of up to 64 KB. Each segment is judged as a separate packet; segments
// that leave together stay one super-packet, which makes the path fast.
//
// It runs on Linux, as root. On other systems New returns an error.
package wire

import (
	"net/netip"
	"time"
)

// Impairment is what happens to the packets of one direction. The zero value passes all of them at once.
// Sizes and rates are of Ethernet frames without preamble, check sum and gap, as in tc-tbf(8). The fields
// apply to a packet in their order.
type Impairment struct {
	// DropAbove drops every super-packet whose frame is longer, in bytes, although its segments would fit:
	// broken segmentation offload. Packets that left their host as one segment pass. 0 drops none.
	DropAbove int

	StripWScale     bool // remove the window scale option from SYN and SYN-ACK
	StripSACK       bool // remove the SACK-permitted option from SYN and SYN-ACK
	StripTimestamps bool // remove the timestamps option from SYN and SYN-ACK
	ClampMSS        int  // lower the MSS in SYN and SYN-ACK to this, bytes; 0 leaves it

	MTU  int  // drop larger IP packets, bytes; 0 drops none
	ICMP bool // send an error to the sender, as a router does ("fragmentation needed", "packet too big"), if it forbade fragments

	PoliceRate  int64 // drop what exceeds this rate in bit/s, without delay; 0 drops none
	PoliceBurst int64 // bytes that pass the policer at once; 0 means 10 ms at the rate, at least 64 KB

	Loss      float64 // share of lost packets, 0 to 1
	LossBurst float64 // mean length of a loss in packets (Gilbert's model); up to 1 each loss is independent

	// PeakRate limits packets before the limits below, in bit/s. It is the rate at which a bucket of Burst
	// bytes drains.
	PeakRate int64
	Rate     int64 // of the direction, bit/s; packets above it wait, and are lost if the queue is full; 0 means no limit
	Burst    int64 // bytes that pass before Rate applies; refilled at Rate
	// Members are links that share the traffic by a hash of addresses and ports, as in a LAG or ECMP; each
	// has a MemberRate and its own queue. 0 means one link.
	Members     int
	MemberRate  int64 // bit/s
	PerFlowRate int64 // bit/s of each flow, as clouds limit it; each has its own queue; 0 means no limit
	// Queue is the queue before each of these rates, in bytes. 0 means 20 ms at the rate, at least 64 KB.
	Queue int64

	Duplicate    float64       // share of packets that arrive twice, 0 to 1
	Reorder      float64       // share of packets that are delayed by ReorderDelay, 0 to 1
	ReorderDelay time.Duration // delay of reordered packets
	Delay        time.Duration // of every packet, in one direction

	Seed uint64 // of the random source: with equal seeds two runs lose the same packets of a sequence
}

// Direction is one of the two directions of a Wire.
type Direction int

// The directions of a Wire.
const (
	AtoB Direction = iota
	BtoA
)

// End is a TAP device that New creates and Close removes.
type End struct {
	Netns string // path of its namespace, such as /var/run/netns/NAME; empty means the caller's own
	Dev   string // name of the device
}

// Options of a Wire.
type Options struct {
	A, B       End
	AtoB, BtoA Impairment
	// NoOffloads makes the kernel at both ends segment packets and compute checksums itself, as with a NIC
	// without offloads. Each packet then costs the path two system calls: without a Rate, the queues of the
	// devices overflow.
	NoOffloads bool
	// Router4 and Router6 are the source addresses of ICMP errors.
	Router4, Router6 netip.Addr
}

// Count is a number of packets and their bytes; each segment of a super-packet counts.
type Count struct {
	Packets, Bytes int64
}

// Counters count what happened to the packets of one direction so far.
type Counters struct {
	In, Out Count // taken from one end, and delivered to the other; Out counts duplicates twice

	Oversize Count // dropped by DropAbove
	MTU      Count // dropped by MTU
	Police   Count // dropped by PoliceRate
	Lost     Count // dropped by Loss
	Queue    Count // dropped because the queue of a rate was full
	Refused  Count // dropped by the other end: its device is down

	Duplicated Count // sent twice
	Reordered  Count // delayed to reorder them
	ICMP       Count // errors sent back for MTU
	Rewritten  Count // changed SYN and SYN-ACK
}

// Dropped returns the sum of all lost packets. Packets still in the path are neither in it nor in Out.
func (c Counters) Dropped() Count {
	var all Count
	for _, d := range []Count{c.Oversize, c.MTU, c.Police, c.Lost, c.Queue, c.Refused} {
		all.Packets += d.Packets
		all.Bytes += d.Bytes
	}
	return all
}
