package stat

import (
	"math"
	"testing"

	"thru/internal/unit"
)

// near compares a figure with a worked example that is printed with limited precision.
func near(t *testing.T, name string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %.6g, want %.6g", name, got, want)
	}
}

func TestWindows(t *testing.T) {
	bdp := BDPBytes(1e9, 580_000) // 1 Gb/s over 0.58 ms
	near(t, "BDP", bdp, 72_500, 1e-6)
	near(t, "even segments", WindowEven(72_500, 1460), 73_000, 0)
	near(t, "even segments, odd", WindowEven(74_000, 1460), 52*1460, 0)
	near(t, "even segments with timestamps", WindowEven(72_500, 1448), 52*1448, 0)
	near(t, "window rate", WindowRate(65_535, 100e6), 5.2428e6, 1)
	if !math.IsNaN(WindowEven(1, 0)) || !math.IsNaN(WindowRate(1, 0)) {
		t.Error("a window without a segment size, or a rate without a round trip, is a figure")
	}
}

// TestMaxGoodput is the table of checks of formula 4: percent of the line rate without and with timestamps, IPv6
// with them, and IPv4 with them and a VLAN tag.
func TestMaxGoodput(t *testing.T) {
	tests := []struct {
		name string
		link Link
		want float64
	}{
		{"1500 v4", Link{MTU: 1500}, 94.928},
		{"1500 v4 TS", Link{MTU: 1500, Timestamps: true}, 94.148},
		{"1500 v6 TS", Link{MTU: 1500, IPv6: true, Timestamps: true}, 92.848},
		{"1500 v4 TS VLAN", Link{MTU: 1500, Timestamps: true, VLANs: 1}, 93.904},
		{"9000 v4", Link{MTU: 9000}, 99.137},
		{"9000 v4 TS", Link{MTU: 9000, Timestamps: true}, 99.004},
		{"9000 v6 TS", Link{MTU: 9000, IPv6: true, Timestamps: true}, 98.783},
		{"9000 v4 TS VLAN", Link{MTU: 9000, Timestamps: true, VLANs: 1}, 98.960},
		{"VXLAN", Link{MTU: 1450, Timestamps: true, EncapBytes: 50}, 90.897},
		{"layer 2", Link{MTU: 1500, Timestamps: true, Layer: unit.L2}, 95.641},
	}
	for _, tt := range tests {
		tt.link.RateBps = 1e9
		near(t, tt.name, MaxGoodput(tt.link)/1e9*100, tt.want, 0.0006)
	}
	near(t, "1 Gb/s counted at layer 2", MaxGoodput(Link{RateBps: 1e9, MTU: 1500, Timestamps: true, Layer: unit.L2}), 956.4e6, 0.05e6)
	for _, l := range []Link{{}, {RateBps: 1e9}, {RateBps: 1e9, MTU: 40}, {RateBps: -1, MTU: 1500}} {
		if got := MaxGoodput(l); !math.IsNaN(got) {
			t.Errorf("MaxGoodput(%+v) = %g", l, got)
		}
	}
}

func TestRFC6349(t *testing.T) {
	near(t, "TCP efficiency", Efficiency(102_000, 2_000), 98.04, 0.005)
	near(t, "buffer delay", BufferDelay(32e6, 25e6), 28, 1e-9)
	near(t, "transfer time ratio", TransferTimeRatio(12, 10), 1.2, 1e-9)
	if !math.IsNaN(Efficiency(0, 0)) {
		t.Error("nothing sent has an efficiency")
	}
}

func TestMathis(t *testing.T) {
	// 1460 bytes over 100 ms with one loss in 10 000: 116.8 kb/s * 1.22 * 100.
	near(t, "Mathis", Mathis(1460, 100e6, 1e-4), 14.25e6, 0.01e6)
	near(t, "CUBIC as RFC 9438, section 5.2 has it", Cubic(1460, 100e6, 1e-5), 1054*1460*8/0.1, 0.2e6)
}

func TestCPUCost(t *testing.T) {
	cores := CoresUsed([]float64{90, 70, 20, 0}, []float64{10, 0, 0, 0})
	near(t, "cores", cores, 1.7, 1e-9)
	near(t, "percent per Gb/s", PctPerGbps(cores, 10e9), 17, 1e-9)
	near(t, "cores of a host busier before", CoresUsed([]float64{5}, []float64{20}), 0, 0)
}

func TestShares(t *testing.T) {
	near(t, "Jain, equal", Jain([]float64{5, 5, 5, 5}), 1, 1e-9)
	near(t, "Jain, one has all", Jain([]float64{8, 0, 0, 0}), 0.25, 1e-9)
	near(t, "Jain, 1 2 3", Jain([]float64{1, 2, 3}), 36.0/42, 1e-9)
	near(t, "scaling", Scaling(30e9, 10e9), 3, 1e-9)
	near(t, "mean packet", MeanPacket(15e6, 1e4), 1500, 1e-9)
	near(t, "ladder loss", LadderLoss(40e9, 30e9), 0.25, 1e-9)
	if !math.IsNaN(Jain(nil)) || !math.IsNaN(Jain([]float64{0, 0})) {
		t.Error("no shares are fair or unfair")
	}
	if !GeneratorLimited(12e9, 9.4e9) || GeneratorLimited(12.3e9, 9.4e9) {
		t.Error("the generator's bar is not at 1.3 times the ceiling")
	}
}
