package nic

import (
	"slices"
	"strconv"
	"strings"

	"thru/internal/cause/gate"
	"thru/internal/measure"
	"thru/internal/unit"
)

// InterruptGates judge which CPUs an interface keeps busy.
func InterruptGates() []gate.Rule {
	return []gate.Rule{
		{ID: "irq-spread", Title: "Interrupts over the CPUs", About: "the CPUs that take the interrupts of an interface with several queues",
			Warns:  "all of its interrupts go to one CPU of several, without RPS",
			Why:    "one CPU then takes the packets of all queues: the queues gain nothing",
			Source: "Linux scaling.rst", Remedy: "one CPU for each queue", Cause: "irq-one-cpu", Checklist: []string{"C-11", "C-29"}, Face: irqSpread},
		{ID: "irq-sharing", Title: "Shared interrupts", About: "whether other devices have the same interrupt",
			Warns:  "another device has it",
			Why:    "each interrupt then asks the drivers of all its devices; one slow driver holds up the others",
			Source: "C-11", Remedy: "MSI-X, or another slot", Cause: "irq-one-cpu", Checklist: []string{"C-11"}, Face: irqSharing},
		{ID: "numa", Title: "NUMA node of the adapter", About: "the node of the slot against the CPUs that thru may use and those that take the interrupts",
			Warns:  "thru may use no CPU of that node; or from 25 Gb/s on all interrupts go to other nodes",
			Why:    "memory of another node costs 10 to 40% of the rate from 40 Gb/s on",
			Source: "the catalogue of causes (numa-remote)", Remedy: "CPUs of the adapter's node", Cause: "numa-remote", Checklist: []string{"C-29", "C-11"}, Face: numa},
		{ID: "interrupt-moderation", Title: "Interrupt moderation", About: "how long the adapter waits before it interrupts",
			Warns:  "500 us or more after a received packet, fixed",
			Why:    "the wait is added to every round trip, and bursts of that length fill the ring",
			Source: "ethtool(8), -c", Remedy: "let the driver choose", Cause: "interrupt-moderation", Checklist: []string{"B-19", "C-24"}, Face: moderation},
	}
}

// takers are the CPUs that take the interrupts of the interface: as set, or
// as counted where the setting is not known.
func takers(f *gate.Face) (cpus []int, irqs int) {
	for _, q := range f.IRQs {
		list := q.Effective
		if len(list) == 0 {
			list = counted(q)
		}
		if len(list) > 0 {
			irqs++
			cpus = append(cpus, list...)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), irqs
}

// counted is the CPU that took an interrupt most often.
func counted(q measure.IRQ) []int {
	best, most := -1, int64(0)
	for _, key := range gate.SortedKeys(q.Counts) {
		if cpu, err := strconv.Atoi(key); err == nil && q.Counts[key] > most {
			best, most = cpu, q.Counts[key]
		}
	}
	if best < 0 {
		return nil
	}
	return []int{best}
}

func irqSpread(f *gate.Face) *gate.Finding {
	if !f.Device() || f.RxQueues() <= 1 || f.Host.CPUs() <= 1 {
		return nil
	}
	cpus, irqs := takers(f)
	switch {
	case irqs == 0:
		return f.Missing("interrupts of "+f.Name, "interrupts")
	case irqs > 1 && len(cpus) == 1 && len(f.RPS) == 0:
		return gate.Warn("all %d interrupts of %s go to CPU %d, of %d", irqs, f.Name, cpus[0], f.Host.CPUs()).Do(gate.SpreadInterrupts(f))
	}
	return gate.Pass("%d interrupts of %s go to %d CPUs", irqs, f.Name, len(cpus))
}

func irqSharing(f *gate.Face) *gate.Finding {
	if len(f.IRQs) == 0 {
		return nil
	}
	for _, q := range f.IRQs {
		if len(q.Shared) > 0 {
			return gate.Warn("interrupt %d of %s is shared with %s", q.Number, f.Name, strings.Join(q.Shared[:min(3, len(q.Shared))], ", ")).
				Do(gate.Advise("use MSI-X (driver option, BIOS), or another slot").Risking("the host must be shut down"))
		}
	}
	return gate.Pass("no device shares the %d interrupts of %s", len(f.IRQs), f.Name)
}

func numa(f *gate.Face) *gate.Finding {
	local := f.Host.NodeCPUs(f)
	if !f.Device() || len(f.Host.NUMA) < 2 || len(local) == 0 {
		return nil
	}
	if c := f.Host.Cgroup; c != nil && len(c.CPUs) > 0 && !shares(c.CPUs, local) {
		return gate.Warn("%s is at NUMA node %d, and thru may use CPUs of other nodes only", f.Name, *f.NUMANode).
			Do(gate.Advise("start thru with CPUs of that node: taskset -c " + unit.List(local) + " thru ..."))
	}
	cpus, irqs := takers(f)
	if irqs > 0 && !shares(cpus, local) && max(f.Speed(), f.Wanted()) >= 25_000_000_000 {
		return gate.Warn("%s is at NUMA node %d, its interrupts go to other nodes", f.Name, *f.NUMANode).Do(gate.SpreadInterrupts(f))
	}
	return gate.Pass("%s is at NUMA node %d, with %d CPUs", f.Name, *f.NUMANode, len(local))
}

// shares tells whether two lists have a member in common.
func shares(a, b []int) bool {
	return slices.ContainsFunc(a, func(n int) bool { return slices.Contains(b, n) })
}

func moderation(f *gate.Face) *gate.Finding {
	c := f.Coalesce
	if c == nil || !f.Wired() {
		return nil
	}
	if !c.AdaptiveRX && c.RXNs >= 500_000 {
		return gate.Warn("%s waits %s after a received packet", f.Name, gate.Span(c.RXNs)).Do(gate.Adaptive(f))
	}
	if c.AdaptiveRX {
		return gate.Pass("%s chooses how long it waits before it interrupts", f.Name)
	}
	return gate.Pass("%s waits %s after a received packet", f.Name, gate.Span(max(0, c.RXNs)))
}
