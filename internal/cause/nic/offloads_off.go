package nic

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/knob"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// OffloadsOff is the cause `offloads-off`.
func OffloadsOff() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "offloads-off", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "offloads are off: the CPU handles every packet", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(judgeOffloadsOff) },
			Seen:        "TSO, GSO, GRO or checksum offload is off, a CPU is full, and packets are no longer than the MTU; an offload of the ESXi host is off (possible)",
			Distinction: "with them on, the rate rises and the kernel passes longer packets to the adapter", Fix: "switch them on", Effect: "9 of 49 Gb/s without TSO between namespaces, 3.4 with all off",
			Source: "ethtool -k; methods.md, formula 14; gate offloads", Brings: []string{"sender-cpu", "receiver-cpu", "single-flow"},
		},
		Urgent: 7,
		Gates: []gate.Rule{
			{ID: "offloads", Words: "tso gso gro lso rsc lro sg checksum checksums offload segmentation", Title: "Offloads", About: "segmentation (TSO, GSO), receive offload (GRO), scatter-gather and checksum offload of the interface and of those below it",
				Warns:  "one is off; for a link of up to 2.5 Gb/s only GSO and GRO count, for a veth all but GRO",
				Why:    "without TSO the CPU builds every packet: 9 of 49 Gb/s between namespaces, 3.4 with all off",
				Source: "measured; C-22: checksums 5 to 15% of the CPU, LRO 40%", Fix: "switch them on", Checklist: []string{"C-22", "C-23", "C-24", "B-19"}, Face: gateOffloads},
		},
		Propose: []advise.Proposer{ProposeOffloadsOff},
	}
}

func judgeOffloadsOff(e *diagnose.End) *diagnose.Outcome {
	gates := hypervisor.Conditions(e.Flow, "offloads-off", e.Name)
	if len(gates) == 0 {
		return hypervisor.Best(HostOffloads(e), hypervisor.GateOutcome(e, "offloads-off"))
	}
	o := hypervisor.Condition(e, gates[0])
	o.Text = fmt.Sprintf("the %s's CPU does the work of the offloads that are off (%s)", e.Place, gates[0].Fact)
	length, known := e.MeanPacket()
	mtu := 0.0
	if e.Face != nil && e.Face.MTU != nil && *e.Face.MTU > 0 {
		mtu = float64(*e.Face.MTU)
	}
	if known && mtu > 0 && length > 2*mtu {
		return diagnose.No("packets of the %s are %s long on average: offloads split or merge them", e.Place, unit.Size(int64(length)))
	}
	if !hypervisor.WorksFully(e) && !(e.Flow.IsAll() == nil && e.Flow.OnSameCPUs() && e.Other().IsFull()) {
		return o.MarkNotBinding()
	}
	if !bears(gates[0].Off, e.Sends()) && !e.Flow.OnSameCPUs() {
		return o.MarkNotBinding() // only the cost of acknowledgements
	}
	o.Confidence = measure.Likely
	if known && mtu > 0 && length < packetRoom*mtu {
		o.By(diagnose.UnderBar(e.Proof("mean packet size at the interface", length, "bytes"), packetRoom*mtu))
		thread := e.Load().Thread || e.Flow.OnSameCPUs() && e.Other().Load().Thread
		if e.Sends() && thread && !gates[0].Fixed && hasAny(gates[0].Off, knob.TSO, knob.GSO) { // splitting long packets is a sender's largest cost
			o.Confidence = measure.Certain
		}
	}
	return o
}

// HostOffloads judges switches of ESXi that make its CPU do the work of a NIC or of the virtual switch; nil if
// none is off.
func HostOffloads(e *diagnose.End) *diagnose.Outcome {
	h := hypervisor.HypervisorHost(e)
	if h == nil || e.Guest() == nil || !e.OnESXi() {
		return nil
	}
	options := []string{"UseHwTSO", "UseHwTSO6"}
	if !e.Sends() {
		options = []string{"Vmxnet3HwLRO", "Vmxnet3SwLRO"}
	}
	for _, name := range options {
		if v, ok := hypervisor.Setting(h.Facts, name); ok && hypervisor.IsOff(v) {
			return diagnose.Possible("an offload of %s is off: %s", hypervisor.HostName(e), name).By(measure.Proof{EndPoint: e.Name, Counter: "advanced setting " + name + " of " + hypervisor.HostName(e), Note: "its default is 1"}).
				At(hypervisor.AtHost(e, hypervisor.HostName(e))).MarkNotBinding().AddFix(&measure.Fix{EndPoint: hypervisor.HostName(e), Platform: "esxi", Commands: []string{fmt.Sprintf("esxcli system settings advanced set -o /Net/%s -i 1", name)},
				Risk: "the setting affects every guest of the host"})
		}
	}
	return nil
}

// bears reports whether a disabled offload affects the data at a sending, or at a receiving end. Unknown names may
// affect both.
func bears(off []string, sends bool) bool {
	sending, receiving := hasAny(off, knob.TSO, knob.GSO, knob.ScatterGather, knob.TXChecksum), hasAny(off, knob.GRO, knob.RXChecksum)
	return sending && sends || receiving && !sends || !sending && !receiving
}

func hasAny(all []string, names ...string) bool {
	return slices.ContainsFunc(all, func(s string) bool { return slices.Contains(names, s) })
}

// packetRoom is the ratio to the MTU below which a mean packet was not merged.
const packetRoom = 1.1

func gateOffloads(f *scene.Face) *gate.Finding {
	if !f.Device() && f.KindName() != "veth" && !scene.IsLoopback(f.Interface) {
		return nil // VLANs, bonds and tunnels have those of the interfaces below
	}
	if f.Offloads == nil {
		return gate.Missing(f, "offloads of "+f.Name, "offloads")
	}
	var off, fixed, offWords, fixedWords []string
	seen, set := 0, 0
	for _, o := range scene.Offloads() {
		on, known := f.Offloads[knob.Offload(o.Knob)]
		if known {
			seen++
		}
		if on {
			set++
		}
		switch {
		case !known || on:
		case o.Knob == knob.GRO && f.KindName() == "veth": // off by default: packets from a veth were never split
		case !o.Soft && f.Speed() > 0 && f.Speed() <= SlowLink:
		case knob.IsFixed(f.Interface, o.Knob):
			fixed, fixedWords = append(fixed, o.Knob), append(fixedWords, o.Words)
		default:
			off, offWords = append(off, o.Knob), append(offWords, o.Words)
		}
	}
	fix, asKept := off, ""
	if kept := f.KeptOff(off); len(kept) > 0 {
		asKept = ", because a tuning has kept " + strings.Join(short(kept), ", ")
		if len(kept) < len(off) {
			fix = slices.DeleteFunc(slices.Clone(off), func(id string) bool { return slices.Contains(kept, id) })
		}
	}
	switch {
	case seen == 0:
		return gate.Missing(f, "offloads of "+f.Name, "offloads")
	case len(off) == 1 && off[0] == knob.GRO:
		return gate.Warn("GRO of %s: off%s", f.Name, asKept).Because("without GRO the stack handles every packet singly: up to 40%% of rate and CPU").Off(off, false).Do(offloadsOn(f, off))
	case len(off) > 0:
		return gate.Warn("%s of %s: off%s", strings.Join(offWords, ", "), f.Name, asKept).Off(off, false).Do(offloadsOn(f, fix))
	case len(fixed) > 0 && f.Speed() == 0 && !f.Device():
		return gate.Pass("%s of %s: off, not supported by this kind of interface", strings.Join(fixedWords, ", "), f.Name)
	case len(fixed) > 0:
		return gate.Warn("%s of %s: off, not supported by its driver", strings.Join(fixedWords, ", "), f.Name).Off(fixed, true)
	}
	return gate.Pass("%d of %d offloads of %s are on", set, seen, f.Name)
}

// short returns the names of offloads for ethtool.
func short(ids []string) (names []string) {
	for _, id := range ids {
		names = append(names, knob.Short(id))
	}
	return names
}

// offloadsOn switches offloads on, prerequisites first.
func offloadsOn(f *scene.Face, ids []string) (r scene.Fix) {
	for _, id := range knob.Offloads() {
		if slices.Contains(ids, id) {
			r = r.And(f.Set(id, "on"))
		}
	}
	return r
}

// ProposeOffloadsOff switches on what is off, prerequisites first, as one change of the interface. A veth does
// without GRO: packets that arrive there were never split.
func ProposeOffloadsOff(r advise.Request) []advise.Draft {
	if r.At == nil {
		return nil
	}
	face := r.Here(r.At)
	var off, fixed, kept []string
	for _, id := range knob.Offloads() {
		s := r.At.State(id, face)
		switch {
		case id == knob.LRO || !s.Is("off") || id == knob.GRO && r.At.FaceOf(face).KindName() == "veth":
		case r.TakesBack(r.At.Setting(id, face, "on")):
			kept = append(kept, id)
		case s.Refused != "":
			fixed = append(fixed, id)
		default:
			off = append(off, id)
		}
	}
	if len(off) == 0 {
		off = fixed // then the proposal says why not
	}
	if len(off) == 0 {
		off = kept // dropped, so that no fix in words asks for it either
	}
	if len(off) == 0 {
		return nil
	}
	d := advise.Draft{Title: strings.Join(off, ", ") + " on at " + face + " of " + r.At.Name}
	for _, id := range off {
		d.Settings = append(d.Settings, r.At.Setting(id, face, "on"))
	}
	if r.Finding != nil {
		d = d.ForDirection(r.Direction)
	}
	return []advise.Draft{d.Bring(0, "measured between namespaces; docs/causes.md, offloads-off", "less CPU per byte: 9.1 Gb/s without TSO and 3.4 with none, of 49 with all")}
}
