// Command truth simulates the verdicts that thru prints, with the code that
// makes them, and writes how often each is wrong to docs/statistics.md. Seeds
// are fixed, so that the page changes only with the code. It ends with exit
// code 1 where a rate misses its bar.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

func main() {
	out := flag.String("o", "docs/statistics.md", "file to write")
	only := flag.String("only", "", "print only the subjects whose title contains this, and write no file")
	scale := flag.Float64("scale", 1, "share of the trials to make")
	flag.Parse()
	tables := simulate(chosen(*only), *scale)
	page := markdown(tables)
	if *only != "" {
		fmt.Print(page)
	} else if err := os.WriteFile(*out, []byte(page), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "truth:", err)
		os.Exit(1)
	}
	if missed := misses(tables); len(missed) > 0 {
		fmt.Fprintln(os.Stderr, strings.Join(missed, "\n"))
		os.Exit(1)
	}
}

// subject is one verdict and its simulation. Run makes a share (scale) of the
// trials: 1 for the page, less for the tests.
type subject struct {
	title  string
	tables []func(scale float64) table
}

// subjects are in the order of the page.
func subjects() []subject {
	return []subject{
		{"Interval of a single run", []func(float64) table{intervals}},
		{"Steady", []func(float64) table{calmRuns, steppedRuns, driftingRuns}},
		{"Repeated runs", []func(float64) table{intervalOfRuns, groupsOfRuns}},
		{"compare", []func(float64) table{alikeTable, railsTable, foundTable}},
		{"ladder", []func(float64) table{alikeCells, streamsTable}},
		{"tune", []func(float64) table{keptWrongly, keptRightly, gains}},
		{"Verdict", []func(float64) table{verdicts}},
		{"Delays of datagrams", []func(float64) table{delays}},
		{"explain: experiments", []func(float64) table{deceived, detected}},
	}
}

// chosen are the subjects whose title contains a word.
func chosen(word string) []subject {
	return slices.DeleteFunc(subjects(), func(s subject) bool { return !strings.Contains(s.title, word) })
}

// simulate runs the subjects side by side and keeps their order.
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
