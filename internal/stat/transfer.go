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

// DiskLimit is what limits one access pattern of a disk test.
type DiskLimit int

// Limits of a disk test.
const (
	DiskUnknown DiskLimit = iota
	DiskWorkers           // the rate still rose with the number of workers
	DiskCPU               // all CPUs of the machine are busy
	DiskMemory            // the disk is about as fast as a file in memory
	DiskDevice            // more workers carry no more, and the device is busy
)

// Thresholds of DiskLimitOf, in percent.
const (
	AllCPUs    = 95 // of the machine: no CPU is idle
	likeMemory = 90 // of the rate of the same pattern in memory
	fullDevice = 90 // utilization of the device
)

// DiskLimitOf returns what limits a pattern; DiskUnknown without a rate or without evidence. Utilization alone
// limits nothing: a device that serves requests in parallel may be busy all the time and carry more (iostat(1),
// %util), so more workers must have been tried.
func DiskLimitOf(t *measure.DiskTest, r *measure.DiskRun) DiskLimit {
	inMemory := func(m measure.DiskRun) bool {
		return m.Pattern == r.Pattern && m.Bytes != nil && r.Bytes.Value >= likeMemory/100.0*m.Bytes.Value
	}
	switch {
	case r.Bytes == nil:
		return DiskUnknown
	case r.Rising:
		return DiskWorkers
	case r.CPU != nil && r.CPU.Pct >= AllCPUs:
		return DiskCPU
	case slices.ContainsFunc(t.Memory, inMemory):
		return DiskMemory
	case len(r.Tried) > 1 && r.BusyPct != nil && *r.BusyPct >= fullDevice:
		return DiskDevice
	}
	return DiskUnknown
}
