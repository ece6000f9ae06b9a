package cause

import (
	"slices"
	"testing"
	"time"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

func TestOrder(t *testing.T) {
	root := diagnose.Rule{Cause: "root", Brings: []string{"consequence"}}
	make := func(r diagnose.Rule, place int, o *diagnose.Outcome) diagnose.Judged {
		return diagnose.Judged{Rule: r, Place: place, Outcome: o}
	}
	consequence, other := diagnose.Rule{Cause: "consequence"}, diagnose.Rule{Cause: "other"}
	for _, x := range []struct {
		name string
		in   []diagnose.Judged
		want []string
	}{
		{"the surer first", []diagnose.Judged{make(other, 0, diagnose.Likely("")), make(consequence, 1, diagnose.Certain(""))}, []string{"consequence", "other"}},
		{"a root before what it brings", []diagnose.Judged{make(consequence, 0, diagnose.Certain("")), make(root, 1, diagnose.Likely(""))}, []string{"root", "consequence<root"}},
		{"what is merely possible is no root", []diagnose.Judged{make(consequence, 0, diagnose.Certain("")), make(root, 1, diagnose.Possible(""))}, []string{"consequence", "root"}},
		{"of what is its own root", []diagnose.Judged{make(consequence, 0, &diagnose.Outcome{Confidence: measure.Certain, RuledOutEffects: []string{"root"}}), make(root, 1, diagnose.Likely(""))}, []string{"consequence", "root"}},
		{"what costs nothing last", []diagnose.Judged{make(other, 0, diagnose.Certain("").MarkNotBinding()), make(consequence, 1, diagnose.Possible(""))}, []string{"consequence", "other"}},
		{"what costs nothing is no root", []diagnose.Judged{make(root, 0, diagnose.Certain("").MarkNotBinding()), make(consequence, 1, diagnose.Likely(""))}, []string{"consequence", "root"}},
		{"of equals the catalogue decides", []diagnose.Judged{make(other, 5, diagnose.Likely("")), make(consequence, 2, diagnose.Likely(""))}, []string{"consequence", "other"}},
		{"a root comes up with its consequence", []diagnose.Judged{make(other, 0, diagnose.Likely("")), make(consequence, 1, diagnose.Certain("")), make(root, 2, diagnose.Likely(""))}, []string{"root", "consequence<root", "other"}},
	} {
		var got []string
		for _, j := range diagnose.InOrder(x.in) {
			text := j.Rule.Cause
			if j.Because != "" {
				text += "<" + j.Because
			}
			got = append(got, text)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}

// TestWhole: the direction with the greater shortfall comes first, and a finding of both is listed once.
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
	d := lossy().document(experiment(diagnose.EightStreams, 100*mb))
	Diagnose(d)
	if len(d.Cells[1].Findings) > 0 {
		t.Errorf("%+v", d.Cells[1].Findings)
	}
}

func TestNext(t *testing.T) {
	d := lossy().document()
	Diagnose(d)
	x, ok := Next(d, 0, nil)
	if !ok || x.ID != diagnose.UdpBelow || !slices.Contains(x.Causes, "loss") || x.Spec.Protocol != measure.UDP || x.Spec.Rate < 17*1e6 || x.Spec.Rate > 19*1e6 {
		t.Fatalf("for a loss that is likely: %v %+v", ok, x)
	}
	if x.Spec.Duration != int64(diagnose.ShortTrial) { // too few may be lost: three times the rate shows more, sooner
		t.Errorf("datagrams for %.1f s", float64(x.Spec.Duration)/1e9)
	}
	if x.Spec.From != "a" || x.Spec.To != "b" || x.Spec.Length.Send <= 0 || !x.Spec.DontFragment {
		t.Errorf("%+v", x.Spec)
	}
	d = lossy().document(datagramTrial(diagnose.UdpBelow, 60*mb, 0.12, 0))
	Diagnose(d)
	if x, ok := Next(d, 0, []string{diagnose.UdpBelow}); ok {
		t.Errorf("after it is certain: %s", x.ID)
	}
	d = policed().document(datagramTrial(diagnose.UdpBelow, 28*mb, 0, 0))
	Diagnose(d)
	made := []string{diagnose.UdpBelow}
	for _, want := range []string{diagnose.UdpAbove, diagnose.UdpThrice, diagnose.UdpTenfold, diagnose.UdpThirtyfold} {
		x, ok := Next(d, 0, made)
		if !ok || x.ID != want {
			t.Fatalf("after %v: %v %s, want %s", made, ok, x.ID, want)
		}
		made = append(made, x.ID)
	}
}

// TestNextLeavesOut: experiments that could change neither the first finding nor its confidence are not made.
func TestNextLeavesOut(t *testing.T) {
	for name, x := range map[string]struct {
		of     made
		made   []string // contained
		absent []string
	}{
		"a small buffer: several streams scale, and the path holds no level": {with(smallSend(), func(m *made) { m.rtt, m.bps = 33*ms, 25*mb }), []string{diagnose.MoreBuffer}, []string{diagnose.ManyPorts, diagnose.Longer}},
		"a likely loss: bbr makes it no more certain":                        {lossy(), []string{diagnose.UdpBelow, diagnose.UdpThrice, diagnose.UdpTenfold}, []string{diagnose.BbrControl}},
	} {
		d := x.of.document()
		Diagnose(d)
		ids := tries(d)
		for _, id := range x.made {
			if !slices.Contains(ids, id) {
				t.Errorf("%s: %q lacks %s", name, ids, id)
			}
		}
		for _, id := range x.absent {
			if slices.Contains(ids, id) {
				t.Errorf("%s: %q has %s", name, ids, id)
			}
		}
	}
	// A tenth more than a queue of 160 ms passes would not fill it in the time of an experiment.
	for deep, want := range map[float64]string{160e6: diagnose.UdpThrice, 20e6: diagnose.UdpAbove} {
		m := shaped()
		m.rtt = m.base + time.Duration(deep/2)
		d := m.document()
		timeline := d.Cells[0].Runs[0].Flows[0].Sender.Streams[0].Timeline
		timeline.RTT = &measure.Spread{Mean: float64(m.rtt), Max: float64(m.base) + deep}
		Diagnose(d)
		ids := slices.DeleteFunc(tries(d), func(id string) bool { return id != diagnose.UdpThrice && id != diagnose.UdpAbove })
		if len(ids) == 0 || ids[0] != want {
			t.Errorf("before a queue of %.0f ms: %q", deep/1e6, ids)
		}
	}
}

// TestNextRareLoss: where a loss is likely, datagrams run until enough of them should be lost: a rare loss goes to ten
// times the rate at once. A rate that fell with losses needs no longer run before.
func TestNextRareLoss(t *testing.T) {
	falls := func(d *measure.Document) {
		e := d.Cells[0].Runs[0].Flows[0].Receiver
		e.Bins = nil
		for i, share := range []float64{3, 2, 1, 0.5, 0.5} {
			e.Bins = append(e.Bins, measure.StreamBin{At: int64(i) * 1e9, Span: 1e9, Bytes: int64(share * d.Cells[0].Goodput.Value / 8)})
		}
	}
	for _, x := range []struct {
		name string
		of   made
		then map[string]time.Duration // 0: not tried
	}{
		{"one in a thousand", with(lossy(), func(m *made) { m.againPct = 0.1 }), map[string]time.Duration{diagnose.UdpThrice: 3 * time.Second, diagnose.UdpTenfold: 2 * time.Second}},
		{"one in ten thousand", with(lossy(), func(m *made) { m.bps, m.againPct = 60*mb, 0.01 }), map[string]time.Duration{diagnose.UdpThrice: 0, diagnose.UdpTenfold: 3 * time.Second}},
		{"one in twenty thousand", with(lossy(), func(m *made) { m.bps, m.againPct = 60*mb, 0.005 }), map[string]time.Duration{diagnose.UdpThrice: 0, diagnose.UdpTenfold: 6 * time.Second}},
	} {
		d := x.of.document()
		falls(d)
		Diagnose(d)
		if got := outcomeOf(d.Cells[0].Diagnosis, "loss"); got != measure.Likely {
			t.Fatalf("%s: a loss is %q", x.name, got)
		}
		took := map[string]time.Duration{}
		var made []string
		for trial, more := Next(d, 0, nil); more; trial, more = Next(d, 0, made) {
			made = append(made, trial.Name())
			took[trial.ID] = time.Duration(trial.Spec.Duration)
		}
		for id, want := range x.then {
			if took[id] != want {
				t.Errorf("%s: %s for %v, want %v", x.name, id, took[id], want)
			}
		}
		if made[0] != diagnose.UdpBelow {
			t.Errorf("%s: %q", x.name, made)
		}
	}
}

// TestNextAfterLossBelow: a token bucket drops nothing below its rate, so no longer run looks for one where
// datagrams below the rate are lost.
func TestNextAfterLossBelow(t *testing.T) {
	for lost, want := range map[float64]bool{0.12: false, 0: true} {
		d := lossy().document(datagramTrial(diagnose.UdpBelow, 18*mb, lost, 0))
		Diagnose(d)
		if got := outcomeOf(d.Cells[0].Diagnosis, "loss"); got != measure.Likely {
			t.Fatalf("with %v%% lost below the rate a loss is %q", lost, got)
		}
		made := []string{diagnose.UdpBelow}
		for trial, more := Next(d, 0, made); more; trial, more = Next(d, 0, made) {
			made = append(made, trial.Name())
		}
		if slices.Contains(made, diagnose.Longer) != want {
			t.Errorf("with %v%% lost below the rate: %q", lost, made)
		}
	}
}

// TestDatagramBounds: an experiment does not flood a link of known rate.
func TestDatagramBounds(t *testing.T) {
	d := with(policed(), func(m *made) { m.link = 200 * mb }).document(datagramTrial(diagnose.UdpBelow, 28*mb, 0, 0))
	Diagnose(d)
	x, ok := Next(d, 0, []string{diagnose.UdpBelow, diagnose.UdpAbove, diagnose.UdpThrice})
	if !ok || x.ID != diagnose.UdpTenfold || x.Spec.Rate > 1.11*200*1e6 {
		t.Errorf("%v %+v", ok, x)
	}
}
