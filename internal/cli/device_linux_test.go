package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"thru/internal/fault"
)

// TestReplaceFile: a report is written into an existing pipe or device; a link stays, and its target is
// replaced.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	pipe, file, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, link} {
		if err := writable("--html", name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := replaceFile("--html", name, []byte("page")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := make([]byte, 4)
	if n, err := reader.Read(b); string(b[:n]) != "page" || err != nil {
		t.Errorf("the pipe holds %q, %v", b[:n], err)
	}
	if got, err := os.ReadFile(file); string(got) != "page" || err != nil {
		t.Errorf("the file holds %q, %v", got, err)
	}
	for name, mode := range map[string]os.FileMode{pipe: os.ModeNamedPipe, link: os.ModeSymlink} {
		if info, err := os.Lstat(name); err != nil || info.Mode().Type() != mode {
			t.Errorf("%s is %v now, %v", name, info.Mode(), err)
		}
	}
	if all, _ := os.ReadDir(dir); len(all) != 3 {
		t.Errorf("left behind: %v", all)
	}
	if err := replaceFile("--html", "/dev/full", []byte("page")); !strings.Contains(fault.Hint(err), "free space") {
		t.Errorf("a full disk: %v, hint %q", err, fault.Hint(err))
	}
}
