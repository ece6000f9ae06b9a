package diagnose

import (
	"fmt"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// lossRules are the causes of segments that do not arrive, or not in order.
func lossRules() []Rule {
	return []Rule{
		{
			Cause: "policer", TCP: true, UDP: true, Unseen: hostPackets, Title: "a policer drops what is above its rate", judge: policer, packets: packetsPolicer,
			Seen:  "segments are lost while the round trip stays at its least; in captures: many segments are sent again in one go",
			Apart: "UDP below the rate loses nothing, above it just the excess, and hardly waits: less than 16 packets take",
			Mends: "shape below the rate at the sender", Effect: "55 of 100 Mb/s under cubic, 95 when shaped",
			Source: "causes.md, calibration; RFC 2697", Tests: []string{udpBelow, udpAbove, udpThrice, udpTenfold, udpThirtyfold}, Brings: []string{"loss"},
		},
		{
			Cause: "reordering", TCP: true, Title: "segments come out of order", judge: reordering, packets: packetsReordering,
			Seen:  "the kernel saw segments arrive after later ones, and the receiver told of duplicates that had not been lost; in captures: segments come after later ones without having been sent again, and the receiver tells of duplicates (D-SACK)",
			Apart: "the sequence numbers of UDP", Mends: "hash whole flows, not packets, over the members of a bundle", Effect: "190 of 195 Mb/s at 1%",
			Source: "TcpExt.TCPSACKReorder, TCPTSReorder; tcp_info.tcpi_reord_seen, tcpi_dsack_dups", Tests: []string{udpBelow, captured}, Brings: []string{"loss"},
		},
		{
			Cause: "loss", TCP: true, UDP: true, Unseen: hostPackets, Title: "packets are lost on the way", judge: loss, packets: packetsLoss,
			Seen:  "segments are sent again, and goodput is what that share of loss allows over the round trip (Mathis, or CUBIC where that allows more); in captures also: nothing under way is acknowledged for half a second and more, through two timeouts: the path was dead; or it came to the receiver's interface and was never acknowledged: its host drops it",
			Apart: "UDP below the rate loses too, ten or more (certain), without standing in a queue; bbr is not slowed down by it; in captures of both ends: segments are lost one by one between them, where a policer or a full queue drops many in a row",
			Mends: "find and mend what loses: cabling, optics, a full device", Effect: "20 of 189 Mb/s at 0.1% and 20 ms",
			Source: "methods.md, formula 6; RFC 9438, section 5", Tests: []string{udpBelow, bbrControl, captured},
		},
	}
}

// Bars of the loss rules, in percent.
const (
	againBar = 0.001 // of segments sent again, below which loss costs nothing to speak of
	lostBar  = 0.002 // of datagrams
)

func loss(f *flow) *outcome {
	if f.isUDP() {
		return lostDatagrams(f)
	}
	again, ok := f.againPct()
	if !ok {
		return f.sender.lacks("tcp_info.total_retrans_segments")
	}
	b := f.below(again)
	if again < againBar {
		return no("%s of the segments were sent again", unit.Percent(again))
	}
	if again < 0.05 && f.hasQueue() {
		return no("the few segments that were sent again were dropped by a full queue: the round trip grew with it")
	}
	if b.stood {
		return no("datagrams below the rate stood in a full queue: it is that which drops")
	}
	o := possible("%s of the segments are lost on the way", rare(again)).
		by(above(f.sender.proof("tcp_info.total_retrans of data_segs_out", again, "pct"), againBar)).
		mend(advise(nil, "find what loses: error counters of the ports on the way, cabling, optics, a device that is full; bbr suffers less from it"))
	for _, name := range []string{"TcpExt.TCPSackRecovery", "TcpExt.TCPTimeouts"} {
		if n, ok := f.sender.counter(name); ok && n > 0 {
			o.by(f.sender.proof(name, n, ""))
		}
	}
	if o := f.byMathis(o, b, again); o.state != holds {
		return o
	}
	if bbr := f.against(f.experiment(bbrControl)); bbr.Times > gainBar {
		o.gains(f.sender.proof("goodput under bbr over this", 0, ""), bbr)
		o.confidence = measure.Likely // bbr carries more past a queue that is too short, too
	}
	f.heldAgainst(o, b, again)
	if held, _, ok := f.windowHeld(); o.state == holds && (ok && held > rwndBar || paces(f.congestion()) && again < bbrBar) {
		o.beside() // the window is what is full, not the path; and bbr bears with it
	}
	return o
}

// byMathis holds a loss against the rate that it allows cubic and reno: one
// that is too rare, or that came in a few bursts, is not what binds.
func (f *flow) byMathis(o *outcome, b underRate, again float64) *outcome {
	_, _, known := f.rtt()
	rtt, bps := f.anyRTT(), f.rate()
	bound, by := f.lossBound(rtt, again)
	if !isNumber(bound) {
		return o
	}
	if bps <= bound {
		o.costs(bound, fmt.Sprintf("such a loss leaves about %s", unit.Rate(bound)), fmt.Sprintf("%s: segments of %d bytes, %s, %s of them lost", by, int64(f.mss()), unit.Duration(int64(rtt)), rare(again)))
	}
	switch {
	case bps > burstBar*bound && !b.tried && !paces(f.congestion()):
		return no("%s of the segments were sent again, in few bursts: lost all along, they would allow %s", unit.Percent(again), unit.Rate(bound))
	case rtt < nearNs && bps > exceedBar*bound && !b.lost && !paces(f.congestion()): // more than the formula says is had of long paths only
		return no("%s of the segments were sent again: lost one by one they would leave %s, and %s passed", unit.Percent(again), unit.Rate(bound), unit.Rate(bps))
	case bound > rareBar*bps && !b.lost:
		return no("the %s of segments that were sent again would allow %s", unit.Percent(again), unit.Rate(bound))
	case bps < 3*bound && bound <= bindsBar*bps && known && !f.hasQueue():
		o.confidence = measure.Likely
	}
	return o
}

// bbrBar is the loss in percent that bbr does not slow down for (draft-ietf-ccwg-bbr: version 1 up to 20, later ones 2 a round trip).
const bbrBar = 10

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
	lost   bool    // they are lost too: it does not hang on the rate
	passes bool    // TCP's share of loss would have shown, and none did
	stood  bool    // they stood in a full queue, which drops what others bring
	pct    float64 // lost on the path
	gone   float64 // datagrams lost on the path
}

// below of this flow, whose TCP lost so many percent.
func (f *flow) below(again float64) underRate {
	c := f.experiment(udpBelow)
	if c == nil || c.Datagrams == nil || c.Datagrams.Sent == 0 {
		return underRate{}
	}
	sent, gone := float64(c.Datagrams.Sent), pathLossPct(c)*float64(c.Datagrams.Sent)/100
	if gone == 0 && sent*again/100 >= leastExpected {
		return underRate{tried: true, passes: true}
	}
	top, over := f.surplus()
	for _, x := range f.datagramTrials() { // what passes at higher rates tells the same, with more packets
		if over && float64(x.Spec.Rate) > 0.7*top.capacity {
			continue // near what passes some are lost anyway
		}
		if pct := pathLossPct(x); pct < surplusBar && rateOf(x) > leastCapacity*f.rate() {
			sent, gone = sent+float64(x.Datagrams.Sent), gone+pct*float64(x.Datagrams.Sent)/100
		}
	}
	b := underRate{tried: true, pct: 100 * gone / sent, gone: gone, stood: gone > 0 && waitOf(c).stands()}
	b.lost = !b.stood && b.pct > max(lostBar, again/10) && b.pct < likeLoss*again && gone >= leastLost
	return b
}

// heldAgainst settles a loss of TCP by datagrams below its rate.
func (f *flow) heldAgainst(o *outcome, b underRate, again float64) {
	bar := max(lostBar, again/10)
	p := measure.Proof{EndPoint: f.receiver.name, Counter: "UDP that the path has room for, lost on it", Value: b.pct, Unit: "pct"}
	switch {
	case b.lost:
		if o.confidence = measure.Likely; b.gone >= fewEvents && (f.follows() || paces(f.congestion())) {
			o.confidence = measure.Certain
		}
		o.apart = []string{"shaper", "token-bucket", "lag-one-member"} // these drop only what is too much
		o.by(above(p, bar))
		o.text = fmt.Sprintf("%s of the packets are lost on the way, however few there are", rare(b.pct))
	case b.passes:
		if passed, far := f.passesFar(); far {
			o.text = fmt.Sprintf("%s of the segments are lost, though datagrams at an even pace pass at %s: a queue is too short for bursts", unit.Percent(again), unit.Rate(passed))
			o.confidence = measure.Likely
			return
		}
		*o = *no("UDP at 0.9 of the rate lost %s: packets are lost only when there are too many", unit.Percent(b.pct))
	}
}

// pathLossPct is the share of a cell's datagrams that the path lost, not a host.
func pathLossPct(c *measure.Cell) float64 {
	d := c.Datagrams
	if d == nil || d.Sent == 0 {
		return 0
	}
	lost := d.Lost
	for _, p := range c.LossPlaces {
		if p.Place != measure.LossPath && p.Place != measure.LossQdisc {
			lost -= p.Packets
		}
	}
	return max(0, 100*float64(lost)/float64(d.Sent))
}

// surplus is what datagrams above a rate showed: the rate that came through,
// the share that did not, and how long those that did waited.
type surplus struct {
	capacity, lostPct float64
	wait              wait
	cell              *measure.Cell
}

// surplus of the experiments that sent more than passes; false where all passed.
func (f *flow) surplus() (surplus, bool) {
	bps, _ := f.goodput()
	for _, c := range f.datagramTrials() {
		if lost := pathLossPct(c); lost >= surplusBar && rateOf(c) > leastCapacity*bps {
			return surplus{capacity: rateOf(c), lostPct: lost, wait: waitOf(c), cell: c}, true
		}
	}
	return surplus{}, false
}

// leastCapacity is what has to come through of datagrams, over the goodput of
// TCP: where it is less, a host or a device is short of packets a second, and
// the rate of TCP's large ones is not what was found.
const leastCapacity = 0.9

// datagramTrials are the experiments that sent more datagrams than TCP carried.
func (f *flow) datagramTrials() []*measure.Cell {
	var cells []*measure.Cell
	for _, id := range []string{udpAbove, udpThrice, udpTenfold, udpThirtyfold} {
		if c := f.experiment(id); c != nil && c.Datagrams != nil {
			cells = append(cells, c)
		}
	}
	return cells
}

// udpPassed is the highest rate of datagrams that the path let pass, in bit/s.
func (f *flow) udpPassed() (most float64) {
	for _, c := range f.datagramTrials() {
		if pathLossPct(c) < surplusBar {
			most = max(most, rateOf(c))
		}
	}
	return most
}

// offersNoMore tells whether the sender fell short of the rate of an
// experiment: then higher ones ask too much of it, and say nothing of the path.
func (f *flow) offersNoMore() bool {
	return slices.ContainsFunc(f.datagramTrials(), func(c *measure.Cell) bool {
		d := c.Datagrams
		return d.OfferedBps != nil && *d.OfferedBps < leastCapacity*float64(d.AskedBps)
	})
}

// passesFar tells whether datagrams pass at so high a rate that no policer or
// queue near the goodput can be what holds it.
func (f *flow) passesFar() (bps float64, ok bool) {
	_, over := f.surplus()
	goodput, _ := f.goodput()
	passed := f.udpPassed()
	full := f.cell.Ceiling != nil && passed > 0.9*f.cell.Ceiling.Bps || passed > 0.9*mostUDPTrial
	return passed, !over && (full || passed > 20*goodput)
}

func policer(f *flow) *outcome {
	if f.isUDP() {
		return policedDatagrams(f)
	}
	if o := f.noPolicer(); o != nil {
		return o
	}
	again, _ := f.againPct()
	s, over := f.surplus()
	b := f.below(again)
	flat, seen := f.flatness()
	passed, far := f.passesFar()
	o := possible("a policer drops what is above its rate").
		by(above(f.sender.proof("tcp_info.total_retrans of data_segs_out", again, "pct"), againBar), f.queueProof()).
		mend(advise(f.sender, "shape below the rate at the sender (a qdisc such as tbf or fq with maxrate), or have the policer allow a longer burst"))
	switch {
	case b.lost:
		return no("UDP below the rate is lost too")
	case over && s.wait.stands():
		return no("datagrams above the rate stand in a queue for %s", unit.Duration(int64(s.wait.mean)))
	case over && b.tried:
		if o.confidence = measure.Likely; s.wait.isClear() && b.pct < s.lostPct/10 {
			o.confidence = measure.Certain
		}
		o.text = fmt.Sprintf("a policer lets %s pass and drops the rest", unit.Rate(s.capacity))
		o.by(s.proofs(f)...)
		o.costs(s.capacity, "it would carry "+unit.Rate(s.capacity)+" of payload, shaped", "UDP above the rate: what came through")
	case far:
		return no("UDP at %s passes", unit.Rate(passed))
	case seen && flat > 6*flatBar && !over:
		return no("the rate of the seconds differs by %s: a policer's does not", unit.Percent(flat))
	case f.perRecovery() > 10:
		o.by(above(f.sender.proof("segments lost in one recovery", f.perRecovery(), "segments"), 10))
	}
	return o
}

// noPolicer is what keeps the loss of a flow from being a policer's; nil where
// nothing does.
func (f *flow) noPolicer() *outcome {
	again, counted := f.againPct()
	loaded, known := f.loadedRTT()
	bound, _ := f.lossBound(loaded, again)
	_, _, idle := f.rtt()
	held, _, told := f.windowHeld()
	switch {
	case !counted:
		return f.sender.lacks("tcp_info.total_retrans_segments")
	case again < againBar:
		return no("%s of the segments were sent again", unit.Percent(again))
	case f.onOneMachine():
		return no("no link lies between the ends")
	case known && bound > rareBar*f.rate():
		return no("the %s of segments that were sent again would allow %s", unit.Percent(again), unit.Rate(bound))
	case !idle:
		return f.sender.lacks("the round trip of the idle path")
	case f.hasQueue():
		return no("a queue fills: the round trip grows under load")
	case told && held > rwndBar:
		return no("the receiver's window held the sender up %s of the time", unit.Percent(held))
	}
	return nil
}

// rare prints a share of loss, which counts far below what a percent is
// usually told to.
func rare(pct float64) string {
	if pct > 0 && pct < 0.01 {
		return fmt.Sprintf("%.2g%%", pct)
	}
	return unit.Percent(pct)
}

// proofs of a rate that does not pass.
func (s surplus) proofs(f *flow) []measure.Proof {
	to := f.receiver.name
	return []measure.Proof{
		{EndPoint: to, Counter: "UDP above the rate, received", Value: s.capacity, Unit: "bps"},
		{EndPoint: to, Counter: "UDP above the rate, lost on the path", Value: s.lostPct, Unit: "pct"},
		{EndPoint: to, Counter: "UDP above the rate, delay over the least", Value: s.wait.mean, Unit: "ns"},
	}
}

// perRecovery is how many segments were sent again in one recovery, on
// average; 0 where it is not known.
func (f *flow) perRecovery() float64 {
	again, ok := f.sender.grew(segsAgain)
	n, okToo := f.sender.counter("TcpExt.TCPSackRecovery")
	if !ok || !okToo || n == 0 {
		return 0
	}
	return again / n
}

// queueProof is the round trip under load against the least.
func (f *flow) queueProof() measure.Proof {
	loaded, base, _ := f.rtt()
	p := f.sender.proof("tcp_info.rtt_ns under load, mean", loaded, "ns")
	p.Note = "the least is " + unit.Duration(int64(base))
	return p
}

func reordering(f *flow) *outcome {
	seen, known := f.sender.grew(timesReordered)
	if !known {
		return f.sender.lacks("tcp_info.reord_seen")
	}
	below := f.experiment(udpBelow)
	if below != nil && below.Datagrams != nil && below.Datagrams.Received > 0 {
		d := below.Datagrams
		pct := 100 * float64(d.Reordered) / float64(d.Received)
		if pct < 0.01 {
			return no("%s of the datagrams came out of order", unit.Percent(pct))
		}
		o := certain("%s of the packets come out of order, by up to %d places", unit.Percent(pct), d.ReorderMost)
		if d.Reordered < fewEvents {
			o.confidence = measure.Likely
		}
		if flat, known := f.flatness(); pct < littleOrder && f.hasQueue() && known && flat < flatBar {
			o.beside() // a queue is full all the same
		}
		return f.outOfOrder(o, seen).
			by(above(measure.Proof{EndPoint: f.receiver.name, Counter: "UDP at 0.9 of the rate, reordered", Value: pct, Unit: "pct"}, 0.01))
	}
	if sent, ok := f.sender.grew(segsSent); seen == 0 || ok && 100*seen/sent < rareOrder {
		return no("the sender's kernel saw segments out of order %.0f times", seen)
	}
	return f.outOfOrder(possible("segments come out of order"), seen)
}

// rareOrder is the share of segments, in percent, that a path may bring out of
// order now and then.
const rareOrder = 0.01

// littleOrder is the share of packets, in percent, that come out of order without
// costing a sender that knows of it (RACK, RFC 8985) much.
const littleOrder = 1

// outOfOrder adds what TCP saw of it.
func (f *flow) outOfOrder(o *outcome, seen float64) *outcome {
	o.by(f.sender.proof("tcp_info.reord_seen", seen, ""))
	again, _ := f.sender.grew(segsAgain)
	if doubled, ok := f.sender.grew(segsDoubled); ok && doubled > 0 {
		o.by(f.sender.proof("tcp_info.dsack_dups", doubled, "segments"))
		if o.confidence == measure.Possible && again > 0 && doubled > again/2 {
			o.confidence = measure.Likely // what was sent again had not been lost
		}
	}
	if f.linkIsFull() {
		o.beside()
	}
	return o.mend(advise(nil, "have bundles and equal-cost routes choose a member by the flow (layer3+4), never by the packet"))
}
