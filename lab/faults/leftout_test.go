package faults

// Reasons that several causes share.
const (
	noNIC     = "namespaces have no NIC: neither rings nor queues, links nor slots"
	noHyper   = "namespaces have no hypervisor under them"
	noSecond  = "it takes more CPUs than a machine for tests has"
	noGlobal  = "it is a setting of the whole machine, which others use too"
	noPurpose = "it says that a figure contradicts another; see TestStoryB"
)

// LeftOut returns the causes that no fault of the table produces, with the reason.
func LeftOut() map[string]string {
	return map[string]string{
		"single-flow": noSecond, "irq-one-cpu": noNIC, "numa-remote": noSecond, "cpu-governor": noGlobal, "cpu-steal": noHyper, "cpu-limit": noHyper,
		"memory-pressure": noGlobal, "disk": "a test moves memory to memory",
		"lro-forwarding": noNIC, "emulated-nic": noNIC, "wrong-driver": noNIC, "too-few-queues": noNIC, "rss-not-spreading": noNIC,
		"ring-overflow": noNIC, "backlog-overflow": noGlobal, "pcie": noNIC, "vswitch": noHyper, "netqueue-off": noHyper,
		"interrupt-moderation": noNIC, "link-negotiated-low": noNIC, "duplex": noNIC, "bad-link": noNIC, "pause-frames": noNIC,
		"tcp-proxy": "it takes a program that ends connections and begins others", "vpn-cpu": "it takes a kernel with WireGuard or IPsec",
		"asymmetric-route": "it costs nothing by itself; the faults of one direction have their own causes",
		"noisy-neighbour":  "whatever else the machine does would have to come and go by plan", "measurement": noPurpose,
	}
}
