package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"thru/internal/measure"
)

// field is a header value that a device on the path may change.
type field struct {
	what        string
	seen        int64 // packets with a known value
	changed     int64
	left, came  int
	packetsLeft [2]int64 // numbers of the first changed packet: as sent, and as received
}

// The fields of a passage.
const (
	ofTTL = iota
	ofDSCP
	ofECN
	ofWindow
)

// compareFields compares the fields of a packet.
func (p *passage) compareFields(sent, came *transit) {
	p.fields[ofTTL].note("ttl", int(sent.ttl), int(came.ttl), sent, came)
	p.fields[ofDSCP].note("dscp", int(sent.tos>>2), int(came.tos>>2), sent, came)
	const mask, notCapable, marked = 3, 0, 3
	if ecn := sent.tos & mask; ecn != notCapable {
		arrived := came.tos & mask
		if arrived == marked {
			arrived = ecn // marking is the purpose of ECN
		}
		p.fields[ofECN].note("ecn", int(ecn), int(arrived), sent, came)
	}
	if sent.payload == 0 && came.payload == 0 {
		p.fields[ofWindow].note("window", int(sent.window), int(came.window), sent, came)
	}
}

func (f *field) note(what string, left, arrived int, sent, came *transit) {
	f.what = what
	f.seen++
	if left == arrived {
		return
	}
	if f.changed == 0 {
		f.left, f.came, f.packetsLeft = left, arrived, [2]int64{sent.number, came.number}
	}
	f.changed++
}

// changes returns the fields that differ in most packets: a single one may
// have taken another path.
func (p *passage) changes(of string) []measure.Change {
	var out []measure.Change
	for _, f := range p.fields {
		if f.changed*2 <= f.seen {
			continue
		}
		numbers := []int64{f.packetsLeft[0], f.packetsLeft[1]}
		if p.from != p.x.left {
			slices.Reverse(numbers)
		}
		out = append(out, measure.Change{What: of + " " + f.what, Left: strconv.Itoa(f.left), Arrived: strconv.Itoa(f.came), Packets: numbers})
	}
	return out
}

// renamed returns the changes of addresses, ports and sequence numbers.
func (c *couple) renamed(left int) []measure.Change {
	var out []measure.Change
	a, b := c.conns[left], c.conns[1-left]
	packets := []int64{a.FirstPacket, b.FirstPacket}
	for i, what := range []string{"from address", "to address"} {
		if l, r := c.end(left, i), c.end(1-left, i); l != r {
			out = append(out, measure.Change{What: what, Left: l, Arrived: r, Packets: packets})
		}
	}
	if c.opaque || c.shift != [2]uint32{} {
		what := measure.Change{What: "sequence numbers", Left: "its own", Arrived: "other ones", Packets: packets}
		if !c.opaque {
			ahead := int32(c.shift[0])
			if left == 1 {
				ahead = -ahead
			}
			what.Left, what.Arrived = "+0", fmt.Sprintf("%+d", ahead)
		}
		out = append(out, what)
	}
	if !c.opaque && !c.stamps && !c.isCut() {
		if x := a.SYN; x != nil && x.Timestamps != nil && *x.Timestamps {
			out = append(out, measure.Change{What: "timestamps", Left: "its own", Arrived: "other ones, or none", Packets: packets})
		}
	}
	return out
}

// isCut reports whether the snap length of a capture cut options of the data.
func (c *couple) isCut() bool {
	return slices.ContainsFunc(c.conns[:], func(x *measure.Connection) bool { return x.Data.Cut > 0 || x.Acks.Cut > 0 })
}

// rewritten compares the handshakes.
func (c *couple) rewritten(left int) []measure.Change {
	a, b := c.conns[left], c.conns[1-left]
	there, back := a.SYN, b.SYN // the SYN goes from left to right where From opened
	answer, arrived := b.SYNACK, a.SYNACK
	opened := cmp.Or(a.FromOpened, b.FromOpened)
	if opened == nil {
		return nil
	}
	flip := !*opened
	if flip {
		there, back, answer, arrived = back, there, arrived, answer
	}
	return append(openings("syn", there, back, flip), openings("synack", answer, arrived, !flip)...)
}

// openings compares a SYN as sent with the SYN as received. flip: it was sent
// at the right.
func openings(what string, left, arrived *measure.Opening, flip bool) []measure.Change {
	if left == nil || arrived == nil {
		return nil
	}
	packets := []int64{left.Packet, arrived.Packet}
	if flip {
		slices.Reverse(packets)
	}
	var out []measure.Change
	differ := func(name, a, b string) {
		if a != b && a != notKnown && b != notKnown {
			out = append(out, measure.Change{What: what + " " + name, Left: a, Arrived: b, Packets: packets})
		}
	}
	differ("mss", number(left, left.MSS), number(arrived, arrived.MSS))
	differ("window-scale", number(left, left.WindowScale), number(arrived, arrived.WindowScale))
	differ("sack-permitted", flag(left.SACK), flag(arrived.SACK))
	differ("timestamps", flag(left.Timestamps), flag(arrived.Timestamps))
	differ("ecn", flag(left.ECN), flag(arrived.ECN))
	differ("window", strconv.Itoa(left.Window), strconv.Itoa(arrived.Window))
	if isCut(left) || isCut(arrived) {
		return out
	}
	known := []string{"mss", "window-scale", "sack-permitted", "timestamps", "nop", "eol"}
	for _, name := range left.Options {
		if !slices.Contains(known, name) && !slices.Contains(arrived.Options, name) {
			differ(name, "there", "none")
		}
	}
	return out
}

// notKnown is the value of an option that may be in the part of the header
// that was not captured. It differs from "none".
const notKnown = "not known"

// isCut reports whether the snap length cut options of an opening.
func isCut(o *measure.Opening) bool {
	return o.HasScale == nil || o.SACK == nil || o.Timestamps == nil
}

func number(of *measure.Opening, x *int) string {
	switch {
	case x != nil:
		return strconv.Itoa(*x)
	case isCut(of):
		return notKnown
	}
	return "none"
}

func flag(x *bool) string {
	switch {
	case x == nil:
		return notKnown
	case *x:
		return "yes"
	}
	return "no"
}
