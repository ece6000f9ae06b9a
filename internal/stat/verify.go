package stat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/knob"
	"thru/internal/measure"
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
	for i, s := range t.Proposal.Settings {
		x := check{Tried: t, Setting: s, before: b, with: w}
		if i < len(t.Proposal.Before) {
			x.was = t.Proposal.Before[i].Value
		}
		v := measure.Verification{EndPoint: s.EndPoint, What: "by what happened", Fact: "no counter of a test tells whether it is in force"}
		if by, ok := checks()[s.Knob]; ok {
			v.What, v.Holds, v.Fact = by.what, nil, ""
			v.Holds, v.Fact = by.of(x)
		}
		all = append(all, v)
	}
	return append(all, optionsInForce(t.Proposal.Test, w)...)
}

// sight is what both ends of a direction saw, in a run that came to its end if
// there is one.
type sight struct {
	cell             *measure.Cell
	sender, receiver *measure.Evidence
}

func sightOf(c *measure.Cell) sight {
	s := sight{cell: c}
	if c == nil {
		s.cell = &measure.Cell{}
		return s
	}
	for i := range c.Runs {
		p := pairOf(c, &c.Runs[i])
		if s.sender == nil && s.receiver == nil || p.complete() {
			s.sender, s.receiver = p.sender, p.receiver
		}
		if p.complete() {
			break
		}
	}
	return s
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

// checking is how one knob shows that it is in force.
type checking struct {
	what string // "window of the connection"
	of   func(check) (holds *bool, fact string)
}

// checks are those of the knobs that show it.
func checks() map[string]checking {
	option := func(what string, of func(*measure.TCPInfo) *bool) checking {
		return checking{what + " of the connection", func(c check) (*bool, string) { return c.option(of) }}
	}
	queues := checking{"counters of the queues", check.queues}
	control := checking{"congestion control of the sender's connection", check.congestion}
	received := checking{"window that the receiver advertises", check.recvWindow}
	sent := checking{"data that waits in the sender's socket", check.sendBuffer}
	sizes := checking{"size of the packets that the interface counts", check.packetSize}
	return map[string]checking{
		knob.TCPRmem: received, knob.RmemMax: received, knob.TCPWmem: sent, knob.WmemMax: sent,
		knob.WindowScaling: option("window scaling", func(t *measure.TCPInfo) *bool { return t.WScaleOK }),
		knob.SACK:          option("selective acknowledgements", func(t *measure.TCPInfo) *bool { return t.SACK }),
		knob.Timestamps:    option("timestamps", func(t *measure.TCPInfo) *bool { return t.Timestamps }),
		knob.MTUProbing:    {"TcpExt.TCPMTUPSuccess", check.probing},
		knob.Congestion:    control, knob.RouteCongestion: control,
		knob.Qdisc: {"qdisc that the interface sends by", check.qdisc},
		knob.MTU:   {"DF search of the path", check.mtu},
		knob.TSO:   sizes, knob.GSO: sizes,
		knob.Channels: queues, knob.RSSHash: queues, knob.RSSTable: queues,
		knob.RPS:         {"packets that each CPU handled", check.spread},
		knob.IRQAffinity: {"interrupts of each CPU", check.interrupts},
	}
}

// otherEnd words that a knob is of the other end of this direction.
func (c check) otherEnd(role string) (*bool, string) {
	return nil, fmt.Sprintf("it is of the %s, which %s is not in this direction", role, c.EndPoint)
}

// grownPct is by how much a figure must grow to show that its bound was lifted,
// and fullPct how often a bound must be reached to hold the rate.
const (
	grownPct = 5
	fullPct  = 50
)

// recvWindow compares the greatest window that the receiver advertised.
func (c check) recvWindow() (*bool, string) {
	if c.EndPoint != c.with.cell.To {
		return c.otherEnd("receiver")
	}
	window := func(s sight) float64 {
		return max(most(s.receiver, func(x *measure.Course) *measure.Spread { return x.RecvWnd }),
			most(s.sender, func(x *measure.Course) *measure.Spread { return x.SendWnd }))
	}
	was, now := window(c.before), window(c.with)
	fact := fmt.Sprintf("up to %s, %s before", unit.Size(int64(now)), unit.Size(int64(was)))
	switch {
	case was <= 0 || now <= 0:
		return nil, "this kernel does not tell the window"
	case now > was*(1+grownPct/100.0):
		return new(true), fact
	case shrinks(c.was, c.Value):
		return new(now < was), fact
	case windowFull(c.with.sender) >= fullPct && now < was*1.01:
		return new(false), fact + ", and the sender still waits for it"
	}
	return nil, fact + ": more was not needed"
}

// shrinks tells whether the greatest of the numbers of a value got smaller.
func shrinks(was, now string) bool {
	a, b := lastNumber(was), lastNumber(now)
	return a > 0 && b > 0 && b < a
}

// lastNumber of a value: of "4096 131072 6291456" the greatest that is allowed.
func lastNumber(s string) int64 {
	f := strings.Fields(s)
	if len(f) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(f[len(f)-1], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// most is the greatest reading of a figure in the course of any stream; 0 where
// there is none.
func most(e *measure.Evidence, of func(*measure.Course) *measure.Spread) (greatest float64) {
	for _, s := range streams(e) {
		if s.Course == nil {
			continue
		}
		if x := of(s.Course); x != nil {
			greatest = max(greatest, x.Max)
		}
	}
	return greatest
}

// windowFull is how often the window of the peer was used up, in percent of the
// readings of the stream where that was most.
func windowFull(e *measure.Evidence) (pct float64) {
	for _, s := range streams(e) {
		if s.Course != nil && s.Course.WndFull != nil {
			pct = max(pct, *s.Course.WndFull)
		}
	}
	return pct
}

// sendBuffer compares what the sender's socket held: sent and not acknowledged,
// and not sent yet.
func (c check) sendBuffer() (*bool, string) {
	if c.EndPoint != c.with.cell.From {
		return c.otherEnd("sender")
	}
	was, now := held(c.before.sender), held(c.with.sender)
	fact := fmt.Sprintf("up to %s, %s before", unit.Size(int64(now)), unit.Size(int64(was)))
	switch {
	case was <= 0 || now <= 0:
		return nil, "this kernel does not tell how much waits in the socket"
	case now > was*(1+grownPct/100.0):
		return new(true), fact
	}
	return nil, fact + ": more was not needed"
}

// held is the most that a socket of an end held, in bytes.
func held(e *measure.Evidence) (bytes float64) {
	for _, s := range streams(e) {
		if s.Course == nil || s.Course.InFlight == nil {
			continue
		}
		x := s.Course.InFlight.Max * float64(max(s.MSS, 1))
		if s.Course.NotSent != nil {
			x += s.Course.NotSent.Max
		}
		bytes = max(bytes, x)
	}
	return bytes
}

// option tells whether an option of TCP was negotiated as it was set.
func (c check) option(of func(*measure.TCPInfo) *bool) (*bool, string) {
	wanted := c.Value != "0"
	for _, e := range []*measure.Evidence{c.with.sender, c.with.receiver} {
		for _, s := range streams(e) {
			for _, t := range []*measure.TCPInfo{s.TCP, s.TCPStart, s.TCPEnd} {
				if t == nil || of(t) == nil {
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
	if e == nil || e.Host == nil || e.Host.Proto == nil {
		return nil, "the counters of the host are not there"
	}
	if n := e.Host.Proto["TcpExt.TCPMTUPSuccess"]; n > 0 {
		return new(true), fmt.Sprintf("%s probes found a size that passes", unit.Count(int64(n)))
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
		used = congestionOf(c.with.sender)
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
	case value == "off" && c.Knob == knob.TSO && large:
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

// worthwhileShare is the part of all packets or interrupts from which on a queue
// or a CPU is said to take part.
const worthwhileShare = 0.05

// queues tells whether more queues carry the traffic.
func (c check) queues() (*bool, string) {
	was, now := queuesUsed(c.before.at(c.EndPoint)), queuesUsed(c.with.at(c.EndPoint))
	fact := fmt.Sprintf("queues that carry it: %d, %d before", now, was)
	switch {
	case now == 0 || was == 0:
		return nil, "the driver counts no packets of its queues"
	case now > was:
		return new(true), fact
	}
	return nil, fact + ": so many streams may need no more"
}

// queuesUsed counts the queues of an end's interface that carried a part of the
// traffic worth a word: of the direction in which most went.
func queuesUsed(e *measure.Evidence) int {
	if e == nil || e.Host == nil || e.Host.NIC == nil {
		return 0
	}
	way := map[bool]string{true: "tx", false: "rx"}[e.Sends]
	var counts []float64
	for name, n := range e.Host.NIC.Driver {
		name = strings.ToLower(name)
		packets := strings.Contains(name, "packets") || strings.Contains(name, "pkts") || strings.HasSuffix(name, "cnt")
		if packets && strings.Contains(name, way) && strings.ContainsAny(name, "0123456789") && !strings.Contains(name, "xdp") {
			counts = append(counts, float64(n))
		}
	}
	return takingPart(counts)
}

// takingPart counts those that have a part of the sum worth a word.
func takingPart(counts []float64) (n int) {
	total := sum(counts)
	for _, x := range counts {
		if total > 0 && x >= worthwhileShare*total {
			n++
		}
	}
	return n
}

// spread tells whether more CPUs handle the packets.
func (c check) spread() (*bool, string) {
	cpus := func(e *measure.Evidence) int {
		if e == nil || e.Host == nil {
			return 0
		}
		return takingPart(mapped(e.Host.Softnet, func(s measure.Softnet) float64 { return float64(s.Processed) }))
	}
	was, now := cpus(c.before.at(c.EndPoint)), cpus(c.with.at(c.EndPoint))
	fact := fmt.Sprintf("CPUs that handle them: %d, %d before", now, was)
	switch {
	case was == 0 || now == 0:
		return nil, "the host does not count the packets of each CPU"
	case now > was:
		return new(true), fact
	}
	return nil, fact + ": so many streams may need no more"
}

// interrupts tells whether the interface interrupts the CPUs that it was told to.
func (c check) interrupts() (*bool, string) {
	e := c.with.at(c.EndPoint)
	if e == nil || e.Host == nil || len(e.Host.IRQs) == 0 || e.Host.NIC == nil || e.Host.NIC.Name != c.Interface {
		return nil, "the interrupts of that interface were not counted"
	}
	allowed := map[int]bool{}
	fields := strings.Fields(c.Value) // number of the interrupt, CPUs, number ...
	for i := 1; i < len(fields); i += 2 {
		cpus, err := unit.ParseList(fields[i], mostCPUs)
		if err != nil {
			return nil, "the CPUs of its value cannot be read"
		}
		for _, n := range cpus {
			allowed[n] = true
		}
	}
	there, all := 0.0, 0.0
	for _, s := range e.Host.IRQs {
		all += float64(s.Count)
		if allowed[s.Core] {
			there += float64(s.Count)
		}
	}
	if all <= 0 || len(allowed) == 0 {
		return nil, "there were no interrupts"
	}
	share := 100 * there / all
	return new(share >= fullPct), unit.Percent(share) + " of them on its CPUs"
}

// mostCPUs bounds the numbers of CPUs in a value.
const mostCPUs = 8192

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
		used := congestionOf(e)
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
		if w := cutWindow(e); w != "" {
			return new(false), "the kernel cut it to " + w
		}
		return nil, "as the kernel tunes it"
	})
	return all
}
