package report

import (
	"strings"
	"testing"

	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/report/series"
	"thru/internal/stat"
)

// The documents of UDP, of requests, and of the lean path. Their evidence is made by hand; stat computes the
// figures.

// hosted gives an end the counters of its host.
func hosted(e *measure.Evidence, busiest float64) {
	span := func(a, b float64) *measure.HostSpan {
		return &measure.HostSpan{Span: e.MeasuredNs,
			CPUs:   []measure.CPU{{Core: 0, User: a / 4, System: a / 2, SoftIRQ: a / 4, Idle: 100 - a}, {Core: 1, System: b, Idle: 100 - b}},
			Memory: &measure.Memory{Total: 16 << 30, Available: 13 << 30}}
	}
	e.Host, e.Base = span(22, busiest), span(1, 0.5)
	e.Host.Proto, e.Host.Softnet, e.Host.Qdisc = map[string]uint64{}, []measure.Softnet{{Processed: 900_000}, {Core: 1, Processed: 30}}, &measure.Qdisc{Kind: "fq_codel"}
	e.Host.NIC = &measure.NICSpan{Name: "eth0", RxBytes: uint64(e.Bytes) * 1514 / 1472, RxPackets: uint64(e.Bytes) / 1472, RxRing: new(uint64(0))}
	if e.Route.Interface == "lo" {
		e.Host.NIC.RxPackets, e.Host.NIC.RxRing = uint64(e.Bytes)/48213, nil
	}
	e.Worker = &measure.Process{UserNs: 4e8, SystemNs: 7e9, ResidentB: 18 << 20}
}

// udpCell is a UDP cell in which a share of the sent datagrams finds no room in the receiver's socket.
func udpCell(from, to string, streams int, bps, lostShare float64) measure.Cell {
	c := newCellFor(from, to, streams, bps)
	c.Protocol, c.Spec.Protocol, c.IO = measure.UDP, measure.UDP, measure.IOGSO
	c.Length, c.Spec.Length, c.AtOnce = measure.Pair{Send: 1472}, measure.Pair{Send: 1472}, 1
	f := &c.Runs[0].Flows[0]
	f.Sender, f.Receiver = end(from, true, bps, streams, 10), end(to, false, bps*(1-lostShare), streams, 10)
	f.Sender.RTTIdle = &measure.RTT{Min: 180e3, Median: 210e3, Max: 400e3, Samples: 20}
	for _, e := range result.Evidences(&c) {
		e.IO = measure.IOGSO
		hosted(e, map[bool]float64{true: 71, false: 98}[e.Sends])
		datagramsOf(e, lostShare)
	}
	return c
}

// datagramsOf computes the datagrams of an end from its bytes.
func datagramsOf(e *measure.Evidence, lostShare float64) {
	count := func(bytes int64, d measure.Datagrams) *measure.Datagrams {
		d.Packets = bytes / 1472
		if !e.Sends {
			d.Lost = int64(float64(d.Packets) * lostShare / (1 - lostShare))
		}
		return &d
	}
	for i := range e.Streams {
		s := &e.Streams[i]
		s.TCP, s.TCPStart, s.TCPEnd, s.MSS, s.Congestion, s.Length = nil, nil, nil, 0, "", 1472
		s.Calls = s.Bytes / 1472 / 40
		var d measure.Datagrams
		if !e.Sends {
			d = measure.Datagrams{JitterNs: new(int64(31_000)), IPDVMeanNs: new(int64(11_800 + 300*int64(i))), DelayMeanNs: new(int64(38_000)), DelayMaxNs: new(int64(912_000)), SkewPPM: new(-12.5)}
		}
		s.Datagrams, s.DatagramsAll = count(s.Bytes, d), count(s.TotalBytes, d)
		if !e.Sends {
			s.Datagrams.SocketDrops = new(s.Datagrams.Lost / 40) // GRO: one for many
		}
	}
	if !e.Sends {
		h := stat.NewHistogram()
		for i := range int64(1000) {
			h.RecordValue(38_000 + i/985*300_000)
		}
		e.DelayHistogram, _ = stat.EncodeHistogram(h)
	}
	for i := range e.Bins {
		e.Bins[i].TCP, e.Bins[i].Datagrams = nil, count(e.Bins[i].Bytes, measure.Datagrams{})
	}
}

// summarised computes the figures of all cells, as control does.
func summarised(d *measure.Document, link stat.Link) *measure.Document {
	facts := map[string]*measure.Facts{}
	for _, p := range d.EndPoints {
		facts[p.Name] = p.Facts
	}
	for i := range d.Cells {
		stat.Summarise(&d.Cells[i], facts, link)
	}
	stat.LatencyUnderLoad(d.Cells)
	d.Verdict = stat.Verdict(d.Cells)
	return d
}

// udpLossTest sends without a rate limit, more than the receiver takes.
func udpLossTest() *measure.Document {
	d := newDocument("test", "peer", "-u", "-b", "0", "-P", "2")
	d.Cells = []measure.Cell{udpCell("local", "peer", 2, 4.31e9, 0.0214)}
	return summarised(d, stat.Link{})
}

// udpTest is a clean run at a fixed rate, both directions in turn, with verification of every byte.
func udpTest() *measure.Document {
	d := newDocument("test", "peer", "-u", "-b", "912M", "--verify", "--link-rate", "1G")
	for i, direction := range [][2]string{{"local", "peer"}, {"peer", "local"}} {
		c := udpCell(direction[0], direction[1], 1, 910.5e6, 0)
		c.Group, c.Spec.Rate, c.Spec.Verify = i, 912e6, true
		for k := range c.Runs[0].Flows[0].Receiver.Streams {
			s := &c.Runs[0].Flows[0].Receiver.Streams[k]
			s.Checked = &measure.Checked{Bytes: s.TotalBytes}
			s.DatagramsAll.Packets = c.Runs[0].Flows[0].Sender.Streams[k].DatagramsAll.Packets
		}
		d.Cells = append(d.Cells, c)
	}
	return summarised(d, stat.Link{RateBps: 1e9})
}

// times returns a distribution around a median in ns, with a tail that grows with every nine.
func times(median float64, n int) *measure.Latency {
	h := stat.NewHistogram()
	each := max(1, n/50_000)
	for i := range n / each {
		u := (float64(i) + 0.5) / float64(n/each)
		v := median * (0.85 + 0.3*u + 0.02/(1-u)*wave(i, 0.3)/10)
		h.RecordValues(int64(v), int64(each)) // no value exceeds its range
	}
	l := stat.LatencyOf(h)
	l.Histogram, _ = stat.EncodeHistogram(h)
	return &l
}

// requestsCell is a cell of requests with latencies around a median in ns.
func requestsCell(from, to, traffic string, median float64, n int) measure.Cell {
	c := newCellFor(from, to, 1, float64(n)*8/10)
	c.Spec.Traffic, c.Length, c.AtOnce = traffic, measure.Pair{Send: 1, Recv: 1}, 1
	for _, e := range result.Evidences(&c) {
		hosted(e, 88)
		for i := range e.Streams {
			e.Streams[i].Requests, e.Streams[i].TCP, e.Streams[i].TCPStart, e.Streams[i].Length = int64(n), nil, nil, 1
		}
		for i := range e.Bins {
			e.Bins[i].Requests, e.Bins[i].TCP = int64(float64(n)/10*wave(i, 0.01)), nil
		}
	}
	c.Runs[0].Flows[0].Sender.Latency = times(median, n)
	return c
}

// rrTest is requests and responses of one byte on this machine, back to back.
func rrTest() *measure.Document {
	d := newDocument("test", "--rr")
	d.EndPoints = d.EndPoints[:1]
	d.Cells = []measure.Cell{requestsCell("local", "local", measure.RR, 4_800, 2_041_230)}
	return summarised(d, stat.Link{})
}

// crrTest opens a connection for each request, at a rate that was not reached.
func crrTest() *measure.Document {
	d := newDocument("test", "peer", "--crr", "--rate", "5000")
	c := requestsCell("local", "peer", measure.CRR, 212_000, 42_310)
	c.Spec.PerSecond, c.Length = 5000, measure.Pair{Send: 64, Recv: 1024}
	c.Runs[0].Flows[0].Sender.Latency.Errors = 3
	d.Cells = []measure.Cell{c}
	return summarised(d, stat.Link{})
}

// underLoadTest is bulk data with latency probes.
func underLoadTest() *measure.Document {
	d := newDocument("test", "peer", "--one-way", "--latency", "-P", "4")
	idle, bulk, loaded := requestsCell("local", "peer", measure.RR, 200_000, 9_800), newCellFor("local", "peer", 4, 9.41e9), requestsCell("local", "peer", measure.RR, 4_100_000, 2_420)
	idle.Label, loaded.Label = "latency, idle", "latency, loaded"
	idle.Spec.LatencyProbe, loaded.Spec.LatencyProbe = true, true
	bulk.Group, bulk.AtOnce, bulk.Label = 1, 2, "data"
	loaded.Group, loaded.AtOnce = 1, 2
	for _, e := range result.Evidences(&bulk) {
		hosted(e, 93)
		for i := range e.Bins {
			for k := range e.Bins[i].TCP { // the queue is 4 ms long
				e.Bins[i].TCP[k].RTT = new(21 * *e.Bins[i].TCP[k].RTT)
			}
		}
	}
	bulk.Runs[0].Flows[0].Sender.RTTIdle = &measure.RTT{Min: 150e3, Median: 176e3, Max: 300e3, Samples: 20}
	d.Cells = []measure.Cell{idle, bulk, loaded}
	return summarised(d, stat.Link{})
}

// searchTest searches for the capacity of a path, and for the highest rate without loss.
func searchTest() *measure.Document {
	d := newDocument("test", "peer", "-u", "--search", "--link-rate", "1G")
	c := udpCell("local", "peer", 1, 956e6, 0.001)
	c.Spec.Search = true
	for _, e := range result.Evidences(&c) {
		for i := range e.Bins { // the rate climbs to the capacity
			b := &e.Bins[i]
			b.Bytes = min(int64(float64(b.Bytes)*float64(i+3)/9), 119_500_000)
			b.Datagrams.Packets = b.Bytes / 1472
		}
		e.Bytes = 0
		for _, b := range e.Bins {
			e.Bytes += b.Bytes
		}
	}
	d.Cells = []measure.Cell{c}
	summarised(d, stat.Link{RateBps: 1e9})
	s := stat.NewLosslessSearch(*d.Cells[0].Search.CapacityBps)
	for {
		rate, done := s.Next()
		if done {
			break
		}
		t := measure.Trial{AskedBps: rate, ReceivedBps: min(rate, 951.3e6), Sent: int64(rate * 5 / 8 / 1472), Seconds: 5}
		t.Lost = max(0, int64((rate-951.3e6)*5/8/1472))
		if t.Pass = t.Lost == 0; s.Confirming() {
			t.Seconds, t.Sent = 20, 4*t.Sent
		}
		s.Report(t)
	}
	s.Outcome(d.Cells[0].Search)
	return d
}

// leanTest is TCP with data copied at neither end.
func leanTest() *measure.Document {
	d := newDocument("test", "-P", "2", "--io", "lean")
	d.EndPoints = d.EndPoints[:1]
	c := newCellFor("local", "local", 2, 131e9)
	c.IO, c.Spec.IO, c.AtOnce = measure.IOLean, measure.IOLean, 1
	for _, e := range result.Evidences(&c) {
		hosted(e, 100)
		if e.IO = measure.IOLean; e.Sends {
			e.IO = measure.IOSendfile
		}
	}
	d.Cells = []measure.Cell{c}
	return summarised(d, stat.Link{})
}

// TestAnswersOfKinds checks the first lines of the documents above.
func TestAnswersOfKinds(t *testing.T) {
	for want, d := range map[string]*measure.Document{
		"4.22 Gb/s of UDP local -> peer, 2.14% lost, jitter 12 µs":                                                    udpLossTest(),
		"912 Mb/s of UDP local -> peer, 0.00% lost, jitter 11.8 µs, 912 Mb/s back, 0.00% lost":                        udpTest(),
		"204 000 requests/s localhost, p50 4.82 µs, p99 6.47 µs":                                                      rrTest(),
		"4 230 connections/s local -> peer, p50 213 µs, p99 286 µs":                                                   crrTest(),
		"9.42 Gb/s local -> peer, TCP, 4 streams; latency 201 µs idle, 4.12 ms under load (+3.92 ms, grade A+)":       underLoadTest(),
		"capacity 956 of 1000 Mb/s of UDP local -> peer (99.9% of what MTU 1500 allows): pass; 941 Mb/s without loss": searchTest(),
		"131 Gb/s localhost, TCP, 2 streams":                                                                          leanTest(),
	} {
		if got := Answer(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestClassesAnswer: a test of all classes at once is summed by direction, and names each class.
func TestClassesAnswer(t *testing.T) {
	d := newDocument("test", "peer", "--rrul")
	for _, pair := range [][2]string{{"local", "peer"}, {"peer", "local"}} {
		for i, dscp := range []int{0, 8, 40, 46} {
			c := newCellFor(pair[0], pair[1], 1, 20e6+1e6*float64(i))
			c.Group, c.AtOnce, c.Spec.DSCP = 1, 9, dscp
			d.Cells = append(d.Cells, c)
		}
	}
	want := "86.1 Mb/s local -> peer, 86.1 Mb/s back at the same time (BE 20.0/20.0, CS1 21.0/21.0, CS5 22.0/22.0, EF 23.0/23.0 Mb/s)"
	if got := Answer(summarised(d, stat.Link{})); !strings.HasPrefix(got, want) {
		t.Errorf("%q", got)
	}
	var cells []result.Cell
	for i := range d.Cells {
		cells = append(cells, result.NewCell(d, &d.Cells[i]))
	}
	all := series.ClassCharts(d, cells)
	if len(all) != 1 || len(all[0].Legend) != 4 || all[0].Legend[2].Name != "CS5" || strings.Count(string(all[0].SVG), `class="line`) != 8 {
		t.Errorf("%d charts of the classes over time: %+v", len(all), all)
	}
	for i := range d.Cells {
		d.Cells[i].Spec.DSCP = 0
	}
	if got := series.ClassesAnswer(d); got != "" {
		t.Errorf("the answer of one class is %q", got)
	}
	if all := series.ClassCharts(d, cells); all != nil {
		t.Errorf("of one class there are %d charts of classes", len(all))
	}
}
