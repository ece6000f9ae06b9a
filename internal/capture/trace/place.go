package trace

import (
	"fmt"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

const (
	sideRatio   = 10        // one end is this many times farther from the capture point than the other
	leastFarNs  = 20_000    // a smaller time on the far side is no distance
	nearNs      = 2_000_000 // a larger one on the near side is a distance
	containerNs = 200_000   // with a larger one to a host behind a router, it is no container of this host
	pathNs      = 1_000_000 // with this much on both sides, the capture point is between the ends
)

// Place sets the capture point as seen from the main connection, where the
// packets show it and it is not set yet. The two parts of the round-trip time
// decide: the sender answers acknowledgements with data at once, and the
// receiver data with acknowledgements. A packet of a nearby host has not
// passed a router yet, or only one on its own machine.
func Place(c *measure.Capture) {
	if len(c.Conns) == 0 || c.Place != "" {
		return
	}
	placeBy(c, &c.Conns[0])
}

// placeBy sets it by a connection.
func placeBy(c *measure.Capture, m *measure.Connection) {
	sender, receiver := sides(m)
	if sender < 0 || receiver < 0 {
		return
	}
	whole := unit.Duration(sender + receiver)
	// A sender that pauses before it sends more makes its side look far. Its
	// kernel answers a handshake at once; without one the other end must be
	// behind a router.
	surely := m.OpenNs != nil && m.OpenFarNs != nil
	switch {
	case isNear(sender, receiver, m.Data.TTLs) && (surely || isRouted(m.Acks.TTLs)):
		c.Place = measure.AtSender
		c.PlacedBy = fmt.Sprintf("it answers within %s of a round trip of %s, TTL %d",
			unit.Duration(max(sender, 1000)), whole, m.Data.TTLs[0])
	case isNear(receiver, sender, m.Acks.TTLs) && (surely || isRouted(m.Data.TTLs)):
		c.Place = measure.AtReceiver
		c.PlacedBy = fmt.Sprintf("it answers within %s of a round trip of %s, TTL %d",
			unit.Duration(max(receiver, 1000)), whole, m.Acks.TTLs[0])
	case surely && sender >= pathNs && receiver >= pathNs:
		c.Place = measure.AtPath
		c.PlacedBy = fmt.Sprintf("%s to the sender and back, %s to the receiver and back",
			unit.Duration(sender), unit.Duration(receiver))
	}
}

// sides returns the minimum parts of the round-trip time on both sides of the
// capture, in nanoseconds; -1: not known.
func sides(m *measure.Connection) (sender, receiver int64) {
	sender, receiver = -1, -1
	if m.RTT != nil {
		receiver = m.RTT.Min
	}
	if m.RTTBack != nil {
		sender = m.RTTBack.Min
	}
	if m.OpenNs == nil || m.OpenFarNs == nil || m.FromOpened == nil {
		return sender, receiver
	}
	opener, answerer := *m.OpenNs-*m.OpenFarNs, *m.OpenFarNs
	if !*m.FromOpened {
		opener, answerer = answerer, opener
	}
	return leastKnown(sender, opener), leastKnown(receiver, answerer)
}

func leastKnown(x, y int64) int64 {
	if x < 0 {
		return y
	}
	return min(x, y)
}

// isNear reports whether the capture is at the end on the near side.
func isNear(near, far int64, ttls []int) bool {
	if near > nearNs || far < leastFarNs || near*sideRatio > far || len(ttls) == 0 {
		return false
	}
	// A container's packets pass its host's router.
	return !isRouted(ttls) || near <= containerNs && !isRouted([]int{ttls[0] + 1})
}

// isRouted reports whether packets have passed routers: hosts start with one
// of these TTLs.
func isRouted(ttls []int) bool {
	return len(ttls) > 0 && !slices.Contains([]int{32, 64, 128, 255}, ttls[0])
}
