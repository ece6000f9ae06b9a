package compare

import (
	"math/rand/v2"
	"time"

	"thru/internal/measure"
	"thru/internal/stat"
)

// began is when the documents of the tests were measured.
func began() time.Time { return time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC) }

// result is a document of one flow with a run for each rate, in bit/s, of this many seconds.
func result(from, to string, seconds int, rates ...float64) *measure.Document {
	d := &measure.Document{Schema: measure.Schema, Thru: "1.0", Command: "test", StartedAt: began(),
		EndPoints: []measure.EndPoint{{Name: from, Facts: facts("host-"+from, 1500)}}}
	if to != from {
		d.EndPoints = append(d.EndPoints, measure.EndPoint{Name: to, Facts: facts("host-"+to, 1500)})
	}
	c := measure.Cell{From: from, To: to, Protocol: measure.TCP, Streams: 4, AtOnce: 1,
		Spec: measure.Spec{From: from, To: to, Engine: measure.Native, Protocol: measure.TCP, Streams: 4, Duration: int64(seconds) * 1e9}}
	for i, rate := range rates {
		c.Runs = append(c.Runs, run(from, to, i, seconds, rate))
	}
	d.Cells = []measure.Cell{c}
	summarise(d)
	return d
}

func run(from, to string, index, seconds int, rate float64) measure.Run {
	end := func(name string, sends bool) *measure.Evidence {
		e := &measure.Evidence{EndPoint: name, Sends: sends, PeerAddr: "192.0.2.2:5201", MeasuredNs: int64(seconds) * 1e9, Route: &measure.Route{Interface: "eth0"},
			Streams: []measure.Stream{{Congestion: "cubic", MSS: 1448, CPU: new(1)}}}
		for s := range seconds {
			wave := 1 + 0.002*float64(s%3-1)
			e.Bins = append(e.Bins, measure.StreamBin{At: int64(s) * 1e9, Span: 1e9, Bytes: int64(rate / 8 * wave)})
			e.Bytes += int64(rate / 8 * wave)
		}
		e.TotalBytes = e.Bytes
		return e
	}
	return measure.Run{Index: index, StartedAt: began(), Flows: []measure.Flow{{From: from, To: to, Sender: end(from, true), Receiver: end(to, false)}}}
}

func summarise(d *measure.Document) {
	for i := range d.Cells {
		stat.Summarise(&d.Cells[i], map[string]*measure.Facts{}, stat.Link{})
	}
}

func facts(host string, mtu int) *measure.Facts {
	return &measure.Facts{Hostname: &host, OS: new("linux"), Kernel: new("6.12.48"), Cores: new(4), Memory: new(int64(16 << 30)), Congestion: new("cubic"),
		Sysctls: map[string]string{"net.core.rmem_max": "212992"},
		Load:    &measure.Load{CPUPct: new(3.0)},
		Interfaces: []measure.Interface{
			{Name: "eth0", MTU: new(mtu), Driver: new("ixgbe"), Firmware: new("0x800003e1"), Offloads: map[string]bool{"tcp-segmentation-offload": true},
				Rings: &measure.Rings{RX: 512, TX: 512, RXMax: 4096, TXMax: 4096}, Counters: []measure.QueueCounter{{Queue: "rx-0", Packets: 17}}},
			{Name: "eth1", MTU: new(1500)},
		}}
}

// around returns n rates that scatter about a mean by so many percent.
func around(r *rand.Rand, bps, pct float64, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = bps * (1 + pct/100*r.NormFloat64())
	}
	return all
}

// docs returns results of one run each.
func docs(from, to string, rates ...float64) (all []*measure.Document) {
	for i, rate := range rates {
		d := result(from, to, 10, rate)
		d.StartedAt = began().Add(time.Duration(i) * time.Hour)
		all = append(all, d)
	}
	return all
}

func one(d *measure.Document) []*measure.Document { return []*measure.Document{d} }
