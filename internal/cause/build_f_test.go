package cause

import (
	"strings"
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

const (
	tenG      = 10_000_000_000
	tenGFull  = 9_414_824_447.0 // TCP payload rate at MTU 1500 with timestamps
	wellFed   = 9_400_000_000.0
	testSpan  = 8_000_000_000 // ns
	testMSS   = 1448
	testPings = 20
)

// flowDoc is the document of that flow, changed by the edits.
func flowDoc(edits ...func(*measure.Document)) *measure.Document {
	d := &measure.Document{
		EndPoints: []measure.EndPoint{{Name: "near", Facts: hostFacts()}, {Name: "far", Facts: hostFacts()}},
		Paths:     []measure.Path{testPath()},
		Cells:     []measure.Cell{flowCell("near", "far", wellFed)},
	}
	for _, edit := range edits {
		edit(d)
	}
	return d
}

func hostFacts() *measure.Facts {
	return &measure.Facts{OS: new("linux"), Sysctls: map[string]string{"net.ipv4.tcp_sack": "1"}, Interfaces: []measure.Interface{{
		Name: "eth0", Kind: new("physical"), MTU: new(1500), SpeedBps: new(int64(tenG)), MaxBps: new(int64(tenG)), PeerBps: new(int64(tenG)), Duplex: new("full"),
		PCI: &measure.PCI{UsableBps: new(int64(27_400_000_000))}, Offloads: map[string]bool{"tcp-segmentation-offload": true},
	}}}
}

func testPath() measure.Path {
	syn := func() *measure.SYN {
		return &measure.SYN{MSS: new(1460), WindowScale: new(10), HasScale: new(true), SACK: new(true), Timestamps: new(true)}
	}
	direction := func() measure.DirectionFacts {
		return measure.DirectionFacts{Route: &measure.Route{Interface: "eth0", Gateway: "10.0.0.1", MTU: 1500}, MTU: &measure.PathMTU{Bytes: 1500, Claimed: 1500, Local: true},
			Hops: new(1), UDP: &measure.UDPReach{Sent: 4, Got: 4}}
	}
	return measure.Path{From: "near", To: "far", RTT: &measure.PathRTT{Min: 9e6, P50: 10e6, P90: 11e6, P99: 12e6, Max: 12e6, Samples: testPings},
		Handshake: &measure.Handshake{SYNSent: syn(), SYNSeen: syn(), SYNACKSent: syn(), SYNACKSeen: syn(), RTTNs: new(int64(9.5e6))}, Forward: direction(), Back: direction()}
}

// flowCell is a cell of one run at a rate, the same in every second.
func flowCell(from, to string, bps float64) measure.Cell {
	c := measure.Cell{From: from, To: to, Protocol: measure.TCP, Streams: 1, AtOnce: 1,
		Spec:    measure.Spec{From: from, To: to, Engine: measure.Native, Protocol: measure.TCP, Streams: 1, Duration: testSpan},
		Goodput: &measure.Figure{Value: bps, Runs: 1}, Ceiling: &measure.Ceiling{Bps: tenGFull, LinkBps: tenG, LinkFrom: "stated", LinkLayer: "l1", MTU: 1500, SharePct: 100 * bps / tenGFull},
		Reconciled: &measure.Reconciled{SenderBps: bps, ReceiverBps: bps, SentBytes: 1e9, ReceivedBytes: 1e9, Note: "equal"}}
	c.Runs = []measure.Run{{Goodput: &bps, Flows: []measure.Flow{{From: from, To: to, Sender: flowEnd(from, to, true, bps), Receiver: flowEnd(to, from, false, bps)}}}}
	return c
}

func flowEnd(name, peer string, sends bool, bps float64) *measure.Evidence {
	e := &measure.Evidence{EndPoint: name, Sends: sends, PeerAddr: "10.0.0.2:5202", Route: &measure.Route{Interface: "eth0", Gateway: "10.0.0.1", MTU: 1500}, MeasuredNs: testSpan,
		Bytes: int64(bps * testSpan / 8e9), Host: &measure.HostSpan{NIC: &measure.NICSpan{Name: "eth0", RxBytes: uint64(bps), RxPackets: 1_000_000, TxPackets: 1_000_000, TxBytes: 1_500_000_000},
			Proto: map[string]uint64{}, CPUs: []measure.CPU{{Core: 0, User: 20, Idle: 80}, {Core: 1, Idle: 100}}}}
	e.Host.NIC.RxBytes = uint64(e.Bytes) + uint64(e.Bytes)/20
	e.Streams = []measure.Stream{{Length: 128 << 10, MSS: testMSS, RunNs: new(int64(2e9)), WaitNs: new(int64(0)), BlockedNs: new(int64(6e9)),
		TCPStart: tcpAt(0, 0), TCP: tcpAt(1_000_000, 0)}}
	for i := range int64(8) {
		e.Bins = append(e.Bins, measure.StreamBin{At: i * 1e9, Span: 1e9, Bytes: int64(bps / 8), TCP: []measure.TCPInfo{*tcpAt(uint32(i+1)*100_000, 0)}})
		e.PerSec = append(e.PerSec, measure.HostSpan{CPUs: []measure.CPU{{Core: 0, User: 20, Idle: 80}}})
	}
	return e
}

func tcpAt(sent, again uint32) *measure.TCPInfo {
	return &measure.TCPInfo{SACK: new(true), Timestamps: new(true), WScaleOK: new(true), SendMSS: new(uint32(testMSS)), AdvMSS: new(uint32(testMSS)), PMTU: new(uint32(1500)),
		DataSegsOut: new(sent), Retrans: new(again), RTT: new(int64(10_500_000)), MinRTT: new(int64(9_000_000)), Cwnd: new(uint32(9000)), Unacked: new(uint32(100)),
		BusyUs: new(uint64(sent) * 8), RwndLimitedUs: new(uint64(0)), TotalRTO: new(uint16(0)), Backoff: new(uint8(0)), NotSent: new(uint32(100_000)), SendWnd: new(uint32(30_000_000))}
}

// edits

func near(d *measure.Document) *measure.Evidence { return d.Cells[0].Runs[0].Flows[0].Sender }

func far(d *measure.Document) *measure.Evidence { return d.Cells[0].Runs[0].Flows[0].Receiver }

func cardOf(d *measure.Document) *measure.Interface {
	return &d.EndPoints[0].Facts.Interfaces[0]
}

func farFace(d *measure.Document) *measure.Interface { return &d.EndPoints[1].Facts.Interfaces[0] }

func noPath(d *measure.Document) { d.Paths = nil }

func noCeiling(d *measure.Document) { d.Cells[0].Ceiling = nil }

func noEvidence(d *measure.Document) { d.Cells[0].Runs[0].Flows = nil }

func noFacts(d *measure.Document) { d.EndPoints[0].Facts, d.EndPoints[1].Facts = nil, nil }

func counters(e *measure.Evidence, m map[string]uint64) { e.Host.Proto = m }

// rate sets the goodput of the flow, in every second too.
func rate(bps float64) func(*measure.Document) {
	return func(d *measure.Document) {
		c := flowCell("near", "far", bps)
		c.Spec, c.Streams = d.Cells[0].Spec, d.Cells[0].Streams
		d.Cells[0] = c
	}
}

// seconds sets the rates of the seconds in Gb/s.
func seconds(gbps ...float64) func(*measure.Document) {
	return func(d *measure.Document) {
		for _, e := range []*measure.Evidence{near(d), far(d)} {
			var bins []measure.StreamBin
			for i, g := range gbps {
				bins = append(bins, measure.StreamBin{At: int64(i) * 1e9, Span: 1e9, Bytes: int64(g * 1e9 / 8), TCP: []measure.TCPInfo{*tcpAt(uint32(i+1)*100_000, 0)}})
			}
			e.Bins = bins
		}
	}
}

// lost sets the percentage of retransmitted segments.
func lost(pct float64) func(*measure.Document) {
	return func(d *measure.Document) { near(d).Streams[0].TCP.Retrans = new(uint32(pct / 100 * 1_000_000)) }
}

// loaded sets the round-trip time under load in ms; that of the empty path is 10.5.
func loaded(ms float64) func(*measure.Document) {
	return func(d *measure.Document) {
		for i := range near(d).Bins {
			near(d).Bins[i].TCP[0].RTT = new(int64(ms * 1_000_000))
		}
	}
}

// try adds the cell of an experiment.
func try(id string, bps float64, edits ...func(*measure.Cell)) func(*measure.Document) {
	return func(d *measure.Document) {
		c := flowCell("near", "far", bps)
		c.Experiment, c.Baseline = id, true
		for _, edit := range edits {
			edit(&c)
		}
		d.Cells = append(d.Cells, c)
		d.Cells[0].Experiment = diagnose.Base
	}
}

// fails aborts an experiment, whatever it had carried.
func fails(c *measure.Cell) {
	c.Error = &measure.Error{Message: "the data stopped"}
	for i := range c.Runs {
		c.Runs[i].Error = c.Error
	}
}

func streams(n int) func(*measure.Cell) {
	return func(c *measure.Cell) { c.Streams, c.Spec.Streams = n, n }
}

// row is one judgement of a rule.
type row struct {
	name  string
	want  string // state and confidence: "certain", "likely beside", "certain well", "no", "missing", "none"
	says  string // part of its text
	edits []func(*measure.Document)
}

// judgeRows checks a rule against its rows.
func judgeRows(t *testing.T, cause string, rows []row) {
	t.Helper()
	r, ok := diagnose.RuleOf(theCatalogue(), cause)
	if !ok {
		t.Fatalf("no rule for %s", cause)
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			d := flowDoc(row.edits...)
			f := diagnose.NewFlow(theCatalogue(), d, &d.Cells[0])
			o := r.Apply(f)
			if got := stateOf(o); got != row.want {
				t.Errorf("%q (%+v), want %q", got, o, row.want)
			}
			if o != nil && !strings.Contains(o.Text+" "+o.Fact, row.says) {
				t.Errorf("says %q, want %q in it", o.Text+" "+o.Fact, row.says)
			}
			if o != nil && o.State == diagnose.Holds && !o.Healthy && (o.Fix == nil || len(o.Evidence) == 0 && cause != "lag-one-member") {
				t.Errorf("holds without evidence or remedy: %+v", o)
			}
		})
	}
}

// stateOf words an outcome.
func stateOf(o *diagnose.Outcome) string {
	if o == nil {
		return "none"
	}
	switch o.State {
	case diagnose.Excluded:
		return "no"
	case diagnose.Unknown:
		return "missing"
	}
	text := o.Confidence
	if o.Healthy {
		text += " well"
	}
	if o.NotBinding {
		text += " beside"
	}
	return text
}
