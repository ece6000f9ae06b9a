package series

import (
	"math"
	"strings"
	"testing"

	"thru/internal/doc/draw"
	"thru/internal/measure"
)

func TestTimeTicks(t *testing.T) {
	tests := []struct {
		least, greatest float64
		want            string
	}{
		{4_090, 9_400_000, "1 µs|10 µs|100 µs|1 ms|10 ms"},
		{200_000, 900_000, "100 µs|200 µs|500 µs|1 ms"},
		{1000, 1000, "1 µs|2 µs|5 µs|10 µs"},
		{-7, 0, "1 ns|2 ns|5 ns|10 ns"},
	}
	for _, tt := range tests {
		var got []string
		for _, x := range timeTicks(tt.least, tt.greatest) {
			got = append(got, strings.ReplaceAll(x.Label, "\u202f", " "))
		}
		if strings.Join(got, "|") != tt.want {
			t.Errorf("%g to %g: %q, want %q", tt.least, tt.greatest, got, tt.want)
		}
	}
}

// TestOverlap: the receiver's line lies under the sender's and is wider, so that both are visible if they
// coincide; a counter that stays zero has no panel.
func TestOverlap(t *testing.T) {
	k := timeline{cell: &measure.Cell{From: "a", To: "b", Protocol: measure.TCP}, seconds: 2, rateMax: 1e9,
		sent: []draw.Point{{X: 0.5, Y: 1e9}, {X: 1.5, Y: 1e9}}, retransmits: []draw.Point{{X: 0.5, Y: 0}, {X: 1.5, Y: 0}}}
	k.received = k.sent
	c := k.chart(0, k)
	below, above := strings.Index(string(c.SVG), `class="line c1 wide"`), strings.Index(string(c.SVG), `class="line c0"`)
	if below < 0 || above < below {
		t.Errorf("receiver at %d, sender at %d", below, above)
	}
	if strings.Contains(string(c.SVG), ">retransmitted") || !strings.HasSuffix(c.Caption, "No retransmissions.") {
		t.Errorf("%s\n%s", c.Caption, c.SVG)
	}
	k.retransmits[1].Y, k.re = 7, 7
	if c := k.chart(0, k); !strings.Contains(string(c.SVG), ">retransmitted") || strings.Contains(c.Caption, "No ") {
		t.Errorf("%s\n%s", c.Caption, c.SVG)
	}
}

// TestHeat: a row for each core and each queue, in order, up to a limit.
func TestHeat(t *testing.T) {
	e := &measure.Evidence{EndPoint: "b", MeasuredNs: 3e9}
	for i := range 3 {
		wave := math.Sin(float64(i)*1.7 + 0.4)
		h := measure.HostSpan{At: int64(i) * 1e9, Span: 1e9, CPUs: []measure.CPU{{Core: 0, User: 1, System: 20 * (1 + 0.1*wave), SoftIRQ: 8, Idle: 71}, {Core: 1, User: 2, System: 80 * (1 + 0.04*wave), SoftIRQ: 14, Idle: 4}}}
		h.NIC = &measure.NICSpan{Driver: map[string]uint64{"rx_queue_1_packets": 900, "rx_queue_0_packets": 100, "tx-1.packets": 50, "rx_queue_x_packets": 1, "rx_queue_0_drops": 7}}
		h.IRQs = []measure.IRQSpan{{Core: 3, Count: 12000}}
		e.PerSec = append(e.PerSec, h)
	}
	cores, queues, irqs := coreHeat(e, "b"), queueHeat(e, "b"), interruptHeat(e, "b")
	for _, tt := range []struct {
		h    heatmap
		want string
	}{
		{cores, "CPU 0 29% on average, max 31%; CPU 1 97% on average, max 99% over 3 s"},
		{queues, "rx 0 100/s on average, max 100/s; rx 1 900/s on average, max 900/s; tx 1 50.0/s on average, max 50.0/s over 3 s"},
		{irqs, "CPU 3 12.0k/s on average, max 12.0k/s over 3 s"},
	} {
		if got := tt.h.words(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	if queues.level(900) != heatLevels || queues.level(math.NaN()) != 0 || queues.level(math.Inf(1)) != heatLevels || cores.level(-1) != 0 {
		t.Error("the levels are wrong")
	}
	e.PerSec = nil
	for i := range 500 {
		h := measure.HostSpan{At: int64(i) * 1e9, Span: 1e9}
		for c := range 200 {
			h.CPUs = append(h.CPUs, measure.CPU{Core: c, User: float64(c) / 2})
		}
		e.PerSec = append(e.PerSec, h)
	}
	h := coreHeat(e, "b")
	if len(h.Rows) != maxHeatRows || h.Rows[0].Name != "CPU 168" || len(h.Rows[0].Values) > maxHeatColumns || !strings.Contains(h.More, "32 of 200") {
		t.Errorf("%d rows from %s, %d columns%s", len(h.Rows), h.Rows[0].Name, len(h.Rows[0].Values), h.More)
	}
}
