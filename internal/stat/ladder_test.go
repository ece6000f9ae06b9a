package stat

import (
	"strings"
	"testing"

	"thru/internal/measure"
)

// rungCell is a cell of a rung with this rate, over a link of this speed and MTU; 0 is a link of unknown rate.
func rungCell(rung, from, to, label string, gbps, link float64, mtu int) measure.Cell {
	c := measure.Cell{From: from, To: to, Rung: rung, Label: label, Protocol: measure.TCP, Streams: 1}
	c.Goodput = &measure.Figure{Value: gbps * 1e9, Low: gbps * 0.99e9, High: gbps * 1.01e9, Runs: 1}
	c.Runs = []measure.Run{{Goodput: new(gbps * 1e9)}}
	if link > 0 {
		most := MaxGoodput(Link{RateBps: int64(link * 1e9), MTU: mtu, Timestamps: true})
		c.Ceiling = &measure.Ceiling{Bps: most, LinkBps: int64(link * 1e9), LinkFrom: stated, LinkLayer: "l1", MTU: mtu, SharePct: 100 * gbps * 1e9 / most}
	}
	return c
}

// The four rungs of the checklist (B-03 to B-06), with their losses and the figure that is more than an MTU of
// 1500 allows (B-20).
func TestLadder(t *testing.T) {
	failed := rungCell("LAN", "a", "c", "1 stream", 0, 0, 0)
	failed.Goodput, failed.Error = nil, &measure.Error{Message: "no route"}
	cells := []measure.Cell{
		rungCell("localhost", "a", "a", "1 stream", 20, 10, 1500), // a stated link does not apply to it
		rungCell("localhost", "a", "a", "4 streams", 35, 10, 1500),
		rungCell("virtual switch", "a", "b", "4 streams", 28, 0, 0),
		failed,
		rungCell("interconnect", "a", "d", "8 streams", 9.74, 10, 1500),
		rungCell("interconnect", "a", "d", "1 stream", 5, 10, 1500),
	}
	d := &measure.Document{Cells: cells}
	Ladder(d, nil)
	if d.Ladder == nil || len(d.Ladder.Rungs) != 4 {
		t.Fatalf("%+v", d.Ladder)
	}
	rs := d.Ladder.Rungs
	if r := rs[0]; r.Name != "localhost" || r.Label != "4 streams" || r.Best.Value != 35e9 || r.Verdict != nil || r.LossPct != nil || r.Limited {
		t.Errorf("localhost %+v", r)
	}
	// Its link is not known: 35 is not 1.3 times the 28 that it carried.
	if r := rs[1]; !isAbout(r.LossPct, 20) || !isAbout(r.LostBps, 7e9) || !r.Limited || !strings.Contains(r.Why, "1.25 times what virtual switch carried") {
		t.Errorf("virtual switch %+v", r)
	}
	if r := rs[2]; r.Error != "no route" || r.Best != nil || r.LossPct != nil || r.Why != "" {
		t.Errorf("LAN %+v", r)
	}
	// Compared with the measured rung below; more than the ceiling of MTU 1500.
	r := rs[3]
	if !isAbout(r.LossPct, 100*(1-9.74/28)) || r.Limited || r.Verdict == nil || r.Verdict.Pass || !strings.Contains(r.Verdict.Reason, "more than a link of 10.0 Gb/s can carry at MTU 1500 (9.41 Gb/s)") {
		t.Errorf("interconnect %+v, verdict %+v", r, r.Verdict)
	}
	if d.Verdict == nil || d.Verdict.Pass {
		t.Errorf("verdict %+v", d.Verdict)
	}
}

func TestLadderLimited(t *testing.T) {
	for name, tt := range map[string]struct {
		below, above measure.Cell
		link         Link
		limited      bool
		why          string
		pass         string // "pass", "fail" or "" of no verdict
	}{
		"fast enough":        {rungCell("low", "a", "a", "", 13, 0, 0), rungCell("high", "a", "b", "", 9.4, 10, 1500), Link{}, false, "was fast enough", "pass"},
		"slow, link full":    {rungCell("low", "a", "a", "", 11, 0, 0), rungCell("high", "a", "b", "", 9.4, 10, 1500), Link{}, false, "the link is full", "pass"},
		"slow":               {rungCell("low", "a", "a", "", 11, 0, 0), rungCell("high", "a", "b", "", 8, 10, 1500), Link{}, true, "1.17 times the ceiling of 9.41 Gb/s: 1.3 times are needed", "fail"},
		"fast, link slow":    {rungCell("low", "a", "a", "", 40, 0, 0), rungCell("high", "a", "b", "", 8, 10, 1500), Link{}, false, "4.25 times the ceiling", "fail"},
		"jumbo":              {rungCell("low", "a", "a", "", 40, 0, 0), rungCell("high", "a", "b", "", 9.74, 10, 9000), Link{}, false, "the link is full", "pass"},
		"unknown, far below": {rungCell("low", "a", "a", "", 40, 0, 0), rungCell("high", "a", "b", "", 8, 0, 0), Link{}, false, "it is not known whether it would fill the link", ""},
		"unknown, near":      {rungCell("low", "a", "a", "", 10, 0, 0), rungCell("high", "a", "b", "", 8, 0, 0), Link{}, true, "(its link rate is not known)", ""},
		"rate without MTU":   {rungCell("low", "a", "a", "", 12, 0, 0), rungCell("high", "a", "b", "", 5, 0, 0), Link{RateBps: 10e9}, true, "1.20 times the ceiling of 10.0 Gb/s", ""},
	} {
		d := &measure.Document{Cells: []measure.Cell{tt.below, tt.above}}
		Ladder(d, func(rung string) Link {
			if rung == "high" {
				return tt.link
			}
			return Link{}
		})
		r := d.Ladder.Rungs[1]
		pass := ""
		if r.Verdict != nil {
			pass = map[bool]string{true: "pass", false: "fail"}[r.Verdict.Pass]
		}
		if r.Limited != tt.limited || !strings.Contains(r.Why, tt.why) || pass != tt.pass {
			t.Errorf("%s: limited %v, why %q, verdict %q", name, r.Limited, r.Why, pass)
		}
		if pass == "fail" && tt.limited && !strings.Contains(d.Verdict.Reason, "1.3 times are needed") {
			t.Errorf("%s: the verdict does not say that the generator is short: %q", name, d.Verdict.Reason)
		}
	}
}

// Several flows of one pair are one step of a rung; a rung that exceeds the one below is named.
func TestLadderGroups(t *testing.T) {
	d := planned(cellsOfParts(part{"a", "b", 0, []float64{1.9, 2.1}, 0}, part{"a", "b", 0, []float64{3, 3}, 0})...)
	low := rungCell("low", "a", "a", "1 stream", 4, 0, 0)
	low.Group = 1
	for i := range d.Cells {
		d.Cells[i].Rung, d.Cells[i].Axes = "high", []measure.Axis{{Name: "end_points", Value: "2"}}
	}
	d.Cells = append([]measure.Cell{low}, d.Cells...)
	Groups(d)
	Ladder(d, nil)
	r := d.Ladder.Rungs[1]
	if r.Best == nil || !isAbout(&r.Best.Value, 5e9) || r.Label != "end_points 2" || !isAbout(r.LossPct, -25) {
		t.Errorf("%+v", r)
	}
	if len(d.Ladder.Notes) != 1 || !strings.Contains(d.Ladder.Notes[0], "high carries more than its baseline low") {
		t.Errorf("notes %q", d.Ladder.Notes)
	}
}

// A document without rungs keeps its verdict and gets no ladder.
func TestNoLadder(t *testing.T) {
	d := &measure.Document{Cells: []measure.Cell{{From: "a", To: "b"}}, Verdict: &measure.Verdict{Pass: true}}
	Ladder(d, nil)
	if d.Ladder != nil || d.Verdict == nil {
		t.Errorf("%+v", d)
	}
}
