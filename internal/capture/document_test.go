package capture

import (
	"testing"

	"thru/internal/capture/frame"
	"thru/internal/capture/trace"
	"thru/internal/measure"
)

// TestDocument holds how a capture becomes cells: the direction and the
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
			doc, err := Document(File{Name: "x.pcap", Capture: b.Capture(), Recorder: rec})
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

// hostOf is the host of a port: the server listens on 5201.
func hostOf(port uint16) [16]byte {
	a := [16]byte{10: 255, 11: 255, 12: 10, 15: 1}
	if port == 5201 {
		a[15] = 2
	}
	return a
}
