package mtu

import (
	"fmt"

	"thru/internal/cause/gate"
)

// Sizes of packets.
const (
	jumboFrom     = 8000  // a claimed MTU from here on means jumbo frames
	largestPacket = 65535 // of IP (RFC 791): an interface may claim 65536
	jumboFilled   = 8972  // payload that fills MTU 9000: less 20 of IP and 8 of UDP or ICMP
)

// MtuGates judge what size of packet passes.
func MtuGates() []gate.Rule {
	return []gate.Rule{
		{ID: "mtu-path", Title: "MTU of the path",
			About:  "the largest packet that passes with DF, searched in band, against what the sender claims; where it claims jumbo frames, whether 8972 bytes of payload pass",
			Warns:  "less passes than the sender claims, but a router says so, the MSS keeps TCP below it, or the sender probes for it",
			Fails:  "less passes, nobody says so, and TCP would send more: a black hole, or jumbo frames that one end or a switch between does not take",
			Why:    "full segments vanish without a word: the handshake passes, then TCP stalls near 0 Mb/s",
			Source: "RFC 8899, RFC 2923; S-03, C-21; measured: 0 Mb/s, 34 to 72 with tcp_mtu_probing", Remedy: "one MTU everywhere; until then the MTU that passes",
			Cause: "mtu-black-hole", Checklist: []string{"S-03", "C-21", "C-20", "B-19"}, Way: mtuPath},
		{ID: "mtu-agreement", Title: "MTU of both ends", About: "the MTU of the interfaces by which the ends reach each other",
			Warns:  "they differ, and no router lies between",
			Why:    "the end with the larger MTU sends what the other drops: UDP and any protocol without an MSS stalls",
			Source: "C-20, C-21", Remedy: "the same MTU at both ends", Cause: "jumbo-mismatch", Checklist: []string{"C-20", "C-21"}, Path: mtuAgreement},
	}
}

func mtuPath(w *gate.Way) *gate.Finding {
	m := w.MTU
	if m == nil {
		return w.Missing("largest packet that passes", "mtu")
	}
	if m.Bytes <= 0 {
		return gate.NotChecked("largest packet that passes", "no datagram of the search arrived")
	}
	switch {
	case m.Claimed <= 0 || m.Bytes >= min(m.Claimed, largestPacket) || m.Local:
		return mtuHolds(w)
	case m.Router != nil && !m.Silent:
		return gate.Warn("MTU %d at %s; %d bytes pass with DF, and a router says %d", m.Claimed, w.From, m.Bytes, *m.Router).
			Because("path MTU discovery works; UDP above %d bytes is split or refused", m.Bytes)
	case !m.Silent:
		return gate.Warn("MTU %d at %s; %d bytes pass with DF", m.Claimed, w.From, m.Bytes).
			Because("segments of up to %d bytes pass, larger ones are lost", m.Bytes)
	}
	return swallowed(w)
}

// swallowed judges a path on which larger packets vanish without a word.
func swallowed(w *gate.Way) *gate.Finding {
	m, peer := w.MTU, far(w)
	claims, do, cause := fmt.Sprintf("MTU %d at %s", m.Claimed, w.From), blackHole(w), ""
	// An interface may take a VLAN tag beyond its MTU, and so a packet that is 4 bytes larger.
	if peer > 0 && peer < m.Claimed && m.Bytes <= peer+4 {
		claims += fmt.Sprintf(", %d at %s", peer, w.To)
		do, cause = smallerMTU(w, min(fits(w), peer)), "jumbo-mismatch"
	}
	switch {
	case segment(w) > 0 && segment(w) <= m.Bytes:
		return gate.Warn("%s: %d bytes pass with DF, larger ones vanish; the MSS keeps TCP to %d", claims, m.Bytes, segment(w)).
			Because("TCP passes; UDP and other protocols above %d bytes are lost without a word", m.Bytes).As(cause).Do(do)
	case probes(w):
		return gate.Warn("%s: %d bytes pass with DF, larger ones vanish; %s probes for it", claims, m.Bytes, w.From).
			Because("TCP stalls at first, then finds what passes: 34 to 72 Mb/s at the start").As(cause).Do(do)
	case cause != "":
		return gate.Fail("%s: %d bytes pass with DF, larger ones vanish", claims, m.Bytes).As(cause).Do(do)
	case peer >= m.Claimed && m.Claimed >= jumboFrom:
		return gate.Fail("MTU %d at %s and %s, but only %d bytes pass with DF: nothing between says why", m.Claimed, w.From, w.To, m.Bytes).
			As("jumbo-mismatch").Do(smallerMTU(w, fits(w)))
	}
	return gate.Fail("%s: %d bytes pass with DF, larger ones vanish and no router says so", claims, m.Bytes).Do(do)
}

// mtuHolds words that what is claimed passes.
func mtuHolds(w *gate.Way) *gate.Finding {
	m := w.MTU
	switch {
	case m.Jumbo != nil && *m.Jumbo:
		return gate.Pass("%d bytes of payload pass with DF; MTU %d at %s", jumboFilled, max(m.Claimed, m.Bytes), w.From)
	case m.Claimed <= 0:
		return gate.Pass("%d bytes pass with DF; what %s claims is not known", m.Bytes, w.From)
	}
	return gate.Pass("%d bytes pass with DF, MTU %d at %s", m.Bytes, m.Claimed, w.From)
}

// far is the MTU of the receiving end's interface; 0 where it is not known.
func far(w *gate.Way) int {
	if m := w.Other().MTU; m != nil && m.Claimed > 0 {
		return m.Claimed
	}
	if h := w.Scene.Host(w.To); h != nil {
		return mtu(h)
	}
	return 0
}

// mtu of the host's interface towards the other end, as the route knows it; 0 unknown.
func mtu(h *gate.Host) int {
	if r := h.End.Route; r != nil && r.MTU > 0 {
		return r.MTU
	}
	if i := h.Top(); i != nil && i.MTU != nil && *i.MTU > 0 {
		return *i.MTU
	}
	return 0
}

// linkMTU is that of the interface, whatever a route holds its packets to; 0 unknown.
func linkMTU(h *gate.Host) int {
	if i := h.Top(); i != nil && i.MTU != nil && *i.MTU > 0 {
		return *i.MTU
	}
	return mtu(h)
}

// vlanTag is what an interface may take beyond its MTU.
const vlanTag = 4

// fits is what passes in both directions: one MTU for both ends. 1504 is 1500
// with room for a tag, which the next interface may not have.
func fits(w *gate.Way) int {
	least := w.MTU.Bytes
	if m := w.Other().MTU; m != nil && m.Bytes > 0 {
		least = min(least, m.Bytes)
	}
	if (least-vlanTag)%100 == 0 {
		return least - vlanTag
	}
	return least
}

// segment is the largest packet that TCP sends this way: what the other end's
// MSS lets it; 0 where that is not known.
func segment(w *gate.Way) int {
	if s := w.Other().Seen; s != nil && s.MSS != nil && *s.MSS > 0 {
		return *s.MSS + w.Headers()
	}
	return 0
}

// probes tells whether the sender finds out what passes by itself (RFC 4821).
func probes(w *gate.Way) bool {
	h := w.Sender()
	if h == nil {
		return false
	}
	v, ok := h.Sysctl("net.ipv4.tcp_mtu_probing")
	return ok && v != "0"
}

// smallerMTU is for a size that the sender claims and the path does not take.
func smallerMTU(w *gate.Way, fits int) gate.Remedy {
	h := w.Sender()
	if h == nil || h.Top() == nil {
		return gate.Advise("the same MTU at both ends and on every switch between")
	}
	return gate.At(h, gate.SetMTU(h.Top(), fits)).Saying(fmt.Sprintf("the same MTU at both ends and on every switch between; until then MTU %d", fits))
}

// blackHole is for a path that swallows what is too large.
func blackHole(w *gate.Way) gate.Remedy {
	words := "let ICMP (fragmentation needed, packet too big) pass every firewall between"
	if h := w.Sender(); h != nil && h.Top() != nil {
		words += fmt.Sprintf("; until then MTU %d", fits(w))
		if probing := gate.MtuProbing(h).Lines; len(probing) > 0 {
			words += ", or for TCP alone `" + probing[0] + "`"
		}
	}
	return smallerMTU(w, fits(w)).Saying(words)
}

func mtuAgreement(sc *gate.Scene) *gate.Finding {
	p := sc.Subject.Path
	a, b := sc.Host(p.From), sc.Host(p.To)
	if a == nil || b == nil || sc.OnOneMachine() || linkMTU(a) == 0 || linkMTU(b) == 0 {
		return nil // the search by itself says what passes
	}
	routed := a.End.Route != nil && a.End.Route.Gateway != "" || b.End.Route != nil && b.End.Route.Gateway != ""
	switch {
	case linkMTU(a) == linkMTU(b):
		return gate.Pass("MTU %d at both ends", linkMTU(a))
	case routed:
		return gate.Pass("MTU %d at %s, %d at %s, with a router between", linkMTU(a), a.Name, linkMTU(b), b.Name)
	}
	small, large := a, b
	if linkMTU(a) > linkMTU(b) {
		small, large = b, a
	}
	f := gate.Warn("MTU %d at %s, %d at %s", linkMTU(a), a.Name, linkMTU(b), b.Name)
	if i := large.Top(); i != nil {
		f.Do(gate.At(large, gate.SetMTU(i, linkMTU(small))))
	}
	return f
}
