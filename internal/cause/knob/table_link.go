package knob

// MayFlap is the risk of a setting that resets an adapter.
const MayFlap = "the link may go down for some seconds: not over the only connection to the host"

// linkKnobs are the knobs of a whole interface.
func linkKnobs() []Knob {
	return []Knob{
		{ID: MTU, Scope: OfInterface, Title: "MTU", Linux: "ip link set dev ... mtu", Needs: needsNet,
			About:  "the largest packet, in bytes; both ends and every switch between must carry it",
			Effect: "9000 for 1500: the ceiling rises from 94.1% to 99.0% of the line rate (+5%), and a host handles a sixth of the packets: 1.3 to 2 times the rate if one CPU is the limit", Source: "reference, methods (formula 4) and causes (single-flow)",
			Risk: MayFlap + "; if a device between does not carry it, full packets are dropped silently", Cuts: true, Verify: "unfragmented packets of that size (ping -M do) pass the path in both directions; and the MSS of a new connection", Checklist: []string{"B-19", "C-20", "C-21", "S-03"},
			shows: shown{"DF search of the path", check.mtu}},
		{ID: TxQueueLen, Scope: OfInterface, Role: Sender, Title: "length of the transmit queue", Linux: "ip link set dev ... txqueuelen", Needs: needsNet,
			About:  "packets that may wait for the interface in a qdisc without a limit of its own (pfifo_fast)",
			Effect: "ends drops of the qdisc; no effect on fq and fq_codel, which have limits of their own", Source: "ip-link(8); Linux net/sched/sch_generic.c",
			Risk: "latency: more packets may wait", Verify: "tc -s qdisc show counts no new drops during the test", Checklist: []string{"C-37"}},
		{ID: RXRing, Scope: OfInterface, Role: Receiver, Title: "receive ring", Linux: "ethtool -G ... rx", Needs: needsNet,
			About:  "descriptors of a receive queue: packets that can arrive before a CPU takes them",
			Effect: "ends rx_missed_errors if bursts overflow the ring; at 10 ms RTT a loss of 0.01% reduces 987 to 177 Mb/s", Source: "ethtool(8); measured (reference, lab)",
			Risk: MayFlap + "; memory, and more cache misses", Cuts: true, Verify: "the interface's counters of missing descriptors do not rise during the test", Checklist: []string{"C-24", "C-37"}},
		{ID: TXRing, Scope: OfInterface, Role: Sender, Title: "transmit ring", Linux: "ethtool -G ... tx", Needs: needsNet,
			About:  "descriptors of a transmit queue: packets that wait for the wire",
			Effect: "the queue stops less often if the adapter fetches late; rarely more than a few percent", Source: "ethtool(8)",
			Risk: MayFlap + "; latency", Cuts: true, Verify: "the driver's counters of a stopped queue (tx_busy, tx_restart) do not rise", Checklist: []string{"C-24"}},
		{ID: Coalescing, Scope: OfInterface, Title: "interrupt moderation", Linux: "ethtool -C", Needs: needsNet,
			About:  "how long an interface delays its interrupt after a packet, or that its driver chooses (adaptive)",
			Effect: "fewer interrupts and less CPU, or a shorter RTT: a delay of 50 us adds 50 us to each round trip", Source: "ethtool(8); checklist B-19",
			Risk: "more latency with a longer delay, more CPU with a shorter one", Verify: "the interrupt rate (/proc/interrupts) during the test changes", Checklist: []string{"B-19", "C-24"}},
		{ID: Pause, Scope: OfInterface, Title: "flow control of the link", Linux: "ethtool -A", Needs: needsNet,
			About:  "pause frames: a full receiver stops its link partner instead of dropping packets",
			Effect: "off ends a sawtooth rate without loss; on ends the loss at a full switch port", Source: "IEEE 802.3x; ethtool(8); reference, causes (pause-frames)",
			Risk: MayFlap + "; storage networks may need it; a receiver that pauses slows others behind the same port", Cuts: true, Verify: "during the test the counters of pause frames do not rise (off), or rise (on)", Checklist: []string{"C-24"}},
	}
}

// offloadKnobs are the work that an adapter does, or the kernel for many packets at once.
func offloadKnobs() []Knob {
	const offload = "affects all connections of this interface; the driver may reset it"
	knob := func(id, title, option, about, effect, source, verify string) Knob {
		return Knob{ID: id, Scope: OfInterface, Title: title, Linux: "ethtool -K " + option, Needs: needsNet, About: about, Effect: effect, Source: source,
			Risk: offload, Verify: verify, Checklist: []string{"B-19", "C-22", "C-24"}}
	}
	list := []Knob{
		knob(ScatterGather, "scatter-gather", "sg", "the adapter collects a packet from several places in memory; segmentation needs it",
			"required by TSO: 4.4 of 49 Gb/s without checksums, scatter-gather and TSO", "measured (reference, lab); Linux netdev-features.rst", "read back, and segmentation can be on"),
		knob(TXChecksum, "checksums of sent packets", "tx", "the adapter computes them; scatter-gather and TSO need it",
			"about 5% of the CPU at MTU 1500, 15% at 9000; TSO needs it: 4.4 of 49 Gb/s without", "checklist C-22; measured (reference, lab)", "read back; packets arrive without checksum errors at the other end"),
		knob(RXChecksum, "checksums of received packets", "rx", "the adapter verifies them; GRO works best with it",
			"about 5% of the CPU at MTU 1500, 15% at 9000", "checklist C-22", "read back; InCsumErrors does not rise"),
		knob(TSO, "segmentation by the adapter (TSO)", "tso", "the adapter splits up to 64 KiB into packets",
			"on: 9.1 to 49 Gb/s between namespaces, 2 to 5 times if the sender's CPU is the limit; off, if the adapter does it wrongly: 1.02 Mb/s to 12.1 Gb/s", "measured (reference, lab); checklist S-07", "segments longer than the MTU leave the host, and arrive (no timeouts of full segments)"),
		knob(GSO, "segmentation by the kernel (GSO)", "gso", "the kernel passes up to 64 KiB through the stack as one packet, and splits it at the interface",
			"5.8 to 9.1 Gb/s between namespaces without TSO", "measured (reference, lab); Linux segmentation-offloads.rst", "in a capture, packets of one send call have the same time; CPU per Gb/s falls"),
		knob(GRO, "merging of received packets by the kernel (GRO)", "gro", "packets of one flow pass the stack as one packet",
			"up to 40% of the rate and CPU of a receiver", "checklist C-22 (of LRO, which does the same)", "the mean size of received packets exceeds the MTU; CPU per Gb/s falls"),
		knob(LRO, "merging of received packets by the adapter (LRO)", "lro", "the adapter merges packets, and drops header information that a router or bridge needs",
			"about 40% better rate and CPU of a receiver; off, on a host that forwards packets: slow uploads recover", "checklist C-22; Linux netdev-features.rst", "the mean size of received packets changes"),
	}
	for i := range list {
		list[i].Role = Sender
		switch list[i].ID {
		case RXChecksum, GRO, LRO:
			list[i].Role = Receiver
		case TSO, GSO:
			list[i].shows = packetsShown()
		}
		if list[i].ID == TSO {
			list[i].Checklist = append(list[i].Checklist, "C-23", "S-06", "S-07")
		}
		if list[i].ID == LRO {
			list[i].Risk += "; never switch it on if the host forwards or bridges"
		}
	}
	return list
}
