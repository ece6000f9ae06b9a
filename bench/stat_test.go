//go:build linux

package bench

import (
	"math"
	"slices"
	"testing"

	"thru/internal/stat"
)

// estimate is a ratio with its 95% interval; for fewer than six pairs, their range.
type estimate struct{ ratio, low, high float64 }

// ratioOf estimates the ratio a/b from pairs of runs of the same rounds, by the Hodges-Lehmann estimate of
// their logarithms: it does not assume a normal distribution, and a single disturbed round changes it little.
func ratioOf(a, b []float64) (estimate, bool) {
	var logs []float64
	for i := range min(len(a), len(b)) {
		if a[i] > 0 && b[i] > 0 { // NaN is a run without a figure
			logs = append(logs, math.Log(a[i]/b[i]))
		}
	}
	if len(logs) == 0 {
		return estimate{}, false
	}
	ratio, low, high, found := stat.HodgesLehmann(logs, 0.95)
	if !found {
		low, high = slices.Min(logs), slices.Max(logs)
	}
	return estimate{math.Exp(ratio), math.Exp(low), math.Exp(high)}, true
}

// median ignores NaN; it returns NaN for no values.
func median(xs []float64) float64 {
	return stat.Median(slices.DeleteFunc(slices.Clone(xs), math.IsNaN))
}

func TestRatioOf(t *testing.T) {
	a := []float64{10, 12, 14, math.NaN(), 10, 11, 13, 400}
	b := []float64{5, 6, 7, 8, 5, 5.5, 6.5, 10}
	e, ok := ratioOf(a, b)
	if !ok || math.Abs(e.ratio-2) > 1e-9 || math.Abs(e.low-2) > 1e-9 {
		t.Errorf("got %+v, want 2 of 7 pairs, whatever the disturbed one says", e)
	}
	if e, ok := ratioOf([]float64{2, 8, 4}, []float64{1, 1, 1}); !ok || math.Abs(e.low-2) > 1e-9 || math.Abs(e.high-8) > 1e-9 {
		t.Errorf("got %+v, want the range of too few pairs", e)
	}
	if _, ok := ratioOf([]float64{math.NaN()}, []float64{1}); ok {
		t.Error("a ratio of nothing")
	}
}

func TestShortfall(t *testing.T) {
	at := func(ratio, low, high float64) estimate { return estimate{ratio: ratio, low: low, high: high} }
	for _, tt := range []struct {
		name string
		c    claim
		e    estimate
		met  bool
	}{
		{"beyond", claim{figure, bestPeer, 1.5}, at(1.6, 1.4, 1.7), true},
		{"below, though the interval reaches", claim{figure, bestPeer, 1.5}, at(1.4, 1.3, 1.6), false},
		{"parity within the interval", claim{figure, bestPeer, 1}, at(0.99, 0.97, 1.01), true},
		{"no parity", claim{figure, bestPeer, 1}, at(0.98, 0.97, 0.99), false},
		{"latency within the interval", claim{p99, netperfName, 1}, at(1.02, 0.99, 1.05), true},
		{"latency worse", claim{p99, netperfName, 1}, at(1.02, 1.01, 1.05), false},
		{"cost a little higher", claim{cost, everyPeer, 1}, at(1.01, 0.9, 1.1), false},
	} {
		if _, met := shortfall(tt.c, tt.e); met != tt.met {
			t.Errorf("%s: met %v", tt.name, met)
		}
	}
}

func TestReadPeers(t *testing.T) {
	tcp, udp := shape{kind: tcpCopy, streams: 2, length: 1000}, shape{kind: udpBatch, streams: 1, length: 1000}
	lines := "1,a,2,b,5001,1,0.0-1.0,500,4000\n1,a,3,b,5001,2,0.0-1.0,500,4000\n1,a,0,b,5001,-1,0.0-1.0,1000,8000\n"
	if r, err := readIperf2(lines, tcp); err != nil || r.figure != 8000 {
		t.Errorf("iperf: %v, %v", r.figure, err)
	}
	if _, err := readIperf2("", tcp); err == nil {
		t.Error("iperf: no line is no error")
	}
	out := `{"end":{"sum":{"seconds":2,"packets":1000,"lost_packets":100},"sum_received":{"bits_per_second":7}}}`
	if r, err := readIperf3([]string{out, out}, udp); err != nil || r.figure != 900 {
		t.Errorf("iperf3: %v, %v", r.figure, err)
	}
	if _, err := readIperf3([]string{`{"error":"refused"}`}, udp); err == nil {
		t.Error("iperf3: its error is no error")
	}
	if v := number("a=1\nthroughput=2.5\n", "throughput="); v != 2.5 {
		t.Errorf("number: %v", v)
	}
	if atLeast("3.9", 3, 17) || !atLeast("3.21+", 3, 20) || !atLeast("4.0", 3, 20) {
		t.Error("versions are not compared as numbers")
	}
}
