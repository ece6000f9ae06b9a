package mtu

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// MSSClamp is the cause `mss-clamp`.
func MSSClamp() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "mss-clamp", TCP: true, Title: "an MSS clamp makes segments smaller than needed", Judge: judgeMSSClamp, Packets: packetsMSSClamp,
			Seen:        "the MSS arrives smaller than it was sent, and smaller than the path allows; in captures at both ends the same for SYN and SYN-ACK",
			Distinction: "the handshake as seen at both ends; path MTU discovery and -M also make segments smaller",
			Fix:         "raise the clamp of the router or VPN between", Effect: "MSS 536: headers take 9% more of the link", Source: "RFC 9293, section 3.7.1; tcp_info.tcpi_snd_mss, tcpi_advmss", Tests: []string{diagnose.Captured},
		},
		Gates: []gate.Rule{
			{ID: "mss", Title: "MSS on the path", About: "the MSS as sent and as received, against the largest packet that passes",
				Warns:  "the MSS arrives smaller than sent, and more than 20 bytes below what the path allows",
				Why:    "smaller segments mean more packets and more headers for the same data",
				Source: "RFC 9293, section 3.7.1; RFC 6691", Fix: "raise the clamp of the router or VPN between", Checklist: []string{"C-16", "C-21"}, Direction: gateMSS},
		},
	}
}

func judgeMSSClamp(f *diagnose.Flow) *diagnose.Outcome {
	if f.Cell.Spec.MSS > 0 {
		return diagnose.No("segments of %d bytes were requested (-M)", f.Cell.Spec.MSS)
	}
	if f.OnOneMachine() {
		return diagnose.No("both ends are on one host")
	}
	sent, seen, ok := handshakeMSS(f)
	from := "the handshake at both ends"
	if !ok {
		sent, seen, ok = connectionMSS(f)
		from = "tcp_info of both ends"
	}
	if !ok {
		return diagnose.Missing("the MSS as sent and as received", "neither the path probe nor the kernels of both ends show it")
	}
	if o := noClamp(f, sent, seen); o != nil {
		return o
	}
	o := diagnose.Certain("a device on the path reduces the MSS: %d bytes of %d", int64(seen), int64(sent)).At(measure.Where{Place: measure.AtPath}).
		By(diagnose.UnderBar(f.Sender.Proof("MSS as received", seen, "bytes"), sent)).AddFix(diagnose.Advise(nil, "raise or remove the MSS clamp of the router, firewall or VPN between"))
	o.Costs(0, fmt.Sprintf("%.2g times the packets, headers take %s more of the link", sent/seen, unit.Percent(100*(payloadShare(sent)-payloadShare(seen)))), from)
	if !isHeaders(f, seen, sent) {
		o.MarkNotBinding()
	}
	return o
}

// handshakeMSS returns the MSS that limits the sender's segments: the receiver's, as it was sent and as it reached
// the sender.
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

// connectionMSS returns the same from what the receiver's kernel offers and the sender's uses, if neither path MTU
// discovery nor probing reduced it.
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

// noClamp excludes an MSS that was not reduced, or that the path needs; nil if the MSS arrives smaller without
// need.
func noClamp(f *diagnose.Flow, sent, seen float64) *diagnose.Outcome {
	s, searched := sizes(f)
	switch {
	case seen >= sent-ClampBar:
		return diagnose.No("the MSS arrives as it was sent: %d bytes", int64(sent))
	case searched && s.Bytes > 0 && seen+tcpHeaders > float64(s.Bytes-2*ClampBar):
		return diagnose.No("the MSS is reduced to what the path passes: %d bytes", s.Bytes)
	}
	return nil
}

// payloadShare returns the payload's share of a segment's Ethernet frame.
func payloadShare(mss float64) float64 { return mss / (mss + tcpHeaders + 12 + 38) }

// isHeaders reports whether the shortfall of a full link is the headers of segments that are too small.
func isHeaders(f *diagnose.Flow, seen, sent float64) bool {
	bps, ok := f.Goodput()
	c := f.Cell.Ceiling
	if !ok || c == nil || f.LinkIsFull() || c.Bps <= 0 {
		return false
	}
	return bps >= diagnose.LinkFullBar/100*c.Bps*payloadShare(seen)/payloadShare(sent)
}

func packetsMSSClamp(f *diagnose.Flow) *diagnose.Outcome {
	if f.Cell.Spec.MSS > 0 {
		return nil // it was requested, as the counters show
	}
	s := f.AnyCapturePoint()
	if f.Crossing != nil {
		s = f.Crossing.Left
	}
	if s == nil {
		return diagnose.Missing("a connection of the flow", "the capture has none")
	}
	theirs, own := openings(s)
	seen, mine := mssOf(theirs), mssOf(own)
	if seen <= 0 || mine <= 0 {
		return diagnose.NoHandshake("the MSS of both ends")
	}
	if x := f.Crossing; x != nil {
		if there, _ := openings(x.Right); mssOf(there) > 0 {
			return clamped(f, x, mssOf(there), seen, theirs.Packet)
		}
	}
	if min(seen, mine) >= max(seen, mine)-ClampBar {
		return diagnose.No("both ends offer the same MSS: %d and %d bytes", int64(mine), int64(seen))
	}
	return diagnose.Possible("one end's MSS is %d bytes %s, the other's %d: the end offers no more, or a device on the path reduces it", int64(seen), s.From(), int64(mine)).
		By(diagnose.UnderBar(s.Proof("smaller MSS", min(seen, mine), "bytes", theirs.Packet, own.Packet), max(seen, mine))).MarkNotBinding().
		Then("a capture at the other end too, to see what that end offers").AddFix(diagnose.Advise(nil, "compare the MTU of both ends, and look for an MSS clamp between"))
}

// openings returns the SYN or SYN-ACK of the receiver of the data, and of its sender; nil if they were not
// captured.
func openings(s *diagnose.CapturePoint) (receivers, senders *measure.Opening) {
	for _, c := range s.Connections {
		if c.FromOpened == nil || c.SYN == nil || c.SYNACK == nil {
			continue
		}
		if *c.FromOpened {
			return c.SYNACK, c.SYN
		}
		return c.SYN, c.SYNACK
	}
	return nil, nil
}

// mssOf returns the MSS of an opening in bytes; 0 if it is not known.
func mssOf(o *measure.Opening) float64 {
	if o == nil || o.MSS == nil {
		return 0
	}
	return float64(*o.MSS)
}

// clamped judges the MSS of the receiver, which limits the data segments, as it left one place and arrived at the
// other.
func clamped(f *diagnose.Flow, x *diagnose.Crossed, sent, seen float64, packet int64) *diagnose.Outcome {
	if o := noClamp(f, sent, seen); o != nil {
		return o
	}
	o := diagnose.Likely("a device on the path reduces the MSS: %d bytes of %d", int64(seen), int64(sent)).At(measure.Where{Place: measure.AtPath}).
		By(diagnose.UnderBar(x.Left.Proof("MSS as received", seen, "bytes", packet), sent)).
		Costs(0, fmt.Sprintf("%.2g times the packets", sent/seen), "the handshake at both places").
		AddFix(diagnose.Advise(nil, "raise or remove the MSS clamp of the router, firewall or VPN between; for a tunnel that passes no more, the clamp is right"))
	if _, searched := sizes(f); searched || seen+tcpHeaders+ClampBar < leastPath {
		o.Confidence = measure.Certain
	} else {
		o.Then("run `thru check`: it searches whether the path passes more")
	}
	if !isHeaders(f, seen, sent) {
		o.MarkNotBinding()
	}
	return o
}

// leastPath is the MTU in bytes that every path of IPv6 has (RFC 8200, section 5).
const leastPath = 1280

// gateMSS compares with the packets of the other direction: an MSS is what its sender wants to receive.
func gateMSS(w *scene.Direction) *gate.Finding {
	if w.Sent == nil || w.Seen == nil || w.Sent.MSS == nil || w.Seen.MSS == nil {
		return gate.MissingOption(w, "MSS")
	}
	sent, seen := *w.Sent.MSS, *w.Seen.MSS
	fits := sent
	if m := w.Other().MTU; m != nil && m.Bytes > w.Headers() {
		fits = min(sent, m.Bytes-w.Headers())
	}
	if seen < sent && seen < fits-20 {
		return gate.Warn("MSS %d of %s arrives at %s as %d; the path allows %d", sent, w.From, w.To, seen, fits).
			Because("%.3g%% more packets for the same data", 100*(float64(fits)/float64(max(seen, 1))-1)).
			Do(scene.Advise(scene.Command("find the clamp between (nft: tcp option maxseg size set) and raise it to %d", fits)))
	}
	if seen < sent {
		return gate.Pass("MSS %d of %s arrives as %d, which fits the path", sent, w.From, seen)
	}
	return gate.Pass("MSS %d of %s arrives at %s", seen, w.From, w.To)
}
