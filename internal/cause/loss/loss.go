// Package loss holds the causes of packet loss on the path: policers, reordering,
// random loss, of TCP and datagrams.
package loss

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// LossCauses are the causes of segments that do not arrive, or not in order.
func LossCauses() []diagnose.Rule {
	return []diagnose.Rule{
		{
			Cause: "policer", TCP: true, UDP: true, Unseen: diagnose.HostPackets, Title: "a policer drops what is above its rate", Judge: policer, Packets: packetsPolicer,
			Seen:  "segments are lost while the round trip stays at its least; in captures: many segments are sent again in one go",
			Apart: "UDP below the rate loses nothing, above it just the excess, and hardly waits: less than 16 packets take",
			Mends: "shape below the rate at the sender", Effect: "55 of 100 Mb/s under cubic, 95 when shaped",
			Source: "causes.md, calibration; RFC 2697", Tests: []string{diagnose.UdpBelow, diagnose.UdpAbove, diagnose.UdpThrice, diagnose.UdpTenfold, diagnose.UdpThirtyfold}, Brings: []string{"loss"},
		},
		{
			Cause: "reordering", TCP: true, Title: "segments come out of order", Judge: reordering, Packets: packetsReordering,
			Seen:  "the kernel saw segments arrive after later ones, and the receiver told of duplicates that had not been lost; in captures: segments come after later ones without having been sent again, and the receiver tells of duplicates (D-SACK)",
			Apart: "the sequence numbers of UDP", Mends: "hash whole flows, not packets, over the members of a bundle", Effect: "190 of 195 Mb/s at 1%",
			Source: "TcpExt.TCPSACKReorder, TCPTSReorder; tcp_info.tcpi_reord_seen, tcpi_dsack_dups", Tests: []string{diagnose.UdpBelow, diagnose.Captured}, Brings: []string{"loss"},
		},
		{
			Cause: "loss", TCP: true, UDP: true, Unseen: diagnose.HostPackets, Title: "packets are lost on the way", Judge: loss, Packets: packetsLoss,
			Seen:  "segments are sent again, and goodput is what that share of loss allows over the round trip (Mathis, or CUBIC where that allows more); in captures also: nothing under way is acknowledged for half a second and more, through two timeouts: the path was dead; or it came to the receiver's interface and was never acknowledged: its host drops it",
			Apart: "UDP below the rate loses too, ten or more (certain), without standing in a queue; bbr is not slowed down by it; in captures of both ends: segments are lost one by one between them, where a policer or a full queue drops many in a row",
			Mends: "find and mend what loses: cabling, optics, a full device", Effect: "20 of 189 Mb/s at 0.1% and 20 ms",
			Source: "methods.md, formula 6; RFC 9438, section 5", Tests: []string{diagnose.UdpBelow, diagnose.BbrControl, diagnose.Captured},
		},
	}
}

func loss(f *diagnose.Flow) *diagnose.Outcome {
	if f.IsUDP() {
		return lostDatagrams(f)
	}
	again, ok := f.AgainPct()
	if !ok {
		return f.Sender.Lacks("tcp_info.total_retrans_segments")
	}
	b := Below(f, again)
	if again < diagnose.AgainBar {
		return diagnose.No("%s of the segments were sent again", unit.Percent(again))
	}
	if again < 0.05 && f.HasQueue() {
		return diagnose.No("the few segments that were sent again were dropped by a full queue: the round trip grew with it")
	}
	if b.stood {
		return diagnose.No("datagrams below the rate stood in a full queue: it is that which drops")
	}
	o := diagnose.Possible("%s of the segments are lost on the way", Rare(again)).
		By(diagnose.Above(f.Sender.Proof("tcp_info.total_retrans of data_segs_out", again, "pct"), diagnose.AgainBar)).
		Mend(diagnose.Advise(nil, "find what loses: error counters of the ports on the way, cabling, optics, a device that is full; bbr suffers less from it"))
	for _, name := range []string{"TcpExt.TCPSackRecovery", "TcpExt.TCPTimeouts"} {
		if n, ok := f.Sender.Counter(name); ok && n > 0 {
			o.By(f.Sender.Proof(name, n, ""))
		}
	}
	if o := byMathis(f, o, b, again); o.State != diagnose.Holds {
		return o
	}
	if bbr := f.Against(f.Experiment(diagnose.BbrControl)); bbr.Times > diagnose.GainBar {
		o.Gains(f.Sender.Proof("goodput under bbr over this", 0, ""), bbr)
		o.Confidence = measure.Likely // bbr carries more past a queue that is too short, too
	}
	heldAgainst(f, o, b, again)
	if held, _, ok := f.WindowHeld(); o.State == diagnose.Holds && (ok && held > diagnose.RwndBar || diagnose.Paces(f.Congestion()) && again < diagnose.BbrBar) {
		o.Beside() // the window is what is full, not the path; and bbr bears with it
	}
	return o
}

// byMathis holds a loss against the rate that it allows cubic and reno: one
// that is too rare, or that came in a few bursts, is not what binds.
func byMathis(f *diagnose.Flow, o *diagnose.Outcome, b underRate, again float64) *diagnose.Outcome {
	_, _, known := f.RTT()
	rtt, bps := f.AnyRTT(), f.Rate()
	bound, by := f.LossBound(rtt, again)
	if !diagnose.IsNumber(bound) {
		return o
	}
	if bps <= bound {
		o.Costs(bound, fmt.Sprintf("such a loss leaves about %s", unit.Rate(bound)), fmt.Sprintf("%s: segments of %d bytes, %s, %s of them lost", by, int64(f.MSS()), unit.Duration(int64(rtt)), Rare(again)))
	}
	switch {
	case bps > diagnose.BurstBar*bound && !b.tried && !diagnose.Paces(f.Congestion()):
		return diagnose.No("%s of the segments were sent again, in few bursts: lost all along, they would allow %s", unit.Percent(again), unit.Rate(bound))
	case rtt < diagnose.NearNs && bps > diagnose.ExceedBar*bound && !b.Lost && !diagnose.Paces(f.Congestion()): // more than the formula says is had of long paths only
		return diagnose.No("%s of the segments were sent again: lost one by one they would leave %s, and %s passed", unit.Percent(again), unit.Rate(bound), unit.Rate(bps))
	case bound > diagnose.RareBar*bps && !b.Lost:
		return diagnose.No("the %s of segments that were sent again would allow %s", unit.Percent(again), unit.Rate(bound))
	case bps < 3*bound && bound <= diagnose.BindsBar*bps && known && !f.HasQueue():
		o.Confidence = measure.Likely
	}
	return o
}

// likeLoss is by how many times datagrams may be lost as often as segments are
// sent again, to have met the same loss: beyond it they met another, such as a
// host short of time.
const likeLoss = 5

// leastLost is how many datagrams have to be lost to speak for more than chance.
const leastLost = 1.5

// leastExpected is how many have to be expected for none to speak against it.
const leastExpected = 5

// underRate is what datagrams at less than the rate of TCP showed.
type underRate struct {
	tried  bool
	Lost   bool    // they are lost too: it does not hang on the rate
	passes bool    // TCP's share of loss would have shown, and none did
	stood  bool    // they stood in a full queue, which drops what others bring
	pct    float64 // lost on the path
	gone   float64 // datagrams lost on the path
}

// Below of this flow, whose TCP lost so many percent.
func Below(f *diagnose.Flow, again float64) underRate {
	c := f.Experiment(diagnose.UdpBelow)
	if c == nil || c.Datagrams == nil || c.Datagrams.Sent == 0 {
		return underRate{}
	}
	sent, gone := float64(c.Datagrams.Sent), diagnose.PathLossPct(c)*float64(c.Datagrams.Sent)/100
	if gone == 0 && sent*again/100 >= leastExpected {
		return underRate{tried: true, passes: true}
	}
	top, over := f.Surplus()
	for _, x := range f.DatagramTrials() { // what passes at higher rates tells the same, with more packets
		if over && float64(x.Spec.Rate) > 0.7*top.Capacity {
			continue // near what passes some are lost anyway
		}
		if pct := diagnose.PathLossPct(x); pct < diagnose.SurplusBar && diagnose.RateOf(x) > diagnose.LeastCapacity*f.Rate() {
			sent, gone = sent+float64(x.Datagrams.Sent), gone+pct*float64(x.Datagrams.Sent)/100
		}
	}
	b := underRate{tried: true, pct: 100 * gone / sent, gone: gone, stood: gone > 0 && diagnose.WaitOf(c).Stands()}
	b.Lost = !b.stood && b.pct > max(diagnose.LostBar, again/10) && b.pct < likeLoss*again && gone >= leastLost
	return b
}

// heldAgainst settles a loss of TCP by datagrams below its rate.
func heldAgainst(f *diagnose.Flow, o *diagnose.Outcome, b underRate, again float64) {
	bar := max(diagnose.LostBar, again/10)
	p := measure.Proof{EndPoint: f.Receiver.Name, Counter: "UDP that the path has room for, lost on it", Value: b.pct, Unit: "pct"}
	switch {
	case b.Lost:
		if o.Confidence = measure.Likely; b.gone >= diagnose.FewEvents && (f.Follows() || diagnose.Paces(f.Congestion())) {
			o.Confidence = measure.Certain
		}
		o.Apart = []string{"shaper", "token-bucket", "lag-one-member"} // these drop only what is too much
		o.By(diagnose.Above(p, bar))
		o.Text = fmt.Sprintf("%s of the packets are lost on the way, however few there are", Rare(b.pct))
	case b.passes:
		if passed, far := PassesFar(f); far {
			o.Text = fmt.Sprintf("%s of the segments are lost, though datagrams at an even pace pass at %s: a queue is too short for bursts", unit.Percent(again), unit.Rate(passed))
			o.Confidence = measure.Likely
			return
		}
		*o = *diagnose.No("UDP at 0.9 of the rate lost %s: packets are lost only when there are too many", unit.Percent(b.pct))
	}
}

// PassesFar tells whether datagrams pass at so high a rate that no policer or
// queue near the goodput can be what holds it.
func PassesFar(f *diagnose.Flow) (bps float64, ok bool) {
	_, over := f.Surplus()
	goodput, _ := f.Goodput()
	passed := f.UdpPassed()
	full := f.Cell.Ceiling != nil && passed > 0.9*f.Cell.Ceiling.Bps || passed > 0.9*diagnose.MostUDPTrial
	return passed, !over && (full || passed > 20*goodput)
}

func policer(f *diagnose.Flow) *diagnose.Outcome {
	if f.IsUDP() {
		return policedDatagrams(f)
	}
	if o := noPolicer(f); o != nil {
		return o
	}
	again, _ := f.AgainPct()
	s, over := f.Surplus()
	b := Below(f, again)
	flat, seen := f.Flatness()
	passed, far := PassesFar(f)
	o := diagnose.Possible("a policer drops what is above its rate").
		By(diagnose.Above(f.Sender.Proof("tcp_info.total_retrans of data_segs_out", again, "pct"), diagnose.AgainBar), QueueProof(f)).
		Mend(diagnose.Advise(f.Sender, "shape below the rate at the sender (a qdisc such as tbf or fq with maxrate), or have the policer allow a longer burst"))
	switch {
	case b.Lost:
		return diagnose.No("UDP below the rate is lost too")
	case over && s.Wait.Stands():
		return diagnose.No("datagrams above the rate stand in a queue for %s", unit.Duration(int64(s.Wait.Mean)))
	case over && b.tried:
		if o.Confidence = measure.Likely; s.Wait.IsClear() && b.pct < s.LostPct/10 {
			o.Confidence = measure.Certain
		}
		o.Text = fmt.Sprintf("a policer lets %s pass and drops the rest", unit.Rate(s.Capacity))
		o.By(Proofs(s, f)...)
		o.Costs(s.Capacity, "it would carry "+unit.Rate(s.Capacity)+" of payload, shaped", "UDP above the rate: what came through")
	case far:
		return diagnose.No("UDP at %s passes", unit.Rate(passed))
	case seen && flat > 6*diagnose.FlatBar && !over:
		return diagnose.No("the rate of the seconds differs by %s: a policer's does not", unit.Percent(flat))
	case perRecovery(f) > 10:
		o.By(diagnose.Above(f.Sender.Proof("segments lost in one recovery", perRecovery(f), "segments"), 10))
	}
	return o
}

// noPolicer is what keeps the loss of a flow from being a policer's; nil where
// nothing does.
func noPolicer(f *diagnose.Flow) *diagnose.Outcome {
	again, counted := f.AgainPct()
	loaded, known := f.LoadedRTT()
	bound, _ := f.LossBound(loaded, again)
	_, _, idle := f.RTT()
	held, _, told := f.WindowHeld()
	switch {
	case !counted:
		return f.Sender.Lacks("tcp_info.total_retrans_segments")
	case again < diagnose.AgainBar:
		return diagnose.No("%s of the segments were sent again", unit.Percent(again))
	case f.OnOneMachine():
		return diagnose.No("no link lies between the ends")
	case known && bound > diagnose.RareBar*f.Rate():
		return diagnose.No("the %s of segments that were sent again would allow %s", unit.Percent(again), unit.Rate(bound))
	case !idle:
		return f.Sender.Lacks("the round trip of the idle path")
	case f.HasQueue():
		return diagnose.No("a queue fills: the round trip grows under load")
	case told && held > diagnose.RwndBar:
		return diagnose.No("the receiver's window held the sender up %s of the time", unit.Percent(held))
	}
	return nil
}

// Rare prints a share of loss, which counts far below what a percent is
// usually told to.
func Rare(pct float64) string {
	if pct > 0 && pct < 0.01 {
		return fmt.Sprintf("%.2g%%", pct)
	}
	return unit.Percent(pct)
}

// Proofs of a rate that does not pass.
func Proofs(s diagnose.Surplus, f *diagnose.Flow) []measure.Proof {
	to := f.Receiver.Name
	return []measure.Proof{
		{EndPoint: to, Counter: "UDP above the rate, received", Value: s.Capacity, Unit: "bps"},
		{EndPoint: to, Counter: "UDP above the rate, lost on the path", Value: s.LostPct, Unit: "pct"},
		{EndPoint: to, Counter: "UDP above the rate, delay over the least", Value: s.Wait.Mean, Unit: "ns"},
	}
}

// perRecovery is how many segments were sent again in one recovery, on
// average; 0 where it is not known.
func perRecovery(f *diagnose.Flow) float64 {
	again, ok := f.Sender.Grew(diagnose.SegsAgain)
	n, okToo := f.Sender.Counter("TcpExt.TCPSackRecovery")
	if !ok || !okToo || n == 0 {
		return 0
	}
	return again / n
}

// QueueProof is the round trip under load against the least.
func QueueProof(f *diagnose.Flow) measure.Proof {
	loaded, base, _ := f.RTT()
	p := f.Sender.Proof("tcp_info.rtt_ns under load, mean", loaded, "ns")
	p.Note = "the least is " + unit.Duration(int64(base))
	return p
}

func reordering(f *diagnose.Flow) *diagnose.Outcome {
	seen, known := f.Sender.Grew(diagnose.TimesReordered)
	if !known {
		return f.Sender.Lacks("tcp_info.reord_seen")
	}
	below := f.Experiment(diagnose.UdpBelow)
	if below != nil && below.Datagrams != nil && below.Datagrams.Received > 0 {
		d := below.Datagrams
		pct := 100 * float64(d.Reordered) / float64(d.Received)
		if pct < 0.01 {
			return diagnose.No("%s of the datagrams came out of order", unit.Percent(pct))
		}
		o := diagnose.Certain("%s of the packets come out of order, by up to %d places", unit.Percent(pct), d.ReorderMost)
		if d.Reordered < diagnose.FewEvents {
			o.Confidence = measure.Likely
		}
		if flat, known := f.Flatness(); pct < littleOrder && f.HasQueue() && known && flat < diagnose.FlatBar {
			o.Beside() // a queue is full all the same
		}
		return outOfOrder(f, o, seen).
			By(diagnose.Above(measure.Proof{EndPoint: f.Receiver.Name, Counter: "UDP at 0.9 of the rate, reordered", Value: pct, Unit: "pct"}, 0.01))
	}
	if sent, ok := f.Sender.Grew(diagnose.SegsSent); seen == 0 || ok && 100*seen/sent < rareOrder {
		return diagnose.No("the sender's kernel saw segments out of order %.0f times", seen)
	}
	return outOfOrder(f, diagnose.Possible("segments come out of order"), seen)
}

// rareOrder is the share of segments, in percent, that a path may bring out of
// order now and then.
const rareOrder = 0.01

// littleOrder is the share of packets, in percent, that come out of order without
// costing a sender that knows of it (RACK, RFC 8985) much.
const littleOrder = 1

// outOfOrder adds what TCP saw of it.
func outOfOrder(f *diagnose.Flow, o *diagnose.Outcome, seen float64) *diagnose.Outcome {
	o.By(f.Sender.Proof("tcp_info.reord_seen", seen, ""))
	again, _ := f.Sender.Grew(diagnose.SegsAgain)
	if doubled, ok := f.Sender.Grew(diagnose.SegsDoubled); ok && doubled > 0 {
		o.By(f.Sender.Proof("tcp_info.dsack_dups", doubled, "segments"))
		if o.Confidence == measure.Possible && again > 0 && doubled > again/2 {
			o.Confidence = measure.Likely // what was sent again had not been lost
		}
	}
	if f.LinkIsFull() {
		o.Beside()
	}
	return o.Mend(diagnose.Advise(nil, "have bundles and equal-cost routes choose a member by the flow (layer3+4), never by the packet"))
}
