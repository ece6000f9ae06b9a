package control

import (
	"testing"
	"time"

	"thru/internal/cause/advise"
	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// The reported limit is not a cause for which all proposals were tried in that state
// without effect.
func TestTuneRemains(t *testing.T) {
	none := &measure.Comparison{Pairs: 3, Outcome: measure.Undecided, ChangePct: new(0.4)}
	window := measure.Attempt{Proposal: change("b", knob.TCPRmem, "large", "receive-window"), Outcome: measure.Undone, Comparison: none}
	with := func(outcome string, c *measure.Comparison) measure.Attempt {
		a := window
		a.Outcome, a.Comparison = outcome, c
		return a
	}
	refuted, other := "a -> b: the link is full; also found, but the changes tried against it did not help: the window is small", window.Proposal
	other.ID, other.From = "windows@b", "b"
	for name, tt := range map[string]struct {
		attempts []measure.Attempt
		kept     int // kept changes
		left     []measure.Proposal
		alone    bool // there is no other finding
		want     string
	}{
		"nothing was tried":          {nil, 0, nil, false, "a -> b: the window is small"},
		"it brought nothing":         {[]measure.Attempt{window}, 0, nil, false, refuted},
		"it alone":                   {[]measure.Attempt{window}, 0, nil, true, "a -> b: the window is small; but the changes tried against it did not help"},
		"in another state":           {[]measure.Attempt{window}, 1, nil, false, "a -> b: the window is small"},
		"it was too dear":            {[]measure.Attempt{with(measure.Undone, &measure.Comparison{Pairs: 9, Outcome: measure.Improved, ChangePct: new(9.0)})}, 0, nil, false, "a -> b: the window is small"},
		"it may help":                {[]measure.Attempt{with(measure.Undone, &measure.Comparison{Pairs: 9, Outcome: measure.Undecided, ChangePct: new(9.0)})}, 0, nil, false, "a -> b: the window is small"},
		"it was not judged":          {[]measure.Attempt{with(measure.Undone, nil)}, 0, nil, false, "a -> b: the window is small"},
		"another was declined":       {[]measure.Attempt{window, with(measure.Declined, nil)}, 0, nil, false, "a -> b: the window is small"},
		"more is proposed":           {[]measure.Attempt{window}, 0, []measure.Proposal{change("a", knob.TCPWmem, "large", "receive-window")}, false, "a -> b: the window is small"},
		"more for the other way":     {[]measure.Attempt{window}, 0, []measure.Proposal{other}, false, refuted},
		"the same is proposed again": {[]measure.Attempt{window}, 0, []measure.Proposal{window.Proposal}, false, refuted},
	} {
		c := measure.Cell{From: "a", To: "b"}
		c.Findings = []measure.Finding{{Cause: "receive-window", Summary: "the window is small"}, {Cause: "link-full", Summary: "the link is full"}}
		if tt.alone {
			c.Findings = c.Findings[:1]
		}
		x := &tuning{
			doc: &measure.Document{Cells: []measure.Cell{c}}, directions: []*direction{{}}, out: &measure.Tuning{Attempts: tt.attempts, Journey: []measure.Milestone{{}}},
			seen: advise.Seen{Undone: map[string]int{}, Kept: make([]string, tt.kept)},
		}
		x.propose = func(*measure.Document, advise.Seen) []measure.Proposal { return tt.left }
		for _, a := range tt.attempts {
			if a.Outcome == measure.Undone {
				x.seen.Undone[a.ID] = 0
			}
		}
		if x.sum(); len(x.out.Remains) != 1 || x.out.Remains[0] != tt.want {
			t.Errorf("%s: %q, want %q", name, x.out.Remains, tt.want)
		}
	}
}

// A change shown to help is not taken back because a gate dislikes its value: that is
// neither tried nor advised.
func TestTuneTakesNothingBack(t *testing.T) {
	w := sick()
	back := change(Local, knob.TSO, "on", "")
	back.ID, back.Gate = "offloads@local", "offloads"
	doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: time.Hour, propose: proposing(append(cures(), back)...)})
	if err != nil || outcomes(doc)["tso@local"] != measure.Kept {
		t.Fatalf("%v, %v", err, outcomes(doc))
	}
	if _, tried := outcomes(doc)[back.ID]; tried || len(doc.Tuning.Advice) > 0 {
		t.Errorf("%v, advice %+v", outcomes(doc), doc.Tuning.Advice)
	}
	for _, tt := range []struct {
		value, whole string
		want         bool
	}{
		{"on", "on tx=on", true}, {"rx 512", "rx 512 tx 256", true}, {"on", "off", false}, {"a b", "a", false},
	} {
		if got := isPartOf(tt.value, tt.whole); got != tt.want {
			t.Errorf("%q in %q: %v", tt.value, tt.whole, got)
		}
	}
}
