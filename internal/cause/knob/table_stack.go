package knob

// stackKnobs are the knobs of the stack between TCP and an interface.
func stackKnobs() []Knob {
	return []Knob{
		{ID: DefaultQdisc, Scope: OfHost, Role: Sender, Title: "queueing discipline of new interfaces", Linux: "net.core.default_qdisc", Needs: needsHost,
			About:  "the discipline of interfaces that come up later; those that are up keep theirs",
			Effect: "as for qdisc, from the next boot on", Source: "Linux admin-guide/sysctl/net.rst",
			Risk: "none for interfaces that are up", Verify: "an interface that comes up has it (tc qdisc show)", Checklist: []string{"S-10"}},
		{ID: Qdisc, Scope: OfInterface, Role: Sender, Title: "queueing discipline", Linux: "tc qdisc replace dev ... root", Needs: needsNet,
			About:  "the order in which packets leave, and which are dropped: fq paces TCP's packets, fq_codel keeps the queue short",
			Effect: "RTT under load from 142 to 25 ms behind a full queue; bbr is paced by the qdisc instead of a timer per socket", Source: "measured (causes, shaper); RFC 8290; tc-fq(8)",
			Risk: "its earlier configuration is lost, so thru replaces no discipline with options; packets in the queue may be dropped", Verify: "tc -s qdisc show counts the test's packets under it", Checklist: []string{"S-10"},
			shows: shown{"qdisc of the interface", check.qdisc}},
		{ID: Backlog, Scope: OfHost, Role: Receiver, Title: "backlog before the stack", Linux: "net.core.netdev_max_backlog", Needs: needsHost,
			About:  "packets that may wait for each CPU between interface and network stack (RPS, loopback, veth, tunnels)",
			Effect: "ends drops in column 2 of softnet_stat; no gain without such drops", Source: "Linux admin-guide/sysctl/net.rst; checklist C-32",
			Risk: "latency: more packets may wait", Verify: "the second column of /proc/net/softnet_stat does not rise during the test", Checklist: []string{"C-32"}},
		{ID: Budget, Scope: OfHost, Role: Receiver, Title: "packets per softirq round", Linux: "net.core.netdev_budget", Needs: needsHost,
			About:  "packets that a CPU takes from its interfaces before other work may run",
			Effect: "fewer rounds end early (column 3 of softnet_stat); a few percent if there are many", Source: "Linux admin-guide/sysctl/net.rst",
			Risk: "programs on that CPU wait longer", Verify: "the third column of /proc/net/softnet_stat rises less during the test", Checklist: []string{"C-29", "C-32"}},
	}
}
