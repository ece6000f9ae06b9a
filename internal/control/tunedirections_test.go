package control

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"thru/internal/cause/knob"
	"thru/internal/measure"
	"thru/internal/plan"
)

// A change is judged in the direction that it acts on: a knob of a sender in what that
// host sends. One that may act on both is kept where either improves and the other does
// not lose.
func TestTuneJudgesTheRightDirection(t *testing.T) {
	for name, tt := range map[string]struct {
		end, knob string
		helps     string // the host whose data it helps
		costs     bool   // the other direction
		hand      bool   // a change of Try
		want      string
		pairs     int // of runs in the other direction, at least
	}{
		"a sender's, by hand":       {"peer", knob.TCPWmem, "peer", false, true, measure.Kept, 1},
		"a sender's":                {"peer", knob.TSO, "peer", false, false, measure.Kept, 1},
		"a receiver's":              {Local, knob.RXRing, "peer", false, false, measure.Kept, 1},
		"of the one that is slower": {Local, knob.Governor, Local, false, false, measure.Kept, 1},
		"of the one that is faster": {Local, knob.Governor, "peer", false, false, measure.Kept, 3},
		"one gains, one loses":      {Local, knob.Governor, "peer", true, false, measure.Undone, 1},
		"of neither":                {Local, knob.Governor, "nobody", false, false, measure.Undone, 3},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			w := newTestPair(map[hostKnob]string{at(tt.end, tt.knob): "old"}, func(set map[hostKnob]string, from string, _ int) float64 {
				rate := map[string]float64{Local: 5e8, "peer": 6e8}[from]
				switch isNew := set[at(tt.end, tt.knob)] == "new"; {
				case isNew && from == tt.helps:
					rate *= 1.6
				case isNew && tt.costs:
					rate *= 0.7
				}
				return rate
			})
			w.noise = func(string) float64 { return 1 + 0.01*random.NormFloat64() }
			how := Tuning{Budget: time.Hour, propose: proposing()}
			if tt.hand {
				how.Try = []measure.Setting{{EndPoint: tt.end, Knob: tt.knob, Value: "new"}}
			} else {
				how.propose = proposing(change(tt.end, tt.knob, "new", ""))
			}
			doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, how)
			if err != nil || len(doc.Tuning.Attempts) != 1 {
				t.Fatalf("%v: %+v", err, doc.Tuning.Attempts)
			}
			a := doc.Tuning.Attempts[0]
			stands := w.now()[at(tt.end, tt.knob)] == "new"
			if a.Outcome != tt.want || stands != (tt.want == measure.Kept) {
				t.Fatalf("%s (%s), %v", a.Outcome, a.Reason, w.now())
			}
			if a.Outcome == measure.Kept && !strings.HasPrefix(a.Comparison.What, tt.helps+" ->") {
				t.Errorf("it was judged by %s", a.Comparison.What)
			}
			if n := 0; a.OtherDirection != nil {
				if n = a.OtherDirection.Pairs; n < tt.pairs || a.OtherDirection.What == a.Comparison.What {
					t.Errorf("%d pairs of %s, beside %s", n, a.OtherDirection.What, a.Comparison.What)
				}
			} else if !tt.costs {
				t.Error("nothing of the other direction")
			}
		})
	}
}

// Directions are ordered by their shares of a ceiling where both have one, else
// both by their rates.
func TestDirectionsOf(t *testing.T) {
	cell := func(bps, share float64) measure.Cell {
		c := measure.Cell{}
		if bps > 0 {
			c.Goodput = &measure.Figure{Value: bps}
		}
		if share > 0 {
			c.Ceiling = &measure.Ceiling{SharePct: share}
		}
		return c
	}
	step := func(from, to string) plan.Step {
		return plan.Step{Specs: []measure.Spec{{From: from, To: to}}}
	}
	buffer := func(from, to string, ids ...string) measure.Proposal {
		p := measure.Proposal{From: from, To: to}
		for _, id := range ids {
			k, end, _ := strings.Cut(id, "@")
			p.Settings = append(p.Settings, measure.Setting{Knob: k, EndPoint: end})
		}
		return p
	}
	for name, tt := range map[string]struct {
		there, back measure.Cell
		p           measure.Proposal
		want        string
	}{
		"by share":              {cell(9e9, 40), cell(1e9, 90), buffer("", "", "mtu@a"), "a -> b, b -> a"},
		"one ceiling":           {cell(9e9, 40), cell(1e9, 0), buffer("", "", "mtu@a"), "b -> a, a -> b"},
		"one has no figure":     {cell(9e9, 40), cell(0, 0), buffer("", "", "mtu@a"), "b -> a, a -> b"},
		"it has one":            {cell(1e9, 0), cell(9e9, 0), buffer("b", "a", "mtu@a"), "b -> a"},
		"of one that is not":    {cell(9e9, 0), cell(1e9, 0), buffer("a", "c", "mtu@a"), "b -> a"},
		"of the sender":         {cell(1e9, 0), cell(9e9, 0), buffer("", "", "tcp-wmem@b"), "b -> a"},
		"of both ends of it":    {cell(1e9, 0), cell(9e9, 0), buffer("", "", "tcp-rmem@a", "tcp-wmem@b"), "b -> a"},
		"of both directions":    {cell(1e9, 0), cell(9e9, 0), buffer("", "", "tcp-rmem@a", "tcp-rmem@b"), "a -> b, b -> a"},
		"beside one of neither": {cell(1e9, 0), cell(9e9, 0), buffer("", "", "tcp-rmem@a", "sack@a"), "a -> b, b -> a"},
		"an option of the test": {cell(1e9, 0), cell(9e9, 0), buffer("", ""), "a -> b, b -> a"},
	} {
		x := &tuning{doc: &measure.Document{Cells: []measure.Cell{tt.there, tt.back}}, directions: []*direction{{step: step("a", "b")}, {step: step("b", "a"), cell: 1}}}
		var got []string
		for _, w := range x.directionsOf(&tt.p) {
			got = append(got, w.name())
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: %q, want %s", name, got, tt.want)
		}
	}
}

// High variation between runs is reported: gains are missed there.
func TestTuneReportsAnUnsteadyPath(t *testing.T) {
	for noise, want := range map[float64]int{0.15: 1, 0.01: 0} {
		w := newTestPair(sick().set, func(map[hostKnob]string, string, int) float64 { return 1e9 })
		random := rand.New(rand.NewPCG(3, 4))
		w.noise = func(string) float64 { return 1 + noise*random.NormFloat64() }
		doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: time.Hour, propose: proposing(cures()...)})
		said := 0
		for _, s := range doc.Warnings {
			if strings.HasPrefix(s, "local -> peer: ") && strings.Contains(s, "runs with the same settings carried") {
				said++
			}
		}
		if err != nil || said != want {
			t.Errorf("noise %g: %v, %q", noise, err, doc.Warnings)
		}
	}
}
