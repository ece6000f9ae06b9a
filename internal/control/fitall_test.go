package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
)

// Unfit hosts and paths exclude their pairs, by name and before any traffic; the others
// are measured. With Force all are measured.
func TestGatesDisqualifyPairs(t *testing.T) { synctest.Test(t, gatesDisqualifyPairs) }

func gatesDisqualifyPairs(t *testing.T) {
	change := func(a *fleetAgent) {
		switch a.name {
		case "h001":
			a.quota = 0.2
		case "h003":
			a.vanish = "at-h004"
		}
	}
	bad := []string{"h000 h001", "h001 h002", "h003 h004"}
	for name, c := range map[string]struct {
		gates  string
		force  bool
		failed []string
		code   int
	}{
		"judged":         {"", false, bad, fault.Verdict},
		"off":            {plan.GatesOff, false, nil, fault.OK},
		"forced by plan": {plan.GatesForce, false, nil, fault.OK},
		"forced":         {"", true, nil, fault.OK},
	} {
		y, names, specs := ring(t, 6, change)
		p := atOnce(specs...)
		p.Gates = c.gates
		p.Repeat = plan.Repeat{Min: 2, Max: 2}
		q := &quiet{}
		q.step = func(int) {
			if !slices.Equal(q.failed, c.failed) {
				t.Errorf("%s: before the traffic the observer had heard of %q", name, q.failed)
			}
		}
		doc, err := (&Runner{Ends: y.connect(names...), Watch: q, Gating: &Gating{Force: c.force}}).Run(t.Context(), p)
		if fault.Code(err) != c.code || !slices.Equal(q.failed, c.failed) {
			t.Errorf("%s: error %v; the observer heard of %q", name, err, q.failed)
		}
		if forced := c.force || c.gates == plan.GatesForce; doc.Forced != forced || forced && len(doc.Warnings) < 2 {
			t.Errorf("%s: forced %v, %q", name, doc.Forced, doc.Warnings)
		}
		for _, x := range doc.Cells {
			if out := slices.Contains(c.failed, x.From+" "+x.To); (x.Goodput == nil) != out || out && !strings.Contains(x.Error.Message, "not fit") {
				t.Errorf("%s: %s to %s: %+v, %+v", name, x.From, x.To, x.Goodput, x.Error)
			}
		}
		if c.gates == plan.GatesOff {
			if !slices.ContainsFunc(doc.Missing, func(m measure.NotChecked) bool { return m.Fact == "gates" }) || len(doc.Paths) != 0 {
				t.Errorf("off: %+v", doc.Missing)
			}
		} else if len(doc.Paths) != 6 || y.all["h001"].asked("release") == 0 {
			t.Errorf("%s: %d paths", name, len(doc.Paths))
		}
	}
}

// Where no pair is left, the plan ends before its traffic with the gate's error.
func TestNothingIsFit(t *testing.T) {
	y, names, specs := ring(t, 3, func(a *fleetAgent) { a.quota = 0.1 })
	q := &quiet{}
	doc, err := (&Runner{Ends: y.connect(names...), Watch: q, Gating: &Gating{}}).Run(t.Context(), atOnce(specs...))
	if fault.Code(err) != fault.Verdict || !strings.Contains(err.Error(), "not fit for a measurement") || q.steps != 0 || doc.Error == nil {
		t.Errorf("%v, %d steps", err, q.steps)
	}
}

// With many pairs only some are probed, and the rest are counted with the reason.
func TestProbesAreBounded(t *testing.T) { synctest.Test(t, probesAreBounded) }

func probesAreBounded(t *testing.T) {
	y, names, specs := ring(t, 80, nil)
	doc, err := (&Runner{Ends: y.connect(names...), Watch: &quiet{}, Gating: &Gating{}}).Run(t.Context(), atOnce(specs...))
	if err != nil || len(doc.Paths) != mostProbes {
		t.Fatalf("%v, %d paths", err, len(doc.Paths))
	}
	if !slices.ContainsFunc(doc.Missing, func(m measure.NotChecked) bool {
		return m.Fact == "paths" && strings.HasPrefix(m.Why, "16 of 80 paths: ")
	}) {
		t.Errorf("%+v", doc.Missing)
	}
	if slices.ContainsFunc(doc.Gates, func(g measure.Gate) bool { return g.Status == measure.GatePass }) {
		t.Error("the gates that pass of 80 hosts are listed")
	}
}

// Pairs that are probed at the same time share no host.
func TestDisjoint(t *testing.T) {
	end := map[string]*EndPoint{}
	var open []*pairing
	for _, w := range []string{"ab", "bc", "cd", "ad", "ef", "ab"} {
		for _, n := range w {
			if end[string(n)] == nil {
				end[string(n)] = &EndPoint{Name: string(n)}
			}
		}
		open = append(open, &pairing{from: end[w[:1]], to: end[w[1:]]})
	}
	var rounds []string
	for len(open) > 0 {
		var now []*pairing
		now, open = disjoint(open)
		words := ""
		for _, x := range now {
			words += x.from.Name + x.to.Name + " "
		}
		rounds = append(rounds, strings.TrimSpace(words))
	}
	if got, want := fmt.Sprintf("%q", rounds), `["ab cd ef" "bc ad" "ab"]`; got != want {
		t.Errorf("rounds %s, want %s", got, want)
	}
}
