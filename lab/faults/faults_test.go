//go:build faults && linux

package faults

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
)

// Flags of the measurement.
var (
	command = flag.String("command", "explain", "command of thru that is to find the faults, with flags: explain, or test for what the traffic alone tells")
	runs    = flag.Int("runs", 1, "so many times")
	seed    = flag.Uint64("seed", 1, "of the strengths that TestVariants chooses in its first run")
	keep    = flag.String("keep", "", "folder for the documents, as they are")
	store   = flag.String("store", "", "folder for records of what was found right, which the tests of diagnose replay")
	lock    = flag.String("lock", "", "file to hold locked during a fault, so that several on one machine take turns")
)

// TestMain prints the head of the table, and a summary at the end.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Setenv(lab.RequireVariable, "1") // missing requirements fail instead of skipping
	os.Exit(m.Run())
}

// TestFaults measures every fault and every healthy path.
func TestFaults(t *testing.T) {
	measureAll(t, func(int) []Fault { return All() })
	why := map[string][]string{}
	for _, cause := range slices.Sorted(maps.Keys(LeftOut())) {
		why[LeftOut()[cause]] = append(why[LeftOut()[cause]], cause)
	}
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		fmt.Printf("left out: %s: %s\n", strings.Join(why[reason], " "), reason)
	}
}

// TestVariants measures faults of other strengths, and pairs of faults; each run has its own seed.
func TestVariants(t *testing.T) {
	measureAll(t, func(run int) []Fault { return Variants(*seed + uint64(run)) })
}

// measureAll measures the faults of each run and prints the summary.
func measureAll(t *testing.T, faults func(run int) []Fault) {
	var tally Tally
	var names []string
	again := map[string][]func(*testing.T){} // by name: a second subtest of one name would have another, which -run does not match
	for n := range *runs {
		for _, f := range faults(n) {
			if again[f.Name] == nil {
				names = append(names, f.Name)
			}
			again[f.Name] = append(again[f.Name], func(t *testing.T) { measureFault(t, f, n, &tally) })
		}
	}
	begin := time.Now()
	fmt.Println(Head())
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			for n, run := range again[name] {
				t.Run(fmt.Sprint(n+1), run)
			}
		})
	}
	fmt.Printf("\n%s in %.0f s\n", &tally, time.Since(begin).Seconds())
	for _, r := range tally.Wrong {
		fmt.Println("wrong:", r)
	}
}

// measureFault measures one fault, prints its rows, and fails the test where one is wrong.
func measureFault(t *testing.T, f Fault, run int, tally *Tally) {
	defer take(t)()
	d, rows := Run(t, f, strings.Fields(*command)...)
	for _, r := range rows {
		fmt.Println(r)
		tally.Add(r)
		if !r.Right() {
			fmt.Printf("    (%s; found %s)\n", f.About, strings.Join(r.Found, " "))
			t.Fail()
		}
	}
	if *keep != "" {
		saveDocument(t, filepath.Join(*keep, fmt.Sprintf("%s-%d.json", f.Name, run+1)), d)
	}
	if *store != "" && !t.Failed() {
		r, err := NewRecord(f, d)
		if err != nil {
			t.Fatal(err)
		}
		save(t, filepath.Join(*store, f.Name+".json.gz"), r.Write)
	}
}

// saveDocument writes a document as thru printed it.
func saveDocument(t *testing.T, path string, d *measure.Document) {
	t.Helper()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	save(t, path, func(w io.Writer) error { _, err := w.Write(text); return err })
}

// save writes a file.
func save(t *testing.T, path string, write func(io.Writer) error) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err == nil {
		err = errors.Join(write(file), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// takeOver is how long another process has to take the lock between two faults: without it this process would
// take the lock again before others wake up.
const takeOver = 300 * time.Millisecond

// take holds the lock until give is called.
func take(t *testing.T) (give func()) {
	if *lock == "" {
		return func() {}
	}
	file, err := os.OpenFile(*lock, os.O_CREATE|os.O_RDWR, 0o666)
	if err == nil {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = file.Close()
		time.Sleep(takeOver)
	}
}
