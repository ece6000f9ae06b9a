package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Binary returns the path of the program under test: the value of THRU_BINARY, or a program built from
// ./cmd/thru once per test process, without cgo like a release.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("THRU_BINARY"); path != "" {
		return path
	}
	path, err := built()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return path
}

// built builds once, so that every test of a process runs the same program.
var built = sync.OnceValues(build)

// build writes the program to bin/ of the repository, which git ignores. It renames the complete file, since
// other test processes may be running the old one.
func build() (string, error) {
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("lab: finding the repository: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	path := filepath.Join(root, "bin", "thru-lab")
	unfinished := fmt.Sprintf("%s-%d", path, os.Getpid())
	for _, args := range [][]string{
		{"make", "-s", "bin/slim.mod"},
		{"go", "build", "-trimpath", "-modfile", "bin/slim.mod", "-o", unfinished, "./cmd/thru"}, // as make builds what people get
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("lab: building ./cmd/thru: %w\n%s", err, out)
		}
	}
	if err := os.Rename(unfinished, path); err != nil {
		return "", errors.Join(fmt.Errorf("lab: keeping the built program: %w", err), os.Remove(unfinished))
	}
	return path, nil
}
