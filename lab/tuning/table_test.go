package tuning

import (
	"regexp"
	"strings"
	"testing"

	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// TestTable: every case has a name of its own and a Build, and its cures are existing knobs.
func TestTable(t *testing.T) {
	names, name := map[string]bool{}, regexp.MustCompile(`^[a-z0-9_-]+$`) // no characters that are special to -run
	for _, c := range Cases() {
		if names[c.Name] || !name.MatchString(c.Name) || c.Build == nil {
			t.Errorf("%q is a name that stands twice, or lacks something", c.Name)
		}
		names[c.Name] = true
		for _, b := range c.Bad {
			if b.Name == "" || b.About == "" || b.Spoil == nil {
				t.Errorf("%s: %+v lacks something", c.Name, b)
			}
			for _, cure := range b.Cures {
				id, at, _ := strings.Cut(cure, "@")
				if _, there := knob.Find(id); !there || at != Local && at != Peer {
					t.Errorf("%s: no knob is called %q", c.Name, cure)
				}
			}
		}
	}
}

// TestWrong: Wrong names each broken promise, and nothing else.
func TestWrong(t *testing.T) {
	const direction = "local -> peer"
	rate := func(mbps float64) map[string]float64 { return map[string]float64{direction: mbps * 1e6} }
	attempt := func(knob, at, outcome string) measure.Attempt {
		return measure.Attempt{Proposal: measure.Proposal{Settings: []measure.Setting{{Knob: knob, EndPoint: at}}}, Outcome: outcome}
	}
	streams := measure.Attempt{Proposal: measure.Proposal{Test: &measure.TestOptions{Flags: "-P 4"}}, Outcome: measure.Kept}
	tests := []struct {
		name               string
		reached, confirmed float64
		attempts           []measure.Attempt
		stayed, stood      []string
		left               []string
		exit               int
		want               string // text in the one violation; empty: none
	}{
		{"all is well", 96, 95, []measure.Attempt{attempt("tcp-rmem", Peer, measure.Kept), attempt("sack", Peer, measure.Undone)}, []string{"rmem"}, []string{"tcp-rmem@peer"}, nil, 0, ""},
		{"an option of the test", 96, 96, []measure.Attempt{streams}, nil, nil, nil, 0, ""},
		{"not so with that option", 96, 30, []measure.Attempt{streams}, nil, nil, nil, 0, "thru test finds 30.0"},
		{"a stray beside what was kept", 96, 96, []measure.Attempt{attempt("tcp-rmem", Peer, measure.Kept)}, []string{"rmem", "backlog"}, []string{"tcp-rmem@peer", "netdev-max-backlog@peer"}, nil, 0, "netdev-max-backlog@peer stands"},
		{"too slow", 94, 96, nil, nil, nil, nil, 0, "reached 94.0 of 100.0"},
		{"not so for a test", 96, 94, nil, nil, nil, nil, 0, "thru test finds 94.0"},
		{"what does no good", 96, 96, []measure.Attempt{attempt("sack", Peer, measure.Kept)}, nil, nil, nil, 0, "kept sack@peer"},
		{"at the wrong end", 96, 96, []measure.Attempt{attempt("tcp-rmem", Local, measure.Kept)}, nil, nil, nil, 0, "kept tcp-rmem@local"},
		{"something stays", 96, 96, []measure.Attempt{attempt("sack", Peer, measure.Undone)}, []string{"sack"}, nil, nil, 0, "nothing was kept, and yet: sack"},
		{"not rolled back", 96, 96, nil, nil, nil, []string{"rmem"}, 0, "not rolled back: rmem"},
		{"failed", 96, 96, nil, nil, nil, nil, 1, "exit 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			figure := &measure.Figure{Value: tt.reached * 1e6}
			o := Outcome{Case: Case{Bad: []Bad{smallReceive}}, Healthy: rate(100), Confirmed: rate(tt.confirmed), Exit: tt.exit, Stayed: tt.stayed, Stood: tt.stood, Left: tt.left,
				Document: &measure.Document{Cells: []measure.Cell{{From: Local, To: Peer, Goodput: figure}},
					Tuning: &measure.Tuning{Attempts: tt.attempts, Journey: []measure.Milestone{{Cells: []int{0}}}}}}
			got := o.Wrong()
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if n := len(o.Lines()); n != 1 {
				t.Errorf("%d lines of one direction", n)
			}
		})
	}
}
