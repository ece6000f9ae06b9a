package nic

import (
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/knob"
)

// OffloadProposals are for what the adapter does for the CPU, or does wrongly.
func OffloadProposals() []advise.Rule {
	return []advise.Rule{
		{Cause: "broken-tso", Propose: brokenTSO},
		{Cause: "offloads-off", Propose: offloadsOffProposal},
		{Cause: "lro-forwarding", Propose: lroForwardingProposal},
		{Cause: "sender-cpu", Propose: offloadsOffProposal},
		{Cause: "receiver-cpu", Propose: offloadsOffProposal},
	}
}

// brokenTSO has the kernel split what the adapter splits wrongly: first TSO
// alone, then GSO too, for an adapter that gets more than one packet by that.
func brokenTSO(r advise.Request) []advise.Draft {
	h := r.Way.From
	face := r.Way.Face(h)
	if r.At == h {
		face = r.Here(h)
	}
	tso, gso := h.State(knob.TSO, face), h.State(knob.GSO, face)
	if face == "" || tso.Is("off") && gso.Is("off") {
		return nil
	}
	alone := advise.Change(h, knob.TSO, face, "off", "TSO off at %s of %s: the kernel cuts segments, not the adapter", face, h.Name).ForWay(r.Way).
		Bring(r.Way.Hope(), "measured in network namespaces, without delay and with 5 ms each way", "segments arrive again: 6.5 Mb/s to 10 Gb/s, or 0.9 Mb/s to 3.5 Gb/s on a long path, where this was the fault")
	both := alone.And(advise.Change(h, knob.GSO, face, "off", ""), "TSO and GSO off at %s of %s", face, h.Name)
	if tso.Is("off") {
		return []advise.Draft{advise.Change(h, knob.GSO, face, "off", "GSO off at %s of %s", face, h.Name).ForWay(r.Way)}
	}
	return []advise.Draft{alone, both}
}

// offloadsOffProposal switches on what is off, in the order in which one needs the
// other, as one change of the interface. A veth goes without GRO: what arrives
// there was never split.
func offloadsOffProposal(r advise.Request) []advise.Draft {
	if r.At == nil {
		return nil
	}
	face := r.Here(r.At)
	var off, fixed, kept []string
	for _, o := range advise.Offloads() {
		s := r.At.State(o.Knob, face)
		switch {
		case o.Knob == knob.LRO || !s.Is("off") || o.Knob == knob.GRO && r.At.Kind(face) == "veth":
		case r.TakesBack(r.At.Set(o.Knob, face, "on")):
			kept = append(kept, o.Knob)
		case s.Refused != "":
			fixed = append(fixed, o.Knob)
		default:
			off = append(off, o.Knob)
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
	d := advise.Draft{Title: strings.Join(off, ", ") + " on at " + face + " of " + r.At.Name}
	for _, id := range off {
		d.Settings = append(d.Settings, r.At.Set(id, face, "on"))
	}
	if r.Finding != nil {
		d = d.ForWay(r.Way)
	}
	return []advise.Draft{d.Bring(0, "measured between namespaces; docs/causes.md, offloads-off", "less work for each byte: 9.1 Gb/s without TSO and 3.4 with none, of 49 with all")}
}

// lroForwardingProposal switches LRO off, for a host that passes packets on.
func lroForwardingProposal(r advise.Request) []advise.Draft {
	if r.At == nil || r.Here(r.At) == "" || r.At.State(knob.LRO, r.Here(r.At)).Is("off") {
		return nil
	}
	return []advise.Draft{advise.Change(r.At, knob.LRO, r.Here(r.At), "off", "LRO off at %s of %s, which passes packets on", r.Here(r.At), r.At.Name)}
}
