package path

import (
	"math/rand/v2"
	"net/netip"
	"testing"
)

// TestSearchIsExact runs the search over every kind of path, with loss.
func TestSearchIsExact(t *testing.T) {
	for _, loss := range []float64{0, 0.01, 0.1} {
		random := rand.New(rand.NewPCG(1, uint64(loss*100)))
		for _, claim := range []int{576, 1280, 1500, 9000, 9216, 65535} {
			for range 200 {
				mtu := 68 + random.IntN(claim)
				s := newSearch(claim, 44)
				rounds := 0
				for shots := s.next(); shots != nil; shots = s.next() {
					rounds++
					sent, arrived := 0, map[int]bool{}
					for i, sh := range shots {
						if sh.Size < 1 || sh.Size > claim {
							t.Fatalf("claim %d, MTU %d: size %d is tried", claim, mtu, sh.Size)
						}
						sent += sh.Copies
						for range sh.Copies {
							if sh.Size <= mtu && random.Float64() >= loss {
								arrived[i] = true
							}
						}
					}
					if sent > 60 {
						t.Errorf("claim %d, MTU %d: a round of %d datagrams", claim, mtu, sent)
					}
					s.took(arrived, sent, nil)
				}
				if want := min(mtu, claim); s.passes != want || !s.confirmed {
					t.Errorf("claim %d, loss %g: %d found (confirmed: %v), want %d", claim, loss, s.passes, s.confirmed, want)
				}
				if loss == 0 && rounds > 8 {
					t.Errorf("claim %d, MTU %d: %d rounds", claim, mtu, rounds)
				}
			}
		}
	}
}

// TestSearchOutcome checks what is reported as the limit.
func TestSearchOutcome(t *testing.T) {
	run := func(claim int, passes func(int) bool, refuses func(int) bool) *search {
		s := newSearch(claim, 44)
		for shots := s.next(); shots != nil; shots = s.next() {
			arrived, refused := map[int]bool{}, []int(nil)
			for i, sh := range shots {
				if refuses(sh.Size) {
					refused = append(refused, i)
				} else {
					arrived[i] = passes(sh.Size)
				}
			}
			s.took(arrived, len(shots), refused)
		}
		return s
	}
	all, none := func(int) bool { return true }, func(int) bool { return false }
	upTo := func(n int) func(int) bool { return func(size int) bool { return size <= n } }
	above := func(n int) func(int) bool { return func(size int) bool { return size > n } }

	if m := run(1500, all, none).outcome(routers{}); m.Bytes != 1500 || !m.Local || m.Silent || m.Jumbo != nil || m.Router != nil {
		t.Errorf("a healthy path: %+v", m)
	}
	if m := run(9000, all, none).outcome(routers{}); m.Jumbo == nil || !*m.Jumbo {
		t.Errorf("a healthy path for jumbo frames: %+v", m)
	}
	if m := run(9000, upTo(1500), none).outcome(routers{}); m.Bytes != 1500 || m.Local || !m.Silent || m.Jumbo == nil || *m.Jumbo {
		t.Errorf("a black hole: %+v", m)
	}
	if m := run(1500, upTo(1400), none).outcome(routers{true, 1400, netip.MustParseAddr("10.0.0.1")}); m.RouterAddr != "10.0.0.1" || m.Bytes != 1400 || m.Silent || m.Router == nil || *m.Router != 1400 {
		t.Errorf("a router that speaks: %+v", m)
	}
	if m := run(1500, upTo(1400), none).outcome(routers{TooBig: true}); m.Silent || m.Router != nil {
		t.Errorf("a router that names no MTU: %+v", m)
	}
	if m := run(9000, all, above(4000)).outcome(routers{}); m.Bytes != 4000 || !m.Local || m.Silent {
		t.Errorf("an interface that takes less than was thought: %+v", m)
	}
}

// TestSearchAfterAnOutage: the result recovers from a round whose datagrams were all lost.
func TestSearchAfterAnOutage(t *testing.T) {
	for outage := range 4 {
		s := newSearch(1500, 44)
		for round := 0; ; round++ {
			shots := s.next()
			if shots == nil {
				break
			}
			arrived := map[int]bool{}
			for i, sh := range shots {
				arrived[i] = sh.Size <= 1400 && round != outage
			}
			s.took(arrived, len(shots), nil)
		}
		if s.passes != 1400 {
			t.Errorf("all lost in round %d: %d found, want 1400", outage, s.passes)
		}
	}
}
