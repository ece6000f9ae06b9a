package diagnose

import (
	"slices"
	"testing"

	"thru/internal/measure"
)

func TestOrder(t *testing.T) {
	root := Rule{Cause: "root", Brings: []string{"consequence"}}
	make := func(r Rule, place int, o *outcome) judged { return judged{rule: r, place: place, outcome: o} }
	consequence, other := Rule{Cause: "consequence"}, Rule{Cause: "other"}
	for _, x := range []struct {
		name string
		in   []judged
		want []string
	}{
		{"the surer first", []judged{make(other, 0, likely("")), make(consequence, 1, certain(""))}, []string{"consequence", "other"}},
		{"a root before what it brings", []judged{make(consequence, 0, certain("")), make(root, 1, likely(""))}, []string{"root", "consequence<root"}},
		{"what is merely possible is no root", []judged{make(consequence, 0, certain("")), make(root, 1, possible(""))}, []string{"consequence", "root"}},
		{"of what is its own root", []judged{make(consequence, 0, &outcome{confidence: measure.Certain, apart: []string{"root"}}), make(root, 1, likely(""))}, []string{"consequence", "root"}},
		{"what costs nothing last", []judged{make(other, 0, certain("").beside()), make(consequence, 1, possible(""))}, []string{"consequence", "other"}},
		{"what costs nothing is no root", []judged{make(root, 0, certain("").beside()), make(consequence, 1, likely(""))}, []string{"consequence", "root"}},
		{"of equals the catalogue decides", []judged{make(other, 5, likely("")), make(consequence, 2, likely(""))}, []string{"consequence", "other"}},
		{"a root comes up with its consequence", []judged{make(other, 0, likely("")), make(consequence, 1, certain("")), make(root, 2, likely(""))}, []string{"root", "consequence<root", "other"}},
	} {
		var got []string
		for _, j := range inOrder(x.in) {
			text := j.rule.Cause
			if j.because != "" {
				text += "<" + j.because
			}
			got = append(got, text)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}

// TestWhole: the direction that falls shorter comes first, and what both say
// is said once.
func TestWhole(t *testing.T) {
	slow, full := smallReceive().cell(), made{bps: 940 * mb, link: 1000 * mb, rtt: 21 * ms, base: 20 * ms}.cell()
	full.From, full.To = "b", "a"
	full.Runs[0].Flows[0].From, full.Runs[0].Flows[0].To = "b", "a"
	d := &measure.Document{Cells: []measure.Cell{full, slow}}
	Diagnose(d)
	if len(d.Findings) == 0 || d.Findings[0].Cause != "receive-window" {
		t.Fatalf("%+v", d.Findings)
	}
	for _, x := range d.Findings {
		if x.Cause == measure.CauseNone {
			t.Error("none stands beside a cause")
		}
	}
}

// TestExperimentsAreEvidence: a cell of an experiment has no findings of its own.
func TestExperimentsAreEvidence(t *testing.T) {
	d := lossy().document(experiment(eightStreams, 100*mb))
	Diagnose(d)
	if len(d.Cells[1].Findings) > 0 {
		t.Errorf("%+v", d.Cells[1].Findings)
	}
}

func TestNext(t *testing.T) {
	d := lossy().document()
	Diagnose(d)
	x, ok := Next(d, 0, nil)
	if !ok || x.ID != udpBelow || !slices.Contains(x.Causes, "loss") || x.Spec.Protocol != measure.UDP || x.Spec.Rate < 17*1e6 || x.Spec.Rate > 19*1e6 {
		t.Fatalf("for a loss that is likely: %v %+v", ok, x)
	}
	if seconds := float64(x.Spec.Duration) / 1e9; seconds < 6 || seconds > 7 { // 2.3 of 1640 a second are lost
		t.Errorf("datagrams for %.1f s", seconds)
	}
	if x.Spec.From != "a" || x.Spec.To != "b" || x.Spec.Length.Send <= 0 || !x.Spec.DontFragment {
		t.Errorf("%+v", x.Spec)
	}
	d = lossy().document(datagramTrial(udpBelow, 60*mb, 0.12, 0))
	Diagnose(d)
	if x, ok := Next(d, 0, []string{udpBelow}); ok {
		t.Errorf("after it is certain: %s", x.ID)
	}
	d = policed().document(datagramTrial(udpBelow, 28*mb, 0, 0))
	Diagnose(d)
	made := []string{udpBelow}
	for _, want := range []string{udpAbove, udpThrice, udpTenfold, udpThirtyfold} {
		x, ok := Next(d, 0, made)
		if !ok || x.ID != want {
			t.Fatalf("after %v: %v %s, want %s", made, ok, x.ID, want)
		}
		made = append(made, x.ID)
	}
}

// TestDatagramBounds: an experiment does not flood a link that is known.
func TestDatagramBounds(t *testing.T) {
	d := with(policed(), func(m *made) { m.link = 200 * mb }).document(datagramTrial(udpBelow, 28*mb, 0, 0))
	Diagnose(d)
	x, ok := Next(d, 0, []string{udpBelow, udpAbove, udpThrice})
	if !ok || x.ID != udpTenfold || x.Spec.Rate > 1.11*200*1e6 {
		t.Errorf("%v %+v", ok, x)
	}
}
