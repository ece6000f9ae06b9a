package report

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
	"thru/internal/report/ladder"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// TestLadderPageIsShort: the page of a ladder has less than 4000 words: a row for each cell, and all figures
// of the judged one. The busy ladder, which was measured next to other work, has three causes and ten gates:
// it leaves room for more.
func TestLadderPageIsShort(t *testing.T) {
	for name, d := range map[string]*measure.Document{"ladder": goldenDocuments()["ladder"], "rungs": goldenDocuments()["rungs"], "busy": busyLadder(t)} {
		page := withoutStyle(pageOf(t, d))
		_, page, _ = strings.Cut(page, "<body>")
		if n := len(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " "))); n > 3800 {
			t.Errorf("%s: %d words", name, n)
		}
		for _, l := range ladder.All(d) {
			for _, r := range l.Rungs {
				if c := r.Source; c.RTTIdle != nil && c.RTTLoaded != nil && !strings.Contains(page, "<td>"+unit.Duration(*c.RTTIdle)+"</td><td>"+unit.Duration(*c.RTTLoaded)+"</td>") {
					t.Errorf("%s: no row of %s with %d streams", name, l.Path, c.Streams)
				}
			}
		}
		if n := strings.Count(page, "<caption>Streams of "); n > 1 {
			t.Errorf("%s: the streams of %d cells", name, n)
		}
	}
}

// busyLadder is a ladder of three rungs on a host whose CPUs another program used, without samples and the
// parts that the rows of its cells do not show.
func busyLadder(t *testing.T) *measure.Document {
	t.Helper()
	f, err := os.Open("testdata/busy-ladder.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	d := &measure.Document{}
	if err := json.NewDecoder(z).Decode(d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestSaidOnceOnPage: causes ruled out for one reason share a row, paths of a ladder are side by side, and a
// ladder shows only the interfaces of its paths.
func TestSaidOnceOnPage(t *testing.T) {
	d := busyLadder(t)
	page := pageOf(t, d)
	for text, want := range map[string]int{"no link lies between the ends": 1, "<caption>path ": 0, `<td colspan="2">lo (MTU 65536), both directions</td>`: 1,
		"<caption>eth0 at ": 0, "<caption>lo at local": 1, "lasts until the next boot": 1, "thru join NAME": 1} {
		if n := strings.Count(page, text); n != want {
			t.Errorf("%q occurs %d times, want %d", text, n, want)
		}
	}
	for _, cause := range newView(d).Judged[0].RuledOut {
		if !strings.Contains(page, cause.Name) {
			t.Errorf("%s is not on the page", cause.Name)
		}
	}
}

// TestRangeColumn: a ladder of single seconds has no column of ranges.
func TestRangeColumn(t *testing.T) {
	d := goldenDocuments()["ladder"]
	const column = ">range</th>"
	if !strings.Contains(pageOf(t, d), column) {
		t.Error("no column of ranges")
	}
	for i := range d.Cells {
		if g := d.Cells[i].Goodput; g != nil {
			g.Low, g.High, g.CI95Low, g.CI95High, g.Runs = g.Value, g.Value, nil, nil, 1
		}
	}
	if strings.Contains(pageOf(t, d), column) {
		t.Error("an empty column")
	}
}

// TestDrawnOnce: for two directions at once, with latency probes, the delay and the cores of each host are
// drawn once.
func TestDrawnOnce(t *testing.T) {
	d := underLoadTest()
	back := d.Cells[1]
	back.From, back.To = back.To, back.From
	run := back.Runs[0]
	flow := run.Flows[0]
	flow.From, flow.To, flow.Sender, flow.Receiver = flow.To, flow.From, flow.Receiver, flow.Sender
	run.Flows = []measure.Flow{flow}
	back.Runs = []measure.Run{run}
	d.Cells = append(d.Cells, back)
	asker, _ := result.ShownFlow(&d.Cells[2])
	asker.Bins = slices.Clone(flow.Sender.Bins)
	for i := range asker.Bins {
		asker.Bins[i].LatencyMean, asker.Bins[i].LatencyMax = 4e6, 9e6
	}
	page := pageOf(t, d)
	for text, want := range map[string]int{"<figcaption>CPU use of each core at local": 1, "<figcaption>CPU use of each core at peer": 1, ">latency of the probe requests": 1} {
		if n := strings.Count(page, text); n != want {
			t.Errorf("%q occurs %d times, want %d", text, n, want)
		}
	}
}
