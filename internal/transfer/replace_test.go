package transfer

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestReplace: whatever a server refuses, the old file or the new one has the
// name, and the old one is removed only when the new one has it.
func TestReplace(t *testing.T) {
	const temp, name = ".thru-NEW.part", "file"
	for what, c := range map[string]struct {
		there   bool
		refused []int // renames, counted from 0
		strict  bool  // a rename replaces nothing
		stuck   bool  // nothing is removed
		want    string
		fails   bool
	}{
		"at once":                       {there: true, want: "new"},
		"nothing there":                 {strict: true, want: "new"},
		"replaces nothing":              {there: true, strict: true, want: "new"},
		"no rename is allowed":          {there: true, refused: []int{0, 1, 2, 3}, want: "old", fails: true},
		"nothing there, no rename":      {refused: []int{0, 1, 2, 3}, fails: true},
		"the second refused":            {there: true, strict: true, refused: []int{2}, want: "old", fails: true},
		"the second refused and back":   {there: true, strict: true, refused: []int{2, 3}, fails: true},
		"the old one cannot be removed": {there: true, strict: true, stuck: true, want: "new", fails: true},
	} {
		t.Run(what, func(t *testing.T) {
			files, calls := map[string]string{temp: "new"}, 0
			if c.there {
				files[name] = "old"
			}
			rename := func(from, to string) error {
				n := calls
				calls++
				_, source := files[from]
				if _, target := files[to]; slices.Contains(c.refused, n) || !source || target && c.strict {
					return errors.New("refused")
				}
				files[to] = files[from]
				delete(files, from)
				return nil
			}
			remove := func(n string) error {
				if c.stuck {
					return errors.New("refused")
				}
				delete(files, n)
				return nil
			}
			err := Replace(temp, name, rename, remove)
			if files[name] != c.want || (err != nil) != c.fails {
				t.Errorf("%q has the name, %v", files[name], err)
			}
			all := slices.Collect(maps.Values(files))
			if c.there && err != nil && !slices.Contains(all, "old") || !c.there && files[name] == "" && !slices.Contains(all, "new") {
				t.Errorf("lost: %v", files)
			}
			for n, text := range files {
				if text == "old" && n != name && (err == nil || !strings.Contains(err.Error(), n)) {
					t.Errorf("the old file is %s, error %v", n, err)
				}
			}
			if left := (*Left)(nil); c.stuck && (!errors.As(err, &left) || files[left.Path] != "old") {
				t.Errorf("%v", err)
			}
		})
	}
}
