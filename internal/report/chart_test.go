package report

import (
	"strings"
	"testing"

	"thru/internal/report/result"
)

// TestChartsOfOnePoint: a measurement of one second has no time line and no map, and a ladder with one number
// of streams no chart, since the figures show the same.
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
