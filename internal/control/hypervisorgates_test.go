package control

import (
	"slices"
	"testing"

	"thru/internal/cause"
	"thru/internal/measure"
)

// TestJudgeHypervisor: gates of guests are added to those judged before the guests were
// found, with the same selection.
func TestJudgeHypervisor(t *testing.T) {
	document := func(places ...*measure.Placement) *measure.Document {
		d := &measure.Document{
			Inventories: []measure.Inventory{{Source: "vsphere://vc", Kind: measure.KindVSphere, Guests: []measure.Guest{{ID: "vm-1", Name: "a", CPUShare: &measure.Allocation{Limited: new(true), Limit: new(int64(1e9))},
				NICs: []measure.GuestNIC{{Name: "Network adapter 1", Model: new("e1000")}}}}}},
			Gates: []measure.Gate{{ID: "link-errors", Status: measure.GateWarn, EndPoint: "a"}, {ID: "guest-mtu", Status: measure.GateNotChecked, Fact: "nothing here that it applies to"}, {ID: "clock-source", Status: measure.GatePass}},
		}
		for i, p := range places {
			d.EndPoints = append(d.EndPoints, measure.EndPoint{Name: string(rune('a' + i)), Placement: p})
		}
		return d
	}
	at := &measure.Placement{Source: "vsphere://vc", Guest: "vm-1"}
	for name, x := range map[string]struct {
		doc    *measure.Document
		gating *Gating
		want   []string
	}{
		"nobody is placed": {document(nil, nil), nil, []string{"link-errors", "guest-mtu", "clock-source"}},
		"one is":           {document(at, nil), nil, []string{"link-errors", "guest-adapter", "guest-cpu-limit", "guest-shaping", "clock-source"}},
		"chosen":           {document(at, nil), &Gating{Only: []string{"guest-cpu-limit"}}, []string{"link-errors", "guest-cpu-limit", "clock-source"}},
		"left out":         {document(at, nil), &Gating{Skip: []string{"guest-adapter", "guest-shaping"}}, []string{"link-errors", "guest-cpu-limit", "clock-source"}},
		"none of them":     {document(at, nil), &Gating{Only: []string{"link-errors"}}, []string{"link-errors", "guest-mtu", "clock-source"}},
	} {
		r := &Runner{Gating: x.gating}
		for range 2 { // a continued plan places its ends again
			r.judgeHypervisors(x.doc, false)
		}
		var got []string
		for _, g := range x.doc.Gates {
			got = append(got, g.ID)
			if cause.IsHypervisorGate(g.ID) && g.ID != "guest-mtu" && g.EndPoint != "a" {
				t.Errorf("%s: %+v", name, g)
			}
		}
		if len(got) != len(x.want) {
			t.Errorf("%s: %v, want %v", name, got, x.want)
			continue
		}
		for i := range got {
			if got[i] != x.want[i] {
				t.Errorf("%s: %v, want %v", name, got, x.want)
				break
			}
		}
	}
}

// TestBriefGates: the number of pairs, not that of end points, decides whether passed gates are listed.
func TestBriefGates(t *testing.T) {
	for _, brief := range []bool{false, true} {
		d := &measure.Document{Inventories: []measure.Inventory{{Source: "vsphere://vc", Kind: measure.KindVSphere, Guests: []measure.Guest{
			{ID: "vm-1", Name: "a", NICs: []measure.GuestNIC{{Name: "Network adapter 1", Model: new("vmxnet3")}}}}}}}
		for range mostListed + 1 {
			d.EndPoints = append(d.EndPoints, measure.EndPoint{Name: "a", Placement: &measure.Placement{Source: "vsphere://vc", Guest: "vm-1"}})
		}
		new(Runner).judgeHypervisors(d, brief)
		passes := slices.ContainsFunc(d.Gates, func(g measure.Gate) bool { return g.Status == measure.GatePass })
		if len(d.Gates) == 0 || passes == brief {
			t.Errorf("brief %v: %+v", brief, d.Gates)
		}
	}
}
