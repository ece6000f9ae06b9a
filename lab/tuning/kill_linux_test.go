package tuning

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// TestKills: a seed gives the same moments, however they are split into calls, and kills each of the four
// equally often.
func TestKills(t *testing.T) {
	whole := Kills(1, 0, 40, 8*time.Second, 20)
	parts := append(Kills(1, 0, 15, 8*time.Second, 20), Kills(1, 15, 25, 8*time.Second, 20)...)
	who := map[string]int{}
	for i, k := range whole {
		if k.String() != parts[i].String() || !slices.Equal(k.Args, parts[i].Args) {
			t.Errorf("kill %d: %s and %s", i, k, parts[i])
		}
		if (k.Write > 0) == (k.After > 0) {
			t.Errorf("kill %d is at two moments or none: %+v", i, k)
		}
		who[k.Who]++
	}
	if want := map[string]int{Controller: 10, Agent: 10, Both: 10, PowerCut: 10}; !maps.Equal(who, want) {
		t.Errorf("killed %v", who)
	}
}

// TestTooFew: kills that met no open change prove nothing.
func TestTooFew(t *testing.T) {
	rows := func(who string, n, open int) (all []Killed) {
		for i := range n {
			k := Killed{Kill: Kill{Who: who}}
			if i < open {
				k.Open = 1
			}
			all = append(all, k)
		}
		return all
	}
	tests := []struct {
		name string
		all  []Killed
		want int
	}{
		{"half of them", slices.Concat(rows(Controller, 50, 25), rows(PowerCut, 50, 25)), 0},
		{"none", slices.Concat(rows(Controller, 50, 0), rows(Agent, 50, 0)), 3},
		{"none of one", slices.Concat(rows(Controller, 50, 25), rows(Agent, 50, 0)), 1},
		{"a few", rows(Both, 4, 0), 0},
	}
	for _, tt := range tests {
		if got := TooFew(tt.all); len(got) != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// TestJournalLines: the lines of a journal that judge a kill, besides the settings.
func TestJournalLines(t *testing.T) {
	const begin, change, done, undo, undone = `{"line":"begin"}` + "\n", `{"line":"change","number":1}` + "\n", `{"line":"done"}` + "\n", `{"line":"undo"}` + "\n", `{"line":"undone"}` + "\n"
	tests := []struct {
		text string
		open int
		last string
	}{
		{"", 0, ""},
		{begin, 0, "begin"},
		{begin + change, 1, "change"},
		{begin + change + done + change + done + undo, 2, "undo"},
		{begin + change + done + undo + undone, 0, "undone"},
		{begin + change + `{"line":"do`, 1, "change"},
	}
	for _, tt := range tests {
		if open, last := journalLines(tt.text); open != tt.open || last != tt.last {
			t.Errorf("%q: %d open, last %q, want %d, %q", tt.text, open, last, tt.open, tt.last)
		}
	}
}
