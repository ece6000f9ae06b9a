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
	// drain is how long the output of a killed program may stay open.
	drain = 500 * time.Millisecond
	// saidMost limits what is kept of its output.
	saidMost = 16 << 10
)

// want is what a caller wants of a run of the program.
type want struct {
	denied   error                  // for a file that may not be accessed
	progress func(int64)            // gets the progress, beginning with 0 at the start of the program; nil: nothing does
	answered func(text string) bool // whether a text of the program is the answer, so that run kills the program and returns it; nil: it ends by itself
}

// errAnswered ends a program whose answer is there.
var errAnswered = errors.New("rsync: the answer is there")

// run runs the program and returns its standard output without progress
// lines, with an answer also its error output. When ctx ends, or nothing moves for the allowed time, run kills the
// program and its children.
func (s *session) run(ctx context.Context, w want, args ...string) (string, error) {
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(s.timeout(), func() { cancel(transfer.ErrSilent) })
	defer silence.Stop()
	cmd := exec.CommandContext(watched, s.program, args...)
	// It inherits nothing from this process: neither a proxy nor another
	// password.
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "RSYNC_PASSWORD=" + s.password}
	transfer.NewSession(cmd, syscall.SIGTERM) // which ends its children too
	cmd.Cancel = func() error { return transfer.End(cmd) }
	runtime.LockOSThread() // the starting thread must live until the program has ended
	defer runtime.UnlockOSThread()
	cmd.WaitDelay = drain
	text := func(text string) {
		if w.answered != nil && w.answered(text) {
			cancel(errAnswered)
		}
	}
	said := &tail{wrote: text}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", errors.Join(context.Cause(watched), err)
	}
	if w.progress != nil {
		w.progress(0)
	}
	begun := false
	printed := follow(out, text, func(n int64) {
		begun = true
		silence.Reset(s.timeout())
		if w.progress != nil {
			w.progress(n)
		}
	})
	err = cmd.Wait()
	switch {
	case errors.Is(context.Cause(watched), errAnswered):
		return printed + said.String(), nil
	case watched.Err() != nil:
		// Until all of them have ended, one may still create the file that it
		// was about to.
		for end := time.Now().Add(drain); !transfer.Gone(cmd) && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		return printed, context.Cause(watched)
	case err != nil:
		return printed, meaning(cmd.ProcessState.ExitCode(), said.String(), w.denied, begun)
	}
	return printed, nil
}

// follow reads until the end, and returns the beginning of the output without
// progress, of which text gets each line.
func follow(out io.Reader, text func(string), progress func(int64)) (printed string) {
	last := int64(0)
	lines := bufio.NewScanner(out)
	lines.Split(scanLines)
	for lines.Scan() {
		n, ok := parseProgress(lines.Text())
		switch {
		case ok && n > last:
			last = n
			progress(n)
		case !ok && len(printed) < saidMost && lines.Text() != "":
			printed += lines.Text() + "\n"
			text(lines.Text())
		}
	}
	_, _ = io.Copy(io.Discard, out) // after a line that is too long
	return printed
}

// tail keeps the beginning of the program's error output.
type tail struct {
	wrote func(text string) // gets all that is kept

	mu sync.Mutex
	b  strings.Builder
}

// Write keeps what fits.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b.Write(b[:min(len(b), max(0, saidMost-t.b.Len()))])
	t.wrote(t.b.String())
	return len(b), nil
}

// String returns what was kept.
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

// noFile is the kernel's text for a missing file.
const noFile = "No such file or directory (2)"

// errNoFile means that the module exists and the file does not.
var errNoFile = fmt.Errorf("%w in the module", transfer.ErrMissing)

// phrases are the daemon's and the kernel's texts for errors that callers
// distinguish.
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
	{"read errors mapping", transfer.ErrShort}, // it became shorter meanwhile
	{noFile, errNoFile},
	{"Not a directory (20)", errNoFile},
	{"File name too long (36)", transfer.ErrName},
	{"Permission denied (13)", nil},
	{"Operation not permitted (1)", nil},
}

// meaning returns the error for an exit code and its output; begun reports
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
