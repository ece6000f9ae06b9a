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

// ShownRun returns the run that represents a cell: the one whose figure is nearest to that of the cell.
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

// ShownName returns "run 2 of 3, the one nearest to the mean", or "the run" if there is only one.
func ShownName(c *measure.Cell) string {
	shown := ShownRun(c)
	for i := range c.Runs {
		if &c.Runs[i] == shown && len(c.Runs) > 1 {
			return fmt.Sprintf("run %d of %d, the one nearest to the mean", i+1, len(c.Runs))
		}
	}
	return "the run"
}

// runFigure returns a run's goodput from the document, or else from its evidence.
func runFigure(c *measure.Cell, r *measure.Run) (float64, bool) {
	if r.Goodput != nil {
		return *r.Goodput, true
	}
	return stat.RunFigure(c, r)
}

// ShownFlow returns the evidence of both ends of the first flow in the shown run; either may be nil.
func ShownFlow(c *measure.Cell) (sender, receiver *measure.Evidence) {
	if r := ShownRun(c); r != nil && len(r.Flows) > 0 {
		return r.Flows[0].Sender, r.Flows[0].Receiver
	}
	return nil, nil
}

// Evidences returns the evidence of both ends for every run of a cell.
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

// IsLocalhost reports whether a cell's traffic stayed in one host.
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

// IsPartial reports whether a cell has a run that ended early.
func IsPartial(c *measure.Cell) bool {
	return slices.ContainsFunc(c.Runs, func(r measure.Run) bool { return r.Partial })
}

// MachineBusy returns the mean load of a host's cores and that of the busiest, in percent.
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

// Buffer returns the window of the stream with the smallest one.
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

// perBin returns a point for each second of an end that has a value.
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

// ThroughputOf returns goodput over time in bit/s, as one end measured it.
func ThroughputOf(e *measure.Evidence) []draw.Point {
	return perBin(e, func(_ int, b *measure.StreamBin) (float64, bool) {
		return float64(b.Bytes) * 8 * Second / float64(b.Span), b.Span > 0
	})
}

// CPUOf returns a host's CPU load over time: of the whole machine, and of its busiest core.
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

// LatencyTimeline returns the time from request to response over time in ns: the mean and the maximum of each
// second.
func LatencyTimeline(e *measure.Evidence) (mean, most []draw.Point) {
	mean = perBin(e, func(_ int, b *measure.StreamBin) (float64, bool) { return float64(b.LatencyMean), b.LatencyMean > 0 })
	most = perBin(e, func(_ int, b *measure.StreamBin) (float64, bool) { return float64(b.LatencyMax), b.LatencyMean > 0 })
	return mean, most
}

// RTTOf returns the sender's smoothed RTT over time in ns, the mean over its streams.
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

// RequestsOf returns the answered requests per second, as the client measured them.
func RequestsOf(e *measure.Evidence) []draw.Point {
	return perBin(e, func(_ int, b *measure.StreamBin) (float64, bool) {
		return float64(b.Requests) * Second / float64(b.Span), b.Span > 0
	})
}

// LostOf returns the datagrams lost in each second.
func LostOf(e *measure.Evidence) []draw.Point {
	return perBin(e, func(_ int, b *measure.StreamBin) (float64, bool) {
		if b.Datagrams == nil {
			return 0, false
		}
		return float64(b.Datagrams.Lost), b.Span > 0
	})
}

// RetransmitsOf returns the sender's retransmitted segments in each second.
func RetransmitsOf(e *measure.Evidence) []draw.Point {
	return perBin(e, func(i int, _ *measure.StreamBin) (float64, bool) { return ResentIn(e, i).Float() })
}

// ResentIn returns the segments that all streams retransmitted in one of the seconds.
func ResentIn(e *measure.Evidence, second int) measure.Delta {
	sum := measure.Delta{Known: len(e.Bins[second].TCP) > 0}
	for stream := range e.Bins[second].TCP {
		sum = sum.Plus(e.SecondDelta(second, stream, measure.Retransmits))
	}
	return sum
}

// Middle returns the middle of an interval, in seconds.
func Middle(at, span int64) float64 { return (float64(at) + float64(span)/2) / Second }
