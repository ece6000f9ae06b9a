// Package stat turns evidence into figures: the formulas of TCP throughput, the statistics of how far a figure can
// be trusted, the summary of a cell over its runs, and the verdict against a known link rate.
//
// It is pure: the same evidence gives the same figures on every machine. A formula without a meaningful result (a
// division by zero) returns NaN, and a summary turns that into an absent figure with a reason.
//
// Loss is attributed to a place by counters of both ends (loss.go): first those of the test's own sockets, then
// the hosts'; the rest is the path's. An aggregate covers the overlap (overlap.go): flows of many pairs never
// begin at the same instant, so each receiver's seconds are mapped to one clock, and only the time in which all
// flows were measured counts. The sum of the flows' own figures is reported with it. A ceiling needs a known rate:
// the speed of veth, virtio or vmxnet3 is nominal, and is never used.
package stat

import (
	"math"

	"thru/internal/unit"
)

// BDPBytes returns the bandwidth-delay product: the bytes in flight on a full path. A window below it cannot fill
// the path (RFC 6349, section 3.3.1).
func BDPBytes(rateBps float64, rttNs int64) float64 {
	return rateBps * float64(rttNs) / 1e9 / 8
}

// WindowEven returns the smallest window of an even number of segments that holds the bytes: a receiver that
// acknowledges every second segment leaves none unacknowledged.
func WindowEven(bytes float64, mss int64) float64 { return wholeUp(bytes, 2*float64(mss)) }

// wholeUp rounds x up to a multiple of step.
func wholeUp(x, step float64) float64 {
	if step <= 0 {
		return math.NaN()
	}
	return step * math.Ceil(x/step)
}

// WindowRate returns the highest rate of one connection with this window, in bit/s.
func WindowRate(windowBytes float64, rttNs int64) float64 {
	return ratio(windowBytes*8, float64(rttNs)/1e9)
}

// Link describes how packets are framed on the wire.
type Link struct {
	RateBps    int64
	Layer      string // unit.L1 (also when empty) or unit.L2: what RateBps counts
	MTU        int    // of the IP packet that TCP sends; inside a tunnel the inner one
	IPv6       bool
	Timestamps bool // TCP timestamps on every segment (RFC 7323)
	VLANs      int  // tags on a frame
	EncapBytes int  // of a tunnel: VXLAN has 50, or 70 with outer IPv6
}

// Bytes around the payload of a segment.
const (
	ipv4Header      = 20
	ipv6Header      = 40
	tcpHeader       = 20
	timestampOption = 12 // 10, and 2 to align
	udpHeader       = 8
	fragmentHeader  = 8 // of IPv6; the IPv4 header has room for it
	ethernetHeader  = 14
	leastFrame      = 60         // without its checksum: shorter ones are padded (IEEE 802.3)
	preambleFCSGap  = 8 + 4 + 12 // counted at layer 1 only (IEEE 802.3)
	vlanTag         = 4
)

// ipHeader returns the IP header length without options or extensions, in bytes.
func (l Link) ipHeader() int {
	if l.IPv6 {
		return ipv6Header
	}
	return ipv4Header
}

// payload returns the payload of a full segment in bytes.
func (l Link) payload() int {
	headers := l.ipHeader() + tcpHeader
	if l.Timestamps {
		headers += timestampOption
	}
	return l.MTU - headers
}

// frame returns the room that an IP packet takes on the link, in bytes.
func (l Link) frame(packet int) int {
	n := packet + ethernetHeader + vlanTag*l.VLANs + l.EncapBytes
	if l.Layer != unit.L2 {
		n = max(n, leastFrame) + preambleFCSGap
	}
	return n
}

// MaxGoodput returns the most TCP payload that the link carries, in bit/s: every segment full, no loss,
// acknowledgements in the other direction.
func MaxGoodput(l Link) float64 {
	if l.payload() <= 0 || l.RateBps <= 0 {
		return math.NaN()
	}
	return float64(l.RateBps) * float64(l.payload()) / float64(l.frame(l.MTU))
}

// fragment returns how much of a datagram, UDP header included, a fragment that fills the MTU carries: a multiple
// of eight bytes (RFC 791; RFC 8200, section 4.5).
func (l Link) fragment() int {
	room := l.MTU - l.ipHeader()
	if l.IPv6 {
		room -= fragmentHeader
	}
	return room &^ 7
}

// Fragments returns the number of IP packets of a datagram with so many bytes of payload; 0 if the MTU is not
// known or too small.
func Fragments(l Link, payload int) int {
	switch total := payload + udpHeader; {
	case payload <= 0 || l.fragment() <= 0:
		return 0
	case total <= l.MTU-l.ipHeader():
		return 1
	default:
		return (total + l.fragment() - 1) / l.fragment()
	}
}

// ipBytes returns the size of a datagram with all its IP and UDP headers.
func ipBytes(l Link, payload int) int {
	n := max(Fragments(l, payload), 1)
	size := payload + udpHeader + n*l.ipHeader()
	if l.IPv6 && n > 1 {
		size += n * fragmentHeader
	}
	return size
}

// MaxDatagramGoodput returns the most UDP payload that the link carries in datagrams of so many bytes, in bit/s.
// Each fragment is a frame.
func MaxDatagramGoodput(l Link, payload int) float64 {
	n := Fragments(l, payload)
	if n == 0 || l.RateBps <= 0 {
		return math.NaN()
	}
	last, frames := ipBytes(l, payload), 0
	if n > 1 {
		full := ipBytes(l, payload) - (payload + udpHeader) // all headers ...
		full = full/n + l.fragment()                        // ... of which each fragment has its share
		last -= (n - 1) * full
		frames = (n - 1) * l.frame(full)
	}
	return float64(l.RateBps) * float64(payload) / float64(frames+l.frame(last))
}

// Efficiency returns the TCP efficiency of RFC 6349, section 4.2, in percent: the share of the bytes sent that
// were not retransmissions.
func Efficiency(sent, retransmitted float64) float64 {
	return 100 * ratio(sent-retransmitted, sent)
}

// BufferDelay returns the buffer delay of RFC 6349, section 4.3, in percent: by how much the transfer raised the
// round-trip time above that of the idle path.
func BufferDelay(meanRTT, baseRTT float64) float64 {
	return 100 * ratio(meanRTT-baseRTT, baseRTT)
}

// TransferTimeRatio returns that of RFC 6349, section 4.1: the time that a transfer took over the time it takes at
// the ceiling.
func TransferTimeRatio(actual, ideal float64) float64 { return ratio(actual, ideal) }

// Mathis returns the rate in bit/s that Reno-like congestion control reaches at a loss rate p between 0 and 1
// (Mathis and others, 1997). CUBIC exceeds it at a large bandwidth-delay product, and it does not apply to BBR.
func Mathis(mss, rttNs int64, p float64) float64 {
	const everyACK = 1.22 // the receiver acknowledges every segment
	return ratio(float64(mss)*8*everyACK, float64(rttNs)/1e9*math.Sqrt(p))
}

// Cubic returns the rate in bit/s that CUBIC reaches at a loss rate p between 0 and 1 (RFC 9438, section 5,
// formula 5, with its C of 0.4 and beta of 0.7), valid if that is more than Reno's: at a large bandwidth-delay
// product.
func Cubic(mss, rttNs int64, p float64) float64 {
	const gain = 1.054
	return ratio(float64(mss)*8*gain, math.Pow(float64(rttNs)/1e9, 0.25)*math.Pow(p, 0.75))
}

// CoresUsed returns the CPU cost of the traffic, in cores: the busy shares of all cores in percent, minus those of
// the idle host before.
func CoresUsed(busyPct, idlePct []float64) float64 {
	return max(0, (Sum(busyPct)-Sum(idlePct))/100)
}

// PctPerGbps returns the CPU cost of a rate: percent of one core for each Gb/s.
func PctPerGbps(cores, rateBps float64) float64 {
	return 100 * ratio(cores, rateBps/1e9)
}

// Jain returns Jain's index of fairness: 1 if all have the same, 1/n if one has all.
func Jain(xs []float64) float64 {
	squares := 0.0
	for _, x := range xs {
		squares += x * x
	}
	return ratio(Sum(xs)*Sum(xs), float64(len(xs))*squares)
}

// Scaling returns the ratio of the rate of P streams to that of one.
func Scaling(manyBps, oneBps float64) float64 { return ratio(manyBps, oneBps) }

// MeanPacket returns the mean size of a packet in bytes. Above the MTU it shows that the NIC or the kernel merges
// segments (TSO, LRO, GRO).
func MeanPacket(bytes, packets float64) float64 { return ratio(bytes, packets) }

// LadderLoss returns the share of the lower rung's rate that this rung loses, between 0 and 1; negative if it is
// faster.
func LadderLoss(belowBps, rungBps float64) float64 { return 1 - ratio(rungBps, belowBps) }

// GeneratorFactor is how far a host must exceed the link that it tests.
const GeneratorFactor = 1.3

// GeneratorLimited reports whether the host itself may limit a rung: the rung below it carries less than 1.3 times
// the rung's ceiling.
func GeneratorLimited(belowBps, ceilingBps float64) bool {
	return belowBps < GeneratorFactor*ceilingBps
}

// ratio returns a/b, or NaN if that is no figure.
func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

// Sum returns the sum of xs.
func Sum(xs []float64) float64 {
	total := 0.0
	for _, x := range xs {
		total += x
	}
	return total
}

// Mean returns the mean of xs; NaN for none.
func Mean(xs []float64) float64 { return ratio(Sum(xs), float64(len(xs))) }
