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
)

// RingOverflow is the cause `ring-overflow`.
func RingOverflow() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "ring-overflow", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "the receive ring overflows", Judge: judgeRingOverflow,
			Seen:        "counters of packets without a free descriptor or buffer rose at the receiver in the measured time, or at its port of the virtual switch (likely at most if that counts only drops: esxtop %DRPRX)",
			Distinction: "ten drops or more, about as many as retransmissions, and the rate is what TCP reaches with such a loss: otherwise they are drops of other traffic; a low rate passes, bursts do not; a full thread of the hypervisor drops for lack of CPU time, not of descriptors", Fix: "enlarge the ring, or use more queues", Effect: "looks like loss on the path",
			Source: "Linux if_link.h: rx_missed_errors, rx_fifo_errors; drivers' rx_no_dma_resources, rx_out_of_buffer, pkts rx OOB; vmxnet3 rxSummary, net.droppedRx of ESXi", Brings: []string{"loss"},
		},
		Gates: []gate.Rule{
			{
				ID: "rings", Words: "ring descriptors buffers drops", Receives: true, Title: "Receive rings", About: "packets dropped for lack of a free descriptor (the largest of the system's counters), and the size of the ring against its maximum",
				Warns:  "100 packets or more were dropped, and more than one in 100 000 if the number of packets is known",
				Why:    "a burst longer than the ring is dropped in the host, and looks like loss on the path",
				Source: "Linux if_link.h, rx_missed_errors", Fix: "enlarge the ring; use more queues where it is at its maximum",
				Checklist: []string{"C-24", "C-37"}, Face: gateRings,
			},
		},
		Propose: []advise.Proposer{ProposeRingOverflow},
	}
}

// judgeRingOverflow joins what the receiver counted with what its virtual port counted.
func judgeRingOverflow(f *diagnose.Flow) *diagnose.Outcome {
	return hypervisor.Seconded(ringSeen(f), HypervisorRing(f))
}

// ringSeen judges what the receiver itself counted.
func ringSeen(f *diagnose.Flow) *diagnose.Outcome {
	e := f.Receiver
	n, counter, known := noRoom(e)
	n = max(n, float64(f.LostAt(measure.LossRing)))
	switch {
	case !known && n == 0:
		return e.Lacks("packets dropped by a full ring")
	case n == 0:
		return diagnose.No("the receiver's ring dropped no packet")
	}
	o := f.Dropped(e, n, counter, "the receiver's ring overflows: it dropped %.0f packets")
	return o.At(e.OnFace()).AddFix(e.Machine().Fix(longerRing(e.Adapter())))
}

// noRoom returns how many packets found the end's receive ring full, by the largest counter; several may count the
// same packets.
func noRoom(e *diagnose.End) (most float64, counter string, known bool) {
	n := e.NIC()
	if n == nil {
		return 0, "", false
	}
	if n.RxRing != nil {
		most, counter, known = float64(*n.RxRing), "rx_missed_errors and rx_fifo_errors", true
	}
	for name, count := range n.Driver {
		low := strings.ToLower(name)
		if slices.ContainsFunc(noRoomNames(), func(part string) bool { return strings.Contains(low, part) }) {
			known = true
			if float64(count) > most || float64(count) == most && name < counter {
				most, counter = float64(count), "ethtool -S "+name
			}
		}
	}
	return most, counter, known
}

// noRoomNames are parts of the names by which drivers count packets without a free descriptor or buffer.
func noRoomNames() []string {
	return []string{"rx_missed", "no_dma_resource", "out_of_buffer", "rx_nobuf", "rx_no_buffer", "rx oob", "imissed"}
}

// HypervisorRing judges packets that the hypervisor could not deliver because the receiver's ring was full. The
// guest itself may not see them.
func HypervisorRing(f *diagnose.Flow) *diagnose.Outcome {
	e := f.Receiver
	if e.Guest() == nil {
		return hypervisor.NoPlacement(e, "packets that the hypervisor dropped at its full ring")
	}
	p := e.Port()
	switch {
	case p.RingCounted && p.Ring == 0:
		return diagnose.No("the receiver's virtual port never reported a full ring")
	case !p.RingCounted && !p.Known && !p.Shares:
		return diagnose.Missing("packets that the hypervisor dropped at the receiver's full ring", p.Why)
	case !p.RingCounted && !hypervisor.Drops(p):
		return diagnose.No("the receiver's virtual port dropped no packet")
	case !p.RingCounted && hypervisor.WorkerOutcome(e) != nil:
		return diagnose.Missing("whether the receiver's ring was full, or the thread that fills it", "its virtual port counts only drops")
	}
	n, at := p.Ring, p.RingAt
	if !p.RingCounted {
		n, at = p.Dropped, p.At
	}
	full := " reported it full %.0f times"
	if at.Counter == measure.CounterNoBuffer {
		full = " had no buffer for %.0f packets"
	}
	o := f.Dropped(e, n, at.Native, "the receiver's ring overflows: its port at "+hypervisor.Verbatim(hypervisor.SwitchName(e))+full)
	if d := f.Cell.Datagrams; f.IsUDP() && p.RingCounted && d != nil && d.Lost >= diagnose.FewEvents && n > diagnose.OfRetransmit*float64(d.Lost) {
		o.Confidence = measure.Certain
	}
	if p.RingCounted {
		unit := "" // times
		if at.Counter == measure.CounterNoBuffer {
			unit = "packets"
		}
		o.Evidence[0] = diagnose.Above(hypervisor.GaugeEvidence(at, e.Name, n, unit), 0)
	} else {
		o.Text = fmt.Sprintf("packets for the receiver were dropped at %s, usually because the ring is full", hypervisor.SwitchName(e))
		o.Evidence = hypervisor.Proofs(p, e)
		if o.Confidence == measure.Certain { // the virtual switch is not ruled out
			o.Confidence = measure.Likely
		}
	}
	where := e.OnFace()
	where.Below = hypervisor.SwitchName(e)
	return o.At(where).AddFix(e.Machine().Fix(longerRing(e.Adapter())))
}

func gateRings(f *scene.Face) *gate.Finding {
	if !f.Device() {
		return nil
	}
	drops, name := f.Counted(scene.NoRoom)
	packets := f.Received()
	many := drops >= 100 && (packets == 0 || float64(drops) > 1e-5*float64(packets))
	size, most := 0, 0
	if f.Rings != nil {
		size, most = f.Rings.RX, f.Rings.RXMax
	}
	switch {
	case many && most > size && size > 0:
		return gate.Warn("%d packets dropped by the ring of %s (%s), which has %d of %d descriptors", drops, f.Name, name, size, most).Do(longerRing(f))
	case many && size > 0:
		return gate.Warn("%d packets dropped by the ring of %s (%s), which has its maximum of %d descriptors", drops, f.Name, name, size).
			Because("the ring has its maximum size: CPUs must empty it faster, with more queues or less work per packet")
	case many:
		return gate.Warn("%d packets dropped by the ring of %s (%s)", drops, f.Name, name)
	case f.Rings == nil && scene.IsTrue(f.Nominal):
		return nil // some virtual devices have no such setting
	case f.Rings == nil:
		return gate.Missing(f, "rings of "+f.Name, "rings")
	case f.Uncounted(scene.NoRoom) != "":
		return gate.NotChecked("packets dropped by the ring of "+f.Name, f.Uncounted(scene.NoRoom))
	}
	return gate.Pass("the ring of %s has %d of %d descriptors, and dropped %d packets", f.Name, size, max(size, most), drops)
}

// longerRing gives a receive queue the maximum number of descriptors.
func longerRing(f *scene.Face) scene.Fix {
	switch {
	case f.Rings != nil && f.Rings.RXMax > f.Rings.RX:
		return f.Set(knob.RXRing, fmt.Sprint(f.Rings.RXMax))
	case f.Rings != nil:
		return scene.Advise("use more queues or a faster CPU: the ring has its maximum size")
	}
	return scene.Advise("enlarge the receive ring (ethtool -G), or use more queues")
}

// ProposeRingOverflow gives the receive ring more descriptors.
func ProposeRingOverflow(r advise.Request) []advise.Draft {
	h := r.Receiving()
	face := r.Here(h)
	s := h.State(knob.RXRing, face)
	if !s.Known || s.Most() <= s.Number() {
		return nil
	}
	return []advise.Draft{advise.Change(h, knob.RXRing, face, fmt.Sprint(s.Most()), "receive ring of %d descriptors at %s of %s, instead of %d", s.Most(), face, h.Name, s.Number())}
}
