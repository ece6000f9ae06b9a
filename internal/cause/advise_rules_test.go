package cause

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/cause/advise"
	"thru/internal/measure"
)

// TestProposals checks the proposals of each rule, by facts and by the knobs that agents report.
func TestProposals(t *testing.T) {
	at, rx, tx := measure.AtPath, measure.AtReceiver, measure.AtSender
	for name, x := range map[string]struct {
		doc  *measure.Document
		want string // one proposal per line
	}{
		"a small receive buffer": {advisedPair(finds("receive-window", rx), sysctl(1, "net.ipv4.tcp_rmem", "4096 131072 262144")),
			"b tcp-rmem=4096 131072 75497472"}, // 10 Gb/s x 20 ms = 25 MB, three times
		"a receive buffer that is large, and binds all the same": {advisedPair(finds("receive-window", rx), sysctl(1, "net.ipv4.tcp_rmem", "4096 131072 100663296")),
			"b tcp-rmem=4096 131072 201326592"},
		"small buffers at both ends": {advisedPair(finds("receive-window", rx), sysctl(1, "net.ipv4.tcp_rmem", "4096 131072 262144"), sysctl(0, "net.ipv4.tcp_wmem", "4096 16384 131072")),
			"b tcp-rmem=4096 131072 75497472\na tcp-wmem=4096 16384 75497472\nb tcp-rmem=4096 131072 75497472 + a tcp-wmem=4096 16384 75497472"},
		"both, from the other side": {advisedPair(finds("send-buffer", tx), sysctl(1, "net.ipv4.tcp_rmem", "4096 131072 262144"), sysctl(0, "net.ipv4.tcp_wmem", "4096 16384 131072")),
			"a tcp-wmem=4096 16384 75497472\nb tcp-rmem=4096 131072 75497472\nb tcp-rmem=4096 131072 75497472 + a tcp-wmem=4096 16384 75497472"},
		"a gate of the buffers": {advisedPair(withGate("receive-window", "receive-window", "b"), sysctl(1, "net.ipv4.tcp_rmem", "4096 131072 262144")),
			"b tcp-rmem=4096 131072 75497472"},
		"a gate of the buffers of a direction that carries no data": {advisedPair(finds("vswitch", tx), withGate("receive-window", "receive-window", "a"), sysctl(0, "net.ipv4.tcp_rmem", "4096 131072 262144")), "say mend vswitch\nsay mend receive-window"},
		"a gate of the buffers, and one way that is full": {advisedPair(finds("link-rate", at), back(4e8), withGate("receive-window", "receive-window", "b"), withGate("send-buffer", "send-buffer", "b"),
			sysctl(1, "net.ipv4.tcp_rmem", "4096 131072 262144"), sysctl(1, "net.ipv4.tcp_wmem", "4096 16384 65536")), "say mend link-rate\nb tcp-wmem=4096 16384 75497472\nsay mend receive-window"},
		"tiny buffers, right after the first finding": {advisedPair(finds("vswitch", tx), finds("sack-off", tx), sysctl(0, "net.ipv4.tcp_sack", "0"), withGate("send-buffer", "send-buffer", "a"), sysctl(0, "net.ipv4.tcp_wmem", "4096 4096 4096")),
			"say mend vswitch\na tcp-wmem=4096 4096 75497472\na sack=1"},
		"gates, the costlier first": {advisedPair(withGate("timestamps", "timestamps-off", "b"), withGate("offloads", "offloads-off", "a"), withGate("send-buffer", "send-buffer", "a"), sysctl(1, "net.ipv4.tcp_timestamps", "0"),
			withInterface(0, func(i *measure.Interface) { i.Offloads["tcp-segmentation-offload"] = false }), sysctl(0, "net.ipv4.tcp_wmem", "4096 4096 4096")),
			"a tcp-wmem=4096 4096 75497472\na tso eth0=on\nb timestamps=1"},
		"-w that the kernel cuts": {advisedPair(finds("fixed-window", measure.AtTool), func(d *measure.Document) { d.Cells[0].Spec.Window = measure.Pair{Send: 1 << 20, Recv: 1 << 20} }),
			"test leave -w out\nb rmem-max=1048576\na wmem-max=1048576"},
		"window scaling off at one end":  {advisedPair(finds("window-scaling-off", tx), sysctl(0, "net.ipv4.tcp_window_scaling", "0")), "a window-scaling=1"},
		"SACK off at both ends":          {advisedPair(finds("sack-off", tx), sysctl(0, "net.ipv4.tcp_sack", "0"), sysctl(1, "net.ipv4.tcp_sack", "0")), "a sack=1 + b sack=1"},
		"an option that a box takes out": {advisedPair(finds("timestamps-off", at)), "say mend timestamps-off"},
		"a rate that still rises":        {advisedPair(finds("slow-convergence", tx)), "a no-metrics-save=1\na slow-start-after-idle=0"},
		"a black hole": {advisedPair(finds("mtu-black-hole", at), func(d *measure.Document) {
			d.Paths[0].Forward.MTU.Bytes, d.Paths[0].Forward.Route = 1404, &measure.Route{Interface: "eth0", Gateway: "10.0.0.254"}
		}), "a mtu-probing=1\na mtu eth0=1400\nsay mend mtu-black-hole"},
		"jumbo frames at one end":   {advisedPair(finds("jumbo-mismatch", at), withInterface(0, func(i *measure.Interface) { i.MTU = new(9000) })), "b mtu eth0=9000\na mtu eth0=1500\nsay mend jumbo-mismatch"},
		"an end that takes no more": {advisedPair(finds("jumbo-mismatch", at), withInterface(0, func(i *measure.Interface) { i.MTU = new(9000) }), withInterface(1, func(i *measure.Interface) { i.MaxMTU = new(1500) })), "a mtu eth0=1500\nsay mend jumbo-mismatch"},
		"a port between of 1500": {advisedPair(finds("jumbo-mismatch", at), withInterface(0, func(i *measure.Interface) { i.MTU = new(9000) }), withInterface(1, func(i *measure.Interface) { i.MTU = new(9000) })),
			"a mtu eth0=1500 + b mtu eth0=1500\nsay mend jumbo-mismatch"},
		"broken TSO": {advisedPair(finds("broken-tso", tx)), "a tso eth0=off\na gso eth0=off + a tso eth0=off"},
		"next to nothing passes, and another fault hides why": {advisedPair(finds("sack-off", rx), sysctl(1, "net.ipv4.tcp_sack", "0"), stalls(1e5, 46)), "b sack=1\na tso eth0=off\na gso eth0=off + a tso eth0=off"},
		"half of all is sent again":                           {advisedPair(finds("sack-off", rx), sysctl(1, "net.ipv4.tcp_sack", "0"), stalls(4e8, 50)), "b sack=1\na tso eth0=off\na gso eth0=off + a tso eth0=off"},
		"a rate that the loss explains":                       {advisedPair(finds("vswitch", tx), stalls(1e6, 1)), "say mend vswitch"},
		"next to nothing passes, as was asked for":            {advisedPair(finds("vswitch", tx), stalls(1e5, 46), func(d *measure.Document) { d.Cells[0].Spec.MaxRate = 1e5 }), "say mend vswitch"},
		"offloads off": {advisedPair(finds("offloads-off", tx), withInterface(0, func(i *measure.Interface) {
			i.Offloads["tx-checksumming"], i.Offloads["tcp-segmentation-offload"], i.Offloads["generic-receive-offload"] = false, false, false
			i.Fixed = []string{"rx-gro"}
		})), "a tx-checksum eth0=on + a tso eth0=on"},
		"an offload that an earlier tuning has kept off": {advisedPair(finds("offloads-off", tx), withInterface(0, func(i *measure.Interface) { i.Offloads["tcp-segmentation-offload"] = false }), func(d *measure.Document) {
			d.EndPoints[0].Facts.Tuned = []measure.Changed{{Setting: measure.Setting{Knob: "tso", Interface: "eth0", Value: "off"}, Before: "on tx-tcp-segmentation=on"}}
		}), ""},
		"offloads as an agent words them": {advisedPair(withGate("offloads", "offloads-off", "a"), knobs(0, "tso eth0=off tx-tcp-segmentation=off tx-tcp6-segmentation=on", "gso eth0=on tx-gso=on")), "a tso eth0=on"},
		"LRO of a router":                 {advisedPair(withGate("lro-forwarding", "lro-forwarding", "b"), withInterface(1, func(i *measure.Interface) { i.Offloads["large-receive-offload"] = true })), "b lro eth0=off"},
		"one queue of eight":              {advisedPair(withGate("queues", "too-few-queues", "b"), withInterface(1, func(i *measure.Interface) { i.Channels.Combined = 1 })), "b channels eth0=combined 8"},
		"one queue, and no more possible": {advisedPair(withGate("queues", "too-few-queues", "b"), withInterface(1, func(i *measure.Interface) {
			i.Channels, i.Queues, i.IRQs = &measure.Channels{Combined: 1, CombinedMax: 1}, new(1), i.IRQs[:1]
		})),
			"b rps eth0=rx-0 f0"},
		"queues of a veth, of which each end has its own": {advisedPair(withGate("queues", "too-few-queues", "b"), withInterface(0, asVeth), withInterface(1, asVeth)),
			"b channels eth0=rx 2 tx 1\nb channels eth0=rx 2 tx 1 + a channels eth0=rx 1 tx 2"},
		"flows that are not spread":  {advisedPair(withGate("rss", "rss-not-spreading", "b")), "b rss-table eth0=0 1 2 3 0 1 2 3\nb rss-hash eth0=tcp4 sdfn udp4 sdfn"},
		"one CPU for all interrupts": {advisedPair(finds("irq-one-cpu", rx)), "b irq-affinity eth0=24 4 25 5 26 6 27 7"},
		"RPS without the CPU that is full": {advisedPair(finds("receiver-cpu", rx, func(f *measure.Finding) { f.Where.CPU = new(4) }), knobs(1, "rps eth0=rx-0 0"), knobs(0, "mtu eth0=1500|1500")),
			"b rps eth0=rx-0 e0\ntest --lean\ntest -P 8"},
		"a ring that overflows":    {advisedPair(finds("ring-overflow", rx, func(f *measure.Finding) { f.Where.Interface = "eth0" })), "b rx-ring eth0=4096"},
		"a backlog that overflows": {advisedPair(finds("backlog-overflow", rx)), "b netdev-max-backlog=2000"},
		"a late interrupt": {advisedPair(withGate("interrupt-moderation", "interrupt-moderation", "b")),
			"b coalescing eth0=adaptive-rx on rx-usecs 600\nb coalescing eth0=adaptive-rx off rx-usecs 50"},
		"an interrupt that is early enough": {advisedPair(withGate("interrupt-moderation", "interrupt-moderation", "b"), withInterface(1, func(i *measure.Interface) { i.Coalesce.RXNs = 20_000 })),
			"b coalescing eth0=adaptive-rx on rx-usecs 20"},
		"a late interrupt, all fields": {advisedPair(withGate("interrupt-moderation", "interrupt-moderation", "b"), knobs(1, "coalescing eth0=adaptive-rx on rx-usecs 600 rx-frames 0 tx-usecs 9")),
			"b coalescing eth0=adaptive-rx off rx-usecs 50 rx-frames 0 tx-usecs 9"},
		"pause frames": {advisedPair(finds("pause-frames", rx)), "b pause eth0=autoneg off rx off tx on"},
		"datagrams that find no room at the sender": {advisedPair(finds("shaper", tx), func(d *measure.Document) {
			d.Cells[0].LossPlaces = []measure.LossPlace{{Place: measure.LossQdisc, Packets: 5}, {Place: measure.LossSendNIC, Packets: 5}}
		}, withInterface(0, func(i *measure.Interface) { i.TxLength, i.Rings = new(1000), &measure.Rings{TX: 512, TXMax: 1024} })), "a txqueuelen eth0=2000\na tx-ring eth0=1024"},
		"CPUs that clock down": {advisedPair(withGate("governor", "cpu-governor", "a")), "a cpu-governor=performance"},
		"a round that is too short": {advisedPair(finds("receiver-cpu", rx, func(f *measure.Finding) { f.Evidence = []measure.Proof{{Counter: "softnet time_squeeze", Value: 9}} }), withInterface(1, func(i *measure.Interface) { i.MaxMTU = new(1500) })),
			"b netdev-budget=600\ntest --lean\ntest -P 8"},
		"loss": {advisedPair(finds("loss", at)), "a congestion-control=bbr\nsay mend loss\ntest -C bbr"},
		"loss, on a kernel that does not pace by itself": {advisedPair(finds("loss", at), func(d *measure.Document) { d.EndPoints[0].Facts.Kernel = new("3.10.0-1160") }),
			"a qdisc eth0=fq + a congestion-control=bbr\nsay mend loss\ntest -C bbr"},
		"loss, where a route names the control": {advisedPair(finds("loss", at), knobs(0, "congestion-control=reno|reno cubic bbr", "route-congestion default dev eth1=", "route-congestion 10.0.0.0/24 dev eth0 table main metric 0=cubic|reno cubic bbr")),
			"a route-congestion 10.0.0.0/24 dev eth0 table main metric 0=bbr\nsay mend loss"},
		"loss, where the system refuses it": {advisedPair(finds("loss", at), knobs(0, "congestion-control=cubic|reno cubic bbr|not in a namespace", "route-congestion 10.0.0.0/24 dev eth0=|reno cubic bbr")),
			"a route-congestion 10.0.0.0/24 dev eth0=bbr\nsay mend loss\ntest -C bbr"},
		"loss, where the system offers no other": {advisedPair(finds("loss", at), knobs(0, "congestion-control=cubic|cubic reno", "route-congestion 0.0.0.0/0 dev eth0 table main metric 0=|reno cubic bbr", "route-congestion 10.1.0.0/16 dev eth0 table main metric 0=|reno cubic bbr")),
			"a route-congestion 0.0.0.0/0 dev eth0 table main metric 0=bbr\nsay mend loss\ntest -C bbr"},
		"loss, where only the test can ask for another": {advisedPair(finds("loss", at), knobs(0, "congestion-control=cubic|cubic reno")),
			"a congestion-control=bbr (congestion-control can be cubic or reno at a)\nsay mend loss\ntest -C bbr"},
		"loss under bbr": {advisedPair(finds("loss", at), func(d *measure.Document) {
			d.Paths[0].Forward.Congestion = new("bbr")
			d.EndPoints[0].Facts.Congestion = new("bbr")
		}), "a qdisc eth0=fq\nsay mend loss"},
		"loss without a bbr": {advisedPair(finds("loss", at), func(d *measure.Document) { d.EndPoints[0].Facts.CongAvail = []string{"reno", "cubic"} }), "say mend loss"},
		"loss of datagrams":  {advisedPair(finds("loss", at), func(d *measure.Document) { d.Cells[0].Protocol = measure.UDP }), "say mend loss"},
		"pacing on a LAN": {advisedPair(finds("paced", tx), func(d *measure.Document) {
			d.Paths[0].Forward.Congestion = new("bbr")
			d.EndPoints[0].Facts.Congestion = new("bbr")
		}), "a congestion-control=cubic\ntest -C cubic"},
		"one stream that fills a CPU":         {advisedPair(finds("single-flow", tx), withExperiment("streams-8", 3e9, func(c *measure.Cell) { c.Streams = 8 }), withInterface(0, func(i *measure.Interface) { i.MaxMTU = new(1500) })), "test -P 8"},
		"more streams, which brought nothing": {advisedPair(finds("sender-cpu", tx), withExperiment("streams-8", 4e8, func(c *measure.Cell) { c.Streams = 8 }), withInterface(0, func(i *measure.Interface) { i.MaxMTU = new(1500) })), "test --lean"},
		"too many streams":                    {advisedPair(finds("too-many-streams", measure.AtTool), func(d *measure.Document) { d.Cells[0].Streams = 16 }, withExperiment("", 5e8, func(c *measure.Cell) { c.Streams = 4 })), "test -P 4"},
		"small messages":                      {advisedPair(finds("app-limited", measure.AtTool), func(d *measure.Document) { d.Cells[0].Spec.Length = measure.Pair{Send: 64, Recv: 64} }), "test -l 1M"},
		"a full CPU on a fast link: larger packets, last": {advisedPair(finds("sender-cpu", tx), withGate("governor", "cpu-governor", "a")),
			"a cpu-governor=performance\na mtu eth0=9000 + b mtu eth0=9000\ntest --lean\ntest -P 8"},
		"the adapter's other node":      {advisedPair(finds("numa-remote", rx)), "b irq-affinity eth0=24 4 25 5 26 6 27 7\ntest -A ,7"},
		"the same at this end":          {advisedPair(finds("numa-remote", tx)), "a irq-affinity eth0=24 4 25 5 26 6 27 7\ntest -A 7"},
		"a policer":                     {advisedPair(finds("policer", at), func(d *measure.Document) { d.EndPoints[0].Facts.CongAvail = nil }), "say mend policer"},
		"a cause that no setting cures": {advisedPair(finds("vswitch", tx)), "say mend vswitch"},
		"a cause that another brings":   {advisedPair(finds("vswitch", tx, func(f *measure.Finding) { f.BecauseOf = "pcie" })), ""},
		"several at once, the binding one first": {advisedPair(finds("receive-window", rx), finds("sack-off", tx), sysctl(1, "net.ipv4.tcp_rmem", "4096 131072 262144"), sysctl(0, "net.ipv4.tcp_sack", "0"),
			withGate("offloads", "offloads-off", "a"), withInterface(0, func(i *measure.Interface) { i.Offloads["tcp-segmentation-offload"] = false }), withGate("receive-window", "receive-window", "b")),
			"b tcp-rmem=4096 131072 75497472\na sack=1\na tso eth0=on"},
	} {
		list := Propose(x.doc, advise.Seen{})
		if got := sets(list); got != x.want {
			t.Errorf("%s\ngot\n%s\nwant\n%s", name, got, x.want)
		}
		holdSoundProposals(t, name, list)
	}
}

// TestExpectBuffers: a window that would carry more than any connection does gives no expected rate.
func TestExpectBuffers(t *testing.T) {
	for name, x := range map[string]struct {
		rtt  int64
		want string
		bps  bool
	}{
		"far away": {20e6, "enough for 10.0 Gb/s, the interfaces' rate: a window of 36 MiB at 20.0 ms RTT", true},
		"near":     {80e3, "no longer a limit: a window of 3 MiB is enough for any rate at 80 µs RTT", false},
	} {
		d := advisedPair(finds("receive-window", measure.AtReceiver), sysctl(1, "net.ipv4.tcp_rmem", "4096 4096 6144"), sysctl(0, "net.ipv4.tcp_wmem", "4096 4096 4096"))
		d.Paths[0].RTT.P50 = x.rtt
		list := Propose(d, advise.Seen{})
		if len(list) != 3 || list[0].Expect != x.want || (list[0].ExpectBps != nil) != x.bps || (list[2].ExpectBps != nil) != x.bps || strings.Contains(list[2].Expect, "up to 0") {
			t.Errorf("%s: %+v", name, list)
		}
	}
}

// stalls sets the rate of the flow, and the percentage of retransmissions.
func stalls(bps, againPct float64) func(*measure.Document) {
	return func(d *measure.Document) {
		t := &measure.TCPInfo{DataSegsOut: new(uint32(1000)), Retrans: new(uint32(10 * againPct))}
		d.Cells[0].Goodput.Value = bps
		d.Cells[0].Runs = []measure.Run{{Flows: []measure.Flow{{From: "a", To: "b", Sender: &measure.Evidence{Streams: []measure.Stream{{TCPStart: t.AtBirth(), TCP: t}}}}}}}
	}
}

// back adds the rate of the other direction, without findings.
func back(bps float64) func(*measure.Document) {
	return func(d *measure.Document) {
		c := cell("b", "a", bps)
		c.Findings = []measure.Finding{{Cause: measure.CauseNone, Healthy: true, Summary: "nothing was found"}}
		d.Cells = append(d.Cells, c)
	}
}

func asVeth(i *measure.Interface) {
	i.Kind, i.Channels, i.SpeedBps = new("veth"), &measure.Channels{RX: 1, TX: 1, RXMax: 2, TXMax: 2}, nil
}

// TestOrderOfProposals: failed gates come before warnings, whatever their order in the document.
func TestOrderOfProposals(t *testing.T) {
	d := advisedPair(withGate("offloads", "offloads-off", "a"), withGate("sack", "sack-off", "b"), sysctl(1, "net.ipv4.tcp_sack", "0"),
		withInterface(0, func(i *measure.Interface) { i.Offloads["tcp-segmentation-offload"] = false }))
	d.Gates[1].Status = measure.GateFail
	if got := ids(Propose(d, advise.Seen{})); got != "sack@b tso@a:eth0" {
		t.Error(got)
	}
}

// TestOnlySaid: what thru cannot or may not set is listed with the reason, and with the commands of its system.
func TestOnlySaid(t *testing.T) {
	small := func(d *measure.Document) {
		d.EndPoints[1].Facts.Sysctls = map[string]string{"net.ipv4.tcp_rmem": "4096 131072 262144"}
	}
	for name, x := range map[string]struct {
		change  func(*measure.EndPoint)
		because string
		command string
	}{
		"FreeBSD":     {func(e *measure.EndPoint) { e.Facts.OS, e.Facts.Sysctls = new("freebsd"), nil }, "on Linux only, and b runs freebsd", "kern.ipc.maxsockbuf"},
		"Windows":     {func(e *measure.EndPoint) { e.Facts.OS, e.Facts.Sysctls = new("windows"), nil }, "b runs windows", "netsh"},
		"illumos":     {func(e *measure.EndPoint) { e.Facts.OS, e.Facts.Sysctls = new("illumos"), nil }, "b runs illumos", "ipadm"},
		"no agent":    {func(e *measure.EndPoint) { e.Facts, e.Speaks = nil, "iperf3 3.12" }, "it speaks iperf3 3.12", "net.ipv4.tcp_rmem"},
		"not allowed": {func(e *measure.EndPoint) { e.NoTune = "serve --allow tune lets it" }, "serve --allow tune lets it", "net.ipv4.tcp_rmem"},
		"refused": {func(e *measure.EndPoint) {
			e.Knobs = []measure.KnobState{{Knob: "tcp-rmem", Value: "4096 131072 262144", Refused: "not root"}}
		}, "not root", "net.ipv4.tcp_rmem"},
		"no such knob": {func(e *measure.EndPoint) { e.Knobs = []measure.KnobState{{Knob: "sack", Value: "1"}} }, "does not find this setting at b", "net.ipv4.tcp_rmem"},
		"a stored one": {func(*measure.EndPoint) {}, "", "net.ipv4.tcp_rmem"},
		"it has gone":  {func(e *measure.EndPoint) { e.Lost = "the connection ended" }, "no longer reachable", "net.ipv4.tcp_rmem"},
	} {
		d := advisedPair(finds("receive-window", measure.AtReceiver), small)
		x.change(&d.EndPoints[1])
		list := Propose(d, advise.Seen{})
		if len(list) == 0 || !strings.Contains(list[0].OnlySaid, x.because) || (list[0].OnlySaid == "") != (x.because == "") {
			t.Errorf("%s: %+v", name, list)
			continue
		}
		if c := list[0].Commands; len(c) != 1 || !strings.Contains(strings.Join(c[0].Set, "\n"), x.command) {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// TestExpect: the expected rate of a window is computed, and limited to what the link carries.
func TestExpect(t *testing.T) {
	d := advisedPair(finds("receive-window", measure.AtReceiver), sysctl(1, "net.ipv4.tcp_rmem", "4096 131072 262144"))
	p := Propose(d, advise.Seen{})[0]
	if p.ExpectBps == nil || *p.ExpectBps != 10e9 { // half of 72 MiB x 8 / 20 ms would be 15.1 Gb/s
		t.Errorf("expects %v: %s", p.ExpectBps, p.Expect)
	}
	if !strings.HasPrefix(p.Expect, "enough for 10.0 Gb/s, the interfaces' rate: a window of 36 MiB at 20.0 ms RTT") || !strings.HasPrefix(p.Why, "400 Mb/s a -> b: it is receive-window") {
		t.Errorf("%s; %s", p.Expect, p.Why)
	}
	unknown := advisedPair(finds("receive-window", measure.AtReceiver), sysctl(1, "net.ipv4.tcp_rmem", "4096 131072 262144"), withInterface(0, func(i *measure.Interface) { i.SpeedBps = nil }))
	if u := Propose(unknown, advise.Seen{})[0]; !strings.HasPrefix(u.Expect, "enough for 800 Mb/s, twice the best measured rate: ") || *u.ExpectBps != 8e8 {
		t.Errorf("expects %v: %s", *u.ExpectBps, u.Expect)
	}
	if len(p.Before) != 1 || p.Before[0].Value != "4096 131072 262144" || p.From != "a" || p.To != "b" {
		t.Errorf("%+v", p)
	}
	d.Cells[0].Ceiling = &measure.Ceiling{Bps: 9.4e9, LinkBps: 10e9}
	if p := Propose(d, advise.Seen{})[0]; p.ExpectBps == nil || *p.ExpectBps != 9.4e9 {
		t.Errorf("expects %v of a link that carries 9.4 Gb/s", p.ExpectBps)
	}
}

// TestDirection: a change is judged in the direction of the fault.
func TestDirection(t *testing.T) {
	for _, d := range []*measure.Document{
		advisedPair(finds("ring-overflow", measure.AtReceiver)), advisedPair(finds("backlog-overflow", measure.AtReceiver)), advisedPair(finds("pause-frames", measure.AtSender)),
		advisedPair(withGate("rings", "ring-overflow", "b")), advisedPair(withGate("rss", "rss-not-spreading", "b")),
	} {
		if list := Propose(d, advise.Seen{}); len(list) == 0 || list[0].From != "a" || list[0].To != "b" {
			t.Errorf("%+v", list)
		}
	}
}

// TestFewerPackets: the reduction in packets is that of the actual MTU, not of a usual one.
func TestFewerPackets(t *testing.T) {
	p := Propose(advisedPair(finds("jumbo-mismatch", measure.AtPath), withInterface(0, func(i *measure.Interface) { i.MTU = new(2000) })), advise.Seen{})[0]
	if want := "packets of 2000 bytes pass in both directions: 75% of the packets"; !strings.HasPrefix(p.Expect, want) {
		t.Errorf("%q, want %q", p.Expect, want)
	}
}

// TestFullLink: nothing is proposed if every direction is full.
func TestFullLink(t *testing.T) {
	full := func(f *measure.Finding) { f.Healthy, f.Cause = true, "link-rate" }
	d := advisedPair(finds("link-rate", measure.AtPath, full), withGate("governor", "cpu-governor", "a"))
	list := Propose(d, advise.Seen{})
	if len(list) != 1 || !strings.Contains(list[0].OnlySaid, "the link is full") {
		t.Errorf("%+v", list)
	}
	back := cell("b", "a", 1e8)
	back.Findings = []measure.Finding{{Cause: measure.CauseNone, Healthy: true, Where: measure.Where{Place: measure.AtPath, From: "b", To: "a"}}}
	d.Cells = append(d.Cells, back)
	if got := ids(Propose(d, advise.Seen{})); got != "cpu-governor@a" {
		t.Errorf("with a direction that is not full: %s", got)
	}
}

// TestLastCounts: of several measurements of a direction the last one determines the limit, and runs of
// comparisons do not count.
func TestLastCounts(t *testing.T) {
	d := advisedPair(finds("receive-window", measure.AtReceiver), sysctl(1, "net.ipv4.tcp_rmem", "4096 131072 262144"), sysctl(0, "net.ipv4.tcp_sack", "0"))
	d.Cells = append(d.Cells, cell("a", "b", 9e8), cell("a", "b", 1e8))
	d.Cells[1].Findings = []measure.Finding{{Cause: "sack-off", Where: measure.Where{Place: measure.AtSender, EndPoint: "a", From: "a", To: "b"}, Summary: "SACK is off"}}
	d.Cells[2].Experiment = "tune-3"
	d.Cells[2].Findings = d.Cells[0].Findings
	if got := ids(Propose(d, advise.Seen{})); got != "sack@a" {
		t.Error(got)
	}
}

// TestSeen: a tried change returns only if a finding asks for it after another change was kept.
func TestSeen(t *testing.T) {
	d := advisedPair(finds("sack-off", measure.AtSender), sysctl(0, "net.ipv4.tcp_sack", "0"), withGate("governor", "cpu-governor", "a"))
	for name, x := range map[string]struct {
		seen advise.Seen
		want string
	}{
		"nothing":                         {advise.Seen{}, "sack@a cpu-governor@a"},
		"both undone":                     {advise.Seen{Undone: map[string]int{"sack@a": 0, "cpu-governor@a": 0}}, ""},
		"both undone before one was kept": {advise.Seen{Kept: []string{"tso@a:eth0"}, Undone: map[string]int{"sack@a": 0, "cpu-governor@a": 0}}, "sack@a"},
		"undone after it":                 {advise.Seen{Kept: []string{"tso@a:eth0"}, Undone: map[string]int{"sack@a": 1}}, "cpu-governor@a"},
		"never":                           {advise.Seen{Kept: []string{"tso@a:eth0"}, Never: map[string]bool{"sack@a": true}}, "cpu-governor@a"},
		"only":                            {advise.Seen{Only: []string{"cpu-governor", "mtu"}}, "cpu-governor@a"},
	} {
		if got := ids(Propose(d, x.seen)); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
	fixed := advisedPair(withGate("offloads", "offloads-off", "a"), finds("sender-cpu", measure.AtSender), withInterface(0, func(i *measure.Interface) {
		i.Offloads["tcp-segmentation-offload"], i.Offloads["generic-receive-offload"], i.MaxMTU = false, false, new(1500)
	}))
	for kept, want := range map[string]string{"": "gro@a:eth0+tso@a:eth0 lean streams=8", "tso@a:eth0": "gro@a:eth0 lean streams=8", "gso@a:eth0+tso@a:eth0": "gro@a:eth0 lean streams=8", "tso@b:eth0": "gro@a:eth0+tso@a:eth0 lean streams=8"} {
		if got := ids(Propose(fixed, advise.Seen{Kept: []string{kept}})); got != want {
			t.Errorf("offloads after %q: %q, want %q", kept, got, want)
		}
	}
	fixed = advisedPair(withGate("offloads", "offloads-off", "a"), finds("offloads-off", measure.AtSender), withInterface(0, func(i *measure.Interface) { i.Offloads["tcp-segmentation-offload"] = false }))
	if got := sets(Propose(fixed, advise.Seen{Kept: []string{"tso@a:eth0"}})); got != "" {
		t.Errorf("after TSO off was kept: %q", got)
	}
	buffers := advisedPair(withGate("receive-window", "receive-window", "b"), sysctl(1, "net.ipv4.tcp_rmem", "4096 131072 262144"))
	if got := ids(Propose(buffers, advise.Seen{Kept: []string{"tso@a:eth0"}, Undone: map[string]int{"tcp-rmem@b": 0}})); got != "tcp-rmem@b" {
		t.Errorf("buffers, after something else was kept: %q", got)
	}
	if got := ids(Propose(buffers, advise.Seen{Kept: []string{"tcp-rmem@b"}})); got != "" {
		t.Errorf("a gate asks again for what was kept: %q", got)
	}
	late := advisedPair(withGate("interrupt-moderation", "interrupt-moderation", "b"))
	if got := ids(Propose(late, advise.Seen{Never: map[string]bool{"coalescing@b:eth0": true}})); got != "coalescing@b:eth0=50" {
		t.Errorf("where the driver cannot choose: %q", got)
	}
	jumbo := advisedPair(finds("sender-cpu", measure.AtSender))
	for kept, want := range map[string]bool{"sack@a": true, "mtu@a:eth0+mtu@b:eth0": false} {
		if got := strings.Contains(ids(Propose(jumbo, advise.Seen{Kept: []string{kept}})), "mtu@"); got != want {
			t.Errorf("larger packets after %s: %v", kept, got)
		}
	}
	if got := ids(Propose(advisedPair(finds("sender-cpu", measure.AtSender)), advise.Seen{Only: []string{"streams"}})); got != "streams=8" {
		t.Errorf("only streams: %s", got)
	}
}

// TestCauses: each cause of the catalogue has a rule, or cannot be fixed by a host setting.
func TestCauses(t *testing.T) {
	words := []string{"measurement", "mss-clamp", "cpu-quota", "cpu-limit", "cpu-steal", "memory-pressure", "slow-reader", "emulated-nic", "wrong-driver", "link-rate",
		"link-negotiated-low", "duplex", "bad-link", "pcie", "asymmetric-route", "tcp-proxy", "vpn-cpu", "token-bucket", "noisy-neighbour", "firewall-cost", "vswitch", "netqueue-off"}
	var known []string
	for _, c := range Causes() {
		known = append(known, c.Cause)
		has := slices.ContainsFunc(proposalRules(), func(r advise.Rule) bool { return r.Cause == c.Cause })
		if has == slices.Contains(words, c.Cause) {
			t.Errorf("%s: has a rule: %v, and is said to have none: %v", c.Cause, has, !has)
		}
	}
	for _, r := range proposalRules() {
		if !slices.Contains(known, r.Cause) {
			t.Errorf("%s is no cause of the catalogue", r.Cause)
		}
	}
}
