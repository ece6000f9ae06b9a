package worker

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"thru/internal/fault"
)

// Program starts worker processes: this program, from a file descriptor opened at start, so that an upgrade on disk does not mix two versions.
type Program struct {
	path string
	args []string
	file *os.File
}

// Verb is the hidden command for which cmd/thru runs Main.
const Verb = "worker"

// Self returns the running program.
func Self() (*Program, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fault.Failf("mount /proc: thru needs it", "worker: finding this program: %w", err)
	}
	p := &Program{path: exe, args: []string{Verb}}
	if runtime.GOOS != "linux" { // wine shows a /proc in which Windows cannot start programs
		return p, nil
	}
	if f, err := openAbove(highestPassed, "/proc/self/exe"); err == nil {
		p.file, p.path = f, "/proc/self/fd/"+strconv.Itoa(int(f.Fd()))
	}
	return p, nil
}

// ProgramHeld reports whether workers can be started even without the program's file.
func (p *Program) ProgramHeld() bool { return p.file != nil }

// highestPassed is above every descriptor that a worker inherits: those take the numbers from 3 on before exec.
const highestPassed = 15

// openAbove opens a file with a descriptor above that number.
func openAbove(number uintptr, path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil || f.Fd() > number {
		return f, err
	}
	defer f.Close()
	return openAbove(number, path)
}

// Close closes the file descriptor.
func (p *Program) Close() error {
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}

// Command returns a command for this program with other arguments, not started yet.
func (p *Program) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.path, args...)
	cmd.Args[0] = os.Args[0] // the name in process lists
	return cmd
}

// spareThreads are the worker's threads in addition to those that block in raw calls: the sampler, the reader of the pipe and the runtime's own.
const spareThreads = 4

func startFault(err error) error {
	return fault.Failf("raise the limits of this host for open files or processes (ulimit -n, ulimit -u)", "worker: starting the worker: %w", err)
}

// process is a running worker with its pipes.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	stderr headBuffer
	exited chan struct{} // closed when the process has ended
	err    error         // of Wait; set before exited closes
}

// start runs a worker with room for the threads of that many streams. It inherits the extra files from descriptor 3 on.
func (p *Program) start(streams int, extra ...*os.File) (*process, error) {
	w := &process{cmd: p.Command(p.args...), exited: make(chan struct{})}
	w.cmd.Env = append(os.Environ(),
		"GOGC=off", "GOMEMLIMIT=off", // a collection would wait for the blocked threads
		"GODEBUG=asyncpreemptoff=1",
		"GOMAXPROCS="+strconv.Itoa(streams+spareThreads))
	w.cmd.Stderr, w.cmd.ExtraFiles = &w.stderr, extra
	var err error
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, startFault(err)
	}
	out, wr, err := os.Pipe()
	if err != nil {
		w.in.Close()
		return nil, startFault(err)
	}
	w.out, w.cmd.Stdout = out, wr
	err = w.cmd.Start()
	wr.Close()
	if err != nil {
		out.Close()
		return nil, startFault(err)
	}
	go func() {
		w.err = w.cmd.Wait()
		close(w.exited)
	}()
	return w, nil
}

// end closes the pipe, which makes a healthy worker exit at once, and kills a worker that does not exit. It returns when the process is gone.
func (w *process) end() {
	w.in.Close()
	select {
	case <-w.exited:
	case <-time.After(500 * time.Millisecond):
		w.cmd.Process.Kill()
		<-w.exited
	}
}

const deathHint = "read the kernel's log: the worker was killed, or had too little memory or too few open files (ulimit -n)"

// death returns the error for a worker that ended without a message.
func (w *process) death() error {
	select {
	case <-w.exited:
	case <-time.After(time.Second):
		return fmt.Errorf("worker: the worker closed its pipe")
	}
	if line := w.stderr.line(); line != "" {
		return fault.Failf(deathHint, "worker: the worker died (%v): %s", w.err, line)
	}
	return fault.Failf(deathHint, "worker: the worker died: %v", w.err)
}

// headBuffer keeps the first 4 KB of a worker's error output.
type headBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *headBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := 4096 - t.b.Len(); room > 0 {
		t.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// line returns its first line that is not empty.
func (t *headBuffer) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	line, _, _ := strings.Cut(strings.TrimSpace(t.b.String()), "\n")
	return line
}
