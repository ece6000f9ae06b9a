package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// errUnknown says that a library has changed, and what thru changes in it must change too.
var errUnknown = errors.New("its text is not what .ci/slim knows")

// copySources copies what a build needs of a module, and what a copy must come with.
func copySources(from, to string) error {
	return filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !needed(d.Name()) {
			return nil
		}
		below, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return create(filepath.Join(to, below), string(text))
	})
}

// needed tells whether a build or a release reads a file of this name.
func needed(name string) bool {
	for _, legal := range []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS", "go."} {
		if strings.HasPrefix(name, legal) {
			return true
		}
	}
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".s")
}

// create writes a file, and makes its folder.
func create(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// rewrite replaces all matches of an expression in a file, of which there must be a number.
func rewrite(file, expression, with string, times int) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	re := regexp.MustCompile("(?m)" + expression)
	if n := len(re.FindAllIndex(text, -1)); n != times {
		return fmt.Errorf("%s: %w: %q is there %d times, not %d", filepath.Base(file), errUnknown, expression, n, times)
	}
	return create(file, re.ReplaceAllString(string(text), with))
}
