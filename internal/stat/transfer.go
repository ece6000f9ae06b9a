package stat

import (
	"slices"

	"thru/internal/measure"
)

// TransferFigure returns the goodput of a run from its first byte to its end, with the range of its whole seconds.
// There is no range with fewer than leastSeconds, or if the mean is outside it: data in the last partial second,
// or the wait for the disk, counts only in the mean. nil if nothing passed.
func TransferFigure(x *measure.TransferRun) *measure.Figure {
	if x.ElapsedNs <= 0 || x.Bytes <= 0 {
		return nil
	}
	rate := float64(x.Bytes) * 8e9 / float64(x.ElapsedNs)
	f := singleRun(rate, x.Seconds, Steady(x.Seconds))
	if len(x.Seconds) < leastSeconds || rate < slices.Min(x.Seconds) || rate > slices.Max(x.Seconds) {
		f.Low, f.High = rate, rate
	}
	return f
}

// leastSeconds is how many seconds make a range.
const leastSeconds = 3

// TransferRTT returns the round-trip time of the connection that carried the most, in ns: the minimum that its
// kernel saw; 0 if it is not known.
func TransferRTT(x *measure.TransferRun) int64 {
	if len(x.Sockets) == 0 || x.Sockets[0].TCP == nil {
		return 0
	}
	for _, ns := range []*int64{x.Sockets[0].TCP.MinRTT, x.Sockets[0].TCP.RTT} {
		if ns != nil && *ns > 0 {
			return *ns
		}
	}
	return 0
}

// SpanCPU returns the CPU load of a host over a span of time, other work included: there is no baseline.
// WorkerCores is that of the watched process, OtherCores that of all other processes, without interrupts, which
// may come from its traffic. nil if the counters were not read.
func SpanCPU(s *measure.HostSpan) *measure.CPUFigure {
	if s == nil || len(s.CPUs) == 0 {
		return nil
	}
	f := &measure.CPUFigure{}
	ran := 0.0 // by processes
	for _, c := range s.CPUs {
		f.Cores += c.Busy() / 100
		ran += (c.User + c.System) / 100
		if c.Busy() > f.MaxCorePct {
			f.MaxCore, f.MaxCorePct = c.Core, c.Busy()
		}
	}
	f.Pct = 100 * f.Cores / float64(len(s.CPUs))
	if s.Worker != nil && s.Span > 0 {
		own := float64(s.Worker.UserNs+s.Worker.SystemNs) / float64(s.Span)
		f.WorkerCores, f.OtherCores = Known(own), Known(max(0, ran-own))
	}
	return f
}
