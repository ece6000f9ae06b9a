package main

import (
	"strings"
	"testing"
)

// scaleOfTest is the share of the trials that a test makes: enough to see a
// verdict that is broken, not to see one that is a little off.
const scaleOfTest = 0.02

func TestBars(t *testing.T) {
	for _, line := range misses(simulate(subjects(), scaleOfTest)) {
		t.Error(line)
	}
}

func TestMissed(t *testing.T) {
	for _, x := range []struct {
		rate rate
		want bool
	}{
		{rate{came: 50, trials: 1000}.most(0.05), false},
		{rate{came: 60, trials: 1000}.most(0.05), false}, // within the doubt of 1000 trials
		{rate{came: 80, trials: 1000}.most(0.05), true},
		{rate{came: 900, trials: 1000}.least(0.95), true},
		{rate{came: 940, trials: 1000}.least(0.95), false},
		{rate{came: 1000, trials: 1000}, false},
	} {
		if got := x.rate.missed(); got != x.want {
			t.Errorf("%v of %d: missed %v, want %v", x.rate, x.rate.trials, got, x.want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	page := markdown([]table{{title: "Steady", about: "Noise.", head: []string{"CV", "false alarms"},
		rows: []row{{[]string{"3%"}, []rate{rate{came: 1, trials: 100}.most(0.05)}}}}})
	if want := "| CV | false alarms | trials |\n|---|---|---|\n| 3% | 1.0% (at most 5%) | 100 |\n"; !strings.Contains(page, want) {
		t.Errorf("page:\n%s", page)
	}
}
