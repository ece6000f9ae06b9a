package stat

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"thru/internal/measure"
)

// Delays records the one-way delays of a stream in bounded memory, with the clocks of two hosts: a transit time is
// the receiver's clock minus the sender's. The clocks differ by an unknown offset, so delays are relative to the
// minimum (RFC 5481, PDV), and drift apart, so the minimum is a line over time (see floor). One thread calls Take,
// which does not allocate.
type Delays struct {
	origin, begin int64 // transit time and arrival of the first datagram
	last          int64 // transit time of the datagram before

	bins []delayBin // of all datagrams, including those of the ramp
	bin  *delayBin  // the last of them
	end  int64      // where it ends
	span int64      // length of a bin

	// In the measured time. Sums are of ns since begin and over origin.
	count                  int64
	sum, sumAt, variations float64 // variations: of each from the one before it

	samples []transit // random samples of the measured time
	every   int64     // datagrams to a sample, on average
	wait    int64     // datagrams until the next
	random  uint64
}

// transit is one transit time over origin, and when the datagram came since begin; in ns.
type transit struct{ at, ns int64 }

// delayBin has the extremes of a part of the time.
type delayBin struct {
	least, most transit
	measured    bool // most is there
}

// Limits of Delays. 100 ms at maxSkew are 20 us.
const (
	delaySpan    = int64(100e6)
	delayBins    = 1 << 10
	delaySamples = 1 << 14
)

// NewDelays returns an empty record.
func NewDelays() *Delays {
	return &Delays{bins: make([]delayBin, 0, delayBins), span: delaySpan, samples: make([]transit, 0, delaySamples), every: 1, random: 1}
}

// Take records one datagram: its arrival, and the receiver's time minus the sender's, in ns. Before the measured
// time it counts for the minimum delay only.
func (d *Delays) Take(now, took int64, measured bool) {
	if d.bin == nil {
		d.origin, d.begin, d.last = took, now, took
	}
	x := transit{now - d.begin, took - d.origin}
	if x.at >= d.end {
		d.nextBin(x)
	}
	if x.ns < d.bin.least.ns {
		d.bin.least = x
	}
	change := took - d.last
	d.last = took
	if !measured {
		return
	}
	if !d.bin.measured || x.ns > d.bin.most.ns {
		d.bin.most, d.bin.measured = x, true
	}
	if d.count > 0 {
		d.variations += float64(max(change, -change))
	}
	d.count++
	d.sum += float64(x.ns)
	d.sumAt += float64(x.at)
	if d.wait--; d.wait < 0 {
		d.keep(x)
	}
}

// nextBin begins the bin of x. If there are too many bins, it merges them in pairs.
func (d *Delays) nextBin(x transit) {
	if len(d.bins) == delayBins {
		for i := range delayBins / 2 {
			d.bins[i] = d.bins[2*i].and(d.bins[2*i+1])
		}
		d.bins = d.bins[:delayBins/2]
		d.span *= 2
	}
	d.bins = append(d.bins, delayBin{least: x})
	d.bin = &d.bins[len(d.bins)-1]
	d.end = (x.at/d.span + 1) * d.span
}

func (b delayBin) and(next delayBin) delayBin {
	if next.least.ns < b.least.ns {
		b.least = next.least
	}
	if next.measured && (!b.measured || next.most.ns > b.most.ns) {
		b.most, b.measured = next.most, true
	}
	return b
}

// keep takes a sample. If there are too many, it drops every second one.
func (d *Delays) keep(x transit) {
	if len(d.samples) == delaySamples {
		for i := range delaySamples / 2 {
			d.samples[i] = d.samples[2*i]
		}
		d.samples = d.samples[:delaySamples/2]
		d.every *= 2
	}
	d.samples = append(d.samples, x)
	d.random = d.random*6364136223846793005 + 1442695040888963407 // Knuth's, MMIX
	d.wait = int64((d.random >> 33) % uint64(2*d.every-1))        // avoids sampling in step with the traffic
}

// Describe fills in the delays of the measured time if at least two datagrams came in it, and adds their samples
// to a distribution.
func (d *Delays) Describe(to *measure.Datagrams, all *hdrhistogram.Histogram) {
	if d.count < 2 {
		return
	}
	to.IPDVMeanNs = whole(d.variations / float64(d.count-1))
	floor, linear := d.floor()
	if linear {
		to.SkewPPM = new(floor.slope * 1e6)
	}
	n := float64(d.count)
	to.DelayMeanNs = whole(max(d.sum/n-floor.base-floor.slope*d.sumAt/n, 0))
	most := 0.0
	for _, b := range d.bins {
		if b.measured {
			most = max(most, floor.over(b.most))
		}
	}
	to.DelayMaxNs = whole(most)
	for _, x := range d.samples {
		all.RecordValue(min(max(int64(floor.over(x)), 1), HistogramHighest)) // in range: never an error
	}
}

// line is the delay of an empty path over time, by the clocks of both ends.
type line struct{ base, slope float64 }

func (l line) over(x transit) float64 { return float64(x.ns) - l.base - l.slope*float64(x.at) }

// Limits of the skew of two clocks.
const (
	// maxSkew is the highest accepted skew: oscillators within 100 ppm, as IEEE 802.3 requires of an Ethernet
	// port, at both ends.
	maxSkew   = 200e-6
	skewParts = 8    // parts of the time
	skewBad   = 1    // parts in which the path may never have been empty
	skewBend  = 0.25 // share of the drift by which the minimum delay of a part may be off the line
	skewNoise = 10e3 // ns by which it may be off in any case
)

// floor returns the line of the minimum delays if they are on a line, else the minimum delay, so that queueing
// delay counts as clock skew only if it grows as evenly.
//
// The line is that of Moon, Skelly and Towsley (Estimation and Removal of Clock Skew from Network Delay
// Measurements, INFOCOM 1999): no datagram is below it, and the sum of the distances is minimal; so it is the edge
// of the lower convex hull at the mean of the times. A queue that fills and stands, or a path that changes, bends
// the minimum delays, and then there is no line. A queue that grows all the time as evenly as a clock, by at most
// 200 us per second, cannot be distinguished from skew.
func (d *Delays) floor() (line, bool) {
	flat := line{base: math.Inf(1)}
	least := make([]transit, len(d.bins))
	for i, b := range d.bins {
		least[i] = b.least
		flat.base = min(flat.base, float64(b.least.ns))
	}
	if len(least) < 2*skewParts {
		return flat, false
	}
	l := hullEdge(least)
	if math.Abs(l.slope) > maxSkew || !l.isFloor(least) {
		return flat, false
	}
	return l, true
}

// isFloor reports whether the minimum delays are along the line in all parts of the time.
func (l line) isFloor(least []transit) bool {
	begin := least[0].at
	length := least[len(least)-1].at - begin + 1
	var off [skewParts]float64
	for i := range off {
		off[i] = math.Inf(1)
	}
	for _, x := range least {
		part := &off[(x.at-begin)*skewParts/length]
		*part = min(*part, l.over(x))
	}
	bad, most := 0, max(skewNoise, skewBend*math.Abs(l.slope)*float64(length))
	for _, x := range off {
		if x > most {
			bad++
		}
	}
	return bad <= skewBad
}

// hullEdge returns the edge of the lower convex hull at the mean of the times, which are in ascending order
// (Andrew's monotone chain).
func hullEdge(points []transit) line {
	var hull []transit
	middle := 0.0
	for _, p := range points {
		middle += float64(p.at) / float64(len(points))
		for n := len(hull); n > 1 && through(hull[n-2], p).over(hull[n-1]) >= 0; n = len(hull) {
			hull = hull[:n-1]
		}
		hull = append(hull, p)
	}
	i := 1
	for i < len(hull)-1 && float64(hull[i].at) < middle {
		i++
	}
	return through(hull[i-1], hull[i])
}

func through(a, b transit) line {
	slope := float64(b.ns-a.ns) / float64(b.at-a.at)
	return line{float64(a.ns) - slope*float64(a.at), slope}
}
