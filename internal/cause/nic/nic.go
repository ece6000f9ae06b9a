// Package nic holds the causes of adapters and links: queues, interrupts, offloads,
// rings, drivers, speed, cables.
package nic

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/below"
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// NicCauses are the causes of network interfaces and how CPUs serve them.
func NicCauses() []diagnose.Rule {
	cpu := []string{"sender-cpu", "receiver-cpu", "single-flow"}
	return []diagnose.Rule{
		{
			Cause: "irq-one-cpu", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "one CPU takes all packets of the interface", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(OneCPU) },
			Seen:  "of several flows nearly all interrupts of the interface, or all received packets, are on one CPU, which is full of them, while others have time",
			Apart: "interrupts of each queue on a CPU of its own; one flow has one queue by design, and is single-flow", Mends: "smp_affinity_list, or RPS", Effect: "up to as many times as there are CPUs",
			Source: "/proc/interrupts; /proc/net/softnet_stat; Linux scaling.rst", Brings: []string{"receiver-cpu", "ring-overflow", "backlog-overflow", "slow-reader"},
		},
		{
			Cause: "offloads-off", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "the CPU makes every packet itself", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(offloadsOff) },
			Seen:  "TSO, GSO, GRO or checksums are off, a CPU is full, and packets are no longer than the MTU; an ESXi host's own are off (possible)",
			Apart: "switch them on: the rate rises, the packets that the kernel hands over are longer", Mends: "switch them on", Effect: "9 of 49 Gb/s without TSO between namespaces, 3.4 with all off",
			Source: "ethtool -k; methods.md, formula 14; gate offloads", Brings: cpu,
		},
		{
			Cause: "emulated-nic", TCP: true, UDP: true, Title: "the adapter is emulated", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(emulatedCause) },
			Seen:  "a driver or device of an adapter that hypervisors imitate, in a guest, or the model that the hypervisor names; likely where a CPU is full",
			Apart: "a paravirtual adapter beside it", Mends: "vmxnet3 or virtio", Effect: "1.36 against 2.31 Gb/s (S-02)",
			Source: "gate nic-model; C-26", Brings: cpu,
		},
		{
			Cause: "too-few-queues", TCP: true, UDP: true, Title: "one queue for several CPUs", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(FewQueues) },
			Seen:  "one receive queue where more are possible; likely where a CPU is full of received packets of several flows; possible where the aggregate falls as end points are added (A-05)",
			Apart: "more queues and several streams", Mends: "as many queues as CPUs", Effect: "linear until the CPUs are full",
			Source: "ethtool -l; gate queues; C-22", Brings: []string{"irq-one-cpu", "receiver-cpu", "ring-overflow"},
		},
		{
			Cause: "rss-not-spreading", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "all flows go to one queue", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(notSpreading) },
			Seen:  "of several streams, 95% of the packets or more came by one receive queue of several; likely where a CPU is full of them",
			Apart: "the same with other ports", Mends: "equal shares of the table, hash by ports", Effect: "5 to 6 of 9.5 Gb/s (A-02)",
			Source: "per-queue counters of ethtool -S; gates queue-spread, rss", Brings: []string{"irq-one-cpu", "receiver-cpu", "ring-overflow"},
		},
		{
			Cause: "ring-overflow", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "the receive ring overflows", Judge: ringOverflow,
			Seen:  "counters of packets that found no descriptor or buffer rose at the receiver in the measured time, or at its port of a hypervisor's switch (likely at most where that tells only that it dropped: esxtop %DRPRX)",
			Apart: "about as many were sent again, ten or more, and the rate is what such a loss leaves, else they are others' drops; a low rate passes, bursts do not; a full thread of the host drops for want of time, not of room", Mends: "a longer ring, more queues", Effect: "looks like loss on the path",
			Source: "Linux if_link.h: rx_missed_errors, rx_fifo_errors; drivers' rx_no_dma_resources, rx_out_of_buffer, pkts rx OOB; vmxnet3 rxSummary, net.droppedRx of ESXi", Brings: []string{"loss"},
		},
		{
			Cause: "backlog-overflow", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "the kernel's backlog of received packets overflows", Judge: backlogOverflow,
			Seen:  "column 2 of softnet_stat rose at the receiver in the measured time",
			Apart: "the ring does not overflow; about as many were sent again, and the rate is what such a loss leaves", Mends: "a longer backlog; more CPUs for received packets", Effect: "looks like loss on the path",
			Source: "/proc/net/softnet_stat, column 2", Brings: []string{"loss"},
		},
		{
			Cause: "interrupt-moderation", TCP: true, UDP: true, Title: "the adapter interrupts too often, or too late", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(moderationCause) },
			Seen:  "50 000 interrupts a second and more on a CPU that is full; or a fixed wait of 500 us and more",
			Apart: "a sweep of rx-usecs", Mends: "adaptive-rx", Effect: "CPU, or latency",
			Source: "/proc/interrupts; ethtool -c; gate interrupt-moderation", Brings: []string{"receiver-cpu"},
		},
		{
			Cause: "wrong-driver", TCP: true, UDP: true, Title: "the driver is not this kernel's own", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(foreignDriver) },
			Seen:  "the driver did not come with the running kernel; in Windows on a hypervisor: its tools, which bring the driver, are old or do not run",
			Apart: "a setting that it takes has no effect", Mends: "the driver of this kernel", Effect: "settings without effect (S-05)",
			Source: "gate driver-of-kernel",
		},
		{
			Cause: "lro-forwarding", TCP: true, UDP: true, Title: "LRO on a host that passes packets on", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(lroForwardingCause) },
			Seen:  "LRO is on at an interface that is in a bridge, or of a host that routes",
			Apart: "the same with LRO off", Mends: "LRO off", Effect: "uploads of guests crawl",
			Source: "Linux netdev-features.rst; gate lro-forwarding",
		},
	}
}

// Bars of packets and interrupts.
const (
	manyIRQs   = 50_000 // a second on one CPU: above it they cost more than the packets
	packetRoom = 1.1    // of the MTU: a mean packet below it was not merged
)

// perSecond is a count of the measured time for each second of it; 0 where the
// time is not known.
func perSecond(e *diagnose.End, n float64) float64 {
	if e.Span() <= 0 {
		return 0
	}
	return n / (float64(e.Span()) / 1e9)
}

// BusiestOf is the CPU with the most of a count, that count, and its share.
func BusiestOf(counts map[int]float64) (core int, most, share float64) {
	sum := 0.0
	core = -1
	for c, n := range counts {
		sum += n
		if n > most || n == most && n > 0 && c < core {
			core, most = c, n
		}
	}
	if sum <= 0 {
		return -1, 0, 0
	}
	return core, most, most / sum
}

// taken is how often each CPU took packets of the end's interface, by its
// interrupts, else by what it processed; false where neither is known.
func taken(e *diagnose.End) (counts map[int]float64, counter string, known bool) {
	if e.Seen == nil || e.Seen.Host == nil {
		return nil, "", false
	}
	counts = map[int]float64{}
	for _, q := range e.Seen.Host.IRQs {
		counts[q.Core] += float64(q.Count)
	}
	if len(counts) > 0 {
		return counts, "/proc/interrupts", true
	}
	for _, s := range e.Seen.Host.Softnet {
		counts[s.Core] += float64(s.Processed)
	}
	return counts, "/proc/net/softnet_stat processed", len(counts) > 0
}

// core is what a CPU of the end did; false where it is not known.
func core(e *diagnose.End, n int) (measure.CPU, bool) {
	if e.Seen == nil || e.Seen.Host == nil {
		return measure.CPU{}, false
	}
	i := slices.IndexFunc(e.Seen.Host.CPUs, func(c measure.CPU) bool { return c.Core == n })
	if i < 0 {
		return measure.CPU{}, false
	}
	return e.Seen.Host.CPUs[i], true
}

func OneCPU(e *diagnose.End) *diagnose.Outcome {
	if e.Flow.OnSameCPUs() {
		return diagnose.No("packets stay on the CPU that sends them: no interrupt lies between")
	}
	if o := e.Flow.IsAll(); o != nil {
		return o
	}
	counts, counter, known := taken(e)
	if !known || len(e.Seen.Host.CPUs) == 0 {
		return e.Lacks("interrupts of the interface on each CPU")
	}
	if o := sharesQueue(e); o != nil {
		return o
	}
	if len(e.Seen.Host.CPUs) == 1 {
		return diagnose.No("the %s has only one CPU", e.Place)
	}
	n, most, share := BusiestOf(counts)
	cpu, seen := core(e, n)
	soft := diagnose.Packets(cpu)
	switch {
	case share < diagnose.OneShare || perSecond(e, most) < diagnose.FewPackets:
		return diagnose.No("the %s's CPU %d takes %s of the interface's interrupts or packets", e.Place, max(n, 0), unit.Percent(100*share))
	case !seen:
		return e.Lacks("the time of each CPU")
	case diagnose.Busy(cpu) < diagnose.FullBar || soft < diagnose.PacketBar:
		return diagnose.No("the %s's CPU %d, which takes the packets, is %s busy, %s of it with them", e.Place, n, unit.Percent(diagnose.Busy(cpu)), unit.Percent(soft))
	}
	o := diagnose.Likely("one CPU of the %s (%d) takes all its packets, and is full of them (%s)", e.Place, n, unit.Percent(soft)).At(e.OnCPU(n)).
		By(diagnose.Above(e.Proof(counter+", share of CPU "+fmt.Sprint(n), 100*share, "pct"), 100*diagnose.OneShare),
			diagnose.Above(e.Proof(fmt.Sprintf("/proc/stat cpu%d irq and softirq", n), soft, "pct"), diagnose.PacketBar))
	if l := e.Load(); counter == "/proc/interrupts" && !l.All && soft > 90 && !e.Other().Load().Thread {
		o.Confidence = measure.Certain
	}
	return o.Mend(e.SpreadInterrupts())
}

// fewFlows may have come by one queue of several by chance.
const fewFlows = 4

// sharesQueue says that the flows of an end are too few to use several queues: one
// has one by design, whichever CPU its interrupts are bound to. nil: they are enough.
func sharesQueue(e *diagnose.End) *diagnose.Outcome {
	single := e.Face != nil && e.Face.Queues != nil && *e.Face.Queues == 1
	switch n := e.Flows(); {
	case n == 1:
		return diagnose.No("one flow has one queue by design, and so one CPU")
	case n < fewFlows && !single:
		return diagnose.No("%d flows may well share a queue", n)
	}
	return nil
}

func offloadsOff(e *diagnose.End) *diagnose.Outcome {
	gates := below.Conditions(e.Flow, "offloads-off", e.Name)
	if len(gates) == 0 {
		return below.Best(below.HostOffloads(e), below.Told(e, "offloads-off"))
	}
	o := below.Condition(e, gates[0])
	o.Text = fmt.Sprintf("the %s's CPU does the work of offloads that are off (%s)", e.Place, gates[0].Fact)
	length, known := e.MeanPacket()
	mtu := 0.0
	if e.Face != nil && e.Face.MTU != nil && *e.Face.MTU > 0 {
		mtu = float64(*e.Face.MTU)
	}
	if known && mtu > 0 && length > 2*mtu {
		return diagnose.No("packets of the %s are %s long on average: they are split or merged below", e.Place, unit.Size(int64(length)))
	}
	if !below.WorksFully(e) && !(e.Flow.IsAll() == nil && e.Flow.OnSameCPUs() && e.Other().IsFull()) {
		return o.Beside()
	}
	if !bears(gates[0].Fact, e.Sends()) && !e.Flow.OnSameCPUs() {
		return o.Beside() // the work of acknowledgements alone
	}
	o.Confidence = measure.Likely
	if known && mtu > 0 && length < packetRoom*mtu {
		o.By(diagnose.Below(e.Proof("mean packet at the interface", length, "bytes"), packetRoom*mtu))
		thread := e.Load().Thread || e.Flow.OnSameCPUs() && e.Other().Load().Thread
		if e.Sends() && thread && !strings.Contains(gates[0].Fact, "driver has none") && segments(gates[0].Fact) {
			o.Confidence = measure.Certain
		}
	}
	return o
}

// bears tells whether what is off is work on the data at an end that sends, or at
// one that receives. Words that are not known here may be either.
func bears(fact string, sends bool) bool {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(fact, w) })
	}
	sending, receiving := has("TSO", "GSO", "scatter-gather", "TX checksum"), has("GRO", "LRO", "RX checksum")
	return sending && sends || receiving && !sends || !sending && !receiving
}

// segments tells whether what is off is the splitting of long packets, which
// costs a sender most.
func segments(fact string) bool {
	return strings.Contains(fact, "TSO") || strings.Contains(fact, "GSO")
}

func emulatedSeen(e *diagnose.End) *diagnose.Outcome {
	gates := below.Conditions(e.Flow, "emulated-nic", e.Name)
	if len(gates) == 0 {
		return below.Told(e, "emulated-nic")
	}
	return below.Symptom(below.Condition(e, gates[0]), below.WorksFully(e))
}

func FewQueues(e *diagnose.End) *diagnose.Outcome {
	gates := below.Conditions(e.Flow, "too-few-queues", e.Name)
	if len(gates) == 0 {
		return below.Told(e, "too-few-queues")
	}
	return below.Symptom(below.Condition(e, gates[0]), e.Flow.IsAll() == nil && !e.Sends() && !e.Flow.OnSameCPUs() && e.Load().Packet && e.Flows() > 1)
}

func foreignDriver(e *diagnose.End) *diagnose.Outcome {
	gates := below.Conditions(e.Flow, "wrong-driver", e.Name)
	if len(gates) == 0 {
		return below.Best(below.OldToolsOfEnd(e), below.Told(e, "wrong-driver"))
	}
	return below.Condition(e, gates[0]).Beside()
}

func lroForwardingCause(e *diagnose.End) *diagnose.Outcome {
	gates := below.Conditions(e.Flow, "lro-forwarding", e.Name)
	if len(gates) == 0 {
		return below.Told(e, "lro-forwarding")
	}
	return below.Condition(e, gates[0]).Beside() // the end's own packets are not passed on
}

func notSpreading(e *diagnose.End) *diagnose.Outcome {
	gates := below.Conditions(e.Flow, "rss-not-spreading", e.Name)
	queues := QueuesUsed(e)
	if len(queues) < 2 {
		if len(gates) > 0 {
			return below.Condition(e, gates[0]).Beside()
		}
		return below.Told(e, "rss-not-spreading")
	}
	q, most, share := BusiestOf(queues)
	switch {
	case sharesQueue(e) != nil:
		return sharesQueue(e)
	case most < diagnose.ManyCounted || share < diagnose.OneShare:
		return diagnose.No("queue %d of the %s received %s of the packets", max(q, 0), e.Place, unit.Percent(100*share))
	}
	l := e.Load()
	o := below.Symptom(diagnose.Possible("%s of the %s's packets came by one queue of %d", unit.Percent(100*share), e.Place, len(queues)).At(e.OnFace()).
		By(diagnose.Above(e.Proof(fmt.Sprintf("ethtool -S packets of receive queue %d, share", q), 100*share, "pct"), 100*diagnose.OneShare)).
		Mend(e.Remedy(e.Mender().Spread(e.FaceName()))), !e.Sends() && e.Flow.IsAll() == nil && l.Packet)
	if !o.Aside && !l.All && diagnose.Packets(l.Soft) > 90 {
		o.Confidence = measure.Certain
	}
	return o
}

// QueuesUsed are the packets that each receive queue took in the measured
// time, by its number: rx_queue_3_packets, rx-3.packets, rx3_packets. A queue
// of the facts whose counter did not move took none.
func QueuesUsed(e *diagnose.End) map[int]float64 {
	used := map[int]float64{}
	if e.Seen == nil || e.Seen.Host == nil || e.Seen.Host.NIC == nil {
		return used
	}
	for name, n := range e.Seen.Host.NIC.Driver {
		if q, ok := QueueOf(name); ok {
			used[q] += float64(n)
		}
	}
	if e.Face != nil && e.Face.Queues != nil && len(used) > 0 {
		for q := range min(max(*e.Face.Queues, 0), 256) {
			used[q] += 0
		}
	}
	return used
}

// QueueOf reads the number of a receive queue out of the name of its counter
// of packets.
func QueueOf(counter string) (int, bool) {
	var q int
	for _, form := range []string{"rx_queue_%d_packets", "rx-%d.packets", "rx%d_packets"} {
		if _, err := fmt.Sscanf(counter, form, &q); err == nil && fmt.Sprintf(form, q) == counter && q >= 0 {
			return q, true
		}
	}
	return 0, false
}

// noRoomNames are parts of the names by which drivers count packets that
// found no descriptor or buffer.
func noRoomNames() []string {
	return []string{"rx_missed", "no_dma_resource", "out_of_buffer", "rx_nobuf", "rx_no_buffer", "rx oob", "imissed"}
}

// noRoom is how many packets found the end's receive ring full, by the counter
// that tells most; several may count the same ones.
func noRoom(e *diagnose.End) (most float64, counter string, known bool) {
	if e.Seen == nil || e.Seen.Host == nil || e.Seen.Host.NIC == nil {
		return 0, "", false
	}
	n := e.Seen.Host.NIC
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

// ringSeen judges what the receiver itself counted.
func ringSeen(f *diagnose.Flow) *diagnose.Outcome {
	e := f.Receiver
	n, counter, known := noRoom(e)
	n = max(n, float64(f.LostAt(measure.LossRing)))
	switch {
	case !known && n == 0:
		return e.Lacks("packets that found the ring full")
	case n == 0:
		return diagnose.No("no packet found the receiver's ring full")
	}
	o := f.Dropped(e, n, counter, "the receiver's ring overflows: it dropped %.0f packets")
	return o.At(e.OnFace()).Mend(e.Remedy(e.Mender().Ring(e.FaceName())))
}

func backlogOverflow(f *diagnose.Flow) *diagnose.Outcome {
	e := f.Receiver
	if e.Seen == nil || e.Seen.Host == nil || len(e.Seen.Host.Softnet) == 0 {
		return e.Lacks("softnet_stat")
	}
	n := 0.0
	for _, s := range e.Seen.Host.Softnet {
		n += float64(s.Dropped)
	}
	if n == 0 {
		return diagnose.No("the receiver's backlog dropped no packet")
	}
	o := f.Dropped(e, n, "softnet_stat dropped", "the receiver's backlog overflows: it dropped %.0f packets")
	return o.At(e.Where()).Mend(e.Remedy(e.Mender().Backlog()))
}

func moderationCause(e *diagnose.End) *diagnose.Outcome {
	if e.Flow.OnSameCPUs() {
		return diagnose.No("no interrupt lies between the ends")
	}
	if e.Seen != nil && e.Seen.Host != nil && len(e.Seen.Host.IRQs) > 0 {
		counts, _, _ := taken(e)
		n, most, _ := BusiestOf(counts)
		cpu, ok := core(e, n)
		if rate := perSecond(e, most); ok && rate > manyIRQs && diagnose.Busy(cpu) > diagnose.FullBar && e.Flow.IsAll() == nil {
			o := diagnose.Possible("CPU %d of the %s is interrupted %.0f times a second", n, e.Place, rate).At(e.OnCPU(n)).
				By(diagnose.Above(e.Proof(fmt.Sprintf("/proc/interrupts of CPU %d", n), rate, "per_s"), manyIRQs)).
				Mend(e.Remedy(e.Mender().Moderation(e.FaceName())))
			if cpu.IRQ > 20 {
				o.Confidence = measure.Likely
			}
			return o
		}
	}
	gates := below.Conditions(e.Flow, "interrupt-moderation", e.Name)
	if len(gates) == 0 {
		return below.Told(e, "interrupt-moderation")
	}
	return below.Symptom(below.Condition(e, gates[0]), e.Flow.WindowBinds() && e.Flow.IsAll() == nil) // it is the round trip that the window is too small for
}
