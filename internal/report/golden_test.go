package report

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
	"thru/internal/report/facts"
	"thru/internal/report/fleet"
	"thru/internal/report/tuning"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden compares each printer's output with testdata; run with -update to accept a change, and read the
// difference before committing it.
func TestGolden(t *testing.T) {
	printers := map[string]func(io.Writer, *measure.Document) error{
		"txt":  func(w io.Writer, d *measure.Document) error { return Text(w, d, TextOptions{Width: 80}) },
		"json": JSON,
		"html": func(w io.Writer, d *measure.Document) error { return HTML(w, d, HTMLOptions{}) },
		"md":   func(w io.Writer, d *measure.Document) error { return Markdown(w, d, MarkdownOptions{}) },
		"csv":  CSV,
		"xml":  JUnit,
	}
	for name, d := range goldenDocuments() {
		for kind, print := range printers {
			t.Run(name+"."+kind, func(t *testing.T) {
				var got bytes.Buffer
				if err := print(&got, d); err != nil {
					t.Fatal(err)
				}
				golden(t, name+"."+kind, withoutStyle(got.String()))
			})
		}
	}
}

// TestGoldenTexts does so for output that is less than a result.
func TestGoldenTexts(t *testing.T) {
	o := TextOptions{Width: 80}
	for name, print := range map[string]func(io.Writer) error{
		"facts": func(w io.Writer) error { return facts.Print(w, checked(), o) },
		"knobs": func(w io.Writer) error { return tuning.Knobs(w, checked().EndPoints, o) },
		"fails": func(w io.Writer) error { return GateFailures(w, gated(), o) },
		"hosts": func(w io.Writer) error { return fleet.HostsTable(w, fleetHosts(), o) },
		"plan":  func(w io.Writer) error { return fleet.PlanList(w, meshPlan(), o) },
	} {
		var got bytes.Buffer
		if err := print(&got); err != nil {
			t.Fatal(err)
		}
		golden(t, name+"-alone.txt", got.String())
	}
}

// golden compares output with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s -want +got (accept with -update):\n%s", file, diff)
	}
}
