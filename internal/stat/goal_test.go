package stat

import (
	"strings"
	"testing"

	"thru/internal/measure"
)

// goalDocument has a step of three pairs that share a stated link of 10 Gb/s,
// and one of a single pair.
func goalDocument() *measure.Document {
	four := []measure.Axis{{Name: "streams", Value: "4"}}
	d := planned(cellsOfParts(
		part{"a", "x", 0, []float64{3, 3}, 0}, part{"b", "y", 0, []float64{3, 3}, 0}, part{"c", "z", 0, []float64{2, 2}, 0},
		part{"a", "x", 0, []float64{9, 9}, 0},
	)...)
	for i := range d.Cells {
		c := &d.Cells[i]
		c.Axes = four
		c.RTTLoaded = new(int64(1e6 * (i + 1)))
		c.RFC6349 = &measure.RFC6349{EfficiencyPct: new(100 - float64(i)/10)}
		c.Ceiling = &measure.Ceiling{Bps: 9.4e9, LinkFrom: stated}
	}
	last := &d.Cells[3]
	last.Group, last.Axes, last.Rung = 1, []measure.Axis{{Name: "streams", Value: "8"}}, "LAN"
	Groups(d)
	return d
}

func TestGoals(t *testing.T) {
	eight := []measure.Axis{{Name: "streams", Value: "8"}}
	four := []measure.Axis{{Name: "streams", Value: "4"}}
	for name, tt := range map[string]struct {
		goal   Goal
		got    []float64 // of each target
		pass   []bool
		reason string // part of the last one's
	}{
		"aggregate":           {Goal{Of: OfTotal, Figure: FigureGoodput, Wanted: 8.5e9}, []float64{8e9, 9e9}, []bool{false, true}, ""},
		"of one axis":         {Goal{Of: OfTotal, Figure: FigureGoodput, Wanted: 8.5e9, Where: eight}, []float64{9e9}, []bool{true}, ""},
		"of a rung":           {Goal{Of: OfTotal, Figure: FigureGoodput, Wanted: 9.5e9, Rung: "LAN"}, []float64{9e9}, []bool{false}, ""},
		"share of the total":  {Goal{Of: OfTotal, Figure: FigureShare, Wanted: 95, Where: four}, []float64{100 * 8 / 9.4}, []bool{false}, "85.11% (the links of a -> x, with a ceiling of 9.40 Gb/s)"},
		"each pair":           {Goal{Of: OfPair, Figure: FigureGoodput, Wanted: 2.5e9, Where: four}, []float64{2e9}, []bool{false}, "c -> z: 2.00 Gb/s; 1 of 3 miss it"},
		"each host":           {Goal{Of: OfHost, Figure: FigureGoodput, Wanted: 2e9, Where: four}, []float64{2e9}, []bool{true}, "2.00 Gb/s"},
		"round trip of pairs": {Goal{Of: OfPair, Figure: FigureRTT, Wanted: 2e6, AtMost: true, Where: four}, []float64{3e6}, []bool{false}, "c -> z"},
		"round trip of all":   {Goal{Of: OfTotal, Figure: FigureRTT, Wanted: 5e6, AtMost: true}, []float64{3e6, 4e6}, []bool{true, true}, "4.00 ms"},
		"sent again":          {Goal{Of: OfTotal, Figure: FigureLoss, Wanted: 0.1, AtMost: true, Where: four}, []float64{0.2}, []bool{false}, "c -> z: 0.2%"},
		"fairness":            {Goal{Of: OfTotal, Figure: FigureFairness, Wanted: 0.9, Where: four}, []float64{64.0 / 3 / 22}, []bool{true}, ""},
		"fairness of one":     {Goal{Of: OfTotal, Figure: FigureFairness, Wanted: 0.9, Where: eight}, nil, []bool{false}, "nothing was measured that it applies to"},
		"of no step":          {Goal{Of: OfTotal, Figure: FigureGoodput, Wanted: 1, Where: []measure.Axis{{Name: "streams", Value: "16"}}}, nil, []bool{false}, "nothing was measured that it applies to"},
	} {
		d := goalDocument()
		Goals(d, []Goal{tt.goal})
		if len(d.Targets) != len(tt.pass) {
			t.Fatalf("%s: %+v", name, d.Targets)
		}
		all := true
		for i, x := range d.Targets {
			all = all && x.Pass
			if x.Pass != tt.pass[i] {
				t.Errorf("%s: target %d: %+v", name, i, x)
			}
			if (x.Got == nil) != (tt.got == nil) || x.Got != nil && !isAbout(x.Got, tt.got[i]) {
				t.Errorf("%s: target %d: got %v, %+v", name, i, x.Got, x)
			}
		}
		if r := d.Targets[len(d.Targets)-1].Reason; !strings.Contains(r, tt.reason) {
			t.Errorf("%s: reason %q, want %q in it", name, r, tt.reason)
		}
		if d.Verdict == nil || d.Verdict.Pass != all {
			t.Errorf("%s: verdict %+v", name, d.Verdict)
		}
		if x := d.Targets[len(d.Targets)-1]; tt.goal.Of == OfPair && !strings.HasPrefix(x.Reason, measure.PairName(x.From, x.To)+":") || tt.goal.Of == OfHost && x.From != "" {
			t.Errorf("%s: decided by the pair %q, %q: %s", name, x.From, x.To, x.Reason)
		}
	}
}

// A failed pair misses its target, and a share above the ceiling is no proof.
func TestGoalsNotMeasured(t *testing.T) {
	d := goalDocument()
	d.Cells[1].Runs[0].Error = &measure.Error{Message: "no route"}
	d.Cells[3].Ceiling.Bps = 1e9
	Groups(d)
	Goals(d, []Goal{
		{Of: OfPair, Figure: FigureGoodput, Wanted: 1e9},
		{Of: OfPair, Figure: FigureShare, Wanted: 95, Rung: "LAN"},
	})
	if x := d.Targets[0]; x.Pass || x.Got != nil || !strings.Contains(x.Reason, "b -> y: not measured: no route") {
		t.Errorf("%+v", x)
	}
	if x := d.Targets[2]; x.Pass || !strings.Contains(x.Reason, "an assumption") {
		t.Errorf("%+v", x)
	}
	if v := d.Verdict; v.Pass || !strings.HasPrefix(v.Reason, "2 of 3 targets are not met; the first is goodput of each pair, streams 4, wanted at least 1.00 Gb/s: b -> y: not measured") {
		t.Errorf("%+v", v)
	}
	Goals(d, []Goal{{Of: OfTotal, Figure: FigureGoodput, Wanted: 8.5e9, Where: d.Groups[0].Axes}})
	if v := d.Verdict; v.Reason != "the target is not met: aggregate, streams 4, wanted at least 8.50 Gb/s: 5.00 Gb/s" || d.Targets[0].Reason != "" {
		t.Errorf("%+v %+v", v, d.Targets[0])
	}
	d.Targets = make([]measure.Target, 3)
	before := &measure.Verdict{Pass: true}
	d.Verdict = before
	if Goals(d, nil); d.Verdict != before || len(d.Targets) != 3 {
		t.Error("without goals something changed")
	}
}
