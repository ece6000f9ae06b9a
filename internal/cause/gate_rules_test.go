package cause

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/cause/scene"
	"thru/internal/measure"
)

const (
	pass_ = measure.GatePass
	warn_ = measure.GateWarn
	fail_ = measure.GateFail
	none_ = measure.GateNotChecked
	gone_ = "" // no such gate
)

// ruleCase modifies the healthy pair of servers and checks one gate of the first end (or of the path from there).
type ruleCase struct {
	rule, status string
	spoil        func(*scene.Subject)
	fact         string // part of the fact
	fix          string // part of the fix, in words or commands; "" for any
}

// i is the interface of the route of the first end, f its facts, p the path.
func on(change func(f *measure.Facts, i *measure.Interface, p *measure.Path)) func(*scene.Subject) {
	return func(s *scene.Subject) { change(s.Ends[0].Facts, face(*s, 0), s.Path) }
}

// gap removes a fact, with a reason.
func gap(fact string, drop func(f *measure.Facts, i *measure.Interface, p *measure.Path)) func(*scene.Subject) {
	return on(func(f *measure.Facts, i *measure.Interface, p *measure.Path) {
		drop(f, i, p)
		n := measure.NotChecked{Fact: fact, Why: "because of a test"}
		f.NotChecked, p.Missing = append(f.NotChecked, n), append(p.Missing, n)
	})
}

type (
	ff = *measure.Facts
	ii = *measure.Interface
	pp = *measure.Path
)

// guest makes the first end a virtual machine.
func guest(f ff) { f.Hypervisor, f.CPU.Governors = new("vmware"), nil }

// wan stretches the path to 20 ms, over a router.
func wan(s *scene.Subject) {
	*s.Path.RTT = measure.PathRTT{Min: 19e6, P50: 20e6, P90: 21e6, P99: 22e6, Max: 23e6, Samples: 100}
	s.Path.Handshake.RTTNs = new(int64(20e6))
}

// cutTo sets a buffer of the first end, on a host with this much memory (0: not known), with no known link speed.
func cutTo(name, value string, memory int64) func(*scene.Subject) {
	return func(s *scene.Subject) {
		wan(s)
		face(*s, 0).Nominal, face(*s, 1).Nominal = new(true), new(true)
		s.Ends[0].Facts.Sysctls[name], s.Ends[0].Facts.RAM.Total = value, nil
		if memory > 0 {
			s.Ends[0].Facts.RAM.Total = &memory
		}
	}
}

// smaller lets only so many bytes pass, in one direction.
func smaller(w *measure.DirectionFacts, bytes int, router *int) {
	*w.MTU = measure.PathMTU{Bytes: bytes, Claimed: w.MTU.Claimed, Silent: router == nil, Router: router, Jumbo: new(false), Probes: 20}
}

// smallLink gives the peer's interface an MTU of 1500.
func smallLink(s *scene.Subject) {
	r := s.Ends[1].Route
	r.MTU, s.Ends[1].Facts.Interface(r.Interface).MTU = 1500, new(1500)
}

func linkCases() []ruleCase {
	return []ruleCase{
		{"host-facts", none_, func(s *scene.Subject) { s.Ends[0].Facts = nil }, "no thru agent", ""},
		{"link-up", pass_, nil, "with carrier", ""},
		{"link-up", fail_, on(func(f ff, i ii, p pp) { i.Up = new(false) }), "is down", "ip link set dev ens1f0 up"},
		{"link-up", fail_, on(func(f ff, i ii, p pp) { i.Carrier = new(false) }), "no carrier", ""},
		{"link-up", none_, gap("interfaces.ens1f0.up", func(f ff, i ii, p pp) { i.Up = nil }), "because of a test", ""},
		{"link-speed", pass_, nil, "25.0 Gb/s", ""},
		{"link-speed", fail_, func(s *scene.Subject) { s.LinkBps = 40e9 }, "40.0 Gb/s wanted, but ens1f0 runs at 25.0", ""},
		{"link-speed", pass_, func(s *scene.Subject) { s.LinkBps = 25e9 }, "25.0 Gb/s", ""},
		{"link-speed", warn_, func(s *scene.Subject) { s.LinkBps, s.LinkL2 = 25e9, true }, "25.0 Gb/s of frames take 25.1", ""},
		{"link-speed", warn_, on(func(f ff, i ii, p pp) { i.SpeedBps, i.PeerBps = new(int64(1e9)), new(int64(10e9)) }), "its link partner support 10.0", "ethtool -s ens1f0 autoneg on"},
		{"link-speed", pass_, on(func(f ff, i ii, p pp) { i.SpeedBps = new(int64(10e9)) }), "supports 25.0", ""},
		{"link-speed", none_, gap("interfaces.ens1f0.speed_bps", func(f ff, i ii, p pp) { i.SpeedBps = nil }), "because of a test", ""},
		{"link-speed", none_, func(s *scene.Subject) { face(*s, 0).Nominal, s.LinkBps = new(true), 10e9 }, "nominal", ""},
		{"duplex", pass_, nil, "full", ""},
		{"duplex", fail_, on(func(f ff, i ii, p pp) { i.Duplex = new("half") }), "half duplex", ""},
		{"duplex", warn_, func(s *scene.Subject) { face(*s, 0).Duplex = new("half"); s.Ends[0].Route = nil }, "half duplex", ""},
		{"duplex", none_, gap("interfaces.ens1f0.duplex", func(f ff, i ii, p pp) { i.Duplex = nil }), "because of a test", ""},
		{"link-errors", pass_, nil, "no errors", ""},
		{"link-errors", warn_, on(func(f ff, i ii, p pp) { i.Errors = map[string]uint64{"rx_crc_errors": 9000, "tx_dropped": 4} }), "9000 of 8000000", ""},
		{"link-errors", pass_, on(func(f ff, i ii, p pp) { i.Errors["rx_crc_errors"] = 3 }), "3 packets", ""},
		{"link-errors", none_, gap("interfaces.ens1f0.error_counters", func(f ff, i ii, p pp) { i.Errors = nil }), "because of a test", ""},
		{"link-errors", none_, on(func(f ff, i ii, p pp) { i.Errors, i.Kind = nil, nil }), "error counters of ens1f0: not read", ""}, // an older agent
		{"link-load", pass_, nil, "carried no other traffic", ""},
		{"link-load", none_, gap("load.interfaces", func(f ff, i ii, p pp) {}), "because of a test", ""},
		{"link-load", warn_, on(func(f ff, i ii, p pp) {
			f.Load.Interfaces = []measure.InterfaceLoad{{Name: "ens1f0", RxBps: 1, TxBps: 2e9}}
		}), "carries 2.00 Gb/s of other traffic out, of 25.0 Gb/s", "ss -tunp"},
		{"link-load", pass_, on(func(f ff, i ii, p pp) {
			f.Load.Interfaces = []measure.InterfaceLoad{{Name: "ens1f0", TxBps: 2e8}}
		}), "carries 200 Mb/s", ""},
		{"link-load", warn_, on(func(f ff, i ii, p pp) {
			i.Nominal, f.Load.Interfaces = new(true), []measure.InterfaceLoad{{Name: "ens1f0", RxBps: 6e7}}
		}), "carries 60.0 Mb/s of other traffic in; the link speed is not known", ""},
		{"bond", pass_, on(bonded), "2 members up, hash layer3+4", ""},
		{"bond", pass_, on(func(f ff, i ii, p pp) { bonded(f, i, p); i.Bond.Aggregate = nil }), "LACP groups are not known", ""},
		{"bond", pass_, on(func(f ff, i ii, p pp) { bonded(f, i, p); i.Bond.Members[0].Aggregate = nil }), "LACP groups are not known", ""},
		{"bond", warn_, on(func(f ff, i ii, p pp) { bonded(f, i, p); i.Bond.Members[1].Up = false }), "b of ens1f0 carry nothing: down", ""},
		{"bond", warn_, on(func(f ff, i ii, p pp) { bonded(f, i, p); i.Bond.Members[1].Aggregate = new(2) }), "another LACP group", ""},
		{"bond", warn_, on(func(f ff, i ii, p pp) { bonded(f, i, p); i.Bond.Hash = "layer2" }), "layer 2", "xmit_hash_policy layer3+4"},
		{"bond", gone_, nil, "", ""},
		{"virtual-switch", pass_, on(func(f ff, i ii, p pp) { f.Hypervises = &measure.Hypervises{Guests: 3, Switch: []string{"bridge br0"}} }), "3 guests", ""},
		{"virtual-switch", warn_, on(func(f ff, i ii, p pp) {
			f.Hypervises = &measure.Hypervises{Guests: 3}
			f.Load = &measure.Load{VhostPct: new(97.0)}
		}), "97%", "vhost"},
		{"tunnel", pass_, on(tunnelled(1450)), "50 bytes", ""},
		{"tunnel", warn_, on(tunnelled(1500)), "exceed the MTU 1500", "ip link set dev ens1f0 mtu 1450"},
		{"pcie-bandwidth", pass_, nil, "PCIe 4 x8 of ens1f0 carries 109 Gb/s", ""},
		{"pcie-bandwidth", fail_, func(s *scene.Subject) { s.LinkBps = 25e9; face(*s, 0).PCI.UsableBps = new(int64(13.9e9)) }, "25.0 Gb/s wanted", ""},
		{"pcie-bandwidth", warn_, on(func(f ff, i ii, p pp) { i.PCI.UsableBps = new(int64(13.9e9)) }), "carries 13.9 Gb/s of the port's 25.0", ""},
		{"pcie-bandwidth", warn_, on(func(f ff, i ii, p pp) {
			i.PCI.UsableBps = new(int64(27.4e9))
			f.Interfaces = append(f.Interfaces, measure.Interface{Name: "other0", Up: new(true)})
		}), "together 50.0", ""},
		{"pcie-bandwidth", pass_, on(func(f ff, i ii, p pp) { i.PCI.UsableBps = new(int64(27.4e9)) }), "27.4", ""},
		{"pcie-bandwidth", none_, gap("interfaces.ens1f0.pci.usable_bps", func(f ff, i ii, p pp) { i.PCI.UsableBps = nil }), "because of a test", ""},
		{"pcie-trained", pass_, nil, "PCIe 4 x8, the maximum of card and slot", ""},
		{"pcie-trained", pass_, on(func(f ff, i ii, p pp) { i.PCI.SlotGen = nil }), "PCIe 4 x8, its card supports PCIe 4 x16; what the slot supports is not known", ""},
		{"pcie-trained", pass_, on(func(f ff, i ii, p pp) { i.PCI.MaxLanes, i.PCI.SlotGen = nil, nil }), "what the card supports is not known", ""},
		{"pcie-trained", warn_, on(func(f ff, i ii, p pp) { i.PCI.Lanes = new(4) }), "card and slot support PCIe 4 x8", ""},
		{"pcie-trained", warn_, on(func(f ff, i ii, p pp) { i.PCI.Gen = new(1) }), "runs at PCIe 1 x8", ""},
		{"nic-model", gone_, nil, "", ""},
		{"nic-model", pass_, on(func(f ff, i ii, p pp) { guest(f); i.Driver = new("vmxnet3") }), "paravirtual", ""},
		{"nic-model", warn_, on(func(f ff, i ii, p pp) { guest(f); i.Driver, i.PCI.Device = new("e1000"), "0x100f" }), "emulated by vmware (e1000, an 82545EM)", "vmxnet3"},
		{"nic-model", fail_, func(s *scene.Subject) { guest(s.Ends[0].Facts); face(*s, 0).Driver, s.LinkBps = new("e1000e"), 10e9 }, "emulated", ""},
		{"nic-model", warn_, func(s *scene.Subject) { guest(s.Ends[0].Facts); face(*s, 0).Driver, s.LinkBps = new("8139cp"), 1e9 }, "emulated", ""},
		{"nic-model", gone_, on(func(f ff, i ii, p pp) { i.Driver = new("e1000e") }), "", ""},
		{"nic-model", none_, gap("hypervisor", func(f ff, i ii, p pp) { f.Hypervisor, i.Driver = nil, new("e1000") }), "because of a test", ""},
		{"driver-of-kernel", pass_, nil, "ice 6.8.0", ""},
		{"driver-of-kernel", warn_, on(func(f ff, i ii, p pp) { i.InTree = new(false) }), "did not come", "modinfo ice"},
		{"driver-of-kernel", none_, gap("interfaces.ens1f0.driver_of_kernel", func(f ff, i ii, p pp) { i.InTree = nil }), "because of a test", ""},
	}
}

func bonded(f ff, i ii, p pp) {
	i.Kind, i.PCI = new("bond"), nil
	i.Bond = &measure.Bond{Mode: "802.3ad", Hash: "layer3+4", Aggregate: new(1), Members: []measure.BondMember{
		{Name: "a", Up: true, Aggregate: new(1)}, {Name: "b", Up: true, Aggregate: new(1)}}}
}

func tunnelled(mtu int) func(ff, ii, pp) {
	return func(f ff, i ii, p pp) {
		i.Kind, i.MTU, i.Tunnel = new("vxlan"), new(mtu), &measure.Tunnel{Kind: "vxlan", Overhead: 50, Lower: "under0"}
		f.Interfaces = append(f.Interfaces, measure.Interface{Name: "under0", Kind: new("veth"), MTU: new(1500), Up: new(true)})
	}
}

func pathCases() []ruleCase {
	return []ruleCase{
		{"mtu-path", pass_, nil, "9000 bytes pass with DF, MTU 9000 at local", ""},
		{"mtu-path", pass_, on(func(f ff, i ii, p pp) { p.Forward.MTU.Jumbo = new(true) }), "8972 bytes of payload", ""},
		{"mtu-path", fail_, on(func(f ff, i ii, p pp) { smaller(&p.Forward, 1500, nil) }), "MTU 9000 at local and peer, but only 1500", "ip link set dev ens1f0 mtu 1500"},
		{"mtu-path", fail_, on(func(f ff, i ii, p pp) {
			p.Back.MTU.Claimed, p.Back.MTU.Bytes = 1500, 1500
			smaller(&p.Forward, 1500, nil)
		}), "1500 at peer: 1500 bytes pass", "same MTU at both ends"},
		{"mtu-path", fail_, on(func(f ff, i ii, p pp) {
			p.Forward.MTU.Claimed, p.Back.MTU.Claimed = 1500, 1500
			smaller(&p.Forward, 1400, nil)
		}), "no router reports it", "tcp_mtu_probing=1"},
		{"mtu-path", fail_, on(func(f ff, i ii, p pp) {
			p.Back.MTU.Claimed, p.Back.MTU.Bytes = 1500, 1500
			smaller(&p.Forward, 1504, nil)
		}), "1500 at peer: 1504 bytes pass", "mtu 1500"},
		{"mtu-path", warn_, on(func(f ff, i ii, p pp) { // a box on the path clamps the MSS of TCP to what passes
			p.Handshake.SYNACKSeen.MSS = new(1360)
			smaller(&p.Forward, 1400, nil)
		}), "the MSS limits TCP to 1400", "let ICMP"},
		{"mtu-path", warn_, on(func(f ff, i ii, p pp) { // jumbo frames at one end only: the peer's MSS keeps TCP to what it accepts
			p.Back.MTU.Claimed, p.Back.MTU.Bytes = 1500, 1500
			p.Handshake.SYNACKSent.MSS, p.Handshake.SYNACKSeen.MSS = new(1460), new(1460)
			smaller(&p.Forward, 1504, nil)
		}), "MTU 9000 at local, 1500 at peer: 1504 bytes pass with DF, larger ones are lost silently; the MSS limits TCP to 1500", "ip link set dev ens1f0 mtu 1500"},
		{"mtu-path", fail_, on(func(f ff, i ii, p pp) { // and here not enough
			p.Handshake.SYNACKSeen.MSS = new(1361)
			smaller(&p.Forward, 1400, nil)
		}), "only 1400", ""},
		{"mtu-path", warn_, on(func(f ff, i ii, p pp) {
			f.Sysctls["net.ipv4.tcp_mtu_probing"] = "1"
			smaller(&p.Forward, 1400, nil)
		}), "local probes for it", ""},
		{"mtu-path", fail_, on(func(f ff, i ii, p pp) {
			p.Forward.MTU.Claimed, p.Back.MTU.Claimed = 1500, 1500
			smaller(&p.Forward, 1404, nil)
		}), "1404 bytes pass", "mtu 1400"},
		{"mtu-agreement", pass_, func(s *scene.Subject) { // a route's MTU is no MTU of the link
			s.Ends[0].Route = &measure.Route{Interface: s.Ends[0].Route.Interface, MTU: 1400}
		}, "at both ends", ""},
		{"mtu-path", warn_, on(func(f ff, i ii, p pp) { p.Forward.MTU.Claimed = 1500; smaller(&p.Forward, 1492, new(1492)) }), "a router reports 1492", ""},
		{"mtu-path", none_, gap("forward.mtu", func(f ff, i ii, p pp) { p.Forward.MTU = nil }), "because of a test", ""},
		{"mtu-path", none_, on(func(f ff, i ii, p pp) { p.Forward.MTU.Bytes = 0 }), "no datagram", ""},
		{"mtu-path", pass_, on(func(f ff, i ii, p pp) { *p.Forward.MTU = measure.PathMTU{Bytes: 65535, Claimed: 65536} }), "65535", ""},
		{"mtu-agreement", pass_, nil, "9000 at both ends", ""},
		{"mtu-agreement", warn_, func(s *scene.Subject) { smallLink(s) }, "MTU 9000 at local, 1500 at peer", "ip link set dev ens1f0 mtu 1500"},
		{"mtu-agreement", pass_, func(s *scene.Subject) { smallLink(s); s.Ends[0].Route.Gateway = "192.0.2.254" }, "with a router between", ""},
		{"rtt-spread", pass_, nil, "median 200", ""},
		{"rtt-spread", warn_, on(func(f ff, i ii, p pp) { p.RTT.P99 = 19e6 }), "1 of 100 takes more than 19.0 ms", ""},
		{"rtt-spread", warn_, on(func(f ff, i ii, p pp) { p.RTT.P90, p.RTT.P99 = 5e6, 6e6 }), "1 of 10 takes more than 5.00 ms", ""},
		{"rtt-spread", pass_, on(func(f ff, i ii, p pp) { p.RTT.P99 = 6e6 }), "within 6.00 ms", ""},
		{"rtt-spread", none_, gap("rtt_idle", func(f ff, i ii, p pp) { p.RTT = nil }), "because of a test", ""},
		{"udp-reach", pass_, nil, "20 of 20", ""},
		{"udp-reach", warn_, on(func(f ff, i ii, p pp) { p.Forward.UDP.Got = 0 }), "none of 20", ""},
		{"udp-reach", warn_, on(func(f ff, i ii, p pp) { p.Forward.UDP.Got = 15 }), "15 of 20", "thru test -u --search"},
		{"udp-reach", none_, gap("forward.udp", func(f ff, i ii, p pp) { p.Forward.UDP = nil }), "because of a test", ""},
		{"dscp", pass_, nil, "as they were sent", ""},
		{"dscp", warn_, on(func(f ff, i ii, p pp) { p.Forward.Marks[0].Seen = 0 }), "AF11 is cleared", "trust the marks"},
		{"hops", pass_, nil, "0 routers in each direction", ""},
		{"hops", pass_, on(func(f ff, i ii, p pp) { p.Forward.Hops, p.Back.Hops = new(1), new(1) }), "1 router in each direction", ""},
		{"hops", warn_, on(func(f ff, i ii, p pp) { p.Back.Hops = new(3) }), "routers on the path: 0 forward, 3 back", ""},
		{"hops", none_, gap("back.hops", func(f ff, i ii, p pp) { p.Back.Hops = nil }), "because of a test", ""},
		{"several-ways", pass_, nil, "16 source ports", ""},
		{"several-ways", warn_, on(func(f ff, i ii, p pp) { p.Ports.Directions, p.Ports.By = 2, "delay" }), "2 different paths", ""},
		{"several-ways", warn_, on(func(f ff, i ii, p pp) {
			p.Ports.Directions, p.Ports.By, p.Ports.Groups = 2, "delay", []measure.PortGroup{{Ports: []int{40001, 40002}, RTTNs: 1e6}, {Ports: []int{40003}, RTTNs: 3e6}}
		}), "40001 40002 in 1.00 ms; 40003 in 3.00 ms", ""},
		{"several-ways", warn_, on(func(f ff, i ii, p pp) { p.Forward.Route = twoHops(measure.HashLayer3) }), "2 next hops towards peer (10.0.0.1 by e0, 10.0.1.1 by e1), chosen by addresses only", "sysctl -w net.ipv4.fib_multipath_hash_policy=1"},
		{"several-ways", pass_, on(func(f ff, i ii, p pp) { p.Forward.Route = twoHops(measure.HashLayer4) }), "take the same path; local has 2 next hops", ""},
		{"several-ways", none_, gap("source_ports", func(f ff, i ii, p pp) { p.Ports = nil }), "because of a test", ""},
		{"tcp-proxy", pass_, nil, "handshake took 200", ""},
		{"tcp-proxy", warn_, func(s *scene.Subject) { wan(s); s.Path.Handshake.RTTNs = new(int64(3e5)) }, "data takes at least 19", ""},
	}
}

func tcpCases() []ruleCase {
	set := func(name, value string) func(*scene.Subject) {
		return on(func(f ff, i ii, p pp) { f.Sysctls[name] = value })
	}
	return []ruleCase{
		{"window-scaling", pass_, nil, "on", ""},
		{"window-scaling", fail_, set("net.ipv4.tcp_window_scaling", "0"), "off", "sysctl -w net.ipv4.tcp_window_scaling=1"},
		{"window-scaling", warn_, on(func(f ff, i ii, p pp) { f.Sysctls["net.ipv4.tcp_window_scaling"], p.RTT.P50 = "0", 10_000 }), "off", ""},
		{"window-scaling", none_, gap("sysctls.net.ipv4.tcp_window_scaling", func(f ff, i ii, p pp) { delete(f.Sysctls, "net.ipv4.tcp_window_scaling") }), "because of a test", ""},
		{"window-scaling-path", pass_, nil, "arrives at peer", ""},
		{"window-scaling-path", fail_, on(func(f ff, i ii, p pp) {
			p.Handshake.SYNSeen.HasScale, p.Handshake.SYNSeen.WindowScale = new(false), nil
		}), "removed before peer", ""},
		{"window-scaling-path", warn_, on(func(f ff, i ii, p pp) { p.Handshake.SYNSeen.HasScale, p.RTT.P50 = new(false), 10_000 }), "removed before peer", ""},
		{"window-scaling-path", fail_, on(func(f ff, i ii, p pp) { p.Handshake.SYNSeen.WindowScale = new(0) }), "window scale 7 sent by local arrives as 0", ""},
		{"window-scaling-path", pass_, on(func(f ff, i ii, p pp) {
			p.Handshake.SYNSent.HasScale, p.Handshake.SYNSeen.HasScale = new(false), new(false)
		}), "did not offer", ""},
		{"window-scaling-path", none_, gap("handshake", func(f ff, i ii, p pp) { p.Handshake = nil }), "because of a test", ""},
		{"sack", pass_, nil, "on", ""},
		{"sack", warn_, set("net.ipv4.tcp_sack", "0"), "off", "net.ipv4.tcp_sack=1"},
		{"sack", none_, gap("sysctls", func(f ff, i ii, p pp) { f.Sysctls = nil }), "because of a test", ""},
		{"sack-path", pass_, nil, "arrives", ""},
		{"sack-path", warn_, on(func(f ff, i ii, p pp) { p.Handshake.SYNSeen.SACK = new(false) }), "is removed before peer", ""},
		{"sack-path", none_, gap("handshake.syn_seen", func(f ff, i ii, p pp) { p.Handshake.SYNSeen = nil }), "because of a test", ""},
		{"timestamps", pass_, nil, "on", ""},
		{"timestamps", warn_, set("net.ipv4.tcp_timestamps", "0"), "off", "net.ipv4.tcp_timestamps=1"},
		{"timestamps", pass_, set("net.ipv4.tcp_timestamps", "2"), "on", ""},
		{"timestamps", none_, gap("sysctls", func(f ff, i ii, p pp) { f.Sysctls = nil }), "because of a test", ""},
		{"timestamps-path", pass_, nil, "the option timestamps of local arrives at peer", ""},
		{"timestamps-path", warn_, on(func(f ff, i ii, p pp) { p.Handshake.SYNSeen.Timestamps = new(false) }), "are removed before peer", ""},
		{"timestamps-path", none_, gap("handshake", func(f ff, i ii, p pp) { p.Handshake = nil }), "because of a test", ""},
		{"mss", pass_, nil, "MSS 8960", ""},
		{"mss", warn_, on(func(f ff, i ii, p pp) { p.Handshake.SYNSeen.MSS = new(1360) }), "MSS 8960 of local arrives at peer as 1360; the path allows 8960", "8960"},
		{"mss", pass_, on(func(f ff, i ii, p pp) { p.Handshake.SYNSeen.MSS = new(1452); smaller(&p.Back, 1492, new(1492)) }), "fits the path", ""},
		{"mss", none_, gap("handshake.syn_sent", func(f ff, i ii, p pp) { p.Handshake.SYNSent = nil }), "because of a test", ""},
		{"receive-window", pass_, nil, "3 MiB", ""},
		{"receive-window", warn_, wan, "receive window at most 3 MiB (tcp_rmem); bandwidth-delay product 59.6 MiB: 25.0 Gb/s at 20.0 ms RTT", "net.ipv4.tcp_rmem='4096 131072 187"},
		{"receive-window", pass_, func(s *scene.Subject) { wan(s); s.Streams = 32 }, "3 MiB", ""},
		{"receive-window", warn_, func(s *scene.Subject) { wan(s); s.Streams = 2 }, "receive window at most 3 MiB", "net.ipv4.tcp_rmem='4096 131072 93"},
		{"receive-window", none_, on(func(f ff, i ii, p pp) { p.RTT = nil }), "round trip", ""},
		{"receive-window", none_, gap("sysctls.net.ipv4.tcp_rmem", func(f ff, i ii, p pp) { delete(f.Sysctls, "net.ipv4.tcp_rmem") }), "because of a test", ""},
		{"receive-window", none_, func(s *scene.Subject) { wan(s); face(*s, 0).Nominal, face(*s, 1).Nominal = new(true), new(true) }, "carries 1.26 Gb/s", ""},
		{"receive-window", warn_, cutTo("net.ipv4.tcp_rmem", "4096 4096 6144", 4<<30), "receive window at most 3 KiB (tcp_rmem); the Linux default is 3 MiB", "net.ipv4.tcp_rmem='4096 4096 6291456'"},
		{"receive-window", none_, cutTo("net.ipv4.tcp_rmem", "4096 131072 3145728", 4<<30), "carries 629 Mb/s", ""},
		{"receive-window", none_, cutTo("net.ipv4.tcp_rmem", "4096 131072 1048576", 128<<20), "suffices", ""},
		{"receive-window", none_, cutTo("net.ipv4.tcp_rmem", "4096 131072 1048576", 0), "suffices", ""},
		{"receive-window", warn_, func(s *scene.Subject) { cutTo("net.ipv4.tcp_rmem", "4096 4096 6144", 4<<30)(s); s.Path.RTT = nil }, "the Linux default is 3 MiB", "6291456"},
		{"send-buffer", warn_, cutTo("net.ipv4.tcp_wmem", "4096 4096 4096", 4<<30), "send buffer at most 4 KiB (tcp_wmem); the Linux default is 4 MiB", "net.ipv4.tcp_wmem='4096 4096 4194304'"},
		{"send-buffer", warn_, cutTo("net.ipv4.tcp_wmem", "4096 4096 4096", 128<<20), "the Linux default is 1 MiB", "1048576"},
		{"send-buffer", pass_, nil, "4 MiB", ""},
		{"send-buffer", warn_, wan, "bandwidth-delay product 59.6 MiB: ", "net.ipv4.tcp_wmem='4096 16384 187"},
		{"send-buffer", none_, gap("sysctls", func(f ff, i ii, p pp) { f.Sysctls = nil }), "because of a test", ""},
		{"explicit-window", pass_, nil, "-w gets at most 208 KiB (rmem_max, wmem_max): 8.52 Gb/s per connection; without -w up to 3 MiB (tcp_rmem)", "net.core.rmem_max"},
		{"explicit-window", pass_, func(s *scene.Subject) { s.Streams = 8 }, "-w up to 208 KiB (rmem_max, wmem_max) is granted", ""},
		{"explicit-window", pass_, on(func(f ff, i ii, p pp) { p.RTT.P50 = 30_000 }), "granted", ""},
		{"congestion-control", pass_, nil, "cubic at 200", ""},
		{"congestion-control", warn_, on(func(f ff, i ii, p pp) { f.Congestion = new("bbr") }), "bbr within a site at 200", "tcp_congestion_control=cubic"},
		{"congestion-control", warn_, on(func(f ff, i ii, p pp) { f.Congestion = new("bbr") }), "bbr within", "tcp_allowed_congestion_control"},
		{"congestion-control", warn_, on(func(f ff, i ii, p pp) { p.Forward.Congestion = new("bbr") }), "bbr within", "a route of this host sets bbr: `ip route replace"},
		{"congestion-control", pass_, on(func(f ff, i ii, p pp) { f.Congestion, i.SpeedBps = new("bbr"), new(int64(1e9)) }), "at 1.00 Gb/s its small bursts", ""},
		{"congestion-control", pass_, func(s *scene.Subject) { wan(s); s.Ends[0].Facts.Congestion = new("bbr") }, "bbr at 20.0 ms", ""},
		{"congestion-control", warn_, func(s *scene.Subject) {
			wan(s)
			s.Ends[0].Facts.Congestion, s.Ends[0].Facts.Kernel = new("bbr"), new("4.9.0-13-amd64")
		}, "4.9.0", "tc qdisc replace dev ens1f0 root fq"},
		{"congestion-control", warn_, func(s *scene.Subject) { wan(s); s.Ends[0].Facts.Congestion = new("dctcp") }, "dctcp", ""},
		{"congestion-control", none_, gap("congestion_control", func(f ff, i ii, p pp) { f.Congestion = nil }), "because of a test", ""},
		{"qdisc", pass_, nil, "mq fq_codel", ""},
		{"qdisc", pass_, on(func(f ff, i ii, p pp) { i.Qdisc = new("tbf") }), "may limit the rate", ""},
		{"qdisc", warn_, func(s *scene.Subject) { face(*s, 0).Qdisc, s.LinkBps = new("tbf fq_codel"), 10e9 }, "tbf, which may limit the rate to less than the wanted 10.0 Gb/s", "tc -s qdisc show dev ens1f0"},
		{"qdisc", pass_, func(s *scene.Subject) { face(*s, 0).Qdisc, s.LinkBps = new("mq fq_codel"), 10e9 }, "mq fq_codel", ""},
		{"qdisc", pass_, func(s *scene.Subject) { // perhaps not on the traffic's path
			face(*s, 0).Qdisc, s.LinkBps, s.Ends[0].Route = new("cake"), 10e9, nil
		}, "may limit the rate", ""},
		{"qdisc", warn_, on(func(f ff, i ii, p pp) { i.Qdisc = new("htb netem") }), "netem", "tc qdisc del dev ens1f0 root"},
		{"qdisc", warn_, on(func(f ff, i ii, p pp) { i.Qdisc = new("netem") }), "netem", "tc qdisc del dev ens1f0 root"},
		{"tcp-carry-over", pass_, wan, "TCP starts with cached metrics", "tcp_no_metrics_save=1"},
		{"tcp-carry-over", gone_, nil, "", ""},
	}
}

func hostCases() []ruleCase {
	cost := func(c scene.Cost) func(*scene.Subject) {
		return func(s *scene.Subject) { c.Protocol = measure.TCP; s.Ends[0].Costs = []scene.Cost{c} }
	}
	quota := func(cpus float64) func(ff, ii, pp) {
		return func(f ff, i ii, p pp) { f.Cgroup.QuotaCPUs = &cpus }
	}
	return []ruleCase{
		{"offloads", pass_, nil, "6 of 6", ""},
		{"offloads", warn_, on(func(f ff, i ii, p pp) {
			i.Offloads["tcp-segmentation-offload"], i.Offloads["scatter-gather"] = false, false
		}), "TSO, scatter-gather of ens1f0: off", "ethtool -K ens1f0 sg on tso on"},
		{"offloads", pass_, on(func(f ff, i ii, p pp) { i.Offloads["tcp-segmentation-offload"], i.SpeedBps = false, new(int64(1e9)) }), "5 of 6", ""},
		{"offloads", warn_, on(func(f ff, i ii, p pp) { i.Offloads["generic-receive-offload"], i.SpeedBps = false, new(int64(1e9)) }), "GRO of ens1f0: off", ""},
		{"offloads", warn_, on(func(f ff, i ii, p pp) {
			i.Offloads["tx-checksumming"], i.Fixed = false, []string{"tx-checksum-ip-generic"}
		}), "TX checksum of ens1f0: off, not supported by its driver", ""},
		{"offloads", warn_, on(func(f ff, i ii, p pp) {
			i.Offloads["tcp-segmentation-offload"], i.Offloads["generic-segmentation-offload"] = false, false
			f.Tuned = keptOff("tso")
		}), "TSO, GSO of ens1f0: off, because a tuning has kept tso", "ethtool -K ens1f0 gso on"},
		{"offloads", warn_, on(func(f ff, i ii, p pp) { i.Offloads["tcp-segmentation-offload"], f.Tuned = false, keptOff("tso") }), "because a tuning has kept tso", "keep tso off ens1f0"},
		{"offloads", none_, gap("interfaces.ens1f0.offloads", func(f ff, i ii, p pp) { i.Offloads = nil }), "because of a test", ""},
		{"lro-forwarding", gone_, nil, "", ""},
		{"lro-forwarding", pass_, on(func(f ff, i ii, p pp) {
			i.Offloads["large-receive-offload"] = true
			f.Sysctls["net.ipv4.ip_forward"] = "0"
		}), "forwards nothing", ""},
		{"lro-forwarding", none_, gap("sysctls.net.ipv4.ip_forward", func(f ff, i ii, p pp) { i.Offloads["large-receive-offload"] = true }), "because of a test", ""},
		{"lro-forwarding", warn_, on(func(f ff, i ii, p pp) {
			i.Offloads["large-receive-offload"] = true
			f.Sysctls["net.ipv4.ip_forward"] = "1"
		}), "routes", "lro off"},
		{"lro-forwarding", warn_, on(func(f ff, i ii, p pp) {
			i.Offloads["large-receive-offload"], i.Master = true, new("br0")
			f.Interfaces = append(f.Interfaces, measure.Interface{Name: "br0", Kind: new("bridge")})
		}), "bridge br0", "lro off"},
		{"queues", pass_, nil, "queues 8 of 64", ""},
		{"queues", warn_, on(func(f ff, i ii, p pp) { i.Channels.Combined = 1 }), "1 queue of 64 possible, for 8 CPUs", "ethtool -L ens1f0 combined 8"},
		{"queues", warn_, on(func(f ff, i ii, p pp) { *i.Channels = measure.Channels{RX: 1, TX: 1, RXMax: 4, TXMax: 4} }), "1 queue of 4", "ethtool -L ens1f0 rx 4"},
		{"queues", warn_, on(func(f ff, i ii, p pp) { *i.Channels = measure.Channels{Combined: 1, CombinedMax: 1} }), "only 1 queue", "rps_cpus"},
		{"queues", pass_, on(func(f ff, i ii, p pp) {
			*i.Channels, i.SpeedBps = measure.Channels{Combined: 1, CombinedMax: 1}, new(int64(1e9))
		}), "queues 1 of 1", ""},
		{"queues", pass_, on(func(f ff, i ii, p pp) { f.CPU.Usable, i.Channels.Combined = new(1), 1 }), "CPUs 1", ""},
		{"queues", none_, gap("interfaces.ens1f0.channels", func(f ff, i ii, p pp) { i.Channels, i.Queues = nil, nil }), "because of a test", ""},
		{"queue-spread", pass_, nil, "8 of the 8", ""},
		{"queue-spread", warn_, on(func(f ff, i ii, p pp) {
			for q := range i.Counters {
				i.Counters[q].Packets = uint64(2 * q / 2)
			}
			i.Counters[0].Packets = 5e6
		}), "5000000 of 5000028 packets", "ethtool -X ens1f0 equal 8"},
		{"queue-spread", none_, on(func(f ff, i ii, p pp) {
			i.Counters = i.Counters[:2]
			i.Counters[0].Packets, i.Counters[1].Packets = 9, 0
		}), "too few", ""},
		{"queue-spread", none_, gap("interfaces.ens1f0.queue_counters", func(f ff, i ii, p pp) { i.Counters = nil }), "because of a test", ""},
		{"rss", pass_, nil, "evenly over 8", ""},
		{"rss", warn_, on(func(f ff, i ii, p pp) { i.RSS.Queues = []int{512, 0, 0} }), "one queue", "equal 8"},
		{"rss", warn_, on(func(f ff, i ii, p pp) { i.RSS.Queues = []int{400, 56, 56} }), "400 entries", ""},
		{"rss", pass_, on(func(f ff, i ii, p pp) { i.RSS.Fields["udp4"] = []string{"src-ip", "dst-ip"} }), "by addresses only", ""},
		{"rss", none_, gap("interfaces.ens1f0.rss", func(f ff, i ii, p pp) { i.RSS = nil }), "because of a test", ""},
		{"irq-spread", pass_, nil, "8 interrupts of ens1f0 go to 8 CPUs", ""},
		{"irq-spread", warn_, on(func(f ff, i ii, p pp) {
			for q := range i.IRQs {
				i.IRQs[q].Effective, i.IRQs[q].Counts = nil, map[string]int64{"5": 900, "6": 2}
			}
		}), "go to CPU 5, of 8", "echo 0 > /proc/irq/104/smp_affinity_list"},
		{"irq-spread", none_, gap("interfaces.ens1f0.interrupts", func(f ff, i ii, p pp) { i.IRQs = nil }), "because of a test", ""},
		{"irq-sharing", pass_, nil, "no device shares", ""},
		{"irq-sharing", warn_, on(func(f ff, i ii, p pp) { i.IRQs[3].Shared = []string{"ehci_hcd:usb1"} }), "interrupt 103 of ens1f0 is shared with ehci_hcd:usb1", ""},
		{"numa", pass_, nil, "node 0, which has 4 CPUs", ""},
		{"numa", warn_, on(func(f ff, i ii, p pp) { f.Cgroup.CPUs = []int{4, 5} }), "only CPUs of other nodes", "taskset -c 0-3"},
		{"numa", warn_, on(func(f ff, i ii, p pp) { i.NUMANode = new(1); i.IRQs = i.IRQs[:4] }), "interrupts go to other nodes", "echo 4 > /proc/irq/100"},
		{"interrupt-moderation", pass_, nil, "adapts its interrupt delay", ""},
		{"interrupt-moderation", warn_, on(func(f ff, i ii, p pp) { i.Coalesce = &measure.Coalesce{RXNs: 1e6} }), "delays an interrupt by 1.00 ms", "adaptive-rx on"},
		{"rings", pass_, nil, "2048 of 8160", ""},
		{"rings", warn_, on(func(f ff, i ii, p pp) { i.Errors["rx_missed_errors"] = 5000 }), "5000 packets dropped", "ethtool -G ens1f0 rx 8160"},
		{"rings", pass_, on(func(f ff, i ii, p pp) { i.Errors["rx_missed_errors"] = 12 }), "dropped 12 packets", ""},
		{"rings", warn_, on(func(f ff, i ii, p pp) { i.Errors["rx_out_of_buffer"], i.Rings.RX = 5000, 8160 }), "maximum of 8160", ""},
		{"rings", none_, gap("interfaces.ens1f0.error_counters", func(f ff, i ii, p pp) { i.Errors = nil }), "dropped by the ring of ens1f0: because of a test", ""},
		{"rings", none_, gap("interfaces.ens1f0.rings", func(f ff, i ii, p pp) { i.Rings = nil }), "because of a test", ""},
		{"cpu-capacity", pass_, cost(scene.Cost{Sends: true, Bps: 10e9, Cores: 1}), "takes 2.5 of 8 CPUs for sending", ""},
		{"cpu-capacity", warn_, cost(scene.Cost{Bps: 1e9, Cores: 1}), "takes 25.0 CPUs for receiving, of 8", ""},
		{"cpu-capacity", warn_, func(s *scene.Subject) {
			cost(scene.Cost{Bps: 10e9, Cores: 1.5, BusiestPct: 99, Streams: 1})(s)
			s.Streams = 1
		}, "one stream filled a CPU at 10.0", ""},
		{"cpu-capacity", none_, nil, "no earlier result", ""},
		{"cpu-capacity", none_, cost(scene.Cost{Bps: 1e9, Cores: 1, CPUModel: "another CPU"}), "no earlier result", ""},
		{"governor", pass_, nil, "performance", ""},
		{"governor", warn_, on(func(f ff, i ii, p pp) { f.CPU.Driver, f.CPU.Governors = new("acpi-cpufreq"), []string{"ondemand"} }), "ondemand", "echo performance"},
		{"governor", warn_, on(func(f ff, i ii, p pp) { f.CPU.Governors, f.CPU.Preference = []string{"powersave"}, new("power") }), "preference power", ""},
		{"governor", pass_, on(func(f ff, i ii, p pp) {
			f.CPU.Governors, f.CPU.Preference = []string{"powersave"}, new("balance_performance")
		}), "follows the load", ""},
		{"governor", gone_, on(func(f ff, i ii, p pp) { guest(f) }), "", ""},
		{"governor", none_, gap("cpu.governors", func(f ff, i ii, p pp) { f.CPU.Governors = nil }), "because of a test", ""},
		{"idle-states", pass_, nil, "exit latency of C6 is 133", ""},
		{"idle-states", warn_, on(func(f ff, i ii, p pp) { p.RTT.Min, p.RTT.P90 = 60_000, 190_000 }), "round trips take 60", "cpupower idle-set"},
		{"steal", gone_, nil, "", ""},
		{"steal", pass_, on(func(f ff, i ii, p pp) { guest(f); f.Load.StealPct = new(0.3) }), "steal 0.3%", ""},
		{"steal", warn_, on(func(f ff, i ii, p pp) { guest(f); f.Load.StealPct = new(6.0) }), "takes 6%", ""},
		{"steal", none_, gap("load.steal_pct", func(f ff, i ii, p pp) { guest(f) }), "because of a test", ""},
		{"cpu-quota", pass_, nil, "no CPU quota", ""},
		{"cpu-quota", fail_, on(quota(0.2)), "0.2 CPUs", "cpu.max"},
		{"cpu-quota", fail_, on(func(f ff, i ii, p pp) { quota(0.2)(f, i, p); f.Cgroup.Path = "/a/../../../etc/x" }), "0.2 CPUs", "raise cpu.max"},
		{"cpu-quota", pass_, on(quota(4)), "4 CPUs, of 8", ""},
		{"cpu-quota", fail_, func(s *scene.Subject) { on(quota(2))(s); s.LinkBps = 25e9; cost(scene.Cost{Bps: 10e9, Cores: 1})(s) }, "takes 2.5", ""},
		{"cpu-quota", warn_, func(s *scene.Subject) { on(quota(0.5))(s); s.LinkBps = 1e9; cost(scene.Cost{Bps: 10e9, Cores: 1})(s) }, "takes 0.1", ""},
		{"cpu-quota", warn_, on(func(f ff, i ii, p pp) { quota(2)(f, i, p); f.Load.Throttled = new(int64(3)) }), "used up 3 times", ""},
		{"cpu-quota", warn_, on(func(f ff, i ii, p pp) {
			quota(2)(f, i, p)
			f.Cgroup.Periods, f.Cgroup.Throttled = new(int64(1000)), new(int64(400))
		}), "400 of 1000", ""},
		{"cpu-quota", none_, gap("cgroup", func(f ff, i ii, p pp) { f.Cgroup = nil }), "because of a test", ""},
		{"memory", pass_, nil, "28 GiB of 32 GiB", ""},
		{"memory", warn_, on(func(f ff, i ii, p pp) { f.RAM.Available = new(int64(100 << 20)) }), "100 MiB of 32 GiB", ""},
		{"memory", warn_, on(func(f ff, i ii, p pp) { f.RAM.Available, f.RAM.Balloon = new(int64(1<<30)), new(int64(8<<30)) }), "reclaimed 8 GiB", ""},
		{"memory", warn_, on(func(f ff, i ii, p pp) { f.RAM.Available, f.RAM.SwapUsed = new(int64(1<<30)), new(int64(1<<30)) }), "swapped out", ""},
		{"memory", warn_, on(func(f ff, i ii, p pp) { f.Cgroup.MemoryMax = new(int64(64 << 20)) }), "allows 64 MiB", ""},
		{"memory", none_, gap("ram", func(f ff, i ii, p pp) { f.RAM = nil }), "because of a test", ""},
		{"tcp-memory", pass_, nil, "1 MiB of the 3 GiB", ""},
		{"tcp-memory", warn_, on(func(f ff, i ii, p pp) { f.RAM.TCPPages = new(int64(2900 << 20)) }), "of the 3 GiB", "tcp_mem="},
		{"tcp-memory", warn_, func(s *scene.Subject) { wan(s); s.Ends[0].Facts.RAM.TCPMax = new(int64(100 << 20)) }, "needs 119 MiB", "tcp_mem="},
		{"tcp-memory", none_, gap("ram.tcp_memory_bytes", func(f ff, i ii, p pp) { f.RAM.TCPPages = nil }), "because of a test", ""},
		{"tcp-memory", warn_, func(s *scene.Subject) {
			wan(s)
			s.Ends[0].Facts.RAM.TCPMax, s.Ends[0].Facts.RAM.TCPPages = new(int64(100<<20)), nil
		}, "needs 119 MiB", ""},
		{"cpu-load", pass_, nil, "1.5%", ""},
		{"cpu-load", warn_, on(func(f ff, i ii, p pp) {
			f.Load.CPUPct, f.Load.Top = new(33.0), []measure.ProcessLoad{{PID: 812, Name: "ffmpeg", CPUPct: 250}}
		}), "33% of the CPUs are busy, most by ffmpeg (process 812", "check process 812 (ffmpeg)"},
		{"cpu-load", warn_, on(func(f ff, i ii, p pp) {
			f.Load.CPUPct, f.Load.Top = new(99.5), []measure.ProcessLoad{{PID: 7, Name: "x; reboot", CPUPct: 8}}
		}), "99.5% of the CPUs are busy; the busiest process is x; reboot (process 7, 8% of one CPU)", ""},
		{"cpu-load", warn_, on(func(f ff, i ii, p pp) { f.Load.CPUPct = new(99.5) }), "busy; no process takes more than 5% of one", ""},
		{"cpu-load", warn_, on(func(f ff, i ii, p pp) { f.Load.BusiestPct = new(99.0) }), "one CPU is 99% busy", ""},
		{"cpu-load", none_, gap("load", func(f ff, i ii, p pp) { f.Load = nil }), "because of a test", ""},
		{"backlog", pass_, nil, "no packet", ""},
		{"backlog", warn_, on(func(f ff, i ii, p pp) { f.Load.Dropped = new(int64(7)) }), "7 packets", "netdev_max_backlog=2000"},
		{"security", pass_, nil, "AppArmor unconfined", ""},
		{"conntrack", pass_, nil, "80 of 262144", ""},
		{"conntrack", warn_, on(func(f ff, i ii, p pp) { f.Firewall.Tracked = new(int64(250_000)) }), "95.4%", "nf_conntrack_max=524288"},
		{"conntrack", warn_, on(func(f ff, i ii, p pp) { f.Firewall.TrackDrops = new(int64(4000)) }), "4000 packets", ""},
		{"conntrack", none_, gap("firewall.conntrack_max", func(f ff, i ii, p pp) { f.Firewall.TrackedMax = nil }), "", ""},
		{"firewall-rules", pass_, nil, "12 rules", ""},
		{"firewall-rules", warn_, on(func(f ff, i ii, p pp) { f.Firewall.Rules, f.Firewall.LongestChain = new(4000), new(3000) }), "3000", ""},
		{"firewall-rules", none_, gap("firewall.nft_tables", func(f ff, i ii, p pp) { f.Firewall.Rules = nil }), "because of a test", ""},
		{"bridge-netfilter", warn_, on(func(f ff, i ii, p pp) { i.Kind, i.Bridge = new("bridge"), &measure.Bridge{Netfilter: new(true)} }), "pass the IP firewall", "bridge-nf-call-iptables=0"},
		{"bridge-netfilter", pass_, on(func(f ff, i ii, p pp) { i.Kind, i.Bridge = new("bridge"), &measure.Bridge{Netfilter: new(false)} }), "do not pass", ""},
		{"bridge-netfilter", pass_, on(func(f ff, i ii, p pp) {
			i.Kind, i.Bridge, f.Firewall.Rules = new("bridge"), &measure.Bridge{Netfilter: new(true)}, new(0)
		}), "has no rules", ""},
		{"bridge-netfilter", none_, gap("firewall.nft_tables", func(f ff, i ii, p pp) {
			i.Kind, i.Bridge, f.Firewall.Rules = new("bridge"), &measure.Bridge{Netfilter: new(true)}, nil
		}), "because of a test", ""},
		{"bridge-netfilter", none_, gap("firewall.iptables_tables", func(f ff, i ii, p pp) {
			i.Kind, i.Bridge, f.Firewall.Rules = new("bridge"), &measure.Bridge{Netfilter: new(true)}, new(0)
		}), "because of a test", ""},
		{"clock-source", pass_, nil, "tsc, a reading costs 25 ns", ""},
		{"clock-source", warn_, on(func(f ff, i ii, p pp) { f.Clock.Source = new("hpet") }), "hpet", "echo tsc >"},
		{"clock-source", warn_, on(func(f ff, i ii, p pp) { f.Clock.ReadNs = new(int64(800)) }), "800 ns", ""},
		{"clock-source", none_, gap("clock.source", func(f ff, i ii, p pp) { f.Clock = nil }), "", ""},
		{"clock-sync", pass_, nil, "a time service", ""},
		{"clock-sync", pass_, on(func(f ff, i ii, p pp) { f.Clock.Synchronised = new(false) }), "no time service", ""},
		{"clock-offset", pass_, nil, "2.00 ms behind", ""},
	}
}

func ruleCases() []ruleCase {
	return slices.Concat(linkCases(), pathCases(), tcpCases(), hostCases(), belowCases())
}

// of finds the gate of the first end, or of the path from there.
func of(gates []measure.Gate, id string) (measure.Gate, bool) {
	at := slices.IndexFunc(gates, func(g measure.Gate) bool { return g.ID == id && (g.EndPoint == "local" || g.From == "local") })
	if at < 0 {
		return measure.Gate{}, false
	}
	return gates[at], true
}

func TestGates(t *testing.T) {
	for _, c := range ruleCases() {
		t.Run(c.rule+"/"+c.status+"/"+c.fact, func(t *testing.T) {
			s := serverPair()
			if c.spoil != nil {
				c.spoil(&s)
			}
			gates := Judge(s)
			g, there := of(gates, c.rule)
			if !there {
				if c.status != gone_ {
					t.Fatal("no such gate")
				}
				return
			}
			if g.Status != c.status || !strings.Contains(g.Fact, c.fact) || !strings.Contains(strings.Join(append(g.Fix, g.Advice, g.Risk), "\n"), c.fix) {
				t.Errorf("want %s %q %q:\n%s", c.status, c.fact, c.fix, gateText(g))
			}
			if len([]rune(g.Fact)) > 115 || len([]rune(g.Why)) > 115 || g.Why == "" {
				t.Errorf("%d and %d characters: %s", len([]rune(g.Fact)), len([]rune(g.Why)), gateText(g))
			}
		})
	}
}

// TestEveryStateIsShown: the tests make each rule pass, warn and fail if the catalogue says that it can, and never
// otherwise.
func TestEveryStateIsShown(t *testing.T) {
	// Rules that report nothing as missing, since another gate does, or their absence says that they do not apply.
	silent := []string{"bond", "virtual-switch", "tunnel", "pcie-trained", "mtu-agreement", "dscp", "tcp-proxy", "explicit-window", "qdisc", "tcp-carry-over",
		"irq-sharing", "numa", "interrupt-moderation", "idle-states", "backlog", "security",
		"clock-sync", "clock-offset", "guest-tools"}
	for _, r := range Gates() {
		shown := func(status string) bool {
			return slices.ContainsFunc(ruleCases(), func(c ruleCase) bool { return c.rule == r.ID && c.status == status })
		}
		want := map[string]bool{pass_: r.ID != "host-facts", warn_: r.Warns != "", fail_: r.Fails != "", none_: !slices.Contains(silent, r.ID)}
		for status, is := range want {
			if shown(status) != is {
				t.Errorf("%s: %s is shown %v, the catalogue says %v", r.ID, status, !is, is)
			}
		}
	}
}

// TestNoProcesses: nothing is reported of processes that were hidden.
func TestNoProcesses(t *testing.T) {
	s := serverPair()
	gap("load.processes", func(f ff, i ii, p pp) { f.Load.CPUPct = new(99.5) })(&s)
	if g, _ := of(Judge(s), "cpu-load"); g.Status != warn_ || strings.Contains(g.Fact, "process") {
		t.Error(gateText(g))
	}
}

// twoHops is a route that has two next hops.
func twoHops(hash string) *measure.Route {
	return &measure.Route{Interface: "e0", Gateway: "10.0.0.1", Hash: hash, NextHops: []measure.NextHop{{Interface: "e0", Gateway: "10.0.0.1", Weight: 1}, {Interface: "e1", Gateway: "10.0.1.1", Weight: 1}}}
}
