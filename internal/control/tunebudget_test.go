package control

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// The budget ends a comparison too: at once where its runs take longer than planned, and
// before a second look that does not fit in it.
func TestTuneBudget(t *testing.T) {
	for name, tt := range map[string]struct {
		before, then time.Duration // duration of a run before the first change is tried, and after
		budget       time.Duration
		part         string // of the reason
		pairs        int    // at most
		noise        float64
	}{
		"slow runs":   {0, 12 * time.Second, 2 * time.Minute, "ended after", 5, 0.01},
		"second look": {4 * time.Second, 4 * time.Second, 2 * time.Minute, "as many again", 7, 0.1},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, q := sick(), &quiet{}
			random := rand.New(rand.NewPCG(2, 3))
			w.allows = func(set map[hostKnob]string, _ string, _ int) float64 {
				if set[at("peer", knob.Backlog)] == "2000" {
					return 1.1e9
				}
				return 1e9
			}
			w.noise = func(string) float64 { return 1 + tt.noise*random.NormFloat64() }
			takes := tt.before
			q.trying = func(measure.Proposal) { takes = tt.then }
			w.agents[Local].fails = func(call string) error {
				if call == "prepare" {
					time.Sleep(takes)
				}
				return nil
			}
			doc, err := w.runner(q).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: tt.budget, propose: proposing(cures()[0])})
			if err != nil || len(doc.Tuning.Attempts) != 1 || w.now()[at("peer", knob.Backlog)] != "1000" || !strings.Contains(doc.Ended, "is spent") {
				t.Fatalf("%s: %v, %+v, ended by %q", name, err, doc.Tuning.Attempts, doc.Ended)
			}
			a := doc.Tuning.Attempts[0]
			if a.Outcome != measure.NoTime || !strings.Contains(a.Reason, tt.part) || a.Comparison == nil || a.Comparison.Pairs > tt.pairs || len(doc.Tuning.Advice) != 1 {
				t.Errorf("%s: %s, %s, %+v", name, a.Outcome, a.Reason, a.Comparison)
			}
			if took := time.Duration(doc.ElapsedNs); took > tt.budget+2*tt.then {
				t.Errorf("%s: it took %s", name, took)
			}
		})
	}
}

// The gain of a kept change is measured again as far as the budget allows; else no gain is
// reported. Runs 5 to 18 decide, 19 and 20 are of the other direction, 21 to 32 measure
// the gain.
func TestTuneGain(t *testing.T) {
	for _, tt := range []struct {
		spent int // the run in which the budget is spent
		pairs int // of the gain
		part  string
	}{{40, 6, "measured again"}, {24, 2, "measured again"}, {18, 0, "did not allow the runs that measure by how much"}} {
		synctest.Test(t, func(t *testing.T) {
			w := sick()
			w.allows = func(set map[hostKnob]string, _ string, _ int) float64 {
				if set[at("peer", knob.Backlog)] == "2000" {
					return 1.5e9
				}
				return 1e9
			}
			spend := func(run int) {
				if run == tt.spent {
					time.Sleep(2 * time.Hour)
				}
			}
			doc, err := w.runner(&quiet{step: spend}).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: time.Hour, propose: proposing(cures()[0])})
			if err != nil || len(doc.Tuning.Attempts) != 1 {
				t.Fatal(err, doc.Tuning.Attempts)
			}
			a := doc.Tuning.Attempts[0]
			if a.Outcome != measure.Kept || a.Gain == nil || a.Gain.Pairs != tt.pairs || (a.Gain.BaseValue != nil) != (tt.pairs > 0) || !strings.Contains(a.Reason, tt.part) {
				t.Errorf("run %d: %s, %s, %+v", tt.spent, a.Outcome, a.Reason, a.Gain)
			}
		})
	}
}

// The estimated time of a change is based on the runs so far, and includes all that
// follows it.
func TestTuneExpects(t *testing.T) {
	for _, takes := range []time.Duration{0, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := sick()
			w.agents[Local].fails = func(call string) error {
				if call == "prepare" {
					time.Sleep(takes)
				}
				return nil
			}
			doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{DryRun: true, propose: proposing(cures()[0])})
			runs := time.Duration(2*7 + 2 + 2*6 + 2*2) // least pairs, the other direction, the gain again, the new state
			if got := time.Duration(doc.Tuning.ExpectNs); err != nil || got < runs*max(takes, 2*time.Second) || got > runs*(takes+4*time.Second) {
				t.Errorf("runs of %s: %v, %s expected", takes, err, got)
			}
		})
	}
}

// The announced time is that of the whole tuning, whatever part fits in the budget.
func TestTuneExpectsWhateverTheBudget(t *testing.T) {
	expects := func(how Tuning) time.Duration {
		var announced time.Duration
		synctest.Test(t, func(t *testing.T) {
			how.propose = proposing(cures()...)
			doc, err := sick().runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, how)
			if err != nil {
				t.Fatal(err)
			}
			announced = time.Duration(doc.Tuning.ExpectNs)
		})
		return announced
	}
	ample := expects(Tuning{Budget: time.Hour})
	if scarce := expects(Tuning{Budget: time.Minute}); scarce != ample || ample < 2*time.Minute {
		t.Errorf("%s with an hour, %s with a minute", ample, scarce)
	}
	if one, four := expects(Tuning{AA: 1, Budget: time.Second}), expects(Tuning{AA: 4, Budget: time.Second}); four != 4*one || one == 0 {
		t.Errorf("%s of one comparison, %s of four", one, four)
	}
}

// The time to answer a question is not part of the budget.
func TestTuneWaitsForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, all := sick(), cures()
		all[2].Risk = "it may hurt"
		doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: time.Hour, propose: proposing(all...), Accept: func(measure.Proposal) string {
			time.Sleep(2 * time.Hour)
			return ""
		}})
		if got := outcomes(doc); err != nil || got["tso@local"] != measure.Kept || got["tcp-rmem@peer"] != measure.Kept {
			t.Errorf("%v, %v", err, got)
		}
	})
}
