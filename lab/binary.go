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

// Binary returns the path of the program under test: that of the variable
// THRU_BINARY, or one built from ./cmd/thru once per test process as a
// release is built, without cgo.
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

// built remembers the outcome of build, so that every test of a process runs
// the same program.
var built = sync.OnceValues(build)

// build leaves the program in bin/ of the repository, which git ignores. It
// is moved there when complete, since other test processes may be running it.
func build() (string, error) {
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("lab: finding the repository: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	path := filepath.Join(root, "bin", "thru-lab")
	unfinished := fmt.Sprintf("%s-%d", path, os.Getpid())
	cmd := exec.Command("go", "build", "-trimpath", "-o", unfinished, "./cmd/thru") // as make builds it: what that has compiled is found
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("lab: building ./cmd/thru: %w\n%s", err, out)
	}
	if err := os.Rename(unfinished, path); err != nil {
		return "", errors.Join(fmt.Errorf("lab: keeping the built program: %w", err), os.Remove(unfinished))
	}
	return path, nil
}
