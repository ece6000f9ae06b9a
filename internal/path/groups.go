package path

import (
	"cmp"
	"slices"

	"thru/internal/measure"
)

// Whether source ports take different paths, decided from the echoes of datagrams of each port. This code does no I/O, and it is careful: a false difference
// costs more than a missed one.

const (
	leastPorts = 2      // per group: one slow port is chance
	leastTrips = 3      // per port, in each half of the rounds
	leastGap   = 20_000 // ns between groups: smaller gaps are noise of the hosts
	gapSpreads = 5      // and this many times the spread within them
)

// portTrips holds the echoes of one source port.
type portTrips struct {
	port int
	ttls []int   // of the forward direction; 0: not known
	odd  []int64 // round trips of the odd rounds, ns
	even []int64
}

// least returns the shortest round trip.
func (p portTrips) least() int64 { return min(slices.Min(p.odd), slices.Min(p.even)) }

// hops returns the number of routers, where all datagrams of the port agree.
func (p portTrips) hops() *int {
	if len(p.ttls) == 0 {
		return nil
	}
	if slices.Min(p.ttls) != slices.Max(p.ttls) {
		return nil
	}
	return hopsOf(p.ttls[0])
}

// group groups the ports. It leaves out ports with too few echoes; it returns nil with too few ports for a result.
func group(all []portTrips) *measure.SourcePorts {
	heard := slices.Clone(all)
	heard = slices.DeleteFunc(heard, func(p portTrips) bool { return len(p.odd) < leastTrips || len(p.even) < leastTrips })
	if len(heard) < 2*leastPorts {
		return nil
	}
	s := &measure.SourcePorts{Ports: len(heard), Directions: 1}
	groups := byHops(heard)
	if s.By = "hops"; len(groups) < 2 {
		groups, s.By = byDelay(heard), "delay"
	}
	if len(groups) < 2 {
		s.By = ""
		return s
	}
	s.Directions = len(groups)
	for _, g := range groups {
		s.Groups = append(s.Groups, groupOf(g))
	}
	return s
}

// agreed returns the common result of two passes over the same ports; where they differ, no difference was seen.
func agreed(a, b *measure.SourcePorts) *measure.SourcePorts {
	same := b != nil && a.By == b.By && slices.EqualFunc(a.Groups, b.Groups, func(x, y measure.PortGroup) bool {
		return slices.Equal(x.Ports, y.Ports)
	})
	if !same {
		return &measure.SourcePorts{Ports: a.Ports, Directions: 1}
	}
	return a
}

// groupOf returns the description of one group.
func groupOf(ports []portTrips) measure.PortGroup {
	g := measure.PortGroup{Hops: ports[0].hops(), RTTNs: ports[0].least()}
	for _, p := range ports {
		g.Ports = append(g.Ports, p.port)
		g.RTTNs = min(g.RTTNs, p.least())
		if h := p.hops(); h == nil || g.Hops == nil || *h != *g.Hops {
			g.Hops = nil
		}
	}
	slices.Sort(g.Ports)
	return g
}

// byHops groups ports by the number of routers on their path, which is certain. It ignores a port whose
// datagrams differ among themselves.
func byHops(ports []portTrips) [][]portTrips {
	of := map[int][]portTrips{}
	for _, p := range ports {
		if h := p.hops(); h != nil {
			of[*h] = append(of[*h], p)
		}
	}
	var groups [][]portTrips
	for hops := range 256 {
		if len(of[hops]) >= leastPorts {
			groups = append(groups, of[hops])
		}
	}
	return groups
}

// byDelay splits the ports at a gap that both the odd and the even rounds show, and then splits each part again.
func byDelay(ports []portTrips) [][]portTrips {
	odd, even := splitAt(ports, portTrips.leastOdd), splitAt(ports, portTrips.leastEven)
	if odd == nil || !slices.Equal(odd, even) {
		return [][]portTrips{ports}
	}
	var near, far []portTrips
	for i, p := range ports {
		if odd[i] {
			far = append(far, p)
		} else {
			near = append(near, p)
		}
	}
	return append(byDelay(near), byDelay(far)...)
}

func (p portTrips) leastOdd() int64  { return slices.Min(p.odd) }
func (p portTrips) leastEven() int64 { return slices.Min(p.even) }

// splitAt finds the widest gap between ports, and returns which ports lie above it; nil without a clear gap.
func splitAt(ports []portTrips, of func(portTrips) int64) []bool {
	sorted := slices.SortedFunc(slices.Values(ports), func(a, b portTrips) int { return cmp.Compare(of(a), of(b)) })
	at, gap := 0, int64(0)
	for i := leastPorts; i <= len(sorted)-leastPorts; i++ {
		if d := of(sorted[i]) - of(sorted[i-1]); d > gap {
			at, gap = i, d
		}
	}
	if at == 0 {
		return nil
	}
	near, far := of(sorted[at-1])-of(sorted[0]), of(sorted[len(sorted)-1])-of(sorted[at])
	if gap <= max(leastGap, gapSpreads*max(near, far)) {
		return nil
	}
	above := make([]bool, len(ports))
	for i, p := range ports {
		above[i] = of(p) >= of(sorted[at])
	}
	return above
}
