package advise

import (
	"strings"

	"thru/internal/knob"
)

// offloadRules are for what the adapter does for the CPU, or does wrongly.
func offloadRules() []rule {
	return []rule{
		{"broken-tso", brokenTSO},
		{"offloads-off", offloadsOff},
		{"lro-forwarding", lroForwarding},
		{"sender-cpu", offloadsOff},
		{"receiver-cpu", offloadsOff},
	}
}

// brokenTSO has the kernel split what the adapter splits wrongly: first TSO
// alone, then GSO too, for an adapter that gets more than one packet by that.
func brokenTSO(r request) []draft {
	h := r.way.from
	face := r.way.face(h)
	if r.at == h {
		face = r.here(h)
	}
	tso, gso := h.state(knob.TSO, face), h.state(knob.GSO, face)
	if face == "" || tso.is("off") && gso.is("off") {
		return nil
	}
	alone := change(h, knob.TSO, face, "off", "TSO off at %s of %s: the kernel cuts segments, not the adapter", face, h.name).forWay(r.way).
		bring(r.way.hope(), "measured in network namespaces, without delay and with 5 ms each way", "segments arrive again: 6.5 Mb/s to 10 Gb/s, or 0.9 Mb/s to 3.5 Gb/s on a long path, where this was the fault")
	both := alone.and(change(h, knob.GSO, face, "off", ""), "TSO and GSO off at %s of %s", face, h.name)
	if tso.is("off") {
		return []draft{change(h, knob.GSO, face, "off", "GSO off at %s of %s", face, h.name).forWay(r.way)}
	}
	return []draft{alone, both}
}

// offloadsOff switches on what is off, in the order in which one needs the
// other, as one change of the interface. A veth goes without GRO: what arrives
// there was never split.
func offloadsOff(r request) []draft {
	if r.at == nil {
		return nil
	}
	face := r.here(r.at)
	var off, fixed, kept []string
	for _, o := range offloads() {
		s := r.at.state(o.knob, face)
		switch {
		case o.knob == knob.LRO || !s.is("off") || o.knob == knob.GRO && r.at.kind(face) == "veth":
		case r.takesBack(r.at.set(o.knob, face, "on")):
			kept = append(kept, o.knob)
		case s.refused != "":
			fixed = append(fixed, o.knob)
		default:
			off = append(off, o.knob)
		}
	}
	if len(off) == 0 {
		off = fixed // then it is said why not
	}
	if len(off) == 0 {
		off = kept // which is dropped, so that no remedy in words asks for it either
	}
	if len(off) == 0 {
		return nil
	}
	d := draft{title: strings.Join(off, ", ") + " on at " + face + " of " + r.at.name}
	for _, id := range off {
		d.settings = append(d.settings, r.at.set(id, face, "on"))
	}
	if r.finding != nil {
		d = d.forWay(r.way)
	}
	return []draft{d.bring(0, "measured between namespaces; docs/causes.md, offloads-off", "less work for each byte: 9.1 Gb/s without TSO and 3.4 with none, of 49 with all")}
}

// lroForwarding switches LRO off, for a host that passes packets on.
func lroForwarding(r request) []draft {
	if r.at == nil || r.here(r.at) == "" || r.at.state(knob.LRO, r.here(r.at)).is("off") {
		return nil
	}
	return []draft{change(r.at, knob.LRO, r.here(r.at), "off", "LRO off at %s of %s, which passes packets on", r.here(r.at), r.at.name)}
}
