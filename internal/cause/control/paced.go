package control

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/knob"
	"thru/internal/cause/nic"
	"thru/internal/cause/queue"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/cause/window"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Paced is the cause `paced`.
func Paced() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "paced", TCP: true, Title: "the sender paces itself", Judge: judgePaced, Packets: PacketsPaced,
			Seen:        "the congestion control paces, the pacing rate equals the goodput, the congestion window is not full, no packet is lost, no CPU and no link is full; up to 2.5 Gb/s within a site only if a CPU is full; in a capture at the sender: segments leave one by one, though nothing else limits them (possible)",
			Distinction: "the same test with cubic or reno", Fix: "use cubic on LAN and loopback, or bbr with the qdisc fq", Effect: "15 to 43 Gb/s on loopback",
			Source: "tcp_info.tcpi_pacing_rate; net/ipv4/tcp_bbr.c", Tests: []string{diagnose.OtherControl}, Brings: []string{"sender-cpu", "receiver-cpu", "single-flow"},
		},
		Gates: []gate.Rule{
			{ID: "congestion-control", Words: "cc bbr cubic reno dctcp", Title: "Congestion control for this RTT", About: "the congestion control of connections on the path, else the host's default, for this round trip",
				Warns:  "bbr with an RTT below 1 ms (it paces), on a path above 2.5 Gb/s or of unknown rate; bbr on a kernel before 4.13 without fq; dctcp with an RTT above 5 ms",
				Why:    "bbr paces each connection: 15 Gb/s on loopback, where cubic reaches 43 Gb/s",
				Source: "measured; Linux 4.13 gave TCP its own pacing timers; RFC 8257", Fix: "use cubic within a site", Checklist: []string{"C-17", "C-33"}, Host: gateCongestionControl},
		},
		Propose: []advise.Proposer{ProposePaced},
	}
}

func judgePaced(f *diagnose.Flow) *diagnose.Outcome {
	if bound := f.Cell.Spec.MaxRate; bound > 0 {
		return boundBy(f, bound)
	}
	if f.Cell.Spec.Rate > 0 { // app-limited covers it
		return nil
	}
	used := f.Congestion()
	if used == "" {
		return f.Sender.Lacks("the congestion control")
	}
	if !diagnose.Paces(used) {
		return diagnose.No("%s does not pace", used)
	}
	if other := f.Experiment(diagnose.OtherControl); other != nil && !diagnose.Paces(diagnose.ControlOf(other)) { // a route may name a congestion control that overrides the socket's
		g := f.Against(other)
		if g.Times < diagnose.GainBar {
			return diagnose.No("%s carries only %s", other.Spec.Congestion, unit.Rate(diagnose.RateOf(other)))
		}
		return diagnose.Likely("%s paces itself: %s carries %s", used, other.Spec.Congestion, unit.Rate(diagnose.RateOf(other))).At(f.Sender.Where()).
			Gains(f.Receiver.Proof("goodput with "+other.Spec.Congestion+" relative to this run", 0, ""), g).
			Costs(0, other.Spec.Congestion+" carries "+unit.Rate(diagnose.RateOf(other)), "the same traffic with -C "+other.Spec.Congestion).
			By(pacingProofs(f)...).AddFix(f.UseControl(other.Spec.Congestion))
	}
	again, _ := f.AgainPct()
	loaded, base, known := f.RTT()
	rate, ok := f.Pacing()
	all := float64(len(f.Sender.Streams())) * rate
	bps, _ := f.Goodput()
	more := all > 1.6*bps
	switch {
	case !ok || !known:
		return f.Sender.Lacks("tcp_info.pacing_rate_bytes_per_s")
	case f.LinkIsFull():
		return diagnose.No("%s paces, but the link is full", used)
	case base < diagnose.NearNs && bps <= easyRate && !f.Sender.IsFull() && !f.Receiver.IsFull():
		return diagnose.No("%s paces: at %s its small bursts fill no CPU", used, unit.Rate(bps))
	case again > diagnose.BbrBar:
		return diagnose.No("%s of the segments were retransmitted: loss limits the rate, not pacing", unit.Percent(again))
	case more && base > diagnose.NearNs:
		return diagnose.No("%s would pace at %s", used, unit.Rate(all))
	case IsShaped(f, more):
		return diagnose.No("%s would pace at %s, but a shaper or a queue limits the rate", used, unit.Rate(all))
	case base > diagnose.NearNs && (again > 1 || loaded > 3*base && loaded > base+2e6): // near hosts lose packets by bbr's own bursts
		return diagnose.No("the path is full: its queue is full, or it drops packets")
	}
	o := diagnose.Possible("%s paces the sender at %s for each stream", used, unit.Rate(rate))
	if base < diagnose.NearNs {
		o.Confidence = measure.Likely
		if more {
			o.Text = fmt.Sprintf("%s paces the sender: to a near host its small bursts cost more than they save", used)
		}
	}
	return o.At(f.Sender.Where()).By(pacingProofs(f)...).AddFix(f.UseControl("cubic"))
}

// boundBy returns the finding of a flow whose rate an end point's operator limits.
func boundBy(f *diagnose.Flow, bound int64) *diagnose.Outcome {
	bps, _ := f.Goodput()
	if bps < 0.9*float64(bound) {
		return diagnose.No("an end point allows %s, which was not reached", unit.Rate(float64(bound)))
	}
	return diagnose.Certain("an end point allows at most %s (thru serve --max-rate)", unit.Rate(float64(bound))).
		At(measure.Where{Place: measure.AtTool}).By(f.Sender.Proof("rate allowed", float64(bound), "bps")).
		AddFix(diagnose.Advise(f.Receiver, "serve with a higher --max-rate"))
}

func pacingProofs(f *diagnose.Flow) []measure.Proof {
	var all []measure.Proof
	if rate, ok := f.Pacing(); ok {
		all = append(all, f.Sender.Proof("tcp_info.pacing_rate, mean of the streams", rate, "bps"))
	}
	if flight, ok := f.InFlight(); ok {
		if cwnd, ok := f.Cwnd(); ok {
			all = append(all, diagnose.UnderBar(f.Sender.Proof("in flight, mean", flight, "bytes"), cwnd))
		}
	}
	return all
}

// easyRate is the rate in bit/s up to which a CPU can also handle small bursts.
const easyRate = 2.5e9

// IsShaped reports whether a shaper at the sender's own interface limits the rate, by its counters. With more, any
// queue counts if pacing would allow a higher rate: a pacing sender finds its rate by the queue.
func IsShaped(f *diagnose.Flow, more bool) bool {
	if o, ok := queue.OwnQueue(f); ok {
		return o.State == diagnose.Holds
	}
	o := queue.JudgeShaper(f)
	return more && o != nil && o.State == diagnose.Holds && o.Confidence != measure.Possible
}

// PacketsPaced judges by captures alone.
func PacketsPaced(f *diagnose.Flow) *diagnose.Outcome {
	s, why := window.Evenly(f)
	if why != nil {
		return why
	}
	b := s.Main().BurstBytes
	bps := s.Rate()
	alone := s.MSS()*8e9/bps > measure.BurstGapNs/4 // at such a rate segments are spaced anyway
	_, waits := waits(s)
	switch {
	case b == nil || alone && !waits:
		return diagnose.Missing("the congestion control", "packets do not show it at this rate")
	case b.Mean > pacedBar*s.MSS():
		return diagnose.No("segments leave %.3g at a time", b.Mean/s.MSS())
	}
	return diagnose.Possible("the sender spaces its segments, though the window has room and no packet is lost").At(f.Sender.Where()).
		By(diagnose.UnderBar(s.Proof("sent back to back, mean", b.Mean, "bytes"), pacedBar*s.MSS())).Then("the same test with cubic").AddFix(f.UseControl("cubic"))
}

// waits returns the median time in ns from an acknowledgement until the sender sends, and whether that is longer
// than a kernel with data takes.
func waits(s *diagnose.CapturePoint) (float64, bool) {
	d := s.Main().RTTBack
	if s.At != measure.AtSender || d == nil || d.Samples < diagnose.LeastSegments {
		return 0, false
	}
	return float64(d.P50), d.P50 > measure.BurstGapNs
}

// pacedBar is the highest mean number of back-to-back segments of a sender that spaces them.
const pacedBar = 2.5

func gateCongestionControl(h *scene.Host) *gate.Finding {
	name, rtt := control(h), h.RTT()
	near := rtt > 0 && rtt < scene.LanRTT || h.End.Shared && h.End.Route != nil // a loopback test
	switch {
	case h.Subject.UDP:
		return nil
	case name == "":
		return gate.Missing(h, "congestion control", "congestion_control")
	case diagnose.Paces(name) && near && h.Scene.Rate() > 0 && h.Scene.Rate() <= nic.SlowLink:
		return gate.Pass("%s%s: at %s its small bursts cost the CPUs little", name, gate.AtRTT(rtt), gate.Rate(h.Scene.Rate()))
	case diagnose.Paces(name) && near:
		where := "within a site"
		if rtt == 0 {
			where = "on loopback"
		}
		return gate.Warn("%s %s%s", name, where, gate.AtRTT(rtt)).Do(otherControl(h))
	case diagnose.Paces(name) && h.KernelBefore(4, 13) && !fairQueue(h):
		return gate.Warn("%s on kernel %s without the qdisc fq", name, *h.Kernel).
			Because("before Linux 4.13 only fq paces bbr; without it bbr floods the path").Do(fairQueueing(h))
	case name == "dctcp" && rtt > 5e6:
		return gate.Warn("dctcp%s", gate.AtRTT(rtt)).Because("dctcp is for data centers with switches that mark; elsewhere it displaces other traffic").
			Do(otherControl(h))
	case (name == "reno" || name == "newreno") && rtt >= farRTT:
		return gate.Pass("%s%s: it takes minutes to recover from a loss; cubic is faster", name, gate.AtRTT(rtt))
	case rtt == 0:
		return gate.Pass("%s; the round trip is not known", name)
	}
	return gate.Pass("%s%s", name, gate.AtRTT(rtt))
}

// control returns the congestion control of the host's connections on the path, else its default, in lower case;
// "" if unknown.
func control(h *scene.Host) string {
	for _, w := range h.Directions() {
		if w.From == h.Name && w.Congestion != nil {
			return strings.ToLower(*w.Congestion)
		}
	}
	name, _ := standardControl(h)
	return name
}

// standardControl returns the congestion control of connections for which no route names another.
func standardControl(h *scene.Host) (name string, known bool) {
	if h.Congestion != nil {
		return strings.ToLower(*h.Congestion), true
	}
	v, ok := h.Sysctl("net.ipv4.tcp_congestion_control", "net.inet.tcp.cc.algorithm", "cong_default", "CongestionProvider")
	return strings.ToLower(v), ok
}

// otherControl gives the host's connections on the path a congestion control that does not pace. A route's choice
// takes precedence over the host's default, and in a network namespace the kernel accepts only those that the host
// allows (tcp_set_default_congestion_control, ip-route(8)).
func otherControl(h *scene.Host) scene.Fix {
	name := lossBased(h)
	if h.System != "linux" {
		return h.Set(knob.Congestion, "", name)
	}
	route := scene.Command("`ip route replace ... congctl %s`, with the rest of the route from `ip route get`", name)
	if standard, known := standardControl(h); known && standard != control(h) {
		return scene.Advise("a route of this host sets " + scene.Command("%s", control(h)) + ": " + route)
	}
	r := h.Set(knob.Congestion, "", name)
	return r.Risking(r.Risk + "; if the kernel refuses it (in a container): add it to net.ipv4.tcp_allowed_congestion_control " +
		"of the host's own network namespace first, or set it in the route: " + route)
}

// lossBased returns a congestion control of the host that does not pace.
func lossBased(h *scene.Host) string {
	for _, name := range []string{"cubic", "reno", "newreno"} {
		if slices.Contains(h.CongAvail, name) {
			return name
		}
	}
	return "cubic"
}

// fairQueue reports whether the interface of the route has the qdisc fq.
func fairQueue(h *scene.Host) bool {
	i := h.Top()
	return i != nil && i.Qdisc != nil && slices.Contains(strings.Fields(*i.Qdisc), "fq")
}

// fairQueueing sets it.
func fairQueueing(h *scene.Host) scene.Fix {
	if i := h.Top(); i != nil {
		return i.Set(knob.Qdisc, "fq")
	}
	return h.Set(knob.DefaultQdisc, "", "fq")
}

// farRTT is the round-trip time in ns from which Reno needs minutes to recover.
const farRTT = 100e6

// ProposePaced proposes a congestion control that does not space its segments, which is expensive on a near path.
func ProposePaced(r advise.Request) []advise.Draft {
	w := r.Direction
	if now := advise.CongestionOf(w); now != "" && !diagnose.Paces(now) {
		return nil
	}
	const hope = "cubic instead of bbr: 15 to 43 Gb/s over loopback, where pacing costs most"
	for _, want := range []string{"cubic", "reno"} {
		if w.From.Has(want) {
			return advise.Use(w, want, hope)
		}
	}
	return advise.Use(w, "cubic", hope)
}

// Settle removes a gate's advice at a host if the traffic shows that pacing costs nothing on its paths.
func Settle(d *measure.Document) {
	for i := range d.Gates {
		g := &d.Gates[i]
		if g.ID != "congestion-control" || g.Status != measure.GateWarn {
			continue
		}
		if why := costsNothing(d, g); why != "" {
			g.Status, g.Fact = measure.GatePass, g.Fact+"; "+why
			g.Advice, g.FixAt, g.Fix, g.Risk = "", "", nil, ""
		}
	}
}

// costsNothing returns why pacing costs nothing in all traffic that a gate is about; "" if that is not shown.
func costsNothing(d *measure.Document, g *measure.Gate) (why string) {
	for i := range d.Cells {
		c := &d.Cells[i]
		if c.From != g.EndPoint || g.To != "" && c.To != g.To || c.Experiment != "" && c.Experiment != diagnose.Base || c.Spec.Traffic != measure.Bulk {
			continue
		}
		out := slices.IndexFunc(c.RuledOut, func(x measure.Excluded) bool { return x.Cause == g.Cause })
		if out < 0 || !diagnose.Paces(diagnose.ControlOf(c)) {
			return ""
		}
		why = c.RuledOut[out].Why
	}
	return why
}
