package report

import (
	"strings"
	"testing"
)

// TestHandshakesThatDiffer: different handshakes have separate lines, with the number of connections if not
// all have it.
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

// TestCapturedBothDirections: each direction is named, and together they have no more charts than one.
func TestCapturedBothDirections(t *testing.T) {
	d := capturedTest()
	back := capturedTest().Cells[0]
	back.From, back.To = "b", "local"
	back.Runs[0].Flows[0].From, back.Runs[0].Flows[0].To = "b", "local"
	d.Cells = append(d.Cells, back)
	printed := textFace(t, d, TextOptions{})
	if !strings.Contains(printed, "Packet analysis, local -> b\n") || !strings.Contains(printed, "Packet analysis, b -> local\n") {
		t.Error("the directions are not named")
	}
	if n := strings.Count(pageOf(t, d), ` over time</title>`); n != 6 {
		t.Errorf("%d drawings over time, want 4 of connections and 2 of cells", n)
	}
}

// TestSmallConnectionsStandBack: the control connection of a test is not among its data connections.
func TestSmallConnectionsStandBack(t *testing.T) {
	d := capturedTest()
	conns := d.Cells[0].Runs[0].Flows[0].Captures[0].Conns
	conns[2].Data.New, conns[3].Data.New = 164, 0
	if printed := textFace(t, d, TextOptions{}); strings.Contains(printed, ":40116") || !strings.Contains(printed, "and 2 more in the JSON document\n") {
		t.Errorf("small connections are shown:\n%s", printed)
	}
}
