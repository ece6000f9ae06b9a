package queue

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/knob"
	"thru/internal/cause/loss"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Shaper is the cause `shaper`.
func Shaper() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "shaper", Binds: true, TCP: true, UDP: true, Unseen: diagnose.HostPackets, Title: "a shaper on the path limits the rate", Judge: JudgeShaper, Packets: PacketsShaper,
			Seen:        "the rate equals the traffic shaping of an end point's port, port group or virtual switch (certain if the rate is flat and no CPU is full); or the rate is flat, and the round trip under load is far above its minimum: a queue is full; in captures the same, and two captures show the direction",
			Distinction: "UDP above the rate waits in the queue all the time (16 packets or more, a quarter of the greatest delay on average), then is lost; UDP below the rate is neither delayed nor lost",
			Fix:         "use fq_codel or cake to keep its queue short; the rate itself is a setting of the network", Effect: "delay 142 to 25 ms with bbr or a short queue",
			Source: "causes.md, calibration; tc-tbf(8), tc-htb(8)", Tests: []string{diagnose.UdpAbove, diagnose.UdpThrice, diagnose.UdpTenfold, diagnose.UdpThirtyfold, diagnose.EightStreams}, Brings: []string{"loss"},
		},
		Gates: []gate.Rule{
			{ID: "qdisc", Words: "fq shaper tbf htb cake netem tc", Title: "Queueing discipline", About: "the discipline at the root of the interface",
				Warns:  "netem, which delays and drops on purpose; where --link-rate states a rate, a shaper (tbf, htb, cake, hfsc) on the route's interface",
				Why:    "shaping, delay and drops at the sender look like those of the path",
				Source: "tc(8)", Fix: "set the kernel's default discipline; of a shaper, check its rate first", Checklist: []string{"C-33"}, Face: gateQdisc},
			{ID: "guest-shaping", Words: "shaping portgroup", Title: "Traffic shaping of a guest's port", About: "the traffic shaping of its port, port group and virtual switch, in both directions",
				Warns:  "shaping is on, at less than the wanted rate or with no rate stated",
				Why:    "after a burst, nothing passes faster than the average bandwidth",
				Source: "vSphere Networking, traffic shaping policy", Fix: "switch the shaping off, or raise its average bandwidth", Checklist: []string{"C-33"}, Hypervisor: true, Host: gateGuestShaping},
		},
		Propose: []advise.Proposer{ProposeShaper},
	}
}

// JudgeShaper judges by the counters of both ends.
func JudgeShaper(f *diagnose.Flow) *diagnose.Outcome {
	if o := portShaper(f); o != nil {
		return o
	}
	if f.IsUDP() {
		return loss.ShapedDatagrams(f)
	}
	share, stated := f.CeilingShare()
	silent := f.Silent()
	if carries := share / (1 - silent); silent > 0 && stated && carries >= diagnose.NearBar { // the mean includes the silence
		return diagnose.No("the link is full while data arrives; none arrives %s of the time", unit.Percent(100*silent))
	}
	cut := f.Cut()
	if q, ok := OwnQueue(f); ok && cut == nil {
		return q
	}
	if f.OnOneMachine() {
		return diagnose.No("both ends are on one host")
	}
	if _, _, ok := f.Queued(); !ok {
		return f.Sender.Lacks("the round trip under load")
	}
	s, over := f.Surplus()
	passed, far := loss.PassesFar(f)
	switch {
	case stated && share >= stat.PassPct:
		return diagnose.No("the link itself is full: %s of its capacity", unit.Percent(share))
	case stated && share >= diagnose.NearBar && (f.HasQueue() || over && s.Capacity > diagnose.NearBar/100*f.Cell.Ceiling.Bps):
		return diagnose.No("the queue is the link's own: the rate is %s of its capacity", unit.Percent(share))
	case over && f.Receiver.IsBehind() && s.Capacity > diagnose.GainBar*f.Rate():
		return diagnose.No("a queue would let %s pass", unit.Rate(s.Capacity))
	case over && s.Wait.Stands():
		return overfilled(f, s)
	case far:
		return diagnose.No("UDP at %s passes", unit.Rate(passed))
	case over && s.Wait.IsClear():
		return diagnose.No("datagrams above the rate are dropped without delay")
	case cut != nil:
		return cut
	}
	return plateau(f)
}

// portShaper judges a rate limit of a virtual port; nil if none is set, or the flow is not at it.
func portShaper(f *diagnose.Flow) *diagnose.Outcome {
	bps, ok := f.Goodput()
	if !ok || f.OnOneMachine() || f.IsAll() != nil {
		return nil
	}
	for _, e := range f.Ends() {
		s := hypervisor.ShapedAt(f, e)
		if s == nil {
			continue
		}
		passed, by := bps, f.Receiver.Proof("goodput", bps, "bps")
		if x, why := e.OfPort(hypervisor.PortRate(e)); why == "" && stat.Pct(bps, s.Average) < hypervisor.ShapedLow {
			passed, by = x.Mean, hypervisor.GaugeEvidence(x, e.Name, x.Mean, "bps") // including other traffic of the guest
		}
		if passed < s.Average*hypervisor.ShapedLow/100 || passed > s.Average*hypervisor.ShapedHigh/100 {
			continue
		}
		return asPortShaper(f, s, by)
	}
	return nil
}

// asPortShaper words a flow that is at the rate of a shaped port.
func asPortShaper(f *diagnose.Flow, s *hypervisor.ShapedPort, by measure.Proof) *diagnose.Outcome {
	direction := "receives"
	if s.End.Sends() {
		direction = "sends"
	}
	o := diagnose.Likely("%s limits what the %s %s to %s, and the flow is at this limit", s.Name, s.End.Place, direction, unit.Rate(s.Average)).
		By(by, measure.Proof{EndPoint: s.End.Name, Counter: "average bandwidth of its traffic shaping", Value: s.Average, Unit: "bps"}).
		Costs(s.Average, "at most "+unit.Rate(s.Average)+" including all headers", "traffic shaping of "+s.Name)
	flat, known := f.Flatness()
	a, b := f.Sender.Load(), f.Receiver.Load()
	switch {
	case a.IsFull() || b.IsFull() || known && flat > 3*diagnose.FlatBar:
		o.Confidence = measure.Possible
	case known && flat < diagnose.FlatBar && a.Known && b.Known:
		o.Confidence = measure.Certain
	}
	return o.At(hypervisor.AtHost(s.End, s.Name)).AddFix(&measure.Fix{EndPoint: hypervisor.HostName(s.End), Advice: "raise the average bandwidth of the traffic shaping of " + s.Name + ", or switch it off", Risk: "the limit may be intended: ask the network's administrator"})
}

// OwnQueue judges the queueing discipline of the sender's own interface.
func OwnQueue(f *diagnose.Flow) (*diagnose.Outcome, bool) {
	e := f.Sender
	if e.Seen == nil || e.Seen.Host == nil || e.Seen.Host.Qdisc == nil || e.Seen.Host.NIC == nil {
		return nil, false
	}
	q := e.Seen.Host.Qdisc
	full := f.HasQueue() || q.Drops > 0 || float64(q.Backlog) >= diagnose.ShortRow*f.Segment() // a host that stalled once distorts the round trips
	if q.Kind != "tbf" && q.Kind != "htb" && q.Kind != "cake" || q.Overlimits == 0 || !full {
		return nil, false
	}
	flat, known := f.Flatness()
	if known && flat > 3*diagnose.FlatBar {
		return nil, false
	}
	mine := q.Kind == "tbf" || waitsIn(f, q) // the others have classes, and count all of them
	if f.LinkIsFull() || !mine {
		return nil, false
	}
	o := diagnose.Likely("the sender's own qdisc %s on %s limits the rate", q.Kind, diagnose.Word(e.FaceName()))
	stolen, _ := stealPct(e)
	if known && flat < diagnose.FlatBar && stolen < diagnose.StealBar && f.HasQueue() && waitsIn(f, q) { // overlimits alone may come from bursts, and the queue may be another one
		o.Confidence = measure.Certain
	}
	o.At(e.OnFace()).By(diagnose.Above(e.Proof("qdisc "+q.Kind+" overlimits", float64(q.Overlimits), "packets"), 0), loss.QueueProof(f))
	if q.Drops > 0 {
		o.By(e.Proof("qdisc "+q.Kind+" drops", float64(q.Drops), "packets"))
	}
	return f.AsShaper(o).AddFix(&measure.Fix{EndPoint: e.Name, Platform: "linux", Advice: fmt.Sprintf("check the rate of qdisc %s on %s, and raise it if the link carries more", q.Kind, diagnose.Word(e.FaceName())),
		Commands: []string{fmt.Sprintf("tc -s qdisc show dev %s", diagnose.Word(e.FaceName()))}}), true
}

// waitsIn reports whether a queueing discipline holds or drops packets of this flow: the round-trip time grew by
// what its backlog takes, or it dropped what was retransmitted.
func waitsIn(f *diagnose.Flow, q *measure.Qdisc) bool {
	_, by, ok := f.Queued()
	again, counted := f.Sender.Seen.Delta(measure.Retransmits).Float()
	takes, drops := 0.0, float64(q.Drops)
	if bps := f.Rate(); bps > 0 {
		takes = float64(q.Backlog) * 8e9 / bps
	}
	return ok && takes > by/diagnose.MostlyOf && takes < by*diagnose.MostlyOf || counted && min(drops, again) >= diagnose.FewEvents && drops < diagnose.MostlyOf*again && again < diagnose.MostlyOf*drops
}

// overfilled words a queue that datagrams above the rate have filled. A queue that would pass more TCP traffic
// drops its bursts.
func overfilled(f *diagnose.Flow, s diagnose.Surplus) *diagnose.Outcome {
	o := diagnose.Certain("a queue on the path lets only %s pass", unit.Rate(s.Capacity))
	if s.Capacity > diagnose.GainBar*f.Rate() {
		again, _ := f.AgainPct()
		if again < diagnose.AgainBar || loss.Below(f, again).Lost {
			return diagnose.No("a queue would let %s pass", unit.Rate(s.Capacity))
		}
		if runsDry(f) {
			return diagnose.No("the congestion window was not full")
		}
		o = diagnose.Certain("a queue that is too short for the round trip drops bursts above %s", unit.Rate(s.Capacity)).
			Costs(s.Capacity, "a longer queue would carry "+unit.Rate(s.Capacity)+" of payload", "UDP above the rate: goodput")
		if a, _ := stealPct(f.Sender); a > diagnose.StealBar || again < shortBar { // a host that stalls now and then bursts by itself
			o.Confidence = measure.Likely
		}
	}
	return f.AsShaper(o.By(append(loss.Proofs(s, f), loss.QueueProof(f))...))
}

// runsDry reports whether a sender waits for room in its buffer while the buffer has no unsent data and the
// congestion window has room: drops do not limit it then.
func runsDry(f *diagnose.Flow) bool {
	flight, ok1 := f.InFlight()
	cwnd, ok2 := f.Cwnd()
	waits, ok3 := f.NotSent()
	t, ok4 := f.Sender.Threads()
	return ok1 && ok2 && ok3 && ok4 && flight <= 0.85*cwnd && waits <= flight/4 && t.Blocked > diagnose.BlockedBar
}

// shortBar is the percentage of retransmitted segments that a queue too short for TCP's bursts drops at least: 0.2
// were measured.
const shortBar = 0.02

// plateau judges by TCP alone: a flat rate before a full queue.
func plateau(f *diagnose.Flow) *diagnose.Outcome {
	times, by, _ := f.Queued()
	flat, known := f.Flatness()
	switch {
	case !f.HasQueue() && !(diagnose.Paces(f.Congestion()) && known && flat < diagnose.FlatBar):
		return diagnose.No("the round trip under load is %.1f times its minimum: no queue is full", times)
	case !known:
		return diagnose.Missing("a time line of 3 s or more", "the run was too short to see a plateau")
	case f.Receiver.IsBehind():
		return diagnose.No("data waits unread at the receiver, which delays its acknowledgements")
	case flat > 3*diagnose.FlatBar:
		return diagnose.No("the rate varies by %s from second to second", unit.Percent(flat))
	case !fillsCwnd(f):
		return diagnose.No("the congestion window was not full")
	case f.Sender.IsFull() || f.Receiver.IsFull():
		return diagnose.No("a CPU is full")
	case f.WindowBinds():
		return diagnose.No("the receiver's window limits the sender")
	}
	o := diagnose.Possible("a queue on the path limits the rate: the round trip grows by %s under load", unit.Duration(int64(by)))
	if f.HasQueue() && flat < diagnose.FlatBar && !drifts(f) {
		o.Confidence = measure.Likely
	}
	return f.AsShaper(o.By(loss.QueueProof(f), diagnose.UnderBar(f.Receiver.Proof("deviation of the rate from its median, by the second", flat, "pct"), diagnose.FlatBar)))
}

// fillsCwnd reports whether the congestion window limited the sender, as it does if filling the path causes the
// queue or loss; a window or buffer that fills the path counts as well. A pacing congestion control keeps below
// it, and without data nothing excludes it.
func fillsCwnd(f *diagnose.Flow) bool {
	flight, ok := f.InFlight()
	cwnd, okToo := f.Cwnd()
	return !ok || !okToo || diagnose.Paces(f.Congestion()) || flight > 0.85*cwnd || f.Lengthens(flight) && fillsRoom(f, flight)
}

// fillsRoom reports whether the bytes in flight use up the receiver's window or the sender's buffer.
func fillsRoom(f *diagnose.Flow, flight float64) bool {
	held, _, _ := f.WindowLimited()
	t, _ := f.Sender.Threads()
	waits, ok := f.NotSent()
	return held > diagnose.RwndBar || t.Blocked > diagnose.BlockedBar && ok && waits <= flight/4
}

// drifts reports whether the halves of the run differ by more than a plateau's.
func drifts(f *diagnose.Flow) bool {
	s := f.Cell.Steady
	return s != nil && s.Checked && (s.HalvesPct > 2*diagnose.FlatBar || s.HalvesPct < -2*diagnose.FlatBar)
}

// PacketsShaper judges by captures alone.
func PacketsShaper(f *diagnose.Flow) *diagnose.Outcome {
	s := f.AnyCapturePoint()
	if s == nil {
		return diagnose.Missing("a connection of the flow", "the capture has none")
	}
	queue, ok := s.Stands()
	h, known := s.WindowLimited()
	flat, seen := loss.SettledFlatness(f)
	idle, reported := s.IdlePct()
	loaded, least, _ := s.RTT()
	share, stated := f.CeilingShare()
	share = max(share, loss.SettledShare(f))
	switch {
	case f.OnOneMachine():
		return diagnose.No("both ends are on one host")
	case !ok && queue:
		return diagnose.Missing("the round trip under load", "it grows, but this capture does not show whether the queue is in the sender; a capture at the sender would")
	case !ok:
		return diagnose.Missing("the round trip under load", "the captured packets do not show it")
	case stated && share >= diagnose.NearBar:
		return diagnose.No("the queue is the link's own: the rate is %s of its capacity", unit.Percent(share))
	case s.ClosedPct() >= diagnose.ClosedFew:
		return diagnose.No("the receiver's window was closed %s of the time", unit.Percent(s.ClosedPct()))
	case known && h.Binds && !queue:
		return diagnose.No("the receiver's window limits the sender")
	case reported && idle > diagnose.IdleBar/2:
		return diagnose.No("the sender had nothing to send %s of the time", unit.Percent(idle))
	case !queue && s.At == measure.AtSender && f.HasQueue(): // the capture shows only the part of the kernel's round trip behind the interface
		return diagnose.Missing("the queue of the sender's host", "the kernel's round trip is longer than that of its packets from the interface on: the queue is before the capture point")
	case !queue && seen && flat < diagnose.FlatBar && s.Data.Again.N == 0:
		return diagnose.Missing("the congestion control", "the rate is flat without a queue, as with one that paces (bbr); packets do not show which one is used")
	case !queue:
		return diagnose.No("the round trip under load is %.1f times its minimum: no queue is full", loaded/least)
	case !seen:
		return diagnose.Missing("a time line of 3 s or more", "the capture is too short to see a plateau")
	case flat > 3*diagnose.FlatBar:
		return diagnose.No("the rate varies by %s from second to second", unit.Percent(flat))
	}
	o := diagnose.Possible("a queue in one of the directions limits the rate: the round trip grows by %s under load", unit.Duration(int64(loaded-least)))
	if flat < diagnose.FlatBar {
		o.Confidence = measure.Likely
	}
	rtt := s.Proof("round trip under load, median", loaded, "ns")
	rtt.Note = "the minimum is " + unit.Duration(int64(least))
	o.By(rtt, diagnose.UnderBar(f.Receiver.Proof("deviation of the rate from its median, by the second", flat, "pct"), diagnose.FlatBar))
	if x := f.Crossing; x != nil && x.Data.Delay != nil {
		if o = queueWhere(f, o, x, loaded-least); o.State != diagnose.Holds {
			return o
		}
	}
	return f.AsShaper(o)
}

// queueWhere finds by two captures in which direction the round trip grows by so many ns.
func queueWhere(f *diagnose.Flow, o *diagnose.Outcome, x *diagnose.Crossed, by float64) *diagnose.Outcome {
	there, back, own := waited(x.Data.Delay), waited(x.Acks.Delay), waited(x.Left.Main().RTTBack)
	o.By(x.Left.Proof("delay of data above its minimum, median", there, "ns"))
	if x.Acks.Delay != nil {
		o.By(x.Right.Proof("delay of acknowledgements above its minimum, median", back, "ns"))
	}
	held := "limits the rate"
	switch {
	case back >= by/4 && back > 2*there:
		o.Text = fmt.Sprintf("a queue in the reverse direction %s: acknowledgements wait %s there", held, unit.Duration(int64(back)))
		return o.At(measure.Where{Place: measure.AtPath, From: f.Cell.To, To: f.Cell.From})
	case there >= by/4:
		o.Text = fmt.Sprintf("a queue on the path %s: the round trip grows by %s under load, data waits %s", held, unit.Duration(int64(by)), unit.Duration(int64(there)))
		return o
	case own >= by/2:
		o.Text = fmt.Sprintf("a queue between the sender and the first capture point %s: data waits %s there", held, unit.Duration(int64(own)))
		return o.At(f.Sender.Where())
	}
	return diagnose.No("the delay between the captures stays at its minimum: the queue is elsewhere")
}

// waited returns by how much the median delay exceeds its minimum, in ns; 0 if it is not known.
func waited(d *measure.Delay) float64 {
	if d == nil {
		return 0
	}
	return float64(d.P50 - d.Min)
}

func gateQdisc(f *scene.Face) *gate.Finding {
	if f.Qdisc == nil || *f.Qdisc == "noqueue" {
		return nil
	}
	kinds := strings.Fields(*f.Qdisc)
	if slices.Contains(kinds, "netem") {
		return gate.Warn("%s has the qdisc netem, which delays or drops on purpose", f.Name).
			Do(scene.Commands("the user who set it may still need it", scene.Command("tc qdisc del dev %s root", f.NIC())))
	}
	shaper := slices.IndexFunc(kinds, func(k string) bool { return slices.Contains(shapers(), k) })
	switch {
	case shaper >= 0 && f.Firm && f.Host.Subject.LinkBps > 0:
		return gate.Warn("%s has the qdisc %s, which may limit the rate to less than the wanted %s", f.Name, kinds[shaper], gate.Rate(f.Host.Subject.LinkBps)).
			Do(scene.Advise(scene.Command("check its rate: `tc -s qdisc show dev %s` (htb and hfsc: `tc class show dev %s`)", f.NIC(), f.NIC())))
	case shaper >= 0:
		return gate.Pass("%s has the qdisc %s, which may limit the rate; no other link rate is stated", f.Name, kinds[shaper])
	}
	return gate.Pass("%s has the qdisc %s", f.Name, strings.Join(kinds, " "))
}

// shapers are qdiscs that can limit a rate. The configured rate is no fact of the host.
func shapers() []string { return []string{"tbf", "htb", "cake", "hfsc"} }

func gateGuestShaping(h *scene.Host) *gate.Finding {
	b, ok := hypervisor.Placement(h)
	if !ok {
		return nil
	}
	reported := false
	for _, sends := range []bool{true, false} {
		s, at, known := b.Shaped(sends)
		reported = reported || known
		if s == nil {
			continue
		}
		what := "receives"
		if sends {
			what = "sends"
		}
		if want := h.Subject.LinkBps; want > 0 && *s.AverageBps >= want {
			continue
		}
		return gate.Warn("%s limits what %s %s to %s", at, b.Guest.Name, what, gate.Rate(*s.AverageBps)).
			Do(scene.Advise("on the hypervisor: raise the average bandwidth of that traffic shaping, or switch it off").Risking("the limit may be intended"))
	}
	if !reported {
		return gate.NotChecked("traffic shaping of "+b.Guest.Name, "the inventory does not have it")
	}
	return gate.Pass("no traffic shaping limits %s to less than the wanted rate", b.Guest.Name)
}

// ProposeShaper is for datagrams that the sender's own host drops: in the queue of the interface, or in the ring
// of its adapter.
func ProposeShaper(r advise.Request) []advise.Draft {
	c, h := r.Direction.Cell, r.Direction.From
	if c == nil || r.At != h {
		return nil
	}
	face := r.Here(h)
	var list []advise.Draft
	for _, x := range []struct{ place, knob, title string }{
		{measure.LossQdisc, knob.TxQueueLen, "up to %s packets wait in the queue of %s at %s, instead of %d"},
		{measure.LossSendNIC, knob.TXRing, "transmit ring of %s descriptors at %s of %s, instead of %d"},
	} {
		s := h.State(x.knob, face)
		want := min(2*s.Number(), diagnose.MostBacklog)
		if s.Most() > 0 {
			want = s.Most()
		}
		lost := slices.ContainsFunc(c.LossPlaces, func(p measure.LossPlace) bool { return p.Place == x.place && p.Packets > 0 })
		if lost && s.Number() > 0 && want > s.Number() {
			list = append(list, advise.Change(h, x.knob, face, fmt.Sprint(want), x.title, fmt.Sprint(want), face, h.Name, s.Number()).ForDirection(r.Direction))
		}
	}
	return list
}
