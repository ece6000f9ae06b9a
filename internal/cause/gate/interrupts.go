package gate

import (
	"fmt"

	"thru/internal/cause/knob"
)

// mostLines bounds the commands of one remedy.
const mostLines = 16

// SpreadInterrupts gives each interrupt a CPU of its own, of the adapter's node first.
func SpreadInterrupts(f *Face) Remedy {
	switch f.Host.System {
	case "linux":
	case "windows":
		return Commands(cmdletLasts, f.Typed(knob.IRQAffinity, "")...)
	default:
		return Remedy{}
	}
	cpus := f.Host.NodeCPUs(f)
	if len(cpus) == 0 {
		for c := range min(f.Host.CPUs(), 4096) {
			cpus = append(cpus, c)
		}
	}
	r := Remedy{Risk: "lasts until the next boot; irqbalance may undo it: systemctl stop irqbalance"}
	for i, q := range f.IRQs {
		if i == mostLines {
			r.Advice = fmt.Sprintf("the other %d interrupts likewise", len(f.IRQs)-i)
			break
		}
		r.Lines = append(r.Lines, fmt.Sprintf("echo %d > /proc/irq/%d/smp_affinity_list", cpus[i%len(cpus)], q.Number))
	}
	return r
}

// NodeCPUs are the CPUs of the adapter's node; nil where that is not known.
func (h *Host) NodeCPUs(f *Face) []int {
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

// Adaptive lets the driver choose how long it waits.
func Adaptive(f *Face) Remedy {
	if f.Host.System != "linux" {
		return Remedy{}
	}
	return Commands(LinkLasts, f.Typed(knob.Coalescing, "adaptive-rx on")...)
}
