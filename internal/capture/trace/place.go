package trace

import (
	"fmt"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

const (
	sideRatio   = 10        // one end's side of the capture is so many times as far as the other's
	leastFarNs  = 20_000    // what is less on the far side is no distance
	nearNs      = 2_000_000 // more on the near side is a distance
	containerNs = 200_000   // more to a host behind a router, and it is no container of this one
	pathNs      = 1_000_000 // from so much on both sides on, the capture is between them
)

// Place says where a capture was taken, seen from the main connection, where
// its packets tell and nobody said so before. What decides are the two parts of the round trip: the
// sender answers acknowledgements with data at once, the receiver data with
// acknowledgements. A packet of a host nearby has not passed a router yet, or
// one on its own machine.
func Place(c *measure.Capture) {
	if len(c.Conns) == 0 || c.Place != "" {
		return
	}
	placeBy(c, &c.Conns[0])
}

// placeBy says it by a connection.
func placeBy(c *measure.Capture, m *measure.Connection) {
	sender, receiver := sides(m)
	if sender < 0 || receiver < 0 {
		return
	}
	whole := unit.Duration(sender + receiver)
	// A sender that thinks before it sends more makes its side look far. Its
	// kernel answers a handshake at once; else the other end must be behind a router.
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

// sides are the least parts of the round trip on both sides of the capture, in
// nanoseconds; -1: not known.
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

// isRouted reports whether packets have passed routers: hosts begin with one of
// these numbers.
func isRouted(ttls []int) bool {
	return len(ttls) > 0 && !slices.Contains([]int{32, 64, 128, 255}, ttls[0])
}
