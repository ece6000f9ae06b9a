package live

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/lab"
)

// cost is the cost of one run.
type cost struct{ gbps, busyPerGB, reader, packets, dropped float64 }

// BenchmarkCost measures what capturing at both ends takes from a test by iperf3,
// for docs/capture.md:
//
//	go test ./internal/capture/live -run - -bench Cost -benchtime 6x
//
// Runs without capture, with one, and with one that is full at once come in
// turn. Busy is CPU time of the whole machine, so nothing else should run on it.
func BenchmarkCost(b *testing.B) {
	for _, path := range []struct {
		name     string
		options  lab.Options
		loopback bool
		single   bool // packets of one segment, as a NIC without offloads has them
	}{
		{name: "1Gbit", options: lab.Options{Rate: 1e9}},
		{name: "veth"},
		{name: "single", single: true},
		{name: "loopback", loopback: true},
	} {
		b.Run(path.name, func(b *testing.B) {
			lab.Require(b, lab.Program("iperf3"), lab.Program("ethtool"))
			p := lab.NewPair(b, path.options)
			at, from := p.Data.B4, p.A
			if path.loopback {
				at, from = netip.MustParseAddr("127.0.0.1"), p.B
			}
			if path.single {
				for _, h := range []*lab.Host{p.A, p.B} {
					h.Must("ethtool", "-K", lab.DataDev, "tso", "off", "gso", "off", "gro", "off")
				}
			}
			p.B.Must("iperf3", "-s", "-D", "-p", fmt.Sprint(dataPort))
			time.Sleep(300 * time.Millisecond)
			modes := []int64{0, 20_000_000, 1} // packets of the capture
			runs := make([][]cost, len(modes))
			for range b.N {
				for i, packets := range modes {
					runs[i] = append(runs[i], once(b, from, p.B, at, packets))
				}
			}
			for i, name := range []string{"off", "on", "full"} {
				b.ReportMetric(median(runs[i], func(c cost) float64 { return c.gbps }), name+"-Gb/s")
				b.ReportMetric(least(runs[i], func(c cost) float64 { return c.busyPerGB }), name+"-busy-s/GB")
			}
			b.ReportMetric(median(runs[1], func(c cost) float64 { return c.reader }), "reader-%")
			b.ReportMetric(median(runs[1], func(c cost) float64 { return c.packets }), "packets/s")
			b.ReportMetric(median(runs[1], func(c cost) float64 { return c.dropped }), "dropped/s")
			b.Logf("%+v", runs)
		})
	}
}

// once runs iperf3 for some seconds, with a ring at each end unless packets is 0.
func once(b *testing.B, from, to *lab.Host, at netip.Addr, packets int64) (c cost) {
	const seconds = 3
	var rings []*Ring
	begin := func(h *lab.Host, c Config) {
		h.Inside(func() error {
			r, err := Start(c)
			rings = append(rings, r)
			return err
		})
	}
	if packets > 0 {
		begin(from, Config{Packets: packets, Peers: []netip.AddrPort{netip.AddrPortFrom(at, dataPort)}})
		begin(to, Config{Packets: packets, Ports: [2]int{dataPort, dataPort}})
	}
	debug.FreeOSMemory() // leftovers of the last run must not count here
	idle := busy(b)
	var doc struct {
		End struct {
			Received struct {
				Bytes float64 `json:"bytes"`
				Rate  float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	out := from.Must("iperf3", "-J", "-c", at.String(), "-p", fmt.Sprint(dataPort), "-t", fmt.Sprint(seconds))
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		b.Fatal(err)
	}
	c.gbps, c.busyPerGB = doc.End.Received.Rate/1e9, (busy(b)-idle)/(doc.End.Received.Bytes/1e9)
	iface := lab.DataDev
	if at.IsLoopback() {
		iface = "lo"
	}
	for _, r := range rings {
		rec, err := r.Stop(iface, netip.AddrPort{})
		if err != nil {
			b.Fatal(err)
		}
		c.reader += float64(rec.CPUNs) / 1e7 / seconds / float64(len(rings))
		c.packets += float64(rec.Packets) / seconds / float64(len(rings))
		c.dropped += float64(rec.Dropped) / seconds / float64(len(rings))
	}
	return c
}

// busy returns the time that the machine's CPUs were not idle, in seconds
// (proc_stat(5)), without processes with a nice value, which give way.
func busy(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		b.Fatal(err)
	}
	var v [8]float64 // user nice system idle iowait irq softirq steal, in hundredths
	line, _, _ := strings.Cut(string(text), "\n")
	if _, err := fmt.Sscanf(line, "cpu %g %g %g %g %g %g %g", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6]); err != nil {
		b.Fatal(err)
	}
	return (v[0] + v[2] + v[5] + v[6]) / 100
}

// sorted returns value of each run, in ascending order.
func sorted(runs []cost, value func(cost) float64) []float64 {
	var all []float64
	for _, r := range runs {
		all = append(all, value(r))
	}
	slices.Sort(all)
	return all
}

func median(runs []cost, value func(cost) float64) float64 {
	all := sorted(runs, value)
	return (all[len(all)/2] + all[(len(all)-1)/2]) / 2
}

// least returns the smallest CPU time: other programs on the machine only add
// to it.
func least(runs []cost, value func(cost) float64) float64 { return sorted(runs, value)[0] }
