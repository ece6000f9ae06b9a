package mtu

import (
	"fmt"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/knob"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// MTUBlackHole is the cause `mtu-black-hole`.
func MTUBlackHole() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "mtu-black-hole", TCP: true, UDP: true, Title: "full-size packets are dropped silently", Judge: judgeMTUBlackHole, Packets: packetsMTUBlackHole,
			Seen:        "the handshake passes, then timeouts follow at a congestion window of one segment; packets above the size that the path MTU search (DF) found are dropped, and no router reports it; in captures: small segments arrive, full-size segments do not, and the router's ICMP error is missing or ignored",
			Distinction: "the path MTU search (DF); random loss also hits small packets, a broken offload passes single segments",
			Fix:         "let ICMP pass, or lower the MTU; for TCP tcp_mtu_probing or an MSS clamp", Effect: "0 Mb/s; 34 to 72 at the start with tcp_mtu_probing",
			Source: "RFC 2923, RFC 8899; TcpExt.TCPMTUPSuccess; tcp_info.tcpi_backoff", Tests: []string{diagnose.SmallSegments, diagnose.Captured}, Brings: []string{"loss", "policer", "slow-convergence"},
		},
		Urgent: 5,
		Gates: []gate.Rule{
			{ID: "tunnel", Words: "vxlan gre vpn wireguard", Title: "Tunnel", About: "tunnels on the route: their headers against the MTU of the interface below",
				Warns:  "the tunnel's MTU and its headers exceed the MTU below",
				Why:    "an encapsulated packet above the MTU below is fragmented or dropped; each header lowers the ceiling",
				Source: "RFC 7348 (50 bytes for VXLAN over IPv4)", Fix: "set the tunnel's MTU to that of the interface below, minus the headers", Checklist: []string{"C-21"}, Face: gateTunnel},
			{ID: "mtu-path", Words: "pmtu pmtud mtu jumbo df blackhole", Title: "MTU of the path",
				About:  "the largest packet that passes with DF, searched on the test's path, against the sender's MTU; with jumbo frames, whether 8972 bytes of payload pass",
				Warns:  "less passes than the sender's MTU, but a router reports it, the MSS keeps TCP below it, or the sender probes for it (tcp_mtu_probing)",
				Fails:  "less passes, no router reports it, and TCP would send more: a black hole, or jumbo frames that one end or a switch between does not pass",
				Why:    "full segments are dropped silently: the handshake passes, then TCP stalls near 0 Mb/s",
				Source: "RFC 8899, RFC 2923; S-03, C-21; measured: 0 Mb/s, 34 to 72 with tcp_mtu_probing", Fix: "set one MTU everywhere; until then set the MTU that passes",
				Checklist: []string{"S-03", "C-21", "C-20", "B-19"}, Direction: gateMTUPath},
		},
		Propose: []advise.Proposer{proposeMTUBlackHole},
	}
}

func judgeMTUBlackHole(f *diagnose.Flow) *diagnose.Outcome {
	s, searched := sizes(f)
	switch {
	case f.OnOneMachine():
		return diagnose.No("both ends are on one host")
	case searched && s.passes():
		return diagnose.No("%d bytes pass with DF, which is the sender's MTU", s.Bytes)
	case searched && s.Router != nil && !s.Silent:
		return diagnose.No("a router reports what passes: %d bytes", *s.Router)
	case searched && !s.Silent:
		return diagnose.No("larger packets are rejected, not dropped silently")
	case searched:
		return isSwallowed(f, s)
	case f.IsUDP():
		return diagnose.Missing("largest packet that passes", "the path MTU was not searched; run `thru check`")
	}
	return silentStall(f)
}

// isSwallowed judges a path that, by the search with DF, silently drops larger packets.
func isSwallowed(f *diagnose.Flow, s sized) *diagnose.Outcome {
	o := diagnose.Certain("packets above %d bytes are dropped silently; the sender's MTU is %d", s.Bytes, s.Claimed).By(s.proof(f)).
		AddFix(fixSize(f, "mtu-black-hole", ProbeSizes(f)))
	found, _ := f.Sender.Counter("TcpExt.TCPMTUPSuccess")
	x, _ := Stalled(f)
	switch {
	case sizeBinds(f, s) && f.IsUDP():
		return o.By(diagnose.Above(f.Receiver.Proof("datagrams lost", f.Cell.Datagrams.LossPct, "pct"), 50)).Costs(0, "larger datagrams do not arrive", "the path MTU search")
	case sizeBinds(f, s):
		return o.By(x.proofs(f)...).Costs(0, "TCP stalls: its full segments never arrive", "the path MTU search")
	case packet(f, s) > float64(s.Bytes):
		return diagnose.No("packets of %d bytes pass nevertheless", int64(packet(f, s)))
	case found > 0 && x.Timeouts > 0:
		return o.By(f.Sender.Proof("TcpExt.TCPMTUPSuccess", found, ""), f.Sender.Proof("retransmission timeouts", x.Timeouts, "")).
			Costs(0, "TCP stalled until its probing found the size that passes", "TcpExt.TCPMTUPSuccess")
	}
	return o.MarkNotBinding().Costs(0, fmt.Sprintf("none for this flow: its segments are smaller; datagrams above %d bytes are lost", s.Bytes), "tcp_info.snd_mss")
}

// ProbeSizes lets the sender's TCP find the size that passes, if the path cannot be fixed.
func ProbeSizes(f *diagnose.Flow) *measure.Fix {
	const advice = "let ICMP (fragmentation needed, packet too big) pass every firewall between, or lower the MTU"
	h := f.Sender.Machine()
	r := h.Fix(probeMTU(h))
	if f.IsUDP() || len(r.Commands) == 0 {
		return diagnose.Advise(f.Sender, advice)
	}
	r.Advice = advice + "; until then let TCP probe the size that passes"
	return r
}

// probeMTU lets TCP find the size that passes (RFC 4821).
func probeMTU(h *scene.Host) scene.Fix { return h.Set(knob.MTUProbing, "", "1") }

// silentStall judges a connection that carried nothing, on a path that was not searched.
func silentStall(f *diagnose.Flow) *diagnose.Outcome {
	x, ok := Stalled(f)
	switch {
	case !ok:
		return f.Sender.Lacks("tcp_info.snd_cwnd_segments, backoff")
	case !x.dead:
		return diagnose.No("full segments pass: %s", unit.Rate(x.bps))
	}
	o := diagnose.Possible("nothing passes after the handshake: full-size packets may be dropped silently").By(x.proofs(f)...).
		Then("run `thru check`: it searches the size that passes").AddFix(diagnose.Advise(f.Sender, "search the size that passes (thru check, or ping with DF); then set one MTU everywhere, or let ICMP pass"))
	if small := f.Experiment(diagnose.SmallSegments); small != nil && diagnose.RateOf(small) > 10*max(x.bps, 1) {
		o.Confidence = measure.Likely
		o.Text = "full segments are dropped silently, small ones pass"
		o.By(measure.Proof{EndPoint: f.Receiver.Name, Counter: "goodput with segments of 536 bytes", Value: diagnose.RateOf(small), Unit: "bps"})
	}
	return o
}

func packetsMTUBlackHole(f *diagnose.Flow) *diagnose.Outcome {
	if x := f.Crossing; x != nil {
		return fullCrossed(f, x)
	}
	s := f.AnyCapturePoint()
	if s == nil {
		return diagnose.Missing("a connection of the flow", "the capture has none")
	}
	full := float64(s.Main().MaxPacket)
	passed := float64(s.Data.MaxPacket)
	acked, known := s.Acked()
	switch {
	case full <= 0:
		return diagnose.NoHandshake("the size of a full segment")
	case s.At == measure.AtReceiver && passed >= full-ClampBar:
		return diagnose.No("full segments arrive: packets of %d bytes", int64(min(passed, full)))
	case s.At == measure.AtReceiver, s.At != measure.AtSender && passed < full-ClampBar: // with a black hole they are missing here, too
		return diagnose.CaptureAt(measure.AtSender, "full segments sent")
	case passed < full-ClampBar:
		return diagnose.No("no packet was larger than %d bytes", int64(passed))
	case !known:
		return diagnose.Missing("the acknowledged data", "the capture has no time line of the connection")
	case acked >= 10*s.MSS():
		return diagnose.No("full segments pass: %s of their payload were acknowledged", unit.Size(int64(acked)))
	case s.Data.Timeout.N < 2 || acked >= s.MSS():
		return diagnose.Missing("repeated retransmissions of full segments", "too little data passed")
	}
	return asBlackHole(f, silentPackets(f, s, acked), s)
}

// fullCrossed judges by the sizes that left one place and reached the other.
func fullCrossed(f *diagnose.Flow, x *diagnose.Crossed) *diagnose.Outcome {
	d := x.Data
	full := float64(x.Left.Main().MaxPacket)
	heeded := tooBig(f, x.Left)
	switch {
	case diagnose.Arrived(d.FullSent, d.FullLost) > 0 || full > 0 && float64(d.MaxArrived) >= full-ClampBar:
		return diagnose.No("full segments arrive: packets of %d bytes", d.MaxArrived)
	case heeded != nil && d.MaxArrived > heeded.MTU*swallowBar/100:
		return diagnose.No("a router reports what passes, and the sender obeys: %d bytes", heeded.MTU)
	case d.FullSent.N < 2:
		return diagnose.Missing("full segments", "the sender sent no single full segment")
	case diagnose.Arrived(d.SmallSent, d.SmallLost) == 0 || diagnose.LostPct(d.SmallSent, d.SmallLost) > 50:
		return diagnose.No("small segments are lost too")
	}
	o := diagnose.Likely("small segments arrive, but none of %d full segments", d.FullSent.N)
	if d.FullSent.N >= fewFull && diagnose.LostPct(d.SmallSent, d.SmallLost) < passBar {
		o.Confidence = x.Sure()
	}
	if heeded != nil {
		o.Text += fmt.Sprintf("; %s reports that %d bytes pass, but the sender ignores it", diagnose.Line(heeded.From), heeded.MTU)
		o.By(x.Left.Proof("ICMP packet-too-big messages", float64(heeded.Count), "", heeded.Packet))
	}
	o.By(diagnose.Above(x.Left.Proof("full segments, lost", diagnose.LostPct(d.FullSent, d.FullLost), "pct", d.FullLost.Packets...), swallowBar),
		diagnose.UnderBar(x.Left.Proof("small segments, lost", diagnose.LostPct(d.SmallSent, d.SmallLost), "pct", d.SmallLost.Packets...), passBar),
		x.Right.Proof("largest packet that arrived", float64(d.MaxArrived), "bytes"))
	return asBlackHole(f, o, x.Left)
}

// fewFull is how many full segments must be lost, with none arriving, to be certain.
const fewFull = 4

// tooBig returns a router's ICMP message to the sender that its packets are too large; nil if none came.
func tooBig(f *diagnose.Flow, s *diagnose.CapturePoint) *measure.TooBig {
	for i := range s.TooBig {
		if b := &s.TooBig[i]; b.Of == s.Main().From && b.MTU > 0 && b.MTU < s.Main().MaxPacket {
			return b
		}
	}
	return nil
}

// asBlackHole adds what a black hole costs and the fix.
func asBlackHole(f *diagnose.Flow, o *diagnose.Outcome, s *diagnose.CapturePoint) *diagnose.Outcome {
	o.At(measure.Where{Place: measure.AtPath}).AddFix(fixSize(f, "mtu-black-hole", ProbeSizes(f)))
	return o.Costs(0, fmt.Sprintf("TCP stalls: its segments of %d bytes never arrive", s.Main().MaxPacket), "the capture")
}

// silentPackets words a connection of which no full segment was acknowledged.
func silentPackets(f *diagnose.Flow, s *diagnose.CapturePoint, acked float64) *diagnose.Outcome {
	o := diagnose.Possible("nothing passes after the handshake: full segments are retransmitted again and again").Then("a capture at the receiver too, or `thru check`, which searches the size that passes")
	answered := s.Acks.New > 0 && s.Acks.Again.N == 0 // its small acknowledgements reached the other end
	if acked > 0 || answered {
		o.Confidence = measure.Likely
		o.Text = fmt.Sprintf("small segments pass, but full ones of %d bytes are never acknowledged", s.Main().MaxPacket)
	}
	o.By(diagnose.Above(s.Count("retransmissions after a timeout", s.Data.Timeout), 1), s.Proof("acknowledged data", acked, "bytes"))
	if big := tooBig(f, s); big != nil {
		o.Confidence = measure.Certain
		o.Text = fmt.Sprintf("%s reports that at most %d bytes pass, but the sender still sends packets of %d", diagnose.Line(big.From), big.MTU, s.Main().MaxPacket)
		o.By(s.Proof("ICMP packet-too-big messages", float64(big.Count), "", big.Packet))
	}
	return o
}

func gateTunnel(f *scene.Face) *gate.Finding {
	t := f.Tunnel
	if t == nil {
		return nil
	}
	what := fmt.Sprintf("%s is a %s tunnel", f.Name, t.Kind)
	below := f.Host.Interface(t.Lower)
	if t.Overhead <= 0 || f.MTU == nil || below == nil || below.MTU == nil || *below.MTU <= t.Overhead {
		return gate.Pass("%s; the size of its headers or the MTU below is not known", what)
	}
	fits := *below.MTU - t.Overhead
	if *f.MTU > fits {
		return gate.Warn("%s: MTU %d and %d bytes of headers exceed the MTU %d of %s", what, *f.MTU, t.Overhead, *below.MTU, below.Name).
			Do(scene.SetMTU(f, fits))
	}
	return gate.Pass("%s: %d bytes of headers per packet, MTU %d of %d", what, t.Overhead, *f.MTU, *below.MTU)
}

// fits returns what passes in both directions: one MTU for both ends.
func fits(w *scene.Direction) int {
	least := w.MTU.Bytes
	if m := w.Other().MTU; m != nil && m.Bytes > 0 {
		least = min(least, m.Bytes)
	}
	return untagged(least)
}

func gateMTUPath(w *scene.Direction) *gate.Finding {
	m := w.MTU
	if m == nil {
		return gate.Missing(w, "largest packet that passes", "mtu")
	}
	if m.Bytes <= 0 {
		return gate.NotChecked("largest packet that passes", "no datagram of the search arrived")
	}
	switch {
	case m.Claimed <= 0 || m.Bytes >= min(m.Claimed, largestPacket) || m.Local:
		return mtuHolds(w)
	case m.Router != nil && !m.Silent:
		return gate.Warn("MTU %d at %s; %d bytes pass with DF, and a router reports %d", m.Claimed, w.From, m.Bytes, *m.Router).
			Because("path MTU discovery works; UDP above %d bytes is fragmented or rejected", m.Bytes)
	case !m.Silent:
		return gate.Warn("MTU %d at %s; %d bytes pass with DF", m.Claimed, w.From, m.Bytes).
			Because("segments of up to %d bytes pass, larger ones are lost", m.Bytes)
	}
	return swallowed(w)
}

// jumboFilled is the payload that fills MTU 9000: minus 20 bytes of IP and 8 of UDP or ICMP.
const jumboFilled = 8972

// mtuHolds words that the claimed MTU passes.
func mtuHolds(w *scene.Direction) *gate.Finding {
	m := w.MTU
	switch {
	case m.Jumbo != nil && *m.Jumbo:
		return gate.Pass("%d bytes of payload pass with DF; MTU %d at %s", jumboFilled, max(m.Claimed, m.Bytes), w.From)
	case m.Claimed <= 0:
		return gate.Pass("%d bytes pass with DF; the MTU of %s is not known", m.Bytes, w.From)
	}
	return gate.Pass("%d bytes pass with DF, MTU %d at %s", m.Bytes, m.Claimed, w.From)
}

// swallowed judges a path on which larger packets are dropped without an ICMP message.
func swallowed(w *scene.Direction) *gate.Finding {
	m, peer := w.MTU, far(w)
	claims, do, cause := fmt.Sprintf("MTU %d at %s", m.Claimed, w.From), blackHole(w), ""
	// An interface may carry a VLAN tag beyond its MTU, and so a packet that is 4 bytes larger.
	if peer > 0 && peer < m.Claimed && m.Bytes <= peer+4 {
		claims += fmt.Sprintf(", %d at %s", peer, w.To)
		do, cause = smallerMTU(w, min(fits(w), peer)), "jumbo-mismatch"
	}
	switch {
	case segment(w) > 0 && segment(w) <= m.Bytes:
		return gate.Warn("%s: %d bytes pass with DF, larger ones are lost silently; the MSS limits TCP to %d", claims, m.Bytes, segment(w)).
			Because("TCP passes; UDP and other protocols above %d bytes are lost silently", m.Bytes).As(cause).Do(do)
	case probes(w):
		return gate.Warn("%s: %d bytes pass with DF, larger ones are lost silently; %s probes for it", claims, m.Bytes, w.From).
			Because("TCP stalls at first, then finds the size that passes: 34 to 72 Mb/s at the start").As(cause).Do(do)
	case cause != "":
		return gate.Fail("%s: %d bytes pass with DF, larger ones are lost silently", claims, m.Bytes).As(cause).Do(do)
	case peer >= m.Claimed && m.Claimed >= jumboFrom:
		return gate.Fail("MTU %d at %s and %s, but only %d bytes pass with DF, and no router reports it", m.Claimed, w.From, w.To, m.Bytes).
			As("jumbo-mismatch").Do(smallerMTU(w, fits(w)))
	}
	return gate.Fail("%s: %d bytes pass with DF, larger ones are lost and no router reports it", claims, m.Bytes).Do(do)
}

// far returns the MTU of the receiving end's interface; 0 if it is not known.
func far(w *scene.Direction) int {
	if m := w.Other().MTU; m != nil && m.Claimed > 0 {
		return m.Claimed
	}
	if h := w.Scene.Host(w.To); h != nil {
		return mtu(h)
	}
	return 0
}

// blackHole is the fix for a path that silently drops large packets.
func blackHole(w *scene.Direction) scene.Fix {
	words := "let ICMP (fragmentation needed, packet too big) pass every firewall between"
	if h := w.Sender(); h != nil && h.Top() != nil {
		words += fmt.Sprintf("; until then set MTU %d", fits(w))
		if probing := probeMTU(h).Lines; len(probing) > 0 {
			words += ", or for TCP only `" + probing[0] + "`"
		}
	}
	return smallerMTU(w, fits(w)).WithAdvice(words)
}

// smallerMTU is the fix for a size that the sender claims and the path does not carry.
func smallerMTU(w *scene.Direction, fits int) scene.Fix {
	h := w.Sender()
	if h == nil || h.Top() == nil {
		return scene.Advise("set the same MTU at both ends and on every switch between")
	}
	return scene.At(h, scene.SetMTU(h.Top(), fits)).WithAdvice(fmt.Sprintf("set the same MTU at both ends and on every switch between; until then set MTU %d", fits))
}

// segment returns the largest packet that TCP sends in this direction, limited by the other end's MSS; 0 if it is
// not known.
func segment(w *scene.Direction) int {
	if s := w.Other().Seen; s != nil && s.MSS != nil && *s.MSS > 0 {
		return *s.MSS + w.Headers()
	}
	return 0
}

// probes reports whether the sender finds the size that passes by itself (RFC 4821).
func probes(w *scene.Direction) bool {
	h := w.Sender()
	if h == nil {
		return false
	}
	v, ok := h.Sysctl("net.ipv4.tcp_mtu_probing")
	return ok && v != "0"
}

// proposeMTUBlackHole lets TCP find the size by itself, or limits the MTU to what passes.
func proposeMTUBlackHole(r advise.Request) []advise.Draft {
	var list []advise.Draft
	if h := r.Direction.From; h.Value(knob.MTUProbing, "") == "0" {
		list = append(list, advise.Change(h, knob.MTUProbing, "", "1", "let TCP of %s probe the packet size that passes", h.Name).ForDirection(r.Direction))
	}
	return append(list, smaller(r.Direction)...)
}

// proofs returns the evidence of a stall.
func (s stall) proofs(f *diagnose.Flow) []measure.Proof {
	return []measure.Proof{
		diagnose.Above(f.Sender.Proof("retransmission timeouts", s.Timeouts, ""), 0),
		diagnose.UnderBar(f.Sender.Proof("tcp_info.snd_cwnd, at the end", s.cwnd, "segments"), 2),
	}
}
