package stat

import (
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

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
