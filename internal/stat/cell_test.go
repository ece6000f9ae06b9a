package stat

import (
	"math"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
	"thru/internal/unit"
)

// recorded is a cell as two hosts on a 10 Gb/s link produce it: one run for each rate, of ten seconds, two
// streams, MTU 1500 with timestamps.
func recorded(gbps ...float64) *measure.Cell {
	c := &measure.Cell{From: "local", To: "esx2", Protocol: measure.TCP, Streams: 2}
	for i, g := range gbps {
		c.Runs = append(c.Runs, recordedRun(i, g*1e9))
	}
	return c
}

const seconds = 10

func recordedRun(index int, bps float64) measure.Run {
	perSecond := int64(bps / 8)
	end := func(name string, sends bool) *measure.Evidence {
		e := &measure.Evidence{
			EndPoint: name, Sends: sends, Dialled: sends, LocalAddr: "192.0.2.1:40000", PeerAddr: "192.0.2.2:5202",
			Route:      &measure.Route{Interface: "eth0", MTU: 1500},
			MeasuredNs: seconds * 1e9, Bytes: seconds * perSecond, TotalBytes: (seconds + 1) * perSecond,
			Host: hostSpan(80, 40), Base: hostSpan(4, 0),
			Worker: &measure.Process{UserNs: 1e9, SystemNs: 6e9, ResidentB: 24 << 20},
		}
		for i := range 2 {
			e.Streams = append(e.Streams, recordedStream(i, e.Bytes/2, sends))
		}
		for i := range seconds {
			wave := perSecond / 1000 * int64(i%3-1) // a tenth of a percent
			b := measure.StreamBin{At: int64(i) * 1e9, Span: 1e9, Bytes: perSecond + wave}
			if sends {
				b.TCP = []measure.TCPInfo{{RTT: new(int64(700_000))}, {RTT: new(int64(900_000))}}
			}
			e.Bins = append(e.Bins, b)
		}
		return e
	}
	sender, receiver := end("local", true), end("esx2", false)
	sender.RTTIdle = &measure.RTT{Min: 400e3, Median: 450e3, Max: 600e3, Samples: 20}
	receiver.Host.NIC = &measure.NICSpan{Name: "eth0", RxBytes: uint64(receiver.Bytes) * 1514 / 1448, RxPackets: uint64(receiver.Bytes) / 1448}
	return measure.Run{Index: index, Flows: []measure.Flow{{From: "local", To: "esx2", Sender: sender, Receiver: receiver}}}
}

// hostSpan is ten seconds of a host with two cores.
func hostSpan(first, second float64) *measure.HostSpan {
	return &measure.HostSpan{
		Span:   seconds * 1e9,
		CPUs:   []measure.CPU{{Core: 0, System: first, Idle: 100 - first}, {Core: 1, User: second / 2, SoftIRQ: second / 2, Idle: 100 - second}},
		Memory: &measure.Memory{Total: 64 << 30, Available: 60 << 30},
	}
}

func recordedStream(index int, bytes int64, sends bool) measure.Stream {
	x := measure.Stream{Index: index, Bytes: bytes, TotalBytes: bytes * 11 / 10, MSS: 1448}
	info := func(sent, again uint64, retrans uint32) *measure.TCPInfo {
		return &measure.TCPInfo{
			PMTU: new(uint32(1500)), Timestamps: new(true), SendMSS: new(uint32(1448)), MinRTT: new(int64(400_000)),
			BytesSent: &sent, BytesRetrans: &again, Retrans: &retrans, DataSegsIn: new(uint32(sent / 1448)),
		}
	}
	x.TCPStart, x.TCP = info(1e6, 0, 3), info(1e6+102_000, 2_000, 5)
	x.TCPEnd = info(2e6, 2_000, 5)
	if sends {
		x.TCPEnd.BytesAcked = new(uint64(x.TotalBytes + 1400))
	}
	return x
}

// twoHosts are the facts of both ends: 10GigE at one, 25GigE at the other.
func twoHosts() map[string]*measure.Facts {
	host := func(bps int64) *measure.Facts {
		return &measure.Facts{Interfaces: []measure.Interface{{Name: "eth0", MTU: new(1500), SpeedBps: &bps}}}
	}
	return map[string]*measure.Facts{"local": host(25e9), "esx2": host(10e9)}
}

// TestSummarise checks every figure of a plain cell of five runs.
func TestSummarise(t *testing.T) {
	c := recorded(9.30, 9.32, 9.31, 9.29, 9.33)
	Summarise(c, twoHosts(), Link{})
	if len(c.Missing)+len(c.Warnings) != 0 {
		t.Errorf("missing %v, warnings %q", c.Missing, c.Warnings)
	}
	g := c.Goodput
	if g.Runs != 5 || g.Basis != "runs" || g.Stable == nil || !*g.Stable {
		t.Errorf("goodput %+v", g)
	}
	near(t, "goodput", g.Value, 9.31e9, 1e3)
	near(t, "low", g.Low, 9.29e9, 1e3)
	near(t, "high", g.High, 9.33e9, 1e3)
	near(t, "interval", *g.CI95High-*g.CI95Low, 2*2.776*0.01581e9/math.Sqrt(5), 1e5)
	near(t, "goodput of run 2", *c.Runs[1].Goodput, 9.32e9, 1e3)
	near(t, "idle RTT", float64(*c.RTTIdle), 450e3, 0)
	near(t, "RTT under load", float64(*c.RTTLoaded), 800e3, 0)
	for _, cpu := range []*measure.CPUFigure{c.SenderCPU, c.ReceiverCPU} {
		near(t, "machine", cpu.Pct, 60, 1e-9)
		near(t, "cores", cpu.Cores, 1.16, 1e-9)
		near(t, "busiest core", cpu.MaxCorePct, 80, 1e-9)
		near(t, "percent per Gb/s", *cpu.PctPerGbps, 116/9.31, 1e-3)
		near(t, "worker", *cpu.WorkerCores, 0.7, 1e-9)
	}
	near(t, "memory", float64(*c.SenderMem.Used), 4<<30, 0)
	near(t, "worker's memory", float64(*c.SenderMem.Worker), 24<<20, 0)
	near(t, "retransmits", float64(*c.Retransmits), 5*2*2, 0)
	near(t, "efficiency", *c.RFC6349.EfficiencyPct, 98.04, 0.005)
	near(t, "buffer delay", *c.RFC6349.BufferDelayPct, 100, 1e-9)
	near(t, "its base", float64(*c.RFC6349.BaseRTT), 400e3, 0)
	near(t, "transfer time ratio", *c.RFC6349.TransferTimeRatio, 9.4148/9.31, 1e-4)
	near(t, "fairness", *c.Fairness, 1, 1e-9)
	near(t, "mean packet", *c.MeanPacket, 1514, 0.01)
	near(t, "ceiling", c.Ceiling.Bps, 9.4148e9, 1e5)
	near(t, "share", c.Ceiling.SharePct, 98.89, 0.01)
	if c.Ceiling.LinkFrom != "interface eth0 at esx2" || c.Ceiling.LinkLayer != unit.L1 || c.Ceiling.MTU != 1500 {
		t.Errorf("ceiling %+v", c.Ceiling)
	}
	near(t, "BDP", float64(*c.BDP), 1e6, 0) // 10 Gb/s for 0.8 ms
	near(t, "needed window", float64(*c.NeededWindow), 346*2896, 0)
	if r := c.Reconciled; r.Note != "equal" || r.DifferencePct != 0 || r.AckedBytes == nil {
		t.Errorf("reconciled %+v", r)
	}
	if !c.Steady.Steady {
		t.Errorf("steady %+v", c.Steady)
	}
}

func TestSingleRun(t *testing.T) {
	c := recorded(9.3)
	Summarise(c, nil, Link{})
	g := c.Goodput
	if g.Runs != 1 || g.Basis != "bins of a single run" || g.CI95Low == nil || g.Stable == nil || !*g.Stable {
		t.Fatalf("goodput %+v", g)
	}
	near(t, "least bin", g.Low, 9.3e9*0.999, 1e4)
	near(t, "greatest bin", g.High, 9.3e9*1.001, 1e4)
	if !slices.Equal(c.Warnings, []string{"single run: how far runs differ is not known"}) {
		t.Errorf("warnings %q", c.Warnings)
	}
	c = recorded(9.3)
	c.Baseline = true // short on purpose
	f := &c.Runs[0].Flows[0]
	f.Receiver.Bins = f.Receiver.Bins[:3]
	Summarise(c, nil, Link{})
	if len(c.Warnings) != 0 || c.Goodput.Stable != nil || c.Goodput.CI95Low != nil {
		t.Errorf("figure beside: warnings %q, goodput %+v", c.Warnings, c.Goodput)
	}
}

// TestSummariseAgain calls Summarise after each run, like a test with a stop rule.
func TestSummariseAgain(t *testing.T) {
	c := recorded(9.3)
	Summarise(c, nil, Link{RateBps: 10e9})
	all := recorded(9.3, 9.31, 9.3, 9.29, 9.3)
	c.Runs = all.Runs
	Summarise(c, nil, Link{})
	if len(c.Warnings) != 0 || c.Goodput.Runs != 5 || c.Ceiling != nil {
		t.Errorf("warnings %q, goodput %+v, ceiling %+v", c.Warnings, c.Goodput, c.Ceiling)
	}
}

// TestWarnings breaks one thing at a time and checks the warning.
func TestWarnings(t *testing.T) {
	receiver := func(c *measure.Cell) *measure.Evidence { return c.Runs[len(c.Runs)-1].Flows[0].Receiver }
	sender := func(c *measure.Cell) *measure.Evidence { return c.Runs[len(c.Runs)-1].Flows[0].Sender }
	five := []float64{9.3, 9.3, 9.31, 9.3, 9.3}
	tests := []struct {
		name string
		gbps []float64
		harm func(*measure.Cell)
		want string
	}{
		{"single run", five[:1], nil, "single run"},
		{"indicative", five[:3], nil, "3 runs: indicative, an acceptance needs 5"},
		{"above the ceiling", []float64{9.5, 9.5, 9.51, 9.5, 9.5}, nil, "101% of the ceiling of 9.41 Gb/s: an assumption about link rate, MTU or accounting is wrong"},
		{"short", five[:1], func(c *measure.Cell) { receiver(c).Bins = receiver(c).Bins[:4] }, "too short for a steady state: 4 whole seconds"},
		{"drift in a single run", five[:1], drifting(receiver), "not stable: the rate drifted by"},
		{"drift in the last run", five, drifting(receiver), "the last run was not steady: the rate drifted by"},
		{"runs that differ", []float64{9.3, 8, 9, 8.5, 9.4}, nil, "not stable: the 95% interval reached"},
		{"two groups", []float64{9.3, 4.1, 9.3, 4.2, 9.3}, nil, "the runs fall into two groups, 4.15 Gb/s and 9.30 Gb/s"},
		{"window cut at the sender", five, func(c *measure.Cell) {
			sender(c).Streams[1].Window = measure.Buffer{Asked: 800 << 10, Set: 800 << 10, Granted: 416 << 10, Usable: 208 << 10, Cut: true}
		}, "the kernel of the sender local cut the window: requested 800 KiB, granted 416 KiB, of which 208 KiB are usable"},
		{"window cut at the receiver", five, func(c *measure.Cell) { receiver(c).Streams[0].Window = measure.Buffer{Asked: 1 << 20, Cut: true} }, "the kernel of the receiver esx2 cut"},
		{"totals differ", five[:1], func(c *measure.Cell) { receiver(c).TotalBytes -= receiver(c).TotalBytes / 50 }, "the totals of sender and receiver differ by 2%"},
		{"rates differ", five[:1], func(c *measure.Cell) { sender(c).Bytes += sender(c).Bytes / 50 }, "the sender counted 9.49 Gb/s and the receiver 9.30 Gb/s"},
		{"failed run", five, func(c *measure.Cell) { c.Runs[1].Error = &measure.Error{Message: "connection refused"} }, "run 2 failed: connection refused"},
		{"partial run", five, func(c *measure.Cell) { c.Runs[4].Partial = true }, "run 5 ended early"},
		{"only partial", five[:1], func(c *measure.Cell) { c.Runs[0].Partial = true }, "no run is complete"},
		{"end that says why", five, func(c *measure.Cell) { c.Runs[3].Flows[0].Sender.Error = "broken pipe" }, "run 4, sender local: broken pipe"},
	}
	for _, tt := range tests {
		plain, c := recorded(tt.gbps...), recorded(tt.gbps...)
		Summarise(plain, twoHosts(), Link{})
		if tt.harm != nil {
			tt.harm(c)
		}
		Summarise(c, twoHosts(), Link{})
		says := func(w string) bool { return strings.Contains(w, tt.want) }
		if !slices.ContainsFunc(c.Warnings, says) {
			t.Errorf("%s: warnings %q, want %q", tt.name, c.Warnings, tt.want)
		}
		if tt.harm != nil && slices.ContainsFunc(plain.Warnings, says) {
			t.Errorf("%s: warned without a cause: %q", tt.name, plain.Warnings)
		}
	}
}

// drifting makes the bins of an end fall by 5% over the run.
func drifting(end func(*measure.Cell) *measure.Evidence) func(*measure.Cell) {
	return func(c *measure.Cell) {
		for i := range end(c).Bins {
			b := &end(c).Bins[i]
			b.Bytes -= b.Bytes * int64(i) * 5 / 900
		}
	}
}

func TestPartialRunsDoNotCount(t *testing.T) {
	c := recorded(9.3, 2, 9.31, 9.3)
	c.Runs[1].Partial = true
	c.Runs[3].Error = &measure.Error{Message: "lost"}
	Summarise(c, twoHosts(), Link{})
	if c.Goodput.Runs != 2 {
		t.Errorf("goodput %+v", c.Goodput)
	}
	near(t, "mean of the complete", c.Goodput.Value, 9.305e9, 1e3)
	near(t, "goodput of the partial run", *c.Runs[1].Goodput, 2e9, 1e3)
}

func TestReconcile(t *testing.T) {
	total := int64(11 * 9.3e9 / 8)
	tests := []struct {
		received int64
		acked    bool
		want     string
	}{
		{total, true, "equal"},
		{total - 812_743, false, "812 743 bytes were still in flight when the test ended"},
		{total - 812_743, true, "812 743 bytes had reached the receiver's kernel but were not read when the test ended"},
		{total + 5, true, "the receiver counted 5 bytes more than were sent: one of the two counts is wrong"},
	}
	for _, tt := range tests {
		c := recorded(9.3)
		f := &c.Runs[0].Flows[0]
		f.Receiver.TotalBytes = tt.received
		if !tt.acked {
			f.Sender.Streams[0].TCPEnd = nil
		}
		Summarise(c, nil, Link{})
		if r := c.Reconciled; r == nil || r.Note != tt.want || (r.AckedBytes != nil) != tt.acked {
			t.Errorf("%+v, want %q", r, tt.want)
		}
	}
}

// TestReconcileSums adds the runs; acknowledged bytes need all of them.
func TestReconcileSums(t *testing.T) {
	c := recorded(8, 9)
	Summarise(c, nil, Link{})
	if r := c.Reconciled; r.SentBytes != 11*17e9/8 || r.AckedBytes == nil || r.SenderBps != 8.5e9 {
		t.Errorf("%+v", r)
	}
	c.Runs[0].Flows[0].Sender.Streams[0].TCPEnd = nil
	Summarise(c, nil, Link{})
	if r := c.Reconciled; r.SentBytes != 11*17e9/8 || r.AckedBytes != nil {
		t.Errorf("one run without: %+v", r)
	}
}

// TestOwnFlow picks the cell's flow from a run of both directions.
func TestOwnFlow(t *testing.T) {
	c := recorded(9.3)
	back := recorded(4).Runs[0].Flows[0]
	back.From, back.To = "esx2", "local"
	c.Runs[0].Flows = []measure.Flow{back, c.Runs[0].Flows[0]}
	Summarise(c, nil, Link{})
	near(t, "goodput", c.Goodput.Value, 9.3e9, 1e3)
	c.To = "elsewhere"
	if Summarise(c, nil, Link{}); c.Goodput != nil {
		t.Errorf("the flow of others gave %+v", c.Goodput)
	}
}

// TestOneStream: a single stream has no fairness, and none is missing.
func TestOneStream(t *testing.T) {
	c := recorded(9.3)
	c.Streams = 1
	r := c.Runs[0].Flows[0].Receiver
	r.Streams = r.Streams[:1]
	Summarise(c, twoHosts(), Link{})
	if c.Fairness != nil || len(c.Missing) > 0 {
		t.Errorf("fairness %v, missing %v", c.Fairness, c.Missing)
	}
}

// TestIdleRTTOfDialler uses no round-trip time of the end that did not dial.
func TestIdleRTTOfDialler(t *testing.T) {
	c := recorded(9.3)
	c.Runs[0].Flows[0].Receiver.RTTIdle = &measure.RTT{Median: 9e9, Samples: 1}
	Summarise(c, nil, Link{})
	near(t, "idle RTT", float64(*c.RTTIdle), 450e3, 0)
}

// TestGroupsAreNotStable: with many runs even two groups have a narrow interval.
func TestGroupsAreNotStable(t *testing.T) {
	gbps := slices.Repeat([]float64{9.0, 9.55}, 10)
	c := recorded(gbps...)
	Summarise(c, nil, Link{})
	if ci, _ := MeanInterval(gbps); ci.HalfWidthPct() > DefaultPrecision || *c.Goodput.Stable {
		t.Errorf("precision %g%%, goodput %+v", ci.HalfWidthPct(), c.Goodput)
	}
}

// TestBeyondReason has counters from which no window can be computed.
func TestBeyondReason(t *testing.T) {
	c := recorded(9.3)
	r := c.Runs[0].Flows[0].Receiver
	r.Bytes, r.MeasuredNs = math.MaxInt64, 1
	Summarise(c, nil, Link{})
	if c.BDP != nil || !slices.ContainsFunc(c.Missing, func(m measure.NotChecked) bool { return m.Fact == "bdp_bytes" }) {
		t.Errorf("BDP %v, missing %v", c.BDP, c.Missing)
	}
}

// TestCeilingSources takes the link's description from different places.
func TestCeilingSources(t *testing.T) {
	edit := func(do func(*measure.Evidence)) func(*measure.Cell, map[string]*measure.Facts) {
		return func(c *measure.Cell, _ map[string]*measure.Facts) {
			do(c.Runs[0].Flows[0].Sender)
			do(c.Runs[0].Flows[0].Receiver)
		}
	}
	noInfo := func(e *measure.Evidence) {
		for i := range e.Streams {
			e.Streams[i].TCP, e.Streams[i].TCPStart, e.Streams[i].TCPEnd = nil, nil, nil
		}
	}
	tests := []struct {
		name    string
		change  func(*measure.Cell, map[string]*measure.Facts)
		link    Link
		want    float64 // 0: none
		because string  // from, or why there is none
	}{
		{"lowest interface", nil, Link{}, 9.4148e9, "interface eth0 at esx2"},
		{"stated", nil, Link{RateBps: 1e9}, 0.94148e9, "stated"},
		{"stated at layer 2", nil, Link{RateBps: 1e9, Layer: unit.L2}, 0.95641e9, "stated"},
		{"layer without a rate", nil, Link{Layer: unit.L2}, 9.4148e9, "interface eth0 at esx2"},
		{"tagged", nil, Link{VLANs: 1}, 9.3904e9, "interface eth0 at esx2"},
		{"MTU stated", nil, Link{RateBps: 1e9, MTU: 9000}, 0.99004e9, "stated"},
		{"nominal", func(_ *measure.Cell, f map[string]*measure.Facts) { f["esx2"].Interfaces[0].Nominal = new(true) }, Link{}, 25e9 * 0.94148, "interface eth0 at local"},
		{"both nominal", func(_ *measure.Cell, f map[string]*measure.Facts) {
			f["esx2"].Interfaces[0].Nominal, f["local"].Interfaces[0].Nominal = new(true), new(true)
		}, Link{}, 0, "the link rate is not known: interface eth0 at local has only a nominal speed; interface eth0 at esx2 has"},
		{"no speed", func(_ *measure.Cell, f map[string]*measure.Facts) {
			f["esx2"].Interfaces[0].SpeedBps, f["local"] = nil, nil
		}, Link{}, 0, "interface eth0 at local is not described; interface eth0 at esx2 reports no speed"},
		{"no routes", edit(func(e *measure.Evidence) { e.Route = nil }), Link{}, 0, "the route between the ends is not known"},
		{"loopback interface", edit(func(e *measure.Evidence) { e.Route.Interface = "lo" }), Link{}, 0, "the traffic stays within one host"},
		{"loopback address", edit(func(e *measure.Evidence) { e.PeerAddr = "[::1]:5202" }), Link{}, 0, "the traffic stays within one host"},
		{"IPv6", edit(func(e *measure.Evidence) { e.LocalAddr = "[2001:db8::1]:5202" }), Link{}, 9.2848e9, "interface eth0 at esx2"},
		{"IPv4 in IPv6", edit(func(e *measure.Evidence) { e.LocalAddr = "[::ffff:192.0.2.1]:5202" }), Link{}, 9.4148e9, "interface eth0 at esx2"},
		{"path MTU", edit(func(e *measure.Evidence) { e.Streams[1].TCPEnd.PMTU = new(uint32(1400)) }), Link{}, 10e9 * 1348 / 1438, "interface eth0 at esx2"},
		{"MTU of the route", edit(func(e *measure.Evidence) { noInfo(e); e.Route.MTU = 9000 }), Link{}, 9.9137e9, "interface eth0 at esx2"},
		{"MTU of the interface", edit(func(e *measure.Evidence) { noInfo(e); e.Route.MTU = 0 }), Link{}, 9.4928e9, "interface eth0 at esx2"},
		{"MTU of captured handshakes", func(c *measure.Cell, _ map[string]*measure.Facts) {
			edit(func(e *measure.Evidence) { noInfo(e); e.Route = nil })(c, nil)
			saw := func(syn, synack int) measure.Capture { // a box on the path lowers both to 536
				return measure.Capture{Conns: []measure.Connection{{
					SYN: &measure.Opening{SYN: measure.SYN{MSS: &syn}}, SYNACK: &measure.Opening{SYN: measure.SYN{MSS: &synack}}}}}
			}
			c.Runs[0].Flows[0].Captures = []measure.Capture{saw(8960, 536), saw(536, 1460)}
		}, Link{RateBps: 1e9}, 0.9492848e9, "stated"},
		{"no MTU", edit(func(e *measure.Evidence) { noInfo(e); e.Route = nil }), Link{RateBps: 1e9}, 0, "the MTU of the path is not known or too small (0 bytes)"},
	}
	for _, tt := range tests {
		c, facts := recorded(9.3), twoHosts()
		if tt.change != nil {
			tt.change(c, facts)
		}
		Summarise(c, facts, tt.link)
		if tt.want == 0 {
			says := func(m measure.NotChecked) bool { return m.Fact == "ceiling" && strings.Contains(m.Why, tt.because) }
			if c.Ceiling != nil || !slices.ContainsFunc(c.Missing, says) {
				t.Errorf("%s: ceiling %+v, missing %v", tt.name, c.Ceiling, c.Missing)
			}
			continue
		}
		if c.Ceiling == nil || c.Ceiling.LinkFrom != tt.because {
			t.Errorf("%s: ceiling %+v, missing %v", tt.name, c.Ceiling, c.Missing)
			continue
		}
		near(t, tt.name, c.Ceiling.Bps, tt.want, tt.want*1e-5)
	}
}

// TestMissing removes one source of evidence and checks the reasons.
func TestMissing(t *testing.T) {
	tests := []struct {
		name string
		harm func(*measure.Flow)
		want map[string]string
	}{
		{"receiver died", func(f *measure.Flow) { f.Receiver = nil }, map[string]string{
			"goodput_bps": "the evidence of the receiver did not arrive", "receiver_cpu": "the evidence of the receiver did not arrive",
			"reconciled": "both ends", "jain_fairness": "", "mean_packet_bytes": "", "rfc6349.transfer_time_ratio": "", "receiver_memory": "",
		}},
		{"sender died", func(f *measure.Flow) { f.Sender = nil }, map[string]string{
			"sender_cpu": "the evidence of the sender did not arrive", "rtt_idle_ns": "no round trips", "rtt_loaded_ns": "", "bdp_bytes": "",
			"retransmits_segments": "", "rfc6349.tcp_efficiency_pct": "", "rfc6349.buffer_delay_pct": "", "sender_memory": "", "reconciled": "",
		}},
		{"no TCP_INFO", func(f *measure.Flow) {
			for i := range f.Sender.Streams {
				f.Sender.Streams[i].TCP = nil
			}
			f.Sender.Missing = []measure.NotChecked{{Fact: "streams.tcp", Why: "not on this system"}}
		}, map[string]string{"retransmits_segments": "not on this system", "rfc6349.tcp_efficiency_pct": "not on this system"}},
		{"old kernel", func(f *measure.Flow) { f.Sender.Streams[1].TCP.BytesSent = nil }, map[string]string{"rfc6349.tcp_efficiency_pct": "does not report this counter"}},
		{"no host counters", func(f *measure.Flow) {
			f.Sender.Host, f.Sender.Worker, f.Sender.Missing = nil, nil, []measure.NotChecked{{Fact: "host", Why: "no /proc"}}
		}, map[string]string{"sender_cpu": "no /proc", "sender_memory": "no /proc"}},
		{"no baseline", func(f *measure.Flow) { f.Receiver.Base = nil }, map[string]string{"receiver_cpu.idle_baseline": "cores_used includes its other work"}},
		{"no segment size", func(f *measure.Flow) {
			for i := range f.Sender.Streams {
				f.Sender.Streams[i].MSS, f.Sender.Streams[i].TCP.SendMSS = 0, nil
			}
		}, map[string]string{"required_window_bytes": "segment size"}},
		{"no time", func(f *measure.Flow) { f.Receiver.MeasuredNs = 0 }, map[string]string{"goodput_bps": "measured no time", "reconciled": "", "rfc6349.transfer_time_ratio": ""}},
	}
	for _, tt := range tests {
		c := recorded(9.3)
		tt.harm(&c.Runs[0].Flows[0])
		Summarise(c, twoHosts(), Link{})
		found := map[string]string{}
		for _, m := range c.Missing {
			found[m.Fact] = m.Why
			if want, expected := tt.want[m.Fact]; !expected || !strings.Contains(m.Why, want) {
				t.Errorf("%s: %q is missing because %q, want %q", tt.name, m.Fact, m.Why, want)
			}
		}
		for fact := range tt.want {
			if found[fact] == "" {
				t.Errorf("%s: %q is not in %v", tt.name, fact, c.Missing)
			}
		}
	}
}

func TestMeanPacketSources(t *testing.T) {
	c := recorded(9.3)
	r := c.Runs[0].Flows[0].Receiver
	r.Host.NIC.RxBytes /= 2 // another interface carried the payload
	Summarise(c, nil, Link{})
	segments := float64(2 * (uint32(1_102_000)/1448 - uint32(1_000_000)/1448))
	near(t, "payload for each segment", *c.MeanPacket, float64(r.Bytes)/segments, 1e-6)
}

func TestOneHost(t *testing.T) {
	c := recorded(9.3)
	c.From, c.To, c.Runs[0].Flows[0].From, c.Runs[0].Flows[0].To = "local", "local", "local", "local"
	Summarise(c, nil, Link{})
	if !slices.ContainsFunc(c.Missing, func(m measure.NotChecked) bool { return m.Fact == "cpu_of_each_end" }) {
		t.Errorf("missing %v", c.Missing)
	}
}

// TestBufferDelayOfIdle uses the idle round-trip time if the kernel has no minimum.
func TestBufferDelayOfIdle(t *testing.T) {
	c := recorded(9.3)
	for _, x := range c.Runs[0].Flows[0].Sender.Streams {
		x.TCP.MinRTT = nil
	}
	Summarise(c, nil, Link{})
	near(t, "buffer delay", *c.RFC6349.BufferDelayPct, 100*(800.0-450)/450, 1e-9)
}

func TestVerdict(t *testing.T) {
	cell := func(share float64) measure.Cell {
		return measure.Cell{From: "a", To: "b", Goodput: &measure.Figure{}, Ceiling: &measure.Ceiling{Bps: 9.41e9, SharePct: share}}
	}
	beside, failed, free, partial := cell(40), cell(0), cell(0), cell(97)
	beside.Baseline = true
	failed.Error, failed.Ceiling = &measure.Error{}, nil
	free.Ceiling = nil
	partial.Runs = []measure.Run{{Partial: true}, {Error: &measure.Error{}}}
	held := cell(10)
	held.Spec.MaxRate = 1e9
	tests := []struct {
		name   string
		cells  []measure.Cell
		judged bool
		pass   bool
		reason string
	}{
		{"at the bar", []measure.Cell{cell(95)}, true, true, "a to b carries 95.00% of the ceiling of 9.41 Gb/s, 95% is required"},
		{"below the bar", []measure.Cell{cell(99), cell(94.99)}, true, false, "carries 94.99%"},
		{"a little above the ceiling", []measure.Cell{cell(100.4)}, true, true, "carries 100.40%"},
		{"above the ceiling", []measure.Cell{cell(100.6), cell(99)}, true, false, "an assumption about link rate, MTU or accounting is wrong"},
		{"beside does not count", []measure.Cell{cell(98), beside}, true, true, "98.00%"},
		{"one direction failed: an error, no verdict", []measure.Cell{cell(98), failed}, false, false, ""},
		{"only partial runs", []measure.Cell{partial}, true, false, "was not measured completely"},
		{"no known rate", []measure.Cell{free}, false, false, ""},
		{"all failed", []measure.Cell{failed}, false, false, ""},
		{"no cells", nil, false, false, ""},
		{"held down by an end point", []measure.Cell{held}, false, false, ""},
	}
	for _, tt := range tests {
		v := Verdict(tt.cells)
		if v == nil {
			if tt.judged {
				t.Errorf("%s: no verdict", tt.name)
			}
			continue
		}
		if !tt.judged || v.Pass != tt.pass || !strings.Contains(v.Reason, tt.reason) || v.Required != 95 {
			t.Errorf("%s: %+v", tt.name, v)
		}
	}
	labelled := cell(50)
	labelled.Label = "reverse"
	if v := Verdict([]measure.Cell{cell(60), labelled}); v.Share != 50 || !strings.HasPrefix(v.Reason, "a to b (reverse) carries") {
		t.Errorf("%+v", v)
	}
}

// A host that is busy without the test gets a warning, and no cost per Gb/s if its other work decreased during the
// test.
func TestOtherWork(t *testing.T) {
	c := recorded(1)
	c.Runs[0].Flows[0].Sender.Base = hostSpan(90, 90)
	Summarise(c, nil, Link{})
	if !slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.HasPrefix(w, "local: 90% busy without the test") }) {
		t.Errorf("warnings %q", c.Warnings)
	}
	if c.SenderCPU.PctPerGbps != nil || c.ReceiverCPU.PctPerGbps == nil {
		t.Errorf("cost of the sender %v, of the receiver %v", c.SenderCPU.PctPerGbps, c.ReceiverCPU.PctPerGbps)
	}
}

// The requested settings and the concurrent traffic are reported.
func TestAskedAndAtOnce(t *testing.T) {
	c := recorded(1, 1.1, 1.2)
	c.Spec.Congestion, c.AtOnce, c.AskedPct = "reno", 2, 50
	for i := range c.Runs {
		for k := range c.Runs[i].Flows[0].Sender.Streams {
			c.Runs[i].Flows[0].Sender.Streams[k].Congestion = "cubic"
		}
	}
	Summarise(c, nil, Link{})
	if !slices.ContainsFunc(c.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "reno was requested, but the sender's kernel used cubic")
	}) {
		t.Errorf("warnings %q", c.Warnings)
	}
	if c.SenderCPU.PctPerGbps != nil {
		t.Error("the CPU of both directions is laid to one")
	}
	if c.Goodput.Stable == nil || !*c.Goodput.Stable {
		t.Errorf("50%% were asked for: %+v", c.Goodput)
	}
}

// A host kept busy by others reports who uses its CPUs.
func TestOthersCPU(t *testing.T) {
	for name, tt := range map[string]struct {
		busy, idle   *measure.HostSpan
		cores, other float64
	}{
		"the test's":      {hostSpan(80, 40), hostSpan(4, 0), 1.16, 0.04},
		"nearly others'":  {hostSpan(100, 99), hostSpan(100, 99), 0.7, 1.29}, // the worker used 0.7 of it, by its own time
		"more before":     {hostSpan(90, 90), hostSpan(100, 100), 0.7, 1.1},
		"not seen before": {hostSpan(80, 40), nil, 1.2, -1},
	} {
		c := measure.Cell{Runs: []measure.Run{recordedRun(0, 9.4e9)}, From: "local", To: "esx2"}
		e := c.Runs[0].Flows[0].Sender
		e.Host, e.Base = tt.busy, tt.idle
		Summarise(&c, nil, Link{})
		f, other := c.SenderCPU, -1.0
		if f.OtherCores != nil {
			other = *f.OtherCores
		}
		if math.Abs(f.Cores-tt.cores) > 1e-9 || math.Abs(other-tt.other) > 1e-9 {
			t.Errorf("%s: %g cores, others %g", name, f.Cores, other)
		}
	}
}
