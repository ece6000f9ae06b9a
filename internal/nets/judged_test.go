// Package nets records what thru concludes from every stored result, so that moving code of the diagnosis
// cannot change a conclusion unnoticed. It calls few entry points (judge, below): after moving a package only
// they need a change.
package nets

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thru/internal/cause"
	"thru/internal/cause/advise"
	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/lab/faults"
)

var update = flag.Bool("update", false, "write the golden files anew")

// inputs are the stored results: of faults and captures, of transfers, of misleading documents, of earlier
// versions, and the golden documents of reports.
var inputs = []string{
	"../*/testdata/faults/*.json.gz", "../*/testdata/transfers/*.json", "../*/testdata/truth/*.json",
	"../*/testdata/versions/*.json", "../report/testdata/*.json.golden",
}

// judge draws all conclusions from a document: findings in the document, gates from its facts, and advice.
func judge(d *measure.Document) (gates []measure.Gate, advice []measure.Proposal) {
	gates = judgedGates(d)
	cause.Diagnose(d)
	cause.Rungs([]*measure.Document{d})
	return gates, cause.Propose(d, advise.Seen{})
}

// judgedGates returns the gates from the facts of the document, as before its traffic.
func judgedGates(d *measure.Document) []measure.Gate {
	var s scene.Subject
	if len(d.Paths) > 0 {
		s.Path = &d.Paths[0]
	}
	if len(d.Cells) > 0 {
		spec := d.Cells[0].Spec
		s.Streams, s.UDP = spec.Streams, spec.Protocol == measure.UDP
	}
	for i, e := range d.EndPoints {
		x := scene.End{Name: e.Name, Facts: e.Facts, Shared: len(d.EndPoints) == 1, Placements: e.Placement.HostPlacement(d.Inventories)}
		if s.Path != nil && i < 2 {
			x.Route = []*measure.Route{s.Path.Forward.Route, s.Path.Back.Route}[i]
		}
		s.Ends = append(s.Ends, x)
	}
	return gate.Sort(append(cause.Judge(s), cause.JudgeHypervisors(s)...))
}

// TestJudged compares the conclusions from every stored result with its golden file.
func TestJudged(t *testing.T) {
	seen := map[string]bool{}
	for _, pattern := range inputs {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, %v", pattern, err)
		}
		for _, file := range files {
			base, _, _ := strings.Cut(filepath.Base(file), ".json")
			name := filepath.Base(filepath.Dir(file)) + "-" + base
			name = "judged/" + strings.TrimPrefix(name, "testdata-")
			if seen[name] {
				t.Fatalf("two results are called %s", name)
			}
			seen[name] = true
			d := read(t, file)
			golden(t, name+".json", concluded(t, d))
			for _, c := range d.Cells {
				for _, x := range c.Findings {
					if strings.HasPrefix(x.Next, "-") {
						t.Errorf("%s: %s: the next step begins with a flag: %s", name, x.Cause, x.Next)
					}
				}
			}
		}
	}
	held, err := filepath.Glob("testdata/judged/*.json")
	if err != nil || len(held) != len(seen) {
		t.Errorf("%d golden files of %d results, %v", len(held), len(seen), err)
	}
}

// read reads a stored result, a record of a fault or a document.
func read(t *testing.T, file string) *measure.Document {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(file, ".gz") {
		r, err := faults.ReadRecord(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		return r.Document
	}
	d, err := measure.Decode(text)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return d
}

// concluded returns the conclusions from a document, each in a line of JSON.
func concluded(t *testing.T, d *measure.Document) []byte {
	t.Helper()
	gates, advice := judge(d)
	all := []string{section(t, "gates", gates)}
	for i, c := range d.Cells {
		of := fmt.Sprintf("cell %d %s -> %s: ", i, c.From, c.To)
		all = append(all, section(t, of+"findings", c.Findings), section(t, of+"ruled out", c.RuledOut), section(t, of+"not checked", c.NotChecked), section(t, of+"experiments", experiments(d, i)))
	}
	all = append(all, section(t, "findings", d.Findings), section(t, "missing", d.Missing), section(t, "advice", advice))
	if x := d.Transfer; x != nil {
		all = append(all, section(t, "transfer", []string{x.Binds, x.Why}))
	}
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	return []byte("{\n" + strings.Join(all, ",\n") + "\n}\n")
}

// experiments returns the experiments that an explanation would make for a cell if none of them decides
// anything: the first in full, and the names of all.
func experiments(d *measure.Document, cell int) (list []any) {
	var made []string
	for len(made) < 20 {
		x, more := cause.Next(d, cell, made)
		if !more {
			break
		}
		if len(made) == 0 {
			list = append(list, []any{x.Spec, x.Causes, x.Rest, x.Again, x.OfBase, x.Cell})
		}
		made = append(made, x.Name())
	}
	if made != nil {
		list = append(list, made)
	}
	return list
}

// section returns a list, one line for each element; "" if it is empty.
func section[T any](t *testing.T, name string, list []T) string {
	t.Helper()
	var lines []string
	for _, x := range list {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(x); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSpace(b.String()))
	}
	if len(lines) == 0 {
		return ""
	}
	return fmt.Sprintf("%q: [\n%s]", name, strings.Join(lines, ",\n"))
}

// golden compares output with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
		return
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s -want +got (accept with -update):\n%s", name, diff)
	}
}
