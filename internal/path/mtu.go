package path

import (
	"maps"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// The search for the MTU of one direction, without any I/O: search selects the sizes to send next, and receives which of them arrived. Sizes are those of the
// IP packet, in bytes. It needs four rounds where the path MTU is below the interface's, and one where they are equal.
//
// A size passes where one copy arrives, so random loss cannot raise the result. Where loss lowers it, the last round corrects that: it repeats the smallest
// size that failed.

// Copies of a size in one round.
const (
	searchCopies  = 3
	confirmCopies = 8

	searchWidth  = 16 // sizes of a round
	searchRounds = 14 // at most; only a path that changes needs so many
)

// commonMTUs returns the MTUs of links and tunnels (methods in RFC 4821 section 7.3): IPv6 minimum, WireGuard, VXLAN, GRE, IPIP, PPPoE, Ethernet with and
// without a VLAN tag, FDDI, jumbo frames, clouds.
func commonMTUs() []int {
	return []int{576, 1280, 1400, 1420, 1450, 1476, 1480, 1492, 1500, 1504, 4352, 8500, 8951, 9000, 9001, 9216}
}

// search is the state of one direction.
type search struct {
	claim  int // largest size that the sender's interface allows
	passes int // largest that has arrived
	fails  int // smallest above passes of which no copy has arrived
	rounds int
	probes int

	tried     []int        // sizes of the current round
	refused   map[int]bool // sizes that the sender's own stack refused
	confirmed bool         // fails has been repeated
	over      bool
}

// newSearch starts with the claimed MTU; small is a size that is assumed to pass.
func newSearch(claim, small int) *search {
	return &search{claim: claim, passes: min(small, claim), fails: claim + 1, refused: map[int]bool{}}
}

// next returns the shots of the next round; nothing when the search is over. It repeats a round that was lost completely.
func (s *search) next() []shot {
	if s.over {
		return nil
	}
	copies := searchCopies
	switch {
	case s.rounds == 0:
		s.tried = []int{s.claim}
	case s.fails == s.passes+1:
		s.tried, copies = []int{s.fails}, confirmCopies
	default:
		s.tried = s.between()
	}
	return unit.Mapped(s.tried, func(size int) shot { return shot{Size: size, Copies: copies} })
}

// between returns sizes that divide the remaining range: first the common ones, then evenly spaced ones. The next larger byte is always among them: it
// completes a search whose guess was right.
func (s *search) between() []int {
	sizes := map[int]bool{s.passes + 1: true, s.fails - 1: true}
	if s.rounds == 1 {
		sizes[s.claim] = true // in case of loss
		for _, m := range commonMTUs() {
			if m > s.passes && m < s.fails {
				sizes[m] = true
			}
		}
	}
	more := searchWidth - len(sizes)
	for i := range more {
		sizes[s.passes+(s.fails-s.passes)*(i+1)/(more+1)] = true
	}
	delete(sizes, s.passes)
	return slices.Sorted(maps.Keys(sizes))
}

// took ends a round: which shots arrived, how many datagrams were sent, and which shots the sender's own stack refused.
func (s *search) took(arrived map[int]bool, sent int, refused []int) {
	s.probes += sent
	confirming := s.rounds > 0 && s.fails == s.passes+1
	s.rounds++
	for _, i := range refused {
		s.refused[s.tried[i]] = true
	}
	for i, size := range s.tried {
		if arrived[i] && size > s.passes {
			s.passes = size
		}
	}
	if s.fails <= s.passes {
		s.fails, confirming = s.claim+1, false // it failed by chance: everything above is open again
	}
	for i, size := range s.tried {
		if !arrived[i] && size > s.passes && size < s.fails {
			s.fails = size
		}
	}
	s.over = s.passes >= s.claim || confirming || s.rounds >= searchRounds
	s.confirmed = s.passes >= s.claim || confirming
}

// local reports whether the sender's own stack is the limit.
func (s *search) local() bool { return s.passes >= s.claim || s.refused[s.fails] }

// jumboMTU carries 8972 bytes of payload (without IPv4 and ICMP or UDP headers).
const jumboMTU = 9000

// outcome returns the fact, where at least one datagram of the search arrived, with what routers reported to the sender (ICMP).
func (s *search) outcome(by routers) *measure.PathMTU {
	m := &measure.PathMTU{Bytes: s.passes, Claimed: s.claim, Local: s.local(), Probes: s.probes}
	if s.claim >= jumboMTU {
		m.Jumbo = new(s.passes >= jumboMTU)
	}
	if m.Local {
		return m
	}
	if by.Router > 0 {
		m.Router = &by.Router
	}
	if by.At.IsValid() {
		m.RouterAddr = by.At.String()
	}
	m.Silent = !by.TooBig
	return m
}
