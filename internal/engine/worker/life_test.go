//go:build unix

package worker

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/internal/engine"
)

func program(t *testing.T) *Program {
	t.Helper()
	p, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// A worker whose parent dies ends by itself, even in the middle of a test: its pipe closes, whatever its threads do.
func TestWorkerEndsWithItsPipe(t *testing.T) {
	s := suite{Engine: Engine{Program: program(t)}, Gone: gone}
	spec := s.spec(2)
	spec.Duration = int64(time.Minute)
	sender, receiver := s.pair(t, spec, true)
	start(t, 0, sender, receiver)
	<-receiver.Updates()
	for _, x := range []engine.Session{sender, receiver} {
		p := x.(*Session).proc
		p.in.Close() // what the kernel does when the parent dies
		select {
		case <-p.exited:
		case <-time.After(10 * time.Second):
			t.Errorf("worker %d lives on without a parent", x.Process())
		}
	}
}

// A worker that hangs is killed: a stopped process does not read its pipe.
func TestStuckWorkerIsKilled(t *testing.T) {
	s := suite{Engine: Engine{Program: program(t)}, Gone: gone}
	sender, receiver := s.pair(t, s.spec(1), true)
	if err := syscall.Kill(sender.Process(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	sender.Close()
	receiver.Close()
	if !gone(sender.Process()) {
		t.Error("the stuck worker is still there")
	}
}

// The error for a dead worker holds its output.
func TestDeathIsExplained(t *testing.T) {
	p := &process{exited: make(chan struct{})}
	p.cmd = exec.Command("sh", "-c", "echo 'fatal: out of luck' >&2; exit 3")
	p.cmd.Stderr = &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Skip("no shell:", err)
	}
	p.err = p.cmd.Wait()
	close(p.exited)
	if err := p.death(); !strings.Contains(err.Error(), "out of luck") || !strings.Contains(err.Error(), "exit status 3") {
		t.Error(err)
	}
}

// Invalid bytes on the pipe end the worker with an error, not with a crash.
func TestWorkerRefusesNonsense(t *testing.T) {
	for _, in := range []string{"", "\x00\x00\x00\x01Xy", "\x00\x00\x00\x02O{}", "\xff\xff\xff\xffO", "\x00\x00\x00\x03O{]}"} {
		r, w := io.Pipe()
		go func() { io.WriteString(w, in); w.Close() }()
		if err := Main(r, io.Discard); err == nil {
			t.Errorf("%q was accepted", in)
		}
	}
}

// The worker's threads are few and known: GOMAXPROCS leaves room for them.
func TestEnvironmentOfTheMain(t *testing.T) {
	p, err := program(t).start(3)
	if err != nil {
		t.Fatal(err)
	}
	defer p.end()
	env := strings.Join(p.cmd.Env, "\n")
	for _, want := range []string{"GOGC=off", "GOMEMLIMIT=off", "GODEBUG=asyncpreemptoff=1", "GOMAXPROCS=7"} {
		if !strings.Contains(env, want) {
			t.Errorf("%s is not set", want)
		}
	}
	if _, err := os.Stat("/proc/self/exe"); err == nil && !bytes.HasPrefix([]byte(p.cmd.Path), []byte("/proc/self/fd/")) {
		t.Errorf("the worker runs %s, which an upgrade may replace", p.cmd.Path)
	}
}
