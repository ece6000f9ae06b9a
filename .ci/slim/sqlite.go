package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// sqlite has extensions that thru's tables do not use: full-text search (FTS5), R-trees and geometry. In the copy their
// start does nothing, and no function runs at every start to fill their tables: 0.7 MB. C's functions become a function of
// Go in one or more of the files of sqlite/lib, which are for sets of systems.
func sqlite(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "lib", "*.go"))
	if err != nil {
		return err
	}
	tables, starts := 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		left, n := replaceFunctions(string(text), "func init() {", func(f string) string {
			if extension(f) {
				return ""
			}
			return f
		})
		tables += n
		for _, name := range []string{"Fts5", "Rtree"} {
			head := "func _sqlite3" + name + "Init(tls *libc.TLS, db uintptr) (r int32) {"
			left, n = replaceFunctions(left, head, func(string) string { return head + "\n\treturn SQLITE_OK\n}" })
			starts += n
		}
		if left == string(text) {
			continue
		}
		if err := create(file, left); err != nil {
			return err
		}
	}
	if tables < 7 || starts < 2 {
		return fmt.Errorf("%w: its extensions have %d tables and %d functions that start them", errUnknown, tables, starts)
	}
	return nil
}

// extension tells whether a function fills a table of an extension. The one of _sqlite3BuiltinExtensions, which has the
// functions that start them, is none.
func extension(function string) bool {
	return regexp.MustCompile(`__ccgo_fp\(_(fts5|rtree|geopoly)`).MatchString(function)
}

// replaceFunctions replaces the functions of a text that begin with a line, and counts those that change.
func replaceFunctions(text, head string, with func(string) string) (string, int) {
	var b strings.Builder
	changed := 0
	for {
		before, rest, found := strings.Cut(text, "\n"+head+"\n")
		b.WriteString(before)
		if !found {
			return b.String(), changed
		}
		body, after, _ := strings.Cut(rest, "\n}\n")
		was := head + "\n" + body + "\n}"
		now := with(was)
		if now != was {
			changed++
		}
		b.WriteString("\n" + now)
		text = "\n" + after
	}
}
