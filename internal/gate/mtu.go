package gate

import "fmt"

// Sizes of packets.
const (
	jumboFrom     = 8000  // a claimed MTU from here on means jumbo frames
	largestPacket = 65535 // of IP (RFC 791): an interface may claim 65536
	jumboFilled   = 8972  // payload that fills MTU 9000: less 20 of IP and 8 of UDP or ICMP
)

// mtuRules judge what size of packet passes.
func mtuRules() []Rule {
	return []Rule{
		{ID: "mtu-path", Title: "MTU of the path",
			About:  "the largest packet that passes with DF, searched in band, against what the sender claims; where it claims jumbo frames, whether 8972 bytes of payload pass",
			Warns:  "less passes than the sender claims, but a router says so, the MSS keeps TCP below it, or the sender probes for it",
			Fails:  "less passes, nobody says so, and TCP would send more: a black hole, or jumbo frames that one end or a switch between does not take",
			Why:    "full segments vanish without a word: the handshake passes, then TCP stalls near 0 Mb/s",
			Source: "RFC 8899, RFC 2923; S-03, C-21; measured: 0 Mb/s, 34 to 72 with tcp_mtu_probing", Remedy: "one MTU everywhere; until then the MTU that passes",
			Cause: "mtu-black-hole", Checklist: []string{"S-03", "C-21", "C-20", "B-19"}, way: mtuPath},
		{ID: "mtu-agreement", Title: "MTU of both ends", About: "the MTU of the interfaces by which the ends reach each other",
			Warns:  "they differ, and no router lies between",
			Why:    "the end with the larger MTU sends what the other drops: UDP and any protocol without an MSS stalls",
			Source: "C-20, C-21", Remedy: "the same MTU at both ends", Cause: "jumbo-mismatch", Checklist: []string{"C-20", "C-21"}, path: mtuAgreement},
	}
}

func mtuPath(w *way) *finding {
	m := w.MTU
	if m == nil {
		return w.missing("largest packet that passes", "mtu")
	}
	if m.Bytes <= 0 {
		return notChecked("largest packet that passes", "no datagram of the search arrived")
	}
	switch {
	case m.Claimed <= 0 || m.Bytes >= min(m.Claimed, largestPacket) || m.Local:
		return w.mtuHolds()
	case m.Router != nil && !m.Silent:
		return warn("MTU %d at %s; %d bytes pass with DF, and a router says %d", m.Claimed, w.from, m.Bytes, *m.Router).
			because("path MTU discovery works; UDP above %d bytes is split or refused", m.Bytes)
	case !m.Silent:
		return warn("MTU %d at %s; %d bytes pass with DF", m.Claimed, w.from, m.Bytes).
			because("segments of up to %d bytes pass, larger ones are lost", m.Bytes)
	}
	return w.swallowed()
}

// swallowed judges a path on which larger packets vanish without a word.
func (w *way) swallowed() *finding {
	m, peer := w.MTU, w.far()
	claims, do, cause := fmt.Sprintf("MTU %d at %s", m.Claimed, w.from), w.blackHole(), ""
	// An interface may take a VLAN tag beyond its MTU, and so a packet that is 4 bytes larger.
	if peer > 0 && peer < m.Claimed && m.Bytes <= peer+4 {
		claims += fmt.Sprintf(", %d at %s", peer, w.to)
		do, cause = w.smallerMTU(min(w.fits(), peer)), "jumbo-mismatch"
	}
	switch {
	case w.segment() > 0 && w.segment() <= m.Bytes:
		return warn("%s: %d bytes pass with DF, larger ones vanish; the MSS keeps TCP to %d", claims, m.Bytes, w.segment()).
			because("TCP passes; UDP and other protocols above %d bytes are lost without a word", m.Bytes).as(cause).do(do)
	case w.probes():
		return warn("%s: %d bytes pass with DF, larger ones vanish; %s probes for it", claims, m.Bytes, w.from).
			because("TCP stalls at first, then finds what passes: 34 to 72 Mb/s at the start").as(cause).do(do)
	case cause != "":
		return fail("%s: %d bytes pass with DF, larger ones vanish", claims, m.Bytes).as(cause).do(do)
	case peer >= m.Claimed && m.Claimed >= jumboFrom:
		return fail("MTU %d at %s and %s, but only %d bytes pass with DF: nothing between says why", m.Claimed, w.from, w.to, m.Bytes).
			as("jumbo-mismatch").do(w.smallerMTU(w.fits()))
	}
	return fail("%s: %d bytes pass with DF, larger ones vanish and no router says so", claims, m.Bytes).do(do)
}

// mtuHolds words that what is claimed passes.
func (w *way) mtuHolds() *finding {
	m := w.MTU
	switch {
	case m.Jumbo != nil && *m.Jumbo:
		return pass("%d bytes of payload pass with DF; MTU %d at %s", jumboFilled, max(m.Claimed, m.Bytes), w.from)
	case m.Claimed <= 0:
		return pass("%d bytes pass with DF; what %s claims is not known", m.Bytes, w.from)
	}
	return pass("%d bytes pass with DF, MTU %d at %s", m.Bytes, m.Claimed, w.from)
}

// far is the MTU of the receiving end's interface; 0 where it is not known.
func (w *way) far() int {
	if m := w.other().MTU; m != nil && m.Claimed > 0 {
		return m.Claimed
	}
	if h := w.scene.host(w.to); h != nil {
		return h.mtu()
	}
	return 0
}

// mtu of the host's interface towards the other end, as the route knows it; 0 unknown.
func (h *host) mtu() int {
	if r := h.end.Route; r != nil && r.MTU > 0 {
		return r.MTU
	}
	if i := h.top(); i != nil && i.MTU != nil && *i.MTU > 0 {
		return *i.MTU
	}
	return 0
}

// linkMTU is that of the interface, whatever a route holds its packets to; 0 unknown.
func (h *host) linkMTU() int {
	if i := h.top(); i != nil && i.MTU != nil && *i.MTU > 0 {
		return *i.MTU
	}
	return h.mtu()
}

// vlanTag is what an interface may take beyond its MTU.
const vlanTag = 4

// fits is what passes in both directions: one MTU for both ends. 1504 is 1500
// with room for a tag, which the next interface may not have.
func (w *way) fits() int {
	least := w.MTU.Bytes
	if m := w.other().MTU; m != nil && m.Bytes > 0 {
		least = min(least, m.Bytes)
	}
	if (least-vlanTag)%100 == 0 {
		return least - vlanTag
	}
	return least
}

// segment is the largest packet that TCP sends this way: what the other end's
// MSS lets it; 0 where that is not known.
func (w *way) segment() int {
	if s := w.other().seen; s != nil && s.MSS != nil && *s.MSS > 0 {
		return *s.MSS + w.headers()
	}
	return 0
}

// probes tells whether the sender finds out what passes by itself (RFC 4821).
func (w *way) probes() bool {
	h := w.sender()
	if h == nil {
		return false
	}
	v, ok := h.sysctl("net.ipv4.tcp_mtu_probing")
	return ok && v != "0"
}

// smallerMTU is for a size that the sender claims and the path does not take.
func (w *way) smallerMTU(fits int) remedy {
	h := w.sender()
	if h == nil || h.top() == nil {
		return advise("the same MTU at both ends and on every switch between")
	}
	return at(h, setMTU(h.top(), fits)).saying(fmt.Sprintf("the same MTU at both ends and on every switch between; until then MTU %d", fits))
}

// blackHole is for a path that swallows what is too large.
func (w *way) blackHole() remedy {
	words := "let ICMP (fragmentation needed, packet too big) pass every firewall between"
	if h := w.sender(); h != nil && h.top() != nil {
		words += fmt.Sprintf("; until then MTU %d", w.fits())
		if probing := mtuProbing(h).lines; len(probing) > 0 {
			words += ", or for TCP alone `" + probing[0] + "`"
		}
	}
	return w.smallerMTU(w.fits()).saying(words)
}

func mtuAgreement(sc *scene) *finding {
	p := sc.subject.Path
	a, b := sc.host(p.From), sc.host(p.To)
	if a == nil || b == nil || sc.onOneMachine() || a.linkMTU() == 0 || b.linkMTU() == 0 {
		return nil // the search by itself says what passes
	}
	routed := a.end.Route != nil && a.end.Route.Gateway != "" || b.end.Route != nil && b.end.Route.Gateway != ""
	switch {
	case a.linkMTU() == b.linkMTU():
		return pass("MTU %d at both ends", a.linkMTU())
	case routed:
		return pass("MTU %d at %s, %d at %s, with a router between", a.linkMTU(), a.name, b.linkMTU(), b.name)
	}
	small, large := a, b
	if a.linkMTU() > b.linkMTU() {
		small, large = b, a
	}
	f := warn("MTU %d at %s, %d at %s", a.linkMTU(), a.name, b.linkMTU(), b.name)
	if i := large.top(); i != nil {
		f.do(at(large, setMTU(i, small.linkMTU())))
	}
	return f
}
