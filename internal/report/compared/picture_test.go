package compared

import (
	"testing"

	"thru/internal/measure"
)

// TestComparedPicture: a comparison shows each flow before and after, on one scale; a flow without a figure
// after has no bar.
func TestComparedPicture(t *testing.T) {
	worse := measure.ComparedCell{From: "a", To: "b", Before: &measure.Sample{Value: 956e6}, After: &measure.Sample{Value: 812e6}, ChangePct: new(-15.06), Outcome: measure.Worse}
	p := picture(&measure.Compared{Cells: []measure.ComparedCell{worse, worse}})
	if p == nil || len(p.Rows) != 4 || !p.Rows[0].Was || p.Rows[1].Was || p.Rows[1].Carried >= p.Rows[0].Carried || p.Rows[1].Change != "-15.1%, worse" {
		t.Fatalf("%+v", p)
	}
	x := &measure.Compared{Cells: []measure.ComparedCell{{From: "a", To: "b", Before: &measure.Sample{Value: 1e9}}}}
	if p := picture(x); len(p.Rows) != 2 || !p.Rows[1].Absent || p.Rows[0].Carried != 1 {
		t.Errorf("%+v", p)
	}
	if p := picture(&measure.Compared{}); p != nil {
		t.Errorf("%+v", p)
	}
}
