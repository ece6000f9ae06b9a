package host

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// recordedTree unpacks a recorded machine of testdata; a file "-> x" is a symbolic link to x.
func recordedTree(t *testing.T, name string) FS {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, f := range a.Files {
		file := filepath.Join(root, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		err := os.WriteFile(file, f.Data, 0o644)
		if to, isLink := strings.CutPrefix(strings.TrimSpace(string(f.Data)), "-> "); isLink {
			err = errors.Join(os.Remove(file), os.Symlink(to, file))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return FS{tree.Tree{Root: root}}
}

// noted reports whether a fact is among the notes, with a reason.
func noted(list []measure.NotChecked, fact string) bool {
	return slices.ContainsFunc(list, func(n measure.NotChecked) bool { return n.Fact == fact && n.Why != "" })
}

// show prints what a pointer points to.
func show[T any](p *T) any {
	if p == nil {
		return "not checked"
	}
	return *p
}
