// Package loss holds the causes of packet loss on the path: policers, reordering, random loss, of TCP and
// datagrams.
package loss

import (
	"fmt"
	"math"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/mtu"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Loss is the cause `loss`.
func Loss() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "loss", Binds: true, TCP: true, UDP: true, Unseen: diagnose.HostPackets, Title: "packets are lost on the path", Judge: judgeLoss, Packets: packetsLoss,
			Seen:        "segments are retransmitted, and goodput is what that loss rate allows at this round trip (Mathis, or CUBIC where that allows more); in captures also: nothing in flight is acknowledged for half a second or more, over two timeouts: the path was down; or data arrived at the receiver's interface and was never acknowledged: its host drops it",
			Distinction: "UDP below the rate is lost too, ten datagrams or more (certain), without waiting in a queue; bbr is not slowed down by it; in captures of both ends: segments are lost one by one between them, where a policer or a full queue drops many in a row",
			Fix:         "find and fix what loses packets: cabling, optics, an overloaded device", Effect: "20 of 189 Mb/s at 0.1% loss and 20 ms",
			Source: "methods.md, formula 6; RFC 9438, section 5", Tests: []string{diagnose.UdpBelow, diagnose.UdpThrice, diagnose.UdpTenfold, diagnose.BbrControl, diagnose.Captured},
		},
		Gates: []gate.Rule{
			{ID: "udp-reach", Words: "udp reachability", Title: "UDP", About: "whether small datagrams arrive",
				Warns:  "none arrive, or fewer than nine of ten (of ten or more)",
				Why:    "UDP tests and the search for the MTU need it; a path that loses small packets while idle loses more under load",
				Source: "thru's own threshold", Fix: "let the firewalls pass UDP to the data ports", Checklist: []string{"C-33"}, Direction: gateUDPReach},
		},
		Propose: []advise.Proposer{sturdier("bbr for cubic: 20 to 185 Mb/s at 0.1% loss and 20 ms")},
	}
}

func judgeLoss(f *diagnose.Flow) *diagnose.Outcome {
	if f.IsUDP() {
		return lostDatagrams(f)
	}
	again, ok := f.AgainPct()
	if !ok {
		return f.Sender.Lacks("tcp_info.total_retrans_segments")
	}
	b := Below(f, again)
	if again < diagnose.AgainBar {
		return diagnose.No("only %s of the segments were retransmitted", unit.Percent(again))
	}
	if again < 0.05 && f.HasQueue() {
		return diagnose.No("a full queue dropped the few retransmitted segments: the round trip grew with it")
	}
	if b.stood {
		return diagnose.No("datagrams below the rate waited in a full queue: the queue drops them")
	}
	o := diagnose.Possible("%s of the segments are lost on the path", Rare(again)).
		By(diagnose.Above(f.Sender.Proof("tcp_info.total_retrans of data_segs_out", again, "pct"), diagnose.AgainBar)).
		AddFix(diagnose.Advise(nil, "find what loses packets: error counters of the ports on the path, cabling, optics, an overloaded device; bbr suffers less from it"))
	for _, name := range []string{"TcpExt.TCPSackRecovery", "TcpExt.TCPTimeouts"} {
		if n, ok := f.Sender.Counter(name); ok && n > 0 {
			o.By(f.Sender.Proof(name, n, ""))
		}
	}
	if o := byMathis(f, o, b, again); o.State != diagnose.Holds {
		return o
	}
	if bbr := f.Against(f.Experiment(diagnose.BbrControl)); bbr.Times > diagnose.GainBar {
		o.Gains(f.Sender.Proof("goodput with bbr relative to this run", 0, ""), bbr)
		o.Confidence = measure.Likely // bbr also carries more past a queue that is too short
	}
	settledByDatagrams(f, o, b, again)
	if held, _, ok := f.WindowLimited(); o.State == diagnose.Holds && (ok && held > diagnose.RwndBar || diagnose.Paces(f.Congestion()) && again < diagnose.BbrBar) {
		o.MarkNotBinding() // the window is full, not the path; and bbr tolerates the loss
	}
	return o
}

// lostDatagrams judges the loss of a UDP test.
func lostDatagrams(f *diagnose.Flow) *diagnose.Outcome {
	x, ok := FateOfDatagrams(f)
	if !ok {
		return f.Receiver.Lacks("the count of datagrams")
	}
	if o := elsewhere(f, x); o != nil {
		return o
	}
	if x.LossPct >= diagnose.SurplusBar && x.wait.Stands() {
		return diagnose.No("more was sent than passes: the received datagrams had waited in a queue")
	}
	o := diagnose.Likely("%s of the datagrams are lost on the path", unit.Percent(x.LossPct)).By(x.proofs(f)...).
		Costs(0, unit.Percent(x.LossPct)+" do not arrive", "datagrams sent and received").
		AddFix(diagnose.Advise(nil, "find what loses packets: error counters of the ports on the path, cabling, optics, an overloaded device; `thru test -u --search` finds the rate that passes"))
	if x.Gone[measure.LossPath] <= PlaceBar {
		o.Text = unit.Percent(x.LossPct) + " of the datagrams are lost; whether on the path or in a host is not known"
		o.Confidence = measure.Possible
		return o
	}
	slow := slowerDatagrams(f)
	switch {
	case slow == nil && x.LossPct >= farTooMuch:
		o.Confidence = measure.Possible
	case slow == nil:
	case slow.Datagrams.LossPct > x.LossPct/2 && diagnose.WaitOf(slow).Stands():
		return diagnose.No("at %s they waited in a full queue: the queue drops them", unit.Rate(float64(slow.Spec.Rate)))
	case slow.Datagrams.LossPct > x.LossPct/2:
		if min(x.Lost, slow.Datagrams.Lost) >= diagnose.FewEvents {
			o.Confidence = measure.Certain
		}
		o.By(measure.Proof{EndPoint: f.Receiver.Name, Counter: "lost at " + unit.Rate(float64(slow.Spec.Rate)), Value: slow.Datagrams.LossPct, Unit: "pct"})
	case slow.Datagrams.LossPct < x.LossPct/10:
		return diagnose.No("at %s only %s are lost: the path drops what exceeds its rate", unit.Rate(float64(slow.Spec.Rate)), unit.Percent(slow.Datagrams.LossPct))
	}
	return o
}

// byMathis compares a loss with the rate that it allows cubic and reno: a loss that is too rare, or came in a few
// bursts, does not bind.
func byMathis(f *diagnose.Flow, o *diagnose.Outcome, b underRate, again float64) *diagnose.Outcome {
	_, _, known := f.RTT()
	rtt, bps := f.AnyRTT(), f.Rate()
	bound, by := f.LossBound(rtt, again)
	if !diagnose.IsNumber(bound) {
		return o
	}
	if bps <= bound {
		o.Costs(bound, fmt.Sprintf("this loss allows about %s", unit.Rate(bound)), fmt.Sprintf("%s: segments of %d bytes, %s, %s of them lost", by, int64(f.MSS()), unit.Duration(int64(rtt)), Rare(again)))
	}
	switch {
	case bps > diagnose.BurstBar*bound && !b.tried && !diagnose.Paces(f.Congestion()):
		return diagnose.No("%s of the segments were retransmitted, in few bursts: spread evenly, this loss would allow %s", unit.Percent(again), unit.Rate(bound))
	case rtt < diagnose.NearNs && bps > diagnose.ExceedBar*bound && !b.Lost && !diagnose.Paces(f.Congestion()): // only long paths exceed the formula
		return diagnose.No("%s of the segments were retransmitted: lost one by one they would allow %s, and %s passed", unit.Percent(again), unit.Rate(bound), unit.Rate(bps))
	case bound > diagnose.RareBar*bps && !b.Lost:
		return diagnose.No("the %s of segments that were retransmitted would allow %s", unit.Percent(again), unit.Rate(bound))
	case bps < 3*bound && bound <= diagnose.BindsBar*bps && known && !f.HasQueue():
		o.Confidence = measure.Likely
	}
	return o
}

// settledByDatagrams decides about a TCP loss by datagrams below its rate.
func settledByDatagrams(f *diagnose.Flow, o *diagnose.Outcome, b underRate, again float64) {
	bar := max(diagnose.LostBar, again/10)
	p := measure.Proof{EndPoint: f.Receiver.Name, Counter: "UDP below the rate of the path, lost on the path", Value: b.pct, Unit: "pct"}
	switch {
	case b.Lost:
		if o.Confidence = measure.Likely; b.gone >= diagnose.FewEvents && (f.Follows() || diagnose.Paces(f.Congestion())) {
			o.Confidence = measure.Certain
		}
		o.RuledOutEffects = []string{"shaper", "token-bucket", "lag-one-member"} // these drop only what exceeds their rate
		o.By(diagnose.Above(p, bar))
		o.Text = fmt.Sprintf("%s of the packets are lost on the path, even far below its rate", Rare(b.pct))
	case b.passes:
		if passed, far := PassesFar(f); far {
			o.Text = fmt.Sprintf("%s of the segments are lost, though evenly paced datagrams pass at %s: a queue is too short for bursts", unit.Percent(again), unit.Rate(passed))
			o.Confidence = measure.Likely
			return
		}
		*o = *diagnose.No("UDP at 0.9 of the rate lost only %s: the path drops what exceeds its rate", unit.Percent(b.pct))
	}
}

func packetsLoss(f *diagnose.Flow) *diagnose.Outcome {
	o := lostAlong(f)
	if o.State == diagnose.Holds && o.Confidence != measure.Possible {
		return o
	}
	if cut := CutOff(f); cut != nil {
		return cut
	}
	return o
}

// lostAlong judges losses throughout the connection.
func lostAlong(f *diagnose.Flow) *diagnose.Outcome {
	l, why := LossAt(f)
	if why != nil {
		return why
	}
	if why := l.binds(); why != nil {
		return why
	}
	if o := ignored(f, l); o != nil {
		return o
	}
	o := diagnose.Possible("%s of the data was lost %s and retransmitted", Rare(l.Pct), l.lossWhere()).By(l.proofs()...).
		AddFix(diagnose.Advise(nil, "find what loses packets: error counters of the ports on the path, cabling, optics, an overloaded device; bbr suffers less from it"))
	x := f.Crossing
	if x != nil && x.Data.Sent > 0 && x.Data.Lost.N == 0 && !x.Misses() {
		return diagnose.No("all packets of the first capture are in the second: no packet is lost between the captures")
	}
	if isNeedless(l.CapturePoint) {
		return o.MarkNotBinding() // the reordering is what costs
	}
	if l.isBorne() {
		o.MarkNotBinding().Text += fmt.Sprintf(", in bursts or under a congestion control that tolerates it: one by one, it would allow %s", unit.Rate(l.bound))
	}
	once := math.Sqrt(max(1, l.inARow)) // a burst of losses slows the sender down once: Mathis counts events
	fits := l.timed && !l.queue && !l.isBorne() && l.Rate() < 3*l.bound*once
	if l.timed && l.Rate() <= l.bound {
		o.Costs(l.bound, "this loss allows about "+unit.Rate(l.bound), fmt.Sprintf("Mathis: %d bytes * 8 / %s * 1.22 / sqrt(%s)", int64(l.MSS()), unit.Duration(int64(l.loaded)), Rare(l.Pct)))
	}
	if fits && !l.Misses() && !afterTimeouts(l.CapturePoint) {
		o.Confidence = measure.Likely
	}
	if x == nil {
		return o
	}
	gone := stat.Pct(float64(x.Data.Lost.N), float64(x.Data.SuperSent.N+x.Data.SingleSent.N))
	if x.Data.Sent > 0 && x.Data.Lost.N > 0 {
		o.By(x.Left.Proof("packets of the first capture that the second lacks, whole or in part", gone, "pct", x.Data.Lost.Packets...))
		if o.Confidence == measure.Likely && l.often > 0 && l.inARow < fewInARow && !x.Misses() {
			o.Confidence = measure.Certain // they are lost one by one at any rate: no queue and no policer does that
			o.Text = fmt.Sprintf("%s of the data is lost between the two captures, packet by packet", Rare(l.Pct))
		}
	}
	return o
}

// ignored judges data that reached the receiver's interface and was acknowledged only after a retransmission: its
// own host drops it, behind the capture. nil if that is not most of the retransmissions.
func ignored(f *diagnose.Flow, l lossSeen) *diagnose.Outcome {
	s := f.CapturePoint(measure.AtReceiver)
	if s == nil {
		return nil
	}
	bytes, all := 0.0, float64(s.Data.Payload)
	for i := range s.Connections {
		bytes += float64(s.Connections[i].Ignored())
	}
	if bytes == 0 || stat.Pct(bytes, all) < l.Pct/2 {
		return nil
	}
	o := diagnose.Likely("%s of the data arrived at the receiver's interface and was never acknowledged: its host drops it", Rare(stat.Pct(bytes, all))).At(f.Receiver.OnFace()).
		By(l.proofs()...).By(s.Proof("arrived, and was retransmitted before any acknowledgement", bytes, "bytes", s.Data.Again.Packets...)).
		AddFix(diagnose.Advise(f.Receiver, "find what drops packets at the receiver: ingress filters (tc -s filter, nft list ruleset), checksums (nstat TcpInCsumErrors), a full socket (nstat TcpExtTCPRcvQDrop)"))
	if bytes >= diagnose.FewEvents*s.MSS() && !s.Misses() {
		o.Confidence = measure.Certain
	}
	if l.isBorne() {
		o.MarkNotBinding()
	}
	return o
}

// CutOff judges a connection that carried data and then stopped: the path was dead, or the receiver; nil if it did
// not stop.
func CutOff(f *diagnose.Flow) *diagnose.Outcome {
	s := f.AnyCapturePoint()
	if s == nil || mtu.PacketsBrokenTSO(f).State == diagnose.Holds {
		return nil
	}
	x, ok := s.LongestOutage()
	if !ok || x.Acked < 10*s.MSS() { // full segments must have passed
		return nil
	}
	o := diagnose.Likely("the path was down for %s, from second %.1f on: data in flight was retransmitted after timeouts", unit.Duration(int64(x.Ns)), x.AtNs/1e9)
	if !x.Ended {
		o.Text = fmt.Sprintf("nothing was acknowledged from second %.1f on, for %s: the path went down, or the receiver disappeared", x.AtNs/1e9, unit.Duration(int64(x.Ns)))
	}
	pct := stat.Pct(x.Ns, float64(s.Main().SpanNs))
	if pct < outageBar {
		o.MarkNotBinding()
	}
	if s.Misses() {
		o.Confidence = measure.Possible
	}
	o.By(diagnose.Above(s.Proof("longest time without an acknowledgement of data in flight", x.Ns, "ns"), diagnose.LeastOutageNs), s.Count("retransmitted after a timeout", s.Data.Timeout))
	return o.Costs(0, unit.Percent(pct)+" of the time nothing passed", "the capture").
		AddFix(diagnose.Advise(nil, "find what was down at that time: links, routes and tunnels on the path, or the receiver itself (logs, ip monitor, counters of link changes)"))
}

// outageBar is the percentage of the connection's time from which an outage limits the rate.
const outageBar = 5

func gateUDPReach(w *scene.Direction) *gate.Finding {
	u := w.UDP
	switch {
	case u == nil || u.Sent <= 0:
		return gate.Missing(w, "whether UDP arrives", "udp")
	case u.Got <= 0:
		return gate.Warn("none of %d datagrams arrived", u.Sent).
			Because("UDP tests cannot run in this direction; TCP tests can").Do(scene.Advise(scene.Command("let the firewalls pass UDP to the data ports of %s", scene.EndName(w.To))))
	case u.Sent >= 10 && float64(u.Got) < 0.9*float64(u.Sent):
		return gate.Warn("%d of %d small datagrams arrived", u.Got, u.Sent).
			Do(scene.Advise("look for a firewall that limits the UDP rate, and for packet loss: `thru test -u --search` finds the rate that passes"))
	}
	return gate.Pass("%d of %d datagrams arrived", min(u.Got, u.Sent), u.Sent)
}

// binds reports whether the loss may limit the rate; the outcome says why not.
func (l lossSeen) binds() *diagnose.Outcome {
	bps := l.Rate()
	switch {
	case l.Pct < 0.05 && l.queue:
		return diagnose.No("a full queue dropped the few retransmitted segments: the round trip grew with it")
	case l.timed && l.Pct <= diagnose.HeavyPct && l.bound > diagnose.RareBar*bps:
		return diagnose.No("the %s that was retransmitted would allow %s", Rare(l.Pct), unit.Rate(l.bound))
	case l.isBorne() && l.queue:
		return diagnose.No("a full queue dropped the %s that was retransmitted: the round trip grew with it", Rare(l.Pct))
	case l.isBorne() && l.often > 0 && l.often < fewRows:
		return diagnose.No("%s was retransmitted, in only %d bursts: spread evenly, this loss would allow %s", Rare(l.Pct), l.often, unit.Rate(l.bound))
	}
	return nil
}

// isBorne reports whether far more passes than single losses of that share allow: the losses come in bursts, or
// the congestion control tolerates them.
func (l lossSeen) isBorne() bool { return l.timed && l.Rate() > diagnose.BurstBar*l.bound }

// lossWhere names the side of the capture where packets are lost: a retransmission of data that had passed was
// lost beyond it.
func (l lossSeen) lossWhere() string {
	switch gaps, again := l.Data.Gaps.N, l.Data.Again.N; {
	case l.At == measure.AtSender:
		return "after the sender"
	case l.At == measure.AtReceiver:
		return "before the receiver"
	case gaps > 8*again/10:
		return "before the capture point"
	case gaps < again/10:
		return "after the capture point"
	}
	return "on the path"
}
