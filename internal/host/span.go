package host

import (
	"fmt"
	"math"
	"slices"
	"time"

	"thru/internal/measure"
)

// Span returns the change of the counters between two snapshots of one host.
// Origin is the start of the measured time, on the same clock. A part that
// one of the snapshots lacks is absent.
//
// A counter that went back was reset or wrapped. Span accounts for a wrap at
// 32 bits and leaves out any other; it names both in Missing.
func Span(before, after Snapshot, origin time.Time) measure.HostSpan {
	var n notes
	span := measure.HostSpan{
		At:      before.Taken.Sub(origin).Nanoseconds(),
		Span:    after.Taken.Sub(before.Taken).Nanoseconds(),
		CPUs:    cpuSpan(&n, before.CPUs, after.CPUs),
		Memory:  after.Memory,
		Worker:  workerSpan(&n, before.Worker, after.Worker),
		NIC:     nicSpan(&n, before.NIC, after.NIC),
		Qdisc:   qdiscSpan(&n, before.Qdisc, after.Qdisc),
		Softnet: softnetSpan(before.Softnet, after.Softnet),
		Proto:   moved(&n, "protocol", before.Proto, after.Proto),
		Quota:   quotaSpan(&n, before.Quota, after.Quota),
		IRQs:    irqSpan(&n, before.IRQs, after.IRQs),
		Swap:    swapSpan(before.Swap, after.Swap),
	}
	slices.SortStableFunc(n, byFact) // maps have no order
	span.Missing = n
	return span
}

// cpuSpan converts times to percent of each core's own time. It leaves out
// cores that were offline at one of the ends.
func cpuSpan(n *notes, before, after []CPUTimes) []measure.CPU {
	var all []measure.CPU
	for _, a := range after {
		i := slices.IndexFunc(before, func(b CPUTimes) bool { return b.Core == a.Core })
		if i < 0 {
			continue
		}
		c, err := corePercent(before[i], a)
		if err != nil {
			n.add(fmt.Sprintf("cpus.%d", a.Core), err.Error())
			continue
		}
		all = append(all, c)
	}
	return all
}

// jitter is how far a time may go back without a reset: the kernel recomputes
// idle, I/O wait and steal at each reading (proc_stat(5)).
const jitter = int64(time.Second)

// corePercent returns the share of each kind of time in the sum of all.
func corePercent(b, a CPUTimes) (measure.CPU, error) {
	d := []int64{a.User - b.User, a.System - b.System, a.IRQ - b.IRQ, a.SoftIRQ - b.SoftIRQ, a.Steal - b.Steal, a.Idle - b.Idle}
	total := int64(0)
	for i := range d {
		if d[i] < -jitter {
			return measure.CPU{}, fmt.Errorf("its CPU times decreased by %s: the core was offline in between", time.Duration(-d[i]))
		}
		d[i] = max(d[i], 0)
		total += d[i]
	}
	if total <= 0 {
		return measure.CPU{}, fmt.Errorf("no clock tick in this period")
	}
	pct := func(i int) float64 { return 100 * float64(d[i]) / float64(total) }
	return measure.CPU{
		Core: a.Core, User: pct(0), System: pct(1), IRQ: pct(2), SoftIRQ: pct(3), Steal: pct(4), Idle: pct(5),
	}, nil
}

// workerSpan returns what the process used. The switches of a thread that has
// ended are lost.
func workerSpan(n *notes, b, a *measure.Process) *measure.Process {
	if b == nil || a == nil {
		return nil
	}
	p := measure.Process{UserNs: a.UserNs - b.UserNs, SystemNs: a.SystemNs - b.SystemNs, ResidentB: a.ResidentB}
	if p.UserNs < 0 || p.SystemNs < 0 {
		n.add("worker", "its CPU times decreased: another process has its PID now")
		return nil
	}
	p.Voluntary = switches(n, "worker.voluntary_switches", b.Voluntary, a.Voluntary)
	p.Involuntary = switches(n, "worker.involuntary_switches", b.Involuntary, a.Involuntary)
	return &p
}

// switches returns the difference of two sums over threads.
func switches(n *notes, fact string, b, a *int64) *int64 {
	if b == nil || a == nil {
		return nil
	}
	if *a < *b {
		n.add(fact, "a thread ended in this period")
		return nil
	}
	return new(*a - *b)
}

// nicSpan returns the difference of the interface's counters. They are reset
// together: where one went back, all are left out.
func nicSpan(n *notes, b, a *measure.NICSpan) *measure.NICSpan {
	if b == nil || a == nil || b.Name != a.Name {
		return nil
	}
	out := measure.NICSpan{Name: a.Name}
	reset := false
	for _, c := range []struct {
		key           string
		before, after uint64
		to            *uint64
	}{
		{"rx_bytes", b.RxBytes, a.RxBytes, &out.RxBytes}, {"tx_bytes", b.TxBytes, a.TxBytes, &out.TxBytes},
		{"rx_packets", b.RxPackets, a.RxPackets, &out.RxPackets}, {"tx_packets", b.TxPackets, a.TxPackets, &out.TxPackets},
		{"rx_dropped", b.RxDropped, a.RxDropped, &out.RxDropped}, {"tx_dropped", b.TxDropped, a.TxDropped, &out.TxDropped},
		{"rx_errors", b.RxErrors, a.RxErrors, &out.RxErrors}, {"tx_errors", b.TxErrors, a.TxErrors, &out.TxErrors},
	} {
		d, ok := rise(n, "interface."+c.key, c.before, c.after)
		*c.to, reset = d, reset || !ok
	}
	if reset {
		return nil
	}
	out.Driver = moved(n, "interface.driver", b.Driver, a.Driver)
	if b.RxRing != nil && a.RxRing != nil {
		if d, ok := rise(n, "interface.rx_ring_drops", *b.RxRing, *a.RxRing); ok {
			out.RxRing = new(d + driverRing(out.Driver))
		}
	}
	return &out
}

// qdiscSpan returns the difference of the queueing counters. Another
// discipline at the root, or counters that went back, mean that they began
// anew.
func qdiscSpan(n *notes, b, a *measure.Qdisc) *measure.Qdisc {
	if b == nil || a == nil {
		return nil
	}
	if b.Kind != a.Kind {
		n.add("qdisc", "replaced in this period: "+b.Kind+" by "+a.Kind)
		return nil
	}
	drops, ok1 := rise(n, "qdisc.drops_packets", b.Drops, a.Drops)
	overlimits, ok2 := rise(n, "qdisc.overlimits", b.Overlimits, a.Overlimits)
	requeues, ok3 := rise(n, "qdisc.requeues", b.Requeues, a.Requeues)
	if !ok1 || !ok2 || !ok3 {
		return nil
	}
	return &measure.Qdisc{Kind: a.Kind, Drops: drops, Overlimits: overlimits, Requeues: requeues, Backlog: a.Backlog}
}

// softnetSpan returns the difference for each core. The kernel keeps 32 bits,
// so the difference modulo 2^32 is right even after a wrap.
func softnetSpan(before, after []measure.Softnet) []measure.Softnet {
	var all []measure.Softnet
	for _, a := range after {
		i := slices.IndexFunc(before, func(b measure.Softnet) bool { return b.Core == a.Core })
		if i < 0 {
			continue
		}
		b := before[i]
		all = append(all, measure.Softnet{
			Core:        a.Core,
			Processed:   uint64(uint32(a.Processed - b.Processed)),
			Dropped:     uint64(uint32(a.Dropped - b.Dropped)),
			TimeSqueeze: uint64(uint32(a.TimeSqueeze - b.TimeSqueeze)),
		})
	}
	return all
}

// quotaSpan returns the difference of a quota's counters. Counters that went
// back belong to another group than before.
func quotaSpan(n *notes, b, a *measure.QuotaSpan) *measure.QuotaSpan {
	if b == nil || a == nil {
		return nil
	}
	q := measure.QuotaSpan{CPUs: a.CPUs, Periods: a.Periods - b.Periods, Throttled: a.Throttled - b.Throttled, ThrottledNs: a.ThrottledNs - b.ThrottledNs}
	if q.Periods < 0 || q.Throttled < 0 || q.ThrottledNs < 0 {
		n.add("cpu_quota", "its counters decreased: this process is now in another control group")
		return nil
	}
	return &q
}

// irqSpan returns the difference for each core that took any interrupt.
func irqSpan(n *notes, before, after []measure.IRQSpan) []measure.IRQSpan {
	var all []measure.IRQSpan
	for _, a := range after {
		i := slices.IndexFunc(before, func(b measure.IRQSpan) bool { return b.Core == a.Core })
		if i < 0 { // offline at the other reading
			continue
		}
		if d, ok := rise(n, fmt.Sprintf("interrupts.%d", a.Core), before[i].Count, a.Count); ok && d > 0 {
			all = append(all, measure.IRQSpan{Core: a.Core, Count: d})
		}
	}
	return all
}

// swapSpan returns the pages swapped, where there are any.
func swapSpan(b, a *measure.SwapSpan) *measure.SwapSpan {
	if b == nil || a == nil || *a == *b || a.InPages < b.InPages || a.OutPages < b.OutPages {
		return nil
	}
	return &measure.SwapSpan{InPages: a.InPages - b.InPages, OutPages: a.OutPages - b.OutPages}
}

// moved returns the counters that rose, or nil where a snapshot has none. It
// leaves out counters that appeared in between: their start value is not
// known.
func moved(n *notes, part string, before, after map[string]uint64) map[string]uint64 {
	if before == nil || after == nil {
		return nil
	}
	out := map[string]uint64{}
	for name, a := range after {
		b, known := before[name]
		if !known {
			continue
		}
		if d, ok := rise(n, part+"."+name, b, a); ok && d > 0 {
			out[name] = d
		}
	}
	return out
}

// rise returns how far a counter rose. A counter that fell from the upper
// half of 32 bits by more than half of the range has wrapped, on a 32-bit
// kernel or in the NIC; any other fall is a reset, and ok is false.
func rise(n *notes, fact string, before, after uint64) (d uint64, ok bool) {
	if after >= before {
		return after - before, true
	}
	wrapped := after + (1 << 32) - before
	if before <= math.MaxUint32 && wrapped < 1<<31 {
		n.add(fact, fmt.Sprintf("changed from %d to %d: counted as a 32-bit wrap", before, after))
		return wrapped, true
	}
	n.add(fact, fmt.Sprintf("decreased from %d to %d: reset in this period", before, after))
	return 0, false
}
