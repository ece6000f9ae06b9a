package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"thru/internal/bus"
	"thru/internal/cause/advise"
	"thru/internal/cause/knob"
	"thru/internal/fault"
	"thru/internal/measure"
)

// Of several problems each is found and fixed, also one whose fix has no effect while
// another limits; a change that does not help is reverted.
func TestTune(t *testing.T) {
	w, q := sick(), &quiet{}
	random := rand.New(rand.NewPCG(1, 2))
	w.noise = func(string) float64 { return 1 + 0.01*random.NormFloat64() }
	doc, err := w.runner(q).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: time.Hour, propose: proposing(cures()...)})
	if err != nil || doc.Error != nil || doc.Command != "tune" {
		t.Fatal(err, doc.Error)
	}
	want := map[hostKnob]string{at("peer", knob.TCPRmem): "large", at(Local, knob.TSO): "off", at(Local, knob.TxQueueLen): "1000", at("peer", knob.Backlog): "1000"}
	if got := w.now(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	j := doc.Tuning.Journey
	if len(j) != 3 || j[0].Attempt != nil || j[1].Title != "tso off at local" || j[2].Title != "tcp-rmem large at peer" || len(q.stood) != 3 {
		t.Fatalf("%+v", j)
	}
	for i, least := range []float64{4e6, 3e7, 9e9} {
		if c := doc.Cells[j[i].Cells[0]]; c.Goodput == nil || c.Goodput.Value < least || c.Goodput.Runs != 2 || c.Goodput.CI95Low == nil {
			t.Errorf("state %d: %+v", i, c.Goodput)
		}
		if c := doc.Cells[j[i].Cells[0]]; (c.Experiment == "base") != (i == 2) || c.Baseline == (i == 2) {
			t.Errorf("state %d is %q", i, c.Experiment)
		}
	}
	for _, a := range w.agents {
		if !a.orderly() {
			t.Errorf("%s was asked %q", a.name, a.asked())
		}
	}
	checkAttempts(t, doc, q)
}

// checkAttempts checks the facts of each attempt.
func checkAttempts(t *testing.T, doc *measure.Document, q *quiet) {
	t.Helper()
	if len(q.tried) != len(doc.Tuning.Attempts) || len(q.planned) != 4 || doc.Tuning.ExpectNs == 0 || doc.Ended == "" {
		t.Errorf("%d tried, %d planned, %v, ended by %q", len(q.tried), len(q.planned), doc.Tuning.ExpectNs, doc.Ended)
	}
	if doc.Tuning.Pairs != 9 || doc.Tuning.LevelPct != 99.375 || len(doc.Tuning.Remains) != 2 {
		t.Errorf("%d pairs at %g%%, remains %q", doc.Tuning.Pairs, doc.Tuning.LevelPct, doc.Tuning.Remains)
	}
	for _, a := range doc.Tuning.Attempts {
		c := a.Comparison
		if c == nil || a.Reason == "" || len(a.Verified) < 2 || len(a.Changed) == 0 || c.Pairs < 3 {
			t.Fatalf("%+v", a)
		}
		if kept := a.Outcome == measure.Kept; kept != (c.Outcome == measure.Improved) || kept && (a.OtherDirection == nil || c.Pairs != 9) {
			t.Errorf("%s: %s, %+v", a.ID, a.Outcome, c)
		}
		if gain := a.Gain; (gain != nil) != (a.Outcome == measure.Kept) || gain != nil && (gain.Pairs != 6 || gain.LowPct == nil || slices.Contains(c.Groups[:], gain.Groups[0]) || !strings.Contains(a.Reason, "measured again")) {
			t.Errorf("%s: %s, gain %+v", a.ID, a.Outcome, gain)
		}
		for n, g := range c.Groups {
			cell := doc.Cells[g]
			if cell.Group != g || !cell.Baseline || !strings.HasPrefix(cell.Experiment, "tune-") || len(cell.Runs) != c.Pairs || cell.Axes[0].Value != []string{"before", "with"}[n] {
				t.Errorf("cell %d: %+v", g, cell)
			}
			if r := cell.Runs[1].Flows[0].Sender; r.PerSec != nil {
				t.Error("the evidence of every run is kept")
			}
		}
	}
	times := map[string]int{}
	for _, a := range doc.Tuning.Attempts {
		times[a.ID]++
	}
	if times["tcp-rmem@peer"] != 2 || times["tso@local"] != 1 {
		t.Errorf("tried %v", times)
	}
}

// A healthy pair ends unchanged, however noisy it is.
func TestTuneHealthy(t *testing.T) {
	for seed := range uint64(5) {
		w := newTestPair(sick().set, func(map[hostKnob]string, string, int) float64 { return 1e9 })
		random := rand.New(rand.NewPCG(seed, 2))
		w.noise = func(string) float64 { return 1 + 0.05*random.NormFloat64() }
		before := w.now()
		doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: time.Hour, Seed: seed, propose: proposing(cures()...)})
		if err != nil || !reflect.DeepEqual(w.now(), before) || len(doc.Tuning.Journey) != 1 || len(doc.Tuning.Attempts) != 4 {
			t.Errorf("seed %d: %v, %v, %v", seed, err, w.now(), outcomes(doc))
		}
	}
}

// A dry run and a comparison of the state with itself change nothing.
func TestTuneChangesNothing(t *testing.T) {
	for name, how := range map[string]Tuning{"dry run": {DryRun: true}, "A/A": {AA: 5}} {
		w, q := sick(), &quiet{}
		random := rand.New(rand.NewPCG(3, 4))
		w.noise = func(string) float64 { return 1 + 0.02*random.NormFloat64() }
		before := w.now()
		how.propose = proposing(cures()...)
		doc, err := w.runner(q).Tune(t.Context(), tunePlan(t), Probing{}, how)
		if err != nil || !reflect.DeepEqual(w.now(), before) {
			t.Fatalf("%s: %v, %v", name, err, w.now())
		}
		for _, a := range w.agents {
			for _, call := range a.asked() {
				if call == "alter" || call == "revert" || how.DryRun && call == "tune" {
					t.Errorf("%s: %s was asked %q", name, a.name, call)
				}
			}
		}
		if doc.Tuning.ExpectNs == 0 || doc.Ended == "" || len(doc.Tuning.Journey) != 1 {
			t.Errorf("%s: %+v", name, doc.Tuning)
		}
		if how.DryRun != (len(doc.Tuning.Advice) == 4) || len(doc.Tuning.Attempts) != how.AA {
			t.Errorf("%s: %d proposals, %d attempts", name, len(doc.Tuning.Advice), len(doc.Tuning.Attempts))
		}
		for k, a := range doc.Tuning.Attempts {
			if a.Comparison == nil || a.Comparison.Pairs < doc.Tuning.Pairs || a.Outcome != measure.Settled || (a.From == Local) != (k%2 == 0) || len(a.Verified) > 0 {
				t.Errorf("%+v", a)
			}
		}
	}
}

// A path that carries nothing at all is fixed, and the stall is reported.
func TestTuneCuresAStall(t *testing.T) {
	w := newTestPair(map[hostKnob]string{at(Local, knob.MTUProbing): "0", at("peer", knob.MTUProbing): "0"}, func(set map[hostKnob]string, from string, _ int) float64 {
		if set[at(from, knob.MTUProbing)] == "0" {
			return 0
		}
		return 1e8
	})
	doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: time.Hour, propose: proposing(
		change("peer", knob.TxQueueLen, "1", ""), change(Local, knob.MTUProbing, "1", "mtu-black-hole"), change("peer", knob.MTUProbing, "1", "mtu-black-hole"))})
	if err != nil || len(doc.Tuning.Journey) != 3 {
		t.Fatalf("%v, %+v", err, doc.Tuning)
	}
	for _, s := range w.now() {
		if s != "1" && s != "" {
			t.Errorf("%v", w.now())
		}
	}
}

// A change that a host refuses, that is not in force, that was declined, or that harms
// the other direction is not kept, and the tuning goes on.
func TestTuneGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, tuneGivesUp)
}

func tuneGivesUp(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*testPair, *[]measure.Proposal, *Tuning)
		want  string
		part  string // of the reason
	}{
		"refused": {func(w *testPair, _ *[]measure.Proposal, _ *Tuning) {
			w.agents[Local].refuses[knob.TSO] = fault.Failf("stop the program that uses the link", "tune: the link is busy")
		}, measure.Failed, "the link is busy"},
		"not taken": {func(w *testPair, _ *[]measure.Proposal, _ *Tuning) {
			w.agents[Local].deaf = map[string]bool{knob.TSO: true}
		}, measure.NotInUse, "read back"},
		"declined": {func(_ *testPair, all *[]measure.Proposal, how *Tuning) {
			(*all)[2].Risk, how.Accept = "it may hurt", func(p measure.Proposal) string { return p.Risk }
		}, measure.Declined, "it may hurt"},
		"nobody to ask": {func(_ *testPair, all *[]measure.Proposal, _ *Tuning) { (*all)[2].Cuts = true }, measure.Declined, "cut the connection"},
		"the other way": {func(w *testPair, _ *[]measure.Proposal, _ *Tuning) {
			allows := w.allows
			w.allows = func(set map[hostKnob]string, from string, n int) float64 {
				if from == "peer" && set[at(Local, knob.TSO)] == "off" {
					return 1e9
				}
				return allows(set, from, n)
			}
		}, measure.Undone, "the other direction becomes slower"},
		"it is so": {func(_ *testPair, all *[]measure.Proposal, _ *Tuning) {
			(*all)[2].Settings = []measure.Setting{{EndPoint: Local, Knob: "other", Value: ""}}
		}, measure.Settled, "already"},
		"the traffic dies": {func(w *testPair, _ *[]measure.Proposal, _ *Tuning) {
			allows := w.allows
			w.allows = func(set map[hostKnob]string, from string, n int) float64 {
				if set[at(Local, knob.TSO)] == "off" {
					return 0
				}
				return allows(set, from, n)
			}
		}, measure.Failed, "fails with this change"},
		"it was another value": {func(w *testPair, all *[]measure.Proposal, how *Tuning) {
			inner := proposing((*all)...)
			how.propose = func(doc *measure.Document, seen advise.Seen) []measure.Proposal {
				out := inner(doc, seen)
				out[2].Before[0].Value = "as it was once"
				return out
			}
		}, measure.Foreign, "as it was once"},
		"somebody sets it": {func(w *testPair, _ *[]measure.Proposal, _ *Tuning) {
			w.after = func(what string) {
				if w.now()[at(Local, knob.TSO)] == "off" {
					w.put(at(Local, knob.TSO), "theirs")
				}
			}
		}, measure.Foreign, "is not reverted"},
	} {
		w, all, how := sick(), cures(), Tuning{Budget: time.Hour}
		tt.spoil(w, &all, &how)
		if how.propose == nil {
			how.propose = proposing(all...)
		}
		doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, how)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		n := slices.IndexFunc(doc.Tuning.Attempts, func(a measure.Attempt) bool { return a.ID == "tso@local" })
		if n < 0 || doc.Tuning.Attempts[n].Outcome != tt.want || !strings.Contains(doc.Tuning.Attempts[n].Reason, tt.part) {
			t.Errorf("%s: %+v", name, doc.Tuning.Attempts)
			continue
		}
		if v := w.now()[at(Local, knob.TSO)]; v != "on" && v != "theirs" {
			t.Errorf("%s: it is %q", name, v)
		}
		if times := len(doc.Tuning.Attempts); times < 4 || !w.agents[Local].orderly() {
			t.Errorf("%s: %d attempts, %v", name, times, w.agents[Local].asked())
		}
		if declined := tt.want == measure.Declined; declined != slices.ContainsFunc(doc.Tuning.Advice, func(p measure.Proposal) bool { return p.ID == "tso@local" }) {
			t.Errorf("%s: advice %+v", name, doc.Tuning.Advice)
		}
	}
}

// A value read back may have more parts than the requested one.
func TestReadBack(t *testing.T) {
	for _, tt := range []struct {
		before, value, found string
		want                 bool
	}{
		{"on tx=on", "off", "off tx=off", true}, {"on tx=on", "off", "on tx=on", false}, {"rx-0 0 rx-1 0", "rx-0 3", "rx-0 3 rx-1 0", true}, {"1", "1", "1", true},
	} {
		got := readBack([]measure.Changed{{Setting: measure.Setting{EndPoint: "b", Knob: "k", Value: tt.value}, Before: tt.before, Found: tt.found}})
		if len(got) != 1 || *got[0].Holds != tt.want || got[0].EndPoint != "b" {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}

// A change at both ends is one change: where the second end refuses, the first is reverted.
func TestTuneBothEnds(t *testing.T) {
	both := change(Local, "x", "new", "loss")
	both.ID, both.Settings = "x@both", append(both.Settings, measure.Setting{EndPoint: "peer", Knob: "y", Value: "new"})
	for _, refused := range []bool{false, true} {
		w := newTestPair(map[hostKnob]string{at(Local, "x"): "old", at("peer", "y"): "old"}, func(set map[hostKnob]string, _ string, _ int) float64 {
			if set[at(Local, "x")] == "new" && set[at("peer", "y")] == "new" {
				return 2e9
			}
			return 1e9
		})
		if refused {
			w.agents["peer"].refuses["y"] = errors.New("no")
		}
		before := w.now()
		doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: time.Hour, propose: proposing(both)})
		if err != nil || refused != reflect.DeepEqual(w.now(), before) || refused != (outcomes(doc)["x@both"] == measure.Failed) {
			t.Errorf("refused %v: %v, %v, %v", refused, err, w.now(), outcomes(doc))
		}
	}
}

// Manual changes (Try) come first; a test option needs no setting.
func TestTuneByHandAndByOption(t *testing.T) {
	w := newTestPair(map[hostKnob]string{at(Local, knob.TxQueueLen): "1000", {"peer", knob.GRO, "eth0"}: "off", at("peer", knob.TxQueueLen): "500"}, func(set map[hostKnob]string, _ string, n int) float64 {
		if set[hostKnob{"peer", knob.GRO, "eth0"}] == "on" {
			n *= 2
		}
		return float64(n) * 1e9
	})
	streams := measure.Proposal{ID: "streams=4", Title: "4 streams", Test: &measure.TestOptions{Streams: 4, Flags: "-P 4"}}
	doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{
		Budget: time.Hour, Try: []measure.Setting{{Knob: knob.TxQueueLen, Value: "2000"}, {EndPoint: "peer", Knob: knob.GRO, Value: "on"}},
		propose: func(doc *measure.Document, seen advise.Seen) []measure.Proposal {
			if slices.Contains(seen.Kept, streams.ID) {
				return nil
			}
			return []measure.Proposal{streams}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range doc.Tuning.Attempts {
		got = append(got, a.ID+" "+a.Outcome)
	}
	if want := []string{"txqueuelen@local@peer undone", "gro@peer kept", "streams=4 kept"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if c := doc.Cells[doc.Tuning.Journey[2].Cells[1]]; c.Spec.Streams != 4 || c.Goodput == nil || c.Goodput.Value != 8e9 {
		t.Errorf("%+v", c.Goodput)
	}
	for name, s := range map[string]measure.Setting{
		"no such host": {EndPoint: "c", Knob: knob.GRO}, "no such knob": {EndPoint: "peer", Knob: "x"}, "no such interface": {EndPoint: "peer", Knob: knob.GRO, Interface: "eth1"},
	} {
		if doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: time.Hour, Try: []measure.Setting{s}, propose: proposing()}); fault.Code(err) != fault.Usage || doc.Error == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An end that cannot be tuned gets advice.
func TestTuneOneEndAlone(t *testing.T) {
	for _, old := range []bool{false, true} {
		w := sick()
		w.agents["peer"].noTune = "not as root"
		r := w.runner(&quiet{})
		if old {
			r.Ends["peer"].Hello.WireMinor = 4
		}
		doc, err := r.Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: time.Hour, propose: proposing(cures()...)})
		if err != nil || w.now()[at("peer", knob.TCPRmem)] != "small" || w.now()[at(Local, knob.TSO)] != "off" || slices.Contains(w.agents["peer"].asked(), "tune") {
			t.Fatalf("%v, %v", err, w.now())
		}
		if len(doc.Tuning.Advice) != 2 || doc.EndPoints[1].NoTune == "" || doc.EndPoints[0].NoTune != "" {
			t.Errorf("%+v", doc.Tuning.Advice)
		}
	}
}

// Target and budget end the tuning.
func TestTuneEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		how      Tuning
		attempts int
		outcome  string
		ended    string
	}{
		"the target is met from the beginning": {Tuning{Budget: time.Hour, TargetBps: 4e6}, 0, "", "reaches 4.00 Mb/s or more"},
		"the target is met on the way":         {Tuning{Budget: time.Hour, TargetBps: 3e7}, 3, measure.Kept, "reaches 30.0 Mb/s or more"},
		"no time":                              {Tuning{Budget: time.Second}, 4, measure.NoTime, "budget of 1 s is spent"},
	} {
		w := sick()
		tt.how.propose = proposing(cures()...)
		doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, tt.how)
		if err != nil || len(doc.Tuning.Attempts) != tt.attempts || !strings.Contains(doc.Ended, tt.ended) {
			t.Errorf("%s: %v, %v, ended by %q", name, err, outcomes(doc), doc.Ended)
			continue
		}
		if n := tt.attempts; n > 0 && doc.Tuning.Attempts[n-1].Outcome != tt.outcome {
			t.Errorf("%s: %v", name, outcomes(doc))
		}
		if tt.outcome == measure.NoTime && len(doc.Tuning.Advice) != 4 {
			t.Errorf("%s: %+v", name, doc.Tuning.Advice)
		}
	}
}

// An interrupt reverts the change on trial, and keeps those shown to help.
func TestTuneInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, tuneInterrupted)
}

func tuneInterrupted(t *testing.T) {
	for n := 1; n < 60; n += 3 {
		w, q := sick(), &quiet{}
		ctx, cancel := context.WithCancel(t.Context())
		q.step = func(k int) {
			if k == n {
				cancel()
			}
		}
		doc, err := w.runner(q).Tune(ctx, tunePlan(t), Probing{}, Tuning{Budget: time.Hour, propose: proposing(cures()...)})
		cancel()
		if !errors.Is(err, fault.ErrInterrupted) || doc.Ended != endedInterrupted || doc.Error == nil {
			t.Fatalf("step %d: %v, ended by %q", n, err, doc.Ended)
		}
		kept := outcomes(doc)
		want := map[hostKnob]string{at("peer", knob.Backlog): "1000", at("peer", knob.TCPRmem): "small", at(Local, knob.TSO): "on", at(Local, knob.TxQueueLen): "1000"}
		if kept["tso@local"] == measure.Kept {
			want[at(Local, knob.TSO)] = "off"
		}
		if strings.Contains(err.Error(), "no change is kept") != !slices.Contains(slices.Collect(maps.Values(kept)), measure.Kept) {
			t.Errorf("step %d: %v, but %v", n, err, kept)
		}
		for _, a := range doc.Tuning.Attempts {
			if strings.Contains(err.Error(), a.Title) != (a.Outcome == measure.Kept) {
				t.Errorf("step %d: %v, but %s: %s", n, err, a.Title, a.Outcome)
			}
		}
		if got := w.now(); !reflect.DeepEqual(got, want) || !w.agents[Local].orderly() || !w.agents["peer"].orderly() {
			t.Errorf("step %d: %v, %v", n, got, kept)
		}
	}
}

// An end point lost, or a request without an answer, at any time: the other end is
// restored, and the results are kept.
func TestTuneLosesAnEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, tuneLosesAnEnd)
}

func tuneLosesAnEnd(t *testing.T) {
	calls := 0
	count := func(n int, then func()) func(string) error {
		calls = 0
		return func(string) error {
			if calls++; calls == n {
				then()
				return fmt.Errorf("bus: %w", bus.ErrLost)
			}
			return nil
		}
	}
	step := 5 // an odd number meets requests of every kind
	if testing.Short() {
		step = 11
	}
	for _, gone := range []bool{true, false} {
		for n := 2; ; n += step {
			w := sick()
			before := w.now()
			peer := w.agents["peer"]
			peer.fails = count(n, func() {
				if gone {
					peer.Lose()
				}
				peer.fails = nil
			})
			doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: time.Hour, propose: proposing(cures()...)})
			if calls < n {
				break
			}
			if !gone && err == nil { // a failed run was repeated
				continue
			}
			if fault.Code(err) != fault.Failed || doc.Error == nil {
				t.Fatalf("request %d: %v", n, err)
			}
			now := w.now()
			for s, v := range before {
				left := gone || strings.Contains(err.Error(), "ending at") // then the agent there reverts it
				if (s.end == Local || !left) && now[s] != v {
					t.Errorf("request %d: %v is %q, was %q (%v)", n, s, now[s], v, err)
				}
			}
			if !w.agents[Local].orderly() && slices.Contains(w.agents[Local].asked(), "tune") {
				t.Errorf("request %d: the other end did not get it: %q", n, err)
			}
			if slices.ContainsFunc(doc.Tuning.Attempts, func(a measure.Attempt) bool { return a.Outcome == measure.Kept }) {
				t.Errorf("request %d: %v", n, outcomes(doc))
			}
		}
	}
}

// Two agents of one host are one host; two hosts with one name are two, and the reason
// why one cannot be tuned is reported.
func TestTuneOneHostTwice(t *testing.T) {
	for _, one := range []bool{true, false} {
		w := sick()
		w.agents[Local].host, w.agents["peer"].host = "1", "2"
		if one {
			w.agents["peer"].host = "1"
		}
		tuneTaken(t, w, one)
	}
}

func tuneTaken(t *testing.T, w *testPair, one bool) {
	t.Helper()
	w.agents["peer"].fails = func(call string) error {
		if call == "tune" {
			return fault.Because(fault.Taken, errors.New("agent: tune: another process of this host"))
		}
		return nil
	}
	r := w.runner(&quiet{})
	for _, e := range r.Ends {
		e.Hello.Hostname = "h"
	}
	doc, err := r.Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: time.Hour, Owner: "me", propose: proposing(cures()...)})
	if by := w.agents["peer"].by; by != "me" {
		t.Errorf("begun by %q", by)
	}
	if !one {
		if err == nil || !strings.Contains(err.Error(), "another process of this host") {
			t.Errorf("two hosts of one name: %v", err)
		}
		return
	}
	if err != nil || w.now()[at(Local, knob.TSO)] != "off" || !strings.Contains(doc.EndPoints[1].NoTune, "same host as local") {
		t.Errorf("%v, %v", err, w.now())
	}
}

// Another tuner of the host is named, and nothing has begun.
func TestTuneTaken(t *testing.T) {
	w := sick()
	w.agents["peer"].fails = func(call string) error {
		if call == "tune" {
			return fault.Failf("wait until the other tuning has ended", "tune: another client is tuning this host: thru tune at c")
		}
		return nil
	}
	doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: time.Hour, propose: proposing(cures()...)})
	if fault.Code(err) != fault.Failed || !strings.Contains(doc.Error.Message, "thru tune at c") || len(doc.Cells) != 0 || w.agents[Local].begun {
		t.Errorf("%v, %+v", err, doc.Cells)
	}
}
