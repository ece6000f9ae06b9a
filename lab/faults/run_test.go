package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
)

// Limits of what is run, far above the usual time.
const (
	readyLimit   = 15 * time.Second
	commandLimit = 100 * time.Second
)

// Measure runs a command of thru over a scene, against an end point that it starts, and returns the document.
// The command is "explain", or "test" for findings from the traffic alone.
func Measure(t testing.TB, s *Scene, command []string, args ...string) *measure.Document {
	t.Helper()
	if s.Server != nil {
		defer s.serve(t)()
		args = append(slices.Clone(args), s.Target)
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	if s.During != nil {
		during, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() { defer close(ended); s.During(during) }()
		defer func() { stop(); <-ended }()
	}
	var stdout, stderr bytes.Buffer
	cmd := s.command(ctx, t, s.Client, s.ClientBy, slices.Concat(command, []string{"--json"}, args))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run() // the exit code repeats the document
	var d measure.Document
	if wrong := json.Unmarshal(stdout.Bytes(), &d); wrong != nil {
		t.Fatalf("faults: %s: %v: the output is no document: %v\n%.2000s%.2000s", strings.Join(cmd.Args, " "), err, wrong, stdout.String(), stderr.String())
	}
	return &d
}

// command runs thru in a host, with a home of its own.
func (s *Scene) command(ctx context.Context, t testing.TB, h *lab.Host, by, args []string) *exec.Cmd {
	line := slices.Concat(by, []string{lab.Binary(t)}, args)
	cmd := h.Command(ctx, line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=")
	return cmd
}

// serve starts the end point and waits until it is ready; stop ends it.
func (s *Scene) serve(t testing.TB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := s.command(ctx, t, s.Server, s.ServerBy, []string{"serve", "--no-auth", "--iperf3-port", "0", "--iperf2-port", "0"})
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		t.Fatalf("faults: starting thru serve: %v", err)
	}
	ready := make(chan struct{})
	go func() {
		lines, told := bufio.NewScanner(out), false
		for lines.Scan() {
			if !told && strings.Contains(lines.Text(), "ready") {
				told = true
				close(ready)
			}
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	stop = func() { cancel(); _ = cmd.Wait() } // killed: its error says so
	select {
	case <-ready:
	case <-time.After(readyLimit):
		stop()
		t.Fatalf("faults: thru serve is not ready after %v: %s", readyLimit, stderr.String())
	}
	return stop
}

// args returns the arguments of the command for a fault: its own, and the directions.
func (f Fault) args() []string {
	switch {
	case f.Back == nil:
		return append(slices.Clone(f.Args), "--one-way")
	case f.Forward == nil:
		return append(slices.Clone(f.Args), "--reverse")
	}
	return f.Args
}

// Run makes the fault, runs a command of thru over it, and judges the findings.
func Run(t testing.TB, f Fault, command ...string) (*measure.Document, []Row) {
	t.Helper()
	lab.Require(t, f.Needs...)
	d := Measure(t, f.Build(t), command, f.args()...)
	return d, Judge(f, d)
}

// write writes a kernel file, such as one of a control group.
func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatalf("faults: %v", err)
	}
}

// flags splits a formatted command line into words.
func flags(format string, args ...any) []string { return strings.Fields(fmt.Sprintf(format, args...)) }
