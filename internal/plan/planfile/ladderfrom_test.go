package planfile

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"thru/internal/measure"
	"thru/internal/place"
)

func TestLadderFrom(t *testing.T) {
	l := place.Ladder{
		Ends:  []place.End{{Name: "web-1", At: "10.0.0.1", What: "VM web-1 on esx1,\nprod (VLAN 100), vmxnet3"}, {Name: "10.0.0.2", What: "VM web-2"}, {Name: "ssh://root@10.0.0.9", What: "VM db: 9 # odd"}},
		Spare: []place.End{{Name: "spare", At: "fd00::7", What: "VM spare: same host"}},
		Rungs: []place.Rung{
			{Kind: measure.SameMachine, From: "web-1", To: "web-1", Why: "VM web-1 on esx1"}, {Kind: measure.SameHost, From: "web-1", To: "10.0.0.2", Why: "both are on esx1"},
			{Kind: measure.SameSite, From: "web-1", To: "ssh://root@10.0.0.9", LinkBps: 2_500_000_000, Why: "esx1 and esx2 in east"}, {Kind: measure.OtherSite, Why: "none of the end points is in another data center than east"},
		},
	}
	text := LadderFrom(l, []string{"vsphere://reader@vc", "kvm1"}, 0)
	f, err := Parse("ladder.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p, err := f.Expand(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Steps) != 3*8 || len(p.EndPoints) != 3 || len(p.Hypervisors) != 2 || p.Steps[0].Specs[0].Duration != int64(time.Minute) {
		t.Errorf("%d steps, %+v, %v\n%s", len(p.Steps), p.EndPoints, p.Hypervisors, text)
	}
	if s := p.Steps[16]; s.Rung != "LAN" || s.Link.RateBps != 2_500_000_000 || s.Specs[0].To != "ssh://root@10.0.0.9" {
		t.Errorf("%+v", s)
	}
	for _, want := range []string{
		"  - {name: web-1, at: 10.0.0.1}    # VM web-1 on esx1, prod (VLAN 100), vmxnet3\n", "  # interconnect: none of the end points is in another data center than east\n",
		"  # same data center: esx1 and esx2 in east\n  - {name: LAN, pair: [web-1, ssh://root@10.0.0.9], link_rate: 2500M}\n", `  # - {name: spare, at: "fd00::7"}`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	l.Ends[0].Name, l.Rungs[0].From, l.Rungs[0].To, l.Rungs[1].From, l.Rungs[2].From = "web 1", "web 1", "web 1", "web 1", "web 1"
	if f, err := Parse("ladder.yaml", LadderFrom(l, []string{"kvm1"}, 0)); err != nil {
		t.Errorf("a name with a space: %v", err)
	} else if p, err := f.Expand(nil, nil); err != nil || p.Steps[0].Specs[0].From != "web-1" || l.Ends[0].Name != "web 1" {
		t.Errorf("a name with a space: %v", err)
	}
	if text := string(LadderFrom(l, []string{"kvm1"}, 1500*time.Millisecond)); !strings.Contains(text, "time: 1.5s") {
		t.Error(text)
	}
}

// FuzzLadderFrom: names that YAML would read as something else survive a round trip.
func FuzzLadderFrom(f *testing.F) {
	for _, s := range []string{"a", "1", "1e3", "true", "no", "10.0.0.1", "a#b", "-x", "fd00::1", "vm: x", "0x1f", "12:30:45", `a"b\`, "~", ".5", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == Local || name == "b" || !utf8.ValidString(name) {
			return
		}
		if _, err := Parse("p", []byte("thru: 1\nend_points: [{name: \"b\"}]\npairs: [{from: local, to: b}]\nname: "+quoted(name)+"\n")); err != nil && strings.Contains(err.Error(), ":4:") && !strings.Contains(err.Error(), "the name is") {
			t.Fatalf("%q is written %s: %v", name, quoted(name), err)
		}
		l := place.Ladder{Ends: []place.End{{Name: name, What: name}}, Rungs: []place.Rung{{Kind: measure.SameMachine, From: name, To: name, Why: name}}}
		file, err := Parse("ladder.yaml", LadderFrom(l, []string{"kvm1"}, 0))
		if err != nil {
			return // invalid names are refused, as in any plan
		}
		p, err := file.Expand(nil, nil)
		if name = strings.Join(strings.Fields(name), "-"); err == nil && p.Steps[0].Specs[0].From != name {
			t.Fatalf("%q became %q", name, p.Steps[0].Specs[0].From)
		}
	})
}
