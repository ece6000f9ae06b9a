package host

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// upTo returns n numbers from first on.
func upTo(first, n int) []int {
	var all []int
	for i := range n {
		all = append(all, first+i)
	}
	return all
}

func TestPlacement(t *testing.T) {
	// Two sockets of 8 cores with 2 threads: CPU n and n+16 share a core.
	node1 := append(upTo(8, 8), upTo(24, 8)...)
	siblings := map[int][]int{}
	for n := range 16 {
		siblings[n], siblings[n+16] = []int{n, n + 16}, []int{n, n + 16}
	}
	twoNodes := func(change func(*PlacementQuery)) PlacementQuery {
		p := PlacementQuery{Allowed: upTo(0, 32), Streams: 1, LocalCPUs: node1, Siblings: siblings}
		change(&p)
		return p
	}
	for _, c := range []struct {
		name string
		p    PlacementQuery
		want []int
		why  string
	}{
		{"1 CPU, loopback", PlacementQuery{Allowed: []int{0}, Loopback: true, Stream: 3, Streams: 4}, []int{0}, "both ends of a loopback stream on one CPU"},
		{"2 CPUs, loopback, first", PlacementQuery{Allowed: []int{0, 1}, Loopback: true, Streams: 2}, []int{1}, "one CPU"},
		{"2 CPUs, loopback, second", PlacementQuery{Allowed: []int{0, 1}, Loopback: true, Stream: 1, Streams: 2}, []int{0}, "one CPU"},
		{"more streams than CPUs, loopback", PlacementQuery{Allowed: []int{0, 1}, Loopback: true, Stream: 5, Streams: 6}, []int{0}, "one CPU"},
		{"restricted cpuset, loopback", PlacementQuery{Allowed: []int{4, 9}, Loopback: true, Stream: 1}, []int{4}, "one CPU"},
		{"loopback on two nodes", twoNodes(func(p *PlacementQuery) { p.Loopback, p.Stream = true, 9 }), []int{22}, "one CPU"},
		{"1 CPU, no locality", PlacementQuery{Allowed: []int{0}}, nil, "left to the scheduler: no CPUs are known to be near"},
		{"unknown NUMA node, virtual NIC", PlacementQuery{Allowed: upTo(0, 8), IRQCPUs: []int{2}, IncomingCPU: new(2)}, nil, "left to the scheduler"},
		{"affinity not known", PlacementQuery{Loopback: true, LocalCPUs: node1}, nil, "left to the scheduler: the CPUs of this process are not known"},
		{"NIC on node 1", twoNodes(func(*PlacementQuery) {}), node1, "near the interface (NUMA)"},
		{"negative: not known", twoNodes(func(p *PlacementQuery) { p.IncomingCPU = new(-1) }), node1, "near the interface (NUMA)"},
		{"interrupts of the flow", twoNodes(func(p *PlacementQuery) { p.IncomingCPU, p.IRQCPUs = new(9), node1 }),
			without(node1, []int{9, 25}), "near the interface (NUMA), not on CPU 9 where its interrupts are handled, nor on 25 of the same core"},
		{"interrupts on the other node", twoNodes(func(p *PlacementQuery) { p.IncomingCPU = new(3) }), node1, "near the interface (NUMA)"},
		{"more streams than cores without it", twoNodes(func(p *PlacementQuery) { p.IncomingCPU, p.Streams = new(9), 15 }),
			without(node1, []int{9}), "near the interface (NUMA), not on CPU 9 where its interrupts are handled"},
		{"all interrupts on two CPUs, no packet yet", twoNodes(func(p *PlacementQuery) { p.IRQCPUs = []int{0, 8, 9} }),
			without(node1, []int{8, 9, 24, 25}), "not on CPU 8-9 where its interrupts are handled, nor on 24-25 of"},
		{"interrupts everywhere, no packet yet", twoNodes(func(p *PlacementQuery) { p.IRQCPUs = node1 }), node1, "near the interface (NUMA)"},
		{"cpuset of 3 near ones", twoNodes(func(p *PlacementQuery) { p.Allowed, p.IncomingCPU = []int{0, 1, 8, 9, 10}, new(9) }), []int{8, 9, 10}, "near the interface (NUMA)"},
		{"cpuset of 4 near ones", twoNodes(func(p *PlacementQuery) { p.Allowed, p.IncomingCPU = []int{8, 9, 10, 25}, new(9) }), []int{8, 10, 25}, "not on CPU 9"},
		{"cpuset of the other node", twoNodes(func(p *PlacementQuery) { p.Allowed = upTo(0, 8) }), nil, "may not use the CPUs near the interface, 8-15,24-31"},
	} {
		cpus, why := Placement(c.p)
		if diff := cmp.Diff(c.want, cpus); diff != "" || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q (-want +got):\n%s", c.name, why, diff)
		}
	}
}
