package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// nicRules are the causes of network interfaces and how CPUs serve them.
func nicRules() []Rule {
	cpu := []string{"sender-cpu", "receiver-cpu", "single-flow"}
	return []Rule{
		{
			Cause: "irq-one-cpu", TCP: true, UDP: true, Unseen: hostTime, Title: "one CPU takes all packets of the interface", judge: func(f *flow) *outcome { return f.either(oneCPU) },
			Seen:  "of several flows nearly all interrupts of the interface, or all received packets, are on one CPU, which is full of them, while others have time",
			Apart: "interrupts of each queue on a CPU of its own; one flow has one queue by design, and is single-flow", Mends: "smp_affinity_list, or RPS", Effect: "up to as many times as there are CPUs",
			Source: "/proc/interrupts; /proc/net/softnet_stat; Linux scaling.rst", Brings: []string{"receiver-cpu", "ring-overflow", "backlog-overflow", "slow-reader"},
		},
		{
			Cause: "offloads-off", TCP: true, UDP: true, Unseen: hostTime, Title: "the CPU makes every packet itself", judge: func(f *flow) *outcome { return f.either(offloadsOff) },
			Seen:  "TSO, GSO, GRO or checksums are off, a CPU is full, and packets are no longer than the MTU; an ESXi host's own are off (possible)",
			Apart: "switch them on: the rate rises, the packets that the kernel hands over are longer", Mends: "switch them on", Effect: "9 of 49 Gb/s without TSO between namespaces, 3.4 with all off",
			Source: "ethtool -k; methods.md, formula 14; gate offloads", Brings: cpu,
		},
		{
			Cause: "emulated-nic", TCP: true, UDP: true, Title: "the adapter is emulated", judge: func(f *flow) *outcome { return f.either(emulated) },
			Seen:  "a driver or device of an adapter that hypervisors imitate, in a guest, or the model that the hypervisor names; likely where a CPU is full",
			Apart: "a paravirtual adapter beside it", Mends: "vmxnet3 or virtio", Effect: "1.36 against 2.31 Gb/s (S-02)",
			Source: "gate nic-model; C-26", Brings: cpu,
		},
		{
			Cause: "too-few-queues", TCP: true, UDP: true, Title: "one queue for several CPUs", judge: func(f *flow) *outcome { return f.either(fewQueues) },
			Seen:  "one receive queue where more are possible; likely where a CPU is full of received packets of several flows; possible where the aggregate falls as end points are added (A-05)",
			Apart: "more queues and several streams", Mends: "as many queues as CPUs", Effect: "linear until the CPUs are full",
			Source: "ethtool -l; gate queues; C-22", Brings: []string{"irq-one-cpu", "receiver-cpu", "ring-overflow"},
		},
		{
			Cause: "rss-not-spreading", TCP: true, UDP: true, Unseen: hostTime, Title: "all flows go to one queue", judge: func(f *flow) *outcome { return f.either(notSpreading) },
			Seen:  "of several streams, 95% of the packets or more came by one receive queue of several; likely where a CPU is full of them",
			Apart: "the same with other ports", Mends: "equal shares of the table, hash by ports", Effect: "5 to 6 of 9.5 Gb/s (A-02)",
			Source: "per-queue counters of ethtool -S; gates queue-spread, rss", Brings: []string{"irq-one-cpu", "receiver-cpu", "ring-overflow"},
		},
		{
			Cause: "ring-overflow", TCP: true, UDP: true, Unseen: hostTime, Title: "the receive ring overflows", judge: ringOverflow,
			Seen:  "counters of packets that found no descriptor or buffer rose at the receiver in the measured time, or at its port of a hypervisor's switch (likely at most where that tells only that it dropped: esxtop %DRPRX)",
			Apart: "about as many were sent again, ten or more, and the rate is what such a loss leaves, else they are others' drops; a low rate passes, bursts do not; a full thread of the host drops for want of time, not of room", Mends: "a longer ring, more queues", Effect: "looks like loss on the path",
			Source: "Linux if_link.h: rx_missed_errors, rx_fifo_errors; drivers' rx_no_dma_resources, rx_out_of_buffer, pkts rx OOB; vmxnet3 rxSummary, net.droppedRx of ESXi", Brings: []string{"loss"},
		},
		{
			Cause: "backlog-overflow", TCP: true, UDP: true, Unseen: hostTime, Title: "the kernel's backlog of received packets overflows", judge: backlogOverflow,
			Seen:  "column 2 of softnet_stat rose at the receiver in the measured time",
			Apart: "the ring does not overflow; about as many were sent again, and the rate is what such a loss leaves", Mends: "a longer backlog; more CPUs for received packets", Effect: "looks like loss on the path",
			Source: "/proc/net/softnet_stat, column 2", Brings: []string{"loss"},
		},
		{
			Cause: "interrupt-moderation", TCP: true, UDP: true, Title: "the adapter interrupts too often, or too late", judge: func(f *flow) *outcome { return f.either(moderation) },
			Seen:  "50 000 interrupts a second and more on a CPU that is full; or a fixed wait of 500 us and more",
			Apart: "a sweep of rx-usecs", Mends: "adaptive-rx", Effect: "CPU, or latency",
			Source: "/proc/interrupts; ethtool -c; gate interrupt-moderation", Brings: []string{"receiver-cpu"},
		},
		{
			Cause: "wrong-driver", TCP: true, UDP: true, Title: "the driver is not this kernel's own", judge: func(f *flow) *outcome { return f.either(foreignDriver) },
			Seen:  "the driver did not come with the running kernel; in Windows on a hypervisor: its tools, which bring the driver, are old or do not run",
			Apart: "a setting that it takes has no effect", Mends: "the driver of this kernel", Effect: "settings without effect (S-05)",
			Source: "gate driver-of-kernel",
		},
		{
			Cause: "lro-forwarding", TCP: true, UDP: true, Title: "LRO on a host that passes packets on", judge: func(f *flow) *outcome { return f.either(lroForwarding) },
			Seen:  "LRO is on at an interface that is in a bridge, or of a host that routes",
			Apart: "the same with LRO off", Mends: "LRO off", Effect: "uploads of guests crawl",
			Source: "Linux netdev-features.rst; gate lro-forwarding",
		},
	}
}

// Bars of packets and interrupts.
const (
	oneShare     = 0.95   // of all interrupts or packets on one CPU or queue
	fewPackets   = 1000   // a second: below it they fill no CPU
	manyIRQs     = 50_000 // a second on one CPU: above it they cost more than the packets
	manyCounted  = 10_000 // packets from which a share of them tells something
	packetRoom   = 1.1    // of the MTU: a mean packet below it was not merged
	ofRetransmit = 0.5    // of the segments sent again: drops above it may be theirs
)

// perSecond is a count of the measured time for each second of it; 0 where the
// time is not known.
func (e *end) perSecond(n float64) float64 {
	if e.span() <= 0 {
		return 0
	}
	return n / (float64(e.span()) / 1e9)
}

// busiestOf is the CPU with the most of a count, that count, and its share.
func busiestOf(counts map[int]float64) (core int, most, share float64) {
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
func (e *end) taken() (counts map[int]float64, counter string, known bool) {
	if e.seen == nil || e.seen.Host == nil {
		return nil, "", false
	}
	counts = map[int]float64{}
	for _, q := range e.seen.Host.IRQs {
		counts[q.Core] += float64(q.Count)
	}
	if len(counts) > 0 {
		return counts, "/proc/interrupts", true
	}
	for _, s := range e.seen.Host.Softnet {
		counts[s.Core] += float64(s.Processed)
	}
	return counts, "/proc/net/softnet_stat processed", len(counts) > 0
}

// core is what a CPU of the end did; false where it is not known.
func (e *end) core(n int) (measure.CPU, bool) {
	if e.seen == nil || e.seen.Host == nil {
		return measure.CPU{}, false
	}
	i := slices.IndexFunc(e.seen.Host.CPUs, func(c measure.CPU) bool { return c.Core == n })
	if i < 0 {
		return measure.CPU{}, false
	}
	return e.seen.Host.CPUs[i], true
}

func oneCPU(e *end) *outcome {
	if e.flow.onSameCPUs() {
		return no("packets stay on the CPU that sends them: no interrupt lies between")
	}
	if o := e.flow.isAll(); o != nil {
		return o
	}
	counts, counter, known := e.taken()
	if !known || len(e.seen.Host.CPUs) == 0 {
		return e.lacks("interrupts of the interface on each CPU")
	}
	if o := e.sharesQueue(); o != nil {
		return o
	}
	if len(e.seen.Host.CPUs) == 1 {
		return no("the %s has only one CPU", e.place)
	}
	n, most, share := busiestOf(counts)
	cpu, seen := e.core(n)
	soft := packets(cpu)
	switch {
	case share < oneShare || e.perSecond(most) < fewPackets:
		return no("the %s's CPU %d takes %s of the interface's interrupts or packets", e.place, max(n, 0), unit.Percent(100*share))
	case !seen:
		return e.lacks("the time of each CPU")
	case busy(cpu) < fullBar || soft < packetBar:
		return no("the %s's CPU %d, which takes the packets, is %s busy, %s of it with them", e.place, n, unit.Percent(busy(cpu)), unit.Percent(soft))
	}
	o := likely("one CPU of the %s (%d) takes all its packets, and is full of them (%s)", e.place, n, unit.Percent(soft)).at(e.onCPU(n)).
		by(above(e.proof(counter+", share of CPU "+fmt.Sprint(n), 100*share, "pct"), 100*oneShare),
			above(e.proof(fmt.Sprintf("/proc/stat cpu%d irq and softirq", n), soft, "pct"), packetBar))
	if l := e.load(); counter == "/proc/interrupts" && !l.all && soft > 90 && !e.other().load().thread {
		o.confidence = measure.Certain
	}
	return o.mend(e.spreadInterrupts())
}

// fewFlows may have come by one queue of several by chance.
const fewFlows = 4

// flows are the connections of the end that ran at the same time.
func (e *end) flows() (n int) {
	c := e.flow.cell
	if c.AtOnce > 1 {
		for _, x := range cellsOf(e.flow.doc, c.Group) {
			if x.From == e.name || x.To == e.name {
				n += max(1, x.Streams)
			}
		}
	}
	return max(n, c.Streams, 1)
}

// sharesQueue says that the flows of an end are too few to use several queues: one
// has one by design, whichever CPU its interrupts are bound to. nil: they are enough.
func (e *end) sharesQueue() *outcome {
	single := e.face != nil && e.face.Queues != nil && *e.face.Queues == 1
	switch n := e.flows(); {
	case n == 1:
		return no("one flow has one queue by design, and so one CPU")
	case n < fewFlows && !single:
		return no("%d flows may well share a queue", n)
	}
	return nil
}

// meanPacket is the mean length of the packets that the kernel handed to the
// interface, or took from it, in bytes: above the MTU where they were merged.
func (e *end) meanPacket() (float64, bool) {
	if e.seen == nil || e.seen.Host == nil || e.seen.Host.NIC == nil {
		return 0, false
	}
	n := e.seen.Host.NIC
	bytes, packets := n.RxBytes, n.RxPackets
	if e.sends() {
		bytes, packets = n.TxBytes, n.TxPackets
	}
	if packets < manyCounted {
		return 0, false
	}
	return float64(bytes) / float64(packets), true
}

func offloadsOff(e *end) *outcome {
	gates := e.flow.conditions("offloads-off", e.name)
	if len(gates) == 0 {
		return best(e.hostOffloads(), e.told("offloads-off"))
	}
	o := e.condition(gates[0])
	o.text = fmt.Sprintf("the %s's CPU does the work of offloads that are off (%s)", e.place, gates[0].Fact)
	length, known := e.meanPacket()
	mtu := 0.0
	if e.face != nil && e.face.MTU != nil && *e.face.MTU > 0 {
		mtu = float64(*e.face.MTU)
	}
	if known && mtu > 0 && length > 2*mtu {
		return no("packets of the %s are %s long on average: they are split or merged below", e.place, unit.Size(int64(length)))
	}
	if !e.worksFully() && !(e.flow.isAll() == nil && e.flow.onSameCPUs() && e.other().isFull()) {
		return o.beside()
	}
	if !bears(gates[0].Fact, e.sends()) && !e.flow.onSameCPUs() {
		return o.beside() // the work of acknowledgements alone
	}
	o.confidence = measure.Likely
	if known && mtu > 0 && length < packetRoom*mtu {
		o.by(below(e.proof("mean packet at the interface", length, "bytes"), packetRoom*mtu))
		thread := e.load().thread || e.flow.onSameCPUs() && e.other().load().thread
		if e.sends() && thread && !strings.Contains(gates[0].Fact, "driver has none") && segments(gates[0].Fact) {
			o.confidence = measure.Certain
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

func (e *end) emulatedSeen() *outcome {
	gates := e.flow.conditions("emulated-nic", e.name)
	if len(gates) == 0 {
		return e.told("emulated-nic")
	}
	return e.condition(gates[0]).symptom(e.worksFully())
}

func fewQueues(e *end) *outcome {
	gates := e.flow.conditions("too-few-queues", e.name)
	if len(gates) == 0 {
		return e.told("too-few-queues")
	}
	return e.condition(gates[0]).symptom(e.flow.isAll() == nil && !e.sends() && !e.flow.onSameCPUs() && e.load().packet && e.flows() > 1)
}

func foreignDriver(e *end) *outcome {
	gates := e.flow.conditions("wrong-driver", e.name)
	if len(gates) == 0 {
		return best(e.oldTools(), e.told("wrong-driver"))
	}
	return e.condition(gates[0]).beside()
}

func lroForwarding(e *end) *outcome {
	gates := e.flow.conditions("lro-forwarding", e.name)
	if len(gates) == 0 {
		return e.told("lro-forwarding")
	}
	return e.condition(gates[0]).beside() // the end's own packets are not passed on
}

func notSpreading(e *end) *outcome {
	gates := e.flow.conditions("rss-not-spreading", e.name)
	queues := e.queuesUsed()
	if len(queues) < 2 {
		if len(gates) > 0 {
			return e.condition(gates[0]).beside()
		}
		return e.told("rss-not-spreading")
	}
	q, most, share := busiestOf(queues)
	switch {
	case e.sharesQueue() != nil:
		return e.sharesQueue()
	case most < manyCounted || share < oneShare:
		return no("queue %d of the %s received %s of the packets", max(q, 0), e.place, unit.Percent(100*share))
	}
	l := e.load()
	o := possible("%s of the %s's packets came by one queue of %d", unit.Percent(100*share), e.place, len(queues)).at(e.onFace()).
		by(above(e.proof(fmt.Sprintf("ethtool -S packets of receive queue %d, share", q), 100*share, "pct"), 100*oneShare)).
		mend(e.remedy(e.mender().Spread(e.faceName()))).symptom(!e.sends() && e.flow.isAll() == nil && l.packet)
	if !o.aside && !l.all && packets(l.soft) > 90 {
		o.confidence = measure.Certain
	}
	return o
}

// queuesUsed are the packets that each receive queue took in the measured
// time, by its number: rx_queue_3_packets, rx-3.packets, rx3_packets. A queue
// of the facts whose counter did not move took none.
func (e *end) queuesUsed() map[int]float64 {
	used := map[int]float64{}
	if e.seen == nil || e.seen.Host == nil || e.seen.Host.NIC == nil {
		return used
	}
	for name, n := range e.seen.Host.NIC.Driver {
		if q, ok := queueOf(name); ok {
			used[q] += float64(n)
		}
	}
	if e.face != nil && e.face.Queues != nil && len(used) > 0 {
		for q := range min(max(*e.face.Queues, 0), 256) {
			used[q] += 0
		}
	}
	return used
}

// queueOf reads the number of a receive queue out of the name of its counter
// of packets.
func queueOf(counter string) (int, bool) {
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
func (e *end) noRoom() (most float64, counter string, known bool) {
	if e.seen == nil || e.seen.Host == nil || e.seen.Host.NIC == nil {
		return 0, "", false
	}
	n := e.seen.Host.NIC
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
func (f *flow) ringSeen() *outcome {
	e := f.receiver
	n, counter, known := e.noRoom()
	n = max(n, float64(f.lostAt(measure.LossRing)))
	switch {
	case !known && n == 0:
		return e.lacks("packets that found the ring full")
	case n == 0:
		return no("no packet found the receiver's ring full")
	}
	o := f.dropped(e, n, counter, "the receiver's ring overflows: it dropped %.0f packets")
	return o.at(e.onFace()).mend(e.remedy(e.mender().Ring(e.faceName())))
}

func backlogOverflow(f *flow) *outcome {
	e := f.receiver
	if e.seen == nil || e.seen.Host == nil || len(e.seen.Host.Softnet) == 0 {
		return e.lacks("softnet_stat")
	}
	n := 0.0
	for _, s := range e.seen.Host.Softnet {
		n += float64(s.Dropped)
	}
	if n == 0 {
		return no("the receiver's backlog dropped no packet")
	}
	o := f.dropped(e, n, "softnet_stat dropped", "the receiver's backlog overflows: it dropped %.0f packets")
	return o.at(e.where()).mend(e.remedy(e.mender().Backlog()))
}

// dropped judges packets that a receiver's host dropped.
func (f *flow) dropped(e *end, n float64, counter, format string) *outcome {
	return f.blame(possible(format, n).by(above(e.proof(counter, n, "packets"), 0)), n)
}

func moderation(e *end) *outcome {
	if e.flow.onSameCPUs() {
		return no("no interrupt lies between the ends")
	}
	if e.seen != nil && e.seen.Host != nil && len(e.seen.Host.IRQs) > 0 {
		counts, _, _ := e.taken()
		n, most, _ := busiestOf(counts)
		cpu, ok := e.core(n)
		if rate := e.perSecond(most); ok && rate > manyIRQs && busy(cpu) > fullBar && e.flow.isAll() == nil {
			o := possible("CPU %d of the %s is interrupted %.0f times a second", n, e.place, rate).at(e.onCPU(n)).
				by(above(e.proof(fmt.Sprintf("/proc/interrupts of CPU %d", n), rate, "per_s"), manyIRQs)).
				mend(e.remedy(e.mender().Moderation(e.faceName())))
			if cpu.IRQ > 20 {
				o.confidence = measure.Likely
			}
			return o
		}
	}
	gates := e.flow.conditions("interrupt-moderation", e.name)
	if len(gates) == 0 {
		return e.told("interrupt-moderation")
	}
	return e.condition(gates[0]).symptom(e.flow.windowBinds() && e.flow.isAll() == nil) // it is the round trip that the window is too small for
}
