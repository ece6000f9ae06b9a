package route

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/cause/cpu"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/knob"
	"thru/internal/cause/loss"
	"thru/internal/cause/mtu"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// LAGOneMember is the cause `lag-one-member`.
func LAGOneMember() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "lag-one-member", TCP: true, Unseen: diagnose.HostPackets, Title: "one flow uses one member of a bundle", Judge: judgeLAGOneMember,
			Seen: "a queue or drops on the path hold one stream at a flat rate, and several source ports carry a multiple of it; " +
				"the flows of several hosts or ports together carry what one member of a host's bond carries (likely), or the same integer fraction of the link rate for any number of flows (possible)",
			Distinction: "windows, random loss and a full CPU scale with the streams too, so none of them may limit the single stream; a cloud's rate limit for each flow looks the same, except with a bond at an end, or if different numbers of streams carry different integer multiples",
			Fix:         "set layer3+4 hashing, and use several streams", Effect: "953 of 1913 Mb/s over two members", Source: "IEEE 802.1AX, 5.2.4; A-09",
			Tests: []string{diagnose.EightStreams, diagnose.ManyPorts}, Brings: []string{"shaper", "policer", "loss", "single-flow", "link-rate"},
		},
		Gates: []gate.Rule{
			{ID: "bond", Words: "lag lacp bonding teaming", Title: "Link aggregation", About: "the members of a bond, its LACP groups and its hash policy",
				Warns:  "a member is down, or in another LACP group than the bond's; or the policy hashes layer 2 addresses only",
				Why:    "one flow never exceeds one member, and layer 2 hashing keeps all flows between two hosts on one",
				Source: "Linux Documentation/networking/bonding.rst; IEEE 802.1AX", Fix: "set layer3+4 hashing, and LACP at the switch",
				Checklist: []string{"A-03", "A-09"}, Face: gateBond},
			{ID: "several-ways", Words: "ecmp multipath", Title: "Several paths", About: "whether flows of different source ports differ in hops or delay (ECMP, link aggregation)",
				Warns:  "they differ; or an end has several next hops and chooses among them by addresses only",
				Why:    "one flow never exceeds one member: a single connection cannot show what all paths together carry",
				Source: "A-09; IEEE 802.1AX, 5.2.4", Fix: "test with many connections as well as with one; switch hashing by port on", Checklist: []string{"A-09", "C-35"}, Path: gateSeveralDirections},
		},
		Propose: []advise.Proposer{cpu.MoreStreams},
	}
}

func judgeLAGOneMember(f *diagnose.Flow) *diagnose.Outcome {
	switch {
	case f.OnOneMachine():
		return diagnose.No("both ends are on one host")
	case f.Cell.Streams > 1 && f.PacketsOnly():
		return diagnose.Missing("the paths of the source ports", fmt.Sprintf("%d streams may take one path or several; packets do not show it", f.Cell.Streams))
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
		return diagnose.No("%d streams carry %s, not a multiple of one stream's rate", many.Streams, unit.Rate(diagnose.RateOf(many)))
	}
	if s, over := f.Surplus(); over && diagnose.RateOf(many) < diagnose.MemberBar*s.Capacity {
		return diagnose.No("UDP from one source port carries %s, %d streams carry %s", unit.Rate(s.Capacity), many.Streams, unit.Rate(diagnose.RateOf(many)))
	}
	if why := scalesOtherwise(f); why != "" {
		return diagnose.No("%s", why)
	}
	return member(f, many)
}

// bundle judges the hosts' facts of their bonds, if nothing else was tried.
func bundle(f *diagnose.Flow) *diagnose.Outcome {
	for _, e := range f.Ends() {
		if gates := hypervisor.Conditions(f, "lag-one-member", e.Name); len(gates) > 0 {
			return diagnose.Possible("%s", gates[0].Fact).At(e.OnFace()).MarkNotBinding().AddFix(e.FixOf(gates[0]))
		}
	}
	_, _, timed := f.Queued()
	_, counted := f.AgainPct()
	if why := scalesOtherwise(f); why != "" && timed && counted { // several streams could not show a bundle
		return diagnose.No("%s", why)
	}
	return f.Untried(diagnose.EightStreams)
}

// scalesOtherwise names what else makes several streams faster than one; "" if the path itself limits one stream.
func scalesOtherwise(f *diagnose.Flow) string {
	rwnd, _ := f.RwndPct()
	w, _ := f.SendWindow()
	again, _ := f.AgainPct()
	flat, known := f.Flatness()
	base, near := f.BaseRTT()
	stood, _ := mtu.Stalled(f)
	switch {
	case stood.Timeouts > 0 && again >= mtu.BrokenAgain && (!known || flat > diagnose.FlatBar):
		return "the stream stopped for timeouts and its rate is not flat: each of several streams does the same"
	case diagnose.Paces(f.Congestion()) && near && base < diagnose.NearNs:
		return "the congestion control paces each stream separately"
	case rwnd > diagnose.RwndClear && !f.Lengthens(w):
		return "the receiver's window limited the sender " + unit.Percent(rwnd) + " of the time"
	case f.Sender.IsFull() || f.Receiver.IsFull():
		return "a CPU is full"
	case !f.HasQueue() && again < diagnose.AgainBar:
		return "no queue fills and no packet is lost: the path does not limit the stream"
	case !f.HasQueue() && (!known || flat > diagnose.FlatBar):
		return "loss at a rate that is not flat scales with the streams too"
	case loss.Below(f, again).Lost:
		return "packets are lost even at low rates, in each stream separately"
	case diagnose.SendBuffer(f).State == diagnose.Holds:
		return "the sender's buffer limits the stream"
	}
	return ""
}

// member judges a plateau of one stream by several streams: whole multiples are members, and additional streams
// add nothing.
func member(f *diagnose.Flow, many *measure.Cell) *diagnose.Outcome {
	g := f.Against(many)
	o := diagnose.Likely("%d streams carry %.2g times as much as one: one stream uses one member of a bundle, or has a limit of its own", many.Streams, g.Times).
		By(diagnose.InTurns(measure.Proof{EndPoint: f.Receiver.Name, Counter: fmt.Sprintf("goodput of %d streams relative to one", many.Streams)}, g, diagnose.MemberBar), loss.QueueProof(f)).
		Costs(0, fmt.Sprintf("%d streams carry %s", many.Streams, unit.Rate(diagnose.RateOf(many))), "the same traffic with -P "+fmt.Sprint(many.Streams)).
		AddFix(bundleFix(f))
	members := math.Round(g.Times)
	flat, known := f.Flatness()
	path := f.Path()
	whole := members >= 2 && math.Abs(g.Times-members) < 0.06*members && float64(many.Streams) >= 2*members
	directions := 0.0
	if path != nil && path.Ports != nil && path.Ports.Directions > 1 {
		directions = float64(path.Ports.Directions)
		o.By(measure.Proof{EndPoint: path.From, Counter: "paths of the source ports", Value: directions})
	}
	switch {
	case !f.HasQueue() && !g.Sure && f.Follows(): // the loss limits each of several streams, too
		o.Confidence = measure.Possible
	case !known || flat > diagnose.FlatBar || !f.HasQueue() || !g.Sure:
	case whole && (directions == members || hasMembers(f, members)), spreadsReception(f, many), fillsOneByOne(f):
		o.Confidence = measure.Certain
		o.Text = fmt.Sprintf("one stream uses one member of a bundle: %d streams carry %.2g times as much", many.Streams, g.Times)
	}
	return o
}

// bundleFix says how a bundle spreads flows over its members.
func bundleFix(f *diagnose.Flow) *measure.Fix {
	for _, e := range f.Ends() {
		for _, g := range hypervisor.Conditions(f, "lag-one-member", e.Name) {
			return e.FixOf(g)
		}
	}
	return diagnose.Advise(nil, "have bundles and equal-cost routes choose a member by address and port (layer3+4), and use several streams: one flow never exceeds one member")
}

// hasMembers reports whether an end reaches the other by a bond with at least so many members, of which one
// carries what the flow does, if their speed is known.
func hasMembers(f *diagnose.Flow, n float64) bool {
	return slices.ContainsFunc(f.Ends(), func(e *diagnose.End) bool {
		if e.Face == nil || e.Face.Bond == nil || float64(len(e.Face.Bond.Members)) < n {
			return false
		}
		speed, _ := diagnose.MemberSpeed(e.Face)
		return speed == 0 || f.Rate() > 0.8*speed && f.Rate() < speed
	})
}

// spreadsReception reports whether the receiver received the streams on more than the interface of its route.
func spreadsReception(f *diagnose.Flow, many *measure.Cell) bool {
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

// fillsOneByOne reports whether several numbers of streams carried different whole multiples of one stream's rate,
// each less than its number of streams and not proportional to it: that is the number of members they hit. A rate
// limit per flow, or for all flows, has no such pattern.
func fillsOneByOne(f *diagnose.Flow) bool {
	met := map[float64]float64{} // numbers of streams by their multiple
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

// Thresholds of several flows.
const (
	flatOver  = 6  // percent by which the aggregates of a sweep may differ and count as equal
	memberLow = 90 // percent of one member that a group must fill
)

// SweepAtOneMember judges a sweep whose aggregate stays at the same whole fraction of the link's known rate, whatever
// the number of flows: they may all share one LAG member. Another link of that rate looks the same.
func SweepAtOneMember(cat *diagnose.Catalogue, d *measure.Document, s diagnose.Sweep) *measure.Finding {
	cells := diagnose.CellsOf(d, s.Groups[len(s.Groups)-1].Group)
	if len(cells) == 0 || cells[0].Ceiling == nil || !(cells[0].Ceiling.Bps > 0) {
		return nil
	}
	least, most := math.Inf(1), 0.0
	for _, g := range s.Groups {
		least, most = min(least, g.Aggregate.Value), max(most, g.Aggregate.Value)
	}
	c := cells[0].Ceiling
	members := math.Round(c.Bps / most)
	if most > least*(1+flatOver/100.0) || members < 2 || members > 16 || math.Abs(c.Bps/most/members-1) > flatOver/100.0 || s.Counts[len(s.Counts)-1] < 2*s.Counts[0] {
		return nil
	}
	if f := diagnose.NewFlow(cat, d, cells[0]); f == nil || f.OnOneMachine() || f.Sender.IsFull() || f.Receiver.IsFull() {
		return nil
	}
	return &measure.Finding{
		Cause: "lag-one-member", Confidence: measure.Possible, Where: measure.Where{Place: measure.AtPath, From: cells[0].From, To: cells[0].To},
		Summary: diagnose.Line(fmt.Sprintf("%s to %s carry the same %s, 1/%.0f of what the link should carry: they may all share one member of a bundle",
			s.Words(0), s.Words(len(s.Counts)-1), unit.Rate(most), members)),
		Evidence: diagnose.Numbers([]measure.Proof{diagnose.Above(measure.Proof{Counter: "ceiling of the link relative to the aggregate", Value: c.Bps / most}, 2-flatOver/100.0)}),
		Effect:   &measure.Effect{BoundBps: new(most), Text: "one member carries " + unit.Rate(most), From: "link rate: " + c.LinkFrom},
		Next:     "a test with flows of other hosts and ports; the counters of the members",
		Fix:      diagnose.Advise(nil, "have the bundle choose a member by address and port (layer3+4) at both of its ends"), Source: "IEEE 802.1AX, 5.2.4; A-09",
	}
}

// GroupOnOneMember judges several flows over a bond of known members that together carry what one member does.
func GroupOnOneMember(cat *diagnose.Catalogue, d *measure.Document, g *measure.Group) *measure.Finding {
	cells := diagnose.CellsOf(d, g.Group)
	if len(cells) < 2 || diagnose.IsRateLimitedGroup(d, g.Group) {
		return nil
	}
	for _, c := range cells {
		f := diagnose.NewFlow(cat, d, c)
		if f == nil || f.OnOneMachine() {
			continue
		}
		for _, e := range f.Ends() {
			if x := sharedMember(e, g, len(cells)); x != nil {
				return x
			}
		}
	}
	return nil
}

// sharedMember judges the bond of one host by what it sent or received in a group.
func sharedMember(e *diagnose.End, g *measure.Group, flows int) *measure.Finding {
	speed, n := diagnose.MemberSpeed(e.Face)
	i := slices.IndexFunc(g.Hosts, func(h measure.Share) bool { return h.Name == e.Name })
	if n < 2 || i < 0 || g.Hosts[i].Flows < 2 {
		return nil
	}
	bps := g.Hosts[i].ReceivedBps
	if e.Sends() {
		bps = g.Hosts[i].SentBps
	}
	size := mtu.UsualMTU
	if e.Face.MTU != nil && *e.Face.MTU > 0 {
		size = *e.Face.MTU
	}
	most := stat.MaxGoodput(stat.Link{RateBps: int64(speed), MTU: size, Timestamps: true})
	if bps == nil || !(most > 0) || *bps < most*memberLow/100 || *bps > most*(1+flatOver/100.0) {
		return nil
	}
	return &measure.Finding{
		Cause: "lag-one-member", Confidence: measure.Likely, Where: e.OnFace(),
		Summary: diagnose.Line(fmt.Sprintf("%d flows carry %s together, which is what one of the %d members of %s carries: they all share it",
			g.Hosts[i].Flows, unit.Rate(*bps), n, diagnose.Word(e.FaceName()))),
		Evidence: diagnose.Numbers([]measure.Proof{diagnose.Above(e.Proof("goodput of all flows relative to one member's ceiling", 100**bps/most, "pct"), memberLow)}),
		Effect:   &measure.Effect{BoundBps: new(most * float64(n)), Text: fmt.Sprintf("%d members carry %s", n, unit.Rate(most*float64(n))), From: "speeds of the members"},
		Next:     "the counters of the members (ip -s link)", Fix: bundleFix(e.Flow), Source: "IEEE 802.1AX, 5.2.4; A-09",
	}
}

func gateBond(f *scene.Face) *gate.Finding {
	if f.Bond == nil {
		return nil
	}
	var down, apart []string
	main := f.Bond.Aggregate
	for _, m := range f.Bond.Members {
		if !m.Up {
			down = append(down, m.Name)
		} else if main != nil && m.Aggregate != nil && *m.Aggregate != *main {
			apart = append(apart, m.Name)
		}
	}
	switch {
	case len(f.Bond.Members) == 0:
		return gate.Warn("%s has no members", f.Name)
	case len(down) > 0:
		return gate.Warn("%s of %s carry nothing: down", strings.Join(down, ", "), f.Name).
			Because("%d of %d members carry the traffic", len(f.Bond.Members)-len(down), len(f.Bond.Members)).
			Do(scene.Advise("check cable and switch port of " + words(down)))
	case len(apart) > 0:
		return gate.Warn("%s of %s carry nothing: in another LACP group than %d", strings.Join(apart, ", "), f.Name, *main).
			Do(scene.Advise("put the switch ports of " + words(apart) + " into the same LACP group"))
	case slices.Contains([]string{"802.3ad", "balance-xor"}, f.Bond.Mode) && f.Bond.Hash == "layer2" && len(f.Bond.Members) > 1:
		return gate.Warn("%s chooses members by layer 2 addresses: all flows to one host use one member", f.Name).
			Do(scene.Commands(knob.MayFlap, scene.Command("ip link set dev %s type bond xmit_hash_policy layer3+4", f.NIC())).
				WithAdvice("set the switch to hash by address and port too"))
	}
	return gate.Pass("%s: %s, %d members up%s%s", f.Name, f.Bond.Mode, len(f.Bond.Members), hashed(f.Bond.Hash), groupsUnknown(f.Bond))
}

// words joins names for a sentence in a fix, each only if it is plain.
func words(names []string) string {
	var list []string
	for _, name := range names {
		list = append(list, scene.Command("%s", scene.NIC{Name: name}))
	}
	return strings.Join(list, ", ")
}

func hashed(policy string) string {
	if policy == "" {
		return ""
	}
	return ", hash " + policy
}

// groupsUnknown says if a bond with LACP does not report the aggregation groups of its members: members of another
// group would carry nothing.
func groupsUnknown(b *measure.Bond) string {
	lacp := slices.Contains([]string{"802.3ad", "lacp"}, strings.ToLower(b.Mode))
	reported := b.Aggregate != nil && !slices.ContainsFunc(b.Members, func(m measure.BondMember) bool { return m.Aggregate == nil })
	if !lacp || reported {
		return ""
	}
	return "; its LACP groups are not known"
}

func gateSeveralDirections(sc *scene.Scene) *gate.Finding {
	p := sc.Subject.Path
	hops := ""
	for _, w := range []struct {
		from, to string
		route    *measure.Route
	}{{p.From, p.To, p.Forward.Route}, {p.To, p.From, p.Back.Route}} {
		if w.route == nil || len(w.route.NextHops) < 2 {
			continue
		}
		said := fmt.Sprintf("%s has %d next hops towards %s (%s)", w.from, len(w.route.NextHops), w.to, nextHopsText(w.route.NextHops))
		if h := sc.Host(w.from); h != nil && w.route.Hash == measure.HashLayer3 {
			return gate.Warn("%s, chosen by addresses only", said).Because("all flows between these ends take one of them").
				Do(scene.At(h, scene.Commands("flows of all programs may move to another next hop", scene.Command("sysctl -w %s=1", hashPolicy(p))).WithAdvice("make it choose by port too")))
		}
		hops += "; " + said
	}
	switch s := p.Ports; {
	case s == nil || s.Ports <= 0:
		return gate.Missing(sc, "whether source ports take different paths", "source_ports")
	case s.Directions > 1:
		return gate.Warn("flows take %d different paths, by their source port (seen in %s%s)%s", s.Directions, s.By, groupsText(s.Groups), hops).
			Do(scene.Advise("test with many connections as well as with one: `thru test -P 16` and `-P 1`"))
	default:
		return gate.Pass("%d source ports take the same path%s", s.Ports, hops)
	}
}

// nextHopsText words next hops: "10.0.0.1 by eth0, 10.0.1.1 by eth1".
func nextHopsText(all []measure.NextHop) string {
	return strings.Join(unit.Mapped(all, measure.NextHop.String), ", ")
}

// hashPolicy returns the sysctl that sets how a next hop is chosen, for the path's address family.
func hashPolicy(p *measure.Path) string {
	if a, err := netip.ParseAddr(p.ToAddr); err == nil && a.Unmap().Is6() {
		return "net.ipv6.fib_multipath_hash_policy"
	}
	return "net.ipv4.fib_multipath_hash_policy"
}

// groupsText names the source ports that take each path.
func groupsText(groups []measure.PortGroup) (s string) {
	for _, g := range groups {
		s += "; " + strings.Join(unit.Mapped(g.Ports, strconv.Itoa), " ") + " in " + gate.Span(g.RTTNs)
	}
	return s
}
