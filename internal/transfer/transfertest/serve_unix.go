//go:build unix

package transfertest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Serve runs a server in the foreground until the test ends, with all that it
// starts. Where the test fails, the log shows what the server said.
func Serve(t testing.TB, argv ...string) {
	t.Helper()
	said := &log{}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(argv[0]), said)
		}
	})
}

// log is what a server said, as much of it as a person would read.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write keeps the end.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b.Len() > 64<<10 {
		l.b.Next(32 << 10)
	}
	return l.b.Write(b)
}

// String is what was kept.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Apart makes the folders full and ro in dir, and returns the words before a
// command that give it file systems of its own there: one of a mebibyte, and one
// that takes nothing. Nobody else sees them. They are nil without root.
func Apart(t testing.TB, dir string) []string {
	t.Helper()
	for _, name := range []string{"full", "ro"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	unshare, err := exec.LookPath("unshare")
	if os.Geteuid() != 0 || err != nil {
		return nil
	}
	script := strings.NewReplacer("DIR", "'"+dir+"'").Replace(
		`mount -t tmpfs -o size=1m,mode=777 none DIR/full && mount -t tmpfs -o ro none DIR/ro && exec "$@"`)
	return []string{unshare, "-m", "sh", "-c", script, "sh"}
}
