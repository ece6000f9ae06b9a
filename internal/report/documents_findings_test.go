package report

import (
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/stat"
)

// The documents of diagnoses and explanations, made by hand.

// told gives a cell findings. It shortens the evidence, since other documents show how that is printed.
func told(c *measure.Cell, findings ...measure.Finding) *measure.Cell {
	c.Findings = findings
	for _, e := range result.Evidences(c) {
		e.Streams, e.Bins, e.PerSec = e.Streams[:1], e.Bins[:3], e.PerSec[:3]
		for i := range e.Bins {
			e.Bins[i].Streams, e.Bins[i].TCP = nil, e.Bins[i].TCP[:1]
		}
	}
	c.RuledOut = []measure.Excluded{
		{Cause: "loss", Why: "0 of 9 840 112 segments were retransmitted"},
		{Cause: "policer", Why: "no loss"},
		{Cause: "shaper", Why: "RTT loaded 184 µs, idle 23 µs: no queue of ms"},
		{Cause: "send-buffer", Why: "notsent_bytes on average 1.2 MiB: there was always data to send"},
		{Cause: "sack-off", Why: "SACK-permitted in both SYNs"},
		{Cause: "window-scaling-off", Why: "wscale 10 and 10"},
		{Cause: "timestamps-off", Why: "timestamps in use"},
		{Cause: "reordering", Why: "reord_seen 0"},
	}
	c.NotChecked = []measure.Unsettled{
		{Cause: "single-flow", Fact: "the rate of another number of streams", Why: "one number was measured", Tests: []string{"streams-1", "streams-8"}},
		{Cause: "too-many-streams", Fact: "the rate of another number of streams", Why: "one number was measured", Tests: []string{"streams-1"}},
		{Cause: "pcie", Fact: "the PCI slot of eth0", Why: "a virtual interface has none"},
		{Cause: "netqueue-off", Fact: "counters of the hypervisor", Why: "no access to ESXi"},
		{Cause: "ring-overflow", Fact: "ring counters of eth0", Why: "needs CAP_NET_ADMIN"},
		{Cause: "firewall-cost", Fact: "the rules of the firewall", Why: "only root may list them"},
		{Cause: "noisy-neighbour", Fact: "the course over hours", Why: "the run took 10 s"},
	}
	return c
}

// at returns the place of a cause at an end point.
func at(place, end string) measure.Where { return measure.Where{Place: place, EndPoint: end} }

func pct(counter string, value, bar float64) measure.Proof {
	return measure.Proof{Counter: counter, Value: value, Unit: "pct", Threshold: &bar, Above: true}
}

func receiverCPU() []measure.Finding {
	where := measure.Where{Place: measure.AtReceiver, EndPoint: "b", From: "local", To: "b", CPU: new(3), Interface: "eth0"}
	return []measure.Finding{
		{Cause: "irq-one-cpu", Where: where, Confidence: measure.Certain, Summary: "all interrupts of eth0 at b go to CPU 3, which is full of softirq work (98%)",
			Evidence: []measure.Proof{pct("host.cpus.softirq_pct of CPU 3", 98.2, 95), {Counter: "interrupts of CPU 3", Value: 100, Unit: "pct", Threshold: new(90.0), Above: true, Note: "41 203 of 41 203"}},
			Effect:   &measure.Effect{BoundBps: new(4.1e9), CostPct: new(56.0), Text: "about 5.3 Gb/s of what the link allows", From: "4.1 Gb/s at 98% of the one CPU, the others idle at 7%"},
			Fix:      &measure.Fix{EndPoint: "b", Platform: "linux", Advice: "spread the interrupts of the 8 queues", Commands: []string{"ethtool -L eth0 combined 8", "echo 0-7 > /proc/irq/61/smp_affinity_list"}, Risk: "the link may flap for a second; irqbalance may undo it"},
			Source:   "causes.md, irq-one-cpu"},
		{Cause: "receiver-cpu", Where: where, Confidence: measure.Certain, BecauseOf: "irq-one-cpu", Summary: "the receiver's CPU 3 is full of softirq work (98%)",
			Evidence: []measure.Proof{pct("host.cpus.softirq_pct of CPU 3", 98.2, 95), {EndPoint: "b", Counter: "softnet.time_squeeze", Value: 4120, Unit: "per_s", Threshold: new(10.0), Above: true, SpanNs: 10e9},
				{Counter: "receiver_cpu.machine_pct", Value: 14.1, Unit: "pct", Threshold: new(50.0), Note: "seven others are idle"}}},
		{Cause: "offloads-off", Where: at(measure.AtReceiver, "b"), Confidence: measure.Likely, Summary: "GRO is off at eth0 of b: 338 000 packets a second",
			Evidence: []measure.Proof{{Counter: "interface.rx_packets", Value: 338120, Unit: "per_s"}, {Counter: "mean_packet_bytes", Value: 1514, Unit: "bytes", Threshold: new(3000.0)}},
			Next:     "the same with GRO on", Fix: &measure.Fix{EndPoint: "b", Platform: "linux", Commands: []string{"ethtool -K eth0 gro on"}}},
		{Cause: "cpu-governor", Where: at(measure.AtReceiver, "b"), Confidence: measure.Possible, Summary: "the governor of b is powersave"},
		{Cause: "numa-remote", Where: at(measure.AtSender, "local"), Confidence: measure.Possible, Summary: "eth0 is at node 1, thru ran at node 0"},
	}
}

func receiveWindow(end, from, to string) measure.Finding {
	return measure.Finding{Cause: "receive-window", Where: measure.Where{Place: measure.AtReceiver, EndPoint: end, From: from, To: to}, Confidence: measure.Certain,
		Summary: "the window that " + end + " advertises is full: 64 KiB in 20.6 ms",
		Evidence: []measure.Proof{{EndPoint: from, Counter: "tcp_info.rwnd_limited_us of busy_time_us", Value: 98.7, Unit: "pct", Threshold: new(60.0), Above: true},
			{EndPoint: end, Counter: "course.unread_bytes", Value: 0, Unit: "bytes", Threshold: new(6554.0), Note: "the program reads at once"},
			{EndPoint: from, Counter: "course.in_flight_segments", Value: 44.1, Unit: "segments"}, {EndPoint: from, Counter: "rtt", Value: 20.6e6, Unit: "ns"}},
		Effect: &measure.Effect{BoundBps: new(25.4e6), CostPct: new(86.6), Text: "25.4 Mb/s, whatever the link allows", From: "65 536 B * 8 / 20.6 ms"},
		Fix: &measure.Fix{EndPoint: end, Platform: "linux", Advice: "let the window grow to the bandwidth-delay product, 488 KiB of 200 Mb/s",
			Commands: []string{"sysctl -w net.core.rmem_max=1048576", `sysctl -w net.ipv4.tcp_rmem="4096 131072 1048576"`}, Risk: "more memory for each connection"}}
}

func fullLink() measure.Finding {
	return measure.Finding{Cause: result.CauseLinkRate, Where: measure.Where{Place: measure.AtPath}, Confidence: measure.Certain, Healthy: true, Summary: "the link is full: 100% of what MTU 1500 allows",
		Evidence: []measure.Proof{pct("goodput_bps of ceiling", 99.96, 95)}}
}

func nothingFound() measure.Finding {
	return measure.Finding{Cause: measure.CauseNone, Where: measure.Where{Place: measure.AtPath}, Confidence: measure.Likely, Healthy: true, Summary: "nothing was found that holds it back"}
}

// oneWay is a test of one direction between local and b.
func oneWay(bps float64, link int64, findings ...measure.Finding) *measure.Document {
	d := newDocument("test", "b", "--one-way")
	d.EndPoints[1].Name = "b"
	c := newCellFor("local", "b", 4, bps)
	if link > 0 {
		linked(&c, bps, link)
	}
	d.Cells = []measure.Cell{*told(&c, findings...)}
	d.Findings = findings
	return d
}

// linked sets the ceiling of a cell from a known link rate.
func linked(c *measure.Cell, bps float64, link int64) {
	most := 0.9564 * float64(link)
	c.Ceiling = &measure.Ceiling{Bps: most, LinkBps: link, LinkFrom: "stated", LinkLayer: "l2", MTU: 1500, SharePct: 100 * bps / most}
}

// receiverCPUTest has a root cause, its consequences, and more findings than text shows.
func receiverCPUTest() *measure.Document {
	d := oneWay(4.1e9, 10e9, receiverCPU()...)
	d.Verdict = stat.Verdict(d.Cells)
	return d
}

// receiveWindowTest has the same cause in both directions, at 20 ms and without a known rate.
func receiveWindowTest() *measure.Document {
	d := oneWay(25.3e6, 0, receiveWindow("b", "local", "b"))
	back := newCellFor("b", "local", 4, 25.4e6)
	back.Group = 1
	d.Cells = append(d.Cells, *told(&back, receiveWindow("local", "b", "local")))
	return d
}

// healthyTest fills a link of known rate in both directions.
func healthyTest() *measure.Document {
	d := verdictTest()
	for i := range d.Cells {
		told(&d.Cells[i], fullLink())
	}
	d.Findings = d.Cells[0].Findings
	return d
}

// noneTest is a flow without any limiting cause.
func noneTest() *measure.Document { return oneWay(41.3e9, 0, nothingFound()) }

// apartTest has different causes in the two directions; the reverse one is worse.
func apartTest() *measure.Document {
	d := oneWay(9.41e9, 10e9, fullLink())
	back := newCellFor("b", "local", 4, 2.1e9)
	linked(&back, 2.1e9, 10e9)
	back.Group = 1
	d.Cells = append(d.Cells, *told(&back, measure.Finding{Cause: "loss", Where: measure.Where{Place: measure.AtPath, From: "b", To: "local"}, Confidence: measure.Likely,
		Summary: "1 of 12 000 segments is lost on the path", Next: "UDP at a fixed rate under 2.1 Gb/s",
		Evidence: []measure.Proof{{EndPoint: "b", Counter: "retransmits_segments", Value: 8931, Unit: "segments", SpanNs: 10e9}, pct("course.recovery_pct", 31.4, 10)},
		Effect:   &measure.Effect{Text: "2.2 Gb/s by Mathis", From: "MSS 1448, RTT 184 µs, loss 0.0083%"}}))
	d.Findings = []measure.Finding{d.Cells[1].Findings[0], d.Cells[0].Findings[0]}
	d.Verdict = stat.Verdict(d.Cells)
	return d
}

// blackHoleTest is a path that drops full segments: no data arrives.
func blackHoleTest() *measure.Document {
	d := oneWay(1, 1e9, measure.Finding{Cause: "mtu-black-hole", Where: measure.Where{Place: measure.AtPath, From: "local", To: "b"}, Confidence: measure.Certain,
		Summary:  "segments of 1500 bytes are dropped silently: the handshake passes, no data does",
		Evidence: []measure.Proof{{EndPoint: "local", Counter: "tcp_info.backoff", Value: 5, Threshold: new(2.0), Above: true}, {EndPoint: "local", Counter: "snd_cwnd_segments", Value: 1, Unit: "segments"}},
		Fix:      &measure.Fix{EndPoint: "local", Platform: "linux", Advice: "let the router send ICMP fragmentation needed; until then", Commands: []string{"sysctl -w net.ipv4.tcp_mtu_probing=1"}}})
	c := &d.Cells[0]
	c.Goodput, c.Runs[0].Goodput = &measure.Figure{Runs: 1, Basis: "bins of a single run"}, new(0.0)
	c.SenderCPU.PctPerGbps, c.ReceiverCPU.PctPerGbps, c.RTTLoaded, c.RFC6349, c.Fairness, c.MeanPacket, c.BDP, c.NeededWindow, c.Steady = nil, nil, nil, nil, nil, nil, nil, nil, nil
	c.Reconciled.SenderBps, c.Reconciled.ReceiverBps, c.Ceiling.SharePct = 0, 0, 0
	d.Verdict = stat.Verdict(d.Cells)
	return d
}

// explainTest is an explanation in six steps.
func explainTest() *measure.Document {
	d := newDocument("explain", "b", "--link-rate", "10G")
	d.EndPoints[1].Name, d.ElapsedNs = "b", 34_200_000_000
	d.Ended = "irq-one-cpu is certain, and the way back is full"
	base, back := newCellFor("local", "b", 4, 4.1e9), newCellFor("b", "local", 4, 9.41e9)
	linked(&base, 4.1e9, 10e9)
	linked(&back, 9.41e9, 10e9)
	told(&base, receiverCPU()[:3]...)
	told(&back, fullLink())
	base.Experiment, back.Experiment, back.Group = "base", "base", 1
	d.Cells = []measure.Cell{base, back}
	tried := func(id string, streams int, bps float64) {
		c := newCellFor("local", "b", streams, bps)
		c.Experiment, c.Group, c.Warnings, c.Runs = id, len(d.Cells), []string{"a short run"}, nil
		d.Cells = append(d.Cells, c)
	}
	tried("streams-1", 1, 3.96e9)
	tried("streams-8", 8, 4.12e9)
	tried("udp-above", 4, 4.3e9)
	d.Steps = []measure.Step{
		{Experiment: "path", Title: "path by a probe", From: "local", To: "b", Figure: "RTT 184 µs, 1500 bytes pass with DF", RuledOut: []string{"mtu-black-hole", "jumbo-mismatch", "mss-clamp"}, ElapsedNs: 900_000_000},
		{Experiment: "base", Title: "4 streams", From: "local", To: "b", Cells: []int{0}, Bps: new(4.1e9), Raised: []string{"receiver-cpu", "irq-one-cpu"}, RuledOut: []string{"loss", "receive-window", "send-buffer"}, ElapsedNs: 6e9},
		{Experiment: "base", Title: "4 streams", From: "b", To: "local", Cells: []int{1}, Bps: new(9.41e9), Raised: []string{"link-rate"}, ElapsedNs: 6e9},
		{Experiment: "streams-1", Title: "one stream", From: "local", To: "b", Cells: []int{2}, Bps: new(3.96e9), BaseBps: new(4.1e9), RuledOut: []string{"single-flow", "too-many-streams", "lag-one-member"}, ElapsedNs: 4e9},
		{Experiment: "streams-8", Title: "8 streams", From: "local", To: "b", Cells: []int{3}, Bps: new(4.12e9), BaseBps: new(4.1e9), RuledOut: []string{"token-bucket"}, Raised: []string{"irq-one-cpu"}, ElapsedNs: 4e9},
		{Experiment: "other-cpu", Title: "reader on another CPU", From: "local", To: "b", Error: "b lets thru use one CPU only", ElapsedNs: 20_000_000},
	}
	d.Findings = base.Findings
	d.Verdict = stat.Verdict(d.Cells[:2])
	return d
}

// heldLadder is the ladder with the cause that limits each rung.
func heldLadder() *measure.Document {
	d := ladderTest()
	for i := range d.Cells {
		f := measure.Finding{Cause: "sender-cpu", Where: at(measure.AtSender, "local"), Confidence: measure.Likely, Summary: "the sender's CPU 1 is full (98%)"}
		if d.Cells[i].Streams == 1 {
			f = measure.Finding{Cause: "single-flow", Where: at(measure.AtSender, "local"), Confidence: measure.Possible, Summary: "one stream uses one CPU"}
		}
		d.Cells[i].Findings = []measure.Finding{f}
	}
	return d
}

// hostileDiagnosis is what a host could forge.
func hostileDiagnosis() *measure.Document {
	const evil = "\x1b[31m<script>alert(1)</script>\r\n\u202e\"'&\x00\u0085"
	d := explainTest()
	f := measure.Finding{Cause: evil, Where: measure.Where{Place: evil, EndPoint: evil, CPU: new(-1), Interface: evil}, BecauseOf: evil, Confidence: evil, Summary: evil,
		Evidence: []measure.Proof{{EndPoint: evil, Counter: evil, Value: -1e300, Unit: evil, Threshold: new(1e300), SpanNs: -1, Note: evil}, {Counter: "x", Value: 9e14, Unit: "ns"}},
		Effect:   &measure.Effect{BoundBps: new(1e300), Text: evil, From: evil}, Next: evil, Source: evil,
		Fix: &measure.Fix{EndPoint: evil, Platform: evil, Commands: []string{evil}, Advice: evil, Risk: evil}}
	for i := range d.Cells {
		c := &d.Cells[i]
		c.Findings, c.RuledOut, c.NotChecked = nil, nil, nil
		for range 200 {
			c.Findings = append(c.Findings, f)
			c.RuledOut = append(c.RuledOut, measure.Excluded{Cause: evil, Why: evil})
			c.NotChecked = append(c.NotChecked, measure.Unsettled{Cause: evil, Fact: evil, Why: evil, Tests: []string{evil, evil}})
		}
	}
	for range 200 {
		d.Steps = append(d.Steps, measure.Step{Experiment: evil, Title: evil, From: evil, To: evil, Figure: evil, Bps: new(1e300), BaseBps: new(-1e300), RuledOut: []string{evil}, Raised: []string{evil}, Conclusion: evil, ElapsedNs: -1, Error: evil})
	}
	d.Ended = evil
	return d
}
