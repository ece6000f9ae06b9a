package stat

import (
	"math"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

// datagramCell is a UDP cell as two hosts produce it: ten seconds of two streams at 1 Gb/s of 1472 bytes, with
// this many lost datagrams each.
func datagramCell(lost int64) *measure.Cell {
	const packets = 849_184 / 2 // of each stream in ten seconds
	c := recorded(1)
	c.Protocol, c.Spec.Protocol, c.Spec.Rate, c.Spec.Length = measure.UDP, measure.UDP, 1e9, measure.Pair{Send: 1472}
	f := &c.Runs[0].Flows[0]
	for _, e := range []*measure.Evidence{f.Sender, f.Receiver} {
		e.IO = measure.IOBatch
		e.Host.Proto = map[string]uint64{}
		e.Host.Qdisc = &measure.Qdisc{Kind: "fq"}
		e.Host.Softnet = []measure.Softnet{{Processed: 1}}
		if e.Host.NIC == nil {
			e.Host.NIC = &measure.NICSpan{Name: "eth0"}
		}
		e.Host.NIC.RxRing = new(uint64(0))
		for i := range e.Bins {
			e.Bins[i].TCP = nil
		}
		for i := range e.Streams {
			x := &e.Streams[i]
			x.TCP, x.TCPStart, x.TCPEnd, x.MSS = nil, nil, nil, 0
			d := measure.Datagrams{Packets: packets}
			all := measure.Datagrams{Packets: packets * 11 / 10}
			if !e.Sends {
				d = measure.Datagrams{Packets: packets - lost, Lost: lost, JitterNs: new(int64(12_000)), DelayMeanNs: new(int64(40_000)),
					DelayMaxNs: new(int64(900_000 + 1000*int64(i))), SocketDrops: new(int64(0))}
				all = d
				all.Packets = packets*11/10 - lost
			}
			x.Datagrams, x.DatagramsAll, x.Calls = &d, &all, packets/20
		}
	}
	return c
}

func flow(c *measure.Cell) *measure.Flow { return &c.Runs[0].Flows[0] }

func TestDatagrams(t *testing.T) {
	c := datagramCell(1000)
	Summarise(c, twoHosts(), Link{})
	d := c.Datagrams
	if d == nil || len(c.Missing) > 0 {
		t.Fatalf("figures %+v, missing %v", d, c.Missing)
	}
	near(t, "sent", float64(d.Sent), 2*467_051, 0)
	near(t, "lost", float64(d.Lost), 2000, 0)
	near(t, "loss", d.LossPct, 100*2000.0/(2*467_051), 1e-9)
	near(t, "sent a second", *d.SentPps, 84_918.4, 0.1)
	near(t, "received a second", d.ReceivedPps, 84_718.4, 0.1)
	near(t, "offered", *d.OfferedBps, 1e9, 1)
	near(t, "jitter", float64(*d.JitterNs), 12_000, 0)
	near(t, "greatest delay variation", float64(*d.DelayMaxNs), 901_000, 0)
	if d.Fragments != 1 || d.Bytes != 1472 || d.AskedBps != 1e9 {
		t.Errorf("%+v", d)
	}
	near(t, "ceiling", c.Ceiling.Bps, 10e9*1472/1538, 1)
	for _, absent := range []bool{c.Retransmits == nil, c.RFC6349 == nil, c.BDP == nil, c.RTTLoaded == nil} {
		if !absent {
			t.Error("a UDP cell has figures of TCP")
		}
	}
	if len(c.LossPlaces) != 1 || c.LossPlaces[0].Place != measure.LossPath {
		t.Errorf("places %+v", c.LossPlaces)
	}
	if v := Verdict([]measure.Cell{*c}); v != nil {
		t.Errorf("1 Gb/s asked for on 10 Gb/s is judged: %+v", v)
	}
}

// TestDatagramsOfOneEnd has the counts of one end only.
func TestDatagramsOfOneEnd(t *testing.T) {
	c := datagramCell(1000)
	flow(c).Sender = nil
	Summarise(c, nil, Link{})
	if d := c.Datagrams; d == nil || d.Lost != 2000 || d.SentPps != nil || !isMissing(c, "datagrams.sent_packets") {
		t.Errorf("without the sender: %+v, missing %v", d, c.Missing)
	}
	c = datagramCell(1000)
	flow(c).Receiver.Streams[1].DatagramsAll = nil
	Summarise(c, nil, Link{})
	if c.Datagrams != nil || !isMissing(c, "datagrams") {
		t.Errorf("without a stream of the receiver: %+v, missing %v", c.Datagrams, c.Missing)
	}
	c = datagramCell(0)
	flow(c).Sender.Streams[0].DatagramsAll.Packets -= 5
	Summarise(c, nil, Link{})
	if c.Datagrams.Lost != 0 || !warned(c, "more datagrams than were sent") {
		t.Errorf("more received than sent: %+v, warnings %q", c.Datagrams, c.Warnings)
	}
}

// TestDelayFigures checks evidence with more than RFC 3550's final jitter.
func TestDelayFigures(t *testing.T) {
	c := datagramCell(0)
	for i := range c.Runs {
		e := c.Runs[i].Flows[0].Receiver
		for j := range e.Streams {
			d := e.Streams[j].Datagrams
			d.JitterNs, d.IPDVMeanNs, d.SkewPPM = new(int64(70_000)), new(int64(20_000)), new(40.0)
		}
		h := NewHistogram()
		h.RecordValues(10_000, 985)
		h.RecordValues(2_000_000, 15)
		e.DelayHistogram, _ = EncodeHistogram(h)
	}
	Summarise(c, twoHosts(), Link{})
	d := c.Datagrams
	near(t, "jitter", float64(*d.JitterNs), 20_000, 0)
	near(t, "skew", *d.SkewPPM, 40, 0)
	near(t, "median", float64(*d.DelayP50Ns), 10_000, 10)
	near(t, "p99", float64(*d.DelayP99Ns), 2_000_000, 2000)
	if isMissing(c, "datagrams.clock_skew_ppm") {
		t.Error("a skew is missing that is known")
	}
	flow(c).Receiver.DelayHistogram = "not one"
	for i := range c.Runs {
		for j := range c.Runs[i].Flows[0].Receiver.Streams {
			c.Runs[i].Flows[0].Receiver.Streams[j].Datagrams.SkewPPM = nil
		}
	}
	Summarise(c, twoHosts(), Link{})
	if c.Datagrams.DelayP99Ns != nil || !isMissing(c, "datagrams.delay_variation_p50_ns") || !isMissing(c, "datagrams.clock_skew_ppm") {
		t.Errorf("%+v of a histogram that cannot be read, missing %v", c.Datagrams, c.Missing)
	}
}

func isMissing(c *measure.Cell, fact string) bool {
	return slices.ContainsFunc(c.Missing, func(m measure.NotChecked) bool { return m.Fact == fact })
}

func warned(c *measure.Cell, text string) bool {
	return slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.Contains(w, text) })
}

// TestMaxDatagramGoodput is computed manually: percent of the line rate.
func TestMaxDatagramGoodput(t *testing.T) {
	tests := []struct {
		name    string
		link    Link
		payload int
		frags   int
		want    float64
	}{
		{"full v4", Link{MTU: 1500}, 1472, 1, 100 * 1472.0 / 1538},
		{"full v6", Link{MTU: 1500, IPv6: true}, 1452, 1, 100 * 1452.0 / 1538},
		{"jumbo", Link{MTU: 9000}, 8972, 1, 100 * 8972.0 / 9038},
		{"padded", Link{MTU: 1500}, 16, 1, 100 * 16.0 / 84},
		{"layer 2", Link{MTU: 1500, Layer: "l2"}, 1472, 1, 100 * 1472.0 / 1514},
		{"two fragments", Link{MTU: 1500}, 1473, 2, 100 * 1473.0 / (1538 + 84)}, // 1 remaining byte, padded
		{"8 KiB", Link{MTU: 1500}, 8192, 6, 100 * 8192.0 / (5*1538 + 20 + 800 + 38)},
		{"8 KiB v6", Link{MTU: 1500, IPv6: true}, 8192, 6, 100 * 8192.0 / (5*(1448+48+38) + 48 + 960 + 38)},
	}
	for _, tt := range tests {
		tt.link.RateBps = 1e9
		near(t, tt.name, MaxDatagramGoodput(tt.link, tt.payload)/1e9*100, tt.want, 1e-6)
		if n := Fragments(tt.link, tt.payload); n != tt.frags {
			t.Errorf("%s: %d fragments, want %d", tt.name, n, tt.frags)
		}
	}
	for _, l := range []Link{{}, {MTU: 1500}, {RateBps: 1e9, MTU: 20}} {
		if got := MaxDatagramGoodput(l, 1472); !math.IsNaN(got) {
			t.Errorf("%+v has a ceiling of %g", l, got)
		}
	}
}
