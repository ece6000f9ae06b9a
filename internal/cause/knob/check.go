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

// Tried is a change with its measurements: a cell of the state before, and one with the change, of one direction;
// and the path as probed before and with it, if that was done.
type Tried struct {
	Proposal         *measure.Proposal
	Before, With     *measure.Cell
	PathWas, PathNow *measure.Path
}

// sight is what both ends of a direction saw, in a completed run if there is one.
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

// at returns the evidence of an end point.
func (s sight) at(endPoint string) *measure.Evidence {
	switch endPoint {
	case s.cell.From:
		return s.sender
	case s.cell.To:
		return s.receiver
	}
	return nil
}

// check is one setting to check.
type check struct {
	Tried
	measure.Setting
	was          string // its value before
	before, with sight
}

// shown is how a test's counters show that a knob is in force.
type shown struct {
	what string // "window of the connection"
	of   func(check) (holds *bool, fact string)
}

// optionShown is a TCP option that both ends negotiate.
func optionShown(what string, of func(*measure.TCPInfo) *bool) shown {
	return shown{what + " of the connection", func(c check) (*bool, string) { return c.option(of) }}
}

func congestionShown() shown {
	return shown{"congestion control of the sender's connection", check.congestion}
}

func packetsShown() shown {
	return shown{"packet size at the interface", check.packetSize}
}

// otherEnd returns that a knob belongs to the other end of this direction.
func (c check) otherEnd(role string) (*bool, string) {
	return nil, fmt.Sprintf("it applies to the %s, which %s is not in this direction", role, c.EndPoint)
}

// fullPct is how often a bound must be reached to limit the rate, in percent.
const fullPct = 50

// option reports whether a TCP option was negotiated as it was set.
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
	return nil, "neither kernel reports the options of the connection"
}

// probing reports whether the sender itself found the packet size that the path carries.
func (c check) probing() (*bool, string) {
	e := c.with.at(c.EndPoint)
	n := e.Protocol("TcpExt.TCPMTUPSuccess")
	if !n.Known {
		return nil, "the counters of the host are missing"
	}
	if n.N > 0 {
		return new(true), fmt.Sprintf("%s probes found a size that passes", unit.Count(*n.Signed()))
	}
	return nil, "no probe was needed in the measured time"
}

// congestion compares the congestion control of the sender's sockets.
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
		return nil, "the sender does not report it"
	case c.Value == "": // a route that names none
		return nil, used
	case c.with.cell.Spec.Congestion != "" && c.with.cell.Spec.Congestion != c.Value:
		return nil, used + ", which the test requests"
	}
	return new(used == c.Value), used
}

// qdisc compares the queueing discipline of the sender's interface.
func (c check) qdisc() (*bool, string) {
	e := c.with.at(c.EndPoint)
	if e == nil || e.Host == nil || e.Host.Qdisc == nil || e.Host.NIC == nil || e.Host.NIC.Name != c.Interface {
		return nil, "the qdisc of that interface was not read"
	}
	kind := e.Host.Qdisc.Kind
	return new(slices.Contains(strings.FieldsFunc(kind, func(r rune) bool { return r == ' ' || r == ',' }), c.Value)), kind
}

// mtu reports by probes of the path whether packets of that size pass, and whether any vanish now that did not
// before.
func (c check) mtu() (*bool, string) {
	wanted, err := strconv.Atoi(c.Value)
	if err != nil || c.PathNow == nil {
		return nil, "the path could not be probed"
	}
	out, in := sizes(c.PathNow, c.EndPoint)
	if out == nil {
		return nil, "the probe did not find the size that passes"
	}
	fact := fmt.Sprintf("%d bytes pass outbound", out.Bytes)
	if in != nil {
		fact += fmt.Sprintf(", %d bytes inbound", in.Bytes)
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
		return new(false), fact + "; larger packets are lost silently"
	case in != nil && in.Silent && (inWas == nil || !inWas.Silent): // otherwise this change did not cause it, and may even address it
		return new(false), fact + "; larger inbound packets are lost silently"
	}
	return new(out.Bytes >= wanted || out.Claimed <= wanted && out.Bytes == out.Claimed), fact
}

// sizes returns the packet sizes that pass from an end point, and towards it; nil if they were not found.
func sizes(p *measure.Path, endPoint string) (out, in *measure.PathMTU) {
	switch {
	case p == nil:
		return nil, nil
	case endPoint == p.To:
		return p.Back.MTU, p.Forward.MTU
	}
	return p.Forward.MTU, p.Back.MTU
}

// streams returns the streams of an end that may be missing.
func streams(e *measure.Evidence) []measure.Stream {
	if e == nil {
		return nil
	}
	return e.Streams
}

// segmentOf returns the size of a sender's segments; 0 is not known.
func segmentOf(e *measure.Evidence) int {
	for _, s := range streams(e) {
		if s.TCP != nil && s.TCP.SendMSS != nil {
			return int(*s.TCP.SendMSS)
		}
	}
	return 0
}

// headers is the longest sequence of headers before a segment in a packet as an interface counts it: Ethernet,
// IPv6 and TCP with its options.
const headers = 14 + 4 + 40 + 60

// packetSize compares the mean packet that the sender's interface counted with a segment. An interface that splits
// packets itself may count them before or after that; so single-segment packets show that they were split earlier,
// and nothing else.
func (c check) packetSize() (*bool, string) {
	if c.EndPoint != c.with.cell.From {
		return c.otherEnd("sender")
	}
	mean, mss := meanSent(c.with.sender), segmentOf(c.with.sender)
	if mean <= 0 || mss <= 0 {
		return nil, "the packets of the sender's interface were not counted"
	}
	was, large := meanSent(c.before.sender), mean > float64(mss+headers)
	value, _, _ := strings.Cut(c.Value, " ") // its parts follow
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
	return nil, fact + ": this interface may count packets before or after it splits them"
}

// meanSent returns the mean size of the packets that the interface of an end sent; 0 is not known.
func meanSent(e *measure.Evidence) float64 {
	if e == nil || e.Host == nil || e.Host.NIC == nil || e.Host.NIC.TxPackets == 0 {
		return 0
	}
	return float64(e.Host.NIC.TxBytes) / float64(e.Host.NIC.TxPackets)
}
