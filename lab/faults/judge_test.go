package faults

import (
	"strings"
	"testing"

	"thru/internal/cause"
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// TestTable: every fault has a name of its own, and wants only causes that exist.
func TestTable(t *testing.T) {
	known, made := map[string]bool{measure.CauseNone: true}, map[string]bool{}
	for _, r := range cause.Causes() {
		known[r.Cause] = true
	}
	names := map[string]bool{}
	for _, f := range append(All(), Variants(1)...) {
		if names[f.Name] || f.Name == "" || f.About == "" || f.Build == nil || f.Forward == nil && f.Back == nil {
			t.Errorf("%q is a name that stands twice, or lacks something", f.Name)
		}
		names[f.Name] = true
		for _, w := range []*Want{f.Forward, f.Back} {
			if w == nil {
				continue
			}
			made[w.Cause], made[w.With] = true, true
			for _, cause := range append([]string{w.Cause, w.With}, w.Or...) {
				if cause != "" && !known[cause] {
					t.Errorf("%s: no rule has the cause %q", f.Name, cause)
				}
			}
			if (len(w.Or) > 0) != (w.Why != "") {
				t.Errorf("%s: other causes want a reason: %+v", f.Name, w)
			}
		}
	}
	for cause := range known {
		if why := LeftOut()[cause]; made[cause] == (why != "") {
			t.Errorf("%s: made %v, left out since %q", cause, made[cause], why)
		}
	}
}

// TestJudge: the first finding of the direction counts, with its place.
func TestJudge(t *testing.T) {
	found := func(cause, place, degree string) []measure.Finding {
		return []measure.Finding{{Cause: cause, Confidence: degree, Where: measure.Where{Place: place}}, {Cause: "loss"}}
	}
	tests := []struct {
		name                string
		want                *Want
		first               []measure.Finding
		right, alarm, worst bool
	}{
		{"right", is("policer", measure.AtPath), found("policer", measure.AtPath, measure.Certain), true, false, false},
		{"wrong place", is("shaper", measure.AtSender), found("shaper", measure.AtPath, measure.Likely), false, false, false},
		{"any place", &Want{Cause: "shaper"}, found("shaper", measure.AtPath, measure.Likely), true, false, false},
		{"second", is("loss", measure.AtPath), found("policer", measure.AtPath, measure.Certain), false, false, true},
		{"allowed", is("policer", measure.AtPath).or("why", "shaper"), found("shaper", measure.AtSender, measure.Certain), true, false, false},
		{"healthy", well(), found(measure.CauseNone, measure.AtPath, measure.Likely), true, false, false},
		{"false alarm", well(), found("loss", measure.AtPath, measure.Certain), false, true, true},
		{"with another", &Want{Cause: "policer", With: "loss"}, found("policer", "", measure.Likely), true, false, false},
		{"without the other", &Want{Cause: "policer", With: "sack-off"}, found("policer", "", measure.Likely), false, false, false},
		{"nothing said", well(), nil, false, false, false},
	}
	for _, tt := range tests {
		d := &measure.Document{Cells: []measure.Cell{
			{From: "local", To: "b", Baseline: true, Diagnosis: measure.Diagnosis{Findings: found("paced", "", measure.Certain)}},
			{From: "local", To: "b", Experiment: "streams-8", Diagnosis: measure.Diagnosis{Findings: found("paced", "", measure.Certain)}},
			{From: "b", To: "local", Experiment: diagnose.Base, Diagnosis: measure.Diagnosis{Findings: tt.first}},
			{From: "local", To: "b", Experiment: diagnose.Base, Diagnosis: measure.Diagnosis{Findings: tt.first}},
		}}
		for _, f := range []Fault{{Name: "f", Forward: tt.want}, {Name: "f", Back: tt.want}} {
			rows := Judge(f, d)
			if len(rows) != 1 {
				t.Fatalf("%s: %d rows", tt.name, len(rows))
			}
			r := rows[0]
			if r.Right() != tt.right || r.FalseAlarm() != tt.alarm || r.WrongCertain() != tt.worst || strings.Contains(r.String(), "WRONG") == tt.right {
				t.Errorf("%s: %+v", tt.name, r)
			}
		}
	}
}

// TestTally checks the summary.
func TestTally(t *testing.T) {
	var tally Tally
	for _, r := range []Row{
		{Want: *well(), Cause: "link-rate"},
		{Want: *well(), Cause: "loss", Degree: measure.Certain},
		{Want: *is("loss", ""), Cause: "policer", Degree: measure.Likely},
		{Want: *well(), Trouble: "nobody answers"},
	} {
		tally.Add(r)
	}
	if got, want := tally.String(), "4 rows: 1 right, 3 wrong; of these 1 false alarms, 1 certain"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
