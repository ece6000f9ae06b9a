package report

import (
	"math"
	"strings"
	"testing"

	"thru/internal/measure"
)

func TestProofNamesItsPackets(t *testing.T) {
	for want, p := range map[string]measure.Proof{
		"zero_windows 3, packets 4012, 4912, 5812 of a.pcap: of 8 s": {Counter: "zero_windows", Value: 3, Packets: []int64{4012, 4912, 5812}, Capture: "/var/tmp/a.pcap", Note: "of 8 s"},
		"rst 1, packet 7":                         {Counter: "rst", Value: 1, Packets: []int64{7}},
		"lost 9, packets 1, 2, 3, 4, 5, ... of b": {Counter: "lost", Value: 9, Packets: []int64{1, 2, 3, 4, 5, 6}, Capture: "b"},
		"lost 0": {Counter: "lost", Capture: "b"},
	} {
		if got := proofIn(&p, barWords(nil)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPlacesOfAFlow(t *testing.T) {
	at := func(places ...string) (all []measure.Capture) {
		for _, p := range places {
			all = append(all, measure.Capture{Place: p})
		}
		return all
	}
	for _, tt := range []struct {
		name      string
		f         measure.Flow
		near, far int // index; -1: none
	}{
		{"one", measure.Flow{Captures: at(measure.AtReceiver)}, 0, -1},
		{"two of no known place", measure.Flow{Captures: at("", "")}, 0, 1},
		{"the sender's second", measure.Flow{Captures: at("", measure.AtSender)}, 1, 0},
		{"the receiver's first", measure.Flow{Captures: at(measure.AtReceiver, "")}, 1, 0},
		{"as the crossing says", measure.Flow{Captures: at("", "", ""), Crossing: &measure.Crossing{Left: 2, Right: 1}}, 2, 1},
		{"a crossing of nowhere", measure.Flow{Captures: at("", ""), Crossing: &measure.Crossing{Left: 9, Right: 1}}, 0, -1},
		{"a crossing with itself", measure.Flow{Captures: at("", ""), Crossing: &measure.Crossing{Left: 1, Right: 1}}, 1, -1},
	} {
		index := func(c *measure.Capture) int {
			for i := range tt.f.Captures {
				if c == &tt.f.Captures[i] {
					return i
				}
			}
			return -1
		}
		near, far := placesOf(&tt.f)
		if index(near) != tt.near || index(far) != tt.far {
			t.Errorf("%s: %d and %d, want %d and %d", tt.name, index(near), index(far), tt.near, tt.far)
		}
	}
}

// TestHandshakesThatDiffer: each has its own line, and one that not all
// connections share says so.
func TestHandshakesThatDiffer(t *testing.T) {
	d := capturedTest()
	conns := d.Cells[0].Runs[0].Flows[0].Captures[0].Conns
	for i := range conns {
		conns[i].SYNACK.HasScale = new(false)
	}
	conns[3].SYN.MSS, conns[0].FromOpened, conns[0].SYNACK.Again.N = new(1400), new(false), 1
	printed := textFace(t, d, TextOptions{Width: 200})
	for _, want := range []string{
		"  SYN           192.0.2.2:5202: MSS 1460, window scale 7, SACK, timestamps, no ECN; the same in 3 of 4 connections\n",
		"  SYN-ACK       192.0.2.1:40112: MSS 1460, no window scale, SACK, timestamps, no ECN, sent 2 times; the same in 1 of 4 connections\n",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("no %q in\n%s", want, printed)
		}
	}
}

// TestCapturedBothWays: each way is named, and together they have no more charts than one.
func TestCapturedBothWays(t *testing.T) {
	d := capturedTest()
	back := capturedTest().Cells[0]
	back.From, back.To = "b", "local"
	back.Runs[0].Flows[0].From, back.Runs[0].Flows[0].To = "b", "local"
	d.Cells = append(d.Cells, back)
	printed := textFace(t, d, TextOptions{})
	if !strings.Contains(printed, "what the packets show, local -> b\n") || !strings.Contains(printed, "what the packets show, b -> local\n") {
		t.Error("the ways are not named")
	}
	if n := strings.Count(pageOf(t, d), ` over time</title>`); n != maxConns+2 {
		t.Errorf("%d drawings over time, want %d of connections and 2 of cells", n, maxConns)
	}
}

// TestSmallConnectionsStandBack: the connection that controls a test is not among those of its data.
func TestSmallConnectionsStandBack(t *testing.T) {
	d := capturedTest()
	conns := d.Cells[0].Runs[0].Flows[0].Captures[0].Conns
	conns[2].Data.New, conns[3].Data.New = 164, 0
	if printed := textFace(t, d, TextOptions{}); strings.Contains(printed, ":40116") || !strings.Contains(printed, "and 2 more in the JSON document\n") {
		t.Errorf("small connections are shown:\n%s", printed)
	}
}

func TestSeriesHaveNoValueWhereNothingWasSeen(t *testing.T) {
	k := trace{step: 2}
	nan := math.NaN()
	got := k.series([]int64{-1, 10, 20, -1, 30, -1, 40, 900, 50, 60}, 0.5, 10, 50)
	want := []float64{nan, 1, 2, nan, 3, nan, 4, nan, 5, 6}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i, y := range want {
		if got[i].Y != y && !(math.IsNaN(y) && math.IsNaN(got[i].Y)) {
			t.Errorf("%d: %v, want %v", i, got[i], y)
		}
	}
}
