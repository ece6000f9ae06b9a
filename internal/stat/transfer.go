package stat

import (
	"slices"

	"thru/internal/measure"
)

// TransferFigure is the goodput of a run over the time from its first byte to
// its end, with the range of its whole seconds. There is no range of fewer than
// leastSeconds, nor where the mean lies outside of it: what moved in the last part
// of a second, or the wait for the disk, is in the mean alone. Nil where nothing passed.
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

// leastSeconds is how many make a range.
const leastSeconds = 3

// TransferRTT is the round trip of the connection that carried the most, in ns:
// the least that its kernel saw; 0 where it is not known.
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

// SpanCPU is what a span of time cost a host, other work included: no baseline
// was seen. WorkerCores is of the process that was watched, OtherCores what all others
// ran, without interrupts, which may be its traffic's. Nil where the counters were not read.
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
