package cause

import (
	"fmt"
	"time"

	"thru/internal/measure"
)

// captures is a flow of which only packets are known, as from a capture file: ten seconds at 190 Mb/s over a path
// of 20 ms, without a fault. Edits make cases of it.
type captures struct {
	flow  measure.Flow
	bins  []float64 // rate of the seconds over the goodput
	conns []*measure.Connection
}

type capturesEdit = func(*captures)

const (
	filmTime = 10 * time.Second
	filmRate = 190e6
	filmMSS  = 1448
)

// filmed is the document of captures at these places.
func filmed(places []string, edits ...capturesEdit) *measure.Document {
	x := &captures{flow: measure.Flow{From: "10.0.0.1", To: "10.0.0.2"}, bins: []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}
	for i, p := range places {
		c := measure.Capture{File: fmt.Sprintf("%d.pcap", i+1), Place: p, SpanNs: int64(filmTime), Packets: 200_000, TCP: 200_000, Known: 1, Conns: []measure.Connection{filmedConn(p)}}
		x.flow.Captures = append(x.flow.Captures, c)
	}
	for i := range x.flow.Captures {
		x.conns = append(x.conns, &x.flow.Captures[i].Conns[0])
	}
	if len(places) == 2 {
		x.flow.Crossing = filmedCrossing()
	}
	for _, edit := range edits {
		edit(x)
	}
	rate := *x.conns[0].GoodputBps
	ev := func(name string, sends bool) *measure.Evidence {
		e := &measure.Evidence{EndPoint: name, Sends: sends, Reported: measure.ByCapture, MeasuredNs: int64(filmTime), Streams: []measure.Stream{{}}}
		for i, b := range x.bins {
			e.Bins = append(e.Bins, measure.StreamBin{At: int64(i) * 1e9, Span: 1e9, Bytes: int64(b * rate / 8)})
		}
		return e
	}
	x.flow.Sender, x.flow.Receiver = ev("10.0.0.1", true), ev("10.0.0.2", false)
	spec := measure.Spec{From: "10.0.0.1", To: "10.0.0.2", Protocol: measure.TCP, Streams: 1, Duration: int64(filmTime)}
	return &measure.Document{
		EndPoints: []measure.EndPoint{{Name: "10.0.0.1"}, {Name: "10.0.0.2"}},
		Cells: []measure.Cell{{From: "10.0.0.1", To: "10.0.0.2", Protocol: measure.TCP, Streams: 1, Spec: spec, AtOnce: 1,
			Goodput: &measure.Figure{Value: rate, Runs: 1}, Runs: []measure.Run{{Goodput: &rate, Flows: []measure.Flow{x.flow}}}}},
	}
}

// filmedConn is a healthy connection as a capture at that place sees it.
func filmedConn(place string) measure.Connection {
	const bytes = int64(filmRate / 8 * 10)
	c := measure.Connection{From: "10.0.0.1:40000", To: "10.0.0.2:5201", FirstPacket: 1, SpanNs: int64(filmTime), FromOpened: new(true),
		SYN: opening(1), SYNACK: opening(2), OpenNs: new(int64(20 * ms)), OpenFarNs: new(int64(20 * ms)), MSS: filmMSS, MaxPacket: 1500,
		Data: measure.Direction{Packets: bytes / filmMSS, Segments: bytes / filmMSS, Payload: bytes, New: bytes, MaxPacket: 1500, TTLs: []int{64}, BusyMs: 9500},
		Acks: measure.Direction{Packets: 80_000, Segments: 80_000, TTLs: []int{61}, WindowMin: new(int64(3 << 20)), WindowMax: new(int64(4 << 20))},
		RTT:  delays(20*ms, 20500*time.Microsecond), RTTBack: delays(30*time.Microsecond, 50*time.Microsecond),
		Flight: &measure.Spread{Mean: 470e3, Min: 0, Max: 900e3}, Window: &measure.Spread{Mean: 4 << 20, Min: 3 << 20, Max: 4 << 20},
		WindowFull: new(0.0), BurstBytes: &measure.Spread{Mean: 20 * filmMSS, Min: filmMSS, Max: 64 * filmMSS}, GoodputBps: new(float64(filmRate)), EndedBy: "fin"}
	x := &measure.Trace{StepNs: int64(filmTime) / measure.TraceSteps}
	for i := range int64(measure.TraceSteps) {
		sent := bytes * (i + 1) / measure.TraceSteps
		acked := sent - 470e3
		if place == measure.AtReceiver {
			acked = sent
		}
		x.Sent, x.Acked = append(x.Sent, sent), append(x.Acked, max(0, acked))
	}
	c.Timeline = x
	c.SYN.TTL, c.SYNACK.TTL = 64, 61
	switch place {
	case measure.AtSender:
		c.Data.Super = measure.Count{N: 5000, Bytes: bytes * 9 / 10, Packets: []int64{4, 5}}
		c.Data.MaxPacket = 65_212
	case measure.AtReceiver:
		c.RTT, c.RTTBack = c.RTTBack, c.RTT
		c.Data.TTLs, c.Acks.TTLs = []int{61}, []int{64}
		c.SYN.TTL, c.SYNACK.TTL = 61, 64
		c.Data.Super = measure.Count{N: 5000, Bytes: bytes * 9 / 10, Packets: []int64{4, 5}} // by receive offload
		c.Data.MaxPacket = 65_212
	default:
		c.RTT, c.RTTBack = delays(10*ms, 10500*time.Microsecond), delays(10*ms, 10100*time.Microsecond)
		c.Data.TTLs, c.Acks.TTLs = []int{63}, []int{62}
		c.SYN.TTL, c.SYNACK.TTL = 63, 62
	}
	return c
}

func opening(packet int64) *measure.Opening {
	return &measure.Opening{SYN: measure.SYN{MSS: new(1460), WindowScale: new(7), HasScale: new(true), SACK: new(true), Timestamps: new(true)}, Packet: packet, Window: 64240, TTL: 64}
}

func delays(least, median time.Duration) *measure.Delay {
	return &measure.Delay{Min: int64(least), P50: int64(median), P90: int64(median) * 11 / 10, P99: int64(median) * 12 / 10, Max: int64(median) * 2, Samples: 5000}
}

// filmedCrossing compares two captures without a difference.
func filmedCrossing() *measure.Crossing {
	const segments = 160_000
	d := measure.Crossed{Sent: segments * filmMSS, Arrived: segments * filmMSS, SuperSent: measure.Count{N: 5000, Bytes: 150_000 * filmMSS},
		SingleSent: measure.Count{N: 10_000, Bytes: 10_000 * filmMSS}, FullSent: measure.Count{N: 9_990, Bytes: 9_990 * filmMSS}, SmallSent: measure.Count{N: 5},
		MaxArrived: 1500, Delay: delays(10*ms, 10200*time.Microsecond)}
	acks := measure.Crossed{SingleSent: measure.Count{N: 80_000}, SmallSent: measure.Count{N: 80_000}, Delay: delays(10*ms, 10100*time.Microsecond)}
	return &measure.Crossing{Left: 0, Right: 1, BoundNs: 100_000, Conns: []measure.CrossedConn{{Data: d, Acks: acks}}}
}

// Places of the captures of a case.
var (
	nearSender   = []string{measure.AtSender}
	nearReceiver = []string{measure.AtReceiver}
	midway       = []string{measure.AtPath}
	anywhere     = []string{""}
	nearBoth     = []string{measure.AtSender, measure.AtReceiver}
)

// eachConn edits the connection of every capture.
func eachConn(edit func(*measure.Connection)) capturesEdit {
	return func(x *captures) {
		for _, c := range x.conns {
			edit(c)
		}
	}
}

// connOf edits the connection of one capture.
func connOf(i int, edit func(*measure.Connection)) capturesEdit {
	return func(x *captures) { edit(x.conns[i]) }
}

// crossedData edits what two captures show of the data.
func crossedData(edit func(*measure.Crossed)) capturesEdit {
	return func(x *captures) { edit(&x.flow.Crossing.Conns[0].Data) }
}

// carries sets the goodput, and the payload with it.
func carries(bps float64) capturesEdit {
	return eachConn(func(c *measure.Connection) {
		c.GoodputBps = &bps
		bytes := int64(bps / 8 * filmTime.Seconds())
		c.Data.New, c.Data.Payload = bytes, bytes
		c.Data.Segments, c.Data.Packets = bytes/filmMSS, bytes/filmMSS
		c.Data.Super.Bytes = bytes * 9 / 10
		for i := range c.Timeline.Sent {
			c.Timeline.Sent[i] = bytes * int64(i+1) / measure.TraceSteps
			c.Timeline.Acked[i] = max(0, c.Timeline.Sent[i]-c.Timeline.Sent[0]/2)
		}
	})
}

// sendsAgain sets how many segments were retransmitted, and in bursts of which length, throughout the connection.
func sendsAgain(segments int64, row int) capturesEdit {
	return eachConn(func(c *measure.Connection) {
		c.Data.Again = someSegments(segments, 100)
		c.Data.Fast = c.Data.Again
		c.Acks.DupAcks, c.Acks.SACKed = measure.Count{N: 3 * segments}, measure.Count{N: 3 * segments}
		c.Timeline.Again = nil
		marks, each := min(segments, measure.MostMarks), int64(row)
		apart := int64(filmTime) / max(1, (marks+each-1)/each)
		for i := range marks {
			c.Timeline.Again = append(c.Timeline.Again, measure.PacketMark{AtNs: i/each*apart + i%each*int64(ms/10), Packet: 100 + i})
		}
	})
}

// ignoredAt makes this many segments arrive at a capture twice.
func ignoredAt(i int, segments int64) capturesEdit {
	return connOf(i, func(c *measure.Connection) { c.Data.Payload = c.Data.New + segments*filmMSS })
}

// someSegments is a count of full segments from a packet on.
func someSegments(n, from int64) measure.Count {
	c := measure.Count{N: n, Bytes: n * filmMSS}
	for i := range min(n, measure.MostNumbers) {
		c.Packets = append(c.Packets, from+i)
	}
	return c
}

// windowOf sets the receiver's window and the percentage of the time in which it is used up.
func windowOf(bytes, fullPct float64) capturesEdit {
	return eachConn(func(c *measure.Connection) {
		c.Window = &measure.Spread{Mean: bytes, Min: bytes, Max: bytes}
		c.Flight = &measure.Spread{Mean: min(bytes, c.Flight.Mean), Max: min(bytes, c.Flight.Max)}
		c.WindowFull = &fullPct
	})
}

// roundTrip sets the minimum and the median round-trip time, wherever it is measured.
func roundTrip(least, median time.Duration) capturesEdit {
	return func(x *captures) {
		for i, c := range x.conns {
			switch x.flow.Captures[i].Place {
			case measure.AtSender:
				c.RTT = delays(least, median)
			case measure.AtReceiver:
				c.RTTBack = delays(least, median)
			default:
				c.RTT, c.RTTBack = delays(least/2, median-least/2), delays(least/2, least/2)
			}
		}
	}
}

func uneven(x *captures) { x.bins = []float64{1.3, 0.7, 1.1, 0.9, 1.25, 0.8, 1.2, 0.75, 1, 1} }
