package stage

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"thru/internal/transfer"
)

// TestFolder: a folder is private, stays while it is in use, and is removed
// with all its files.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	f, err := In(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(f.Path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
	if err := os.WriteFile(f.File("secret"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	clear(dir)
	if _, err := os.Stat(f.File("secret")); err != nil {
		t.Error("one in use is cleared:", err)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestFull: no folder is created where there is no room.
func TestFull(t *testing.T) {
	if _, known := Room(os.TempDir()); !known {
		t.Skip("the room of a file system is not known here")
	}
	if f, err := New(math.MaxInt64); !errors.Is(err, transfer.ErrFull) {
		t.Error(f, err)
	}
}

// inFolder is set for the process that TestKilled kills.
const inFolder = "THRU_TEST_STAGE"

// TestKilled: the next process removes what a killed one has left; anything
// but a private folder of this user stays.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(inFolder); dir != "" {
		f, err := In(dir)
		if err == nil {
			err = os.WriteFile(f.File("secret"), []byte("x"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("made\n")
		select {} // until it is killed
	}
	if runtime.GOOS == "windows" {
		t.Skip("no locks of folders there: nothing is cleared")
	}
	dir := t.TempDir()
	shared, link := filepath.Join(dir, prefix+"shared"), filepath.Join(dir, prefix+"link")
	for _, err := range []error{os.Mkdir(shared, 0o700), os.Chmod(shared, 0o755), os.Symlink(t.TempDir(), link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
	child.Env = append(os.Environ(), inFolder+"="+dir)
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 5)
	if _, err := out.Read(said); err != nil || string(said) != "made\n" {
		t.Fatalf("%q, %v", said, err)
	}
	clear(dir)
	if left, _ := os.ReadDir(dir); len(left) != 3 {
		t.Errorf("while it lives: %v", left)
	}
	child.Process.Kill()
	child.Wait()
	clear(dir)
	left, _ := os.ReadDir(dir)
	if len(left) != 2 || !strings.HasSuffix(left[0].Name(), "link") || !strings.HasSuffix(left[1].Name(), "shared") {
		t.Errorf("left: %v", left)
	}
}

// TestLockFails: an error other than a held lock, or missing lock support, is
// returned.
func TestLockFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no locks of files there")
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	if held, err := Lock(f); !held || err != nil {
		t.Errorf("a file without an owner: %v, %v", held, err)
	}
	f.Close()
	if held, err := Lock(f); held || err == nil || errors.Is(err, ErrLocked) {
		t.Errorf("a closed one: %v, %v", held, err)
	}
}
