package path

import (
	"math/rand/v2"
	"slices"
	"testing"

	"thru/internal/measure"
)

// noisy returns ports whose round trips are base plus noise.
func noisy(r *rand.Rand, n int, base func(port int) int64, ttl func(port int) int, noise func() int64) []portTrips {
	all := make([]portTrips, n)
	for i := range all {
		p := portTrips{port: 40000 + i}
		for round := range portRounds {
			took := base(i) + noise()
			if p.ttls = append(p.ttls, ttl(i)); round%2 == 1 {
				p.odd = append(p.odd, took)
			} else {
				p.even = append(p.even, took)
			}
		}
		all[i] = p
	}
	return all
}

func TestGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	steady := func(int) int64 { return 100_000 }
	one := func(int) int { return 63 }
	parity := func(near, far int64) func(int) int64 {
		return func(i int) int64 { return []int64{near, far}[i%2] }
	}
	noise := func() int64 { return r.Int64N(10_000) }
	for _, tt := range []struct {
		name       string
		in         []portTrips
		directions int
		by         string
	}{
		{"alike", noisy(r, 16, steady, one, noise), 1, ""},
		{"two lengths", noisy(r, 16, steady, func(i int) int { return 62 + i%2 }, noise), 2, "hops"},
		{"one port alone is longer", noisy(r, 16, steady, func(i int) int { return 62 + min(i, 1) }, noise), 1, ""},
		{"packets of one port differ", noisy(r, 16, steady, func(int) int { return 62 + r.IntN(2) }, noise), 1, ""},
		{"two delays", noisy(r, 16, parity(100_000, 300_000), one, noise), 2, "delay"},
		{"three delays", noisy(r, 16, func(i int) int64 { return []int64{100_000, 200_000, 5_000_000}[i%3] }, one, noise), 3, "delay"},
		{"delays that differ little", noisy(r, 16, parity(100_000, 115_000), one, func() int64 { return r.Int64N(1000) }), 1, ""},
		{"delays within the noise", noisy(r, 16, parity(100_000, 200_000), one, func() int64 { return r.Int64N(400_000) }), 1, ""},
		{"one port is slow", noisy(r, 16, func(i int) int64 { return int64(1+9*max(0, i-14)) * 100_000 }, one, noise), 1, ""},
	} {
		s := group(tt.in)
		if s == nil || s.Directions != tt.directions || s.By != tt.by || (tt.directions > 1) != (len(s.Groups) == tt.directions) {
			t.Errorf("%s: %+v, want %d ways by %q", tt.name, s, tt.directions, tt.by)
			continue
		}
		for _, g := range s.Groups {
			if len(g.Ports) < leastPorts || !slices.IsSorted(g.Ports) || g.RTTNs <= 0 || g.Hops == nil {
				t.Errorf("%s: group %+v", tt.name, g)
			}
		}
	}
	if s := group(noisy(r, 3, steady, one, noise)); s != nil {
		t.Errorf("three ports say %+v", s)
	}
	if s := group([]portTrips{{port: 1}, {port: 2}, {port: 3}, {port: 4}}); s != nil {
		t.Errorf("ports that were not heard say %+v", s)
	}
}

// TestAgreed: a difference must show twice, for the same ports.
func TestAgreed(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	route := func(far func(int) bool) *measure.SourcePorts {
		return group(noisy(r, 16, func(i int) int64 {
			if far(i) {
				return 900_000
			}
			return 100_000
		}, func(int) int { return 63 }, func() int64 { return r.Int64N(5000) }))
	}
	odd, low, none := func(i int) bool { return i%2 == 1 }, func(i int) bool { return i < 8 }, func(int) bool { return false }
	for _, tt := range []struct {
		again      *measure.SourcePorts
		directions int
	}{{route(odd), 2}, {route(low), 1}, {route(none), 1}, {nil, 1}} {
		if got := agreed(route(odd), tt.again); got.Directions != tt.directions || got.Ports != 16 || (got.By == "delay") != (tt.directions == 2) {
			t.Errorf("%+v and then %+v: %+v", route(odd), tt.again, got)
		}
	}
}

// TestGroupsOfBusyHosts: heavy-tailed delays of busy CPUs are no sign of different paths. Two passes must agree; this test judges a single one.
func TestGroupsOfBusyHosts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	wrong := 0
	for range 5000 {
		in := noisy(r, sourcePorts, func(int) int64 { return 50_000 }, func(int) int { return 64 }, func() int64 {
			if r.IntN(3) > 0 {
				return 1_000_000 + r.Int64N(20_000_000) // waited for a CPU
			}
			return r.Int64N(30_000)
		})
		if group(in).Directions != 1 {
			wrong++
		}
	}
	if wrong > 50 { // the second pass accepts as few of these
		t.Errorf("%d of 5000 false alarms", wrong)
	}
}
