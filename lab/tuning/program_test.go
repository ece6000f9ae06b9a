package tuning

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
)

// programLimit ends a program that runs too long: 60 comparisons of a path with itself take half an hour, and
// twice that where all are repeated.
const programLimit = 90 * time.Minute

// Program is thru running in a host.
type Program struct {
	t           testing.TB
	cmd         *exec.Cmd
	out, errors text
	ended       chan struct{} // closed when it has ended
	exit        int           // valid after ended; -1 where a signal ended it
}

// text collects what a program writes while others read it.
type text struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *text) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns all output so far.
func (o *text) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Start starts thru in a host, with the host's home. It is killed when the test ends.
func (s *Scene) Start(h *lab.Host, stdin string, args ...string) *Program {
	s.t.Helper()
	return s.StartBy(h, nil, stdin, args...)
}

// StartBy is Start with a program in front, such as one that drops rights.
func (s *Scene) StartBy(h *lab.Host, by []string, stdin string, args ...string) *Program {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), programLimit)
	p := &Program{t: s.t, ended: make(chan struct{})}
	line := slices.Concat(s.booted(), by, []string{lab.Binary(s.t)}, args)
	p.cmd = h.Command(ctx, line[0], line[1:]...)
	p.cmd.Env = append(os.Environ(), "HOME="+s.homes[h], "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=")
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = strings.NewReader(stdin), &p.out, &p.errors
	if err := p.cmd.Start(); err != nil {
		cancel()
		s.t.Fatalf("tuning: starting thru %s: %v", strings.Join(args, " "), err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // p.exit has the exit code
		p.exit = p.cmd.ProcessState.ExitCode()
	}()
	s.t.Cleanup(func() { cancel(); <-p.ended })
	return p
}

// booted returns a command prefix that gives a program another boot id (random(4)): each program in a host
// has its own mount namespace (ip-netns(8)).
func (s *Scene) booted() []string {
	if s.boot == "" {
		return nil
	}
	return []string{"sh", "-c", `mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"`, s.boot}
}

// Stdout is the standard output so far.
func (p *Program) Stdout() string { return p.out.String() }

// Stderr is the standard error so far.
func (p *Program) Stderr() string { return p.errors.String() }

// Running reports whether the program still runs.
func (p *Program) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Wait returns the exit code, -1 where a signal ended it, and fails the test if
// it runs longer than the limit.
func (p *Program) Wait(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.t.Fatalf("tuning: %s still runs after %v: %s", strings.Join(p.cmd.Args, " "), limit, p.Stderr())
	}
	return p.exit
}

// Signal sends a signal to this process only, and none if it has ended.
func (p *Program) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// Document decodes the standard output, which must be one document.
func (p *Program) Document() *measure.Document {
	p.t.Helper()
	var d measure.Document
	if err := json.Unmarshal([]byte(p.Stdout()), &d); err != nil {
		p.t.Fatalf("tuning: %s: exit %d: the output is no document: %v\n%.2000s%.2000s", strings.Join(p.cmd.Args, " "), p.exit, err, p.Stdout(), p.Stderr())
	}
	return &d
}

// Run runs thru in a host to its end and returns its document and exit code.
func (s *Scene) Run(h *lab.Host, limit time.Duration, args ...string) (*measure.Document, int) {
	s.t.Helper()
	p := s.Start(h, "", args...)
	code := p.Wait(limit)
	return p.Document(), code
}

// wrong describes the error of a command that failed.
func wrong(d *measure.Document, code int) string {
	if d.Error == nil {
		return fmt.Sprintf("exit %d", code)
	}
	return fmt.Sprintf("exit %d: %s (%s)", code, d.Error.Message, d.Error.Hint)
}
