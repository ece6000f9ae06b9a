package stat

import (
	"strings"
	"testing"

	"thru/internal/measure"
)

// A verdict is inconclusive if the hosts could not have shown the rate, or the interval of an unstable rate
// contains the bar; an independent fault fails nevertheless.
func TestInconclusive(t *testing.T) {
	cell := func(share, busy float64, stable bool, low, high float64) measure.Cell {
		base := &measure.HostSpan{CPUs: []measure.CPU{{User: busy}, {System: busy}}}
		return measure.Cell{
			From: "a", To: "b", Ceiling: &measure.Ceiling{Bps: 10e9, SharePct: share},
			Goodput: &measure.Figure{Value: share * 1e8, Stable: &stable, CI95Low: &low, CI95High: &high},
			Runs: []measure.Run{{Flows: []measure.Flow{{From: "a", To: "b", Sender: &measure.Evidence{EndPoint: "a"},
				Receiver: &measure.Evidence{EndPoint: "b", Base: base}}}}},
		}
	}
	lossy := cell(97, 95, true, 9.6e9, 9.8e9)
	lossy.Datagrams = &measure.DatagramFigures{LossPct: 5}
	partial := cell(50, 0, true, 5e9, 5e9)
	partial.Runs[0].Partial = true
	for name, tt := range map[string]struct {
		cell   measure.Cell
		want   string // pass, fail, open
		reason string
	}{
		"idle hosts":                    {cell(60, 10, true, 5.9e9, 6.1e9), "fail", "carries 60.00%"},
		"a busy host":                   {cell(60, 95, true, 5.9e9, 6.1e9), "open", "b was busy without the test"},
		"a busy host, and all the same": {cell(97, 95, true, 9.6e9, 9.8e9), "pass", "carries 97.00%"},
		"a busy host loses datagrams":   {lossy, "open", "5%"},
		"unstable across the bar":       {cell(94, 0, false, 9e9, 9.8e9), "open", "between 9.00 Gb/s and 9.80 Gb/s"},
		"unstable, and enough by luck":  {cell(96, 0, false, 9e9, 9.9e9), "open", "not stable"},
		"unstable, and below":           {cell(60, 0, false, 5e9, 7e9), "fail", ""},
		"unstable, and above":           {cell(98, 0, false, 9.6e9, 9.9e9), "pass", ""},
		"more than a link can carry":    {cell(120, 95, true, 11e9, 13e9), "fail", "wrong"},
		"not to its end":                {partial, "open", "not measured completely"},
	} {
		v := Verdict([]measure.Cell{tt.cell})
		got := map[bool]string{true: "pass", false: "fail"}[v.Pass]
		if v.Inconclusive {
			got = "open"
		}
		if got != tt.want || !strings.Contains(v.Reason, tt.reason) || v.Inconclusive && (v.Pass || v.Do == "") {
			t.Errorf("%s: %s, want %s: %+v", name, got, tt.want, v)
		}
	}
	fails, open := cell(60, 10, true, 5.9e9, 6.1e9), cell(50, 95, true, 4.9e9, 5.1e9)
	if v := Verdict([]measure.Cell{open, fails}); v.Inconclusive || v.Share != 60 {
		t.Errorf("a flow that fails beside one that cannot tell: %+v", v)
	}
}

// All rungs with a stated rate have to be judged.
func TestLadderJudgesAll(t *testing.T) {
	lost := rungCell("across", "a", "c", "", 0, 0, 0)
	lost.Goodput, lost.Error = nil, &measure.Error{Message: "no route"}
	for name, tt := range map[string]struct {
		rates         map[string]int64
		pass, open    bool
		judged, rungs int
	}{
		"one of two was stated":  {map[string]int64{"same-lan": 10e9}, true, false, 1, 2},
		"both, and one was lost": {map[string]int64{"same-lan": 10e9, "across": 10e9}, false, true, 1, 2},
	} {
		d := &measure.Document{Cells: []measure.Cell{rungCell("localhost", "a", "a", "", 40, 0, 0), rungCell("same-lan", "a", "b", "", 9.4, 10, 1500), lost}}
		Ladder(d, func(rung string) Link { return Link{RateBps: tt.rates[rung]} })
		v := d.Verdict
		if v == nil || v.Pass != tt.pass || v.Inconclusive != tt.open || v.Judged != tt.judged || v.Rungs != tt.rungs {
			t.Errorf("%s: %+v", name, v)
		}
	}
	d := &measure.Document{Cells: []measure.Cell{rungCell("low", "a", "a", "", 11, 0, 0), rungCell("high", "a", "b", "", 8, 10, 1500)}}
	if Ladder(d, nil); !d.Verdict.Inconclusive || !strings.Contains(d.Verdict.Reason, "1.3 times are needed") || d.Ladder.Rungs[1].Verdict.Do == "" {
		t.Errorf("a generator that is short: %+v", d.Verdict)
	}
}

// A target missed only by busy hosts is inconclusive.
func TestGoalsOfBusyHosts(t *testing.T) {
	d := goalDocument()
	all := []Goal{{Of: OfTotal, Figure: FigureGoodput, Wanted: 8.5e9}}
	if Goals(d, all); d.Verdict.Inconclusive || d.Verdict.Pass {
		t.Fatalf("idle hosts: %+v", d.Verdict)
	}
	busy := &measure.HostSpan{CPUs: []measure.CPU{{User: 99}}}
	c := &d.Cells[0]
	c.Runs = []measure.Run{{Flows: []measure.Flow{{From: c.From, To: c.To, Sender: &measure.Evidence{EndPoint: "a", Base: busy}}}}}
	if Goals(d, all); !d.Verdict.Inconclusive || !strings.Contains(d.Verdict.Reason, "a was busy") {
		t.Errorf("a busy host: %+v", d.Verdict)
	}
}
