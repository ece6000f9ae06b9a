//go:build tuning && linux

package tuning

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
)

// Flags of the tests.
var (
	flagsOf = flag.String("tune", "-t 1 -O 0.5 --budget 10m", "flags of thru tune")
	keep    = flag.String("keep", "", "folder for the documents, as they are")
	kills   = flag.Int("kills", 200, "so often somebody is killed")
	first   = flag.Int("first", 0, "number of the first of them: with -seed and -kills a part of the row")
	seed    = flag.Uint64("seed", 1, "of the moments")
	names   = flag.Bool("names", false, "print the names of the cases, and run nothing")
	aa      = flag.Int("aa", 60, "comparisons of a healthy path with itself")
)

// TestMain makes missing requirements fail the tests instead of skipping them.
func TestMain(m *testing.M) {
	flag.Parse()
	if *names {
		for _, c := range Cases() {
			fmt.Println(c.Name)
		}
		return
	}
	os.Setenv(lab.RequireVariable, "1")
	os.Exit(m.Run())
}

// TestCases tunes every case.
func TestCases(t *testing.T) {
	fmt.Println(Head())
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			o := Run(t, c, strings.Fields(*flagsOf)...)
			for _, line := range o.Lines() {
				fmt.Println(line)
			}
			for _, a := range o.attempts() {
				fmt.Println("    " + tried(a))
			}
			for _, w := range o.Wrong() {
				fmt.Println("  ! " + w)
				t.Fail()
			}
			save(t, c.Name, o.Document)
		})
	}
}

// save writes a document to the folder of -keep, if set.
func save(t *testing.T, name string, d *measure.Document) {
	t.Helper()
	if *keep == "" {
		return
	}
	text, err := json.Marshal(d)
	if err == nil {
		err = os.WriteFile(filepath.Join(*keep, name+".json"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestKilled kills at random moments, and prints the result of each.
func TestKilled(t *testing.T) {
	s := Over(t, lab.NewPair(t, lab.Options{Rate: 100e6}))
	begin := time.Now()
	if d, code := s.Run(s.A, shortLimit, slices.Concat(words("tune %s --json --yes", Peer), Kills(*seed, 0, 1, time.Second, 1)[0].Args)...); code != 0 {
		t.Fatalf("without a kill: %s", wrong(d, code))
	}
	s.RollBack()
	whole := time.Since(begin)
	fmt.Printf("a tuning takes %.1f s\n", whole.Seconds())
	var all []Killed
	tally, lines := map[string][3]int{}, map[string]int{} // by who: times, with changes open, restored without rollback; by the last line
	for i, k := range Kills(*seed, *first, *kills, whole, 20) {
		r := k.Do(s)
		fmt.Printf("%3d %s\n", *first+i, r)
		n := tally[k.Who]
		n[0]++
		if r.Open > 0 {
			n[1]++
		}
		if r.Open > 0 && r.Alone {
			n[2]++
		}
		tally[k.Who] = n
		lines[r.Last]++
		all = append(all, r)
		if !r.Right() {
			t.Errorf("%3d %s (thru tune %q)", *first+i, r, k.Args)
		}
	}
	for _, who := range []string{Controller, Agent, Both, PowerCut} {
		n := tally[who]
		fmt.Printf("%-14s killed %3d times, %3d of them with changes open, of which %3d were undone without a rollback\n", who, n[0], n[1], n[2])
	}
	fmt.Println("killed after lines of the journal:", lines)
	for _, w := range TooFew(all) {
		t.Error(w)
	}
}

// TestAA compares a healthy path with itself.
func TestAA(t *testing.T) {
	s := Over(t, lab.NewPair(t, lab.Options{Rate: 1e9}))
	before := s.Settings()
	d, code := s.Run(s.A, programLimit, words("tune %s --json --yes -t 0.5 -O 0.2 --one-way --budget 2h --aa %d", Peer, *aa)...)
	save(t, "aa", d)
	if code != 0 || d.Tuning == nil || len(d.Tuning.Attempts) != *aa {
		t.Fatalf("%s, tuning %+v", wrong(d, code), d.Tuning)
	}
	outcomes := map[string]int{}
	for _, a := range d.Tuning.Attempts {
		fmt.Println("    " + tried(a))
		if a.Comparison == nil {
			t.Fatalf("nothing was compared: %+v", a)
		}
		outcomes[a.Comparison.Outcome]++
	}
	fmt.Printf("%-58s %d comparisons of %.1f Mb/s with itself: %v\n", "a-a", *aa, milestone(d, 0)["local -> peer"]/1e6, outcomes)
	if n := *aa - outcomes[measure.Equivalent] - outcomes[measure.Undecided]; n > *aa/30 {
		t.Errorf("%d of %d are neither equivalent nor undecided", n, *aa)
	}
	for _, line := range s.Changed(before) {
		t.Error(line)
	}
}
