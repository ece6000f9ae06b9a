package capture

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"thru/internal/capture/frame"
	"thru/internal/capture/trace"
	"thru/internal/measure"
)

// TestDocument verifies how a capture becomes cells: the direction and the
// connections that carry data, its seconds, and what is not known.
func TestDocument(t *testing.T) {
	for name, c := range map[string]struct {
		forward, back, control int // bytes each 10 ms, of the connections on ports 40000 and 40001
		cells, streams         int
		bps                    float64
	}{
		"one direction":                  {14480, 0, 0, 1, 1, 14480 * 8 * 100},
		"a control connection beside it": {14480, 0, 10, 1, 1, 14480 * 8 * 100},
		"two streams":                    {14480, 0, 14480, 1, 2, 2 * 14480 * 8 * 100},
		"both directions on one":         {14480, 7240, 0, 2, 1, 14480 * 8 * 100},
	} {
		t.Run(name, func(t *testing.T) {
			rec := trace.NewRecorder()
			b := trace.New(trace.Options{Record: rec})
			number := int64(0)
			sums := map[[2]uint16]uint32{}
			packet := func(ms int64, from, to uint16, n int) {
				number++
				p := frame.Packet{
					Number: number, TimeNs: 1_700_000_000e9 + ms*1e6, Proto: frame.TCP, TTL: 64, ID: uint16(number), Flags: frame.ACK, Window: 500,
					Source: frame.Endpoint{Addr: hostOf(from), Port: from}, Target: frame.Endpoint{Addr: hostOf(to), Port: to},
					Seq: 1 + sums[[2]uint16{from, to}], Ack: 1 + sums[[2]uint16{to, from}], Payload: n, IPBytes: n + 40,
				}
				sums[[2]uint16{from, to}] += uint32(n)
				b.Add(&p, frame.IsTCP)
			}
			for i := range int64(600) {
				for port, bytes := range map[uint16][2]int{40000: {c.forward, c.back}, 40001: {c.control, 0}} {
					packet(i*10, port, 5201, bytes[0])
					packet(i*10+1, 5201, port, bytes[1])
					packet(i*10+2, port, 5201, 0)
				}
			}
			doc, err := Document(t.Context(), File{Name: "x.pcap", Capture: b.Capture(), Recorder: rec})
			if err != nil || len(doc.Cells) != c.cells || len(doc.EndPoints) != 2 {
				t.Fatalf("%v: %+v", err, doc)
			}
			cell := doc.Cells[0]
			if cell.From != "10.0.0.1" || cell.To != "10.0.0.2" || cell.Streams != c.streams {
				t.Errorf("%s -> %s, %d streams", cell.From, cell.To, cell.Streams)
			}
			for _, e := range []*measure.Evidence{cell.Runs[0].Flows[0].Sender, cell.Runs[0].Flows[0].Receiver} {
				var sum int64
				for _, bin := range e.Bins {
					sum += bin.Bytes
				}
				if sum != e.Bytes || len(e.Bins) != 6 || len(e.Streams) != c.streams {
					t.Errorf("%s: %d bytes in %d seconds, %d in all", e.EndPoint, sum, len(e.Bins), e.Bytes)
				}
				rate := float64(e.Bins[2].Bytes) * 8e9 / float64(e.Bins[2].Span)
				if rate < 0.98*c.bps || rate > 1.02*c.bps {
					t.Errorf("%s: %.0f bit/s in a second, not %.0f", e.EndPoint, rate, c.bps)
				}
			}
		})
	}
}

// TestStalled verifies that the rate is over the time in which the sender
// tried to send, and counts what arrived.
func TestStalled(t *testing.T) {
	const size, everyMs = 1448, 10
	for _, test := range []struct {
		name           string
		sent, received int     // segments, of which this many arrive
		controls       int     // bytes of a control connection, all of which arrive
		bps, rate      float64 // of the cell, and of the connection
	}{
		{"all arrives", 100, 100, 0, 100 * size * 8 / 0.99, 100 * size * 8 / 0.99},
		{"it stalls after a second", 100, 100, 0, 100 * size * 8 / 10.99, 100 * size * 8 / 10.99},
		{"nothing arrives", 10, 0, 300, 0, 0},
	} {
		for _, two := range []bool{false, true} {
			var files [2]File
			var builders [2]*trace.Builder
			for i := range files {
				files[i] = File{Name: string(rune('a' + i)), Recorder: trace.NewRecorder()}
				builders[i] = trace.New(trace.Options{Record: files[i].Recorder})
			}
			var numbers [2]int64
			packet := func(ms int64, from, to uint16, flags uint8, seq, ack uint32, n int, arrives bool) {
				left := 0 // where it leaves: the sender is at the left
				if from == 5201 {
					left = 1
				}
				for k := range 2 {
					if at := (left + k) % 2; k == 0 || arrives {
						numbers[at]++
						p := frame.Packet{
							Number: numbers[at], TimeNs: 1_700_000_000e9 + ms*1e6 + int64(k)*1e6, Proto: frame.TCP, TTL: 64, ID: uint16(ms), Flags: flags, Window: 5000,
							Source: frame.Endpoint{Addr: hostOf(from), Port: from}, Target: frame.Endpoint{Addr: hostOf(to), Port: to},
							Seq: seq, Ack: ack, Payload: n, IPBytes: n + 40,
						}
						builders[at].Add(&p, frame.IsTCP)
					}
				}
			}
			open := func(ms int64, port uint16) {
				packet(ms, port, 5201, frame.SYN, 1000, 0, 0, true)
				packet(ms+1, 5201, port, frame.SYN|frame.ACK, 2000, 1001, 0, true)
				packet(ms+2, port, 5201, frame.ACK, 1001, 2001, 0, true)
			}
			open(0, 40001)
			open(10, 40000)
			if test.controls > 0 {
				packet(14, 40001, 5201, frame.ACK, 1001, 2001, test.controls, true)
				packet(15, 5201, 40001, frame.ACK, 2001, 1001+uint32(test.controls), 0, true)
			}
			for i := range test.sent {
				ms, seq := int64(20+i*everyMs), uint32(1001+i*size)
				packet(ms, 40000, 5201, frame.ACK, seq, 2001, size, i < test.received)
				if i < test.received {
					packet(ms+1, 5201, 40000, frame.ACK, 2001, seq+size, 0, true)
				}
			}
			if test.bps < 1e6 { // and the next one is lost
				next := uint32(1001 + test.received*size)
				last := int64(20 + (test.sent-1)*everyMs)
				for i := range int64(6) {
					packet(last+i*2000, 40000, 5201, frame.ACK, next, 2001, size, false)
				}
			}
			for i := range files {
				files[i].Capture = builders[i].Capture()
			}
			doc, err := Document(t.Context(), files[:1]...)
			if two {
				doc, err = Document(t.Context(), files[:]...)
			}
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			e := doc.Cells[0].Runs[0].Flows[0].Receiver
			if e.MeasuredNs <= 0 || len(e.Streams) != 1 {
				t.Fatalf("%s, two %v: %d ns, %d streams", test.name, two, e.MeasuredNs, len(e.Streams))
			}
			if bps := float64(e.Bytes) * 8e9 / float64(e.MeasuredNs); bps < 0.98*test.bps || bps > 1.02*test.bps {
				t.Errorf("%s, two %v: %.0f bit/s, not %.0f", test.name, two, bps, test.bps)
			}
			if bps := *files[0].Capture.Conns[0].GoodputBps; bps < 0.98*test.rate || bps > 1.02*test.rate {
				t.Errorf("%s: the connection %.0f bit/s, not %.0f", test.name, bps, test.rate)
			}
		}
	}
}

// TestBackAtBothEnds: the sender of the back direction is at the other
// capture, which alone shows its round-trip times.
func TestBackAtBothEnds(t *testing.T) {
	const delayMs = 10
	var files [2]File
	var builders [2]*trace.Builder
	for i := range files {
		files[i] = File{Name: string(rune('a' + i)), Recorder: trace.NewRecorder()}
		builders[i] = trace.New(trace.Options{Record: files[i].Recorder})
	}
	type event struct {
		ms   int64
		at   int
		send frame.Packet
	}
	var events []event
	packet := func(ms int64, from, to uint16, flags uint8, seq, ack uint32, n int) {
		left := 0 // where it leaves
		if from == 5201 {
			left = 1
		}
		p := frame.Packet{Proto: frame.TCP, TTL: 64, ID: uint16(len(events)), Flags: flags, Window: 5000, Seq: seq, Ack: ack, Payload: n, IPBytes: n + 40,
			Source: frame.Endpoint{Addr: hostOf(from), Port: from}, Target: frame.Endpoint{Addr: hostOf(to), Port: to}}
		events = append(events, event{ms, left, p}, event{ms + delayMs, 1 - left, p})
	}
	for _, port := range []uint16{40000, 40001} {
		packet(0, port, 5201, frame.SYN, 1000, 0, 0)
		packet(delayMs, 5201, port, frame.SYN|frame.ACK, 2000, 1001, 0)
		packet(2*delayMs, port, 5201, frame.ACK, 1001, 2001, 0)
	}
	for i := range 200 {
		ms, n := int64(30+10*i), uint32(1448*i)
		packet(ms, 40000, 5201, frame.ACK, 1001+n, 2001, 1448)
		packet(ms+delayMs, 5201, 40000, frame.ACK, 2001, 1001+n+1448, 0)
		packet(ms, 5201, 40001, frame.ACK, 2001+n/2, 1001, 724)
		packet(ms+delayMs, 40001, 5201, frame.ACK, 1001, 2001+n/2+724, 0)
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.ms - b.ms) })
	for i, e := range events {
		e.send.Number, e.send.TimeNs = int64(i+1), 1_700_000_000e9+e.ms*1e6
		builders[e.at].Add(&e.send, frame.IsTCP)
	}
	for i := range files {
		files[i].Capture = builders[i].Capture()
		files[i].Capture.Place = []string{measure.AtSender, measure.AtReceiver}[i]
	}
	for name, c := range map[string]struct {
		files []File
		rtt   [2]bool // told, of each direction
	}{"both": {files[:], [2]bool{true, true}}, "the sender's": {files[:1], [2]bool{true, false}}, "the receiver's": {files[1:], [2]bool{false, true}}} {
		doc, err := Document(t.Context(), c.files...)
		if err != nil || len(doc.Cells) != 2 {
			t.Fatalf("%s: %v, %+v", name, err, doc)
		}
		for i := range doc.Cells {
			flow := doc.Cells[i].Runs[0].Flows[0]
			got := flow.Sender.Streams[0].TCP.RTT
			switch {
			case c.rtt[i] && (got == nil || *got != 2*delayMs*1_000_000 || flow.Sender.Bins[0].TCP == nil):
				t.Errorf("%s, direction %d: the sender's round trip is %v", name, i, got)
			case !c.rtt[i] && (got != nil || flow.Sender.Bins[0].TCP != nil):
				t.Errorf("%s, direction %d: a round trip of %d ns, which is none of the sender's", name, i, *got)
			}
			if x := flow.Crossing; x != nil && flow.Captures[x.Left].Place != measure.AtSender {
				t.Errorf("%s, direction %d: the left capture is at the %s", name, i, flow.Captures[x.Left].Place)
			}
		}
	}
}

// TestOpenedAlone: a handshake shows the round-trip time where no data
// followed it.
func TestOpenedAlone(t *testing.T) {
	file := fileOf(t, 0, asTold)
	for packets, want := range map[int]int64{3: 6e6, 2: 0} {
		d := explained(t, file[:len(file)-(3-packets)]) // the last one is cut
		for _, e := range []*measure.Evidence{d.Cells[0].Runs[0].Flows[0].Sender, d.Cells[0].Runs[0].Flows[0].Receiver} {
			lacks := slices.ContainsFunc(e.Missing, func(m measure.NotChecked) bool { return m.Fact == "rtt_idle" })
			switch {
			case want == 0 && (e.RTTIdle != nil || !lacks):
				t.Errorf("%d packets: %+v", packets, e.RTTIdle)
			case want > 0 && (e.RTTIdle == nil || e.RTTIdle.Min != want || lacks):
				t.Errorf("%d packets: %+v, reported as missing: %v", packets, e.RTTIdle, lacks)
			}
		}
	}
}

// TestInterrupted: no document is made after the end of the context.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, err := Load(ctx, "a", bytes.NewReader(fileOf(t, 10, asTold)), trace.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Document(ctx, f); err != nil {
		t.Fatal(err)
	}
	cancel()
	if doc, err := Document(ctx, f); doc != nil || err == nil || !strings.Contains(err.Error(), "a: interrupted") {
		t.Errorf("%+v, %v", doc, err)
	}
}

// hostOf returns the host of a port: the server listens on 5201.
func hostOf(port uint16) [16]byte {
	a := [16]byte{10: 255, 11: 255, 12: 10, 15: 1}
	if port == 5201 {
		a[15] = 2
	}
	return a
}
