package platform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// Streamer is a Runner that also runs programs of any duration and passes on
// their output as it comes.
type Streamer interface {
	Runner
	// Stream starts a program. Close or the end of the context ends it; a
	// failure of the program comes as an error of Read or Close.
	Stream(ctx context.Context, name string, args ...string) (io.ReadCloser, error)
}

// stream is the output of a running program.
type stream struct {
	out  io.Reader
	over bool // it ended by itself
	cmd  *exec.Cmd
	said *bounded
	stop context.CancelFunc
}

// Stream starts a program on the host, in the language C.
func (s *Remote) Stream(ctx context.Context, name string, args ...string) (io.ReadCloser, error) {
	shared, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := s.client(ctx, shared, "-o", "ControlMaster=no", remote(name, args))
	return started(cmd, cancel)
}

// started starts a command whose output is read by a pipe.
func started(cmd *exec.Cmd, cancel context.CancelFunc) (io.ReadCloser, error) {
	cmd.WaitDelay = time.Second
	said := &bounded{most: 4 << 10}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		cancel()
		return nil, fmt.Errorf("platform: starting a command: %w", err)
	}
	return &stream{out: out, cmd: cmd, said: said, stop: cancel}, nil
}

// Read reads available output.
func (s *stream) Read(b []byte) (int, error) {
	n, err := s.out.Read(b)
	s.over = s.over || errors.Is(err, io.EOF)
	return n, err
}

// Close ends the program, and returns its error where it had ended by itself.
func (s *stream) Close() error {
	s.stop()
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if s.over && errors.As(err, &exit) && exit.Exited() {
		return fmt.Errorf("platform: %w", &Exit{Code: exit.ExitCode(), Stderr: s.said.kept.String()})
	}
	return nil
}
