package report

import (
	"math"
	"slices"
	"time"

	"thru/internal/measure"
	"thru/internal/report/result"
)

// The documents of captures, made by hand with the structure of real ones.

// seenIn returns a count with packet numbers at a fixed step.
func seenIn(n, payload, first, step int64) measure.Count {
	c := measure.Count{N: n, Bytes: n * payload}
	for i := range min(n, measure.MostNumbers) {
		c.Packets = append(c.Packets, first+i*step)
	}
	return c
}

func opening(packet int64, mss int) *measure.Opening {
	return &measure.Opening{SYN: measure.SYN{MSS: &mss, WindowScale: new(7), HasScale: new(true), SACK: new(true), Timestamps: new(true), ECN: new(false)},
		Packet: packet, Window: 64240, TTL: 64, Options: []string{"mss", "sack-permitted", "timestamps", "nop", "window-scale"}}
}

// packetTimeline returns a connection of seconds at bps with an RTT of ms over some steps. From stall to
// resume no data passes.
func packetTimeline(bps, seconds, ms float64, window int64, steps, stall, resume int) *measure.Trace {
	t := &measure.Trace{StepNs: int64(seconds * 1e9 / float64(steps))}
	sent := 0.0
	for i := range steps {
		stalled := i >= stall && i < resume
		flight, rtt, open := int64(bps/8*ms/1e3*wave(i, 0.15)), int64(ms*1e6*wave(i, 0.06)), int64(float64(window)*wave(i, 0.01))
		if stalled {
			flight, rtt, open = 0, -1, 0
		} else {
			sent += bps / 8 * seconds / float64(steps)
		}
		t.Sent = append(t.Sent, int64(sent))
		t.Acked = append(t.Acked, int64(sent)-flight)
		t.Edge = append(t.Edge, int64(sent)-flight+open)
		t.Flight, t.Window, t.RTT = append(t.Flight, flight), append(t.Window, open), append(t.RTT, rtt)
	}
	return t
}

// packetConn returns one healthy connection of seconds at bps.
func packetConn(from, to string, index int, bps, seconds float64) measure.Connection {
	payload := int64(bps / 8 * seconds)
	segments := payload / 1448
	data := measure.Direction{Packets: segments / 12, Segments: segments, Payload: payload, New: payload, MaxPacket: 65160, Super: seenIn(segments/14, 60816, 8, 3),
		TTLs: []int{64}, DontFrag: segments / 12, WindowMin: new(int64(64256)), WindowMax: new(int64(64256)), BusyMs: int64(seconds * 990)}
	acks := measure.Direction{Packets: segments / 30, Segments: segments / 30, MaxPacket: 64, TTLs: []int{63}, DontFrag: segments / 30, WindowMin: new(int64(65160)), WindowMax: new(int64(6_291_456))}
	return measure.Connection{From: from, To: to, Index: index, FirstPacket: int64(index) + 1, StartNs: int64(index) * 150_000, SpanNs: int64(seconds * 1e9), FromOpened: new(true),
		SYN: opening(int64(index)+1, 1460), SYNACK: opening(int64(index)+5, 1460), OpenNs: new(int64(20_140_000)), OpenFarNs: new(int64(20_100_000)), MSS: 1448, MaxPacket: 1500, Data: data, Acks: acks,
		RTT:     &measure.Delay{Min: 20_080_000, P50: 20_410_000, P90: 22_900_000, P99: 26_100_000, Max: 31_700_000, Samples: 40_112},
		RTTBack: &measure.Delay{Min: 9_000, P50: 22_000, P90: 61_000, P99: 180_000, Max: 900_000, Samples: 40_100},
		Flight:  &measure.Spread{Mean: bps / 8 * 0.02, Min: 0, Max: bps / 8 * 0.024}, Window: &measure.Spread{Mean: 3_145_728, Min: 65160, Max: 6_291_456}, WindowFull: new(0.0),
		BurstBytes: &measure.Spread{Mean: 43440, Min: 1448, Max: 65160}, GoodputBps: &bps, EndedBy: "fin", Timeline: packetTimeline(bps, seconds, 20, 3_145_728, 60, 0, 0)}
}

// packetsAt returns a live capture of an end point.
func packetsAt(end, place string, conns ...measure.Connection) measure.Capture {
	c := measure.Capture{EndPoint: end, Interface: "eth0", Place: place, StartedAt: began(), SpanNs: 10_400_000_000, Snap: 100, MTU: 1500, Dropped: new(int64(0)), CPUNs: new(int64(41_000_000)), Known: len(conns), Conns: conns}
	for _, k := range conns {
		c.TCP += k.Data.Packets + k.Acks.Packets
	}
	c.Packets = c.TCP
	return c
}

// packetCell returns a cell with captures of its run.
func packetCell(from, to string, streams int, bps float64, findings []measure.Finding, captures []measure.Capture, x *measure.Crossing) measure.Cell {
	c := newCellFor(from, to, streams, bps)
	told(&c, findings...)
	c.Runs[0].Flows[0].Captures, c.Runs[0].Flows[0].Crossing = captures, x
	return c
}

// capturedTest is a healthy test of four streams that was captured at both ends.
func capturedTest() *measure.Document {
	d := newDocument("test", "b", "-P", "4", "--capture")
	d.EndPoints[1].Name = "b"
	var at [2][]measure.Connection
	x := &measure.Crossing{Left: 0, Right: 1, OffsetNs: -3_400_000, BoundNs: 21_000}
	for i, port := range []string{"40112", "40114", "40116", "40118"} {
		c := packetConn("192.0.2.1:"+port, "192.0.2.2:5202", i, 235e6-1e6*float64(i), 10)
		r := c
		r.Timeline, r.Data.Late, r.Data.LateMost = nil, seenIn(int64(i), 1448, 812, 40), i
		at[0], at[1] = append(at[0], c), append(at[1], r)
		x.Conns = append(x.Conns, measure.CrossedConn{LeftIndex: i, RightIndex: i, Data: measure.Crossed{Sent: c.Data.New, Arrived: c.Data.New, SuperSent: c.Data.Super,
			SingleSent: measure.Count{N: 9014}, FullSent: measure.Count{N: 8000}, MaxArrived: 1500, Delay: &measure.Delay{Min: 10_020_000, P50: 10_110_000, P90: 10_800_000, P99: 11e6, Max: 14_100_000, Samples: 40_000}},
			Changed: []measure.Change{{What: "data ttl", Left: "64", Arrived: "62", Packets: []int64{5, 5}}}})
	}
	d.Cells = []measure.Cell{packetCell("local", "b", 4, 934e6, []measure.Finding{nothingFound()}, []measure.Capture{packetsAt("local", measure.AtSender, at[0]...), packetsAt("b", measure.AtReceiver, at[1]...)}, x)}
	return d
}

// brokenTSOTest is two files of one flow without any super-packet that arrives.
func brokenTSOTest() *measure.Document {
	c := packetConn("192.0.2.1:40112", "192.0.2.2:5202", 0, 61e6, 6)
	c.Data.Super = seenIn(411, 2896, 45, 27)
	c.Data.Again, c.Data.Timeout, c.Data.Fast = seenIn(822, 1448, 47, 27), seenIn(9, 1448, 51, 310), seenIn(782, 1448, 47, 27)
	c.Data.Tail, c.Data.Spurious, c.Data.Wake = seenIn(12, 1448, 977, 31), seenIn(3, 1448, 2044, 9), seenIn(19, 1448, 53, 310)
	c.Timeline = packetTimeline(61e6, 6, 20, 1_500_000, 120, 50, 58)
	for i := range 60 {
		at := 2 * i
		c.Timeline.Again = append(c.Timeline.Again, measure.PacketMark{AtNs: int64(at) * c.Timeline.StepNs, Seq: c.Timeline.Acked[at], Packet: int64(47 + 27*i)})
	}
	r := c
	r.Timeline, r.Data.Super, r.Data.Again, r.Data.Timeout, r.Data.Fast, r.Data.Gaps = nil, measure.Count{}, measure.Count{}, measure.Count{}, measure.Count{}, seenIn(411, 1448, 44, 25)
	r.Data.MaxPacket, r.Data.Late, r.Data.LateMost = 1500, seenIn(2, 1448, 3120, 44), 4
	left, right := packetsAt("", measure.AtSender, c), packetsAt("", measure.AtReceiver, r)
	for i, x := range []*measure.Capture{&left, &right} {
		x.File, x.PlacedBy, x.Interface, x.CPUNs, x.Dropped, x.MTU, x.Snap = []string{"/tmp/sender.pcapng", "receiver.pcap"}[i], []string{"its TTL of 64 and data before it is acknowledged", "its acknowledgements follow at once"}[i], "", nil, nil, 0, 96
		x.Packets, x.Known = x.Packets+19, 3
		x.Others = []measure.Tally{{What: "ARP", Packets: 15}, {What: "UDP", Packets: 4}}
	}
	right.Damage = "the file ends in the middle of packet 31 202"
	x := &measure.Crossing{Left: 0, Right: 1, OffsetNs: 3_400_000, BoundNs: 21_000, Conns: []measure.CrossedConn{{
		Data: measure.Crossed{Sent: 46_900_000, Arrived: 45_710_000, Lost: seenIn(411, 2896, 45, 27), SuperSent: seenIn(411, 2896, 45, 27), SuperLost: seenIn(411, 2896, 45, 27),
			SingleSent: measure.Count{N: 31_560}, SingleLost: measure.Count{}, FullSent: measure.Count{N: 31_000}, SmallSent: measure.Count{N: 210}, MaxArrived: 1500, Late: seenIn(2, 1448, 3120, 44),
			Delay: &measure.Delay{Min: 10_020_000, P50: 10_110_000, P90: 10_800_000, P99: 11e6, Max: 14_100_000, Samples: 31_000}},
		Changed: []measure.Change{{What: "syn mss", Left: "1460", Arrived: "1400", Packets: []int64{1, 1}}, {What: "data ttl", Left: "64", Arrived: "62", Packets: []int64{4, 4}}}}},
		Missing: []measure.NotChecked{{Fact: "packets after the first 31 202", Why: "the file receiver.pcap is cut there"}}}
	found := measure.Finding{Cause: "broken-tso", Where: measure.Where{Place: measure.AtSender, EndPoint: "192.0.2.1", From: "192.0.2.1", To: "192.0.2.2"}, Confidence: measure.Certain,
		Summary: "no packet larger than a segment leaves the sender's interface whole: all 411 were lost, and all were retransmitted as single segments",
		Evidence: []measure.Proof{{Counter: "super_packets_lost of super_packets", Value: 100, Unit: "pct", Threshold: new(50.0), Above: true, Packets: x.Conns[0].Data.SuperLost.Packets, Capture: "/tmp/sender.pcapng"},
			{Counter: "single_segments_lost of single_segments", Value: 0, Unit: "pct", Threshold: new(1.0), Note: "0 of 31 560"}, {Counter: "sent_again_timeout", Value: 9, Packets: []int64{51}, Capture: "/tmp/sender.pcapng"}},
		Effect: &measure.Effect{Text: "each costs a round trip or a timeout"}, Fix: &measure.Fix{Advice: "switch segmentation offload off at the sender, on Linux:", Commands: []string{"ethtool -K eth0 tso off gso off"}}}
	return explained([]string{"/tmp/sender.pcapng", "receiver.pcap"}, packetCell("192.0.2.1", "192.0.2.2", 1, 61e6, []measure.Finding{found}, []measure.Capture{left, right}, x))
}

// zeroWindowTest is one file from a point between the ends, begun in mid-flow, of a receiver that stops
// reading.
func zeroWindowTest() *measure.Document {
	c := packetConn("192.0.2.1:40112", "192.0.2.2:8080", 2, 48e6, 8)
	c.FromOpened, c.SYN, c.SYNACK, c.OpenNs, c.OpenFarNs, c.EndedBy, c.WindowFull = nil, nil, nil, nil, nil, "rst from 192.0.2.2:8080", new(71.5)
	c.Unscaled = true
	c.Acks.Zero, c.Acks.ZeroNs, c.Data.Probes = seenIn(3, 0, 4012, 900), 2_400_000_000, seenIn(9, 0, 4013, 2)
	c.Timeline = packetTimeline(48e6, 8, 20, 160_000, 90, 40, 67)
	c.Timeline.Late = []measure.PacketMark{{AtNs: 1e9, Seq: 5_800_000, Packet: 912}, {AtNs: 2_200_000_000, Seq: 13_000_000, Packet: 2120}}
	c.Data.Late, c.Data.LateMost = seenIn(2, 1448, 912, 1208), 3
	file := packetsAt("", "", c)
	file.File, file.Interface, file.CPUNs, file.Dropped, file.Snap, file.MTU, file.Full = "mirror.pcap", "", nil, new(int64(12)), 0, 0, true
	file.Twice, file.BackTime = seenIn(40_112, 1448, 2, 2), seenIn(1, 0, 77, 1)
	file.TooBig = []measure.TooBig{{Packet: 14, From: "198.51.100.9", MTU: 1400, Of: "192.0.2.1:40112", To: "192.0.2.2:8080", Count: 3}}
	file.Missing = []measure.NotChecked{{Fact: "options of the handshake", Why: "the capture begins in mid-flow"}}
	found := measure.Finding{Cause: "slow-reader", Where: measure.Where{Place: measure.AtReceiver, EndPoint: "192.0.2.2"}, Confidence: measure.Certain, Summary: "the receiver closed its window 3 times, for 2.4 s of 8 s",
		Evidence: []measure.Proof{{Counter: "zero_windows", Value: 3, Threshold: new(0.0), Above: true, SpanNs: 8e9, Packets: c.Acks.Zero.Packets, Capture: "mirror.pcap"}}}
	return explained([]string{"mirror.pcap"}, packetCell("192.0.2.1", "192.0.2.2", 1, 48e6, []measure.Finding{found}, []measure.Capture{file}, nil))
}

// explained returns a document of capture files.
func explained(files []string, c measure.Cell) *measure.Document {
	d := newDocument("explain", files...)
	d.EndPoints = []measure.EndPoint{{Name: c.From}, {Name: c.To}}
	c.SenderCPU, c.ReceiverCPU, c.SenderMem, c.ReceiverMem, c.Reconciled, c.RFC6349 = nil, nil, nil, nil, nil, nil
	for _, e := range result.Evidences(&c) {
		e.PerSec, e.Route = nil, nil
	}
	d.Cells, d.Findings = []measure.Cell{c}, c.Findings
	d.Missing = []measure.NotChecked{{Fact: "cpu_of_each_end", Why: "a capture does not show it", Code: measure.NotInCapture}}
	return d
}

// hostileCaptures returns forged captures.
func hostileCaptures() []*measure.Document {
	const evil = "\x1b[31m<script>alert(1)</script>\r\n\u202e\"'&\x00\u0085"
	full := brokenTSOTest()
	f := &full.Cells[0].Runs[0].Flows[0]
	for i := range f.Captures {
		c := &f.Captures[i]
		c.File, c.Place, c.PlacedBy, c.Damage, c.SpanNs, c.Packets, c.Snap, c.Known = evil, evil, evil, evil, math.MinInt64, math.MinInt64, math.MaxInt, -1
		c.Dropped, c.CPUNs = new(int64(-1)), new(int64(math.MaxInt64))
		c.Twice, c.BackTime = measure.Count{N: math.MaxInt64, Packets: make([]int64, 5000)}, measure.Count{N: 1, Packets: []int64{math.MinInt64}}
		for range 500 {
			c.Others = append(c.Others, measure.Tally{What: evil, Packets: -1})
			c.TooBig = append(c.TooBig, measure.TooBig{From: evil, MTU: math.MaxInt, Of: evil, To: evil, Count: math.MinInt64})
			c.Missing = append(c.Missing, measure.NotChecked{Fact: evil, Why: evil})
		}
		for len(c.Conns) < measure.MaxStreams {
			c.Conns = append(c.Conns, hostileConn(evil))
		}
		slices.Reverse(c.Conns)
	}
	f.Crossing.OffsetNs, f.Crossing.BoundNs = math.MinInt64, math.MinInt64
	for range 500 {
		f.Crossing.Conns[0].Changed = append(f.Crossing.Conns[0].Changed, measure.Change{What: evil, Left: evil, Arrived: evil, Packets: []int64{-1, math.MaxInt64}})
		f.Crossing.Conns = append(f.Crossing.Conns, measure.CrossedConn{LeftIndex: -1, RightIndex: math.MaxInt, Data: measure.Crossed{Sent: math.MaxInt64, Lost: measure.Count{N: math.MaxInt64}, MaxArrived: -1, Delay: &measure.Delay{P50: math.MinInt64, Samples: 1}}})
	}
	f.Captures = append(f.Captures, make([]measure.Capture, 50)...)
	empty := zeroWindowTest()
	e := &empty.Cells[0].Runs[0].Flows[0]
	e.Captures, e.Crossing = make([]measure.Capture, 2), &measure.Crossing{Left: 7, Right: -1, Conns: make([]measure.CrossedConn, 3)}
	alone := zeroWindowTest()
	alone.Cells[0].Runs[0].Flows[0].Crossing = &measure.Crossing{Left: 0, Right: 0, Conns: make([]measure.CrossedConn, 1)}
	return []*measure.Document{full, empty, alone}
}

// hostileConn returns a connection with extreme values.
func hostileConn(evil string) measure.Connection {
	c := packetConn(evil+":999999", evil, math.MinInt, 1, 1)
	c.Data.Again, c.Data.Late, c.Data.LateMost, c.Data.Segments = measure.Count{N: math.MaxInt64, Bytes: math.MinInt64, Packets: make([]int64, 9000)}, measure.Count{N: 5}, math.MaxInt, math.MinInt64
	c.RTT, c.OpenNs, c.EndedBy = &measure.Delay{P50: math.MinInt64, Max: math.MaxInt64, Samples: 1}, new(int64(math.MinInt64)), "rst"+evil
	c.Flight, c.Window, c.WindowFull, c.GoodputBps = &measure.Spread{Mean: 1e308, Max: -1e308}, &measure.Spread{Mean: -1e308}, new(1e308), new(-1e308)
	c.SYN.MSS, c.SYN.Options, c.SYN.Again.N, c.Acks.ZeroNs = new(math.MinInt), []string{evil}, math.MaxInt64, math.MaxInt64
	c.Timeline = &measure.Trace{StepNs: math.MaxInt64}
	for i := range 5000 {
		v := []int64{-1, math.MaxInt64, math.MinInt64, 0, int64(i)}[i%5]
		c.Timeline.Sent, c.Timeline.Edge, c.Timeline.Flight, c.Timeline.RTT = append(c.Timeline.Sent, int64(i)), append(c.Timeline.Edge, v), append(c.Timeline.Flight, v), append(c.Timeline.RTT, v)
		c.Timeline.Again = append(c.Timeline.Again, measure.PacketMark{AtNs: v, Seq: v, Packet: v})
		c.Timeline.Late = append(c.Timeline.Late, measure.PacketMark{AtNs: int64(i) * int64(time.Hour), Seq: int64(i), Packet: math.MinInt64})
	}
	return c
}
