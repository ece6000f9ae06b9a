package rsync

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"thru/internal/transfer"
)

const (
	// drain is how long its output may stay open when it was killed.
	drain = 500 * time.Millisecond
	// saidMost bounds what is kept of what it says.
	saidMost = 16 << 10
)

// run runs the program and returns what it wrote to its standard output, but for
// the progress, which goes to progress, with 0 when the program is called. denied is what it means where a file may
// not be touched. When ctx ends, or nothing moves for the time allowed, the program
// and its children do.
func (s *session) run(ctx context.Context, denied error, progress func(int64), args ...string) (string, error) {
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(s.timeout(), func() { cancel(transfer.ErrSilent) })
	defer silence.Stop()
	cmd := exec.CommandContext(watched, s.program, args...)
	// Nothing of this process's own: neither a proxy nor another password.
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "RSYNC_PASSWORD=" + s.password}
	transfer.NewSession(cmd, syscall.SIGTERM) // which ends its children too
	cmd.Cancel = func() error { return transfer.End(cmd) }
	runtime.LockOSThread() // the thread that starts it lives until it has ended
	defer runtime.UnlockOSThread()
	cmd.WaitDelay = drain
	said := &tail{}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", errors.Join(context.Cause(watched), err)
	}
	if progress != nil {
		progress(0)
	}
	begun := false
	text := follow(out, func(n int64) {
		begun = true
		silence.Reset(s.timeout())
		if progress != nil {
			progress(n)
		}
	})
	err = cmd.Wait()
	switch {
	case watched.Err() != nil:
		// Until none of them is left, one may still make the file that it was about to.
		for end := time.Now().Add(drain); !transfer.Gone(cmd) && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		return text, context.Cause(watched)
	case err != nil:
		return text, meaning(cmd.ProcessState.ExitCode(), said.String(), denied, begun)
	}
	return text, nil
}

// follow reads until the end, and returns the begin of what was no progress.
func follow(out io.Reader, progress func(int64)) (text string) {
	last := int64(0)
	lines := bufio.NewScanner(out)
	lines.Split(scanLines)
	for lines.Scan() {
		n, ok := parseProgress(lines.Text())
		switch {
		case ok && n > last:
			last = n
			progress(n)
		case !ok && len(text) < saidMost && lines.Text() != "":
			text += lines.Text() + "\n"
		}
	}
	_, _ = io.Copy(io.Discard, out) // after a line that is too long
	return text
}

// tail keeps the begin of what the program complains of.
type tail struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write keeps what there is room for.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b.Write(b[:min(len(b), max(0, saidMost-t.b.Len()))])
	return len(b), nil
}

// String is what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// Exit codes of the program (rsync(1), EXIT VALUES).
const (
	exitSocket     = 10
	exitStream     = 12
	exitSilent     = 30
	exitSilentOpen = 35
)

// errNoFile says that the module is there and the file is not.
var errNoFile = fmt.Errorf("%w in the module", transfer.ErrMissing)

// phrases are the daemon's and the kernel's words for what callers tell apart.
var phrases = []struct {
	text  string
	means error // nil: denied
}{
	{"auth failed", transfer.ErrLogin},
	{"access denied to", transfer.ErrLogin},
	{"Unknown module", transfer.ErrMissing},
	{"module is read only", transfer.ErrReadOnly},
	{"module is write only", transfer.ErrDenied},
	{"Read-only file system (30)", transfer.ErrReadOnly},
	{"No space left on device (28)", transfer.ErrFull},
	{"Disk quota exceeded (122)", transfer.ErrFull},
	{"read errors mapping", transfer.ErrShort}, // it has become shorter meanwhile
	{"No such file or directory (2)", errNoFile},
	{"Not a directory (20)", errNoFile},
	{"File name too long (36)", transfer.ErrName},
	{"Permission denied (13)", nil},
	{"Operation not permitted (1)", nil},
}

// meaning is the error of an exit code and what was said with it; begun tells
// whether bytes had come.
func meaning(code int, said string, denied error, begun bool) error {
	program := fmt.Errorf("rsync, exit code %d: %s", code, complaint(said))
	for _, p := range phrases {
		if strings.Contains(said, p.text) {
			if p.means == nil {
				p.means = denied
			}
			return fmt.Errorf("%w (%w)", p.means, program)
		}
	}
	switch {
	case code == exitSilent || code == exitSilentOpen:
		return fmt.Errorf("%w (%w)", transfer.ErrSilent, program)
	case code == exitStream || code == exitSocket && begun:
		return fmt.Errorf("%w (%w)", transfer.ErrShort, program)
	}
	return program
}
