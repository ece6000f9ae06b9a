package faults

import (
	"slices"
	"testing"

	"thru/internal/cause"
	"thru/internal/measure"
)

// TestCapturesTable: each row can be captured, and wants only causes that exist.
func TestCapturesTable(t *testing.T) {
	causes := map[string]bool{measure.CauseNone: true, "": true}
	for _, r := range cause.Causes() {
		causes[r.Cause] = true
	}
	names := map[string]bool{}
	for _, c := range Captures() {
		if names[c.Name] || c.Name == "" || c.About == "" || c.Build == nil {
			t.Errorf("%q is a name that stands twice, or lacks something", c.Name)
		}
		names[c.Name] = true
		named := slices.Clone(c.True)
		for _, l := range c.Looks("") {
			if l.Want == nil {
				continue
			}
			named = append(append(named, l.Want.Cause, l.Want.With), l.Want.Or...)
			if (len(l.Want.Or) > 0) != (l.Want.Why != "") {
				t.Errorf("%s: other causes want a reason: %+v", c.Name, l.Want)
			}
		}
		for _, cause := range named {
			if !causes[cause] {
				t.Errorf("%s: no rule has the cause %q", c.Name, cause)
			}
		}
	}
}

// TestJudgeLook: a cause that a capture point cannot see may be suspected there; no other cause may be
// certain.
func TestJudgeLook(t *testing.T) {
	finding := func(cause, degree string) measure.Finding {
		return measure.Finding{Cause: cause, Confidence: degree}
	}
	nothing, shaper := finding(measure.CauseNone, measure.Possible), finding("shaper", measure.Certain)
	tests := []struct {
		name         string
		want         *Want
		truths       []string
		found        []measure.Finding
		right, worst bool
	}{
		{"silent", nil, nil, []measure.Finding{nothing}, true, false},
		{"suspected", nil, nil, []measure.Finding{finding("loss", measure.Possible)}, true, false},
		{"not silent", nil, nil, []measure.Finding{finding("loss", measure.Likely)}, false, false},
		{"may be said", silent("why", "loss"), nil, []measure.Finding{finding("loss", measure.Likely)}, true, false},
		{"broken", nil, nil, nil, false, false},
		{"wanted", anywhere("loss"), nil, []measure.Finding{finding("loss", measure.Certain)}, true, false},
		{"wanted, not found", anywhere("loss"), nil, []measure.Finding{nothing}, false, false},
		{"another is certain", anywhere("loss"), nil, []measure.Finding{finding("loss", measure.Certain), shaper}, false, true},
		{"another is true", anywhere("loss"), []string{"shaper"}, []measure.Finding{finding("loss", measure.Certain), shaper}, true, false},
	}
	for _, tt := range tests {
		c := Captured{True: tt.truths}
		r := c.JudgeLook(Look{Want: tt.want}, &measure.Document{Cells: []measure.Cell{{Diagnosis: measure.Diagnosis{Findings: tt.found}}}})
		if r.Right() != tt.right || r.WrongCertain() != tt.worst {
			t.Errorf("%s: %+v", tt.name, r)
		}
	}
	if r := (Captured{}).JudgeLook(Look{}, &measure.Document{}); r.Right() {
		t.Errorf("a document without cells is right: %+v", r)
	}
}
