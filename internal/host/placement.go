package host

import (
	"slices"

	"thru/internal/unit"
)

// PlacementQuery holds what the choice of CPUs for the data thread of one
// stream depends on. PlacementFacts.Query sets the host's part.
type PlacementQuery struct {
	Allowed     []int         // CPUs that the process may use, in order (Allowed)
	Loopback    bool          // both ends are on this host and use loopback
	Stream      int           // number of this stream among the parallel ones, from 0
	Streams     int           // number of parallel streams
	IncomingCPU *int          // CPU that handled the last packet of the flow (socket(7), SO_INCOMING_CPU); nil or negative: not known
	LocalCPUs   []int         // CPUs of the interface's NUMA node; nil: not known, or the host has one node
	IRQCPUs     []int         // CPUs that handle the interface's interrupts
	Siblings    map[int][]int // for each CPU the CPUs of its core, itself included
}

// enough is how many CPUs must remain before Placement leaves one out.
const enough = 3

// Placement returns the CPUs for the data thread of a stream, and the reason
// in words for a person. No CPUs: the scheduler decides.
//
// Over loopback a packet is handled where it was sent, so the two ends of a
// stream take turns on one CPU and nothing moves between caches; both ends
// come to the same answer. On a NIC the CPUs of its NUMA node are nearest to
// its memory. Placement avoids the CPU that handles the flow's interrupts and
// the rest of its core, since a CPU busy with interrupts cannot also copy, as
// long as that leaves a CPU for each stream.
func Placement(p PlacementQuery) (cpus []int, why string) {
	if len(p.Allowed) == 0 {
		return nil, "left to the scheduler: the CPUs of this process are not known"
	}
	if p.Loopback {
		last := len(p.Allowed) - 1 // from the last one down: the first one does most of a host's other work
		return []int{p.Allowed[last-max(p.Stream, 0)%len(p.Allowed)]}, "both ends of a loopback stream on one CPU"
	}
	if len(p.LocalCPUs) == 0 {
		return nil, "left to the scheduler: no CPUs are known to be near the interface"
	}
	near := common(p.LocalCPUs, p.Allowed)
	if len(near) == 0 {
		return nil, "left to the scheduler: this process may not use the CPUs near the interface, " + unit.List(p.LocalCPUs)
	}
	why = "near the interface (NUMA)"
	busy := common(near, p.busy(near))
	rest := without(near, busy)
	if len(busy) == 0 || len(rest) < enough {
		return near, why
	}
	why += ", not on CPU " + unit.List(busy) + " where its interrupts are handled"
	var core []int
	for _, cpu := range busy {
		core = append(core, common(rest, p.Siblings[cpu])...)
	}
	if fewer := without(rest, core); len(fewer) < len(rest) && len(fewer) >= max(enough, p.Streams) {
		rest, why = fewer, why+", nor on "+unit.List(core)+" of the same core"
	}
	return rest, why
}

// busy returns the CPUs that are busy with the flow's interrupts: the CPU
// that handled its last packet or, before the first packet, all that the
// interface interrupts where those are a minority.
func (p PlacementQuery) busy(near []int) []int {
	if p.IncomingCPU != nil && *p.IncomingCPU >= 0 {
		return []int{*p.IncomingCPU}
	}
	if 2*len(common(near, p.IRQCPUs)) < len(near) {
		return p.IRQCPUs
	}
	return nil
}

// common returns the elements of a that are in b.
func common(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(n int) bool { return !slices.Contains(b, n) })
}

// without returns the elements of a that are not in b.
func without(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(n int) bool { return slices.Contains(b, n) })
}
