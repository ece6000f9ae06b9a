package trace

import (
	"errors"
	"fmt"
	"slices"

	"thru/internal/measure"
)

// Reasons why two captures cannot be compared.
var (
	ErrOtherFlow = errors.New("trace: the captures have no connection in common")
	ErrSamePlace = errors.New("trace: both captures come from the same capture point")
)

// Side is one of two captures, with what was recorded of its packets.
type Side struct {
	Capture *measure.Capture
	Records *Recorder
}

// Cross compares two captures of one flow, in either order: the packets that
// left one capture point and arrived at the other. Crossing.Left is 0 where
// the first capture is nearer to the sender. It fails with ErrOtherFlow or
// ErrSamePlace.
//
// Data that did not arrive is only in one capture: so Cross turns the
// connections of both to the direction with the most data at either, and
// makes the one with the most data the first in both.
func Cross(one, other Side) (*measure.Crossing, error) {
	x := crossing{sides: [2]Side{one, other}}
	mains := [2]*measure.Connection{mainOf(one.Capture), mainOf(other.Capture)}
	x.couples = coupled(x.sides)
	if len(x.couples) == 0 {
		return nil, ErrOtherFlow
	}
	for k := range x.sides {
		x.placeAnew(k, mains[k])
	}
	for i := range x.couples {
		x.couples[i].match()
	}
	if x.isOnePlace() {
		return nil, ErrSamePlace
	}
	x.clock = newClock(x.couples)
	x.clock.tick = max(one.Records.tick, other.Records.tick)
	x.orient()
	out := &measure.Crossing{Left: x.left, Right: 1 - x.left, OffsetNs: x.clock.offset, BoundNs: x.clock.bound, Conns: []measure.CrossedConn{}}
	for i := range x.couples {
		out.Conns = append(out.Conns, x.compare(&x.couples[i]))
	}
	out.Missing = x.missing
	x.remark(out)
	for k := range x.sides {
		first(x.sides[k].Capture, x.couples[0].conns[k].Index)
	}
	return out, nil
}

// mainOf returns a copy of the connection with the most data; nil without
// any.
func mainOf(c *measure.Capture) *measure.Connection {
	if len(c.Conns) == 0 {
		return nil
	}
	main := c.Conns[0]
	return &main
}

// placeAnew determines the capture point again where it came from a
// connection that is not the main one of both, or from its other direction.
func (x *crossing) placeAnew(k int, was *measure.Connection) {
	c, main := x.sides[k].Capture, x.couples[0].conns[k]
	if was == nil || c.PlacedBy == "" || c.EndPoint != "" || was.Index == main.Index && was.From == main.From {
		return
	}
	c.Place, c.PlacedBy = "", ""
	placeBy(c, main)
}

// first moves a connection to the front. The others keep their order.
func first(c *measure.Capture, index int) {
	i := slices.IndexFunc(c.Conns, func(conn measure.Connection) bool { return conn.Index == index })
	if i > 0 {
		main := c.Conns[i]
		copy(c.Conns[1:], c.Conns[:i])
		c.Conns[0] = main
	}
}

// crossing compares two captures.
type crossing struct {
	sides   [2]Side
	left    int // index of the side nearer to the sender
	couples []couple
	clock   clock
	missing []measure.NotChecked
	unseen  [2]int64 // packets that the side should have captured and did not
	crowded int64    // packets left out, since too many overlap
}

// compare sets both directions of a connection, and the header changes.
func (x *crossing) compare(c *couple) measure.CrossedConn {
	l, r := x.left, 1-x.left
	out := measure.CrossedConn{LeftIndex: c.conns[l].Index, RightIndex: c.conns[r].Index}
	if c.against {
		l = r // the side where its data leaves
	}
	out.Changed = append(c.renamed(l), c.rewritten(l)...)
	if c.against {
		for i := range out.Changed {
			out.Changed[i].Packets = []int64{out.Changed[i].Packets[1], out.Changed[i].Packets[0]}
		}
	}
	if c.opaque {
		return out
	}
	data := x.passage(c, 0)
	acks := x.passage(c, 1)
	out.Data, out.Acks = data.result, acks.result
	out.Changed = append(out.Changed, data.changes("data")...)
	out.Changed = append(out.Changed, acks.changes("acks")...)
	return out
}

// remark notes what could not be compared, or is less certain than it looks.
func (x *crossing) remark(out *measure.Crossing) {
	miss := func(fact, format string, args ...any) {
		out.Missing = append(out.Missing, measure.NotChecked{Fact: fact, Why: fmt.Sprintf(format, args...)})
	}
	if !x.clock.known {
		miss("clock_offset_ns", "both captures contain packets of only one direction: the one-way delay cannot be separated from the clock offset")
	} else if x.clock.jumped {
		miss("clock_offset_ns", "one of the clocks was set during the capture: one-way delays are not reliable")
	}
	opaque := 0
	for i := range x.couples {
		if x.couples[i].opaque {
			opaque++
		}
	}
	if opaque > 0 {
		miss("data", "%d of %d connections have different sequence numbers at the two capture points: the loss between them is not known", opaque, len(x.couples))
	}
	for i, side := range x.sides {
		where := [2]string{"left", "right"}[(i+x.left)%2]
		if d := side.Capture.Dropped; d != nil && *d > 0 {
			miss("lost", "the %s capture dropped %d packets (buffer full): packets that look lost may be these", where, *d)
		}
		if n := x.unseen[i]; n > 0 {
			miss("lost", "the %s capture lacks %d packets that passed its capture point: they are not counted as lost, but others may be", where, n)
		}
		if side.Records.full {
			miss("data", "the %s capture was compared only up to its first %d packets", where, side.Records.kept)
		}
	}
	if x.crowded > 0 {
		miss("data", "%d packets overlap with more than %d others, and were not compared", x.crowded, mostCopies)
	}
	for i, side := range x.sides {
		if n := len(side.Capture.Conns) - len(x.couples); n > 0 {
			miss("connections", "%d connections of the %s capture are not in the other one", n, [2]string{"left", "right"}[(i+x.left)%2])
		}
	}
}

// orient decides which capture is nearer to the sender.
func (x *crossing) orient() {
	switch nearer := x.clock.nearer; {
	case nearer >= 0:
		x.left = nearer
	case x.sides[0].Capture.Place == measure.AtReceiver || x.sides[1].Capture.Place == measure.AtSender:
		x.left = 1
	case x.sides[0].Capture.Place == measure.AtSender || x.sides[1].Capture.Place == measure.AtReceiver:
		x.left = 0
	default:
		x.left = x.byHops()
	}
	x.clock.turn(x.left)
}

// byHops returns the side that the data reaches with more hops left; for
// equal hops -1: Missing notes it, and the first side counts as left.
func (x *crossing) byHops() int {
	for _, c := range x.couples {
		a, b := c.conns[0].Data.TTLs, c.conns[1].Data.TTLs
		if len(a) > 0 && len(b) > 0 && a[0] != b[0] {
			if (a[0] < b[0]) != c.against {
				return 1
			}
			return 0
		}
	}
	x.missing = append(x.missing, measure.NotChecked{Fact: "left_capture", Why: "the order of the captures is not known: thru assumes that the first one is nearer to the sender"})
	return 0
}

// isOnePlace reports whether every packet has the same time in both captures.
func (x *crossing) isOnePlace() bool {
	met, equal := 0, 0
	for i := range x.couples {
		for _, m := range x.couples[i].matched {
			met++
			if m.at[0] == m.at[1] {
				equal++
			}
		}
	}
	return met > 0 && equal == met
}
