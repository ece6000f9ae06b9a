// Package mtu holds the causes of packet sizes: jumbo frames, black holes, broken
// segmentation, clamped segments.
package mtu

import (
	"fmt"
	"math"

	"thru/internal/cause/below"
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// MtuCauses are the causes of sizes that do not pass.
func MtuCauses() []diagnose.Rule {
	return []diagnose.Rule{
		{
			Cause: "jumbo-mismatch", TCP: true, UDP: true, Title: "jumbo frames are set, and do not pass", Judge: jumboMismatch, Packets: packetsJumbo,
			Seen:  "an end claims an MTU of 8000 bytes or more, and the search with DF finds that less passes; an MTU below an end (the switch, bridge or tap of its hypervisor) is less than its own; in captures: both SYNs offer jumbo frames, and no full segment arrives",
			Apart: "without a router between it is the root of a black hole; behind one the router is",
			Mends: "the same MTU at both ends and on every switch between", Effect: "0 Mb/s where full segments vanish; else more CPU, and 5% of the link",
			Source: "C-20, C-21; RFC 8899", Tests: []string{diagnose.Captured}, Brings: []string{"mtu-black-hole", "loss", "policer"},
		},
		{
			Cause: "mtu-black-hole", TCP: true, UDP: true, Title: "full packets vanish without a word", Judge: blackHoleCause, Packets: packetsBlackHole,
			Seen:  "the handshake passes, then timeouts at a congestion window of one segment; larger packets than the search with DF found vanish, and no router says so; in captures: small segments arrive, none of the full ones does, and a router's word is missing or not heeded",
			Apart: "a search with DF; random loss takes small packets too, a broken offload lets single segments pass",
			Mends: "let ICMP pass, or lower the MTU; for TCP tcp_mtu_probing or an MSS clamp", Effect: "0 Mb/s; 34 to 72 at the start with tcp_mtu_probing",
			Source: "RFC 2923, RFC 8899; TcpExt.TCPMTUPSuccess; tcp_info.tcpi_backoff", Tests: []string{diagnose.SmallSegments, diagnose.Captured}, Brings: []string{"loss", "policer", "slow-convergence"},
		},
		{
			Cause: "broken-tso", TCP: true, Title: "segmentation offload sends what nobody receives", Judge: BrokenTSO, Packets: packetsTSO,
			Seen:  "goodput of some Mb/s at most with timeouts and many segments sent again, while the search with DF passes full segments; in captures: packets larger than a segment leave the sender and do not arrive, single segments do",
			Apart: "segments below every size pass without loss; UDP in full packets does too, which excludes random loss and a policer; a black hole swallows single full segments too; large packets that receive offload makes at the receiver say nothing of it",
			Mends: "switch TSO and GSO off at the sender, then mend driver or firmware", Effect: "0.001 to 12.1 Gb/s (S-03); 6.5 Mb/s to 10 Gb/s",
			Source: "ethtool(8), -K tso gso; TcpExt.TCPTimeouts", Tests: []string{diagnose.Captured, diagnose.SmallSegments, diagnose.UdpThrice}, Brings: []string{"loss", "policer", "reordering"},
		},
		{
			Cause: "mss-clamp", TCP: true, Title: "segments are smaller than they could be", Judge: mssClamp, Packets: packetsClamp,
			Seen:  "the MSS arrives smaller than it was sent, and below what passes; in captures of both ends the same of SYN and SYN-ACK",
			Apart: "both ends' view of the handshake; path MTU discovery and -M make small segments too",
			Mends: "raise the clamp of the router or VPN between", Effect: "MSS 536: 9% of the link for headers", Source: "RFC 9293, section 3.7.1; tcp_info.tcpi_snd_mss, tcpi_advmss", Tests: []string{diagnose.Captured},
		},
	}
}

// Sizes of packets in bytes.
const (
	jumboClaim         = 8000 // an MTU from here on means jumbo frames
	JumboFrom          = 9000 // the usual MTU of jumbo frames
	largestPacketCause = 65535
	tcpHeaders         = 40 // of IPv4 and TCP without options
	udpHeaders         = 28
	vlanTagCause       = 4 // what an interface may take beyond its MTU
)

// sized is what is known of the sizes that pass in the direction of the data.
type sized struct {
	*measure.PathMTU
	peer   int  // MTU that the other end claims; 0 unknown
	routed bool // a router lies between
}

// sizes of the direction; false where it was not searched, or no datagram of
// the search came back.
func sizes(f *diagnose.Flow) (sized, bool) {
	way, back := f.Way()
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
	return s.Local || s.Claimed <= 0 || s.Bytes >= min(s.Claimed, largestPacketCause)
}

// packet is the largest that this flow sends, in bytes; 0 unknown.
func packet(f *diagnose.Flow, s sized) float64 {
	if d := f.Cell.Datagrams; f.IsUDP() && d != nil && d.Bytes > 0 {
		n := float64(d.Bytes) + udpHeaders
		if s.Claimed > 0 {
			n = min(n, float64(s.Claimed)) // the kernel cuts larger ones into fragments
		}
		return n
	}
	if mss := f.MSS(); mss > 0 {
		return mss + tcpHeaders
	}
	return 0
}

// stall is how a flow came to nothing, or nearly.
type stall struct {
	Timeouts float64 // of retransmission, over the life of the connections
	backoff  float64 // how often in a row the timer has doubled
	cwnd     float64 // segments, at the end of the measured time
	bps      float64
	dead     bool // nothing or next to nothing came through
}

// Stalled reads how the sender's connections fared; false where its kernel does not tell.
func Stalled(f *diagnose.Flow) (stall, bool) {
	s, known := stall{cwnd: math.Inf(1)}, false
	for _, x := range f.Sender.Streams() {
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
				s.Timeouts = max(s.Timeouts, float64(*t.TotalRTO))
			}
		}
	}
	if n, ok := f.Sender.Counter("TcpExt.TCPTimeouts"); ok {
		s.Timeouts = max(s.Timeouts, n)
	}
	s.bps, _ = f.Goodput()
	s.dead = s.Timeouts+s.backoff > 0 && s.cwnd <= 2 && s.bps < deadRate
	return s, known
}

// deadRate is below what a stalled connection still carries, in bit/s.
const deadRate = 100_000

// proofs of a stall.
func (s stall) proofs(f *diagnose.Flow) []measure.Proof {
	return []measure.Proof{
		diagnose.Above(f.Sender.Proof("timeouts of retransmission", s.Timeouts, ""), 0),
		diagnose.Below(f.Sender.Proof("tcp_info.snd_cwnd, at the end", s.cwnd, "segments"), 2),
	}
}

// proof of what passes.
func (s sized) proof(f *diagnose.Flow) measure.Proof {
	p := measure.Proof{EndPoint: f.Sender.Name, Counter: "largest packet that passes with DF", Value: float64(s.Bytes), Unit: "bytes"}
	if s.Claimed > 0 {
		return diagnose.Below(p, float64(s.Claimed))
	}
	return p
}

func jumboSeen(f *diagnose.Flow) *diagnose.Outcome {
	if f.OnOneMachine() {
		return diagnose.No("no link lies between the ends")
	}
	s, ok := sizes(f)
	switch {
	case !ok:
		return diagnose.Missing("largest packet that passes", "the path was not searched; `thru check` does it")
	case s.Claimed < jumboClaim:
		return diagnose.No("the sender claims no jumbo frames: MTU %d", s.Claimed)
	case s.passes():
		return diagnose.No("%d bytes pass with DF", s.Bytes)
	}
	var o *diagnose.Outcome
	switch {
	case s.peer > 0 && s.peer < s.Claimed && s.Bytes <= s.peer+vlanTagCause:
		o = diagnose.Certain("jumbo frames are set at %s and not at %s: %d bytes pass of %d", f.Sender.Name, f.Receiver.Name, s.Bytes, s.Claimed)
	case s.peer >= jumboClaim:
		o = diagnose.Certain("jumbo frames are set at both ends and do not pass between: %d bytes do of %d", s.Bytes, s.Claimed)
	default:
		o = diagnose.Certain("jumbo frames are set at %s and do not pass: %d bytes do of %d", f.Sender.Name, s.Bytes, s.Claimed)
	}
	o.By(s.proof(f)).At(measure.Where{Place: measure.AtPath}).Mend(mendSize(f, "jumbo-mismatch", diagnose.Advise(f.Sender, "the same MTU at both ends and on every switch between"))).
		Costs(0, "packets of "+fmt.Sprint(s.Bytes)+" bytes: more CPU, and some 5% of the link for headers", "methods.md, formula 4")
	if s.routed || !sizeBinds(f, s) {
		return o.Beside()
	}
	return o.Costs(0, "nothing that is larger passes", "the search with DF")
}

// mendSize is what the gates of the sizes say is to be done, where they say anything.
func mendSize(f *diagnose.Flow, cause string, otherwise *measure.Remedy) *measure.Remedy {
	for _, g := range below.JudgedGates(f) {
		if g.ID == "mtu-path" && g.From == f.Cell.From && g.To == f.Cell.To && (len(g.Remedy) > 0 || g.Advice != "") && g.Status != measure.GatePass {
			return diagnose.RemedyOf(g, f.Sender.Facts)
		}
	}
	for _, g := range below.Conditions(f, cause, "") {
		if len(g.Remedy) > 0 || g.Advice != "" {
			return diagnose.RemedyOf(g, f.Sender.Facts)
		}
	}
	return otherwise
}

// sizeBinds tells whether this flow comes to nothing since its packets are
// larger than what passes.
func sizeBinds(f *diagnose.Flow, s sized) bool {
	if packet(f, s) <= float64(s.Bytes) {
		return false
	}
	if f.IsUDP() {
		d := f.Cell.Datagrams
		return d != nil && d.LossPct > 50
	}
	x, ok := Stalled(f)
	return ok && x.dead
}

func blackHoleCause(f *diagnose.Flow) *diagnose.Outcome {
	s, searched := sizes(f)
	switch {
	case f.OnOneMachine():
		return diagnose.No("no link lies between the ends")
	case searched && s.passes():
		return diagnose.No("%d bytes pass with DF, all that the sender claims", s.Bytes)
	case searched && s.Router != nil && !s.Silent:
		return diagnose.No("a router says what passes: %d bytes", *s.Router)
	case searched && !s.Silent:
		return diagnose.No("larger packets are refused, not swallowed")
	case searched:
		return swallowedOfFlow(f, s)
	case f.IsUDP():
		return diagnose.Missing("largest packet that passes", "the path was not searched; `thru check` does it")
	}
	return silentStall(f)
}

// swallowedOfFlow judges a path of which the search with DF says that it swallows
// what is larger.
func swallowedOfFlow(f *diagnose.Flow, s sized) *diagnose.Outcome {
	o := diagnose.Certain("packets above %d bytes vanish without a word, of the %d that the sender claims", s.Bytes, s.Claimed).By(s.proof(f)).
		Mend(mendSize(f, "mtu-black-hole", ProbeSizes(f)))
	found, _ := f.Sender.Counter("TcpExt.TCPMTUPSuccess")
	x, _ := Stalled(f)
	switch {
	case sizeBinds(f, s) && f.IsUDP():
		return o.By(diagnose.Above(f.Receiver.Proof("datagrams lost", f.Cell.Datagrams.LossPct, "pct"), 50)).Costs(0, "larger datagrams do not arrive", "the search with DF")
	case sizeBinds(f, s):
		return o.By(x.proofs(f)...).Costs(0, "TCP stalls: its full segments never arrive", "the search with DF")
	case packet(f, s) > float64(s.Bytes):
		return diagnose.No("packets of %d bytes pass all the same", int64(packet(f, s)))
	case found > 0 && x.Timeouts > 0:
		return o.By(f.Sender.Proof("TcpExt.TCPMTUPSuccess", found, ""), f.Sender.Proof("timeouts of retransmission", x.Timeouts, "")).
			Costs(0, "TCP stood still until its probing found what passes", "TcpExt.TCPMTUPSuccess")
	}
	return o.Beside().Costs(0, fmt.Sprintf("nothing here: the segments are smaller; datagrams above %d bytes are lost", s.Bytes), "tcp_info.snd_mss")
}

// silentStall judges a connection that came to nothing where the path was not searched.
func silentStall(f *diagnose.Flow) *diagnose.Outcome {
	x, ok := Stalled(f)
	switch {
	case !ok:
		return f.Sender.Lacks("tcp_info.snd_cwnd_segments, backoff")
	case !x.dead:
		return diagnose.No("full segments pass: %s", unit.Rate(x.bps))
	}
	o := diagnose.Possible("nothing passes after the handshake: full packets may vanish").By(x.proofs(f)...).
		Then("`thru check` searches the size that passes").Mend(diagnose.Advise(f.Sender, "search the size that passes (thru check, or ping with DF); then one MTU everywhere, or let ICMP pass"))
	if small := f.Experiment(diagnose.SmallSegments); small != nil && diagnose.RateOf(small) > 10*max(x.bps, 1) {
		o.Confidence = measure.Likely
		o.Text = "full segments vanish, small ones pass"
		o.By(measure.Proof{EndPoint: f.Receiver.Name, Counter: "goodput in segments of 536 bytes", Value: diagnose.RateOf(small), Unit: "bps"})
	}
	return o
}

// Bars of a broken offload. What gets through are single segments, sent again
// after a timeout: 0.9 to 100 Mb/s were measured.
const (
	brokenRate  = 500e6 // bit/s: between hosts side by side at MTU 9000 it was 100
	BrokenAgain = 3     // percent of the segments
)

func BrokenTSO(f *diagnose.Flow) *diagnose.Outcome {
	bps, ok := f.Goodput()
	again, counted := f.AgainPct()
	x, told := Stalled(f)
	switch {
	case !ok || !counted || !told:
		return f.Sender.Lacks("tcp_info.total_retrans_segments")
	case bps > brokenRate || again < BrokenAgain || x.Timeouts == 0:
		return diagnose.No("%s pass, %s of the segments were sent again", unit.Rate(bps), unit.Percent(again))
	case f.OnOneMachine():
		return diagnose.No("no link lies between the ends")
	}
	s, searched := sizes(f)
	switch {
	case searched && !s.passes() && !segmentsFit(f, s):
		return diagnose.No("the path itself takes no more than %d bytes", s.Bytes)
	case offload(f, "tcp-segmentation-offload") == "off":
		return diagnose.No("segmentation offload is off at the sender")
	}
	o := diagnose.Possible("large packets of the sender's segmentation offload are lost, single segments pass").At(f.Sender.OnFace()).
		By(diagnose.Below(f.Sender.Proof("goodput", bps, "bps"), brokenRate), diagnose.Above(f.Sender.Proof("tcp_info.total_retrans of data_segs_out", again, "pct"), BrokenAgain),
			diagnose.Above(f.Sender.Proof("timeouts of retransmission", x.Timeouts, ""), 0)).Mend(OffloadOff(f))
	if searched {
		o.By(s.proof(f))
	}
	if n := f.Sender.NIC(); n != nil && n.TxPackets > 0 {
		o.By(f.Sender.Proof("bytes of a packet sent", float64(n.TxBytes)/float64(n.TxPackets), "bytes"))
	}
	return triedSmall(f, o, again, bps, searched)
}

// segmentsFit tells that single segments are known to be no larger than what passes,
// whatever the sender's MTU claims: the other end's MSS keeps them small.
func segmentsFit(f *diagnose.Flow, s sized) bool {
	n := packet(f, s)
	return n > 0 && n <= float64(s.Bytes)
}

// triedSmall settles a broken offload by what small segments and datagrams do.
func triedSmall(f *diagnose.Flow, o *diagnose.Outcome, again, bps float64, searched bool) *diagnose.Outcome {
	small := f.Experiment(diagnose.SmallSegments)
	if small == nil {
		// Lost at random in that share, the small packets of the probe would have been hit too.
		if searched && unharmed(f)*again/100 >= 3 {
			o.Confidence = measure.Likely
		}
		return o
	}
	lost, counted := againOf(small)
	asked := float64(small.Spec.Rate)
	if counted && lost > again/10 && lost <= again/3 { // less than before, as it is where the ends themselves stand still
		return o.By(measure.Proof{EndPoint: f.Sender.Name, Counter: "sent again in segments of 536 bytes", Value: lost, Unit: "pct"}).
			Then("the same while the hosts have nothing else to do")
	}
	if !counted || lost > again/10 || diagnose.RateOf(small) < 0.9*asked {
		return diagnose.No("small segments at a low rate fare no better: %s", unit.Rate(diagnose.RateOf(small)))
	}
	o.By(diagnose.Below(measure.Proof{EndPoint: f.Sender.Name, Counter: "sent again in segments of 536 bytes", Value: lost, Unit: "pct"}, again/10))
	o.Confidence = measure.Likely
	far := f.Experiment(diagnose.UdpThrice)
	switch {
	case far != nil && diagnose.PathLossPct(far) > max(diagnose.LostBar, again/10):
		return diagnose.No("UDP at %s in full packets is lost too: %s", unit.Rate(diagnose.RateOf(far)), unit.Percent(diagnose.PathLossPct(far)))
	case searched && (far != nil && diagnose.RateOf(far) > 2*bps || bps < 0.4*asked): // a policer or a slow link that lets these pass would have let TCP
		o.Confidence = measure.Certain
		o.Text = "packets of the sender's segmentation offload (TSO) never arrive, single segments do"
		o.Costs(0, "what passes are segments that were sent again alone", "small segments at "+unit.Rate(asked)+" pass without loss")
	}
	return o
}

// unharmed is how many small packets of the path's probe got through, where
// none of them was lost: a lost one of TCP's costs a timeout of 200 ms.
func unharmed(f *diagnose.Flow) float64 {
	n := 0.0
	if p := f.Path(); p != nil && p.RTT != nil && p.RTT.P50 > 0 && p.RTT.Max < p.RTT.P50+150e6 {
		n += 2 * float64(p.RTT.Samples)
	}
	if way, _ := f.Way(); way != nil && way.UDP != nil {
		if way.UDP.Got < way.UDP.Sent {
			return 0
		}
		n += float64(way.UDP.Sent)
	}
	return n
}

// againOf is the share of a cell's segments that were sent again, in percent.
func againOf(c *measure.Cell) (float64, bool) {
	f := &diagnose.Flow{Cell: c, Run: diagnose.RunShown(c)}
	for _, x := range f.Run.Flows {
		if x.From == c.From && x.To == c.To || len(f.Run.Flows) == 1 {
			f.Sender = &diagnose.End{Flow: f, Seen: x.Sender}
			return f.AgainPct()
		}
	}
	return 0, false
}

// offload is "on" or "off" at the sender's interface; "" unknown.
func offload(f *diagnose.Flow, name string) string {
	if f.Sender.Face == nil {
		return ""
	}
	switch on, known := f.Sender.Face.Offloads[name]; {
	case !known:
		return ""
	case on:
		return "on"
	}
	return "off"
}

// OffloadOff switches segmentation offload off at the sender's interface.
func OffloadOff(f *diagnose.Flow) *measure.Remedy {
	r := f.Sender.Remedy(f.Sender.Mender().SegmentationOff(f.Sender.FaceName()))
	r.Advice = "switch segmentation offload off at the sender for a test; if that mends it, update the driver and firmware of the card or the hypervisor's switch"
	return r
}

// ProbeSizes has the sender's TCP find by itself what passes, where the sizes
// cannot be mended on the way.
func ProbeSizes(f *diagnose.Flow) *measure.Remedy {
	const advice = "let ICMP (fragmentation needed, packet too big) pass every firewall between, or lower the MTU"
	r := f.Sender.Remedy(f.Sender.Mender().MTUProbing())
	if f.IsUDP() || len(r.Commands) == 0 {
		return diagnose.Advise(f.Sender, advice)
	}
	r.Advice = advice + "; until then TCP can probe what passes"
	return r
}

// ClampBar is by how many bytes a segment may be smaller before it is worth a word.
const ClampBar = 20

func mssClamp(f *diagnose.Flow) *diagnose.Outcome {
	if f.Cell.Spec.MSS > 0 {
		return diagnose.No("segments of %d bytes were asked for (-M)", f.Cell.Spec.MSS)
	}
	if f.OnOneMachine() {
		return diagnose.No("no link lies between the ends")
	}
	sent, seen, ok := handshakeMSS(f)
	from := "the handshake at both ends"
	if !ok {
		sent, seen, ok = connectionMSS(f)
		from = "tcp_info of both ends"
	}
	if !ok {
		return diagnose.Missing("the MSS as it was sent and as it arrived", "neither the path's probe nor the kernels of both ends tell it")
	}
	if o := noClamp(f, sent, seen); o != nil {
		return o
	}
	o := diagnose.Certain("a device on the way makes the MSS smaller: %d bytes of %d", int64(seen), int64(sent)).At(measure.Where{Place: measure.AtPath}).
		By(diagnose.Below(f.Sender.Proof("MSS as it arrived", seen, "bytes"), sent)).Mend(diagnose.Advise(nil, "raise the MSS clamp of the router, firewall or VPN between, or take it out"))
	o.Costs(0, fmt.Sprintf("%.2g times the packets, %s of the link more for headers", sent/seen, unit.Percent(100*(payloadShare(sent)-payloadShare(seen)))), from)
	if !isHeaders(f, seen, sent) {
		o.Beside()
	}
	return o
}

// noClamp excludes a clamp that is none, or that the path needs; nil where the MSS
// arrives smaller without need.
func noClamp(f *diagnose.Flow, sent, seen float64) *diagnose.Outcome {
	s, searched := sizes(f)
	switch {
	case seen >= sent-ClampBar:
		return diagnose.No("the MSS arrives as it was sent: %d bytes", int64(sent))
	case searched && s.Bytes > 0 && seen+tcpHeaders > float64(s.Bytes-2*ClampBar):
		return diagnose.No("the MSS is made smaller to what the path takes: %d bytes", s.Bytes)
	}
	return nil
}

// payloadShare is that of a segment in its frame on Ethernet.
func payloadShare(mss float64) float64 { return mss / (mss + tcpHeaders + 12 + 38) }

// isHeaders tells whether what is missing of a full link are the headers of
// segments that are too small.
func isHeaders(f *diagnose.Flow, seen, sent float64) bool {
	bps, ok := f.Goodput()
	c := f.Cell.Ceiling
	if !ok || c == nil || f.LinkIsFull() || c.Bps <= 0 {
		return false
	}
	return bps >= diagnose.LinkFullBar/100*c.Bps*payloadShare(seen)/payloadShare(sent)
}

// handshakeMSS is the MSS that bounds the sender's segments: the receiver's, as
// it was sent and as it came to the sender.
func handshakeMSS(f *diagnose.Flow) (sent, seen float64, ok bool) {
	p := f.Path()
	if p == nil || p.Handshake == nil {
		return 0, 0, false
	}
	from, to := p.Handshake.SYNACKSent, p.Handshake.SYNACKSeen
	if p.From == f.Cell.To {
		from, to = p.Handshake.SYNSent, p.Handshake.SYNSeen
	}
	if from == nil || to == nil || from.MSS == nil || to.MSS == nil || *from.MSS <= 0 || *to.MSS <= 0 {
		return 0, 0, false
	}
	return float64(*from.MSS), float64(*to.MSS), true
}

// connectionMSS is the same by what the receiver's kernel offers and the
// sender's uses, where neither path MTU discovery nor probing made it smaller.
func connectionMSS(f *diagnose.Flow) (sent, seen float64, ok bool) {
	uses := f.MSS()
	for _, x := range f.Receiver.Streams() {
		if x.TCP == nil || x.TCP.AdvMSS == nil || f.Receiver.Seen.Reported != "" {
			return 0, 0, false
		}
		sent = float64(*x.TCP.AdvMSS)
	}
	for _, x := range f.Sender.Streams() {
		if x.TCP == nil || x.TCP.PMTU == nil {
			return 0, 0, false
		}
		sent = min(sent, float64(*x.TCP.PMTU)-tcpHeaders-12)
	}
	if n, counted := f.Sender.Counter("TcpExt.TCPMTUPSuccess"); counted && n > 0 || sent <= 0 || uses <= 0 {
		return 0, 0, false
	}
	if w, known := f.SendWindow(); known && w < 2*sent { // no segment is larger than half of the window (tcp_bound_to_half_wnd)
		return 0, 0, false
	}
	return sent, uses, true
}
