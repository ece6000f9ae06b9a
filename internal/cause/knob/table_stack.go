package knob

// stackKnobs are the knobs of the stack between TCP and an interface.
func stackKnobs() []Knob {
	return []Knob{
		{ID: DefaultQdisc, Scope: OfHost, Role: Sender, Title: "queueing discipline of new interfaces", Linux: "net.core.default_qdisc", Needs: needsHost,
			About:  "what interfaces get that come up later; those that are up keep theirs",
			Effect: "as of qdisc, from the next boot on", Source: "Linux admin-guide/sysctl/net.rst",
			Risk: "none for what is up", Verify: "an interface that comes up has it (tc qdisc show)", Checklist: []string{"S-10"}},
		{ID: Qdisc, Scope: OfInterface, Role: Sender, Title: "queueing discipline", Linux: "tc qdisc replace dev ... root", Needs: needsNet,
			About:  "in what order packets leave, and which are dropped: fq spaces what TCP paces, fq_codel keeps the queue short",
			Effect: "RTT under load from 142 to 25 ms behind a full queue; the pacing of bbr in the qdisc instead of by a timer a socket", Source: "measured (causes, shaper); RFC 8290; tc-fq(8)",
			Risk: "what was configured there is lost, so thru replaces none with options; packets in the queue may be dropped", Verify: "tc -s qdisc show counts the test's packets under it", Checklist: []string{"S-10"},
			shows: shown{"qdisc that the interface sends by", check.qdisc}},
		{ID: Backlog, Scope: OfHost, Role: Receiver, Title: "backlog before the stack", Linux: "net.core.netdev_max_backlog", Needs: needsHost,
			About:  "packets that may wait for each CPU between interface and stack (RPS, loopback, veth, tunnels)",
			Effect: "drops in column 2 of softnet_stat end; without drops there is nothing to gain", Source: "Linux admin-guide/sysctl/net.rst; checklist C-32",
			Risk: "latency: so many packets may wait", Verify: "the second column of /proc/net/softnet_stat stands still during the test", Checklist: []string{"C-32"}},
		{ID: Budget, Scope: OfHost, Role: Receiver, Title: "packets of a softirq round", Linux: "net.core.netdev_budget", Needs: needsHost,
			About:  "packets that a CPU takes off its interfaces before it lets others run",
			Effect: "fewer rounds cut short (column 3 of softnet_stat); a few percent where they are many", Source: "Linux admin-guide/sysctl/net.rst",
			Risk: "programs on that CPU wait longer", Verify: "the third column of /proc/net/softnet_stat rises less during the test", Checklist: []string{"C-29", "C-32"}},
	}
}
