package report

import (
	"thru/internal/measure"
)

// checked is a pair with a path that drops jumbo frames, one more thing to fix, and one fact that could not
// be read.
func checked() *measure.Document {
	local, peer := linuxFacts("ant", 4), linuxFacts("bee", 8)
	fill(local)
	return &measure.Document{
		Schema: measure.Schema, Thru: "0.1.0", Command: "check", Arguments: []string{"check", "bee"}, StartedAt: began(), ElapsedNs: 1_400_000_000,
		Error:     &measure.Error{Message: "the path is not fit to be measured: mtu-path: 9000 claimed", Hint: "ip link set eth0 mtu 1500", ExitCode: 3},
		EndPoints: []measure.EndPoint{{Name: "local", Thru: "0.1.0", Facts: local}, {Name: "bee", Addr: "192.0.2.2:5200", Thru: "0.1.0", Facts: peer}},
		Paths:     []measure.Path{jumboPath()},
		Gates: []measure.Gate{
			{ID: "mtu-path", From: "local", To: "bee", Status: measure.GateFail, Fact: "MTU 9000 at both ends; 1500 bytes pass with DF, larger ones are lost silently",
				Why: "full segments are lost after a good handshake: 0 Mb/s", Advice: "set the same MTU at both ends and on every switch between; until then MTU 1500", FixAt: "local", Fix: []string{"ip link set dev eth0 mtu 1500"}, Risk: "connections over eth0 stop for a moment",
				Cause: "jumbo-mismatch", Checklist: []string{"S-03", "C-21"}},
			{ID: "rings", EndPoint: "bee", Interface: "eth0", Status: measure.GateWarn, Fact: "1203 packets dropped by the ring of eth0, which has 256 of 4096 descriptors", Why: "bursts overflow a short ring",
				Fix: []string{"ethtool -G eth0 rx 4096"}, Cause: "ring-overflow", Checklist: []string{"C-24"}},
			{ID: "link-speed", EndPoint: "local", Interface: "eth0", Status: measure.GatePass, Fact: "10 Gb/s, full duplex", Why: "nothing passes a link faster than its rate"},
			{ID: "firewall", EndPoint: "local", Status: measure.GateNotChecked, Fact: "only root may list the rules", Why: "each packet passes all rules of a chain"},
			{ID: "firewall", EndPoint: "bee", Status: measure.GateNotChecked, Fact: "only root may list the rules", Why: "each packet passes all rules of a chain"},
		},
		Cells: []measure.Cell{},
	}
}

func jumboPath() measure.Path {
	syn := func(mss int, sack bool) *measure.SYN {
		return &measure.SYN{MSS: &mss, WindowScale: new(7), HasScale: new(true), SACK: &sack, Timestamps: new(true), ECN: new(false)}
	}
	route := &measure.Route{Interface: "eth0", MTU: 9000}
	return measure.Path{
		From: "local", To: "bee", FromAddr: "192.0.2.1:40112", ToAddr: "192.0.2.2:5210", TakenAt: began().UnixNano(),
		RTT:       &measure.PathRTT{Min: 180_000, P50: 210_000, P90: 260_000, P99: 400_000, Max: 900_000, Samples: 100},
		Handshake: &measure.Handshake{SYNSent: syn(8960, true), SYNSeen: syn(8960, false), SYNACKSent: syn(8960, false), SYNACKSeen: syn(8960, false)},
		Forward: measure.DirectionFacts{Route: route, MTU: &measure.PathMTU{Bytes: 1500, Claimed: 9000, Silent: true, Jumbo: new(false), Probes: 60}, Hops: new(1),
			Marks: []measure.Mark{{Sent: 46, Seen: 0}, {Sent: 0, Seen: 0, ECNSent: 2, ECNSeen: 2}}, UDP: &measure.UDPReach{Sent: 20, Got: 20}},
		Back: measure.DirectionFacts{Route: route, MTU: &measure.PathMTU{Bytes: 9000, Claimed: 9000, Local: true, Probes: 3}, Hops: new(1),
			Marks: []measure.Mark{{Sent: 46, Seen: 46}}, UDP: &measure.UDPReach{Sent: 20, Got: 20}},
		Clock: &measure.ClockOffset{OffsetNs: 3_400_000, BoundNs: 90_000},
		Ports: &measure.SourcePorts{Ports: 16, Directions: 2, By: "delay", Groups: []measure.PortGroup{
			{Ports: []int{40001, 40002, 40003}, RTTNs: 180_000}, {Ports: []int{40004, 40005}, RTTNs: 420_000}}},
		Missing: []measure.NotChecked{{Fact: "back.udp", Why: "blocked"}},
	}
}

// fill gives a host every kind of fact.
func fill(f *measure.Facts) {
	f.Machine = &measure.Machine{Vendor: "Dell Inc.", Product: "PowerEdge R650", Chassis: "rack mount", BIOSVendor: "Dell Inc.", BIOSVersion: "1.6.5", BIOSDate: "04/15/2022", UEFI: new(true)}
	f.CPU = &measure.Processors{Sockets: new(2), Cores: new(32), Threads: new(64), Usable: new(60), SMT: new(true), MaxHz: new(int64(3.2e9)), BaseHz: new(int64(2e9)),
		Driver: new("intel_pstate"), Governors: []string{"performance"}, Boost: new(true), IdleDriver: new("intel_idle"), IdleState: new("C6"), IdleExit: new(int64(133_000)), Isolated: []int{2, 3, 4, 9}}
	f.NUMA = []measure.NUMANode{{Node: 0, CPUs: []int{0, 1, 2, 3}, Total: new(int64(128 << 30))}, {Node: 1, CPUs: []int{4, 5, 6, 7}, Total: new(int64(128 << 30))}}
	f.RAM = &measure.RAM{Total: new(int64(256 << 30)), Available: new(int64(200 << 30)), SwapTotal: new(int64(8 << 30)), SwapUsed: new(int64(0)), HugePages: new(int64(512)), HugeSize: new(int64(2 << 20)), THP: new("madvise")}
	f.Cgroup = &measure.Cgroup{Version: 2, Container: "docker", QuotaCPUs: new(2.5), MemoryMax: new(int64(4 << 30)), Periods: new(int64(9000)), Throttled: new(int64(1200))}
	f.Security = &measure.Security{SELinux: new("enforcing"), AppArmor: new("disabled"), Seccomp: new("filter")}
	f.Firewall = &measure.Firewall{Rules: new(42), Chains: new(6), LongestChain: new(18), Tracked: new(int64(1200)), TrackedMax: new(int64(262144))}
	f.Clock = &measure.Clock{Source: new("tsc"), Synchronised: new(true), MaxErrorNs: new(int64(2_000_000)), ReadNs: new(int64(24))}
	f.Disks = []measure.Disk{{Name: "nvme0n1", Model: "Micron 7450", SizeBytes: new(int64(960e9)), Scheduler: new("none"), Mounts: []measure.Mount{{Path: "/", Type: "ext4"}}}}
	f.Hypervises = &measure.Hypervises{Guests: 3, Vhost: 3, Switch: []string{"bridge br0"}}
	f.Load = &measure.Load{SpanNs: 1e9, CPUPct: new(3.2), BusiestCPU: new(5), BusiestPct: new(12.0), StealPct: new(0.0),
		Top: []measure.ProcessLoad{{PID: 7, Name: "backup", CPUPct: 11}}, Interfaces: []measure.InterfaceLoad{{Name: "eth0", RxBps: 4e6, TxBps: 120e6}}}
	f.RootAdds = []string{"firewall rules"}
	i := &f.Interfaces[1]
	i.Kind, i.Firmware, i.Autoneg, i.MaxBps, i.Port = new("physical"), new("22.36.1010"), new(false), new(int64(25e9)), new("direct attach")
	i.PCI = &measure.PCI{Gen: new(3), Lanes: new(8), MaxGen: new(4), MaxLanes: new(16), SlotGen: new(3), SlotLanes: new(8), UsableBps: new(int64(54.7e9)), PortsBps: new(int64(50e9))}
	i.Channels, i.Rings = &measure.Channels{Combined: 8, CombinedMax: 63}, &measure.Rings{RX: 1024, RXMax: 8192, TX: 1024, TXMax: 8192}
	i.Coalesce, i.Pause = &measure.Coalesce{AdaptiveRX: true, TXNs: 8000, TXFrames: 128}, &measure.Pause{Autoneg: false, RX: true, TX: true}
	i.RSS = &measure.RSS{Hash: "toeplitz", Table: 128, Queues: []int{16, 16, 16, 16, 16, 16, 16, 16}, Fields: map[string][]string{"tcp4": {"src-ip", "dst-ip", "src-port", "dst-port"}}}
	i.Offloads = map[string]bool{"tcp-segmentation-offload": true, "large-receive-offload": false}
	i.RPS, i.IRQs = map[string]string{"rx-0": "0-3"}, []measure.IRQ{{Number: 61, Name: "mlx5_comp0", Effective: []int{0}}, {Number: 62, Name: "mlx5_comp1", Effective: []int{1}, Shared: []string{"ahci"}}}
	i.Counters, i.Errors = []measure.QueueCounter{{Queue: "rx-0", Packets: 120}, {Queue: "rx-1", Packets: 118}}, map[string]uint64{"rx_missed_errors": 4}
	i.Qdisc, i.NUMANode = new("mq fq_codel"), new(0)
	i.Bond = &measure.Bond{Mode: "802.3ad", Hash: "layer2", Members: []measure.BondMember{{Name: "eno1", Up: true}, {Name: "eno2"}}}
	i.Tunnel, i.Lower = &measure.Tunnel{Kind: "vxlan", Local: "192.0.2.1", Remote: "192.0.2.9", Overhead: 50}, []string{"eno1", "eno2"}
}

// gated is a test with a gate that warned, on a cached path.
func gated() *measure.Document {
	d := verdictTest()
	p := jumboPath()
	p.Cached = true
	d.Paths, d.Gates, d.Forced = []measure.Path{p}, checked().Gates, true
	return d
}
