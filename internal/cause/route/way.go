// Package route holds the causes of the route: bundles of links, asymmetric routes,
// proxies, tunnels.
package route

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"thru/internal/cause/below"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/loss"
	"thru/internal/cause/mtu"
	"thru/internal/measure"
	"thru/internal/unit"
)

// WayCauses are the causes of the way that packets take.
func WayCauses() []diagnose.Rule {
	return []diagnose.Rule{
		{
			Cause: "lag-one-member", TCP: true, Unseen: diagnose.HostPackets, Title: "one flow uses one member of a bundle", Judge: oneMember,
			Seen: "one stream is held at a flat rate by a queue or drops on the way, and several source ports carry a multiple of it; " +
				"flows of several hosts or ports carry together what one member of a host's bond does (likely), or the same whole part of the link's rate however many they are (possible)",
			Apart: "windows, random loss and a full CPU scale with the streams too: none of them may hold the one stream; a rate that a cloud gives each flow looks the same, but for a bond at an end or several numbers of streams that carry different whole multiples",
			Mends: "layer3+4 hashing; several streams", Effect: "953 of 1913 Mb/s over two members", Source: "IEEE 802.1AX, 5.2.4; A-09",
			Tests: []string{diagnose.EightStreams, diagnose.ManyPorts}, Brings: []string{"shaper", "policer", "loss", "single-flow", "link-rate"},
		},
		{
			Cause: "asymmetric-route", TCP: true, UDP: true, Title: "the ways there and back differ", Judge: asymmetric, Packets: packetsAsymmetric,
			Seen:  "routers on the way or the size that passes differ between the directions; in captures of both ends: the time to live falls by more in one direction",
			Apart: "each direction apart: it costs something where their rates differ", Mends: "look at the routes of both ends",
			Effect: "one direction has another delay, MTU and loss", Source: "RFC 7679, section 1.1; TTL of received packets", Tests: []string{diagnose.Captured},
		},
		{
			Cause: "tcp-proxy", TCP: true, Title: "a box between ends TCP", Judge: tcpProxyCause, Packets: diagnose.PacketsProxy,
			Seen:  "the handshake takes less than half the round trip of data, and 3 ms less; in captures of both ends: sequence numbers and options are others at each; in one: the SYN is answered far sooner than data, or with another time to live (possible)",
			Apart: "the options of the SYN differ at the two ends", Mends: "bypass it", Effect: "its buffers and its CPU are what is measured",
			Source: "RFC 3135 (split connections)", Tests: []string{diagnose.Captured}, Brings: []string{"window-scaling-off", "sack-off", "timestamps-off", "mss-clamp"},
		},
		{
			Cause: "vpn-cpu", TCP: true, UDP: true, Title: "a tunnel's work fills a CPU", Judge: tunnelCPU,
			Seen:  "a tunnel is on the route, and one CPU of that end is full of the kernel's work while thru's own threads have time to spare",
			Apart: "the same outside the tunnel", Mends: "encryption offload, several tunnels", Effect: "one core's worth of encryption",
			Source: "proc(5), /proc/stat; ip-link(8)", Brings: []string{"sender-cpu", "receiver-cpu"},
		},
	}
}

func oneMember(f *diagnose.Flow) *diagnose.Outcome {
	switch {
	case f.OnOneMachine():
		return diagnose.No("no link lies between the ends")
	case f.Cell.Streams > 1 && f.PacketsOnly():
		return diagnose.Missing("the ways that source ports take", fmt.Sprintf("%d streams may take one way or several; packets do not tell", f.Cell.Streams))
	case f.Cell.Streams > 1:
		return diagnose.No("%d streams were used: they may take every member", f.Cell.Streams)
	case f.LinkIsFull():
		return diagnose.No("the link itself is full")
	}
	many := f.WithMost()
	for _, id := range []string{diagnose.EightStreams, diagnose.ManyPorts} {
		if x := f.Experiment(id); x != nil && diagnose.RateOf(x) > diagnose.RateOf(many) {
			many = x
		}
	}
	if many == nil {
		return bundle(f)
	}
	if f.Against(many).Times < diagnose.MemberBar {
		return diagnose.No("%d streams carry %s, no multiple", many.Streams, unit.Rate(diagnose.RateOf(many)))
	}
	if s, over := f.Surplus(); over && diagnose.RateOf(many) < diagnose.MemberBar*s.Capacity {
		return diagnose.No("UDP from one source port carries %s, %d streams carry %s", unit.Rate(s.Capacity), many.Streams, unit.Rate(diagnose.RateOf(many)))
	}
	if why := scalesOtherwise(f); why != "" {
		return diagnose.No("%s", why)
	}
	return member(f, many)
}

// scalesOtherwise names what else makes several streams faster than one; ""
// where one stream is held by the way itself.
func scalesOtherwise(f *diagnose.Flow) string {
	rwnd, _ := f.RwndPct()
	w, _ := f.SendWindow()
	again, _ := f.AgainPct()
	flat, known := f.Flatness()
	base, near := f.BaseRTT()
	stood, _ := mtu.Stalled(f)
	switch {
	case stood.Timeouts > 0 && again >= mtu.BrokenAgain && (!known || flat > diagnose.FlatBar):
		return "the one stream stood still for timeouts and has no plateau: so does each of several, by itself"
	case diagnose.Paces(f.Congestion()) && near && base < diagnose.NearNs:
		return "the congestion control paces each stream by itself"
	case rwnd > diagnose.RwndClear && !f.Lengthens(w):
		return "the receiver's window held the sender up " + unit.Percent(rwnd) + " of the time"
	case f.Sender.IsFull() || f.Receiver.IsFull():
		return "a CPU is full"
	case !f.HasQueue() && again < diagnose.AgainBar:
		return "no queue fills and nothing is lost: the one stream is not held on the way"
	case !f.HasQueue() && (!known || flat > diagnose.FlatBar):
		return "loss without a plateau scales with the streams too"
	case loss.Below(f, again).Lost:
		return "packets are lost however few there are, of each stream by itself"
	case diagnose.SendBuffer(f).State == diagnose.Holds:
		return "the sender's buffer holds the one stream"
	}
	return ""
}

// member judges a plateau of one stream by how several fare: whole multiples
// are members, and more streams than these add nothing.
func member(f *diagnose.Flow, many *measure.Cell) *diagnose.Outcome {
	g := f.Against(many)
	o := diagnose.Likely("%d streams carry %.2g times what one does: it uses one member of a bundle, or is held by itself", many.Streams, g.Times).
		By(diagnose.InTurns(measure.Proof{EndPoint: f.Receiver.Name, Counter: fmt.Sprintf("goodput of %d streams over one", many.Streams)}, g, diagnose.MemberBar), loss.QueueProof(f)).
		Costs(0, fmt.Sprintf("%d streams carry %s", many.Streams, unit.Rate(diagnose.RateOf(many))), "the same traffic with -P "+fmt.Sprint(many.Streams)).
		Mend(BundleRemedy(f))
	members := math.Round(g.Times)
	flat, known := f.Flatness()
	path := f.Path()
	whole := members >= 2 && math.Abs(g.Times-members) < 0.06*members && float64(many.Streams) >= 2*members
	ways := 0.0
	if path != nil && path.Ports != nil && path.Ports.Ways > 1 {
		ways = float64(path.Ports.Ways)
		o.By(measure.Proof{EndPoint: path.From, Counter: "ways that source ports take", Value: ways})
	}
	switch {
	case !f.HasQueue() && !g.Sure && f.Follows(): // what is lost holds each of several streams by itself, too
		o.Confidence = measure.Possible
	case !known || flat > diagnose.FlatBar || !f.HasQueue() || !g.Sure:
	case whole && (ways == members || hasMembers(f, members)), comesApart(f, many), fillsOneByOne(f):
		o.Confidence = measure.Certain
		o.Text = fmt.Sprintf("one stream uses one member of a bundle: %d streams carry %.2g times as much", many.Streams, g.Times)
	}
	return o
}

// comesApart tells whether the receiver took in the several streams by more
// than the interface of its route.
func comesApart(f *diagnose.Flow, many *measure.Cell) bool {
	g := &diagnose.Flow{Doc: f.Doc, Cell: many, Run: diagnose.RunShown(many)}
	for _, x := range g.Run.Flows {
		e := &diagnose.End{Flow: g, Seen: x.Receiver}
		n := e.NIC()
		if x.From == many.From && n != nil && n.RxBytes > 0 && x.Receiver.Bytes > 0 && x.Receiver.Reported == "" {
			return 100*float64(n.RxBytes)/float64(x.Receiver.Bytes) < diagnose.FaceBar
		}
	}
	return false
}

// fillsOneByOne tells whether several numbers of streams carried different whole
// multiples of one stream, each less than its number of streams, and not as many
// times as much as they are more: so many members they met. A rate that each flow
// is given, and a bound for all, make no such.
func fillsOneByOne(f *diagnose.Flow) bool {
	met := map[float64]float64{} // streams by the multiple
	for _, c := range append(f.WithStreams(), f.Experiment(diagnose.EightStreams), f.Experiment(diagnose.ManyPorts)) {
		g := f.Against(c).Times
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

// hasMembers tells whether an end reaches the other by a bond of so many members
// at least, of which one carries what the flow does, where their speed is known.
func hasMembers(f *diagnose.Flow, n float64) bool {
	return slices.ContainsFunc(f.Ends(), func(e *diagnose.End) bool {
		if e.Face == nil || e.Face.Bond == nil || float64(len(e.Face.Bond.Members)) < n {
			return false
		}
		speed, _ := diagnose.MemberSpeed(e.Face)
		return speed == 0 || f.Rate() > 0.8*speed && f.Rate() < speed
	})
}

func BundleRemedy(f *diagnose.Flow) *measure.Remedy {
	for _, e := range f.Ends() {
		for _, g := range below.Conditions(f, "lag-one-member", e.Name) {
			return diagnose.RemedyOf(g, e.Facts)
		}
	}
	return diagnose.Advise(nil, "have bundles and equal-cost routes choose a member by address and port (layer3+4), and use several streams: one flow never exceeds one member")
}

// bundle judges what the hosts say of their bonds, where nothing else was tried.
func bundle(f *diagnose.Flow) *diagnose.Outcome {
	for _, e := range f.Ends() {
		if gates := below.Conditions(f, "lag-one-member", e.Name); len(gates) > 0 {
			return diagnose.Possible("%s", gates[0].Fact).At(e.OnFace()).Beside().Mend(diagnose.RemedyOf(gates[0], e.Facts))
		}
	}
	return f.Untried(diagnose.EightStreams)
}

func asymmetric(f *diagnose.Flow) *diagnose.Outcome {
	way, back := f.Way()
	if f.OnOneMachine() {
		return diagnose.No("no link lies between the ends")
	}
	if way == nil || way.Hops == nil || back.Hops == nil {
		return diagnose.Missing("routers on the way there and back", "the path was not probed, or its probe lacks them; `thru check` has all")
	}
	there, here := way.MTU, back.MTU
	sizes := there != nil && here != nil && there.Bytes > 0 && here.Bytes > 0 && !there.Local && !here.Local &&
		(there.Bytes > here.Bytes+mtu.ClampBar || here.Bytes > there.Bytes+mtu.ClampBar)
	if *way.Hops == *back.Hops && !sizes {
		return diagnose.No("routers on the way: %d there, %d back", *way.Hops, *back.Hops)
	}
	o := diagnose.Likely("the ways there and back differ: %d routers against %d", *way.Hops, *back.Hops)
	if *way.Hops == *back.Hops {
		o = diagnose.Likely("the ways there and back differ: %d bytes pass there, %d back", there.Bytes, here.Bytes)
	}
	o.By(measure.Proof{EndPoint: f.Receiver.Name, Counter: "routers on the way there", Value: float64(*way.Hops)},
		measure.Proof{EndPoint: f.Sender.Name, Counter: "routers on the way back", Value: float64(*back.Hops)}).
		Mend(diagnose.Advise(nil, "look at the routes of both ends and of the routers between (traceroute from each end)"))
	reverse := reverse(f)
	bps, ok := f.Goodput()
	if reverse == nil || !ok || bps > 0.67*diagnose.RateOf(reverse) {
		return o.Beside()
	}
	return o.By(measure.Proof{EndPoint: f.Sender.Name, Counter: "goodput of the other direction", Value: diagnose.RateOf(reverse), Unit: "bps"}).
		Costs(0, "the other direction carries "+unit.Rate(diagnose.RateOf(reverse)), "the same traffic the other way")
}

// reverse is the measured cell of the same traffic the other way; nil without one.
func reverse(f *diagnose.Flow) *measure.Cell {
	for i := range f.Doc.Cells {
		c := &f.Doc.Cells[i]
		if c.From == f.Cell.To && c.To == f.Cell.From && c.Protocol == f.Cell.Protocol && c.Streams == f.Cell.Streams && c.Experiment == f.Cell.Experiment && diagnose.RateOf(c) > 0 {
			return c
		}
	}
	return nil
}

func tcpProxyCause(f *diagnose.Flow) *diagnose.Outcome {
	p := f.Path()
	switch {
	case f.OnOneMachine():
		return diagnose.No("no link lies between the ends")
	case p == nil || p.Handshake == nil || p.Handshake.RTTNs == nil || *p.Handshake.RTTNs <= 0 || p.RTT == nil || p.RTT.Min <= 0:
		return diagnose.Missing("round trips of the handshake and of data", "the path was not probed, or a kernel does not tell")
	}
	hs, data := float64(*p.Handshake.RTTNs), quickest(f, float64(p.RTT.Min))
	if hs > data/2 || data-hs < diagnose.ProxyBar {
		return diagnose.No("the handshake took %s, data %s at least", unit.Duration(int64(hs)), unit.Duration(int64(data)))
	}
	o := diagnose.Possible("something nearer answers in %s's name: the handshake took %s, data takes %s at least", p.To, unit.Duration(int64(hs)), unit.Duration(int64(data))).
		By(diagnose.Below(measure.Proof{EndPoint: p.From, Counter: "round trip of the handshake", Value: hs, Unit: "ns"}, data/2)).
		Mend(diagnose.Advise(nil, "find the accelerator, load balancer or firewall that ends TCP, and have it let these ports pass"))
	changed := diagnose.Rewritten(p.Handshake.SYNSent, p.Handshake.SYNSeen) || diagnose.Rewritten(p.Handshake.SYNACKSent, p.Handshake.SYNACKSeen)
	kernel, ok := kernelRTT(f)
	switch {
	case changed:
		o.Confidence = measure.Certain
		o.By(measure.Proof{EndPoint: p.To, Counter: "options of the SYN that differ at the ends", Value: 1})
	case ok && kernel < data/2 && data-kernel > diagnose.ProxyBar:
		o.Confidence = measure.Likely
		o.By(diagnose.Below(f.Sender.Proof("tcp_info.min_rtt_ns", kernel, "ns"), data/2))
	default:
		o.Beside()
	}
	return o
}

// quickest is the least round trip from program to program: that of the probe, or of
// the test's own connection where that was shorter. A guest that has little CPU
// answers some probes late, and no box has to lie between for that.
func quickest(f *diagnose.Flow, probed float64) float64 {
	for _, e := range f.Ends() {
		if e.Seen != nil && e.Seen.RTTIdle != nil && e.Seen.RTTIdle.Min > 0 {
			probed = min(probed, float64(e.Seen.RTTIdle.Min))
		}
	}
	return probed
}

// kernelRTT is the least round trip that the sender's kernel saw, in ns.
func kernelRTT(f *diagnose.Flow) (float64, bool) {
	for _, s := range f.Sender.Streams() {
		if s.TCP != nil && s.TCP.MinRTT != nil && *s.TCP.MinRTT > 0 {
			return float64(*s.TCP.MinRTT), true
		}
	}
	return 0, false
}

func tunnelCPU(f *diagnose.Flow) *diagnose.Outcome {
	var o *diagnose.Outcome
	known := false
	for _, e := range f.Ends() {
		known = known || e.HasFace()
		if x := tunnelWork(e); x != nil && (o == nil || diagnose.Sureness(x) > diagnose.Sureness(o)) {
			o = x
		}
	}
	switch {
	case o != nil:
		return o
	case f.OnOneMachine():
		return diagnose.No("no link lies between the ends")
	case !known:
		return diagnose.Missing("interfaces of the route", "neither end tells them")
	}
	return diagnose.No("no tunnel is on the route of the ends")
}

// tunnelWork judges the CPUs of an end that reaches the other through a tunnel;
// nil where it does not.
func tunnelWork(e *diagnose.End) *diagnose.Outcome {
	if e.Face == nil || e.Face.Tunnel == nil {
		return nil
	}
	if e.Seen == nil || e.Seen.Host == nil || len(e.Seen.Host.CPUs) == 0 {
		return e.Lacks("how busy its CPUs were")
	}
	inKernel := func(c measure.CPU) float64 { return diagnose.Bounded(c.System + c.SoftIRQ) }
	c := slices.MaxFunc(e.Seen.Host.CPUs, func(a, b measure.CPU) int { return cmp.Compare(inKernel(a), inKernel(b)) })
	work := inKernel(c)
	if work < diagnose.ThreadBar {
		return diagnose.No("%s is a tunnel (%s), and no CPU is full of the kernel's work: %s at most", diagnose.Word(e.Face.Name), diagnose.Word(e.Face.Tunnel.Kind), unit.Percent(work))
	}
	o := diagnose.Likely("CPU %d is full of the kernel's work, and %s is a tunnel (%s): %s", c.Core, diagnose.Word(e.Face.Name), diagnose.Word(e.Face.Tunnel.Kind), unit.Percent(work)).
		At(e.OnCPU(c.Core)).By(diagnose.Above(e.Proof("system and softirq of that CPU", work, "pct"), diagnose.ThreadBar)).
		Mend(diagnose.Advise(e, "a card or CPU that encrypts, several tunnels, or the traffic outside the tunnel"))
	if t, told := e.Threads(); told && t.Run+t.Wait > diagnose.ThreadBar {
		o.Confidence = measure.Possible // it may be that thread's own work
		o.Beside()
	}
	return o
}
