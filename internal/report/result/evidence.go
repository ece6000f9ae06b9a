package result

import (
	"fmt"
	"math"
	"net/netip"
	"slices"

	"thru/internal/doc/draw"
	"thru/internal/measure"
	"thru/internal/stat"
)

// ShownRun is the run that stands for a cell: the one whose figure is nearest
// to that of the cell.
func ShownRun(c *measure.Cell) *measure.Run {
	var best *measure.Run
	distance := math.Inf(1)
	f := stat.MainFigure(c)
	for i := range c.Runs {
		r := &c.Runs[i]
		d := math.MaxFloat64
		if rate, ok := runFigure(c, r); ok && f != nil {
			d = math.Abs(rate - f.Value)
		}
		if d < distance {
			best, distance = r, d
		}
	}
	return best
}

// ShownName is "run 2 of 3, the one nearest to the figure of all", or "the run" where there is but one.
func ShownName(c *measure.Cell) string {
	shown := ShownRun(c)
	for i := range c.Runs {
		if &c.Runs[i] == shown && len(c.Runs) > 1 {
			return fmt.Sprintf("run %d of %d, the one nearest to the figure of all", i+1, len(c.Runs))
		}
	}
	return "the run"
}

// runFigure is what the document says of a run's goodput, else what its evidence does.
func runFigure(c *measure.Cell, r *measure.Run) (float64, bool) {
	if r.Goodput != nil {
		return *r.Goodput, true
	}
	return stat.RunFigure(c, r)
}

// ShownFlow is the first flow of the run that stands for a cell, with the
// evidence of its ends, which may be nil.
func ShownFlow(c *measure.Cell) (sender, receiver *measure.Evidence) {
	if r := ShownRun(c); r != nil && len(r.Flows) > 0 {
		return r.Flows[0].Sender, r.Flows[0].Receiver
	}
	return nil, nil
}

// Evidences lists what both ends saw in every run of a cell.
func Evidences(c *measure.Cell) []*measure.Evidence {
	var all []*measure.Evidence
	for _, r := range c.Runs {
		for _, f := range r.Flows {
			for _, e := range []*measure.Evidence{f.Sender, f.Receiver} {
				if e != nil {
					all = append(all, e)
				}
			}
		}
	}
	return all
}

// IsLocalhost tells whether a cell's traffic stayed in one host.
func IsLocalhost(c *measure.Cell) bool {
	if c.From == c.To {
		return true
	}
	for _, e := range Evidences(c) {
		if a, err := netip.ParseAddrPort(e.PeerAddr); err == nil && a.Addr().Unmap().IsLoopback() {
			return true
		}
	}
	return false
}

// IsPartial tells whether a cell has a run that ended early.
func IsPartial(c *measure.Cell) bool {
	return slices.ContainsFunc(c.Runs, func(r measure.Run) bool { return r.Partial })
}

// MachineBusy is the mean over a host's cores and the busiest of them, in percent.
func MachineBusy(h *measure.HostSpan) (mean, busiest float64, ok bool) {
	if h == nil || len(h.CPUs) == 0 {
		return 0, 0, false
	}
	for _, c := range h.CPUs {
		mean += c.Busy() / float64(len(h.CPUs))
		busiest = max(busiest, c.Busy())
	}
	return mean, busiest, true
}

// Buffer is the window of the stream that got the least.
func Buffer(e *measure.Evidence) *measure.Buffer {
	if e == nil {
		return nil
	}
	var least *measure.Buffer
	for i := range e.Streams {
		if w := &e.Streams[i].Window; least == nil || w.Usable < least.Usable {
			least = w
		}
	}
	return least
}

// Second is the length of a second.
const Second = 1e9 // ns

// perBin are the values of the seconds of an end that have one.
func perBin(e *measure.Evidence, value func(i int, b *measure.StreamBin) (y float64, ok bool)) (ps []draw.Point) {
	if e == nil {
		return nil
	}
	for i := range e.Bins {
		b := &e.Bins[i]
		if y, ok := value(i, b); ok {
			ps = append(ps, draw.Point{X: Middle(b.At, b.Span), Y: y})
		}
	}
	return ps
}

// ThroughputOf is goodput over time in bit/s, as one end saw it.
func ThroughputOf(e *measure.Evidence) []draw.Point {
	return perBin(e, func(_ int, b *measure.StreamBin) (float64, bool) {
		return float64(b.Bytes) * 8 * Second / float64(b.Span), b.Span > 0
	})
}

// CPUOf is a host's CPU over time: the whole machine, and its busiest core.
func CPUOf(e *measure.Evidence) (machine, busiest []draw.Point) {
	if e == nil {
		return nil, nil
	}
	for i := range e.PerSec {
		h := &e.PerSec[i]
		if mean, most, ok := MachineBusy(h); ok {
			x := Middle(h.At, h.Span)
			machine = append(machine, draw.Point{X: x, Y: mean})
			busiest = append(busiest, draw.Point{X: x, Y: most})
		}
	}
	return machine, busiest
}

// LatencyTimeline is the time from request to response over time in ns: the mean and
// the greatest of each second.
func LatencyTimeline(e *measure.Evidence) (mean, most []draw.Point) {
	mean = perBin(e, func(_ int, b *measure.StreamBin) (float64, bool) { return float64(b.LatencyMean), b.LatencyMean > 0 })
	most = perBin(e, func(_ int, b *measure.StreamBin) (float64, bool) { return float64(b.LatencyMax), b.LatencyMean > 0 })
	return mean, most
}

// RTTOf is the sender's smoothed RTT over time in ns, the mean over its streams.
func RTTOf(e *measure.Evidence) []draw.Point {
	return perBin(e, func(_ int, b *measure.StreamBin) (float64, bool) {
		sum, n := 0.0, 0
		for _, t := range b.TCP {
			if t.RTT != nil {
				sum, n = sum+float64(*t.RTT), n+1
			}
		}
		return sum / float64(n), n > 0
	})
}

// RequestsOf is how many requests a second were answered, as the end saw it that asks.
func RequestsOf(e *measure.Evidence) []draw.Point {
	return perBin(e, func(_ int, b *measure.StreamBin) (float64, bool) {
		return float64(b.Requests) * Second / float64(b.Span), b.Span > 0
	})
}

// LostOf is the datagrams that did not come to the receiver in each second.
func LostOf(e *measure.Evidence) []draw.Point {
	return perBin(e, func(_ int, b *measure.StreamBin) (float64, bool) {
		if b.Datagrams == nil {
			return 0, false
		}
		return float64(b.Datagrams.Lost), b.Span > 0
	})
}

// RetransmitsOf is the sender's retransmitted segments in each second.
func RetransmitsOf(e *measure.Evidence) []draw.Point {
	return perBin(e, func(i int, _ *measure.StreamBin) (float64, bool) { return ResentIn(e, i).Float() })
}

// ResentIn are the segments that all streams sent again in one of the seconds.
func ResentIn(e *measure.Evidence, second int) measure.Delta {
	sum := measure.Delta{Known: len(e.Bins[second].TCP) > 0}
	for stream := range e.Bins[second].TCP {
		sum = sum.Plus(e.SecondDelta(second, stream, measure.Retransmits))
	}
	return sum
}

// Middle is the middle of an interval, in seconds.
func Middle(at, span int64) float64 { return (float64(at) + float64(span)/2) / Second }
