package gate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/knob"
	"thru/internal/measure"
	"thru/internal/unit"
)

// interruptRules judge which CPUs an interface keeps busy.
func interruptRules() []Rule {
	return []Rule{
		{ID: "irq-spread", Title: "Interrupts over the CPUs", About: "the CPUs that take the interrupts of an interface with several queues",
			Warns:  "all of its interrupts go to one CPU of several, without RPS",
			Why:    "one CPU then takes the packets of all queues: the queues gain nothing",
			Source: "Linux scaling.rst", Remedy: "one CPU for each queue", Cause: "irq-one-cpu", Checklist: []string{"C-11", "C-29"}, face: irqSpread},
		{ID: "irq-sharing", Title: "Shared interrupts", About: "whether other devices have the same interrupt",
			Warns:  "another device has it",
			Why:    "each interrupt then asks the drivers of all its devices; one slow driver holds up the others",
			Source: "C-11", Remedy: "MSI-X, or another slot", Cause: "irq-one-cpu", Checklist: []string{"C-11"}, face: irqSharing},
		{ID: "numa", Title: "NUMA node of the adapter", About: "the node of the slot against the CPUs that thru may use and those that take the interrupts",
			Warns:  "thru may use no CPU of that node; or from 25 Gb/s on all interrupts go to other nodes",
			Why:    "memory of another node costs 10 to 40% of the rate from 40 Gb/s on",
			Source: "the catalogue of causes (numa-remote)", Remedy: "CPUs of the adapter's node", Cause: "numa-remote", Checklist: []string{"C-29", "C-11"}, face: numa},
		{ID: "interrupt-moderation", Title: "Interrupt moderation", About: "how long the adapter waits before it interrupts",
			Warns:  "500 us or more after a received packet, fixed",
			Why:    "the wait is added to every round trip, and bursts of that length fill the ring",
			Source: "ethtool(8), -c", Remedy: "let the driver choose", Cause: "interrupt-moderation", Checklist: []string{"B-19", "C-24"}, face: moderation},
	}
}

// takers are the CPUs that take the interrupts of the interface: as set, or
// as counted where the setting is not known.
func (f *face) takers() (cpus []int, irqs int) {
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
	for _, key := range sortedKeys(q.Counts) {
		if cpu, err := strconv.Atoi(key); err == nil && q.Counts[key] > most {
			best, most = cpu, q.Counts[key]
		}
	}
	if best < 0 {
		return nil
	}
	return []int{best}
}

func irqSpread(f *face) *finding {
	if !f.device() || f.rxQueues() <= 1 || f.host.cpus() <= 1 {
		return nil
	}
	cpus, irqs := f.takers()
	switch {
	case irqs == 0:
		return f.missing("interrupts of "+f.Name, "interrupts")
	case irqs > 1 && len(cpus) == 1 && len(f.RPS) == 0:
		return warn("all %d interrupts of %s go to CPU %d, of %d", irqs, f.Name, cpus[0], f.host.cpus()).do(spreadInterrupts(f))
	}
	return pass("%d interrupts of %s go to %d CPUs", irqs, f.Name, len(cpus))
}

// mostLines bounds the commands of one remedy.
const mostLines = 16

// spreadInterrupts gives each interrupt a CPU of its own, of the adapter's node first.
func spreadInterrupts(f *face) remedy {
	switch f.host.os {
	case "linux":
	case "windows":
		return commands(cmdletLasts, f.typed(knob.IRQAffinity, "")...)
	default:
		return remedy{}
	}
	cpus := f.host.nodeCPUs(f)
	if len(cpus) == 0 {
		for c := range min(f.host.cpus(), 4096) {
			cpus = append(cpus, c)
		}
	}
	r := remedy{risk: "lasts until the next boot; irqbalance may undo it: systemctl stop irqbalance"}
	for i, q := range f.IRQs {
		if i == mostLines {
			r.advice = fmt.Sprintf("the other %d interrupts likewise", len(f.IRQs)-i)
			break
		}
		r.lines = append(r.lines, fmt.Sprintf("echo %d > /proc/irq/%d/smp_affinity_list", cpus[i%len(cpus)], q.Number))
	}
	return r
}

// nodeCPUs are the CPUs of the adapter's node; nil where that is not known.
func (h *host) nodeCPUs(f *face) []int {
	if f.NUMANode == nil {
		return nil
	}
	for _, n := range h.NUMA {
		if n.Node == *f.NUMANode {
			return n.CPUs
		}
	}
	return nil
}

func irqSharing(f *face) *finding {
	if len(f.IRQs) == 0 {
		return nil
	}
	for _, q := range f.IRQs {
		if len(q.Shared) > 0 {
			return warn("interrupt %d of %s is shared with %s", q.Number, f.Name, strings.Join(q.Shared[:min(3, len(q.Shared))], ", ")).
				do(advise("use MSI-X (driver option, BIOS), or another slot").risking("the host must be shut down"))
		}
	}
	return pass("no device shares the %d interrupts of %s", len(f.IRQs), f.Name)
}

func numa(f *face) *finding {
	local := f.host.nodeCPUs(f)
	if !f.device() || len(f.host.NUMA) < 2 || len(local) == 0 {
		return nil
	}
	if c := f.host.Cgroup; c != nil && len(c.CPUs) > 0 && !shares(c.CPUs, local) {
		return warn("%s is at NUMA node %d, and thru may use CPUs of other nodes only", f.Name, *f.NUMANode).
			do(advise("start thru with CPUs of that node: taskset -c " + unit.List(local) + " thru ..."))
	}
	cpus, irqs := f.takers()
	if irqs > 0 && !shares(cpus, local) && max(f.speed(), f.wanted()) >= 25_000_000_000 {
		return warn("%s is at NUMA node %d, its interrupts go to other nodes", f.Name, *f.NUMANode).do(spreadInterrupts(f))
	}
	return pass("%s is at NUMA node %d, with %d CPUs", f.Name, *f.NUMANode, len(local))
}

// shares tells whether two lists have a member in common.
func shares(a, b []int) bool {
	return slices.ContainsFunc(a, func(n int) bool { return slices.Contains(b, n) })
}

func moderation(f *face) *finding {
	c := f.Coalesce
	if c == nil || !f.wired() {
		return nil
	}
	if !c.AdaptiveRX && c.RXNs >= 500_000 {
		return warn("%s waits %s after a received packet", f.Name, span(c.RXNs)).do(adaptive(f))
	}
	if c.AdaptiveRX {
		return pass("%s chooses how long it waits before it interrupts", f.Name)
	}
	return pass("%s waits %s after a received packet", f.Name, span(max(0, c.RXNs)))
}

// adaptive lets the driver choose how long it waits.
func adaptive(f *face) remedy {
	if f.host.os != "linux" {
		return remedy{}
	}
	return commands(linkLasts, f.typed(knob.Coalescing, "adaptive-rx on")...)
}
