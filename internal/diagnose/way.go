package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// wayRules are the causes of the way that packets take.
func wayRules() []Rule {
	return []Rule{
		{
			Cause: "lag-one-member", TCP: true, Unseen: hostPackets, Title: "one flow uses one member of a bundle", judge: oneMember,
			Seen: "one stream is held at a flat rate by a queue or drops on the way, and several source ports carry a multiple of it; " +
				"flows of several hosts or ports carry together what one member of a host's bond does (likely), or the same whole part of the link's rate however many they are (possible)",
			Apart: "windows, random loss and a full CPU scale with the streams too: none of them may hold the one stream; a rate that a cloud gives each flow looks the same, but for a bond at an end or several numbers of streams that carry different whole multiples",
			Mends: "layer3+4 hashing; several streams", Effect: "953 of 1913 Mb/s over two members", Source: "IEEE 802.1AX, 5.2.4; A-09",
			Tests: []string{eightStreams, manyPorts}, Brings: []string{"shaper", "policer", "loss", "single-flow", "link-rate"},
		},
		{
			Cause: "asymmetric-route", TCP: true, UDP: true, Title: "the ways there and back differ", judge: asymmetric, packets: packetsAsymmetric,
			Seen:  "routers on the way or the size that passes differ between the directions; in captures of both ends: the time to live falls by more in one direction",
			Apart: "each direction apart: it costs something where their rates differ", Mends: "look at the routes of both ends",
			Effect: "one direction has another delay, MTU and loss", Source: "RFC 7679, section 1.1; TTL of received packets", Tests: []string{captured},
		},
		{
			Cause: "tcp-proxy", TCP: true, Title: "a box between ends TCP", judge: tcpProxy, packets: packetsProxy,
			Seen:  "the handshake takes less than half the round trip of data, and 3 ms less; in captures of both ends: sequence numbers and options are others at each; in one: the SYN is answered far sooner than data, or with another time to live (possible)",
			Apart: "the options of the SYN differ at the two ends", Mends: "bypass it", Effect: "its buffers and its CPU are what is measured",
			Source: "RFC 3135 (split connections)", Tests: []string{captured}, Brings: []string{"window-scaling-off", "sack-off", "timestamps-off", "mss-clamp"},
		},
		{
			Cause: "vpn-cpu", TCP: true, UDP: true, Title: "a tunnel's work fills a CPU", judge: tunnelCPU,
			Seen:  "a tunnel is on the route, and one CPU of that end is full of the kernel's work while thru's own threads have time to spare",
			Apart: "the same outside the tunnel", Mends: "encryption offload, several tunnels", Effect: "one core's worth of encryption",
			Source: "proc(5), /proc/stat; ip-link(8)", Brings: []string{"sender-cpu", "receiver-cpu"},
		},
	}
}

// memberBar is by how much several streams must exceed one that is held by a
// member of a bundle.
const memberBar = 1.5

func oneMember(f *flow) *outcome {
	switch {
	case f.onOneMachine():
		return no("no link lies between the ends")
	case f.cell.Streams > 1 && f.packetsOnly():
		return missing("the ways that source ports take", fmt.Sprintf("%d streams may take one way or several; packets do not tell", f.cell.Streams))
	case f.cell.Streams > 1:
		return no("%d streams were used: they may take every member", f.cell.Streams)
	case f.linkIsFull():
		return no("the link itself is full")
	}
	many := f.withMost()
	for _, id := range []string{eightStreams, manyPorts} {
		if x := f.experiment(id); x != nil && rateOf(x) > rateOf(many) {
			many = x
		}
	}
	if many == nil {
		return f.bundle()
	}
	if f.against(many).Times < memberBar {
		return no("%d streams carry %s, no multiple", many.Streams, unit.Rate(rateOf(many)))
	}
	if s, over := f.surplus(); over && rateOf(many) < memberBar*s.capacity {
		return no("UDP from one source port carries %s, %d streams carry %s", unit.Rate(s.capacity), many.Streams, unit.Rate(rateOf(many)))
	}
	if why := f.scalesOtherwise(); why != "" {
		return no("%s", why)
	}
	return f.member(many)
}

// scalesOtherwise names what else makes several streams faster than one; ""
// where one stream is held by the way itself.
func (f *flow) scalesOtherwise() string {
	rwnd, _ := f.rwndPct()
	w, _ := f.sendWindow()
	again, _ := f.againPct()
	flat, known := f.flatness()
	base, near := f.baseRTT()
	stood, _ := f.stalled()
	switch {
	case stood.timeouts > 0 && again >= brokenAgain && (!known || flat > flatBar):
		return "the one stream stood still for timeouts and has no plateau: so does each of several, by itself"
	case paces(f.congestion()) && near && base < nearNs:
		return "the congestion control paces each stream by itself"
	case rwnd > rwndClear && !f.lengthens(w):
		return "the receiver's window held the sender up " + unit.Percent(rwnd) + " of the time"
	case f.sender.isFull() || f.receiver.isFull():
		return "a CPU is full"
	case !f.hasQueue() && again < againBar:
		return "no queue fills and nothing is lost: the one stream is not held on the way"
	case !f.hasQueue() && (!known || flat > flatBar):
		return "loss without a plateau scales with the streams too"
	case f.below(again).lost:
		return "packets are lost however few there are, of each stream by itself"
	case sendBuffer(f).state == holds:
		return "the sender's buffer holds the one stream"
	}
	return ""
}

// member judges a plateau of one stream by how several fare: whole multiples
// are members, and more streams than these add nothing.
func (f *flow) member(many *measure.Cell) *outcome {
	g := f.against(many)
	o := likely("%d streams carry %.2g times what one does: it uses one member of a bundle, or is held by itself", many.Streams, g.Times).
		by(inTurns(measure.Proof{EndPoint: f.receiver.name, Counter: fmt.Sprintf("goodput of %d streams over one", many.Streams)}, g, memberBar), f.queueProof()).
		costs(0, fmt.Sprintf("%d streams carry %s", many.Streams, unit.Rate(rateOf(many))), "the same traffic with -P "+fmt.Sprint(many.Streams)).
		mend(f.bundleRemedy())
	members := math.Round(g.Times)
	flat, known := f.flatness()
	path := f.path()
	whole := members >= 2 && math.Abs(g.Times-members) < 0.06*members && float64(many.Streams) >= 2*members
	ways := 0.0
	if path != nil && path.Ports != nil && path.Ports.Ways > 1 {
		ways = float64(path.Ports.Ways)
		o.by(measure.Proof{EndPoint: path.From, Counter: "ways that source ports take", Value: ways})
	}
	switch {
	case !f.hasQueue() && !g.Sure && f.follows(): // what is lost holds each of several streams by itself, too
		o.confidence = measure.Possible
	case !known || flat > flatBar || !f.hasQueue() || !g.Sure:
	case whole && (ways == members || f.hasMembers(members)), f.comesApart(many), f.fillsOneByOne():
		o.confidence = measure.Certain
		o.text = fmt.Sprintf("one stream uses one member of a bundle: %d streams carry %.2g times as much", many.Streams, g.Times)
	}
	return o
}

// comesApart tells whether the receiver took in the several streams by more
// than the interface of its route.
func (f *flow) comesApart(many *measure.Cell) bool {
	g := &flow{doc: f.doc, cell: many, run: runShown(many)}
	for _, x := range g.run.Flows {
		e := &end{flow: g, seen: x.Receiver}
		n := e.nic()
		if x.From == many.From && n != nil && n.RxBytes > 0 && x.Receiver.Bytes > 0 && x.Receiver.Reported == "" {
			return 100*float64(n.RxBytes)/float64(x.Receiver.Bytes) < faceBar
		}
	}
	return false
}

// fillsOneByOne tells whether several numbers of streams carried different whole
// multiples of one stream, each less than its number of streams, and not as many
// times as much as they are more: so many members they met. A rate that each flow
// is given, and a bound for all, make no such.
func (f *flow) fillsOneByOne() bool {
	met := map[float64]float64{} // streams by the multiple
	for _, c := range append(f.withStreams(), f.experiment(eightStreams), f.experiment(manyPorts)) {
		g := f.against(c).Times
		if n := math.Round(g); c != nil && n >= 2 && n < float64(c.Streams) && math.Abs(g-n) < 0.03*n {
			met[n] = float64(c.Streams)
		}
	}
	for few, a := range met {
		for many, b := range met {
			if few < many && many/few < 0.75*b/a {
				return true
			}
		}
	}
	return false
}

// mayBeMember tells whether what holds one stream may be a member of a bundle:
// several were not tried, or carried more than one source port does.
func (f *flow) mayBeMember() bool {
	if f.isUDP() || f.cell.Streams > 1 {
		return false
	}
	one := f.rate()
	if s, over := f.surplus(); over {
		one = max(one, s.capacity)
	}
	most := 0.0
	for _, c := range []*measure.Cell{f.withMost(), f.experiment(eightStreams), f.experiment(manyPorts)} {
		most = max(most, rateOf(c))
	}
	return most == 0 || most >= memberBar*one
}

// hasMembers tells whether an end reaches the other by a bond of so many members
// at least, of which one carries what the flow does, where their speed is known.
func (f *flow) hasMembers(n float64) bool {
	return slices.ContainsFunc(f.ends(), func(e *end) bool {
		if e.face == nil || e.face.Bond == nil || float64(len(e.face.Bond.Members)) < n {
			return false
		}
		speed, _ := memberSpeed(e.face)
		return speed == 0 || f.rate() > 0.8*speed && f.rate() < speed
	})
}

func (f *flow) bundleRemedy() *measure.Remedy {
	for _, e := range f.ends() {
		for _, g := range f.conditions("lag-one-member", e.name) {
			return remedyOf(g, e.facts)
		}
	}
	return advise(nil, "have bundles and equal-cost routes choose a member by address and port (layer3+4), and use several streams: one flow never exceeds one member")
}

// bundle judges what the hosts say of their bonds, where nothing else was tried.
func (f *flow) bundle() *outcome {
	for _, e := range f.ends() {
		if gates := f.conditions("lag-one-member", e.name); len(gates) > 0 {
			return possible("%s", gates[0].Fact).at(e.onFace()).beside().mend(remedyOf(gates[0], e.facts))
		}
	}
	return f.untried(eightStreams)
}

func asymmetric(f *flow) *outcome {
	way, back := f.way()
	if f.onOneMachine() {
		return no("no link lies between the ends")
	}
	if way == nil || way.Hops == nil || back.Hops == nil {
		return missing("routers on the way there and back", "the path was not probed, or its probe lacks them; `thru check` has all")
	}
	there, here := way.MTU, back.MTU
	sizes := there != nil && here != nil && there.Bytes > 0 && here.Bytes > 0 && !there.Local && !here.Local &&
		(there.Bytes > here.Bytes+clampBar || here.Bytes > there.Bytes+clampBar)
	if *way.Hops == *back.Hops && !sizes {
		return no("routers on the way: %d there, %d back", *way.Hops, *back.Hops)
	}
	o := likely("the ways there and back differ: %d routers against %d", *way.Hops, *back.Hops)
	if *way.Hops == *back.Hops {
		o = likely("the ways there and back differ: %d bytes pass there, %d back", there.Bytes, here.Bytes)
	}
	o.by(measure.Proof{EndPoint: f.receiver.name, Counter: "routers on the way there", Value: float64(*way.Hops)},
		measure.Proof{EndPoint: f.sender.name, Counter: "routers on the way back", Value: float64(*back.Hops)}).
		mend(advise(nil, "look at the routes of both ends and of the routers between (traceroute from each end)"))
	reverse := f.reverse()
	bps, ok := f.goodput()
	if reverse == nil || !ok || bps > 0.67*rateOf(reverse) {
		return o.beside()
	}
	return o.by(measure.Proof{EndPoint: f.sender.name, Counter: "goodput of the other direction", Value: rateOf(reverse), Unit: "bps"}).
		costs(0, "the other direction carries "+unit.Rate(rateOf(reverse)), "the same traffic the other way")
}

// reverse is the measured cell of the same traffic the other way; nil without one.
func (f *flow) reverse() *measure.Cell {
	for i := range f.doc.Cells {
		c := &f.doc.Cells[i]
		if c.From == f.cell.To && c.To == f.cell.From && c.Protocol == f.cell.Protocol && c.Streams == f.cell.Streams && c.Experiment == f.cell.Experiment && rateOf(c) > 0 {
			return c
		}
	}
	return nil
}

// proxyBar is by how many ns the handshake must be shorter than a round trip of
// data: a loaded host delays the programs at its ends by a millisecond.
const proxyBar = 3e6

func tcpProxy(f *flow) *outcome {
	p := f.path()
	switch {
	case f.onOneMachine():
		return no("no link lies between the ends")
	case p == nil || p.Handshake == nil || p.Handshake.RTTNs == nil || *p.Handshake.RTTNs <= 0 || p.RTT == nil || p.RTT.Min <= 0:
		return missing("round trips of the handshake and of data", "the path was not probed, or a kernel does not tell")
	}
	hs, data := float64(*p.Handshake.RTTNs), f.quickest(float64(p.RTT.Min))
	if hs > data/2 || data-hs < proxyBar {
		return no("the handshake took %s, data %s at least", unit.Duration(int64(hs)), unit.Duration(int64(data)))
	}
	o := possible("something nearer answers in %s's name: the handshake took %s, data takes %s at least", p.To, unit.Duration(int64(hs)), unit.Duration(int64(data))).
		by(below(measure.Proof{EndPoint: p.From, Counter: "round trip of the handshake", Value: hs, Unit: "ns"}, data/2)).
		mend(advise(nil, "find the accelerator, load balancer or firewall that ends TCP, and have it let these ports pass"))
	changed := rewritten(p.Handshake.SYNSent, p.Handshake.SYNSeen) || rewritten(p.Handshake.SYNACKSent, p.Handshake.SYNACKSeen)
	kernel, ok := f.kernelRTT()
	switch {
	case changed:
		o.confidence = measure.Certain
		o.by(measure.Proof{EndPoint: p.To, Counter: "options of the SYN that differ at the ends", Value: 1})
	case ok && kernel < data/2 && data-kernel > proxyBar:
		o.confidence = measure.Likely
		o.by(below(f.sender.proof("tcp_info.min_rtt_ns", kernel, "ns"), data/2))
	default:
		o.beside()
	}
	return o
}

// quickest is the least round trip from program to program: that of the probe, or of
// the test's own connection where that was shorter. A guest that has little CPU
// answers some probes late, and no box has to lie between for that.
func (f *flow) quickest(probed float64) float64 {
	for _, e := range f.ends() {
		if e.seen != nil && e.seen.RTTIdle != nil && e.seen.RTTIdle.Min > 0 {
			probed = min(probed, float64(e.seen.RTTIdle.Min))
		}
	}
	return probed
}

// kernelRTT is the least round trip that the sender's kernel saw, in ns.
func (f *flow) kernelRTT() (float64, bool) {
	for _, s := range f.sender.streams() {
		if s.TCP != nil && s.TCP.MinRTT != nil && *s.TCP.MinRTT > 0 {
			return float64(*s.TCP.MinRTT), true
		}
	}
	return 0, false
}

// rewritten tells whether the options that make a connection another one
// differ: a clamp changes the MSS alone, a proxy makes its own SYN.
func rewritten(sent, seen *measure.SYN) bool {
	if sent == nil || seen == nil {
		return false
	}
	scale := sent.WindowScale != nil && seen.WindowScale != nil && *sent.WindowScale != *seen.WindowScale
	stamps := sent.Timestamps != nil && seen.Timestamps != nil && *sent.Timestamps != *seen.Timestamps
	return scale || stamps
}

func tunnelCPU(f *flow) *outcome {
	var o *outcome
	known := false
	for _, e := range f.ends() {
		known = known || e.hasFace()
		if x := e.tunnelWork(); x != nil && (o == nil || sureness(x) > sureness(o)) {
			o = x
		}
	}
	switch {
	case o != nil:
		return o
	case f.onOneMachine():
		return no("no link lies between the ends")
	case !known:
		return missing("interfaces of the route", "neither end tells them")
	}
	return no("no tunnel is on the route of the ends")
}

// tunnelWork judges the CPUs of an end that reaches the other through a tunnel;
// nil where it does not.
func (e *end) tunnelWork() *outcome {
	if e.face == nil || e.face.Tunnel == nil {
		return nil
	}
	if e.seen == nil || e.seen.Host == nil || len(e.seen.Host.CPUs) == 0 {
		return e.lacks("how busy its CPUs were")
	}
	inKernel := func(c measure.CPU) float64 { return bounded(c.System + c.SoftIRQ) }
	c := slices.MaxFunc(e.seen.Host.CPUs, func(a, b measure.CPU) int { return cmp.Compare(inKernel(a), inKernel(b)) })
	work := inKernel(c)
	if work < threadBar {
		return no("%s is a tunnel (%s), and no CPU is full of the kernel's work: %s at most", word(e.face.Name), word(e.face.Tunnel.Kind), unit.Percent(work))
	}
	o := likely("CPU %d is full of the kernel's work, and %s is a tunnel (%s): %s", c.Core, word(e.face.Name), word(e.face.Tunnel.Kind), unit.Percent(work)).
		at(e.onCPU(c.Core)).by(above(e.proof("system and softirq of that CPU", work, "pct"), threadBar)).
		mend(advise(e, "a card or CPU that encrypts, several tunnels, or the traffic outside the tunnel"))
	if t, told := e.threads(); told && t.run+t.wait > threadBar {
		o.confidence = measure.Possible // it may be that thread's own work
		o.beside()
	}
	return o
}
