package transfer

import (
	"errors"
	"path"
	"strings"
	"testing"

	"thru/internal/fault"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "a/b.bin", ".hidden", "a..b", "...", "ü/x y", strings.Repeat("a", 255), "a:b", "~/a"} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/./b", `..\a`, `a\..\b`, `\a`, "a\nb", "a\rb", "a\x00b", "a\x7fb", "//a",
		strings.Repeat("a", 256), strings.Repeat("ab/", 1366) + "a",
	} {
		if err := CheckName(name); !errors.Is(err, ErrName) || fault.Code(err) != fault.Usage || len(err.Error()) > 300 {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}

func TestTempName(t *testing.T) {
	a, b := TempName("dir/file"), TempName("dir/file")
	if a == b || path.Dir(a) != "dir" || CheckName(a) != nil || CheckName(TempName("file")) != nil {
		t.Errorf("%q, %q", a, b)
	}
}

func FuzzCheckName(f *testing.F) {
	for _, s := range []string{"a/b", "../a", "/a", `a\..`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if CheckName(name) != nil {
			return
		}
		if clean := path.Clean(name); clean != name || strings.HasPrefix(clean, "..") && (len(clean) == 2 || clean[2] == '/') || path.IsAbs(name) {
			t.Errorf("%q passes, and is %q", name, clean)
		}
		for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' }) {
			if part == ".." {
				t.Errorf("%q passes", name)
			}
		}
	})
}
