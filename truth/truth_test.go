// Package truth simulates thru's verdicts with the code that makes them, and limits how often each may be
// wrong. `make truth` writes the rates to docs/statistics.md. Seeds are fixed, so that the page changes only
// with the code.
package truth

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The default share of the trials suffices to detect a broken verdict, not a slightly wrong one.
var (
	page  = flag.String("page", "", "file to write all rates to")
	only  = flag.String("only", "", "simulate only the subjects whose title contains this, and print their rates")
	scale = flag.Float64("scale", 0.02, "share of the trials to make")
)

func TestBars(t *testing.T) {
	tables := simulate(chosen(*only), *scale)
	if *only != "" {
		fmt.Print(markdown(tables))
	} else if *page != "" {
		if err := os.WriteFile(*page, []byte(markdown(tables)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range misses(tables) {
		t.Error(line)
	}
}

func TestMissed(t *testing.T) {
	for _, x := range []struct {
		rate rate
		want bool
	}{
		{rate{came: 50, trials: 1000}.most(0.05), false},
		{rate{came: 60, trials: 1000}.most(0.05), false}, // within the uncertainty of 1000 trials
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

// subject is one verdict and its simulation. The tables take the share (scale) of the trials: 1 for the page,
// less for the tests.
type subject struct {
	title  string
	tables []func(scale float64) table
}

// subjects returns all subjects in the order of the page.
func subjects() []subject {
	return []subject{
		{"Interval of a single run", []func(float64) table{intervals}},
		{"Steady", []func(float64) table{calmRuns, steppedRuns, driftingRuns}},
		{"Repeated runs", []func(float64) table{intervalOfRuns, groupsOfRuns}},
		{"compare", []func(float64) table{equalTable, guardrailsTable, foundTable}},
		{"ladder", []func(float64) table{equalCells, streamsTable}},
		{"tune", []func(float64) table{keptWrongly, keptRightly, gains}},
		{"Verdict", []func(float64) table{verdicts}},
		{"Delays of datagrams", []func(float64) table{delays}},
		{"watch: change points where nothing changes", []func(float64) table{unchanged}},
		{"watch: change points where the level falls", []func(float64) table{fallsFound}},
		{"explain: experiments", []func(float64) table{deceived, detected}},
	}
}

// chosen returns the subjects whose title contains a word.
func chosen(word string) []subject {
	return slices.DeleteFunc(subjects(), func(s subject) bool { return !strings.Contains(s.title, word) })
}

// simulate runs the subjects concurrently and keeps their order.
func simulate(all []subject, scale float64) []table {
	tables := make([][]table, len(all))
	var running sync.WaitGroup
	for i, s := range all {
		running.Go(func() {
			for _, of := range s.tables {
				tables[i] = append(tables[i], of(scale))
			}
		})
	}
	running.Wait()
	return slices.Concat(tables...)
}
