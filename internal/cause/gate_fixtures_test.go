package cause

import (
	"fmt"
	"strings"

	"thru/internal/cause/knob"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// Facts of healthy hosts, modelled on real machines.

func linuxHost(kernel, hypervisor string) *measure.Facts {
	return &measure.Facts{
		OS: new("linux"), Kernel: new(kernel), Hypervisor: new(hypervisor), CPUModel: new("a CPU"),
		Cores: new(8), Memory: new(int64(32 << 30)), Congestion: new("cubic"), CongAvail: []string{"reno", "cubic"},
		Sysctls: map[string]string{
			"net.core.rmem_max": "212992", "net.core.wmem_max": "212992", "net.core.netdev_max_backlog": "1000",
			"net.ipv4.tcp_rmem": "4096\t131072\t6291456", "net.ipv4.tcp_wmem": "4096\t16384\t4194304",
			"net.ipv4.tcp_window_scaling": "1", "net.ipv4.tcp_sack": "1", "net.ipv4.tcp_timestamps": "1",
			"net.ipv4.tcp_mtu_probing": "0", "net.ipv4.tcp_slow_start_after_idle": "1", "net.ipv4.tcp_no_metrics_save": "0",
		},
		CPU:      &measure.Processors{Usable: new(8)},
		RAM:      &measure.RAM{Total: new(int64(32 << 30)), Available: new(int64(28 << 30)), TCPPages: new(int64(1 << 20)), TCPMax: new(int64(3 << 30))},
		Cgroup:   &measure.Cgroup{Version: 2, Path: "/user.slice"},
		Security: &measure.Security{AppArmor: new("unconfined")},
		Firewall: &measure.Firewall{Rules: new(12), LongestChain: new(5), Conntrack: new(true), Tracked: new(int64(80)), TrackedMax: new(int64(262144))},
		Clock:    &measure.Clock{Source: new("tsc"), Available: []string{"tsc", "hpet", "acpi_pm"}, Synchronised: new(true), ReadNs: new(int64(25))},
		Load:     &measure.Load{SpanNs: 5e8, CPUPct: new(1.5), BusiestPct: new(9.0), StealPct: new(0.0), Dropped: new(int64(0))},
	}
}

// allOffloads has the offloads by ethtool's names.
func allOffloads() map[string]bool {
	m := map[string]bool{"large-receive-offload": false}
	for _, o := range scene.Offloads() {
		m[knob.Offload(o.Knob)] = true
	}
	return m
}

// realNIC is a 25 Gb/s adapter with 8 queues.
func realNIC(name string) measure.Interface {
	i := measure.Interface{
		Name: name, Kind: new("physical"), MTU: new(9000), Addrs: []string{"192.0.2.1/24"}, Up: new(true), Carrier: new(true),
		Driver: new("ice"), Version: new("6.8.0"), InTree: new(true), SpeedBps: new(int64(25e9)), MaxBps: new(int64(25e9)), Duplex: new("full"),
		Nominal: new(false), Queues: new(8), Offloads: allOffloads(), Qdisc: new("mq fq_codel"), NUMANode: new(0),
		PCI: &measure.PCI{Gen: new(4), Lanes: new(8), MaxGen: new(4), MaxLanes: new(16), SlotGen: new(4), SlotLanes: new(8),
			UsableBps: new(int64(109.4e9)), PortsBps: new(int64(50e9)), Vendor: "0x8086", Device: "0x159b", Siblings: []string{"other0"}},
		Channels: &measure.Channels{Combined: 8, CombinedMax: 64},
		Rings:    &measure.Rings{RX: 2048, TX: 256, RXMax: 8160, TXMax: 8160},
		Coalesce: &measure.Coalesce{AdaptiveRX: true, RXNs: 50_000},
		RSS: &measure.RSS{Hash: "toeplitz", Table: 512, Queues: []int{64, 64, 64, 64, 64, 64, 64, 64},
			Fields: map[string][]string{"udp4": {"src-ip", "dst-ip", "src-port", "dst-port"}}},
		Errors: map[string]uint64{},
	}
	for q := range 8 {
		i.IRQs = append(i.IRQs, measure.IRQ{Number: 100 + q, Name: fmt.Sprintf("ice-%s-TxRx-%d", name, q), Allowed: []int{q}, Effective: []int{q}})
		i.Counters = append(i.Counters, measure.QueueCounter{Queue: fmt.Sprintf("rx-%d", q), Packets: 1e6})
	}
	return i
}

func bareMetal() *measure.Facts {
	f := linuxHost("6.8.0-45-generic", "none")
	f.Machine = &measure.Machine{Vendor: "Dell Inc.", Product: "PowerEdge R650"}
	f.CPU = &measure.Processors{Usable: new(8), Driver: new("intel_pstate"), Governors: []string{"performance"}, IdleState: new("C6"), IdleExit: new(int64(133_000))}
	f.NUMA = []measure.NUMANode{{Node: 0, CPUs: []int{0, 1, 2, 3}}, {Node: 1, CPUs: []int{4, 5, 6, 7}}}
	f.Load.StealPct = nil
	f.Interfaces = []measure.Interface{loopback(), realNIC("ens1f0")}
	return f
}

func loopback() measure.Interface {
	return measure.Interface{Name: "lo", Kind: new("loopback"), MTU: new(65536), Addrs: []string{"127.0.0.1/8"}, Up: new(true), Carrier: new(true), Nominal: new(true), Offloads: allOffloads(), Qdisc: new("noqueue")}
}

// kvmGuest is a default virtual machine of a cloud: one virtio adapter with a queue for each CPU.
func kvmGuest() *measure.Facts {
	f := linuxHost("6.1.0-18-cloud-amd64", "kvm")
	f.Cores, f.CPU.Usable = new(4), new(4)
	f.Clock.Source, f.Clock.Available = new("kvm-clock"), []string{"kvm-clock", "tsc", "acpi_pm"}
	f.Interfaces = []measure.Interface{loopback(), {
		Name: "eth0", Kind: new("paravirtual"), MTU: new(1500), Addrs: []string{"192.0.2.10/24"}, Up: new(true), Carrier: new(true),
		Driver: new("virtio_net"), Version: new("1.0.0"), InTree: new(true), Bus: new("0000:00:03.0"), Nominal: new(true), Queues: new(4), Offloads: allOffloads(),
		Channels: &measure.Channels{Combined: 4, CombinedMax: 4}, Rings: &measure.Rings{RX: 256, TX: 256, RXMax: 256, TXMax: 256}, Qdisc: new("mq fq_codel"),
		IRQs: []measure.IRQ{{Number: 25, Name: "virtio0-input.0", Effective: []int{0}}, {Number: 26, Name: "virtio0-output.0", Effective: []int{1}},
			{Number: 27, Name: "virtio0-input.1", Effective: []int{2}}},
	}}
	return f
}

// ena is a cloud instance whose adapter reports no speed.
func ena() *measure.Facts {
	f := kvmGuest()
	i := &f.Interfaces[1]
	i.Kind = new("virtual function")
	i.Name, i.Driver, i.Version, i.MTU, i.Nominal = "ens5", new("ena"), new("6.1.0-18-cloud-amd64"), new(9001), new(false)
	i.PCI = &measure.PCI{Vendor: "0x1d0f", Device: "0xec20"}
	f.NotChecked = []measure.NotChecked{{Fact: "interfaces.ens5.speed_bps", Why: "the driver does not report it"}}
	return f
}

// container is one end of a veth pair with everything masked that a container runtime masks.
func container() *measure.Facts {
	f := linuxHost("6.6.13", "none")
	f.Cgroup = &measure.Cgroup{Version: 2, Path: "/", Container: "docker"}
	delete(f.Sysctls, "net.core.rmem_max")
	f.Firewall, f.CPU.Governors = nil, []string{"performance"}
	f.NotChecked = []measure.NotChecked{{Fact: "firewall", Why: "only root may read it"}}
	f.Interfaces = []measure.Interface{loopback(), veth("eth0", "172.17.0.2/16")}
	return f
}

// veth has GRO off, as the kernel makes it.
func veth(name, addr string) measure.Interface {
	offloads := allOffloads()
	offloads["generic-receive-offload"] = false
	return measure.Interface{Name: name, Kind: new("veth"), MTU: new(1500), Addrs: []string{addr}, Up: new(true), Carrier: new(true), Driver: new("veth"),
		SpeedBps: new(int64(10e9)), Duplex: new("full"), Nominal: new(true), Queues: new(1), Offloads: offloads,
		Channels: &measure.Channels{RX: 1, TX: 1, RXMax: 2, TXMax: 2}, Qdisc: new("noqueue")}
}

// laptop has Wi-Fi, a cable to a slower switch, and saves power.
func laptop() *measure.Facts {
	f := linuxHost("6.11.0-9-generic", "none")
	f.CPU = &measure.Processors{Usable: new(8), Driver: new("intel_pstate"), Governors: []string{"powersave"}, Preference: new("balance_performance"),
		IdleState: new("C10"), IdleExit: new(int64(890_000))}
	f.Clock.Synchronised = new(false)
	nic := realNIC("enp0s31f6")
	nic.Driver, nic.SpeedBps, nic.MaxBps, nic.MTU = new("igc"), new(int64(1e9)), new(int64(2.5e9)), new(1500)
	nic.PCI, nic.RSS, nic.Counters = &measure.PCI{UsableBps: new(int64(6.8e9))}, &measure.RSS{Queues: []int{32, 32, 32, 32}}, nil
	nic.Offloads["tcp-segmentation-offload"] = false
	nic.Counters = []measure.QueueCounter{{Queue: "rx-0", Packets: 900}, {Queue: "rx-1", Packets: 7}}
	f.Interfaces = []measure.Interface{loopback(), nic}
	return f
}

// freeBSD is a guest with its defaults.
func freeBSD() *measure.Facts {
	return &measure.Facts{OS: new("freebsd"), Kernel: new("14.1-RELEASE"), Hypervisor: new("vmware"), Cores: new(4), Congestion: new("cubic"),
		Sysctls: map[string]string{"kern.ipc.maxsockbuf": "2097152", "net.inet.tcp.recvbuf_max": "2097152", "net.inet.tcp.sendbuf_max": "2097152",
			"net.inet.tcp.rfc1323": "1", "net.inet.tcp.sack.enable": "1"},
		Interfaces: []measure.Interface{{Name: "vmx0", MTU: new(1500), Up: new(true), Driver: new("vmx"), Bus: new("pci0:11:0:0"), Nominal: new(true)}},
	}
}

// syn with all options.
func syn(mss int) *measure.SYN {
	return &measure.SYN{MSS: new(mss), WindowScale: new(7), HasScale: new(true), SACK: new(true), Timestamps: new(true), ECN: new(false)}
}

// goodPath is what a probe of a healthy path finds.
func goodPath(rtt int64, mtu int) *measure.Path {
	direction := func() measure.DirectionFacts {
		return measure.DirectionFacts{MTU: &measure.PathMTU{Bytes: mtu, Claimed: mtu, Local: true, Probes: 4}, Hops: new(0),
			Marks: []measure.Mark{{Sent: 10, Seen: 10, ECNSent: 2, ECNSeen: 2}}, UDP: &measure.UDPReach{Sent: 20, Got: 20}}
	}
	return &measure.Path{From: "local", To: "peer", FromAddr: "192.0.2.1", ToAddr: "192.0.2.2",
		RTT:       &measure.PathRTT{Min: rtt * 9 / 10, P50: rtt, P90: rtt * 11 / 10, P99: rtt * 3 / 2, Max: rtt * 2, Samples: 100},
		Handshake: &measure.Handshake{SYNSent: syn(mtu - 40), SYNSeen: syn(mtu - 40), SYNACKSent: syn(mtu - 40), SYNACKSeen: syn(mtu - 40), RTTNs: new(rtt)},
		Forward:   direction(), Back: direction(), Clock: &measure.ClockOffset{OffsetNs: -2e6, BoundNs: rtt / 2}, Ports: &measure.SourcePorts{Ports: 16, Directions: 1}}
}

// pair is two equal hosts on a healthy path.
func pair(facts func() *measure.Facts, face string, rtt int64, mtu int) scene.Subject {
	route := func() *measure.Route { return &measure.Route{Interface: face, MTU: mtu} }
	return scene.Subject{Ends: []scene.End{{Name: "local", Facts: facts(), Route: route()}, {Name: "peer", Facts: facts(), Route: route()}}, Path: goodPath(rtt, mtu)}
}

// serverPair is the bare-metal pair, which most tests modify.
func serverPair() scene.Subject { return pair(bareMetal, "ens1f0", 200_000, 9000) }

// face returns the interface of an end's route.
func face(s scene.Subject, end int) *measure.Interface {
	return s.Ends[end].Facts.Interface(s.Ends[end].Route.Interface)
}

// gateText words a gate as "status id: fact", for messages.
func gateText(g measure.Gate) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s [%s%s%s] %s | %s | %q | %s | %s", g.Status, g.ID, g.EndPoint, g.From, g.Interface, g.Fact, g.Why, g.Fix, g.Advice, g.Risk))
}
