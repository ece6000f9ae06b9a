package iperf3

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/measure"
	"thru/internal/plan"
)

// play sends a view the events of a test of two seconds after a ramp of one, in one or both directions.
func play(t *testing.T, line string, result error) (out string, v *originalView) {
	t.Helper()
	o := read(t, line)
	r := o.Request
	r.Local, r.Peer = control.Local, "iperf3://host:5201"
	p, err := plan.Test(twoCPUs(r))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	v = newOriginalView(o, &b, "test")
	specs := p.Steps[0].Specs
	v.Step(specs)
	n := specs[0].Streams
	var conns []measure.Addresses
	for i := range n * len(specs) {
		conns = append(conns, measure.Addresses{Local: "10.0.0.1:100" + string(rune('0'+i)), Peer: "10.0.0.2:5201"})
	}
	forward := specs[0].From == control.Local
	v.Live(control.Live{EndPoint: control.Local, Sends: forward, Event: bus.Event{Kind: bus.EventConnected, Conns: conns}})
	for at := -int64(time.Second); at < int64(2*time.Second); at += int64(time.Second) {
		for flow := range specs {
			sends := forward == (flow == 0)
			e := bus.Event{Kind: bus.EventProgress, AtNs: at, SpanNs: 1e9, Phase: bus.PhaseMeasure, Back: flow == 1}
			if at < 0 {
				e.Phase = bus.PhaseRamp
			}
			for range n {
				e.Each = append(e.Each, tick(sends, specs[0].Protocol))
				e.Bytes += e.Each[0].Bytes
				e.Packets += e.Each[0].Packets
			}
			v.Live(control.Live{Flow: flow, EndPoint: control.Local, Sends: sends, Event: e})
		}
	}
	doc := &measure.Document{}
	if err := v.end(doc, result); err != nil {
		t.Fatal(err)
	}
	return b.String(), v
}

func tick(sends bool, protocol string) measure.Tick {
	x := measure.Tick{Bytes: 125_000_000, Sends: sends}
	switch {
	case protocol == measure.UDP && sends:
		x.Packets = 1000
	case protocol == measure.UDP:
		x.Packets, x.Lost, x.JitterNs = 990, 10, new(int64(5000))
	case sends:
		x.Retransmits, x.Cwnd, x.RTT = new(int64(3)), new(int64(1<<20)), new(int64(100_000))
		x.SendWindow, x.ReordSeen = new(int64(1<<16)), new(int64(2))
	}
	return x
}

// TestOriginalViewText checks that the text has a start, a marked interval of the ramp, and the rest.
func TestOriginalViewText(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{"-c host -O 1", []string{"Connecting to host host, port 5201", "[  5] local 10.0.0.1 port 1000 connected to 10.0.0.2 port 5201",
			"Retr  Cwnd", "0.00-1.00   sec   119 MBytes  1.00 Gbits/sec    3   1.00 MBytes       (omitted)", "  1.00-2.00   sec   119 MBytes"}},
		{"-c host -O 1 -R", []string{"Reverse mode, remote host host is sending", "0.00-1.00   sec   119 MBytes"}},
		{"-c host -P 2", []string{"[  7] local 10.0.0.1 port 1001", "[SUM]   0.00-1.00   sec   238 MBytes"}},
		{"-c host --bidir", []string{"[  5][TX-C]   0.00-1.00", "[  7][RX-C]   0.00-1.00"}},
		{"-c host -u -b 1G", []string{"Total Datagrams", "1000"}},
		{"-c host -u -b 1G -R", []string{"Lost/Total Datagrams", "10/1000 (1%)"}},
		{"-c host -T hello", []string{"hello:  Connecting to host"}},
		{"-c host --timestamps=%Y!", []string{time.Now().Format("2006!") + "Connecting to host"}},
		{"-c host -f K", []string{"KBytes/sec"}},
		{"-c host -V", []string{"Starting Test: protocol: TCP, 1 streams, 131072 byte blocks, omitting 0 seconds, 10 second test"}},
	} {
		out, _ := play(t, c.line, nil)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("iperf3 %s: no %q in\n%s", c.line, want, out)
			}
		}
		if c.line == "-c host -R -O 1" && strings.Contains(out, "Retr") {
			t.Errorf("a receiver shows retransmits:\n%s", out)
		}
	}
}

// TestOriginalViewJSON checks the single JSON document, and the line for each event.
func TestOriginalViewJSON(t *testing.T) {
	out, v := play(t, "-c host -J -P 2 -O 1 --extra-data more", errors.New("it broke"))
	var doc struct {
		Start struct {
			Connected []any          `json:"connected"`
			Test      map[string]any `json:"test_start"`
		} `json:"start"`
		Intervals []struct {
			Streams []map[string]any `json:"streams"`
			Sum     map[string]any   `json:"sum"`
		} `json:"intervals"`
		Extra string `json:"extra_data"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(doc.Start.Connected) != 2 || len(doc.Intervals) != 3 || len(doc.Intervals[0].Streams) != 2 || doc.Extra != "more" || doc.Error != "it broke" {
		t.Errorf("%+v", doc)
	}
	if doc.Intervals[0].Sum["omitted"] != true || doc.Intervals[1].Sum["omitted"] != false || doc.Intervals[1].Sum["bits_per_second"] != 2e9 {
		t.Errorf("%+v", doc.Intervals)
	}
	if s := doc.Intervals[0].Streams[0]; s["snd_wnd"] != float64(1<<16) || s["reorder"] != 2.0 {
		t.Errorf("of a sender's stream %v", s)
	}
	if !v.reportsErrors() {
		t.Error("the error would be printed twice")
	}
	out, _ = play(t, "-c host --json-stream -u -b 1G", nil)
	var events []string
	for line := range strings.Lines(out) {
		var e struct {
			Event string `json:"event"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, e.Event)
	}
	if got := strings.Join(events, " "); !strings.HasPrefix(got, "start interval interval interval") {
		t.Errorf("events %s", got)
	}
}

func TestStrftime(t *testing.T) {
	at := time.Date(2026, 3, 7, 15, 4, 5, 0, time.UTC)
	for format, want := range map[string]string{
		"%c ": "Sat Mar  7 15:04:05 2026 ", "%F %T": "2026-03-07 15:04:05", "%s": "1772895845", "%%%Q%": "%%Q%", "%j %k %p%n": "066 15 PM\n",
	} {
		if got := strftime(format, at); got != want {
			t.Errorf("strftime %q is %q, want %q", format, got, want)
		}
	}
}

// twoCPUs sets two CPUs for both hosts of a request.
func twoCPUs(r plan.Request) plan.Request {
	r.LocalCPUs, r.PeerCPUs = 2, 2
	return r
}
