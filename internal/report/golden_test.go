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
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden compares each printer's output with testdata; run with -update
// to accept a change, and read the difference before it is committed.
func TestGolden(t *testing.T) {
	printers := map[string]func(io.Writer, *measure.Document) error{
		"txt":  func(w io.Writer, d *measure.Document) error { return Text(w, d, TextOptions{Width: 80}) },
		"json": JSON,
		"html": func(w io.Writer, d *measure.Document) error { return HTML(w, d, HTMLOptions{}) },
	}
	for name, d := range goldenDocuments() {
		for kind, print := range printers {
			t.Run(name+"."+kind, func(t *testing.T) {
				var got bytes.Buffer
				if err := print(&got, d); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join("testdata", name+"."+kind+".golden")
				if *update {
					if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got.String()); diff != "" {
					t.Errorf("-want +got (accept with -update):\n%s", diff)
				}
			})
		}
	}
}
