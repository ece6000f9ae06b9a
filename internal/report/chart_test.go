package report

import (
	"strings"
	"testing"

	"thru/internal/doc/draw"
	"thru/internal/measure"
	"thru/internal/report/result"
)

// TestChartsOfOnePoint: what was measured for one second has no course and no map, and
// a ladder of one number of streams no chart: the figures say as much.
func TestChartsOfOnePoint(t *testing.T) {
	d := goldenDocuments()["verdict"]
	for i := range d.Cells {
		for _, e := range result.Evidences(&d.Cells[i]) {
			e.PerSec, e.Bins = e.PerSec[:min(len(e.PerSec), 1)], e.Bins[:min(len(e.Bins), 1)]
		}
	}
	page := pageOf(t, d)
	for _, title := range []string{"Over time", "Cores and queues"} {
		if strings.Contains(page, title) {
			t.Errorf("one second has %q", title)
		}
		if !strings.Contains(pageOf(t, goldenDocuments()["verdict"]), title) {
			t.Errorf("several seconds have no %q", title)
		}
	}
}

// TestOverlap: the receiver's line lies below the sender's, and is so wide that both
// show where they have one course; what never happened has no panel.
func TestOverlap(t *testing.T) {
	k := course{cell: &measure.Cell{From: "a", To: "b", Protocol: measure.TCP}, seconds: 2, rateMax: 1e9,
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
