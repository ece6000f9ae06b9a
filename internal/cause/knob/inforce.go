package knob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Tried is a change with what was measured of it: a cell of the state before, and
// one with it, of one direction; and the path as it was probed before and with it,
// where that was done.
type Tried struct {
	Proposal         *measure.Proposal
	Before, With     *measure.Cell
	PathWas, PathNow *measure.Path
}

// InForce tells of each setting and each test option of a change whether it does
// what it says (S-03), by what happened on the connections, the path and the
// queues; that it reads back as it was set shows only that the host has taken it.
// Holds is absent where nothing that was seen tells: a window that was not needed
// is none that is not in force.
func InForce(t Tried) []measure.Verification {
	var all []measure.Verification
	b, w := sightOf(t.Before), sightOf(t.With)
	for _, s := range t.Proposal.Settings {
		x := check{Tried: t, Setting: s, was: valueBefore(t.Proposal, s), before: b, with: w}
		v := measure.Verification{EndPoint: s.EndPoint, What: "by what happened", Fact: "no counter of a test tells whether it is in force"}
		if k, ok := about(s.Knob); ok && k.shows.of != nil {
			v.What = k.shows.what
			v.Holds, v.Fact = k.shows.of(x)
		}
		all = append(all, v)
	}
	return append(all, optionsInForce(t.Proposal.Test, w)...)
}

// valueBefore is what the knob of a setting was, "" where that is not known: what
// is not known of one knob is left out of Before, so that the places differ.
func valueBefore(p *measure.Proposal, s measure.Setting) string {
	i := slices.IndexFunc(p.Before, func(b measure.Setting) bool {
		return b.EndPoint == s.EndPoint && b.Knob == s.Knob && b.Interface == s.Interface
	})
	if i < 0 {
		return ""
	}
	return p.Before[i].Value
}

// sight is what both ends of a direction saw, in a run that came to its end if
// there is one.
type sight struct {
	cell             *measure.Cell
	sender, receiver *measure.Evidence
}

func sightOf(c *measure.Cell) sight {
	if c == nil {
		return sight{cell: &measure.Cell{}}
	}
	sender, receiver := stat.Ends(c)
	return sight{c, sender, receiver}
}

// at is the evidence of an end point.
func (s sight) at(endPoint string) *measure.Evidence {
	switch endPoint {
	case s.cell.From:
		return s.sender
	case s.cell.To:
		return s.receiver
	}
	return nil
}

// check is one setting that is to be checked.
type check struct {
	Tried
	measure.Setting
	was          string // its value before
	before, with sight
}

// shown is how a knob shows in what a test counts that it is in force.
type shown struct {
	what string // "window of the connection"
	of   func(check) (holds *bool, fact string)
}

// optionShown is an option of TCP that both ends negotiate.
func optionShown(what string, of func(*measure.TCPInfo) *bool) shown {
	return shown{what + " of the connection", func(c check) (*bool, string) { return c.option(of) }}
}

// What several knobs show in.
func recvWindowShown() shown { return shown{"window that the receiver advertises", check.recvWindow} }
func sendBufferShown() shown {
	return shown{"data that waits in the sender's socket", check.sendBuffer}
}
func congestionShown() shown {
	return shown{"congestion control of the sender's connection", check.congestion}
}
func packetsShown() shown {
	return shown{"size of the packets that the interface counts", check.packetSize}
}
func queuesShown() shown { return shown{"counters of the queues", check.queues} }

// otherEnd words that a knob is of the other end of this direction.
func (c check) otherEnd(role string) (*bool, string) {
	return nil, fmt.Sprintf("it is of the %s, which %s is not in this direction", role, c.EndPoint)
}

// fullPct is how often a bound must be reached to hold the rate.
const fullPct = 50

// option tells whether an option of TCP was negotiated as it was set.
func (c check) option(of func(*measure.TCPInfo) *bool) (*bool, string) {
	wanted := c.Value != "0"
	for _, e := range []*measure.Evidence{c.with.sender, c.with.receiver} {
		for _, s := range streams(e) {
			for _, t := range s.Readings() {
				if of(t) == nil {
					continue
				}
				if *of(t) {
					return new(wanted), "negotiated"
				}
				return new(!wanted), "not negotiated"
			}
		}
	}
	return nil, "neither kernel tells the options of the connection"
}

// probing tells whether the sender found by itself what the path carries.
func (c check) probing() (*bool, string) {
	e := c.with.at(c.EndPoint)
	n := e.Protocol("TcpExt.TCPMTUPSuccess")
	if !n.Known {
		return nil, "the counters of the host are not there"
	}
	if n.N > 0 {
		return new(true), fmt.Sprintf("%s probes found a size that passes", unit.Count(*n.Signed()))
	}
	return nil, "no probe was needed in the measured time"
}

// congestion compares the name that the sender's sockets have.
func (c check) congestion() (*bool, string) {
	if c.EndPoint != c.with.cell.From {
		return c.otherEnd("sender")
	}
	used := ""
	if c.with.sender != nil {
		used = stat.CongestionOf(c.with.sender)
	}
	switch {
	case used == "":
		return nil, "the sender does not tell it"
	case c.Value == "": // a route that names none
		return nil, used
	case c.with.cell.Spec.Congestion != "" && c.with.cell.Spec.Congestion != c.Value:
		return nil, used + ", which the test asks for"
	}
	return new(used == c.Value), used
}

// qdisc compares the discipline that the sender's interface has.
func (c check) qdisc() (*bool, string) {
	e := c.with.at(c.EndPoint)
	if e == nil || e.Host == nil || e.Host.Qdisc == nil || e.Host.NIC == nil || e.Host.NIC.Name != c.Interface {
		return nil, "the queueing of that interface was not read"
	}
	kind := e.Host.Qdisc.Kind
	return new(slices.Contains(strings.FieldsFunc(kind, func(r rune) bool { return r == ' ' || r == ',' }), c.Value)), kind
}

// mtu tells by probes of the path whether packets of that size pass, and whether
// any vanish now that did not before.
func (c check) mtu() (*bool, string) {
	wanted, err := strconv.Atoi(c.Value)
	if err != nil || c.PathNow == nil {
		return nil, "the path could not be probed"
	}
	out, in := sizes(c.PathNow, c.EndPoint)
	if out == nil {
		return nil, "the probe did not find what passes"
	}
	fact := fmt.Sprintf("%d bytes pass from there", out.Bytes)
	if in != nil {
		fact += fmt.Sprintf(", %d bytes towards it", in.Bytes)
	}
	outWas, inWas := sizes(c.PathWas, c.EndPoint)
	if outWas != nil && inWas != nil {
		fact += fmt.Sprintf("; %d and %d before", outWas.Bytes, inWas.Bytes)
	}
	if mss := segmentOf(c.with.sender); mss > 0 {
		fact += fmt.Sprintf("; segments of the connection: %d bytes", mss)
	}
	switch {
	case out.Silent:
		return new(false), fact + "; larger ones vanish"
	case in != nil && in.Silent && (inWas == nil || !inWas.Silent): // else it is no fault of this change, and may be what it is against
		return new(false), fact + "; larger ones towards it vanish"
	}
	return new(out.Bytes >= wanted || out.Claimed <= wanted && out.Bytes == out.Claimed), fact
}

// sizes are what passes of a path from an end point, and towards it; nil where that
// was not found.
func sizes(p *measure.Path, endPoint string) (out, in *measure.PathMTU) {
	switch {
	case p == nil:
		return nil, nil
	case endPoint == p.To:
		return p.Back.MTU, p.Forward.MTU
	}
	return p.Forward.MTU, p.Back.MTU
}

// streams of an end that may be missing.
func streams(e *measure.Evidence) []measure.Stream {
	if e == nil {
		return nil
	}
	return e.Streams
}

// segmentOf is the size of a sender's segments; 0 is not known.
func segmentOf(e *measure.Evidence) int {
	for _, s := range streams(e) {
		if s.TCP != nil && s.TCP.SendMSS != nil {
			return int(*s.TCP.SendMSS)
		}
	}
	return 0
}

// headers are the most that stand before a segment in a packet as an interface
// counts it: Ethernet, IPv6 and TCP with its options.
const headers = 14 + 4 + 40 + 60

// packetSize compares the mean packet that the sender's interface counted with a
// segment. An interface that splits packets itself may count them before or after
// it; so packets of one segment show that splitting is done before, and nothing else.
func (c check) packetSize() (*bool, string) {
	if c.EndPoint != c.with.cell.From {
		return c.otherEnd("sender")
	}
	mean, mss := meanSent(c.with.sender), segmentOf(c.with.sender)
	if mean <= 0 || mss <= 0 {
		return nil, "the packets of the sender's interface were not counted"
	}
	was, large := meanSent(c.before.sender), mean > float64(mss+headers)
	value, _, _ := strings.Cut(c.Value, " ") // what follows are its parts
	fact := fmt.Sprintf("%.0f bytes on average", mean)
	if was > 0 {
		fact += fmt.Sprintf(", %.0f before", was)
	}
	switch {
	case value == "on" && large:
		return new(true), fact
	case value == "off" && c.Knob == TSO && large:
		return new(false), fact
	case value == "off" && !large && was > float64(mss+headers):
		return new(true), fact
	}
	return nil, fact + ": this interface may count before it splits them, or after"
}

// meanSent is the mean size of what the interface of an end sent; 0 is not known.
func meanSent(e *measure.Evidence) float64 {
	if e == nil || e.Host == nil || e.Host.NIC == nil || e.Host.NIC.TxPackets == 0 {
		return 0
	}
	return float64(e.Host.NIC.TxBytes) / float64(e.Host.NIC.TxPackets)
}

// optionsInForce checks what a change asks of the test itself.
func optionsInForce(o *measure.TestOptions, with sight) (all []measure.Verification) {
	if o == nil {
		return nil
	}
	add := func(e *measure.Evidence, what string, asked bool, got func(*measure.Evidence) (*bool, string)) {
		if !asked {
			return
		}
		v := measure.Verification{What: what, Fact: "the evidence of that end did not come"}
		if e != nil {
			v.EndPoint = e.EndPoint
			v.Holds, v.Fact = got(e)
		}
		all = append(all, v)
	}
	add(with.receiver, "connections", o.Streams > 0, func(e *measure.Evidence) (*bool, string) {
		return new(len(e.Streams) == o.Streams), unit.Count(int64(len(e.Streams)))
	})
	add(with.sender, "congestion control", o.Congestion != "", func(e *measure.Evidence) (*bool, string) {
		used := stat.CongestionOf(e)
		if used == "" {
			return nil, "the sender does not tell it"
		}
		return new(used == o.Congestion), used
	})
	add(with.sender, "data path", o.IO != "", func(e *measure.Evidence) (*bool, string) {
		sends := o.IO
		if sends == measure.IOLean {
			sends = measure.IOSendfile
		}
		return new(e.IO == o.IO || e.IO == sends), e.IO
	})
	for _, x := range []struct {
		e   *measure.Evidence
		cpu *int
	}{{with.sender, o.SenderCPU}, {with.receiver, o.ReceiverCPU}} {
		add(x.e, "CPU of its thread", x.cpu != nil, func(e *measure.Evidence) (*bool, string) {
			if len(e.Streams) == 0 || e.Streams[0].CPU == nil {
				return nil, "it is not told"
			}
			return new(*e.Streams[0].CPU == *x.cpu), strconv.Itoa(*e.Streams[0].CPU)
		})
	}
	add(with.sender, "window", o.Window != nil, func(e *measure.Evidence) (*bool, string) {
		if w := stat.CutWindow(e); w != "" {
			return new(false), "the kernel cut it to " + w
		}
		return nil, "as the kernel tunes it"
	})
	return all
}
