package vm

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"
	"github.com/google/go-cmp/cmp"
)

// TestArchive reads back what the kernel would unpack: every folder before what
// lies in it, and every file whole.
func TestArchive(t *testing.T) {
	var packed bytes.Buffer
	files := map[string]source{"init": held([]byte("#!/bin/sh\n")), "bin/thru": held([]byte{0, 1, 2}), "modules/e1000": held(nil)}
	if err := archive(&packed, files); err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	held := map[string]string{}
	for in := cpio.NewReader(unpacked); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if dir := filepath.Dir(h.Name); dir != "." && !slices.Contains(names, dir) {
			t.Errorf("%s comes before its folder", h.Name)
		}
		names = append(names, h.Name)
		if h.Mode.IsRegular() {
			text, err := io.ReadAll(in)
			if err != nil || h.Mode.Perm() != 0o755 {
				t.Errorf("%s: mode %o, %v", h.Name, h.Mode.Perm(), err)
			}
			held[h.Name] = string(text)
		}
	}
	want := map[string]string{"init": "#!/bin/sh\n", "bin/thru": "\x00\x01\x02", "modules/e1000": ""}
	if diff := cmp.Diff(want, held); diff != "" {
		t.Error(diff)
	}
	for _, dir := range []string{"dev", "proc", "sys", "root"} { // init mounts on them, and is at home there
		if !slices.Contains(names, dir) {
			t.Errorf("no folder %s", dir)
		}
	}
	broken := map[string]source{"init": func() ([]byte, error) { return nil, fs.ErrNotExist }}
	if err := archive(io.Discard, broken); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// TestStatic: a script is no program that the image can hold.
func TestStatic(t *testing.T) {
	script := filepath.Join(t.TempDir(), "busybox")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := static(script); err == nil {
		t.Error("a script passes for a static program")
	}
}

// TestFirstDepends reads what apt-cache(8) prints.
func TestFirstDepends(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"linux-image-amd64\n  Depends: linux-image-6.1.0-9-amd64\n  Depends: other\n", "linux-image-6.1.0-9-amd64"},
		{"linux-image-amd64\n", ""},
		{"", ""},
	} {
		if got := firstDepends(tt.text); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

// TestFindKernel finds a kernel in both layouts of Debian, and says so where there is none.
func TestFindKernel(t *testing.T) {
	folder := t.TempDir()
	if _, err := findKernel(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	for _, tt := range []struct{ name, lib string }{{"linux-image-6.1.0-9-amd64", "lib"}, {"linux-image-6.12.1-amd64", "usr/lib"}} {
		folder := t.TempDir()
		release := strings.TrimPrefix(tt.name, "linux-image-")
		tree := filepath.Join(folder, tt.name, tt.lib, "modules", release)
		if err := os.MkdirAll(tree, 0o755); err != nil {
			t.Fatal(err)
		}
		k, err := findKernel(folder)
		want := Kernel{Name: tt.name, Tree: tree, Image: filepath.Join(folder, tt.name, "boot", "vmlinuz-"+release)}
		if err != nil || k != want {
			t.Errorf("%+v, %v, want %+v", k, err, want)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "linux-image-broken"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := findKernel(folder); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a kernel without modules: %v", err)
	}
}
