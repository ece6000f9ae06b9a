package diagnose

import (
	"fmt"
	"math"

	"thru/internal/measure"
	"thru/internal/unit"
)

// mtuRules are the causes of sizes that do not pass.
func mtuRules() []Rule {
	return []Rule{
		{
			Cause: "jumbo-mismatch", TCP: true, UDP: true, Title: "jumbo frames are set, and do not pass", judge: jumboMismatch, packets: packetsJumbo,
			Seen:  "an end claims an MTU of 8000 bytes or more, and the search with DF finds that less passes; an MTU below an end (the switch, bridge or tap of its hypervisor) is less than its own; in captures: both SYNs offer jumbo frames, and no full segment arrives",
			Apart: "without a router between it is the root of a black hole; behind one the router is",
			Mends: "the same MTU at both ends and on every switch between", Effect: "0 Mb/s where full segments vanish; else more CPU, and 5% of the link",
			Source: "C-20, C-21; RFC 8899", Tests: []string{captured}, Brings: []string{"mtu-black-hole", "loss", "policer"},
		},
		{
			Cause: "mtu-black-hole", TCP: true, UDP: true, Title: "full packets vanish without a word", judge: blackHole, packets: packetsBlackHole,
			Seen:  "the handshake passes, then timeouts at a congestion window of one segment; larger packets than the search with DF found vanish, and no router says so; in captures: small segments arrive, none of the full ones does, and a router's word is missing or not heeded",
			Apart: "a search with DF; random loss takes small packets too, a broken offload lets single segments pass",
			Mends: "let ICMP pass, or lower the MTU; for TCP tcp_mtu_probing or an MSS clamp", Effect: "0 Mb/s; 34 to 72 at the start with tcp_mtu_probing",
			Source: "RFC 2923, RFC 8899; TcpExt.TCPMTUPSuccess; tcp_info.tcpi_backoff", Tests: []string{smallSegments, captured}, Brings: []string{"loss", "policer", "slow-convergence"},
		},
		{
			Cause: "broken-tso", TCP: true, Title: "segmentation offload sends what nobody receives", judge: brokenTSO, packets: packetsTSO,
			Seen:  "goodput of some Mb/s at most with timeouts and many segments sent again, while the search with DF passes full segments; in captures: packets larger than a segment leave the sender and do not arrive, single segments do",
			Apart: "segments below every size pass without loss; UDP in full packets does too, which excludes random loss and a policer; a black hole swallows single full segments too; large packets that receive offload makes at the receiver say nothing of it",
			Mends: "switch TSO and GSO off at the sender, then mend driver or firmware", Effect: "0.001 to 12.1 Gb/s (S-03); 6.5 Mb/s to 10 Gb/s",
			Source: "ethtool(8), -K tso gso; TcpExt.TCPTimeouts", Tests: []string{captured, smallSegments, udpThrice}, Brings: []string{"loss", "policer", "reordering"},
		},
		{
			Cause: "mss-clamp", TCP: true, Title: "segments are smaller than they could be", judge: mssClamp, packets: packetsClamp,
			Seen:  "the MSS arrives smaller than it was sent, and below what passes; in captures of both ends the same of SYN and SYN-ACK",
			Apart: "both ends' view of the handshake; path MTU discovery and -M make small segments too",
			Mends: "raise the clamp of the router or VPN between", Effect: "MSS 536: 9% of the link for headers", Source: "RFC 9293, section 3.7.1; tcp_info.tcpi_snd_mss, tcpi_advmss", Tests: []string{captured},
		},
	}
}

// Sizes of packets in bytes.
const (
	jumboClaim    = 8000 // an MTU from here on means jumbo frames
	jumboFrom     = 9000 // the usual MTU of jumbo frames
	largestPacket = 65535
	tcpHeaders    = 40 // of IPv4 and TCP without options
	udpHeaders    = 28
	vlanTag       = 4 // what an interface may take beyond its MTU
)

// sized is what is known of the sizes that pass in the direction of the data.
type sized struct {
	*measure.PathMTU
	peer   int  // MTU that the other end claims; 0 unknown
	routed bool // a router lies between
}

// sizes of the direction; false where it was not searched, or no datagram of
// the search came back.
func (f *flow) sizes() (sized, bool) {
	way, back := f.way()
	if way == nil || way.MTU == nil || way.MTU.Bytes <= 0 {
		return sized{}, false
	}
	s := sized{PathMTU: way.MTU, routed: way.Hops != nil && *way.Hops > 0 || way.Route != nil && way.Route.Gateway != ""}
	if back.MTU != nil {
		s.peer = max(0, back.MTU.Claimed)
	}
	return s, true
}

// passes tells that all that the sender claims gets through.
func (s sized) passes() bool {
	return s.Local || s.Claimed <= 0 || s.Bytes >= min(s.Claimed, largestPacket)
}

// packet is the largest that this flow sends, in bytes; 0 unknown.
func (f *flow) packet(s sized) float64 {
	if d := f.cell.Datagrams; f.isUDP() && d != nil && d.Bytes > 0 {
		n := float64(d.Bytes) + udpHeaders
		if s.Claimed > 0 {
			n = min(n, float64(s.Claimed)) // the kernel cuts larger ones into fragments
		}
		return n
	}
	if mss := f.mss(); mss > 0 {
		return mss + tcpHeaders
	}
	return 0
}

// stall is how a flow came to nothing, or nearly.
type stall struct {
	timeouts float64 // of retransmission, over the life of the connections
	backoff  float64 // how often in a row the timer has doubled
	cwnd     float64 // segments, at the end of the measured time
	bps      float64
	dead     bool // nothing or next to nothing came through
}

// stalled reads how the sender's connections fared; false where its kernel does not tell.
func (f *flow) stalled() (stall, bool) {
	s, known := stall{cwnd: math.Inf(1)}, false
	for _, x := range f.sender.streams() {
		for _, t := range []*measure.TCPInfo{x.TCP, x.TCPEnd} {
			if t == nil || t.Cwnd == nil {
				continue
			}
			known = true
			s.cwnd = min(s.cwnd, float64(*t.Cwnd))
			if t.Backoff != nil {
				s.backoff = max(s.backoff, float64(*t.Backoff))
			}
			if t.TotalRTO != nil {
				s.timeouts = max(s.timeouts, float64(*t.TotalRTO))
			}
		}
	}
	if n, ok := f.sender.counter("TcpExt.TCPTimeouts"); ok {
		s.timeouts = max(s.timeouts, n)
	}
	s.bps, _ = f.goodput()
	s.dead = s.timeouts+s.backoff > 0 && s.cwnd <= 2 && s.bps < deadRate
	return s, known
}

// deadRate is below what a stalled connection still carries, in bit/s.
const deadRate = 100_000

// proofs of a stall.
func (s stall) proofs(f *flow) []measure.Proof {
	return []measure.Proof{
		above(f.sender.proof("timeouts of retransmission", s.timeouts, ""), 0),
		below(f.sender.proof("tcp_info.snd_cwnd, at the end", s.cwnd, "segments"), 2),
	}
}

// proof of what passes.
func (s sized) proof(f *flow) measure.Proof {
	p := measure.Proof{EndPoint: f.sender.name, Counter: "largest packet that passes with DF", Value: float64(s.Bytes), Unit: "bytes"}
	if s.Claimed > 0 {
		return below(p, float64(s.Claimed))
	}
	return p
}

func (f *flow) jumboSeen() *outcome {
	if f.onOneMachine() {
		return no("no link lies between the ends")
	}
	s, ok := f.sizes()
	switch {
	case !ok:
		return missing("largest packet that passes", "the path was not searched; `thru check` does it")
	case s.Claimed < jumboClaim:
		return no("the sender claims no jumbo frames: MTU %d", s.Claimed)
	case s.passes():
		return no("%d bytes pass with DF", s.Bytes)
	}
	var o *outcome
	switch {
	case s.peer > 0 && s.peer < s.Claimed && s.Bytes <= s.peer+vlanTag:
		o = certain("jumbo frames are set at %s and not at %s: %d bytes pass of %d", f.sender.name, f.receiver.name, s.Bytes, s.Claimed)
	case s.peer >= jumboClaim:
		o = certain("jumbo frames are set at both ends and do not pass between: %d bytes do of %d", s.Bytes, s.Claimed)
	default:
		o = certain("jumbo frames are set at %s and do not pass: %d bytes do of %d", f.sender.name, s.Bytes, s.Claimed)
	}
	o.by(s.proof(f)).at(measure.Where{Place: measure.AtPath}).mend(f.mendSize("jumbo-mismatch", advise(f.sender, "the same MTU at both ends and on every switch between"))).
		costs(0, "packets of "+fmt.Sprint(s.Bytes)+" bytes: more CPU, and some 5% of the link for headers", "methods.md, formula 4")
	if s.routed || !f.sizeBinds(s) {
		return o.beside()
	}
	return o.costs(0, "nothing that is larger passes", "the search with DF")
}

// mendSize is what the gates of the sizes say is to be done, where they say anything.
func (f *flow) mendSize(cause string, otherwise *measure.Remedy) *measure.Remedy {
	for _, g := range f.judgedGates() {
		if g.ID == "mtu-path" && g.From == f.cell.From && g.To == f.cell.To && (len(g.Remedy) > 0 || g.Advice != "") && g.Status != measure.GatePass {
			return remedyOf(g, f.sender.facts)
		}
	}
	for _, g := range f.conditions(cause, "") {
		if len(g.Remedy) > 0 || g.Advice != "" {
			return remedyOf(g, f.sender.facts)
		}
	}
	return otherwise
}

// sizeBinds tells whether this flow comes to nothing since its packets are
// larger than what passes.
func (f *flow) sizeBinds(s sized) bool {
	if f.packet(s) <= float64(s.Bytes) {
		return false
	}
	if f.isUDP() {
		d := f.cell.Datagrams
		return d != nil && d.LossPct > 50
	}
	x, ok := f.stalled()
	return ok && x.dead
}

func blackHole(f *flow) *outcome {
	s, searched := f.sizes()
	switch {
	case f.onOneMachine():
		return no("no link lies between the ends")
	case searched && s.passes():
		return no("%d bytes pass with DF, all that the sender claims", s.Bytes)
	case searched && s.Router != nil && !s.Silent:
		return no("a router says what passes: %d bytes", *s.Router)
	case searched && !s.Silent:
		return no("larger packets are refused, not swallowed")
	case searched:
		return f.swallowed(s)
	case f.isUDP():
		return missing("largest packet that passes", "the path was not searched; `thru check` does it")
	}
	return f.silentStall()
}

// swallowed judges a path of which the search with DF says that it swallows
// what is larger.
func (f *flow) swallowed(s sized) *outcome {
	o := certain("packets above %d bytes vanish without a word, of the %d that the sender claims", s.Bytes, s.Claimed).by(s.proof(f)).
		mend(f.mendSize("mtu-black-hole", f.probeSizes()))
	found, _ := f.sender.counter("TcpExt.TCPMTUPSuccess")
	x, _ := f.stalled()
	switch {
	case f.sizeBinds(s) && f.isUDP():
		return o.by(above(f.receiver.proof("datagrams lost", f.cell.Datagrams.LossPct, "pct"), 50)).costs(0, "larger datagrams do not arrive", "the search with DF")
	case f.sizeBinds(s):
		return o.by(x.proofs(f)...).costs(0, "TCP stalls: its full segments never arrive", "the search with DF")
	case f.packet(s) > float64(s.Bytes):
		return no("packets of %d bytes pass all the same", int64(f.packet(s)))
	case found > 0 && x.timeouts > 0:
		return o.by(f.sender.proof("TcpExt.TCPMTUPSuccess", found, ""), f.sender.proof("timeouts of retransmission", x.timeouts, "")).
			costs(0, "TCP stood still until its probing found what passes", "TcpExt.TCPMTUPSuccess")
	}
	return o.beside().costs(0, fmt.Sprintf("nothing here: the segments are smaller; datagrams above %d bytes are lost", s.Bytes), "tcp_info.snd_mss")
}

// silentStall judges a connection that came to nothing where the path was not searched.
func (f *flow) silentStall() *outcome {
	x, ok := f.stalled()
	switch {
	case !ok:
		return f.sender.lacks("tcp_info.snd_cwnd_segments, backoff")
	case !x.dead:
		return no("full segments pass: %s", unit.Rate(x.bps))
	}
	o := possible("nothing passes after the handshake: full packets may vanish").by(x.proofs(f)...).
		then("`thru check` searches the size that passes").mend(advise(f.sender, "search the size that passes (thru check, or ping with DF); then one MTU everywhere, or let ICMP pass"))
	if small := f.experiment(smallSegments); small != nil && rateOf(small) > 10*max(x.bps, 1) {
		o.confidence = measure.Likely
		o.text = "full segments vanish, small ones pass"
		o.by(measure.Proof{EndPoint: f.receiver.name, Counter: "goodput in segments of 536 bytes", Value: rateOf(small), Unit: "bps"})
	}
	return o
}

// Bars of a broken offload. What gets through are single segments, sent again
// after a timeout: 0.9 to 100 Mb/s were measured.
const (
	brokenRate  = 500e6 // bit/s: between hosts side by side at MTU 9000 it was 100
	brokenAgain = 3     // percent of the segments
)

func brokenTSO(f *flow) *outcome {
	bps, ok := f.goodput()
	again, counted := f.againPct()
	x, told := f.stalled()
	switch {
	case !ok || !counted || !told:
		return f.sender.lacks("tcp_info.total_retrans_segments")
	case bps > brokenRate || again < brokenAgain || x.timeouts == 0:
		return no("%s pass, %s of the segments were sent again", unit.Rate(bps), unit.Percent(again))
	case f.onOneMachine():
		return no("no link lies between the ends")
	}
	s, searched := f.sizes()
	switch {
	case searched && !s.passes() && !f.segmentsFit(s):
		return no("the path itself takes no more than %d bytes", s.Bytes)
	case f.offload("tcp-segmentation-offload") == "off":
		return no("segmentation offload is off at the sender")
	}
	o := possible("large packets of the sender's segmentation offload are lost, single segments pass").at(f.sender.onFace()).
		by(below(f.sender.proof("goodput", bps, "bps"), brokenRate), above(f.sender.proof("tcp_info.total_retrans of data_segs_out", again, "pct"), brokenAgain),
			above(f.sender.proof("timeouts of retransmission", x.timeouts, ""), 0)).mend(f.offloadOff())
	if searched {
		o.by(s.proof(f))
	}
	if n := f.sender.nic(); n != nil && n.TxPackets > 0 {
		o.by(f.sender.proof("bytes of a packet sent", float64(n.TxBytes)/float64(n.TxPackets), "bytes"))
	}
	return f.triedSmall(o, again, bps, searched)
}

// segmentsFit tells that single segments are known to be no larger than what passes,
// whatever the sender's MTU claims: the other end's MSS keeps them small.
func (f *flow) segmentsFit(s sized) bool {
	n := f.packet(s)
	return n > 0 && n <= float64(s.Bytes)
}

// triedSmall settles a broken offload by what small segments and datagrams do.
func (f *flow) triedSmall(o *outcome, again, bps float64, searched bool) *outcome {
	small := f.experiment(smallSegments)
	if small == nil {
		// Lost at random in that share, the small packets of the probe would have been hit too.
		if searched && f.unharmed()*again/100 >= 3 {
			o.confidence = measure.Likely
		}
		return o
	}
	lost, counted := againOf(small)
	asked := float64(small.Spec.Rate)
	if counted && lost > again/10 && lost <= again/3 { // less than before, as it is where the ends themselves stand still
		return o.by(measure.Proof{EndPoint: f.sender.name, Counter: "sent again in segments of 536 bytes", Value: lost, Unit: "pct"}).
			then("the same while the hosts have nothing else to do")
	}
	if !counted || lost > again/10 || rateOf(small) < 0.9*asked {
		return no("small segments at a low rate fare no better: %s", unit.Rate(rateOf(small)))
	}
	o.by(below(measure.Proof{EndPoint: f.sender.name, Counter: "sent again in segments of 536 bytes", Value: lost, Unit: "pct"}, again/10))
	o.confidence = measure.Likely
	far := f.experiment(udpThrice)
	switch {
	case far != nil && pathLossPct(far) > max(lostBar, again/10):
		return no("UDP at %s in full packets is lost too: %s", unit.Rate(rateOf(far)), unit.Percent(pathLossPct(far)))
	case searched && (far != nil && rateOf(far) > 2*bps || bps < 0.4*asked): // a policer or a slow link that lets these pass would have let TCP
		o.confidence = measure.Certain
		o.text = "packets of the sender's segmentation offload (TSO) never arrive, single segments do"
		o.costs(0, "what passes are segments that were sent again alone", "small segments at "+unit.Rate(asked)+" pass without loss")
	}
	return o
}

// unharmed is how many small packets of the path's probe got through, where
// none of them was lost: a lost one of TCP's costs a timeout of 200 ms.
func (f *flow) unharmed() float64 {
	n := 0.0
	if p := f.path(); p != nil && p.RTT != nil && p.RTT.P50 > 0 && p.RTT.Max < p.RTT.P50+150e6 {
		n += 2 * float64(p.RTT.Samples)
	}
	if way, _ := f.way(); way != nil && way.UDP != nil {
		if way.UDP.Got < way.UDP.Sent {
			return 0
		}
		n += float64(way.UDP.Sent)
	}
	return n
}

// againOf is the share of a cell's segments that were sent again, in percent.
func againOf(c *measure.Cell) (float64, bool) {
	f := &flow{cell: c, run: runShown(c)}
	for _, x := range f.run.Flows {
		if x.From == c.From && x.To == c.To || len(f.run.Flows) == 1 {
			f.sender = &end{flow: f, seen: x.Sender}
			return f.againPct()
		}
	}
	return 0, false
}

// offload is "on" or "off" at the sender's interface; "" unknown.
func (f *flow) offload(name string) string {
	if f.sender.face == nil {
		return ""
	}
	switch on, known := f.sender.face.Offloads[name]; {
	case !known:
		return ""
	case on:
		return "on"
	}
	return "off"
}

// offloadOff switches segmentation offload off at the sender's interface.
func (f *flow) offloadOff() *measure.Remedy {
	r := f.sender.remedy(f.sender.mender().SegmentationOff(f.sender.faceName()))
	r.Advice = "switch segmentation offload off at the sender for a test; if that mends it, update the driver and firmware of the card or the hypervisor's switch"
	return r
}

// probeSizes has the sender's TCP find by itself what passes, where the sizes
// cannot be mended on the way.
func (f *flow) probeSizes() *measure.Remedy {
	const advice = "let ICMP (fragmentation needed, packet too big) pass every firewall between, or lower the MTU"
	r := f.sender.remedy(f.sender.mender().MTUProbing())
	if f.isUDP() || len(r.Commands) == 0 {
		return advise(f.sender, advice)
	}
	r.Advice = advice + "; until then TCP can probe what passes"
	return r
}

// clampBar is by how many bytes a segment may be smaller before it is worth a word.
const clampBar = 20

func mssClamp(f *flow) *outcome {
	if f.cell.Spec.MSS > 0 {
		return no("segments of %d bytes were asked for (-M)", f.cell.Spec.MSS)
	}
	if f.onOneMachine() {
		return no("no link lies between the ends")
	}
	sent, seen, ok := f.handshakeMSS()
	from := "the handshake at both ends"
	if !ok {
		sent, seen, ok = f.connectionMSS()
		from = "tcp_info of both ends"
	}
	if !ok {
		return missing("the MSS as it was sent and as it arrived", "neither the path's probe nor the kernels of both ends tell it")
	}
	if o := f.noClamp(sent, seen); o != nil {
		return o
	}
	o := certain("a device on the way makes the MSS smaller: %d bytes of %d", int64(seen), int64(sent)).at(measure.Where{Place: measure.AtPath}).
		by(below(f.sender.proof("MSS as it arrived", seen, "bytes"), sent)).mend(advise(nil, "raise the MSS clamp of the router, firewall or VPN between, or take it out"))
	o.costs(0, fmt.Sprintf("%.2g times the packets, %s of the link more for headers", sent/seen, unit.Percent(100*(payloadShare(sent)-payloadShare(seen)))), from)
	if !f.isHeaders(seen, sent) {
		o.beside()
	}
	return o
}

// noClamp excludes a clamp that is none, or that the path needs; nil where the MSS
// arrives smaller without need.
func (f *flow) noClamp(sent, seen float64) *outcome {
	s, searched := f.sizes()
	switch {
	case seen >= sent-clampBar:
		return no("the MSS arrives as it was sent: %d bytes", int64(sent))
	case searched && s.Bytes > 0 && seen+tcpHeaders > float64(s.Bytes-2*clampBar):
		return no("the MSS is made smaller to what the path takes: %d bytes", s.Bytes)
	}
	return nil
}

// payloadShare is that of a segment in its frame on Ethernet.
func payloadShare(mss float64) float64 { return mss / (mss + tcpHeaders + 12 + 38) }

// isHeaders tells whether what is missing of a full link are the headers of
// segments that are too small.
func (f *flow) isHeaders(seen, sent float64) bool {
	bps, ok := f.goodput()
	c := f.cell.Ceiling
	if !ok || c == nil || f.linkIsFull() || c.Bps <= 0 {
		return false
	}
	return bps >= linkFullBar/100*c.Bps*payloadShare(seen)/payloadShare(sent)
}

// handshakeMSS is the MSS that bounds the sender's segments: the receiver's, as
// it was sent and as it came to the sender.
func (f *flow) handshakeMSS() (sent, seen float64, ok bool) {
	p := f.path()
	if p == nil || p.Handshake == nil {
		return 0, 0, false
	}
	from, to := p.Handshake.SYNACKSent, p.Handshake.SYNACKSeen
	if p.From == f.cell.To {
		from, to = p.Handshake.SYNSent, p.Handshake.SYNSeen
	}
	if from == nil || to == nil || from.MSS == nil || to.MSS == nil || *from.MSS <= 0 || *to.MSS <= 0 {
		return 0, 0, false
	}
	return float64(*from.MSS), float64(*to.MSS), true
}

// connectionMSS is the same by what the receiver's kernel offers and the
// sender's uses, where neither path MTU discovery nor probing made it smaller.
func (f *flow) connectionMSS() (sent, seen float64, ok bool) {
	uses := f.mss()
	for _, x := range f.receiver.streams() {
		if x.TCP == nil || x.TCP.AdvMSS == nil || f.receiver.seen.Reported != "" {
			return 0, 0, false
		}
		sent = float64(*x.TCP.AdvMSS)
	}
	for _, x := range f.sender.streams() {
		if x.TCP == nil || x.TCP.PMTU == nil {
			return 0, 0, false
		}
		sent = min(sent, float64(*x.TCP.PMTU)-tcpHeaders-12)
	}
	if n, counted := f.sender.counter("TcpExt.TCPMTUPSuccess"); counted && n > 0 || sent <= 0 || uses <= 0 {
		return 0, 0, false
	}
	if w, known := f.sendWindow(); known && w < 2*sent { // no segment is larger than half of the window (tcp_bound_to_half_wnd)
		return 0, 0, false
	}
	return sent, uses, true
}
