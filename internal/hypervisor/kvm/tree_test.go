package kvm

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"thru/internal/measure"
)

// recorded unpacks a host of testdata. A file "-> x" is a symbolic link to x; in
// a cmdline each line is an argument.
func recorded(t testing.TB, name string) string {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, f := range a.Files {
		if strings.HasSuffix(f.Name, "/cmdline") {
			f.Data = bytes.ReplaceAll(f.Data, []byte("\n"), []byte{0})
		}
		put(t, root, f.Name, string(f.Data))
	}
	return root
}

// put writes a file below a root.
func put(t testing.TB, root, name, data string) {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if to, isLink := strings.CutPrefix(strings.TrimSpace(data), "-> "); isLink {
		err = errors.Join(err, os.Symlink(to, file))
	} else {
		err = errors.Join(err, os.WriteFile(file, []byte(data), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// noted reports whether a fact is among the notes, with a reason that
// contains some words.
func noted(list []measure.NotChecked, fact, why string) bool {
	return slices.ContainsFunc(list, func(n measure.NotChecked) bool { return n.Fact == fact && strings.Contains(n.Why, why) })
}

// show prints the target of a pointer.
func show[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}
