package diagnose

import (
	"thru/internal/measure"
)

// MemberBar is the least ratio of several streams to one if a LAG member limits the one.
const MemberBar = 1.5

// mayBeMember reports whether a LAG member may limit one stream: several were not tried, or they carried more than
// one source port does.
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

// ProxyBar is by how many ns the handshake must be shorter than a round trip of data: a loaded host delays the
// programs at its ends by a millisecond.
const ProxyBar = 3e6

// Rewritten reports whether the options differ that show a new connection: a clamp changes only the MSS, a proxy
// sends a SYN of its own.
func Rewritten(sent, seen *measure.SYN) bool {
	if sent == nil || seen == nil {
		return false
	}
	scale := sent.WindowScale != nil && seen.WindowScale != nil && *sent.WindowScale != *seen.WindowScale
	stamps := sent.Timestamps != nil && seen.Timestamps != nil && *sent.Timestamps != *seen.Timestamps
	return scale || stamps
}
