package diagnose

import (
	"thru/internal/measure"
)

// MemberBar is by how much several streams must exceed one that is held by a
// member of a bundle.
const MemberBar = 1.5

// mayBeMember tells whether what holds one stream may be a member of a bundle:
// several were not tried, or carried more than one source port does.
func (f *Flow) mayBeMember() bool {
	if f.IsUDP() || f.Cell.Streams > 1 {
		return false
	}
	one := f.Rate()
	if s, over := f.Surplus(); over {
		one = max(one, s.Capacity)
	}
	most := 0.0
	for _, c := range []*measure.Cell{f.WithMost(), f.Experiment(EightStreams), f.Experiment(ManyPorts)} {
		most = max(most, RateOf(c))
	}
	return most == 0 || most >= MemberBar*one
}

// ProxyBar is by how many ns the handshake must be shorter than a round trip of
// data: a loaded host delays the programs at its ends by a millisecond.
const ProxyBar = 3e6

// Rewritten tells whether the options that make a connection another one
// differ: a clamp changes the MSS alone, a proxy makes its own SYN.
func Rewritten(sent, seen *measure.SYN) bool {
	if sent == nil || seen == nil {
		return false
	}
	scale := sent.WindowScale != nil && seen.WindowScale != nil && *sent.WindowScale != *seen.WindowScale
	stamps := sent.Timestamps != nil && seen.Timestamps != nil && *sent.Timestamps != *seen.Timestamps
	return scale || stamps
}
