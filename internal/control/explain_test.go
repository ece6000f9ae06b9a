package control

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"thru/internal/bus"
	"thru/internal/cause/diagnose"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/stat"
)

// open leaves causes open that only experiments can decide.
func open(r *bus.CollectReply) {
	r.Evidence.Streams = []measure.Stream{{Congestion: "cubic"}}
}

// explainer returns a pair of agents whose traffic is to be explained.
func explainer(t *testing.T, q *quiet) (r *Runner, p plan.Plan, local, peer *fakeAgent) {
	t.Helper()
	p, err := plan.Explain(request())
	if err != nil {
		t.Fatal(err)
	}
	local, peer = probed(1500, 1500), newAgent("peer")
	local.evidence, peer.evidence = open, open
	return &Runner{Ends: pairOf(local, peer), Watch: q, Gating: &Gating{}}, p, local, peer
}

// made returns the experiments of a direction, in order.
func made(doc *measure.Document, from string) (ids []string) {
	for _, s := range doc.Steps {
		if s.From == from && s.Experiment != diagnose.Base {
			ids = append(ids, s.Experiment)
		}
	}
	return ids
}

// The path comes first, then the base of each direction, then experiments, each once in
// a direction; every step has its cell, and is reported.
func TestExplain(t *testing.T) { synctest.Test(t, explain) }

func explain(t *testing.T) {
	q := &quiet{}
	r, p, _, peer := explainer(t, q)
	doc, err := r.Explain(t.Context(), p, Probing{}, time.Hour)
	if err != nil || doc.Error != nil || doc.Command != "explain" || len(doc.Paths) != 1 || len(doc.Gates) == 0 {
		t.Fatalf("%v, %+v", err, doc)
	}
	if doc.Steps[0].Experiment != pathStep || doc.Steps[1].Experiment != diagnose.Base || doc.Steps[1].From != Local || doc.Steps[2].Experiment != diagnose.Base || doc.Steps[2].From != "peer" {
		t.Errorf("begins with %+v", doc.Steps[:3])
	}
	if len(q.shown) != len(doc.Steps) || len(doc.Cells) != len(doc.Steps)-1 {
		t.Errorf("%d steps, %d shown, %d cells", len(doc.Steps), len(q.shown), len(doc.Cells))
	}
	for _, s := range doc.Steps[1:] {
		c := doc.Cells[s.Cells[0]]
		if c.Experiment != s.Experiment || c.From != s.From || c.Baseline != (s.Experiment != diagnose.Base) || s.Figure == "" || s.Bps == nil || s.Conclusion == "" {
			t.Errorf("step %+v of cell %+v", s, c)
		}
		if s.Experiment != diagnose.Base && (len(s.Asked) == 0 || s.BaseBps == nil) {
			t.Errorf("an experiment without reason or base: %+v", s)
		}
	}
	for _, from := range []string{Local, "peer"} {
		ids := made(doc, from)
		if len(ids) == 0 || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != len(ids) {
			t.Errorf("experiments of %s: %q", from, ids)
		}
	}
	if first, last := doc.Steps[3], doc.Steps[len(doc.Steps)-1]; first.From != Local || last.From != "peer" {
		t.Errorf("begins with %s -> %s and ends with %s -> %s", first.From, first.To, last.From, last.To)
	}
	if doc.Ended != endedNothingLeft || len(doc.Findings) == 0 {
		t.Errorf("ended by %q with %+v", doc.Ended, doc.Findings)
	}
	if calls := peer.asked(); calls[len(calls)-1] != "release" {
		t.Errorf("the turn is kept: %q", calls[len(calls)-3:])
	}
}

// On a path with a short round-trip time the base ramps as long as its experiments, and only those are content with
// an older reading of the idle hosts.
func TestExplainRamp(t *testing.T) {
	r, p, local, _ := explainer(t, &quiet{})
	local.path.Path.RTT = &measure.PathRTT{P50: int64(time.Millisecond)}
	doc, err := r.Explain(t.Context(), p, Probing{}, time.Hour)
	if err != nil || len(doc.Cells) < 3 {
		t.Fatalf("%v, %d cells", err, len(doc.Cells))
	}
	for _, s := range local.asked() {
		if strings.HasPrefix(s, "start ") && !strings.HasSuffix(s, " 400ms") {
			t.Errorf("a ramp is not of 20 round trips, 0.4 s at least: %q", s)
		}
	}
	for i, age := range local.idleAges {
		if base := i < 2; base != (age == 0) { // both directions
			t.Errorf("run %d takes a reading of the idle host up to %v old", i, age)
		}
	}
}

// A cause that is certain from the start needs no experiment: a requested window that
// is full.
func TestExplainCertain(t *testing.T) {
	r, p, local, _ := explainer(t, &quiet{})
	local.silent = true // it must not be asked for anything
	x := &explanation{Runner: r, doc: &measure.Document{Cells: make([]measure.Cell, 2)}, until: time.Now().Add(time.Hour), bases: []*base{{cell: 0}, {cell: 1}}}
	for i := range x.doc.Cells {
		x.doc.Cells[i] = cells(p)[i]
		x.doc.Cells[i].Findings = []measure.Finding{{Cause: "fixed-window", Confidence: measure.Certain}}
	}
	if err := x.makeExperiments(t.Context()); err != nil || x.doc.Ended != endedCertain || len(local.asked()) != 0 {
		t.Errorf("%v, %q, asked %q", err, x.doc.Ended, local.asked())
	}
}

// The budget bounds the experiments, but not path and base.
func TestExplainBudget(t *testing.T) {
	r, p, _, _ := explainer(t, &quiet{})
	doc, err := r.Explain(t.Context(), p, Probing{}, time.Millisecond)
	if err != nil || len(doc.Steps) != 3 || doc.Ended != "the time budget of 1.00 ms is spent" {
		t.Errorf("%v, %d steps, ended by %q", err, len(doc.Steps), doc.Ended)
	}
	// An experiment of 3.2 s does not fit in half of 5 s: the other direction runs its
	// own, and the first direction gets the rest.
	r, p, _, _ = explainer(t, &quiet{})
	doc, err = r.Explain(t.Context(), p, Probing{}, 5*time.Second)
	if err != nil || len(doc.Steps) < 5 || doc.Steps[3].From != "peer" || len(made(doc, Local)) == 0 {
		t.Errorf("%v, %+v", err, doc.Steps)
	}
}

// stalls returns the events of an agent whose traffic has stopped.
func stalls() []bus.Event {
	return []bus.Event{{Kind: bus.EventFailed, Error: "worker: connected, but no data came within 8s"}}
}

// Traffic that stalls is explained; a required rate is then not met.
func TestExplainStalls(t *testing.T) {
	for _, wanted := range []int64{0, 1e9} {
		r, p, local, peer := explainer(t, &quiet{})
		r.Link = stat.Link{RateBps: wanted}
		nothing := func(d *bus.CollectReply) { open(d); d.Evidence.MeasuredNs, d.Evidence.Bytes = 0, 0 }
		local.script, peer.script, local.evidence, peer.evidence = stalls(), stalls(), nothing, nothing
		doc, err := r.Explain(t.Context(), p, Probing{}, time.Hour)
		if err != nil || doc.Error != nil || len(doc.Findings) == 0 {
			t.Fatalf("%v, %+v", err, doc.Findings)
		}
		if s := doc.Steps[1]; s.Error == "" || s.Figure != "no data arrived" || doc.Cells[0].Error == nil {
			t.Errorf("%+v", s)
		}
		if v := doc.Verdict; (v != nil) != (wanted > 0) || v != nil && (v.Pass || v.Reason == "") {
			t.Errorf("verdict %+v where %d bit/s are wanted", v, wanted)
		}
	}
}

// A failure to connect is an error, as in a test.
func TestExplainWithoutConnection(t *testing.T) {
	r, p, local, _ := explainer(t, &quiet{})
	local.prepare = errors.New("connection refused")
	doc, err := r.Explain(t.Context(), p, Probing{}, time.Hour)
	if fault.Code(err) != fault.Failed || doc.Error == nil || len(doc.Steps) != 1 {
		t.Errorf("%v, %+v", err, doc.Steps)
	}
}

// An experiment that fails says why, and the explanation goes on.
func TestExplainFailingExperiments(t *testing.T) {
	q := &quiet{}
	r, p, local, _ := explainer(t, q)
	q.step = func(n int) {
		if n == 3 {
			local.prepare = errors.New("no such data path")
		}
	}
	doc, err := r.Explain(t.Context(), p, Probing{}, time.Hour)
	if err != nil || len(doc.Steps) < 6 || doc.Ended != endedNothingLeft {
		t.Fatalf("%v, %d steps, ended by %q", err, len(doc.Steps), doc.Ended)
	}
	for _, s := range doc.Steps[3:] {
		if !strings.Contains(s.Error, "no such data path") {
			t.Errorf("%+v", s)
		}
	}
}

// An interrupt and a lost end point keep the results so far.
func TestExplainEndsEarly(t *testing.T) {
	for name, want := range map[string]struct {
		code  int
		ended string
	}{"interrupt": {fault.Failed, endedInterrupted}, "loss": {fault.Failed, endedLost}} {
		q := &quiet{}
		r, p, _, peer := explainer(t, q)
		ctx, cancel := context.WithCancel(t.Context())
		q.step = func(n int) {
			switch {
			case n != 4:
			case name == "interrupt":
				cancel()
			default:
				peer.Lose()
			}
		}
		doc, err := r.Explain(ctx, p, Probing{}, time.Hour)
		cancel()
		if fault.Code(err) != want.code || doc.Ended != want.ended || doc.Error == nil {
			t.Errorf("%s: %v, ended by %q", name, err, doc.Ended)
		}
		if len(doc.Findings) == 0 || !stat.Measured(&doc.Cells[0]) || len(doc.Steps) < 4 {
			t.Errorf("%s: what was found is lost: %d steps, %+v", name, len(doc.Steps), doc.Findings)
		}
	}
}

// A failed gate, and a path that cannot be probed, end nothing.
func TestExplainWhatIsNotFit(t *testing.T) {
	r, p, local, _ := explainer(t, &quiet{})
	local.path = probed(9000, 1500).path
	doc, err := r.Explain(t.Context(), p, Probing{}, time.Millisecond)
	if err != nil || len(gateOf(doc, measure.GateFail)) == 0 || len(doc.Steps) != 3 || !strings.Contains(doc.Steps[0].Figure, "mtu-path fails") {
		t.Errorf("%v, %+v", err, doc.Steps)
	}
	r, p, local, _ = explainer(t, &quiet{})
	local.probe = errors.New("no answer from 10.0.0.2:5210")
	doc, err = r.Explain(t.Context(), p, Probing{}, time.Millisecond)
	if err != nil || len(doc.Steps) != 3 || doc.Steps[0].Error == "" || len(doc.Paths) != 0 {
		t.Errorf("%v, %+v", err, doc.Steps)
	}
}

// A program that serves one client at a time is not probed.
func TestExplainForeign(t *testing.T) {
	r, p, local, _ := explainer(t, &quiet{})
	local.evidence = reports
	r.Ends = withForeign(local)
	doc, err := r.Explain(t.Context(), p, Probing{}, time.Millisecond)
	if err != nil || len(doc.Steps) != 3 || len(doc.Paths) != 0 {
		t.Errorf("%v, %+v", err, doc.Steps)
	}
	if slices.ContainsFunc(local.asked(), func(s string) bool { return strings.HasPrefix(s, "probe") }) {
		t.Errorf("asked %q", local.asked())
	}
}

// A step reports what has changed.
func TestTextOfAStep(t *testing.T) {
	before := measure.Diagnosis{
		Findings: []measure.Finding{{Cause: "loss", Confidence: measure.Likely}, {Cause: "policer", Confidence: measure.Possible}},
		RuledOut: []measure.Excluded{{Cause: "shaper"}},
	}
	now := measure.Diagnosis{
		Findings: []measure.Finding{{Cause: "policer", Confidence: measure.Certain}, {Cause: "sack-off", Confidence: measure.Possible}, {Cause: "none", Confidence: measure.Likely, Healthy: true}},
		RuledOut: []measure.Excluded{{Cause: "shaper"}, {Cause: "loss"}},
	}
	if got := ruledOut(before, now); !slices.Equal(got, []string{"loss"}) {
		t.Errorf("ruled out %q", got)
	}
	if got := raised(before, now); !slices.Equal(got, []string{"policer", "sack-off"}) {
		t.Errorf("raised %q", got)
	}
	if got := raised(now, now); got != nil {
		t.Errorf("nothing has changed, and raised %q", got)
	}
}

func TestPathFigure(t *testing.T) {
	syn := &measure.SYN{MSS: new(1460)}
	path := measure.Path{
		RTT: &measure.PathRTT{P50: 20_100_000}, Handshake: &measure.Handshake{SYNSent: syn, SYNSeen: syn, SYNACKSent: syn, SYNACKSeen: syn},
		Forward: measure.DirectionFacts{MTU: &measure.PathMTU{Bytes: 1500}}, Back: measure.DirectionFacts{MTU: &measure.PathMTU{Bytes: 1500}},
	}
	changed := path
	changed.Handshake = &measure.Handshake{SYNSent: syn, SYNSeen: &measure.SYN{MSS: new(1260)}, SYNACKSent: syn, SYNACKSeen: syn}
	changed.Back.MTU = &measure.PathMTU{Bytes: 1400}
	warns := []measure.Gate{{ID: "bond", Status: measure.GateWarn}, {ID: "bond", Status: measure.GateWarn}, {ID: "mtu-path", Status: measure.GateFail}}
	for want, doc := range map[string]*measure.Document{
		"RTT 20.1 ms, 1500 bytes pass in both directions, TCP options arrive unchanged":    {Paths: []measure.Path{path}},
		"RTT 20.1 ms, 1500 bytes pass forward and 1400 back, the path changes TCP options": {Paths: []measure.Path{changed}},
		"the gate mtu-path fails, the gate bond warns":                                     {Gates: warns},
		"no gate warns": {Gates: []measure.Gate{{ID: "bond", Status: measure.GatePass}}},
		"":              {},
	} {
		if got := pathFigure(doc); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
