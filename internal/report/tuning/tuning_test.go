package tuning

import (
	"testing"

	"thru/internal/doc"
	"thru/internal/measure"
)

// TestJourneyRange: the range of a state is that of its runs, not the interval.
func TestJourneyRange(t *testing.T) {
	c := &measure.Cell{From: "a", To: "b", Goodput: &measure.Figure{Value: 124e6, Low: 24.6e6, High: 175.9e6, CI95Low: new(0.0), CI95High: new(339e6), Runs: 3}}
	s := stage{}
	if s.fill(c, doc.Scale{Div: 1e6, Name: "Mb/s"}, map[string]float64{}); s.Range != "24.6-176" {
		t.Errorf("range %s", s.Range)
	}
}

// TestKeptFlags: a line of options to type.
func TestKeptFlags(t *testing.T) {
	for want, kept := range map[string][]string{
		"": {""}, "-P 4 --lean": {"-P 2", "-P 4", "--lean"}, "--lean -P 4": {"-P 2", "--lean", "-P 4"}, "-P 4; leave -w out": {"leave -w out", "-P 4"}, "leave -w out": {"leave -w out"},
	} {
		var list measure.Tuning
		for _, f := range kept {
			list.Attempts = append(list.Attempts, measure.Attempt{Outcome: measure.Kept, Proposal: measure.Proposal{Test: &measure.TestOptions{Flags: f}}})
		}
		list.Attempts = append(list.Attempts, measure.Attempt{Outcome: measure.Undone, Proposal: measure.Proposal{Test: &measure.TestOptions{Flags: "-P 8"}}})
		if got := keptFlags(&list); got != want {
			t.Errorf("%q: %q, want %q", kept, got, want)
		}
	}
}

func TestSettable(t *testing.T) {
	for _, tt := range []struct{ value, possible, refused, want string }{
		{"1500", "65535", "", "up to 65535"},
		{"rx 1 tx 1", "rx 2 tx 2", "", "up to rx 2 tx 2"},
		{"combined 4", "rx 2", "", "rx 2"},
		{"1", "0 1 2", "", "0 1 2"},
		{"bbr", "reno bbr", "", "reno bbr"},
		{"on", "off", "", "off"},
		{"4194304", "", "", "yes"},
		{"off", "off", "the driver does not allow a change", "no"},
	} {
		if got := settableText(measure.KnobState{Value: tt.value, Possible: tt.possible, Refused: tt.refused}); got != tt.want {
			t.Errorf("%s, %s: %q, want %q", tt.value, tt.possible, got, tt.want)
		}
	}
}
