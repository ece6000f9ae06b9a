package knob

const irqbalance = "irqbalance may undo it: systemctl stop irqbalance"

// queueKnobs spread packets over queues and CPUs.
func queueKnobs() []Knob {
	return []Knob{
		{ID: Channels, Scope: OfInterface, Title: "queues", Linux: "ethtool -L", Needs: needsNet,
			About:  "receive and transmit queues of the interface, each with an interrupt of its own",
			Effect: "several flows: nearly linear until the CPUs are full; one flow: none. With several queues in use 8 VMs reached 9.5 instead of 5-6 Gb/s", Source: "reference, causes (too-few-queues, netqueue-off); Linux scaling.rst",
			Risk: MayFlap + "; the tables of RSS, RPS and XPS are reset", Cuts: true, Verify: "packets of several flows arrive in several queues (ethtool -S)", Checklist: []string{"C-22", "C-27", "C-28"},
			shows: queuesShown()},
		{ID: RSSHash, Scope: OfInterface, Role: Receiver, Title: "fields that RSS hashes", Linux: "ethtool -N ... rx-flow-hash", Needs: needsNet,
			About:  "the packet fields that select its queue: sd are the addresses, sdfn includes the ports",
			Effect: "flows between two hosts spread over all queues instead of one", Source: "Linux scaling.rst; checklist C-35",
			Risk: "fragments of one datagram may be reordered if UDP ports are hashed", Verify: "flows with different ports arrive in several queues", Checklist: []string{"C-22", "C-35"},
			shows: queuesShown()},
		{ID: RSSTable, Scope: OfInterface, Role: Receiver, Title: "indirection table of RSS", Linux: "ethtool -X", Needs: needsNet,
			About:  "the share of the flows that each queue takes",
			Effect: "all queues take an equal share: as many CPUs as queues handle packets", Source: "Linux scaling.rst",
			Risk: "flows move to other CPUs: some packets may be reordered at that moment", Verify: "flows with different ports arrive in all queues", Checklist: []string{"C-22", "C-27"},
			shows: queuesShown()},
		{ID: RPS, Scope: OfInterface, Role: Receiver, Title: "packet steering at receive (RPS)", Linux: "/sys/class/net/.../queues/rx-*/rps_cpus", Needs: needsHost,
			About:  "the CPU of the interrupt distributes packets to other CPUs by flow: RSS in software, for an interface with one queue",
			Effect: "several flows: a rate up to as many times higher as CPUs share the work; one flow: its work moves off the CPU of the interrupt", Source: "Linux scaling.rst; reference, causes (receiver-cpu)",
			Risk: "an inter-processor interrupt for each batch of packets: latency and CPU", Verify: "column 10 of /proc/net/softnet_stat rises, and softirq time is spread over those CPUs", Checklist: []string{"C-29", "C-35"},
			shows: shown{"packets handled by each CPU", check.spread}},
		{ID: XPS, Scope: OfInterface, Role: Sender, Title: "packet steering at transmit (XPS)", Linux: "/sys/class/net/.../queues/tx-*/xps_cpus", Needs: needsHost,
			About:  "which CPUs use which transmit queue",
			Effect: "less contention for queue locks; a few percent with many senders", Source: "Linux scaling.rst",
			Risk: "none known", Verify: "packets leave through the queues of the CPUs that send", Checklist: []string{"C-29"}},
		{ID: IRQAffinity, Scope: OfInterface, Title: "CPUs of interrupts", Linux: "/proc/irq/*/smp_affinity_list", Needs: needsHost,
			About:  "which CPUs take the interrupts of the interface's queues",
			Effect: "with one CPU for each queue, a rate up to as many times higher as there are queues; 10 to 40% if the CPUs were on another NUMA node, at 40 Gb/s and more", Source: "reference, causes (irq-one-cpu, numa-remote); Linux scaling.rst",
			Risk: irqbalance, Verify: "the counts in /proc/interrupts rise on those CPUs", Checklist: []string{"C-11", "C-29"},
			shows: shown{"interrupts of each CPU", check.interrupts}},
		{ID: Governor, Scope: OfHost, Title: "frequency governor of the CPUs", Linux: "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", Needs: needsHost,
			About:  "how the CPU clock follows the load: performance keeps it high",
			Effect: "5 to 30% if a CPU lowers its clock between packets", Source: "reference, causes (cpu-governor); Linux cpufreq.rst",
			Risk: "more power and heat", Verify: "scaling_cur_freq stays high during the test", Checklist: []string{"C-07", "C-29"}},
	}
}

// testKnobs are options of a test: they need no privilege and change no host.
func testKnobs() []Knob {
	const nothing, none = "nothing", "none: only the test differs"
	return []Knob{
		{ID: Streams, Scope: OfTest, Title: "streams", Linux: "-P", Needs: nothing, About: "connections at the same time",
			Effect: "nearly linear if a window, loss or one CPU limits each of them; too many cost about 10%", Source: "checklist B-10, B-15, B-16; reference, methods (formula 10)",
			Risk: "the result no longer shows the rate of a program with one connection", Verify: "the result lists that many streams", Checklist: []string{"B-10", "B-15", "C-35"}},
		{ID: Window, Scope: OfTest, Title: "explicit window", Linux: "-w", Needs: nothing, About: "socket buffer of the test; without it the kernel tunes the buffer",
			Effect: "a fixed window carries at most window x 8 / RTT; +10% to -24% on a LAN", Source: "checklist B-17, C-18",
			Risk: "an explicit window switches autotuning off, and the kernel reduces it to rmem_max or wmem_max", Verify: "the result shows the granted window", Checklist: []string{"B-11", "B-17", "C-18"}},
		{ID: Length, Scope: OfTest, Title: "message length", Linux: "-l", Needs: nothing, About: "bytes of each write",
			Effect: "0.74 to 13.8 Gb/s if messages were small", Source: "checklist C-19; reference, causes (app-limited)",
			Risk: none, Verify: "CPU per Gb/s of the sender falls", Checklist: []string{"C-19", "B-19"}},
		{ID: Lean, Scope: OfTest, Title: "data path without copies", Linux: "--lean", Needs: nothing, About: "the test does less work per byte: the sender does not copy, and the receiver's kernel discards the data",
			Effect: "26% more than a copying sender on loopback", Source: "measured (design, known ceilings)",
			Risk: "real programs copy: the test shows what the path carries, not what they get", Verify: "the result names the data path of each end", Checklist: []string{"C-01", "B-07"}},
		{ID: TestCongestion, Scope: OfTest, Title: "congestion control of the test", Linux: "-C", Needs: nothing + "; without root only those that the kernel allows", About: "as congestion-control, for the test's connections only",
			Effect: "as for congestion-control", Source: "tcp(7), TCP_CONGESTION",
			Risk: none, Verify: "the connections report it (TCP_CONGESTION); a route's congctl overrides it", Checklist: []string{"S-10"}},
		{ID: CPUAffinity, Scope: OfTest, Title: "CPUs of the test", Linux: "-A", Needs: nothing, About: "the CPU to which each end's threads are bound",
			Effect: "1.7 times on loopback with both ends on one CPU; 10 to 40% on the NIC's node at 40 Gb/s and more", Source: "measured (ARCHITECTURE.md); reference, causes (numa-remote)",
			Risk: none, Verify: "the CPU times of the result show it", Checklist: []string{"C-03", "C-08"}},
	}
}
