package cause

import (
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

func TestLAGOneMember(t *testing.T) {
	one := edits{rate(953e6), loaded(40), noCeiling}
	with := func(more ...func(*measure.Document)) edits { return append(append(edits{}, one...), more...) }
	eight, sixteen := try(diagnose.EightStreams, 1913e6, streams(8)), try(diagnose.ManyPorts, 1910e6, streams(16))
	apart := func(c *measure.Cell) {
		r := c.Runs[0].Flows[0].Receiver
		r.Host.NIC.RxBytes = uint64(r.Bytes) / 2
	}
	judgeRows(t, "lag-one-member", []row{
		{"not tried", "missing", "streams-8", one},
		{"eight carry twice as much", "likely", "8 streams carry 2 times as much as one", with(eight)},
		{"and sixteen no more than these, as where each flow is given a rate", "likely", "", with(eight, sixteen, takeTurns)},
		{"three members, and then four, in single runs", "likely", "", with(try(diagnose.EightStreams, 2859e6, streams(8)), try(diagnose.ManyPorts, 3812e6, streams(16)))},
		{"three members, and then four", "certain", "uses one member", with(try(diagnose.EightStreams, 2859e6, streams(8)), try(diagnose.ManyPorts, 3812e6, streams(16)), takeTurns)},
		{"sixteen carry more still", "likely", "", with(eight, try(diagnose.ManyPorts, 3.8e9, streams(16)), takeTurns)},
		{"one stands still for timeouts", "no", "its rate is not flat", with(eight, lost(17), seconds(0.2, 1.9, 0.1, 2.1, 0.9, 1.5, 0.3, 0.6), func(d *measure.Document) { near(d).Streams[0].TCP.TotalRTO = new(uint16(19)) })},
		{"they come by two interfaces", "certain", "", with(try(diagnose.EightStreams, 1913e6, streams(8), apart), takeTurns)},
		{"the probe saw two ways", "certain", "", with(eight, takeTurns, func(d *measure.Document) { d.Paths[0].Ports = &measure.SourcePorts{Ports: 16, Directions: 2} })},
		{"over a bond", "certain", "", with(eight, takeTurns, func(d *measure.Document) {
			cardOf(d).Bond = &measure.Bond{Members: []measure.BondMember{{Name: "a"}, {Name: "b"}}}
		})},
		{"no multiple", "no", "not a multiple", with(try(diagnose.EightStreams, 1400e6, streams(8)))},
		{"just a multiple", "likely", "", with(try(diagnose.EightStreams, 1440e6, streams(8)))},
		{"held by the window", "no", "receiver's window", with(eight, func(d *measure.Document) {
			near(d).Streams[0].TCP.RwndLimitedUs = new(uint64(7e6))
			for i := range near(d).Bins {
				near(d).Bins[i].TCP[0].SendWnd = new(uint32(1_100_000))
			}
		})},
		{"held by a window that fills the queue", "likely", "8 streams carry", with(eight, func(d *measure.Document) { near(d).Streams[0].TCP.RwndLimitedUs = new(uint64(7e6)) })},
		{"held by a CPU", "no", "CPU", with(eight, func(d *measure.Document) { far(d).Streams[0].RunNs = new(int64(8e9)) })},
		{"held by random loss", "no", "loss", edits{rate(953e6), noCeiling, seconds(1, 0.5, 1.4, 0.7, 1.2, 0.6, 1.1, 0.9), lost(0.1), eight}},
		{"held by random loss at a flat rate", "no", "even at low rates", with(eight, lost(0.1), try(diagnose.UdpBelow, 850e6, func(c *measure.Cell) {
			c.Datagrams = &measure.DatagramFigures{Bytes: 1400, Sent: 100_000, Lost: 90, LossPct: 0.09}
			c.LossPlaces = []measure.LossPlace{{Place: measure.LossPath, Packets: 90}}
		}))},
		{"nothing holds it", "no", "no queue", edits{rate(953e6), noCeiling, eight}},
		{"link full", "no", "full", edits{loaded(40), try(diagnose.EightStreams, 18e9, streams(8))}},
		{"several streams", "no", "4 streams", with(func(d *measure.Document) { streams(4)(&d.Cells[0]) })},
		{"a bond that hashes badly", "possible beside", "layer 2", with(func(d *measure.Document) {
			d.Gates = []measure.Gate{{ID: "bond", EndPoint: "near", Status: measure.GateWarn, Cause: "lag-one-member", Fact: "bond0 chooses members by layer 2 addresses"}}
		})},
	})
}

func TestAsymmetricRoute(t *testing.T) {
	farther := func(d *measure.Document) { d.Paths[0].Back.Hops = new(3) }
	back := func(bps float64) func(*measure.Document) {
		return func(d *measure.Document) { d.Cells = append(d.Cells, flowCell("far", "near", bps)) }
	}
	sizes := func(d *measure.Document) {
		d.Paths[0].Forward.MTU, d.Paths[0].Back.MTU = &measure.PathMTU{Bytes: 1400, Claimed: 9000}, &measure.PathMTU{Bytes: 1500, Claimed: 9000}
	}
	judgeRows(t, "asymmetric-route", []row{
		{"alike", "no", "1 forward, 1 back", nil},
		{"differ", "likely beside", "1 forward, 3 back", edits{farther}},
		{"differ, and so do the rates", "likely", "", edits{rate(2e9), farther, back(9e9)}},
		{"differ, the rates do not", "likely beside", "", edits{rate(7e9), farther, back(9e9)}},
		{"sizes differ", "likely beside", "1400 bytes pass forward", edits{sizes}},
		{"an end's own size", "no", "", edits{sizes, func(d *measure.Document) { d.Paths[0].Forward.MTU.Local = true }}},
		{"not probed", "missing", "", edits{noPath}},
		{"hops not known", "missing", "", edits{func(d *measure.Document) { d.Paths[0].Back.Hops = nil }}},
	})
}

func TestTCPProxy(t *testing.T) {
	nearer := func(ns int64) func(*measure.Document) {
		return func(d *measure.Document) { d.Paths[0].Handshake.RTTNs = &ns }
	}
	judgeRows(t, "tcp-proxy", []row{
		{"as long as data", "no", "", nil},
		{"just under half", "possible beside", "a nearer device answers for far", edits{nearer(4.4e6)}},
		{"just over half", "no", "", edits{nearer(4.6e6)}},
		{"short, by less than programs take", "no", "", edits{nearer(86e3), func(d *measure.Document) { d.Paths[0].RTT.Min = 1.08e6 }}},
		{"the kernel's round trips are short too", "likely", "", edits{nearer(1e6), func(d *measure.Document) { near(d).Streams[0].TCP.MinRTT = new(int64(900_000)) }}},
		{"the test's own connection was quicker", "no", "data at least 552 µs", edits{nearer(552e3), func(d *measure.Document) { near(d).RTTIdle = &measure.RTT{Min: 552e3, Samples: 10} }}},
		{"another SYN arrives", "certain", "", edits{nearer(1e6), func(d *measure.Document) { d.Paths[0].Handshake.SYNSeen.WindowScale = new(7) }}},
		{"another SYN, the same round trip", "no", "", edits{func(d *measure.Document) { d.Paths[0].Handshake.SYNSeen.WindowScale = new(7) }}},
		{"not probed", "missing", "", edits{noPath}},
	})
}

func TestVPNCPU(t *testing.T) {
	tunnel := func(d *measure.Document) { cardOf(d).Tunnel = &measure.Tunnel{Kind: "wireguard"} }
	full := func(d *measure.Document) {
		near(d).Host.CPUs = []measure.CPU{{Core: 3, System: 60, SoftIRQ: 38, Idle: 2}}
	}
	judgeRows(t, "vpn-cpu", []row{
		{"no tunnel", "no", "no tunnel", nil},
		{"CPUs have room", "no", "kernel work fills no CPU", edits{tunnel}},
		{"a CPU is full", "likely", "kernel work fills CPU 3, and eth0 is a tunnel (wireguard): 98%", edits{tunnel, full}},
		{"a CPU of the receiver is full, the sender's have room", "likely", "eth0 is a tunnel (ipsec)", edits{tunnel, func(d *measure.Document) {
			farFace(d).Tunnel = &measure.Tunnel{Kind: "ipsec"}
			far(d).Host.CPUs = append(far(d).Host.CPUs, measure.CPU{Core: 3, SoftIRQ: 97, Idle: 3})
		}}},
		{"a CPU is full of a program, another of the kernel", "likely", "kernel work fills CPU 3", edits{tunnel, func(d *measure.Document) {
			near(d).Host.CPUs = append(near(d).Host.CPUs, measure.CPU{Core: 2, User: 100}, measure.CPU{Core: 3, System: 95, Idle: 5})
		}}},
		{"of thru's own thread", "possible beside", "", edits{tunnel, full, func(d *measure.Document) { near(d).Streams[0].RunNs = new(int64(7.9e9)) }}},
		{"not known", "missing", "", edits{tunnel, func(d *measure.Document) { near(d).Host = nil }}},
		{"no facts", "missing", "", edits{noFacts}},
	})
}
