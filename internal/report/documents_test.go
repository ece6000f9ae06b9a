package report

import (
	"maps"
	"math"
	"time"

	"thru/internal/measure"
	"thru/internal/report/result"
)

// The documents of the golden tests, made by hand with the structure and size of real ones.

// began is the start time of every document of the tests.
func began() time.Time { return time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC) }

// wave varies values of a series without a random source.
func wave(i int, depth float64) float64 { return 1 + depth*math.Sin(float64(i)*1.7+0.4) }

func cpuFigure(pct, cores, most float64) *measure.CPUFigure {
	return &measure.CPUFigure{Pct: pct, Cores: cores, MaxCore: 1, MaxCorePct: most, PctPerGbps: new(cores * 100 / 48.9), WorkerCores: new(cores * 0.96)}
}

func linuxFacts(host string, cores int) *measure.Facts {
	return &measure.Facts{
		Hostname: new(host), OS: new("linux"), Distro: new("Debian GNU/Linux 13 (trixie)"), Kernel: new("6.12.48"), Arch: new("amd64"),
		CPUModel: new("AMD EPYC 7543 32-Core Processor"), Cores: new(cores), Memory: new(int64(16 << 30)), Hypervisor: new("kvm"),
		Congestion: new("cubic"), CongAvail: []string{"reno", "cubic"},
		Sysctls: map[string]string{"net.core.rmem_max": "212992", "net.core.wmem_max": "212992", "net.ipv4.tcp_rmem": "4096 131072 6291456"},
		Interfaces: []measure.Interface{
			{Name: "lo", MTU: new(65536), Up: new(true)},
			{Name: "eth0", MTU: new(1500), Up: new(true), Driver: new("virtio_net"), SpeedBps: new(int64(10e9)), Nominal: new(true), Queues: new(4)},
		},
		NotChecked: []measure.NotChecked{{Fact: "firmware of eth0", Why: "the driver does not report it"}},
	}
}

// end returns the evidence of one end: seconds of about bps over a number of streams.
func end(name string, sends bool, bps float64, streams, seconds int) *measure.Evidence {
	e := &measure.Evidence{EndPoint: name, Sends: sends, Dialled: sends, IO: measure.IOCopy, LocalAddr: "192.0.2.1:40112", PeerAddr: "192.0.2.2:5202",
		Route: &measure.Route{Interface: "eth0", Source: "192.0.2.1", MTU: 1500}, RampNs: 1e9, MeasuredNs: int64(seconds) * 1e9}
	retrans := make([]uint32, streams)
	for i := range seconds {
		b := measure.StreamBin{At: int64(i) * 1e9, Span: 1e9, Bytes: int64(bps / 8 * wave(i, 0.015))}
		for s := range streams {
			b.Streams = append(b.Streams, b.Bytes/int64(streams))
			if i == 6 {
				retrans[s] += uint32(3 + s)
			}
			b.TCP = append(b.TCP, measure.TCPInfo{RTT: new(1000 * int64(180*wave(i+s, 0.2))), Retrans: new(retrans[s])})
		}
		e.Bytes += b.Bytes
		e.Bins = append(e.Bins, b)
		e.PerSec = append(e.PerSec, measure.HostSpan{At: b.At, Span: 1e9, CPUs: []measure.CPU{
			{Core: 0, User: 1, System: 20 * wave(i, 0.1), SoftIRQ: 8, Idle: 71},
			{Core: 1, User: 2, System: 80 * wave(i, 0.04), SoftIRQ: 14, Idle: 4}}})
	}
	e.TotalBytes = e.Bytes + e.Bytes/10
	for s := range streams {
		e.Streams = append(e.Streams, measure.Stream{Index: s, Local: "192.0.2.1:40112", Peer: "192.0.2.2:5202", Bytes: e.Bytes / int64(streams),
			TotalBytes: e.TotalBytes / int64(streams), Calls: e.Bytes / int64(streams) / measure.DefaultLength, Length: measure.DefaultLength, Congestion: "cubic", MSS: 1448,
			Window: measure.Buffer{Granted: 2626560, Usable: 1313280}, BlockedNs: new(int64(12e8)), CPU: new(s % 2),
			TCPStart: &measure.TCPInfo{Retrans: new(uint32(0))}, TCP: &measure.TCPInfo{RTT: new(int64(190_000)), Retrans: new(retrans[s]), Cwnd: new(uint32(412))}})
	}
	return e
}

func single(c *measure.Cell, bps float64, seconds int) {
	c.Goodput = &measure.Figure{Value: bps, Low: bps * 0.985, High: bps * 1.015, CI95Low: new(bps * 0.992), CI95High: new(bps * 1.008), Runs: 1, Basis: "bins of a single run", Stable: new(true)}
	c.Runs = []measure.Run{{StartedAt: began(), Goodput: new(bps), Flows: []measure.Flow{
		{From: c.From, To: c.To, Sender: end(c.From, true, bps*1.0004, c.Streams, seconds), Receiver: end(c.To, false, bps, c.Streams, seconds)}}}}
	if c.From != c.To {
		return
	}
	for _, e := range result.Evidences(c) {
		e.LocalAddr, e.PeerAddr, e.Route = "127.0.0.1:40112", "127.0.0.1:5202", &measure.Route{Interface: "lo", Source: "127.0.0.1", MTU: 65536}
	}
}

func newCellFor(from, to string, streams int, bps float64) measure.Cell {
	c := measure.Cell{From: from, To: to, Protocol: measure.TCP, Streams: streams, Length: measure.Pair{Send: measure.DefaultLength, Recv: measure.DefaultLength}, IO: measure.IOCopy,
		Spec:    measure.Spec{From: from, To: to, DialFrom: true, Engine: "native", Protocol: measure.TCP, Streams: streams, Duration: 10e9, Interval: 1e9},
		RTTIdle: new(int64(23_000)), RTTLoaded: new(int64(184_000)), SenderCPU: cpuFigure(51.3, 2.02, 98.1), ReceiverCPU: cpuFigure(44.6, 1.77, 97.2),
		SenderMem:   &measure.MemFigure{Used: new(int64(3 << 30)), Total: new(int64(32 << 30)), Worker: new(int64(14 << 20))},
		ReceiverMem: &measure.MemFigure{Used: new(int64(9 << 29)), Total: new(int64(32 << 30)), Worker: new(int64(15 << 20))}, Retransmits: new(int64(18)),
		RFC6349:  &measure.RFC6349{TransferTimeRatio: new(1.02), EfficiencyPct: new(99.98), BufferDelayPct: new(700.0), BaseRTT: new(int64(50e3))},
		Fairness: new(0.998), MeanPacket: new(48213.0), BDP: new(int64(1_124_700)), NeededWindow: new(int64(1_125_096)),
		Reconciled: &measure.Reconciled{SenderBps: bps * 1.0004, ReceiverBps: bps, SentBytes: 67e9, AckedBytes: new(int64(67e9)), ReceivedBytes: 67e9, Note: "they agree"},
		Steady:     &measure.Steady{Checked: true, SlopePct: 0.4, HalvesPct: 0.7, Steady: true}}
	if from == to {
		c.ReceiverCPU = cpuFigure(51.3, 2.02, 98.1)
	}
	single(&c, bps, 10)
	return c
}

func newDocument(command string, arguments ...string) *measure.Document {
	return &measure.Document{Schema: measure.Schema, Thru: "0.1.0", Command: command, Arguments: append([]string{command}, arguments...), StartedAt: began(), ElapsedNs: 23_400_000_000,
		EndPoints: []measure.EndPoint{{Name: "local", Thru: "0.1.0", Facts: linuxFacts("alpha", 4)}, {Name: "peer", Addr: "192.0.2.2:5200", Thru: "0.1.0", Facts: linuxFacts("beta", 8)}},
		Missing:   []measure.NotChecked{{Fact: "queue counters of eth0", Why: "needs CAP_NET_ADMIN"}, {Fact: "ring sizes of eth0", Why: "needs CAP_NET_ADMIN"}}}
}

// localhostTest is `thru test` on one machine.
func localhostTest() *measure.Document {
	d := newDocument("test", "-P", "4")
	d.EndPoints = d.EndPoints[:1]
	c := newCellFor("local", "local", 4, 48.9e9)
	c.Scaling = new(1.36)
	beside := newCellFor("local", "local", 1, 36.1e9)
	beside.Baseline, beside.Group, beside.Fairness = true, 1, nil
	d.Cells = []measure.Cell{c, beside}
	d.Warnings = []string{"all of CPU 1 was used: the figure is this machine's, not the network's"}
	return d
}

// bidirTest is traffic in both directions at once, with a window that the kernel cut.
func bidirTest() *measure.Document {
	d := newDocument("test", "peer", "--bidir", "-w", "800K", "--title", "a 'b' c")
	for _, direction := range [][2]string{{"local", "peer"}, {"peer", "local"}} {
		bps := map[string]float64{"local": 9.41e9, "peer": 8.87e9}[direction[0]]
		c := newCellFor(direction[0], direction[1], 4, bps)
		c.Window = measure.Pair{Send: 800 << 10, Recv: 800 << 10}
		for _, e := range result.Evidences(&c) {
			for i := range e.Streams {
				e.Streams[i].Window = measure.Buffer{Asked: 800 << 10, Set: 800 << 10, Granted: 425984, Usable: 212992, Cut: true}
			}
		}
		c.Warnings = []string{"the window was cut: raise net.core.rmem_max and wmem_max to 819200 at least"}
		d.Cells = append(d.Cells, c)
	}
	d.Cells[1].Steady = &measure.Steady{Checked: true, SlopePct: 4.1, HalvesPct: 6.2, Levels: []float64{9.4e9, 8.3e9}}
	d.Cells[1].Goodput.Stable = new(false)
	d.Cells[1].Missing = []measure.NotChecked{{Fact: "softnet of peer", Why: "peer runs an older thru"}}
	return d
}

// verdictTest is a path of a known rate, counted in frames without preamble.
func verdictTest() *measure.Document {
	d := newDocument("test", "peer", "--link-rate", "1G/l2")
	for i, direction := range [][2]string{{"local", "peer"}, {"peer", "local"}} {
		bps := 956e6 - 5e6*float64(i)
		c := newCellFor(direction[0], direction[1], 2, bps)
		c.Group = i
		c.Ceiling = &measure.Ceiling{Bps: 956.4e6, LinkBps: 1e9, LinkFrom: "stated", LinkLayer: "l2", MTU: 1500, SharePct: 100 * bps / 956.4e6}
		d.Cells = append(d.Cells, c)
	}
	d.Verdict = &measure.Verdict{Pass: true, Required: 95, Share: 99.44, Reason: "at least 95% of the ceiling, in both directions"}
	return d
}

// partialTest lost its peer after six seconds.
func partialTest() *measure.Document {
	d := newDocument("test", "peer", "-t", "30")
	c := newCellFor("local", "peer", 4, 31.2e9)
	c.Steady = &measure.Steady{Why: "under 5 bins"}
	c.Goodput.CI95Low, c.Goodput.CI95High, c.Goodput.Stable = nil, nil, nil
	c.ReceiverCPU, c.Reconciled, c.Retransmits, c.RTTLoaded, c.RFC6349 = nil, nil, nil, nil, nil
	c.Runs[0].Partial = true
	c.Runs[0].Flows[0].Receiver = nil
	f := c.Runs[0].Flows[0].Sender
	f.Bins, f.PerSec, f.MeasuredNs = f.Bins[:4], f.PerSec[:4], 4e9
	c.Error = &measure.Error{Message: "control: peer was lost after 4 s", ExitCode: 1}
	d.Cells = []measure.Cell{c, {From: "peer", To: "local", Protocol: measure.TCP, Streams: 4, Group: 1, Error: &measure.Error{Message: "not run", ExitCode: 1}}}
	d.Error = &measure.Error{Message: "control: peer was lost after 4 s: bus: no answer", Hint: "is thru serve still running at 192.0.2.2?", ExitCode: 1}
	d.Missing = append(d.Missing, measure.NotChecked{Fact: "figures of the receiver", Why: "peer was lost"})
	return d
}

// ladderTest is eight cells of three runs each over localhost.
func ladderTest() *measure.Document {
	d := newDocument("ladder", "--repeat", "3")
	d.EndPoints = d.EndPoints[:1]
	rates := map[int64][]float64{0: {38.2e9, 46.9e9, 52.1e9, 51.6e9}, 800 << 10: {33.1e9, 41.5e9, 44.8e9, 43.0e9}}
	for _, window := range []int64{0, 800 << 10} {
		for i, streams := range []int{1, 2, 4, 8} {
			bps := rates[window][i]
			c := newCellFor("local", "local", streams, bps)
			c.Group, c.Window = len(d.Cells), measure.Pair{Send: window, Recv: window}
			single(&c, bps, 2)
			c.Goodput = &measure.Figure{Value: bps, Low: bps * 0.97, High: bps * 1.02, Runs: 3, Basis: "runs", Stable: new(true)}
			c.SenderCPU.Pct, c.ReceiverCPU.Pct = 52+float64(11*i), 52+float64(11*i)
			for _, e := range result.Evidences(&c) {
				for s := range e.Streams {
					if window > 0 {
						e.Streams[s].Window = measure.Buffer{Asked: window, Set: window, Granted: 425984, Usable: 212992, Cut: true}
					}
				}
			}
			if window > 0 {
				warn(&c, measure.Warning{Code: measure.WindowCut, Text: "the kernel of the sender local cut the window", Means: "asked 800 KiB, granted 416 KiB, of which 208 KiB are usable"})
			}
			d.Cells = append(d.Cells, c)
		}
	}
	d.Advice = []string{"use 4 streams: 8 are not faster (their ranges overlap), and cost 11% more CPU"}
	d.Cells[3].Warnings = []string{"8 streams on 4 CPUs: the streams wait for each other"}
	return d
}

// failedTest failed before it began.
func failedTest() *measure.Document {
	d := newDocument("test", "peer")
	d.EndPoints, d.Missing, d.ElapsedNs = nil, nil, 5_000_000_000
	d.Error = &measure.Error{Message: "bus: dialling 192.0.2.2:5200: connection refused", Hint: "start thru serve on that host", ExitCode: 1}
	return d
}

// goldenDocuments returns all of them by name.
func goldenDocuments() map[string]*measure.Document {
	all := map[string]*measure.Document{"localhost": localhostTest(), "bidir": bidirTest(), "verdict": verdictTest(),
		"partial": partialTest(), "ladder": ladderTest(), "failed": failedTest(),
		"udp-loss": udpLossTest(), "udp": udpTest(), "rr": rrTest(), "crr": crrTest(), "under-load": underLoadTest(),
		"search": searchTest(), "lean": leanTest(), "disk": diskDocument(), "transfer": transferDocument(), "check": checked(), "gated": gated(),
		"receiver-cpu": receiverCPUTest(), "receive-window": receiveWindowTest(), "link-rate": healthyTest(), "none": noneTest(),
		"apart": apartTest(), "mtu-black-hole": blackHoleTest(), "explain": explainTest(),
		"captured": capturedTest(), "broken-tso": brokenTSOTest(), "zero-window": zeroWindowTest()}
	maps.Copy(all, fleetDocuments())
	maps.Copy(all, tuneDocuments())
	maps.Copy(all, inventoryDocuments())
	all["placed"] = placedTest()
	return all
}
