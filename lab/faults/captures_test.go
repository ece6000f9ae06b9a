//go:build faults && linux

package faults

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
)

var takeOnly = flag.Bool("take-only", false, "take the captures that are missing in the folder of -keep, and judge none")

// TestCaptures captures every row of Captures at both ends, and runs `thru explain` on each capture alone and
// on both. It reuses captures that the folder of -keep has.
func TestCaptures(t *testing.T) {
	var tally Tally
	begin, dir := time.Now(), *keep
	if dir == "" {
		dir = t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	fmt.Println(Head())
	for _, c := range Captures() {
		t.Run(c.Name, func(t *testing.T) { judgeCaptures(t, c, dir, &tally) })
	}
	fmt.Printf("\n%s in %.0f s\n", &tally, time.Since(begin).Seconds())
	for _, r := range tally.Wrong {
		fmt.Println("wrong:", r)
	}
}

// judgeCaptures captures one row, and prints a row of the result for each set of captures.
func judgeCaptures(t *testing.T, c Captured, dir string, tally *Tally) {
	if !c.FilesIn(dir).There() {
		takeAlone(t, c, dir)
	}
	if *takeOnly {
		fmt.Printf("%-26s %10.1f Mb/s\n", c.Name, c.FilesIn(dir).Goodput()/1e6)
		return
	}
	for _, l := range c.Looks(dir) {
		d := explain(t, c, l)
		r := c.JudgeLook(l, d)
		fmt.Println(r)
		tally.Add(r)
		if !r.Right() {
			fmt.Printf("    (%s; found %s)\n", c.About, strings.Join(r.Found, " "))
			t.Fail()
		} else if *store != "" {
			storeLook(t, c, l, d)
		}
	}
}

// storeLook records the document of a right result.
func storeLook(t *testing.T, c Captured, l Look, d *measure.Document) {
	r, err := NewRecord(Fault{Name: "captured-" + c.Name + "-" + l.Name, About: c.About, Forward: l.Want}, d)
	if err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(*store, r.Fault+".json.gz"), r.Write)
}

// takeAlone captures while no other fault is measured, and removes the captures after an error.
func takeAlone(t *testing.T, c Captured, dir string) {
	defer take(t)()
	defer func() {
		if f := c.FilesIn(dir); t.Failed() {
			_ = errors.Join(os.Remove(f.Sender), os.Remove(f.Receiver)) // they may not be there
		}
	}()
	Take(t, c, dir)
	if t.Failed() {
		t.FailNow()
	}
}

// explain returns the document of `thru explain` for a set of captures.
func explain(t *testing.T, c Captured, l Look) *measure.Document {
	t.Helper()
	args := slices.Concat([]string{"explain", "--json"}, c.Explain)
	for _, f := range l.Files {
		args = append(args, filepath.Base(f)) // a record names no folder of this machine
	}
	cmd := exec.Command(lab.Binary(t), args...)
	cmd.Dir = filepath.Dir(l.Files[0])
	out, err := cmd.Output()
	var d measure.Document
	if wrong := json.Unmarshal(out, &d); wrong != nil {
		t.Fatalf("faults: %s: %v: the output is no document: %v\n%.2000s", strings.Join(cmd.Args, " "), err, wrong, out)
	}
	return &d
}
