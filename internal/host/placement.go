package host

import (
	"slices"

	"thru/internal/unit"
)

// PlacementQuery is what the choice of CPUs for the data thread of one stream
// depends on. PlacementFacts.Query fills in what belongs to the host.
type PlacementQuery struct {
	Allowed     []int         // CPUs that the process may use, in order (Allowed)
	Loopback    bool          // both ends are on this host and talk over loopback
	Stream      int           // number of the stream among all that run at once, from 0
	Streams     int           // how many run at once
	IncomingCPU *int          // CPU that handled the last packet of the flow (socket(7), SO_INCOMING_CPU); nil or negative: not known
	LocalCPUs   []int         // CPUs of the interface's NUMA node; nil: not known, or the host has one node
	IRQCPUs     []int         // CPUs that the interface's interrupts go to
	Siblings    map[int][]int // for a CPU those of its core, itself among them
}

// enough is how many CPUs must remain before one is left out.
const enough = 3

// Placement decides on which CPUs the data thread of a stream shall run, and
// says why in words for a person. No CPUs: the scheduler decides.
//
// Over loopback a packet is handled where it was sent, so the two ends of a
// stream take turns on one CPU without anything being moved between caches;
// both ends come to the same answer. On a NIC the memory next to it is nearest
// to the CPUs of its NUMA node. The one that handles the flow's interrupts is
// spared, since a CPU full of that work cannot also copy, and so is the rest of
// its core, as long as that leaves a CPU for each stream.
func Placement(p PlacementQuery) (cpus []int, why string) {
	if len(p.Allowed) == 0 {
		return nil, "left to the scheduler: the CPUs of this process are not known"
	}
	if p.Loopback {
		last := len(p.Allowed) - 1 // from the last one down: the first does most of a host's other work
		return []int{p.Allowed[last-max(p.Stream, 0)%len(p.Allowed)]}, "both ends of a loopback stream on one CPU"
	}
	if len(p.LocalCPUs) == 0 {
		return nil, "left to the scheduler: no CPU is known to be nearer to the interface than others"
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

// busy are the CPUs full of the flow's interrupts: the one that handled its
// last packet or, before there was one, all that the interface interrupts
// where those are the lesser part.
func (p PlacementQuery) busy(near []int) []int {
	if p.IncomingCPU != nil && *p.IncomingCPU >= 0 {
		return []int{*p.IncomingCPU}
	}
	if 2*len(common(near, p.IRQCPUs)) < len(near) {
		return p.IRQCPUs
	}
	return nil
}

// common returns the elements of a that b has too.
func common(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(n int) bool { return !slices.Contains(b, n) })
}

// without returns the elements of a that b has not.
func without(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(n int) bool { return slices.Contains(b, n) })
}
