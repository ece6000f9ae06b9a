package stat

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// cpu fills the CPU cost of each end. If both ends are one host, machine and cores count both ends; only the
// worker's are of one end then.
func (s *summary) cpu() {
	s.cell.SenderCPU = s.cpuOf(senderSide)
	s.cell.ReceiverCPU = s.cpuOf(receiverSide)
	if s.cell.From == s.cell.To && s.cell.SenderCPU != nil {
		s.missing("cpu_of_each_end", "both ends are one host")
	}
}

// clockTick is the resolution of the CPU counters in a short run, in cores.
const clockTick = 0.05

// cpuOf returns the mean over the runs of one end's CPU.
func (s *summary) cpuOf(side string) *measure.CPUFigure {
	var machine, cores, other, worker []float64
	perCore, seenIdle := map[int][]float64{}, false
	for _, p := range s.runs {
		e := p.side(side)
		if e == nil || e.Host == nil || len(e.Host.CPUs) == 0 {
			continue
		}
		var busy []float64
		for _, c := range e.Host.CPUs {
			busy = append(busy, c.Busy())
			perCore[c.Core] = append(perCore[c.Core], c.Busy())
		}
		machine = append(machine, Mean(busy))
		idle := s.baseline(side, e)
		cores, other, seenIdle = append(cores, CoresUsed(busy, idle)), append(other, Sum(idle)/100), seenIdle || len(idle) > 0
		if w := e.Worker; w != nil && e.MeasuredNs > 0 {
			worker = append(worker, (float64(w.UserNs)+float64(w.SystemNs))/float64(e.MeasuredNs))
		}
	}
	if len(machine) == 0 {
		s.missing(side+"_cpu", s.why(side, "host.cpus", "the CPU counters of the "+side+" were not read"))
		return nil
	}
	f := &measure.CPUFigure{Pct: Mean(machine), Cores: Mean(cores), WorkerCores: Known(Mean(worker))}
	busiestOf(f, perCore)
	switch {
	case s.cell.Goodput == nil: // requests have no rate in Gb/s
	case s.cell.AtOnce > 1:
		s.missing(side+"_cpu.pct_per_gbps", "other traffic ran at the same time: the machine's CPU use includes all of it")
	default:
		if why := cpuCostOf(f, Mean(other), s.cell.Goodput.Value); why != "" {
			s.missing(side+"_cpu.pct_per_gbps", why)
		}
	}
	if seenIdle {
		f.OtherCores = Known(max(0, f.Pct/100*float64(len(perCore))-f.Cores))
	}
	return f
}

// busiestOf fills the busiest core, by the means of several readings.
func busiestOf(f *measure.CPUFigure, perCore map[int][]float64) {
	for _, core := range slices.Sorted(maps.Keys(perCore)) {
		if pct := Mean(perCore[core]); pct > f.MaxCorePct {
			f.MaxCore, f.MaxCorePct = core, pct
		}
	}
}

// cpuCostOf fills the host's CPU cost of a Gb/s, or returns why it is not known: the difference of two readings is
// the test's alone only if other work, given in cores used without the test, is less. If the machine's counters
// show less than the worker used, the worker's use is the minimum.
func cpuCostOf(f *measure.CPUFigure, other, bps float64) (why string) {
	switch {
	case f.WorkerCores != nil && f.Cores+clockTick < *f.WorkerCores:
		f.Cores = *f.WorkerCores // at least
		return "the host did other work, more without the test than during it"
	case f.Cores <= 0:
		return "the host did other work, as much without the test as during it"
	case f.Cores <= clockTick:
		return "the test used less CPU time than the counters can resolve"
	case other > f.Cores:
		return "the host did other work, which took more CPU time than the test"
	case bps < leastForCPU:
		return "the rate is too low: other work of the host takes more CPU time"
	}
	f.PctPerGbps = Known(PctPerGbps(f.Cores, bps))
	return ""
}

// leastForCPU is the rate in bit/s from which a cost per Gb/s is meaningful.
const leastForCPU = 10e6

// baseline returns how busy each core was when no test ran.
func (s *summary) baseline(side string, e *measure.Evidence) []float64 {
	if e.Base == nil || len(e.Base.CPUs) == 0 {
		s.missing(side+"_cpu.idle_baseline", "the host was not measured while idle: cores_used includes its other work")
		return nil
	}
	return unit.Mapped(e.Base.CPUs, measure.CPU.Busy)
}

// memory fills what each machine had in use and what the worker process held, the maximum of the runs. Kernel
// buffers are only in the machine's figure.
func (s *summary) memory() {
	s.cell.SenderMem = s.memoryOf(senderSide)
	s.cell.ReceiverMem = s.memoryOf(receiverSide)
}

func (s *summary) memoryOf(side string) *measure.MemFigure {
	var used, total, worker int64
	for _, p := range s.runs {
		e := p.side(side)
		if e != nil && e.Worker != nil {
			worker = max(worker, e.Worker.ResidentB)
		}
		if e != nil && e.Host != nil && e.Host.Memory != nil {
			used, total = max(used, e.Host.Memory.Total-e.Host.Memory.Available), e.Host.Memory.Total
		}
	}
	f := memFigure(used, total, worker)
	if f == nil {
		s.missing(side+"_memory", s.why(side, "host.memory", "the memory of the "+side+" was not read"))
	}
	return f
}

// memFigure returns nil if nothing is known.
func memFigure(used, total, worker int64) *measure.MemFigure {
	positive := func(n int64) *int64 {
		if n <= 0 {
			return nil
		}
		return &n
	}
	if f := (measure.MemFigure{Used: positive(used), Total: positive(total), Worker: positive(worker)}); f != (measure.MemFigure{}) {
		return &f
	}
	return nil
}

// Thresholds of confinement.
const (
	mostOutside = 5 // percent of the interrupt work outside the CPUs of the process
	leastSoftPC = 1 // percent of a CPU: less of that work is irrelevant
)

// warnConfined warns if a process bound to some CPUs ran on others, and reports how much of the kernel's work for
// received packets ran on others: that work belongs to no thread, and follows the interrupts (B-16).
func (s *summary) warnConfined() {
	for _, side := range []string{senderSide, receiverSide} {
		list := s.cell.Spec.ReceiverCPUs
		if side == senderSide {
			list = s.cell.Spec.SenderCPUs
		}
		cpus, err := unit.ParseList(list, unit.MaxCPU)
		if err == nil && len(s.runs) > 0 {
			s.confined(side, list, cpus)
		}
	}
}

// confined judges one end, over the runs that count.
func (s *summary) confined(side, list string, cpus []int) {
	var inside, outside float64
	var others []int
	name, known := "", false
	for _, p := range s.runs {
		e := p.side(side)
		if e == nil {
			continue
		}
		if e.CPUs == "" {
			s.warn("%s %s was not confined to CPUs %s: the program there does not support it", side, e.EndPoint, list)
			return
		}
		if e.Host == nil || len(e.Host.CPUs) == 0 {
			continue
		}
		name, known = e.EndPoint, true
		for _, c := range e.Host.CPUs {
			if slices.Contains(cpus, c.Core) {
				inside += softOf(c)
				continue
			}
			outside += softOf(c)
			if softOf(c) >= leastSoftPC {
				others = append(others, c.Core)
			}
		}
	}
	if !known {
		s.missing(side+"_cpu.outside", s.why(side, "host.cpus", "the CPU counters of the "+side+" were not read, so it is not known whether the work for its packets stayed on CPUs "+list))
		return
	}
	share := 100 * ratio(outside, inside+outside)
	if share > mostOutside && len(others) > 0 {
		s.warn("not confined: %s of the work for packets at %s was on CPUs %s, not on %s; interrupts (/proc/irq/N/smp_affinity_list) and RPS decide where it runs",
			unit.Percent(share), name, unit.List(others), list)
	}
}

// softOf returns the time of a CPU that went to interrupts and packets, in percent.
func softOf(c measure.CPU) float64 { return max(0, c.IRQ) + max(0, c.SoftIRQ) }

// captured reports what capturing cost the figures, and which capture failed.
func (s *summary) captured() {
	var last []measure.Capture
	for i := range s.cell.Runs {
		f := flowOf(s.cell, &s.cell.Runs[i])
		if f == nil {
			continue
		}
		for _, m := range f.Missing {
			if !slices.Contains(s.cell.Missing, m) {
				s.cell.Missing = append(s.cell.Missing, m)
			}
		}
		if len(f.Captures) > 0 {
			last = f.Captures
		}
	}
	var ends []string
	for _, c := range last {
		if c.EndPoint != "" {
			ends = append(ends, costOf(c))
		}
	}
	if len(ends) > 0 {
		s.warn("a capture ran: %s; the figures include its cost", strings.Join(ends, ", "))
	}
}

// costOf words the cost of a capture: CPU time of the thread that took the packets, over their time.
func costOf(c measure.Capture) string {
	text := fmt.Sprintf("%s packets at %s", unit.Count(c.Packets), c.EndPoint)
	if c.CPUNs != nil && c.SpanNs > 0 {
		text += fmt.Sprintf(" for %s of a core", unit.Percent(100*float64(*c.CPUNs)/float64(c.SpanNs)))
	}
	return text
}
